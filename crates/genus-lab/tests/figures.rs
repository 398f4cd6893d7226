//! Figures: files that any reader of XML takes and that say what they were given.

use std::collections::BTreeSet;

use genus_core::Category;
use genus_lab::figures::{AxisStop, Confusion, Curve, CurveChart, CurvePoint, MapGrid, MapPanel, MapRow};
use roxmltree::{Document, Node};

/// Names that break a careless writer: markup, quotes, controls, emoji, text from right to left, nothing, far too much.
fn hostile() -> Vec<String> {
    let long = "an exceedingly long name that goes on & on ".repeat(40);
    let mut names: Vec<String> = [
        "<script>alert(\"1\")</script>",
        "a & b &amp; ]]> c",
        "it's \"quoted\"",
        "nul \0 bell \u{7} escape \u{1b}[31m delete \u{7f} next \u{85} not \u{ffff} \u{fffe}",
        "line\nbreak\r\n\ttab",
        "👩‍👩‍👧‍👦 🏳️‍🌈 e\u{301}",
        "שלום עולם",
        "\u{202e}turned\u{2066}",
        "<!-- --> <![CDATA[ ?>",
        "",
        "鳥の一種",
    ]
    .map(String::from)
    .to_vec();
    names.push(long);
    names
}

/// Checks what every figure must be and hands its tree to `look`.
fn checked<T>(svg: &str, look: impl FnOnce(&Document<'_>) -> T) -> T {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg");
    assert_eq!(root.tag_name().namespace(), Some("http://www.w3.org/2000/svg"));
    assert_eq!(root.attribute("role"), Some("img"));
    let children: Vec<&str> = root
        .children()
        .filter(Node::is_element)
        .map(|node| node.tag_name().name())
        .collect();
    assert_eq!(
        children[..3],
        ["title", "desc", "rect"],
        "a title, a description and a background come first"
    );
    let size = |name| root.attribute(name).and_then(|text| text.parse::<f64>().ok()).unwrap();
    let (width, height) = (size("width"), size("height"));
    assert!(
        (100.0..5000.0).contains(&width) && (50.0..20000.0).contains(&height),
        "{width} x {height}"
    );
    for node in document.descendants().filter(Node::is_element) {
        for attribute in node.attributes() {
            let value = attribute.value();
            // Names are not in attributes, but for the label that repeats the title.
            if attribute.name() != "aria-label" {
                assert!(
                    !value.contains("NaN") && !value.contains("inf"),
                    "{}={value}",
                    attribute.name()
                );
            }
        }
        // What is drawn lies on the page.
        for (name, most) in [
            ("x", width),
            ("y", height),
            ("x1", width),
            ("x2", width),
            ("y1", height),
            ("y2", height),
        ] {
            if let Some(value) = node.attribute(name) {
                let value: f64 = value.parse().unwrap();
                assert!((-1.0..=most + 1.0).contains(&value), "{name}={value} beyond {most}");
            }
        }
    }
    look(&document)
}

fn texts(document: &Document<'_>) -> Vec<String> {
    let all = document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
    all.map(|node| node.text().unwrap_or_default().to_owned()).collect()
}

fn count(document: &Document<'_>, matches: impl Fn(&Node<'_, '_>) -> bool) -> usize {
    document.descendants().filter(matches).count()
}

fn chart(curves: Vec<Curve>) -> CurveChart {
    let [title, subtitle, x, y] = ["Title", "Subtitle", "Queries", "All, %"].map(String::from);
    CurveChart {
        title,
        subtitle,
        x,
        y,
        curves,
        ..CurveChart::default()
    }
}

fn curve(name: &str, values: &[(f64, f64)]) -> Curve {
    let points = values
        .iter()
        .map(|&(x, mean)| CurvePoint { x, mean, half: 0.5 })
        .collect();
    Curve {
        name: name.into(),
        points,
        ..Curve::default()
    }
}

#[test]
fn a_chart_has_its_values_its_bands_and_the_papers_figures() {
    let mut shc = curve("SHC", &[(20.0, 75.0), (1.0, 58.9), (5.0, 69.0), (10.0, 72.0)]);
    shc.paper = vec![(5.0, 67.5), (20.0, 76.0)];
    let ukc = curve("UKC", &[(1.0, 61.0), (5.0, 74.0), (10.0, 80.0), (20.0, 84.0)]);
    checked(&chart(vec![shc, ukc]).svg(), |document| {
        let texts = texts(document);
        for wanted in [
            "Title", "Subtitle", "Queries", "All, %", "1", "5", "10", "20", "60", "80", "SHC", "UKC", "paper",
        ] {
            assert!(texts.iter().any(|text| text == wanted), "{wanted} in {texts:?}");
        }
        assert_eq!(
            count(document, |node| node.attribute("fill-opacity") == Some("0.16")),
            2,
            "bands"
        );
        let titled = |part: &str| {
            count(document, |node| {
                node.tag_name().name() == "title" && node.text().is_some_and(|text| text.contains(part))
            })
        };
        assert_eq!((titled("±"), titled("paper")), (8, 2));
        assert_eq!(titled("SHC: 58.9 ± 0.5 at 1"), 1);
    });
}

#[test]
fn names_stand_beside_their_lines_until_they_would_collide() {
    let legend_lines = |curves: Vec<Curve>| {
        checked(&chart(curves).svg(), |document| {
            count(document, |node| {
                node.tag_name().name() == "line" && node.attribute("stroke-width") == Some("2.4")
            })
        })
    };
    // One line is the key of the intervals.
    let apart = vec![
        curve("a", &[(1.0, 10.0), (2.0, 20.0)]),
        curve("b", &[(1.0, 60.0), (2.0, 70.0)]),
    ];
    assert_eq!(legend_lines(apart), 1);
    let ends = |count: usize| {
        (0..count)
            .map(|i| curve("c", &[(1.0, 5.0 * i as f64), (2.0, 50.0)]))
            .collect()
    };
    assert_eq!(legend_lines(ends(2)), 1);
    assert_eq!(legend_lines(ends(9)), 1 + 9);
    let early = vec![
        curve("a", &[(1.0, 10.0), (3.0, 20.0)]),
        curve("b", &[(1.0, 60.0), (2.0, 70.0)]),
    ];
    assert_eq!(legend_lines(early), 1 + 2);
}

#[test]
fn many_places_get_round_ticks_and_labels_keep_apart() {
    let many: Vec<(f64, f64)> = (0..60).map(|i| (f64::from(i) + 0.37, 50.0)).collect();
    checked(&chart(vec![curve("a", &many)]).svg(), |document| {
        let texts = texts(document);
        for tick in ["0", "10", "50", "60"] {
            assert!(texts.iter().any(|text| text == tick), "{tick} in {texts:?}");
        }
        assert!(!texts.iter().any(|text| text.contains(".37")), "{texts:?}");
    });
    let doubling: Vec<(f64, f64)> = (0..12).map(|i| (f64::from(1 << i), 50.0 + f64::from(i))).collect();
    checked(&chart(vec![curve("a", &doubling)]).svg(), |document| {
        let texts = texts(document);
        assert!(texts.iter().any(|text| text == "2048") && texts.iter().any(|text| text == "1024"));
        assert!(!texts.iter().any(|text| text == "8"), "{texts:?}");
    });
}

#[test]
fn charts_of_little_or_broken_data() {
    let (nan, huge) = (f64::NAN, f64::MAX);
    let broken = vec![
        vec![],
        vec![curve("nothing", &[])],
        vec![curve("one", &[(3.0, 50.0)])],
        vec![curve("flat", &[(1.0, 50.0), (2.0, 50.0)])],
        vec![curve("same place", &[(1.0, 40.0), (1.0, 50.0)])],
        vec![curve(
            "nan",
            &[(nan, 1.0), (1.0, nan), (f64::INFINITY, 1.0), (1.0, f64::NEG_INFINITY)],
        )],
        vec![curve("huge", &[(huge, 1.0), (1.0, -huge), (2.0, 5.0)])],
        vec![curve("tiny", &[(0.0, 1e-300), (1e-300, 0.0)])],
        vec![Curve {
            name: "paper only".into(),
            points: vec![],
            paper: vec![(1.0, 2.0), (nan, 3.0), (2.0, nan)],
            at: None,
        }],
        vec![Curve {
            name: "a place only".into(),
            at: Some((1.0, 2.0)),
            ..Curve::default()
        }],
        vec![Curve {
            name: "no place".into(),
            at: Some((nan, 1.0)),
            ..Curve::default()
        }],
        vec![Curve {
            name: "bad halves".into(),
            points: [nan, -1.0, f64::INFINITY, 0.0]
                .map(|half| CurvePoint {
                    x: half,
                    mean: 5.0,
                    half,
                })
                .to_vec(),
            ..Curve::default()
        }],
        (0..70)
            .map(|i| curve(&format!("line {i}"), &[(1.0, f64::from(i)), (2.0, f64::from(i))]))
            .collect(),
    ];
    for curves in broken {
        let drawn = |curve: &Curve| {
            let finite = |x: f64, y: f64| x.is_finite() && y.is_finite();
            let points = curve.points.iter().any(|p| finite(p.x, p.mean));
            points || !curve.paper.is_empty() || curve.at.is_some_and(|(x, y)| finite(x, y))
        };
        let empty = !curves.iter().any(drawn);
        checked(&chart(curves).svg(), |document| {
            assert_eq!(texts(document).iter().any(|text| text == "no data"), empty);
        });
    }
}

#[test]
fn a_line_with_one_place_has_one_mark() {
    let points = (0..40).map(|at| CurvePoint {
        x: 2.5 * f64::from(at),
        mean: 100.0 - 2.5 * f64::from(at),
        half: 0.0,
    });
    let on_it = Curve {
        name: "on the line".into(),
        points: points.collect(),
        at: Some((60.0, 40.0)),
        ..Curve::default()
    };
    let beside = Curve {
        name: "beside".into(),
        points: vec![],
        at: Some((50.0, 30.0)),
        ..Curve::default()
    };
    checked(&chart(vec![on_it, beside]).svg(), |document| {
        let titles: Vec<&str> = document
            .descendants()
            .filter(|node| {
                node.has_tag_name("title") && node.parent().is_some_and(|parent| parent.has_tag_name("path"))
            })
            .filter_map(|node| node.text())
            .collect();
        assert_eq!(titles.len(), 2, "{titles:?}");
        for expected in ["on the line: 40 at 60", "beside: 30 at 50"] {
            assert!(titles.contains(&expected), "{titles:?}");
        }
        // Shares end at 0 and 100.
        let texts = texts(document);
        assert!(texts.iter().any(|text| text == "100") && !texts.iter().any(|text| text == "120"));
    });
}

#[test]
fn hostile_names_stay_text() {
    let names = hostile();
    for name in &names {
        let chart = CurveChart {
            title: name.clone(),
            subtitle: name.clone(),
            x: name.clone(),
            y: name.clone(),
            curves: vec![curve(name, &[(1.0, 2.0), (2.0, 3.0)]); 3],
            ..CurveChart::default()
        };
        let map = MapGrid {
            title: name.clone(),
            subtitle: name.clone(),
            columns: vec![name.clone(); 2],
            truth: true,
            rows: vec![MapRow {
                name: name.clone(),
                points: vec![[0.0, 0.0], [1.0, 1.0]],
                known: 1,
                panels: vec![
                    MapPanel {
                        categories: vec![Category::Known(0); 2],
                        caption: name.clone()
                    };
                    2
                ],
            }],
        };
        for svg in [chart.svg(), map.svg()] {
            checked(&svg, |document| {
                let tags: BTreeSet<&str> = document.descendants().map(|node| node.tag_name().name()).collect();
                assert!(!tags.contains("script"));
                assert_eq!(count(document, |node| node.is_comment()), 0);
            });
        }
    }
    let size = names.len();
    let matrix = Confusion {
        title: "A matrix of hostile names".into(),
        subtitle: String::new(),
        rows: names.clone(),
        columns: names.clone(),
        counts: (0..size)
            .map(|row| (0..size).map(|column| u64::from(row == column)).collect())
            .collect(),
        known_rows: 3,
        known_columns: 3,
    };
    checked(&matrix.svg(), |document| {
        let texts = texts(document);
        for kept in [
            "<script>alert(\"1\")</script>",
            "a & b &amp; ]]> c",
            "line break   tab",
            "שלום עולם",
            "turned",
        ] {
            assert_eq!(
                texts.iter().filter(|text| *text == kept).count(),
                2,
                "{kept} in {texts:?}"
            );
        }
        assert!(texts.iter().any(|text| text.starts_with("nul \u{fffd} bell \u{fffd}")));
        assert!(texts.iter().any(|text| text.ends_with('…')));
    });
}

fn episode(points: usize) -> MapRow {
    let points: Vec<[f32; 2]> = (0..points).map(|i| [i as f32, (i * i % 7) as f32]).collect();
    let categories = |shift: usize| {
        let later = (2..points.len()).map(|i| match (i + shift) % 4 {
            group @ 0..2 => Category::Novel(group),
            class => Category::Known(class - 2),
        });
        [Category::Known(0), Category::Known(1)]
            .into_iter()
            .chain(later)
            .take(points.len())
            .collect()
    };
    let panel = |shift| MapPanel {
        categories: categories(shift),
        caption: format!("shift {shift}"),
    };
    MapRow {
        name: "Episode".into(),
        panels: vec![panel(0), panel(1)],
        points,
        known: 2,
    }
}

fn grid(rows: Vec<MapRow>) -> MapGrid {
    MapGrid {
        title: "Maps".into(),
        subtitle: String::new(),
        columns: vec!["Truth".into(), "SHC".into()],
        truth: true,
        rows,
    }
}

/// The colours of a panel's groups of marks, and how many marks they have: those as in the truth, those elsewhere together
/// with the prototypes.
fn marks(document: &Document<'_>) -> Vec<(String, bool, usize)> {
    let groups = document.descendants().filter(|node| node.tag_name().name() == "g");
    groups
        .filter_map(|group| {
            let marks = group.children().filter(|node| node.tag_name().name() == "path").count();
            Some((
                group.attribute("fill")?.to_owned(),
                group.attribute("stroke") != Some("#ffffff"),
                marks,
            ))
        })
        .collect()
}

#[test]
fn a_map_draws_every_point_in_the_colour_of_its_category() {
    let count = |marks: &[(String, bool, usize)], dark: bool| -> usize {
        marks.iter().filter(|mark| mark.1 == dark).map(|mark| mark.2).sum()
    };
    checked(&grid(vec![episode(22)]).svg(), |document| {
        let found = marks(document);
        // Twenty queries as in the truth and two prototypes; then all queries elsewhere, and the prototypes again.
        assert_eq!((count(&found, false), count(&found, true)), (20, 2 + 20 + 2));
        let colours: BTreeSet<&String> = found.iter().map(|mark| &mark.0).collect();
        assert_eq!(colours.len(), 4, "two known classes and two groups: {colours:?}");
        let texts = texts(document);
        for wanted in ["Truth", "SHC", "Episode", "shift 1", "prototype of a known class"] {
            assert!(texts.iter().any(|text| text == wanted), "{wanted} in {texts:?}");
        }
    });
    let mut plain = grid(vec![episode(22)]);
    plain.truth = false;
    checked(&plain.svg(), |document| {
        let found = marks(document);
        assert_eq!((count(&found, false), count(&found, true)), (40, 4));
    });
}

#[test]
fn maps_of_little_or_broken_data() {
    let mut broken = episode(9);
    broken.points[3] = [f32::NAN, 0.0];
    broken.points[4] = [0.0, f32::INFINITY];
    broken.panels[1].categories.truncate(5);
    checked(&grid(vec![broken]).svg(), |document| {
        let found: usize = marks(document).iter().map(|mark| mark.2).sum();
        assert_eq!(found, 2 * 7);
        assert!(
            marks(document).iter().any(|mark| mark.0 == "#b3bac2"),
            "points without a category are grey"
        );
    });
    let mut far = episode(3);
    far.points = vec![[f32::MAX, f32::MIN], [f32::MIN, f32::MAX], [0.0, 1.0]];
    let same = MapRow {
        points: vec![[2.0, 2.0]; 6],
        ..episode(6)
    };
    let nothing = MapRow::default();
    let all_new = MapRow {
        known: 100,
        ..episode(4)
    };
    for rows in [
        vec![],
        vec![nothing],
        vec![episode(1)],
        vec![same],
        vec![far],
        vec![all_new, episode(2)],
    ] {
        checked(&grid(rows).svg(), |_| ());
    }
    let many = MapRow {
        points: (0..60).map(|i| [i as f32, 0.0]).collect(),
        panels: vec![MapPanel {
            categories: (0..60).map(Category::Novel).collect(),
            caption: String::new(),
        }],
        ..MapRow::default()
    };
    checked(&grid(vec![many]).svg(), |document| {
        let colours: BTreeSet<String> = marks(document).into_iter().map(|mark| mark.0).collect();
        assert_eq!(colours.len(), 60, "sixty groups have sixty colours");
    });
}

fn confusion(rows: usize, columns: usize) -> Confusion {
    Confusion {
        title: "Matrix".into(),
        subtitle: "of an episode".into(),
        rows: (0..rows).map(|row| format!("class {row}")).collect(),
        columns: (0..columns).map(|column| format!("found {column}")).collect(),
        counts: (0..rows)
            .map(|row| {
                (0..columns)
                    .map(|column| if row == column { 12 } else { u64::from(column == 0) * 3 })
                    .collect()
            })
            .collect(),
        known_rows: rows / 2,
        known_columns: rows / 2,
    }
}

#[test]
fn a_confusion_matrix_shades_shares_and_prints_counts_where_there_is_room() {
    let cells = |document: &Document<'_>| {
        count(document, |node| {
            node.tag_name().name() == "rect" && node.first_element_child().is_some()
        })
    };
    checked(&confusion(10, 14).svg(), |document| {
        let texts = texts(document);
        assert_eq!(cells(document), 10 + 9);
        assert_eq!(
            texts.iter().filter(|text| *text == "12").count(),
            10 + 1,
            "the counts, and the sum of the first row"
        );
        assert_eq!(
            texts.iter().filter(|text| *text == "15").count(),
            9,
            "the sums of the others"
        );
        for wanted in ["class 9", "found 13", "known", "new", "share of the row"] {
            assert!(texts.iter().any(|text| text == wanted), "{wanted}");
        }
        let title = "class 4 → found 4: 12 of 15";
        assert_eq!(
            count(document, |node| node.tag_name().name() == "title"
                && node.text() == Some(title)),
            1
        );
        let fill = |part: &str| {
            let cell = document
                .descendants()
                .find(|node| node.text() == Some(part))
                .and_then(|node| node.parent());
            cell.and_then(|cell| cell.attribute("fill")).map(str::to_owned)
        };
        // Twelve of twelve and twelve of fifteen are different shares.
        assert_ne!(fill("class 0 → found 0: 12 of 12"), fill(title));
        assert_eq!(fill("class 5 → found 5: 12 of 15"), fill(title));
    });
    checked(&confusion(50, 60).svg(), |document| {
        assert_eq!(cells(document), 50 + 49);
        assert!(!texts(document).iter().any(|text| text == "12"));
        assert!(texts(document).iter().any(|text| text == "class 49"));
    });
}

