//! Episodes: their layout, what they are drawn from, and that they can be drawn again.

use std::collections::BTreeSet;

use genus_core::episode::{Episode, EpisodeError, Half, Pile, Pool, Shape, ShortClasses, Tail};
use proptest::prelude::*;

/// A pool whose rows go round the classes, with rows of no listed class and without a label between them. Class `i` has
/// `sizes[i]` rows.
fn pool(sizes: &[usize]) -> (Pool, Vec<Option<String>>) {
    let names: Vec<String> = (0..sizes.len()).map(|class| format!("class {class}")).collect();
    let mut labels = Vec::new();
    for item in 0..sizes.iter().max().copied().unwrap_or(0) {
        for (class, &size) in sizes.iter().enumerate() {
            if item < size {
                labels.push(Some(names[class].clone()));
            }
        }
        labels.push(None);
        labels.push(Some("not listed".to_owned()));
    }
    (Pool::new(&names, &labels), labels)
}

const SHAPE: Shape = Shape {
    way: 3,
    shot: 2,
    new: 4,
    query: 5,
};

/// What every kind of episode must satisfy: rows of the classes that it names, each once.
fn check(episode: &Episode, pool: &Pool, labels: &[Option<String>], shape: Shape) {
    assert_eq!(episode.known, shape.way);
    assert_eq!(episode.classes.len(), shape.way + shape.new);
    assert_eq!(
        episode.classes.iter().collect::<BTreeSet<_>>().len(),
        shape.way + shape.new
    );
    assert_eq!(episode.support.len(), shape.way * shape.shot);
    assert_eq!(episode.support.len(), episode.support_classes.len());
    assert_eq!(episode.queries.len(), episode.truth.len());
    let rows = || episode.support.iter().chain(&episode.queries);
    assert_eq!(
        rows().collect::<BTreeSet<_>>().len(),
        rows().count(),
        "a row is used twice"
    );
    for (&row, &class) in rows().zip(episode.support_classes.iter().chain(&episode.truth)) {
        assert_eq!(labels[row].as_ref(), Some(&pool.classes()[episode.classes[class]]));
    }
    // Shot after shot, and in each the classes in order.
    for (at, &class) in episode.support_classes.iter().enumerate() {
        assert_eq!(class, at % shape.way);
    }
}

#[test]
fn the_layout_is_that_of_the_specification() {
    let (pool, labels) = pool(&[9; 10]);
    for number in 0..50 {
        let episode = pool.episode(SHAPE, 1, number).unwrap();
        check(&episode, &pool, &labels, SHAPE);
        let (old, new) = episode.truth.split_at(3 * 5);
        assert_eq!(new.len(), 4 * 5);
        assert!(old.iter().enumerate().all(|(at, &class)| class == at % 3));
        assert!(new.iter().enumerate().all(|(at, &class)| class == 3 + at % 4));
    }
}

#[test]
fn an_episode_depends_on_its_seed_and_number_alone() {
    let (pool, _) = pool(&[30; 12]);
    let draw = |seed, number| pool.episode(SHAPE, seed, number).unwrap();
    let forwards: Vec<Episode> = (0..20).map(|number| draw(7, number)).collect();
    let backwards: Vec<Episode> = (0..20).rev().map(|number| draw(7, number)).collect();
    assert!(forwards.iter().eq(backwards.iter().rev()));
    for (a, episode) in forwards.iter().enumerate() {
        assert!(forwards[..a].iter().all(|other| other != episode), "{a}");
        assert_ne!(episode, &draw(8, a as u64));
    }
    // More queries are drawn after the same classes: methods see the same tasks at any size.
    let more = Shape { query: 9, ..SHAPE };
    assert_eq!(pool.episode(more, 7, 3).unwrap().classes, forwards[3].classes);
}

#[test]
fn episodes_are_those_of_every_release() {
    // Published numbers are averages over these episodes: they may never change.
    let (pool, _) = pool(&[4; 5]);
    let shape = Shape {
        way: 2,
        shot: 1,
        new: 1,
        query: 2,
    };
    let episode = pool.episode(shape, 1, 2).unwrap();
    assert_eq!(episode.classes, [2, 3, 4]);
    assert_eq!(episode.support, [2, 10]);
    assert_eq!(episode.queries, [9, 17, 16, 24, 11, 4]);
    let large = pool.large(shape, 1, 2).unwrap();
    assert_eq!((large.classes, large.support), (vec![3, 0, 2], vec![3, 14]));
}

