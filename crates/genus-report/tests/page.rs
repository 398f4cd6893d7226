//! The page as a whole: what is in it, how large it is, and that no name can get out of its place.

use genus_core::explain::{CategoryTree, Link, Neighbour, TreeMerge};
use genus_core::{Kind, MergeTree, Score};
use genus_report::{
    Category, Communities, Example, Item, NeighbourTies, Pictures, Provenance, Report, Slot, Truth, Why,
};
use proptest::prelude::*;
use serde_json::Value;

fn score(similarity: f32, unsure: bool) -> Score {
    Score {
        similarity,
        margin: similarity / 4.0,
        probability: Some(similarity),
        unsure,
    }
}

fn category(name: &str, kind: Kind, items: u64, unsure: u64) -> Category {
    Category {
        name: name.into(),
        kind,
        items,
        unsure,
        parent: None,
    }
}

/// Two known classes and a new group, with everything that a report can have.
fn small() -> Report {
    let of_items = [0, 0, 0, 1, 2, 2, 2];
    let truths = ["cat", "cat", "dog", "dog", "owl", "owl", "cat"].map(|name| Some(name.to_owned()));
    let (truth, numbers) = Truth::judge(&["cat".into(), "dog".into()], 3, &of_items, &truths);
    let similarities = [0.7, 0.9, 0.8, 0.6, 0.5, 0.95, 0.9];
    let items = (0..7).map(|at| Item {
        id: format!("item {at}"),
        category: of_items[at],
        score: score(similarities[at], at == 5),
        rival: Some((of_items[at] + 1) % 3),
        place: Some([at as f32, (at * at) as f32]),
        text: Some(format!("text {at}")),
        picture: (at % 2 == 0).then(|| vec![0xFF, 0xD8, 0xFF, at as u8]),
        truth: numbers[at],
        scene: Some([0, 1, 2, 3, 4, 5, 4][at]),
        tied: None,
    });
    Report {
        title: "animals".into(),
        things: ["photo".into(), "photos".into()],
        made: Provenance {
            method: "shc".into(),
            how: "shc, the next merge was at similarity 0.41".into(),
            encoder: Some("dino-vitb16".into()),
            seed: 3,
            seconds: 1.26,
            version: "0.1.0".into(),
        },
        categories: vec![
            category("cat", Kind::Known, 3, 0),
            category("dog", Kind::Known, 1, 0),
            category("new-1", Kind::Novel, 3, 1),
        ],
        items: items.collect(),
        examples: vec![Example {
            id: "felix".into(),
            class: 0,
            place: Some([0.5, 0.5]),
            text: None,
            picture: Some(vec![0x89, b'P', b'N', b'G']),
        }],
        projection: Some("t-SNE".into()),
        why: Why {
            tree: Some(CategoryTree {
                kind: MergeTree::Average,
                branches: vec![0, 1, 2],
                merges: vec![
                    TreeMerge {
                        left: 0,
                        right: 1,
                        level: 0.41,
                    },
                    TreeMerge {
                        left: 3,
                        right: 2,
                        level: 0.2,
                    },
                ],
                within: 0,
            }),
            communities: None,
            cut: Some(0.41),
            doubt: None,
            nearest: vec![
                vec![Neighbour {
                    category: 1,
                    similarity: 0.4,
                }],
                vec![],
                vec![],
            ],
            confusable: vec![],
        },
        truth: Some(truth),
        history: Vec::new(),
        asked: Vec::new(),
    }
}

