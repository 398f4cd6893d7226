//! What was found, in a few lines for a person.

use std::fmt::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use genus::Counts;
use genus::text::{plural, thousands};
use genus_core::{Kind, Taxonomy};
use genus_report::Truth;

/// Categories listed before the rest is summed up.
const LISTED: usize = 24;
const BAR: usize = 24;

/// A number of bytes in the unit that suits it.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{count} B"),
        _ => format!("{value:.1} {}", units[unit]),
    }
}

/// How many items are surely in known classes and in new groups and how many are unsure, which together are all of them; and
/// the categories with their sizes, known classes in order, new groups from large to small.
pub(crate) fn text(taxonomy: &Taxonomy, counts: &Counts, how: &str, time: Duration) -> String {
    let entries = taxonomy.entries();
    let of = |kind: Kind| (0..entries.len()).filter(move |&at| entries[at].kind == kind);
    let sure = |kind: Kind| of(kind).map(|at| counts.items[at] - counts.unsure[at]).sum::<u64>();
    let total: u64 = counts.items.iter().sum();
    let unsure: u64 = counts.unsure.iter().sum();
    let largest = counts.items.iter().copied().max().unwrap_or(0).max(1);
    let listed = entries.len().min(LISTED);
    let name_width = entries[..listed]
        .iter()
        .map(|entry| entry.name.chars().count())
        .max()
        .unwrap_or(0)
        .min(40);
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{bold}{} {}{}: {}{} in {} new {}{}{bold:#} {dim}({how}, {:.1} s){dim:#}",
        thousands(total),
        plural(total, "item", "items"),
        counts.scenes.map_or(String::new(), |count| {
            let count = count as u64;
            format!(", {} {}", thousands(count), plural(count, "scene", "scenes"))
        }),
        match of(Kind::Known).count() as u64 {
            0 => String::new(),
            count => format!(
                "{} in {count} known {}, ",
                thousands(sure(Kind::Known)),
                plural(count, "class", "classes")
            ),
        },
        thousands(sure(Kind::Novel)),
        of(Kind::Novel).count(),
        plural(of(Kind::Novel).count() as u64, "group", "groups"),
        match counts.judged {
            true => format!(", {} unsure", thousands(unsure)),
            false => String::new(),
        },
        time.as_secs_f64(),
    );
    for (at, entry) in entries[..listed].iter().enumerate() {
        let colour = kind_style(entry.kind);
        let length = (counts.items[at] as usize * BAR).div_ceil(largest as usize);
        let _ = write!(
            text,
            "  {colour}{:<5}{colour:#} {:<name_width$} {:>9} {colour}{}{colour:#}",
            entry.kind,
            clipped(&entry.name, name_width),
            thousands(counts.items[at]),
            "█".repeat(length),
        );
        let _ = match counts.unsure[at] {
            0 => writeln!(text),
            count => writeln!(text, " {dim}{} unsure{dim:#}", thousands(count)),
        };
    }
    if listed < entries.len() {
        let items: u64 = counts.items[listed..].iter().sum();
        let _ = writeln!(
            text,
            "  … and {} more with {} {}",
            entries.len() - listed,
            thousands(items),
            plural(items, "item", "items")
        );
    }
    text
}

/// How right a result is, in a line.
pub(crate) fn truth(truth: &Truth) -> String {
    let accuracy = truth.accuracy();
    let percent = |share: f64| match share.is_nan() {
        true => "–".to_owned(),
        false => format!("{:.1} %", 100.0 * share),
    };
    format!(
        "By the truth about {} {}: {} right, {} of known classes, {} of new ones",
        thousands(truth.judged() as u64),
        plural(truth.judged() as u64, "item", "items"),
        percent(accuracy.all),
        percent(accuracy.old),
        percent(accuracy.new)
    )
}

/// The colour of known and new things everywhere.
pub(crate) fn kind_style(kind: Kind) -> Style {
    let colour = match kind {
        Kind::Known => AnsiColor::Green,
        Kind::Novel => AnsiColor::Yellow,
    };
    Style::new().fg_color(Some(colour.into()))
}

/// A name that fits its column and cannot move the cursor: control characters are shown, not sent.
fn clipped(name: &str, width: usize) -> String {
    let clean = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut text: String = clean.clone().take(width).collect();
    if clean.count() > width && width > 0 {
        text.pop();
        text.push('…');
    }
    text
}
