//! Pages: they say what the tables say, ask the network for nothing, and no name can break or script them.

use genus_core::Features;
use genus_core::episode::Shape;
use genus_core::projection::Projection;
use genus_core::rng::Rng;
use genus_lab::{
    Bench, BenchReport, Dataset, Experiment, PileSettings, PileVariable, Silent, StreamSettings, Study, figures_page,
};
use roxmltree::{Document, Node};

const HOSTILE: &str = "<script>alert('1')</script>\"><img src=x onerror=alert(2)>&amp;\u{202e}𝕏\0";

fn dataset(name: &str) -> Dataset {
    let mut rng = Rng::new(3, &[1]);
    let mut number = move || 2.0 * rng.unit() as f32 - 1.0;
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for class in 0..8 {
        let centre: Vec<f32> = (0..12).map(|_| number()).collect();
        for _ in 0..9 {
            rows.push(centre.iter().map(|v| v + 0.5 * number()).collect::<Vec<_>>());
            labels.push(Some(format!("{name} {class}")));
        }
    }
    Dataset::new(name, Features::from_rows(rows).unwrap(), &labels, None).unwrap()
}

fn bench() -> Bench {
    Bench {
        shape: Shape {
            way: 3,
            shot: 2,
            new: 2,
            query: 4,
        },
        episodes: 6,
        methods: genus_lab::BenchMethod::list(["proto", "shc", "ukc:alpha=1.3"]).unwrap(),
        ..Bench::default()
    }
}

/// Checks what every page must be and hands its tree to `look`. What is between the tags of style and script is ours.
fn checked<T>(html: &str, look: impl FnOnce(&Document<'_>) -> T) -> T {
    let mut text = html.strip_prefix("<!doctype html>\n").expect("a page").to_owned();
    for tag in ["style", "script"] {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        assert_eq!(
            (text.matches(&open).count(), text.matches(&close).count()),
            (1, 1),
            "{tag}"
        );
        let (from, to) = (text.find(&open).unwrap(), text.find(&close).unwrap());
        text.replace_range(from + open.len()..to, "");
    }
    let document = Document::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for node in document.descendants().filter(Node::is_element) {
        let tag = node.tag_name().name();
        assert!(!["img", "iframe", "object", "base", "form"].contains(&tag), "{tag}");
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(
                !name.starts_with("on") && name != "src" && name != "style",
                "{name}={value}"
            );
            // The one link is an empty icon, so that browsers ask for none.
            assert!(
                name != "href" || value.starts_with('#') || (tag, value) == ("link", "data:,"),
                "{name}={value}"
            );
        }
        if let Some(place) = node.attribute("href").filter(|_| tag != "link") {
            let there = |other: Node| other.attribute("id") == place.strip_prefix('#');
            assert!(document.descendants().any(there), "{place} leads nowhere");
        }
    }
    assert!(html.contains("default-src 'none'") && !html.contains("unsafe-inline"));
    look(&document)
}

fn texts(node: Node, tag: &str) -> Vec<String> {
    let found = node.descendants().filter(|node| node.has_tag_name(tag));
    found
        .map(|node| {
            node.descendants()
                .filter(Node::is_text)
                .filter_map(|node| node.text())
                .collect()
        })
        .collect()
}

fn first<'a>(document: &'a Document<'a>, tag: &str) -> Node<'a, 'a> {
    document.descendants().find(|node| node.has_tag_name(tag)).unwrap()
}

#[test]
fn a_page_has_what_the_markdown_has() {
    let report = bench().run(&dataset("made up"), &Experiment::Main, &Silent).unwrap();
    let markdown = report.markdown();
    let html = report.page("genus bench main --features 'made up.npz'");
    checked(&html, |page| {
        let table = first(page, "table");
        let head: Vec<String> = texts(table, "th");
        assert_eq!(head, ["Method", "All", "Old", "New", "K", "K error"]);
        let rows: Vec<Vec<String>> = table
            .descendants()
            .filter(|node| node.has_tag_name("tr"))
            .skip(1)
            .map(|row| texts(row, "td"))
            .collect();
        assert_eq!(rows.len(), 3);
        for row in rows {
            let line = markdown
                .lines()
                .find(|line| line.starts_with(&format!("| {}", row[0])))
                .unwrap();
            let cells: Vec<&str> = line.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
            assert_eq!(row, cells);
        }
        assert_eq!(
            texts(page.root(), "code"),
            ["genus bench main --features 'made up.npz'"]
        );
        assert_eq!(texts(page.root(), "h1"), ["main: made up"]);
        // Every share has a bar, and what it is sorted by.
        let shares = page
            .descendants()
            .filter(|node| node.attribute("class") == Some("bar"))
            .count();
        let numbers = page
            .descendants()
            .filter(|node| node.attribute("data-v").is_some())
            .count();
        assert_eq!(
            shares, 8,
            "three methods, and the one that never finds anything new has two"
        );
        assert!(numbers > shares);
        let best = page
            .descendants()
            .filter(|node| node.attribute("class") == Some("n best"))
            .count();
        assert!((3..=9).contains(&best), "{best}");
        assert!(texts(page.root(), "p").iter().any(|text| text.contains(
            "3 classes that are known from 2 examples each and 2 that nobody named, with 4 queries a class"
        )));
    });
}

