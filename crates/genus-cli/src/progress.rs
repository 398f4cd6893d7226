//! Progress on standard error: a bar only when that is a terminal, and lines that stay.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use genus::text::{plural, thousands};
use genus::{Length, Note, Progress, Skipped};
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::printable;
use crate::record;
use crate::say::Terminal;

/// How many unusable images are named one by one.
const NAMED: usize = 10;

/// A bar for every stage, which vanishes at its end.
pub(crate) struct Bar {
    quiet: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Bar {
    pub(crate) fn new(terminal: Terminal) -> Self {
        Self {
            quiet: terminal.quiet,
            bar: Mutex::new(None),
        }
    }

    fn bar(&self) -> MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says a line that stays, unless nothing is to be said.
    fn say(&self, line: &str) {
        if !self.quiet {
            self.say_always(line);
        }
    }

    fn say_always(&self, line: &str) {
        match &*self.bar() {
            Some(bar) => bar.suspend(|| say!("{line}")),
            None => say!("{line}"),
        }
    }
}

impl Progress for Bar {
    fn start(&self, stage: &str, length: Length) {
        self.end();
        if self.quiet {
            return;
        }
        let (bar, template) = match length {
            Length::Steps(steps) => (
                ProgressBar::new(steps),
                "{msg} {wide_bar:.green/dim} {human_pos}/{human_len} · {per_sec} · {eta} left",
            ),
            Length::Bytes(bytes) => (
                ProgressBar::new(bytes),
                "{msg} {wide_bar:.green/dim} {bytes}/{total_bytes} · {bytes_per_sec} · {eta} left",
            ),
            Length::Unknown => (ProgressBar::new_spinner(), "{spinner} {msg} {pos} · {elapsed}"),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(stage.to_owned());
        if length == Length::Unknown {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        *self.bar() = Some(bar);
    }

    fn advance(&self, steps: u64) {
        if let Some(bar) = &*self.bar() {
            bar.inc(steps);
        }
    }

    fn end(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    fn note(&self, note: &Note) {
        match note {
            // Said even when nothing else is: they are missing from the result.
            Note::Skipped(skipped) => {
                record::skipped(skipped);
                for Skipped { path, reason } in skipped.iter().take(NAMED) {
                    let path = path.display().to_string();
                    self.say_always(&format!("skipped {}: {}", printable(&path), printable(reason)));
                }
                if skipped.len() > NAMED {
                    let count = thousands(skipped.len() as u64);
                    self.say_always(&format!("skipped {count} files in all"));
                }
            }
            Note::Unsupported(formats) => {
                record::unsupported(formats);
                // However they are spelt, as in .HEIC and .heic.
                let mut by_format: BTreeMap<String, Vec<(&str, u64)>> = BTreeMap::new();
                for (ending, &count) in *formats {
                    by_format
                        .entry(ending.to_lowercase())
                        .or_default()
                        .push((ending, count));
                }
                for mut spellings in by_format.into_values() {
                    spellings.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
                    let count = spellings.iter().map(|&(_, count)| count).sum();
                    let globs: Vec<String> = spellings.iter().map(|(ending, _)| format!("*.{ending}")).collect();
                    self.say_always(&printable(&format!(
                        "{} .{} {} skipped: convert {} with magick mogrify -format jpg {} (ImageMagick)",
                        thousands(count),
                        spellings[0].0,
                        plural(count, "file was", "files were"),
                        plural(count, "it", "them"),
                        globs.join(" "),
                    )));
                }
            }
            &Note::DoubtfulExamples { images } => self.say(&format!(
                "{} {} left out: a best guess is not an example",
                thousands(images),
                plural(images, "image in unsure/ was", "images in unsure/ were")
            )),
            Note::EmptyClasses { examples, classes } => {
                let names: Vec<&str> = classes.iter().take(NAMED).map(String::as_str).collect();
                let more = match classes.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let count = classes.len() as u64;
                self.say_always(&printable(&format!(
                    "{}: {} {} no image of a format that can be read, and {} no known {}: {}{more}",
                    examples.display(),
                    thousands(count),
                    plural(count, "folder has", "folders have"),
                    plural(count, "is", "are"),
                    plural(count, "class", "classes"),
                    names.join(", "),
                )));
            }
            &Note::ClassOfFolders {
                examples,
                class,
                folders,
            } => self.say_always(&printable(&format!(
                "{0}: all examples are of one class, {class}; if the {folders} folders in it are the classes, name {1}",
                examples.display(),
                examples.join(class).display(),
            ))),
            Note::ColumnsLeftOut { table, columns } => {
                let names: Vec<&str> = columns.iter().take(NAMED).map(String::as_str).collect();
                let more = match columns.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                self.say(&printable(&format!(
                    "{}: left out {}{more}; --features, --label and --id say which columns are what",
                    table.display(),
                    names.join(", ")
                )));
            }
            &Note::UnusedLabels { pile, items } => self.say(&printable(&format!(
                "{}: {} {} a label, which --query does not use; `genus discover {}` takes them as examples",
                pile.display(),
                thousands(items),
                plural(items, "item has", "items have"),
                pile.display()
            ))),
            &Note::OddLabel { label, examples } => self.say(&printable(&format!(
                "{} {} of a class called \"{label}\"; if that means an unknown class, use --unlabelled \"{label}\"",
                thousands(examples),
                plural(examples, "example is", "examples are")
            ))),
            Note::NotRemembered(error) => self.say_always(&format!("these features are not cached: {error}")),
            Note::DataSet { title, note } => self.say(&format!("{title}: {note}")),
            Note::TwoStep { items, subset } => self.say(&format!(
                "{} items: clustering {} of them, assigning the rest",
                thousands(*items),
                thousands(*subset)
            )),
            &Note::Embedded {
                images,
                view,
                recalled,
                encoder,
                isa,
                seconds,
            } => {
                if view.is_none() {
                    record::embedded(images);
                }
                let how = match recalled {
                    0 => format!("{:.1} images/s", images as f64 / seconds.max(1e-9)),
                    all if all == images => "all from the cache".to_owned(),
                    some => format!("{} from the cache", thousands(some)),
                };
                let runs_on = isa.map_or("ONNX Runtime".to_owned(), |isa| isa.to_string());
                let word = plural(images, "image", "images");
                let what = view.map_or(word.to_owned(), |view| format!("view {} of images", view + 1));
                self.say(&format!(
                    "{} {what} embedded with {encoder} on {runs_on} in {seconds:.1} s ({how})",
                    thousands(images)
                ));
            }
            _ => {}
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.end();
    }
}
