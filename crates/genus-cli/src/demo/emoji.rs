//! `genus demo`: emoji sorted before one's eyes, from picture files to groups.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anstyle::Style;
use genus::text::plural;
use genus::{CacheChoice, Destination, DiscoverOptions, Error, ImageOptions, Inputs, Outcome, OutputOptions, Page};
use genus_core::Kind;
use genus_core::metrics::{Convention, Evaluation, accuracy};
use genus_data::Emoji;
use genus_files::ScratchFolder;
use genus_lab::{EmojiPile, ScoredMethod};

use super::{HEADING, METHODS, SHOWN, list, row};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::say::{Terminal, print};
use crate::summary::kind_style;

/// Emoji of a category that are shown.
const SHOWN_OF_EACH: usize = 24;

pub(crate) fn run(out: Option<&Path>, seed: u64, terminal: Terminal) -> Result<(), Failure> {
    let demo = EmojiPile::new(seed);
    let scratch = |source| Error::Scratch {
        folder: std::env::temp_dir(),
        source,
    };
    let folder = ScratchFolder::new().map_err(scratch)?;
    let folders = demo.write(folder.path()).map_err(scratch)?;
    let progress = Bar::new(terminal);
    let inputs = Inputs::new(&folders.labelled, &folders.pile);
    let options = DiscoverOptions {
        seed,
        images: ImageOptions {
            // It is to show what embedding takes, and to leave nothing behind.
            cache: CacheChoice::Nowhere,
            ..ImageOptions::default()
        },
        ..DiscoverOptions::default()
    };
    let page = Page::new(&inputs, &options.tables, folders.truth.to_str(), None)?;
    let outcome = genus::discover(inputs, &options, &progress)?;
    let saved = match out {
        Some(out) => {
            let to = Destination::Folder(out.to_owned());
            Some(outcome.write(to, OutputOptions::default(), Some(&page), &progress)?)
        }
        None => None,
    };
    drop(progress);

    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{bold}{} emoji.{bold:#} {} are known from five pictures each; the other {} kinds were never labelled,\n\
         and nobody said how many there are.\n",
        demo.pile.len(),
        list(demo.known()),
        demo.kinds.len() - demo.known().len(),
    );
    table(&mut text, &demo, &outcome, seed)?;
    draw(&mut text, &demo, &outcome);
    if let Some(page) = saved.and_then(|saved| saved.report) {
        let _ = writeln!(text, "Open {bold}{}{bold:#} in a browser.\n", page.display());
    }
    let _ = writeln!(
        text,
        "{dim}Pictures: Noto Emoji, Google, Apache-2.0. Encoder: EfficientNet-Lite2, Google, Apache-2.0.{dim:#}\n\n\
         Now your own:  {bold}genus discover --support labelled/ --query photos/ --out result{bold:#}"
    );
    print(&text)
}

/// How every method does on the features of the pictures.
fn table(text: &mut String, demo: &EmojiPile, outcome: &Outcome, seed: u64) -> Result<(), Failure> {
    let dim = Style::new().dimmed();
    let task = &outcome.clustered.task;
    let truth: Vec<usize> = outcome.clustered.ids.iter().map(|id| demo.truth(id)).collect();
    let kinds = demo.kinds.len();
    let _ = writeln!(text, "{dim}{HEADING}{dim:#}");
    for method in METHODS {
        let row = if method == SHOWN {
            // What was found above, with all that the encoder brings.
            let clusters: Vec<usize> = outcome
                .clustered
                .assignments
                .iter()
                .map(|found| found.category)
                .collect();
            let judged = Evaluation {
                known: &(0..task.known()).collect::<Vec<_>>(),
                clusters: &clusters,
                truth: &truth,
            };
            let found = outcome.taxonomy.entries().len();
            row(method, &accuracy(&judged, Convention::Paper), found, kinds)
        } else {
            let ScoredMethod {
                discovery, accuracy, ..
            } = ScoredMethod::run(task, &truth, method, seed)?;
            row(method, &accuracy, discovery.known() + discovery.novel(), kinds)
        };
        let _ = writeln!(text, "{row}");
    }
    text.push_str("Accuracy in %: of all emoji, of the known kinds (Old), of those never labelled (New).\n\n");
    Ok(())
}

/// Every category with its emoji, the usual ones first.
fn draw(text: &mut String, demo: &EmojiPile, outcome: &Outcome) {
    let bold = Style::new().bold();
    let _ = writeln!(text, "{bold}What {SHOWN} found{bold:#}\n");
    let entries = outcome.taxonomy.entries();
    for (at, entry) in entries.iter().enumerate() {
        let assigned = outcome.clustered.ids.iter().zip(&outcome.clustered.assignments);
        let members: Vec<&Emoji> = assigned
            .filter(|(_, assignment)| assignment.category == at)
            .filter_map(|(id, _)| demo.pile.get(id))
            .collect();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        members
            .iter()
            .for_each(|emoji| *counts.entry(&emoji.kind).or_default() += 1);
        let usual = match entry.kind {
            Kind::Known => entry.name.as_str(),
            Kind::Novel => counts
                .iter()
                .max_by_key(|&(_, count)| count)
                .map_or("", |(kind, _)| kind),
        };
        let (same, other): (Vec<&Emoji>, Vec<&Emoji>) = members.iter().partition(|emoji| emoji.kind == usual);
        let style = kind_style(entry.kind);
        let title = match entry.kind {
            Kind::Known => format!("known {}", entry.name),
            Kind::Novel => format!("{}, mostly {usual}", entry.name),
        };
        let _ = writeln!(
            text,
            "{style}{bold}{title}{bold:#}{style:#}: {} {}, {:.0} % alike",
            members.len(),
            plural(members.len() as u64, "item", "items"),
            100.0 * same.len() as f64 / members.len().max(1) as f64,
        );
        for (label, emoji) in [("", same), ("but also ", other)] {
            if emoji.is_empty() {
                continue;
            }
            let more = emoji.len().saturating_sub(SHOWN_OF_EACH);
            let shown: Vec<&str> = emoji.iter().take(SHOWN_OF_EACH).map(|emoji| &*emoji.text).collect();
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let _ = writeln!(text, "    {label}{}{more}", shown.join(" "));
        }
        text.push('\n');
    }
}