/// Whether counts of equally likely events are as even as chance makes them.
fn even(counts: &[usize]) -> bool {
    let mean = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    counts
        .iter()
        .all(|&count| (count as f64 - mean).abs() < 5.0 * mean.sqrt())
}

#[test]
fn classes_and_rows_are_drawn_evenly() {
    let (pool, labels) = pool(&[12; 8]);
    let mut known = vec![0; 8];
    let mut new = vec![0; 8];
    let mut support = vec![0; labels.len()];
    let mut queries = vec![0; labels.len()];
    let shape = Shape {
        way: 2,
        shot: 1,
        new: 2,
        query: 3,
    };
    for number in 0..4000 {
        let episode = pool.episode(shape, 3, number).unwrap();
        episode.classes[..2].iter().for_each(|&class| known[class] += 1);
        episode.classes[2..].iter().for_each(|&class| new[class] += 1);
        episode.support.iter().for_each(|&row| support[row] += 1);
        episode.queries.iter().for_each(|&row| queries[row] += 1);
    }
    let of_pool = |counts: &[usize]| -> Vec<usize> {
        let listed = |row: &usize| labels[*row].as_deref().is_some_and(|label| label != "not listed");
        let (inside, outside): (Vec<usize>, Vec<usize>) = (0..labels.len()).partition(listed);
        assert!(outside.iter().all(|&row| counts[row] == 0));
        inside.iter().map(|&row| counts[row]).collect()
    };
    assert!(even(&known), "{known:?}");
    assert!(even(&new), "{new:?}");
    assert!(even(&of_pool(&support)));
    assert!(even(&of_pool(&queries)));
}

#[test]
fn pools_leave_out_what_is_not_listed() {
    let labels: Vec<Option<String>> = ["b", "x", "a", "", "b"]
        .iter()
        .map(|label| (!label.is_empty()).then(|| (*label).to_owned()))
        .collect();
    let pool = Pool::new(&["a", "empty", "b"], &labels);
    assert_eq!(pool.classes(), ["a", "b"]);
    assert_eq!(pool.smallest_class(), 1);
    assert_eq!(Pool::new(&["a"; 0], &labels).smallest_class(), 0);
}

#[test]
fn short_classes_are_named_or_left_out() {
    let (pool, labels) = pool(&[9, 6, 9, 7, 9, 9, 9, 9]);
    let short = EpisodeError::TooFewItems {
        class: "class 1".to_owned(),
        needed: 7,
        found: 6,
    };
    assert_eq!(pool.clone().with_at_least(7, ShortClasses::Error), Err(short.clone()));
    assert_eq!(
        short.to_string(),
        "class `class 1` has 6 items, and an episode needs 7 of a class"
    );
    let (kept, left_out) = pool.clone().with_at_least(7, ShortClasses::Skip).unwrap();
    assert_eq!(left_out, ["class 1"]);
    assert_eq!(kept.classes().len(), 7);
    for number in 0..40 {
        let episode = kept.episode(SHAPE, 1, number).unwrap();
        check(&episode, &kept, &labels, SHAPE);
    }
    assert_eq!(
        pool.clone().with_at_least(6, ShortClasses::Error),
        Ok((pool.clone(), vec![]))
    );
    assert_eq!(
        pool.clone().with_at_least(6, ShortClasses::Skip),
        Ok((pool.clone(), vec![]))
    );
    // Unchecked, the draw itself finds the class that is short: known classes need examples and queries, new ones less.
    let mut refused = 0;
    for number in 0..40 {
        match pool.episode(SHAPE, 1, number) {
            Ok(episode) => {
                check(&episode, &pool, &labels, SHAPE);
                assert!(!episode.classes[..3].contains(&1));
            }
            Err(error) => {
                assert_eq!(error, short);
                refused += 1;
            }
        }
    }
    assert!((1..40).contains(&refused));
}

