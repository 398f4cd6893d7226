//! Where results go: a folder, or any writer.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use genus_core::{Assignment, Scenes, Taxonomy};
use genus_data::{AssignmentRow, AssignmentWriter, ExportFiles, Format, SortedItem};

use crate::error::Purpose;
use crate::items::Items;
use crate::next_steps::{NextSteps, NextStepsPlan};
use crate::{Error, Progress};
use genus_report::Truth;

/// Receives the rows of a result one by one, so that a pile may be larger than memory.
pub trait Rows {
    /// Takes one row.
    fn write(&mut self, row: &AssignmentRow<'_>) -> Result<(), Error>;

    /// Flushes the rows so far.
    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

impl Rows for Vec<SortedItem> {
    fn write(&mut self, row: &AssignmentRow<'_>) -> Result<(), Error> {
        self.push(SortedItem::new(row));
        Ok(())
    }
}

/// Passes on the assignments of some items, with their scenes if known for all items.
pub(crate) fn write_rows(
    rows: &mut dyn Rows,
    ids: &[String],
    assignments: &[Assignment],
    taxonomy: &Taxonomy,
    scenes: Option<&Scenes>,
) -> Result<(), Error> {
    for (at, (id, assignment)) in ids.iter().zip(assignments).enumerate() {
        let entry = &taxonomy.entries()[assignment.category];
        rows.write(&AssignmentRow {
            id,
            category: &entry.name,
            kind: entry.kind,
            score: assignment.score,
            scene: scenes.map(|scenes| scenes.of()[at] + 1),
        })?;
    }
    Ok(())
}

/// Where assignments are written.
pub enum Destination {
    /// A folder: `assignments.csv`, `.jsonl` or `.parquet`, and all other results.
    Folder(PathBuf),
    /// A writer, for the assignments only.
    Writer {
        /// Its name in messages.
        name: String,
        /// The writer, buffered.
        writer: Box<dyn Write + Send>,
    },
}

/// The format of the assignments, and what to do with the items' files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputOptions {
    /// The format of the assignments.
    pub format: Format,
    /// Whether CSV cells that a spreadsheet would take for a formula get an apostrophe.
    pub spreadsheet: bool,
    /// What to do with the files of the items.
    pub next: NextSteps,
}

/// What was written.
#[derive(Debug, Default)]
pub struct SavedFiles {
    /// The folder of the results.
    pub folder: Option<PathBuf>,
    /// The page that shows them.
    pub report: Option<PathBuf>,
    /// The number of sorted files, and their folder.
    pub sorted: Option<(u64, PathBuf)>,
    /// The files for other programs.
    pub exports: Vec<ExportFiles>,
    /// The accuracy, if the truth is known.
    pub truth: Option<Truth>,
}

/// An output that was opened for the assignments of one run.
///
/// Rows are written as they come unless something has to be made sure of before. Everything appears when the run is saved;
/// when the output is dropped before that, a folder is left as it was.
#[must_use = "what is not saved is lost"]
pub struct Output {
    writer: RowWriter,
    folder: Option<Folder>,
    options: OutputOptions,
    /// Rows that wait until it is clear that everything can be written.
    held: Option<Vec<SortedItem>>,
}

/// The writer of the assignments. Nothing is written to one that is not ours before there is a row: a run that fails prints no
/// header.
enum RowWriter {
    Waiting(String, Box<dyn Write + Send>),
    Open(AssignmentWriter),
    /// It could not be opened.
    Failed,
}

impl RowWriter {
    fn open(&mut self, options: &OutputOptions) -> Result<Option<&mut AssignmentWriter>, Error> {
        if let RowWriter::Waiting(..) = self {
            let RowWriter::Waiting(name, writer) = std::mem::replace(self, RowWriter::Failed) else {
                return Ok(None);
            };
            let writer = AssignmentWriter::new(writer, name, options.format)?;
            *self = RowWriter::Open(writer.for_spreadsheets(options.spreadsheet));
        }
        Ok(match self {
            RowWriter::Open(writer) => Some(writer),
            RowWriter::Waiting(..) | RowWriter::Failed => None,
        })
    }
}

impl Rows for Output {
    fn write(&mut self, row: &AssignmentRow<'_>) -> Result<(), Error> {
        if let Some(held) = &mut self.held {
            return held.write(row);
        }
        if let Some(writer) = self.writer.open(&self.options)? {
            writer.write(row)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        match (&mut self.writer, &self.folder) {
            (RowWriter::Open(writer), None) => Ok(writer.flush()?),
            _ => Ok(()),
        }
    }
}

impl Output {
    /// Opens it before any work is done, so that a wrong path costs no time. The pile is what the items come from.
    pub fn open(to: Destination, mut options: OutputOptions, pile: &Path) -> Result<Self, Error> {
        options.next.check(matches!(to, Destination::Folder(_)), pile)?;
        let (writer, folder) = match to {
            Destination::Writer { name, writer } => (RowWriter::Waiting(name, writer), None),
            Destination::Folder(path) => {
                let folder = Folder::create(&path, Purpose::Results)?;
                let file = path.join(format!("assignments.{}", options.format.extension()));
                let writer = AssignmentWriter::create(file, options.format)?;
                (
                    RowWriter::Open(writer.for_spreadsheets(options.spreadsheet)),
                    Some(folder),
                )
            }
        };
        let held = (!options.next.is_empty()).then(Vec::new);
        Ok(Self {
            writer,
            folder,
            options,
            held,
        })
    }

