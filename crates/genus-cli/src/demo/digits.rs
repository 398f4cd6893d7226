//! `genus demo digits`: handwritten digits sorted before one's eyes.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use genus::text::thousands;
use genus::{Counts, Folder, Purpose, REPORT_FILE, ReportSource};
use genus_core::{Kind, Taxonomy};
use genus_lab::{DigitsTask, ScoredMethod};
use genus_report::{Pictures, Provenance, Report, Slot};
use genus_vision::Rgb;

use super::{HEADING, METHODS, SHOWN, list, row};
use crate::failure::Failure;
use crate::say::print;
use crate::summary::kind_style;

/// Pictures in a row: eight columns each and a space between, within 80 columns.
const PICTURES: usize = 8;
/// New groups that are drawn before the rest is summed up.
const GROUPS: usize = 6;

pub(crate) fn run(out: Option<&Path>, seed: u64) -> Result<(), Failure> {
    // A wrong path costs no time.
    let folder = match out {
        Some(out) => Some(Folder::create(out, Purpose::Results)?),
        None => None,
    };
    let demo = DigitsTask::new(seed)?;
    let bold = Style::new().bold();
    let dim = Style::new().dimmed();
    let known: Vec<String> = demo.known().iter().map(|digit| digit.to_string()).collect();
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{bold}{} handwritten digits.{bold:#} {} are known from five examples each; the other five were never labelled,\n\
         and nobody said how many there are.\n",
        thousands(demo.task().queries() as u64),
        list(&known)
    );
    let mut results = Vec::new();
    let _ = writeln!(text, "{dim}{HEADING}    time{dim:#}");
    for method in METHODS {
        let start = Instant::now();
        let result = demo.run(method, seed)?;
        let time = start.elapsed();
        let row = row(
            result.method,
            &result.accuracy,
            result.discovery.known() + result.discovery.novel(),
            10,
        );
        let _ = writeln!(text, "{row} {:5.0} ms", 1e3 * time.as_secs_f64());
        results.push((result, time));
    }
    text.push_str("Accuracy in %: of all digits, of the known ones (Old), of those never labelled (New).\n\n");
    if let Some((shown, time)) = results.iter().find(|(result, _)| result.method == SHOWN) {
        draw(&mut text, &demo, shown);
        if let Some(folder) = folder {
            genus::begin_page(&page(&demo, shown, *time, seed)?, folder.path())?.commit()?;
            let _ = writeln!(
                text,
                "Open {bold}{}{bold:#} in a browser.\n",
                folder.path().join(REPORT_FILE).display()
            );
            folder.keep();
        }
    }
    let _ = writeln!(
        text,
        "{dim}Digits: E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository,\n\
         doi 10.24432/C50P49, CC BY 4.0.{dim:#}\n\n\
         Now your own:  {bold}genus discover --support labelled.csv --query pile.csv{bold:#}"
    );
    print(&text)
}