#[test]
fn shapes_that_make_no_episode_are_refused() {
    let (pool, _) = pool(&[9; 5]);
    let what = |shape: Shape| pool.episode(shape, 0, 0).unwrap_err().to_string();
    assert!(what(Shape { way: 0, ..SHAPE }).contains("known class"));
    assert!(what(Shape { shot: 0, ..SHAPE }).contains("example"));
    assert!(what(Shape { query: 0, ..SHAPE }).contains("query"));
    assert_eq!(
        pool.episode(SHAPE, 0, 0),
        Err(EpisodeError::TooFewClasses { needed: 7, found: 5 })
    );
    assert!(pool.large(SHAPE, 0, 0).is_err() && pool.large_in_order(SHAPE, 0, 0).is_err());
    let no_new = Shape { new: 0, ..SHAPE };
    assert_eq!(pool.episode(no_new, 0, 0).unwrap().truth.len(), 15);
    let huge = Shape {
        way: usize::MAX,
        new: usize::MAX,
        ..SHAPE
    };
    assert!(matches!(
        pool.episode(huge, 0, 0),
        Err(EpisodeError::TooFewClasses { .. })
    ));
    let many = Shape {
        shot: usize::MAX,
        new: 0,
        ..SHAPE
    };
    assert!(matches!(
        pool.episode(many, 0, 0),
        Err(EpisodeError::TooFewItems { .. })
    ));
    assert!(matches!(pool.large(many, 0, 0), Err(EpisodeError::TooFewItems { .. })));
    assert!(matches!(
        pool.large_in_order(many, 0, 0),
        Err(EpisodeError::TooFewItems { .. })
    ));
    assert_eq!(Shape::default().to_string(), "5w5s5n");
    assert_eq!(Shape::default().query, 15);
}

#[test]
fn large_tasks_take_as_much_of_every_class() {
    let (pool, labels) = pool(&[50, 44, 61, 50, 45, 70, 48, 52]);
    for number in 0..20 {
        let episode = pool.large(SHAPE, 2, number).unwrap();
        check(&episode, &pool, &labels, SHAPE);
        let sizes = [50, 44, 61, 50, 45, 70, 48, 52];
        let each = episode.classes.iter().map(|&class| sizes[class]).min().unwrap();
        for class in 0..7 {
            let queries = episode.truth.iter().filter(|&&truth| truth == class).count();
            assert_eq!(queries, if class < 3 { each - 2 } else { each });
        }
        assert_eq!(episode, pool.large(SHAPE, 2, number).unwrap());
        assert_ne!(episode, pool.large(SHAPE, 3, number).unwrap());
        assert_ne!(episode, pool.large(SHAPE, 2, number + 1).unwrap());
    }
    // Of the larger classes any row may be among those taken.
    let used: BTreeSet<usize> = (0..20)
        .flat_map(|number| pool.large(SHAPE, 2, number).unwrap().queries)
        .collect();
    let listed = |row: &usize| labels[*row].as_deref().is_some_and(|label| label != "not listed");
    let missing = (0..labels.len())
        .filter(listed)
        .filter(|row| !used.contains(row))
        .count();
    assert!(missing < 10, "{missing} rows are never drawn");
    // The number of queries of the shape has no say.
    let other = Shape { query: 0, ..SHAPE };
    assert_eq!(pool.large(other, 2, 0), pool.large(SHAPE, 2, 0));
}

#[test]
fn large_tasks_in_order_are_the_first_rows_in_batches() {
    for (size, each) in [(47, 40), (40, 40), (39, 20), (20, 20), (85, 80)] {
        let (pool, labels) = pool(&[size, 90, 90, 90, 90, 90, 90]);
        let (episode, first_two) = pool.large_in_order(SHAPE, 4, 0).unwrap();
        check(&episode, &pool, &labels, SHAPE);
        assert_eq!(first_two, each.min(40) * 7 - 6, "{size} items");
        assert_eq!(episode.queries.len(), each * 7 - 6);
        for class in 0..7 {
            let name = &pool.classes()[episode.classes[class]];
            let expected = (0..labels.len())
                .filter(|&row| labels[row].as_ref() == Some(name))
                .take(each);
            let support = episode.support.iter().zip(&episode.support_classes);
            let queries = episode.queries.iter().zip(&episode.truth);
            let rows = support
                .chain(queries)
                .filter(|&(_, &truth)| truth == class)
                .map(|(&row, _)| row);
            assert!(rows.eq(expected), "class {class} of {size}");
        }
        // The queries of the first two batches come first.
        let early = |row: usize| {
            let before = labels[..row].iter().filter(|label| **label == labels[row]).count();
            before < 40
        };
        assert!(episode.queries[..first_two].iter().all(|&row| early(row)));
        assert!(!episode.queries[first_two..].iter().any(|&row| early(row)));
    }
    let (pool, _) = pool(&[19; 7]);
    assert_eq!(
        pool.large_in_order(SHAPE, 4, 0),
        Err(EpisodeError::TooFewItems {
            class: pool.classes()[pool.large(SHAPE, 4, 0).unwrap().classes[0]].clone(),
            needed: 20,
            found: 19
        })
    );
}