#[test]
fn experiments_that_vary_something_have_their_chart() {
    let data = dataset("made up");
    let only_ukc = Bench {
        methods: Vec::new(),
        ..bench()
    };
    for (bench, experiment) in [
        (bench(), Experiment::Queries(vec![1, 3])),
        (only_ukc, Experiment::Alpha(vec![1.3, 1.6])),
        (bench(), Experiment::RealTime),
        (
            bench(),
            Experiment::Piles(PileSettings {
                items: vec![2, 4],
                varied: vec![PileVariable::Items],
                ..PileSettings::default()
            }),
        ),
        (bench(), Experiment::Stream(StreamSettings { orders: 2, looks: 2 })),
    ] {
        let report = bench.run(&data, &experiment, &Silent).unwrap();
        checked(&report.page("genus bench"), |page| {
            let figures = page.descendants().filter(|node| node.has_tag_name("figure")).count();
            assert_eq!(figures, 1, "{}", report.settings.experiment);
            let drawn = first(page, "figure");
            let svg = ("http://www.w3.org/2000/svg", "svg");
            assert!(drawn.children().any(|node| node.has_tag_name(svg)));
        });
    }
}

#[test]
fn hostile_names_stay_text() {
    let data = dataset(HOSTILE);
    let mut report = bench().run(&data, &Experiment::Main, &Silent).unwrap();
    report.notes.push(HOSTILE.to_owned());
    report.settings.machine.processor = Some(HOSTILE.to_owned());
    for run in &mut report.runs {
        run.subject = HOSTILE.to_owned();
        run.data = Some(HOSTILE.to_owned());
        run.method = HOSTILE.to_owned();
        run.parameters.insert(HOSTILE.to_owned(), HOSTILE.to_owned());
    }
    let figures = bench().plot(&data, Projection::Pca, &Silent).unwrap();
    let machine = report.settings.machine.clone();
    for html in [
        report.page(HOSTILE),
        figures_page(HOSTILE, HOSTILE, HOSTILE, &figures, machine),
    ] {
        assert!(!html.contains("<img") && !html.contains("alert('1')"));
        checked(&html, |page| {
            let title = &texts(page.root(), "h1")[0];
            assert!(
                title.contains("\"><img src=x onerror=alert(2)>&amp;𝕏\u{fffd}"),
                "{title}"
            );
        });
    }
}

#[test]
fn a_study_is_one_page_with_a_list_of_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    let quick = Bench {
        methods: vec!["shc".parse().unwrap()],
        episodes: 3,
        short_classes: genus_core::episode::ShortClasses::Skip,
        ..bench()
    };
    let mut study = Study::new(folder.path(), quick).unwrap();
    study.skip(HOSTILE, "it is <not> there");
    study.data_set(&dataset("first"), "first", &Silent).unwrap();
    study.data_set(&dataset(HOSTILE), "second", &Silent).unwrap();
    let html = study.page("genus bench paper");
    checked(&html, |page| {
        let sections = texts(page.root(), "h2");
        assert_eq!(sections.len(), 3, "{sections:?}");
        assert_eq!((&*sections[0], &*sections[2]), ("first", "Left out"));
        let parts = texts(page.root(), "h3");
        let wanted = [
            "main-5-shot",
            "main-1-shot",
            "realtime",
            "large",
            "queries",
            "tasks",
            "alpha",
            "threshold",
            "plot",
        ];
        let found: Vec<&str> = parts.iter().map(String::as_str).collect();
        assert!(
            found.iter().all(|part| wanted.contains(part)) && found.contains(&"queries"),
            "{found:?}"
        );
        let links = page.descendants().filter(|node| node.has_tag_name("a")).count();
        let plots = found.iter().filter(|part| **part == "plot").count();
        assert_eq!(links, sections.len() + parts.len() - plots);
        let figures = page.descendants().filter(|node| node.has_tag_name("figure")).count();
        assert!(figures >= 10, "{figures}");
    });
    let again: BenchReport = serde_json::from_value(
        serde_json::from_slice::<serde_json::Value>(&std::fs::read(folder.path().join("first/queries.json")).unwrap())
            .unwrap()["report"]
            .clone(),
    )
    .unwrap();
    // A report that was kept gives the page of one that has just been run.
    assert!(html.contains(again.chart().unwrap().svg.trim_end()));
}
