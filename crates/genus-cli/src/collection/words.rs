//! What there is to say about a collection, in lines for a person.

use std::fmt::Write;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use genus::text::{plural, thousands};
use genus_collection::{
    AddOutcome, Asked, CheckOutcome, CompactOutcome, Corrections, Entry, ExportOutcome, Fate, GroupInfo, ItemInfo,
    ItemState, Preview, Question, RefreshOutcome, SalvageOutcome, Status,
};

use crate::failure::printable;

/// Columns of the longest name that is shown whole.
const NAME: usize = 40;
const BAR: usize = 24;
/// Groups whose fate is told.
const FATES: usize = 24;

fn count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(number), plural(number, one, many))
}

/// A name on one line that cannot move the cursor.
fn name(text: &str) -> String {
    printable(text).replace('\n', "\u{fffd}")
}

fn clipped(text: &str) -> String {
    let text = name(text);
    match text.chars().count() > NAME {
        true => text.chars().take(NAME - 1).chain(['…']).collect(),
        false => text,
    }
}

fn colour(named: bool) -> Style {
    let colour = if named { AnsiColor::Green } else { AnsiColor::Yellow };
    Style::new().fg_color(Some(colour.into()))
}

pub(super) fn status(status: &Status) -> String {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{bold}{}: {}{bold:#}",
        name(&status.folder.display().to_string()),
        count(status.items, "item", "items")
    );
    let mut line = |number: u64, words: String| {
        let _ = writeln!(text, "  {:>9}  {words}", thousands(number));
    };
    line(
        status.in_named,
        format!("in {}", count(status.named_groups, "named group", "named groups")),
    );
    line(
        status.in_new,
        format!("in {}", count(status.new_groups, "new group", "new groups")),
    );
    line(status.waiting, "waiting".to_owned());
    line(status.noise, "noise".to_owned());
    line(status.confirmed, "confirmed by people".to_owned());
    if status.refresh_advised {
        text += "Many items are waiting: `genus refresh` sorts them\n";
    }
    let next = [("undo", &status.undo), ("redo", &status.redo)];
    for (word, what) in next {
        if let Some(what) = what {
            let _ = writeln!(text, "{dim}`genus {word}` would {word} the last {what}{dim:#}");
        }
    }
    text
}

pub(super) fn made(status: &Status, added: Option<&AddOutcome>) -> String {
    let mut text = format!("{} is a collection", name(&status.folder.display().to_string()));
    if let Some(added) = added {
        let _ = write!(
            text,
            " with {} of {}",
            count(added.new, "example", "examples"),
            count(status.named_groups, "class", "classes")
        );
    }
    text + "\nAdd items with `genus add`\n"
}

pub(super) fn added(added: &AddOutcome, folder: &Path) -> String {
    let mut text = count(added.new, "item is new", "items are new");
    if added.new > 0 {
        let _ = write!(text, ", {} in groups", thousands(added.joined));
    }
    if added.known > 0 {
        let were = plural(added.known, "was already there", "were already there");
        let _ = write!(text, "; {} {were}", thousands(added.known));
    }
    text.push('\n');
    if added.settled > 0 {
        let _ = writeln!(
            text,
            "{} found a group",
            count(added.settled, "item that had waited has", "items that had waited have")
        );
    }
    if !added.born.is_empty() {
        let _ = writeln!(text, "{}", count(added.born.len() as u64, "new group", "new groups"));
    }
    if added.waiting > 0 {
        let _ = writeln!(text, "{}", count(added.waiting, "item waits", "items wait"));
    }
    if added.refresh_advised {
        let _ = writeln!(
            text,
            "Many items are waiting: `genus refresh {}` sorts it",
            name(&folder.display().to_string())
        );
    }
    text
}