#[test]
fn large_tasks_always_have_queries_of_every_class() {
    let shape = Shape { shot: 20, ..SHAPE };
    let (short, _) = pool(&[21; 7]);
    let episode = short.large(shape, 0, 0).unwrap();
    assert_eq!(episode.truth.iter().collect::<BTreeSet<_>>().len(), 7);
    assert!(matches!(
        short.large_in_order(shape, 0, 0),
        Err(EpisodeError::TooFewItems { needed: 40, .. })
    ));
    let (enough, _) = pool(&[40; 7]);
    let (episode, _) = enough.large_in_order(shape, 0, 0).unwrap();
    assert_eq!(episode.truth.iter().collect::<BTreeSet<_>>().len(), 7);
    let (too_short, _) = pool(&[20; 7]);
    assert!(too_short.large(shape, 0, 0).is_err());
}

/// How many queries every class of an episode has.
fn queries_of_classes(episode: &Episode) -> Vec<usize> {
    let count = |class| episode.truth.iter().filter(|&&truth| truth == class).count();
    (0..episode.classes.len()).map(count).collect()
}

fn tail(smallest: usize, largest: usize) -> Option<Tail> {
    Some(Tail { smallest, largest })
}

#[test]
fn a_tail_is_a_geometric_ladder() {
    let ladder = |smallest, largest, classes| Tail { smallest, largest }.ladder(classes);
    assert_eq!(ladder(3, 24, 4), [3, 6, 12, 24]);
    assert_eq!(Tail::default().ladder(10), [3, 4, 5, 6, 8, 10, 12, 15, 19, 24]);
    assert_eq!(ladder(7, 7, 3), [7, 7, 7]);
    assert_eq!(ladder(3, 24, 2), [3, 24]);
    assert_eq!(ladder(3, 24, 1), [24]);
    assert!(ladder(3, 24, 0).is_empty());
    // A class without a query, and the others from 1.
    assert_eq!(ladder(0, 16, 6), [0, 1, 2, 4, 8, 16]);
    assert_eq!(ladder(0, 16, 2), [0, 16]);
    assert_eq!(ladder(0, 16, 1), [16]);
    assert_eq!(ladder(0, 1, 4), [0, 1, 1, 1]);
    assert_eq!(ladder(0, 0, 3), [0, 0, 0]);
    assert_eq!(ladder(1, usize::MAX, 3), [1, 1 << 32, usize::MAX]);
}

#[test]
fn tails_are_read_as_they_are_written() {
    assert_eq!("3-24".parse(), Ok(Tail::default()));
    assert_eq!(Tail::default().to_string(), "3-24");
    assert_eq!(
        "0-5".parse(),
        Ok(Tail {
            smallest: 0,
            largest: 5
        })
    );
    let reversed = EpisodeError::TailReversed {
        smallest: 24,
        largest: 3,
    };
    assert!(reversed.to_string().ends_with("as in 3-24"), "{reversed}");
    assert_eq!("24-3".parse::<Tail>(), Err(reversed));
    for text in [
        "",
        "-",
        "3",
        "3-",
        "-24",
        "3-24-30",
        "a-b",
        "3 - 24",
        "3.5-24",
        "1-99999999999999999999",
    ] {
        let error = text.parse::<Tail>().unwrap_err();
        assert_eq!(error, EpisodeError::NoTail { text: text.to_owned() });
        assert!(error.to_string().contains("3-24"), "{error}");
    }
}

#[test]
fn a_plain_pile_is_the_episode_of_every_release() {
    let (pool, _) = pool(&[9, 12, 9, 30, 9, 10, 9, 11]);
    for number in 0..30 {
        let plain = pool.episode(SHAPE, 1, number).unwrap();
        assert_eq!(pool.episode_of(SHAPE, Pile::default(), 1, number), Ok(plain.clone()));
        assert_eq!((plain.outliers, plain.belonging()), (0, plain.queries.len()));
        // A tail that is none.
        let even = Pile {
            tail: tail(5, 5),
            ..Pile::default()
        };
        assert_eq!(pool.episode_of(SHAPE, even, 1, number), Ok(plain));
    }
}