    /// The folder, if results go into one.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| folder.path.as_path())
    }

    /// Keeps rows back until the run is saved, for runs that save something else first: whoever reads them may leave after the
    /// first.
    pub(crate) fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Makes sure that what comes after the assignments can be done, lets `others` save what else there is, then lets the
    /// assignments appear and does what comes after them. Rows for a writer come last: whoever reads them may leave.
    pub(crate) fn save<T>(
        self,
        items: &Items,
        made_by: &str,
        progress: &dyn Progress,
        others: impl FnOnce(Option<&Path>) -> Result<T, Error>,
    ) -> Result<(SavedFiles, T), Error> {
        // Dropped in the reverse order: a folder that nothing came of is removed when its file has gone.
        let folder = self.folder;
        let (mut writer, mut options) = (self.writer, self.options);
        let mut held = self.held.unwrap_or_default();
        let path = folder.as_ref().map(|folder| folder.path.clone());
        let next = std::mem::take(&mut options.next);
        let planned = match next.is_empty() {
            true => NextStepsPlan::default(),
            false => {
                let made_by = format!("genus {} {made_by}", env!("CARGO_PKG_VERSION"));
                next.plan(items, &mut held, path.as_deref().unwrap_or(Path::new("")), &made_by)?
            }
        };
        let others = others(path.as_deref())?;
        let mut saved = SavedFiles {
            folder: path.clone(),
            ..SavedFiles::default()
        };
        let (before, after) = match folder {
            None => (Some(planned), None),
            Some(_) => (None, Some(planned)),
        };
        if let Some(planned) = before {
            planned.run(&mut saved, progress)?;
        }
        for item in held {
            if let Some(writer) = writer.open(&options)? {
                writer.write(&item.row())?;
            }
        }
        if let RowWriter::Open(writer) = writer {
            writer.finish()?;
        }
        if let Some(folder) = folder {
            folder.keep();
        }
        if let Some(planned) = after {
            planned.run(&mut saved, progress)?;
        }
        Ok((saved, others))
    }
}

/// A folder for results; removed on failure if it was created for them.
pub struct Folder {
    path: PathBuf,
    /// The folders that were not there before, the innermost first.
    made: Vec<PathBuf>,
}

impl Folder {
    /// Makes a folder, with those above it.
    pub fn create(path: &Path, purpose: Purpose) -> Result<Self, Error> {
        let missing = path
            .ancestors()
            .filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let folder = Self {
            path: path.to_owned(),
            made: missing.map(Path::to_owned).collect(),
        };
        fs::create_dir_all(path).map_err(|source| Error::Folder {
            folder: path.to_owned(),
            purpose,
            source,
        })?;
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets it stay.
    pub fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for folder in &self.made {
            // Fails when something is in it, and then it should stay.
            let _ = fs::remove_dir(folder);
        }
    }
}