#[test]
fn confusion_matrices_of_little_or_odd_data() {
    for (rows, columns) in [(0, 0), (0, 3), (3, 0), (1, 1), (2, 300), (300, 2)] {
        checked(&confusion(rows, columns).svg(), |document| {
            assert_eq!(
                texts(document).iter().any(|text| text == "no data"),
                rows == 0 || columns == 0
            );
        });
    }
    let mut odd = confusion(3, 3);
    odd.counts = vec![vec![u64::MAX, u64::MAX], vec![], vec![0, 0, 0, 1], vec![5]];
    (odd.known_rows, odd.known_columns) = (99, 0);
    checked(&odd.svg(), |document| {
        assert_eq!(texts(document).iter().filter(|text| *text == "new").count(), 1)
    });
}

#[test]
fn a_figure_is_the_same_every_time() {
    assert_eq!(confusion(12, 15).svg(), confusion(12, 15).svg());
    assert_eq!(grid(vec![episode(30)]).svg(), grid(vec![episode(30)]).svg());
}

#[test]
fn named_places_have_their_names_and_lines_go_on_where_they_should() {
    let mut two = chart(vec![curve("SHC", &[(0.0, 20.0), (1.0, 30.0), (2.0, 400.0)])]);
    two.stops = [("20", true), ("60", true), ("6–200", false)]
        .map(|(name, joined)| AxisStop {
            name: name.into(),
            joined,
        })
        .to_vec();
    two.logarithmic = true;
    checked(&two.svg(), |document| {
        let texts = texts(document);
        for wanted in ["20", "60", "6–200", "50", "100", "500"] {
            assert!(texts.iter().any(|text| text == wanted), "{wanted}: {texts:?}");
        }
        // The line has one piece with two points; the third stands alone.
        let lines = count(document, |node| node.attribute("fill") == Some("none"));
        assert_eq!(lines, 1);
    });
    // A logarithm has no room for nothing.
    let mut nothing = two.clone();
    nothing.curves = vec![curve("SHC", &[(0.0, 0.0), (1.0, -3.0)])];
    checked(&nothing.svg(), |document| {
        assert!(texts(document).iter().any(|text| text == "no data"));
    });
}

#[test]
fn charts_below_each_other_are_one_drawing() {
    let one = chart(vec![curve("SHC", &[(1.0, 58.9), (5.0, 69.0)])]);
    let mut other = one.clone();
    other.title = String::new();
    other.y = "Categories".into();
    let height = |svg: &str| -> f64 {
        let document = Document::parse(svg).unwrap();
        document.root_element().attribute("height").unwrap().parse().unwrap()
    };
    let stacked = CurveChart::stacked(&[one.clone(), other]);
    checked(&stacked, |document| {
        let texts = texts(document);
        assert!(texts.iter().any(|text| text == "All, %") && texts.iter().any(|text| text == "Categories"));
        assert_eq!(texts.iter().filter(|text| *text == "Title").count(), 1);
    });
    assert!(height(&stacked) > 1.7 * height(&one.svg()));
    assert_eq!(CurveChart::stacked(std::slice::from_ref(&one)), one.svg());
}