#[test]
fn tails_and_outliers_are_those_of_every_release() {
    // Like the episodes without them.
    let (pool, _) = pool(&[4; 7]);
    let shape = Shape {
        way: 2,
        shot: 1,
        new: 1,
        query: 2,
    };
    let pile = Pile {
        tail: tail(0, 3),
        outliers: 2,
    };
    let episode = pool.episode_of(shape, pile, 1, 2).unwrap();
    // The new class has no query.
    assert_eq!(episode.classes, [6, 1, 3]);
    assert_eq!(episode.support, [6, 10]);
    assert_eq!(episode.queries, [15, 19, 24, 33, 2, 22]);
    assert_eq!(episode.truth, [0, 1, 0, 0, 3, 4]);
}

proptest! {
    #[test]
    fn any_pile_is_drawn_as_asked(
        sizes in prop::collection::vec(12usize..20, 6..14),
        way in 1usize..4,
        shot in 1usize..4,
        new in 0usize..3,
        smallest in 0usize..5,
        more in 0usize..5,
        outliers in 0usize..3,
        number in 0u64..1000,
    ) {
        let (pool, labels) = pool(&sizes);
        let outliers = outliers.min(sizes.len() - way - new);
        let shape = Shape { way, shot, new, query: 0 };
        let pile = Pile { tail: tail(smallest, smallest + more), outliers };
        let drawn = pool.episode_of(shape, pile, 3, number);
        if smallest + more + outliers == 0 {
            prop_assert_eq!(drawn, Err(EpisodeError::Nothing { what: "query" }));
            return Ok(());
        }
        let episode = drawn.unwrap();
        prop_assert_eq!(pool.episode_of(shape, pile, 3, number), Ok(episode.clone()));

        // The classes have the counts of the ladder, in some order.
        let counts = queries_of_classes(&episode);
        let mut sorted = counts.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, Tail { smallest, largest: smallest + more }.ladder(way + new));
        prop_assert!(counts.iter().all(|count| count + shot <= pile.items(shape)));
        prop_assert_eq!(pile.classes(shape), way + new + outliers);

        // Outliers come last, each of a class of its own that is not in the episode.
        prop_assert_eq!(episode.outliers, outliers);
        prop_assert_eq!(episode.belonging(), counts.iter().sum::<usize>());
        let (of_classes, apart) = episode.truth.split_at(episode.belonging());
        prop_assert!(of_classes.iter().all(|&class| class < way + new));
        prop_assert!(apart.iter().copied().eq(way + new..way + new + outliers));
        let rows = &episode.queries[episode.belonging()..];
        let foreign: BTreeSet<&String> = rows.iter().map(|&row| labels[row].as_ref().unwrap()).collect();
        prop_assert_eq!(foreign.len(), outliers);
        prop_assert!(foreign.iter().all(|&name| pool.classes().contains(name)));
        prop_assert!(!episode.classes.iter().any(|&class| foreign.contains(&pool.classes()[class])));

        // Without them it is an episode like any other.
        let mut inside = episode.clone();
        inside.queries.truncate(episode.belonging());
        inside.truth.truncate(episode.belonging());
        inside.outliers = 0;
        check(&inside, &pool, &labels, shape);
        let old = of_classes.iter().take_while(|&&class| class < way).count();
        prop_assert!(of_classes[old..].iter().all(|&class| class >= way));
        let without = Pile { outliers: 0, ..pile };
        if smallest + more > 0 {
            prop_assert_eq!(pool.episode_of(shape, without, 3, number), Ok(inside.clone()));
        }

        // And its classes begin with the queries that they have without a tail.
        let even = pool.episode(Shape { query: 9, ..shape }, 3, number).unwrap();
        prop_assert_eq!(&even.classes, &inside.classes);
        prop_assert_eq!(&even.support, &inside.support);
        let of = |episode: &Episode, class: usize| -> Vec<usize> {
            let pairs = episode.queries.iter().zip(&episode.truth);
            pairs.filter(|pair| *pair.1 == class).map(|pair| *pair.0).collect()
        };
        for class in 0..way + new {
            prop_assert!(of(&even, class).starts_with(&of(&inside, class)));
        }
    }
}