pub(super) fn groups(groups: &[GroupInfo], total: usize) -> String {
    let mut text = String::new();
    let width = groups
        .iter()
        .map(|group| clipped(&group.name).chars().count())
        .max()
        .unwrap_or(0);
    let largest = groups.iter().map(|group| group.items).max().unwrap_or(0).max(1);
    let dim = Style::new().dimmed();
    for group in groups {
        let colour = colour(group.named);
        let shown = clipped(&group.name);
        let gap = " ".repeat(width - shown.chars().count());
        let bar = "█".repeat((group.items as usize * BAR).div_ceil(largest as usize));
        let _ = write!(
            text,
            "{colour}{shown}{colour:#}{gap} {:>9} {colour}{bar}{colour:#}",
            thousands(group.items)
        );
        let mut notes = Vec::new();
        if group.confirmed > 0 {
            notes.push(format!("{} confirmed", thousands(group.confirmed)));
        }
        if group.guessed > 0 {
            notes.push(format!("{} waiting", thousands(group.guessed)));
        }
        if !group.merged.is_empty() {
            notes.push(format!("with {}", name(&group.merged.join(", "))));
        }
        if let Some(parent) = &group.parent_name {
            notes.push(format!("in {}", name(parent)));
        }
        if group.holds_groups {
            let below = groups.iter().filter(|other| other.parent == Some(group.id));
            let below: Vec<String> = below.map(|other| name(&other.name)).collect();
            notes.push(format!("over {}", below.join(", ")));
        }
        let _ = match notes.is_empty() {
            true => writeln!(text),
            false => writeln!(text, " {dim}{}{dim:#}", notes.join(", ")),
        };
    }
    if total > groups.len() {
        let _ = writeln!(text, "… and {} more", thousands((total - groups.len()) as u64));
    }
    if total == 0 {
        text += "There is no group yet\n";
    }
    text
}

pub(super) fn group(group: &GroupInfo) -> String {
    let bold = Style::new().bold();
    let mut text = format!(
        "{bold}{}{bold:#} (#{}): {}, {} confirmed",
        name(&group.name),
        group.id,
        count(group.items, "item", "items"),
        thousands(group.confirmed)
    );
    if group.guessed > 0 {
        let _ = write!(text, ", {} waiting", thousands(group.guessed));
    }
    if !group.merged.is_empty() {
        let _ = write!(text, ", with {}", name(&group.merged.join(", ")));
    }
    if let Some(parent) = &group.parent_name {
        let _ = write!(text, ", in {}", name(parent));
    }
    text.push('\n');
    text
}

pub(super) fn items(items: &[ItemInfo], total: u64) -> String {
    let dim = Style::new().dimmed();
    let mut text = String::new();
    for item in items {
        let probability = match &item.state {
            ItemState::In { confirmed: true, .. } => " confirmed".to_owned(),
            ItemState::In {
                probability: Some(probability),
                ..
            }
            | ItemState::Waiting {
                probability: Some(probability),
                ..
            } => format!(" {:.0} %", 100.0 * probability),
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "  {dim}#{:<6}{dim:#} {}  {dim}{}{probability}{dim:#}",
            item.id.to_string(),
            name(&item.name),
            name(&super::state(&item.state)),
        );
    }
    if total > items.len() as u64 {
        let _ = writeln!(text, "  … and {} more (-n)", thousands(total - items.len() as u64));
    }
    text
}

/// What an entry of the log did, in a line.
fn sentence(entry: &Entry) -> String {
    let said = &entry.said;
    let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
    let items = || count(entry.items, "item", "items");
    match entry.kind.as_str() {
        "add" | "label" => format!("{} {} from {}", entry.kind, items(), text("from")),
        "name" => format!("name group #{} \"{}\"", said["group"], text("name")),
        "merge" => {
            let groups = said["groups"].as_array().map_or(0, Vec::len) as u64;
            format!("merge {}", count(groups, "group", "groups"))
        }
        "move" => match (&said["to"], said["name"].as_str()) {
            (to, _) if to.is_i64() => format!("move {} to group #{to}", items()),
            (_, Some(name)) => format!("move {} to a new group \"{name}\"", items()),
            _ => format!("move {} to a new group", items()),
        },
        "confirm" if said["group"].is_i64() => format!("confirm group #{}, {}", said["group"], items()),
        "split" => format!("split group #{}, {} moved", said["group"], items()),
        "refresh" => format!(
            "refresh: {} sorted, {} in another place",
            thousands(said["sorted"].as_u64().unwrap_or(0)),
            thousands(said["moved"].as_u64().unwrap_or(0))
        ),
        "undo" | "redo" => format!(
            "{} {} ({})",
            entry.kind,
            entry.of.map_or(String::new(), |of| of.to_string()),
            text("what")
        ),
        "apply" => format!("apply {}: {}", text("from"), items()),
        kind => format!("{kind} {}", items()),
    }
}

