//! Episodes: their layout, what they are drawn from, and that they can be drawn again.

use std::collections::BTreeSet;

use genus_core::episode::{Episode, EpisodeError, Pool, Shape, ShortClasses};

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