#[test]
fn every_class_may_be_the_largest_and_every_row_an_outlier() {
    let (pool, labels) = pool(&[12; 8]);
    let shape = Shape {
        way: 2,
        shot: 1,
        new: 2,
        query: 0,
    };
    let pile = Pile {
        tail: tail(1, 8),
        outliers: 2,
    };
    let mut largest = vec![0; 4];
    let mut rungs = vec![0; 4];
    let mut outliers = vec![0; labels.len()];
    for number in 0..4000 {
        let episode = pool.episode_of(shape, pile, 3, number).unwrap();
        let counts = queries_of_classes(&episode);
        largest[counts.iter().position(|&count| count == 8).unwrap()] += 1;
        rungs[counts[0].ilog2() as usize] += 1;
        let apart = &episode.queries[episode.belonging()..];
        apart.iter().for_each(|&row| outliers[row] += 1);
    }
    assert!(even(&largest), "{largest:?}");
    assert!(even(&rungs), "{rungs:?}");
    let listed = |row: &usize| labels[*row].as_deref().is_some_and(|label| label != "not listed");
    let (inside, outside): (Vec<usize>, Vec<usize>) = (0..labels.len()).partition(listed);
    assert!(outside.iter().all(|&row| outliers[row] == 0));
    assert!(even(&inside.iter().map(|&row| outliers[row]).collect::<Vec<_>>()));
}

#[test]
fn piles_that_cannot_be_drawn_are_refused() {
    let (pool, _) = pool(&[9; 9]);
    let draw = |pile: Pile| pool.episode_of(SHAPE, pile, 0, 0);
    assert!(
        draw(Pile {
            outliers: 2,
            ..Pile::default()
        })
        .is_ok()
    );
    let error = draw(Pile {
        outliers: 3,
        ..Pile::default()
    })
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "outliers are of a class each: 3 are asked for, and beside the 7 classes of an episode there are 2"
    );
    assert!(
        draw(Pile {
            outliers: usize::MAX,
            ..Pile::default()
        })
        .is_err()
    );
    assert_eq!(
        draw(Pile {
            tail: tail(4, 3),
            ..Pile::default()
        }),
        Err(EpisodeError::TailReversed {
            smallest: 4,
            largest: 3
        })
    );
    let long = |largest| {
        draw(Pile {
            tail: tail(1, largest),
            ..Pile::default()
        })
    };
    assert!(long(7).is_ok());
    assert!(matches!(long(10), Err(EpisodeError::TooFewItems { found: 9, .. })));
    assert!(matches!(long(usize::MAX), Err(EpisodeError::TooFewItems { .. })));
    // Nothing but outliers is a pile, nothing at all is none.
    let nothing = Pile {
        tail: tail(0, 0),
        outliers: 0,
    };
    assert_eq!(draw(nothing), Err(EpisodeError::Nothing { what: "query" }));
    let strange = draw(Pile { outliers: 2, ..nothing }).unwrap();
    assert_eq!((strange.truth, strange.outliers), (vec![7, 8], 2));
    // Without a tail every class has a query, outliers or not.
    let pile = Pile {
        outliers: 1,
        ..Pile::default()
    };
    assert_eq!(
        pool.episode_of(Shape { query: 0, ..SHAPE }, pile, 0, 0),
        Err(EpisodeError::Nothing { what: "query a class" })
    );
}

#[test]
fn halves_share_the_classes_out() {
    for count in [0, 1, 2, 7, 48] {
        let sizes: Vec<usize> = (0..count).map(|class| 3 + class % 4).collect();
        let (whole, _) = pool(&sizes);
        let (first, second) = (whole.half(Half::First), whole.half(Half::Second));
        assert_eq!(first.classes().len(), count.div_ceil(2));
        assert_eq!(second.classes().len(), count / 2);
        let mut all: Vec<(&String, &Vec<usize>)> = [&first, &second]
            .into_iter()
            .flat_map(|half| half.classes().iter().zip(half.items()))
            .collect();
        all.sort_by_key(|(name, _)| whole.classes().iter().position(|class| class == *name));
        assert_eq!(all, whole.classes().iter().zip(whole.items()).collect::<Vec<_>>());
        // Classes keep their order.
        let place = |class: &String| whole.classes().iter().position(|other| other == class);
        assert!(first.classes().is_sorted_by_key(place) && second.classes().is_sorted_by_key(place));
    }
    // What was measured on a half must not move to the other one.
    let (six, _) = pool(&[3; 6]);
    assert_eq!(six.half(Half::First).classes(), HALF_OF_SIX);
    assert_eq!(Half::First.other(), Half::Second);
    assert_eq!(Half::Second.other(), Half::First);
}

/// The first half of six classes.
const HALF_OF_SIX: [&str; 3] = ["class 0", "class 2", "class 4"];