/// The JSON of a block of data in a page, found as a browser finds it: up to the first end of a script.
fn block(page: &str, id: &str) -> Value {
    let start = format!("<script type=\"application/json\" id=\"{id}\">");
    let (_, after) = page.split_once(&start).unwrap_or_else(|| panic!("no block {id}"));
    let (json, _) = after.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

#[test]
fn the_data_of_a_small_report() {
    let page = small().html();
    let data = serde_json::to_string_pretty(&block(&page, "data")).unwrap();
    insta::assert_snapshot!("data", data);
    assert_eq!(
        block(&page, "pictures-0"),
        serde_json::json!({
            "i0": "data:image/jpeg;base64,/9j/Ag==",
            "i2": "data:image/jpeg;base64,/9j/AA==",
            "e0": "data:image/png;base64,iVBORw==",
        })
    );
    // A category without pictures has no block.
    assert!(!page.contains("id=\"pictures-1\""));
}

#[test]
fn sheets_begin_with_mistakes_and_end_with_doubts() {
    let data = block(&small().html(), "data");
    let ids: Vec<&str> = data["items"]["id"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap())
        .collect();
    // Item 2 is a dog among cats and item 6 a cat among owls; item 5 is unsure.
    assert_eq!(
        ids,
        ["item 2", "item 1", "item 0", "item 3", "item 6", "item 4", "item 5"]
    );
    assert_eq!(data["items"]["mistakes"], serde_json::json!([0, 4]));
    assert_eq!(data["items"]["unsure"], serde_json::json!([6]));
}

#[test]
fn scenes_are_told_where_there_are_some() {
    let mut report = small();
    let data = block(&report.html(), "data");
    assert_eq!(data["items"]["scene"], serde_json::json!([2, 1, 0, 3, 4, 4, 5]));
    report.items[6].scene = Some(6);
    assert_eq!(block(&report.html(), "data")["items"]["scene"], Value::Null);
}

#[test]
fn ties_are_told_by_places_on_the_page() {
    let mut report = small();
    report.items[1].tied = Some(NeighbourTies {
        own: 4,
        nearest: vec![Slot::Item(2), Slot::Example(0), Slot::Item(6), Slot::Item(5)],
    });
    let link = |at: usize| Link {
        first: 0,
        second: at,
        from_first: 0.25,
        from_second: 1.0 / 3.0,
    };
    report.why.communities = Some(Communities {
        neighbours: 5,
        links: Some((0..30).map(link).collect()),
    });
    let data = block(&report.html(), "data");
    // Item 1 is the second of the page, after item 2; item 6 is the fifth. There is room for three.
    assert_eq!(
        data["items"]["tied"],
        serde_json::json!([null, [4, 0, -1, 4], null, null, null, null, null])
    );
    let communities = &data["why"]["communities"];
    assert_eq!(communities["neighbours"], 5);
    assert_eq!(communities["links"].as_array().unwrap().len(), 20);
    assert_eq!(communities["links"][1], serde_json::json!([0, 1, 0.25, 0.3333]));
    // Of very many items none are told.
    report.why.communities = Some(Communities {
        neighbours: 5,
        links: None,
    });
    let data = block(&report.html(), "data");
    assert_eq!(data["why"]["communities"]["links"], Value::Null);
}

#[test]
fn the_truth_is_that_of_the_metrics() {
    let report = small();
    let truth = report.truth.unwrap();
    assert_eq!(truth.classes(), ["cat", "dog", "owl"]);
    assert_eq!((truth.known(), truth.judged()), (2, 7));
    assert_eq!(
        [0, 1, 2, 3].map(|c| truth.class_of(c)),
        [Some(0), Some(1), Some(2), None]
    );
    assert_eq!(truth.counts(), [[2, 0, 1], [1, 1, 0], [0, 0, 2]]);
    let accuracy = truth.accuracy();
    assert_eq!((accuracy.old, accuracy.new, accuracy.all), (0.6, 1.0, 5.0 / 7.0));
    // Without any truth there is no share of anything.
    let (nothing, _) = Truth::judge(&["cat".into()], 2, &[0, 1], &[None, None]);
    assert!(nothing.accuracy().all.is_nan());
    let page = Report {
        truth: Some(nothing),
        ..small()
    };
    assert_eq!(block(&page.html(), "data")["truth"]["all"], Value::Null);
}

#[test]
fn nothing_but_the_page_itself_may_run_or_be_fetched() {
    let page = small().html();
    let policy = page.split_once("Content-Security-Policy\" content=\"").unwrap().1;
    let policy = policy.split_once('"').unwrap().0;
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(policy.contains("script-src 'sha256-") && policy.contains("img-src data:;"));
    assert!(!policy.contains("unsafe"));
    for outside in [
        "http://",
        "https://",
        "//cdn",
        "@import",
        "url(",
        "innerHTML",
        "insertAdjacentHTML",
        "eval(",
    ] {
        let found = page.matches(outside).count();
        // The name of the language of drawings is the only address.
        let allowed = page.matches("http://www.w3.org/2000/svg").count();
        assert_eq!(found, if outside == "http://" { allowed } else { 0 }, "{outside}");
    }
    // One script that runs, and data.
    assert_eq!(page.matches("<script>").count(), 1);
    assert!(!page.contains("{{"));
}

#[test]
fn a_report_of_ten_thousand_images_is_under_forty_megabytes() {
    let mut report = Report {
        categories: (0..50)
            .map(|at| category(&format!("new-{at}"), Kind::Novel, 200, 0))
            .collect(),
        items: (0..10_000)
            .map(|at| Item {
                id: format!("a/rather/long/path/to/an/image/of/a/collection/{at}.jpg"),
                category: at % 50,
                score: score(0.5 + at as f32 / 30_000.0, false),
                rival: Some((at + 1) % 50),
                place: Some([at as f32, -(at as f32)]),
                ..Item::default()
            })
            .collect(),
        truth: None,
        history: Vec::new(),
        asked: Vec::new(),
        ..small()
    };
    report.examples.clear();
    let pictures = Pictures::choose(&report);
    // Far larger than pictures of that size are.
    let mut made = 0;
    let filled: Result<(), ()> = pictures.fill(&mut report, |_, slots| {
        made += slots.len();
        let mut picture = vec![0x5A; 16_000];
        picture[..3].copy_from_slice(&[0xFF, 0xD8, 0xFF]);
        Ok(slots.iter().map(|_| Some(picture.clone())).collect())
    });
    filled.unwrap();
    let page = report.html();
    assert!(page.len() < 40_000_000, "{}", page.len());
    assert!(page.len() > 30_000_000, "the room is used: {}", page.len());
    assert!(made < 2_000, "no picture is made that has no room: {made}");
    // Every category has its share.
    let counts: Vec<usize> = (0..50)
        .map(|c| {
            report
                .items
                .iter()
                .filter(|item| item.category == c && item.picture.is_some())
                .count()
        })
        .collect();
    assert!(
        counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1,
        "{counts:?}"
    );
}

#[test]
fn what_is_shown_of_a_large_category_begins_and_ends_as_it_does() {
    let mut report = Report {
        categories: vec![category("cat", Kind::Known, 30_000, 0)],
        items: (0..30_000)
            .map(|at| Item {
                score: score(1.0 - at as f32 / 30_000.0, false),
                ..Item::default()
            })
            .collect(),
        truth: None,
        history: Vec::new(),
        asked: Vec::new(),
        ..small()
    };
    let pictures = Pictures::choose(&report);
    assert_eq!((pictures.len(), pictures.side()), (4_000, 144));
    let filled: Result<(), ()> = pictures.fill(&mut report, |_, slots| {
        Ok(vec![Some(vec![0xFF, 0xD8, 0xFF]); slots.len()])
    });
    filled.unwrap();
    let has = |at: usize| report.items[at].picture.is_some();
    assert!((0..2_000).all(has) && (29_000..30_000).all(has) && !has(15_000));
    assert_eq!(report.items.iter().filter(|item| item.picture.is_some()).count(), 3_999);
}

proptest! {
    #[test]
    fn no_name_gets_out_of_its_place(
        names in prop::collection::vec(r#"(</?(script|b|!--)>?|[<>&"'{}\\/🐦א\u{202e}\u{2028}\u{0}]|\PC){0,12}"#, 5)
    ) {
        let mut report = small();
        let plain = report.html();
        report.title = names[0].clone();
        report.items[0].id = names[1].clone();
        report.items[1].text = Some(names[2].clone());
        report.categories[2].name = names[3].clone();
        report.examples[0].id = names[4].clone();
        let page = report.html();
        // The same markup as with harmless names, but for the two titles.
        for mark in ["<script", "</script", "<!--", "<b>", "<"] {
            prop_assert_eq!(page.matches(mark).count(), plain.matches(mark).count(), "{}", mark);
        }
        let data = block(&page, "data");
        prop_assert_eq!(data["title"].as_str().unwrap(), &names[0]);
        prop_assert_eq!(data["categories"][2]["name"].as_str().unwrap(), &names[3]);
        prop_assert_eq!(data["examples"][0]["id"].as_str().unwrap(), &names[4]);
        prop_assert!(data["items"]["id"].as_array().unwrap().iter().any(|id| id.as_str() == Some(&names[1])));
        prop_assert!(data["items"]["text"].as_array().unwrap().iter().any(|text| text.as_str() == Some(&names[2])));
    }
}