/// When something was done, and what it was.
pub(super) fn happening(entry: &Entry) -> (String, String) {
    (date(entry.time), sentence(entry))
}

/// A question that was asked, and its answer.
pub(super) fn asked(asked: &Asked) -> genus_report::Asked {
    asked.in_words(date(asked.time))
}

pub(super) fn questions(questions: &[Question], folder: &Path) -> String {
    let dim = Style::new().dimmed();
    let mut text = String::new();
    let folder = name(&folder.display().to_string());
    for question in questions {
        let _ = match question {
            Question::Name { group, typical } => {
                let examples: Vec<String> = typical.iter().map(|item| name(&item.name)).collect();
                writeln!(
                    text,
                    "What is {}? {dim}{}, such as {}{dim:#}",
                    name(&group.name),
                    count(group.items, "item", "items"),
                    examples.join(", ")
                )
            }
            Question::Place { item } => writeln!(
                text,
                "Where does {} belong? {dim}#{}, {}{dim:#}",
                name(&item.name),
                item.id,
                name(&super::state(&item.state))
            ),
        };
    }
    match questions.is_empty() {
        true => "There is nothing to ask\n".to_owned(),
        false => {
            text + &format!(
                "{dim}Answer with `genus name {folder}`, `genus confirm {folder}` and `genus move {folder}`, then `genus refresh {folder}`{dim:#}\n"
            )
        }
    }
}

pub(super) fn done(entry: &Entry) -> String {
    format!("{}: {}\n", entry.no, name(&sentence(entry)))
}

pub(super) fn log(entries: &[Entry]) -> String {
    let dim = Style::new().dimmed();
    let mut text = String::new();
    for entry in entries {
        let _ = writeln!(
            text,
            "{:>5}  {dim}{}  {}{dim:#}  {}",
            entry.no.to_string(),
            date(entry.time),
            name(&entry.author),
            name(&sentence(entry))
        );
        if let Some(fates) = entry.said["groups"].as_array().filter(|_| entry.kind == "refresh") {
            for fate in fates.iter().take(FATES) {
                if let Ok(fate) = serde_json::from_value::<Fate>(fate.clone()) {
                    let _ = writeln!(text, "         {}", fate_line(&fate));
                }
            }
            if fates.len() > FATES {
                let _ = writeln!(text, "         … and {} more groups (--json)", fates.len() - FATES);
            }
        }
    }
    text
}

fn fate_line(fate: &Fate) -> String {
    match fate {
        Fate::Born { group, items } => format!("{} is new, {}", name(group), count(*items, "item", "items")),
        Fate::Ended {
            group,
            before,
            into: Some((into, items)),
        } => format!(
            "{} no longer exists: {} of its {} are in {}",
            name(group),
            thousands(*items),
            count(*before, "item", "items"),
            name(into)
        ),
        Fate::Ended { group, before, .. } => {
            format!(
                "{} no longer exists: its {} wait",
                name(group),
                count(*before, "item", "items")
            )
        }
        Fate::Changed { group, before, after } => format!(
            "{} had {} and has {}",
            name(group),
            count(*before, "item", "items"),
            thousands(*after)
        ),
    }
}

pub(super) fn refreshed(refreshed: &RefreshOutcome) -> String {
    let mut text = format!(
        "{} sorted anew, {} in another place; {} stayed, as people said or as examples of their group\n",
        count(refreshed.sorted, "item", "items"),
        thousands(refreshed.moved),
        thousands(refreshed.fixed)
    );
    let _ = writeln!(
        text,
        "{} as before, {} changed, {} waiting",
        count(refreshed.unchanged, "group is", "groups are"),
        thousands(refreshed.fates.len() as u64),
        thousands(refreshed.waiting)
    );
    for fate in refreshed.fates.iter().take(FATES) {
        let _ = writeln!(text, "  {}", fate_line(fate));
    }
    if refreshed.fates.len() > FATES {
        let _ = writeln!(
            text,
            "  … and {} more (`genus log` has them)",
            refreshed.fates.len() - FATES
        );
    }
    text
}

