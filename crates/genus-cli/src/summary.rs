//! What was found, in a few lines for a person.

use std::fmt::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use genus_core::{Kind, TaxonomyEntry};

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

/// The categories with their sizes: known classes in order, new groups from large to small; and how many items are unsure,
/// where that is known.
pub(crate) fn text(entries: &[TaxonomyEntry], unsure: Option<u64>, how: &str, time: Duration) -> String {
    let of = |kind: Kind| entries.iter().filter(move |entry| entry.kind == kind);
    let items = |kind: Kind| of(kind).map(|entry| entry.items).sum::<u64>();
    let total = items(Kind::Known) + items(Kind::New);
    let largest = entries.iter().map(|entry| entry.items).max().unwrap_or(0).max(1);
    let shown = entries.iter().take(LISTED);
    let name_width = shown
        .clone()
        .map(|entry| entry.name.chars().count())
        .max()
        .unwrap_or(0)
        .min(40);
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{bold}{} {}: {} in {} known {}, {} in {} new {}{}{bold:#} {dim}({how}, {:.1} s){dim:#}",
        thousands(total),
        plural(total, "item", "items"),
        thousands(items(Kind::Known)),
        of(Kind::Known).count(),
        plural(of(Kind::Known).count() as u64, "class", "classes"),
        thousands(items(Kind::New)),
        of(Kind::New).count(),
        plural(of(Kind::New).count() as u64, "group", "groups"),
        unsure.map_or(String::new(), |count| format!(", {} unsure", thousands(count))),
        time.as_secs_f64(),
    );
    for entry in shown {
        let colour = kind_style(entry.kind);
        let length = (entry.items as usize * BAR).div_ceil(largest as usize);
        let _ = writeln!(
            text,
            "  {colour}{:<5}{colour:#} {:<name_width$} {:>9} {colour}{}{colour:#}",
            entry.kind,
            clipped(&entry.name, name_width),
            thousands(entry.items),
            "█".repeat(length),
        );
    }
    if let Some(rest) = entries.get(LISTED..).filter(|rest| !rest.is_empty()) {
        let items: u64 = rest.iter().map(|entry| entry.items).sum();
        let _ = writeln!(text, "  … and {} more with {} items", rest.len(), thousands(items));
    }
    text
}

/// The colour of known and new things everywhere.
pub(crate) fn kind_style(kind: Kind) -> Style {
    let colour = match kind {
        Kind::Known => AnsiColor::Green,
        Kind::New => AnsiColor::Yellow,
    };
    Style::new().fg_color(Some(colour.into()))
}

/// The word for one thing or for several.
pub(crate) fn plural<'a>(count: u64, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
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

/// A number with its thousands set apart.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