/// What was found as a page to look at.
fn page(demo: &DigitsTask, result: &ScoredMethod, time: Duration, seed: u64) -> Result<Report, Failure> {
    let taxonomy = demo.taxonomy(result);
    let queries = demo.task().queries();
    let assignments = taxonomy.assignments_of(&result.discovery);
    let ids: Vec<String> = (0..queries).map(|query| format!("digit {}", query + 1)).collect();
    let truths: Vec<Option<String>> = (0..queries).map(|query| Some(demo.truth(query).to_string())).collect();
    let labels = demo.task().support_labels();
    let examples: Vec<String> = (1..=labels.len()).map(|number| format!("example {number}")).collect();
    let mut counts = Counts::new(&taxonomy);
    counts.add(&assignments);
    let mut report = genus::describe(&ReportSource {
        task: demo.task(),
        taxonomy: &taxonomy,
        counts: &counts,
        stop: result.discovery.stop(),
        assignments: &assignments,
        scenes: result.discovery.scenes(),
        ids: &ids,
        examples: &examples,
        truths: Some(&truths),
        seed,
    });
    report.title = "handwritten digits".into();
    report.things = ["digit", "digits"].map(str::to_owned);
    report.made = Provenance {
        method: SHOWN.to_owned(),
        how: genus::how(&SHOWN.parse()?, None, result.discovery.stop()),
        encoder: Some("none: the pixels less their mean".into()),
        seed,
        seconds: time.as_secs_f64(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let of_examples: Vec<&[f32]> = labels
        .iter()
        .enumerate()
        .filter_map(|(at, &class)| {
            let before = labels[..at].iter().filter(|&&label| label == class).count();
            demo.examples(class).nth(before)
        })
        .collect();
    Pictures::choose(&report).fill(&mut report, |_, slots| {
        let picture = |slot: &Slot| {
            let pixels = match *slot {
                Slot::Example(at) => of_examples[at],
                Slot::Item(query) => demo.picture(query),
            };
            // Ink on paper: values go from 0 to 16.
            let grey = |&value: &f32| [255 - (value * 15.9) as u8; 3];
            Rgb::new(8, 8, pixels.iter().flat_map(grey).collect())?.thumbnail(8)
        };
        Ok::<_, Failure>(slots.iter().map(picture).collect())
    })?;
    Ok(report)
}

/// Every category with some of its digits, from the most typical to the most doubtful.
fn draw(text: &mut String, demo: &DigitsTask, result: &ScoredMethod) {
    let bold = Style::new().bold();
    let red = Style::new().fg_color(Some(AnsiColor::Red.into()));
    let taxonomy = demo.taxonomy(result);
    let members = members(result, &taxonomy);
    let _ = writeln!(
        text,
        "{bold}What {SHOWN} found{bold:#}, from typical to doubtful ({red}red{red:#}: not the digit that most of the group are)\n"
    );
    let mut groups = 0;
    for (entry, members) in taxonomy.entries().iter().zip(&members) {
        let style = kind_style(entry.kind);
        let usual = match entry.kind {
            Kind::Known => entry.name.parse().ok(),
            Kind::Novel => most_common(members.iter().map(|&query| demo.truth(query))),
        };
        let right = members
            .iter()
            .filter(|&&query| Some(demo.truth(query)) == usual)
            .count();
        let share = 100.0 * right as f64 / members.len().max(1) as f64;
        let title = match (entry.kind, usual) {
            (Kind::Novel, Some(digit)) => format!("{}, mostly {digit}", entry.name),
            _ => format!("known {}", entry.name),
        };
        if entry.kind == Kind::Novel {
            groups += 1;
        }
        if groups > GROUPS {
            continue;
        }
        let _ = writeln!(
            text,
            "{style}{bold}{title}{bold:#}{style:#}: {} items, {share:.0} % alike",
            thousands(entry.items),
        );
        let last = members.len().saturating_sub(1);
        let count = PICTURES.min(members.len());
        let spread: Vec<usize> = (0..count)
            .map(|at| members[last * at / count.saturating_sub(1).max(1)])
            .collect();
        for line in 0..4 {
            for &query in &spread {
                let style = if Some(demo.truth(query)) == usual { style } else { red };
                let _ = write!(text, "  {style}{}{style:#}", picture_line(demo.picture(query), line));
            }
            text.push('\n');
        }
        text.push('\n');
    }
    if groups > GROUPS {
        let _ = writeln!(text, "… and {} smaller new groups.\n", groups - GROUPS);
    }
}

/// The queries of every category, the most similar to its centre first.
fn members(result: &ScoredMethod, taxonomy: &Taxonomy) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); taxonomy.entries().len()];
    for (query, &category) in result.discovery.categories().iter().enumerate() {
        members[taxonomy.index_of(category)].push(query);
    }
    let scores = result.discovery.scores();
    for queries in &mut members {
        queries.sort_by(|&a, &b| scores[b].similarity.total_cmp(&scores[a].similarity));
    }
    members
}

fn most_common(digits: impl Iterator<Item = u8>) -> Option<u8> {
    let mut counts = [0usize; 10];
    digits.for_each(|digit| counts[usize::from(digit) % 10] += 1);
    (0..10u8).max_by_key(|&digit| (counts[usize::from(digit)], std::cmp::Reverse(digit)))
}

/// Two rows of pixels in one line of text.
fn picture_line(pixels: &[f32], line: usize) -> String {
    let ink = |row: usize, column: usize| pixels.get(row * 8 + column).is_some_and(|&value| value >= 7.0);
    (0..8)
        .map(|column| match (ink(2 * line, column), ink(2 * line + 1, column)) {
            (true, true) => '█',
            (true, false) => '▀',
            (false, true) => '▄',
            (false, false) => ' ',
        })
        .collect()
}