pub(super) fn checked(checked: &CheckOutcome) -> String {
    let mut text = String::new();
    for problem in &checked.problems {
        let _ = writeln!(text, "{}", name(problem));
    }
    if checked.is_sound() {
        let _ = writeln!(
            text,
            "In order: {}, and all that the log adds up to",
            count(checked.items, "item", "items")
        );
    }
    if checked.missing > 0 {
        let _ = writeln!(
            text,
            "{} not where {} before; `genus add` of the new folder finds {} again",
            count(checked.missing, "photograph is", "photographs are"),
            plural(checked.missing, "it was", "they were"),
            plural(checked.missing, "it", "them")
        );
        for file in &checked.missing_files {
            let _ = writeln!(text, "  #{} {}", file.item, name(&file.path.display().to_string()));
        }
    }
    text
}

pub(super) fn corrections(corrections: &Corrections, preview: &Preview) -> String {
    let mut text = String::new();
    let mut line = |number: u64, words: &str| {
        if number > 0 {
            let _ = writeln!(text, "  {:>9}  {words}", thousands(number));
        }
    };
    line(preview.moved, "would move to another group");
    line(preview.confirmed, "would be confirmed where they are");
    line(preview.released, "would be rejected from their group");
    line(preview.noise, "would be noise");
    line(corrections.unchanged, "are already so");
    line(corrections.unknown, "match no item here");
    line(corrections.contradicted, "are overridden by a later row");
    for group in &preview.new_groups {
        let _ = writeln!(text, "  new group {}", name(group));
    }
    for (before, after) in &preview.renamed {
        let _ = writeln!(text, "  {} would be called {}", name(before), name(after));
    }
    if !corrections.unknown_names.is_empty() {
        let _ = writeln!(text, "  unknown: {}", name(&corrections.unknown_names.join(", ")));
    }
    if corrections.actions.is_empty() {
        text += "There is nothing to correct\n";
    }
    text
}

pub(super) fn exported(outcome: &ExportOutcome) -> String {
    let mut text = format!(
        "{} written to {}\n",
        count(outcome.items, "item", "items"),
        name(&outcome.folder.display().to_string())
    );
    if outcome.sorted > 0 {
        let _ = writeln!(
            text,
            "{} sorted into folders",
            count(outcome.sorted, "photograph", "photographs")
        );
    }
    if outcome.without_file > 0 {
        let _ = writeln!(
            text,
            "{} left out",
            count(
                outcome.without_file,
                "item whose file is not there was",
                "items whose files are not there were"
            )
        );
    }
    for next in &outcome.next {
        let _ = writeln!(text, "{}", name(next));
    }
    text
}

pub(super) fn salvaged(saved: &SalvageOutcome) -> String {
    format!(
        "{} saved to {}, {} with features; {} are incomplete\n",
        count(saved.items, "item", "items"),
        name(&saved.folder.display().to_string()),
        thousands(saved.with_features),
        thousands(saved.damaged)
    )
}

pub(super) fn compacted(compacted: &CompactOutcome) -> String {
    format!(
        "{} before, {} now\n",
        crate::summary::bytes(compacted.before),
        crate::summary::bytes(compacted.after)
    )
}

/// A time as year-month-day hour:minute in UTC.
fn date(milliseconds: i64) -> String {
    let minutes = milliseconds.div_euclid(60_000);
    let (days, minute) = (minutes.div_euclid(1440), minutes.rem_euclid(1440));
    // The calendar from the first of March on, in eras of 400 years (Howard Hinnant's algorithm).
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00"),
            (951_782_400, "2000-02-29 00:00"),
            (1_709_210_096, "2024-02-29 12:34"),
            (1_735_689_599, "2024-12-31 23:59"),
            (-60, "1969-12-31 23:59"),
        ] {
            assert_eq!(super::date(seconds * 1000), expected);
        }
    }
}
