//! Where results go: the standard output or a folder.

use std::fs;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use genus_core::{Assignment, Scenes, Taxonomy};
use genus_data::{AssignmentRow, AssignmentWriter, Format, SortedItem};

use crate::args::{self, Global};
use crate::failure::Failure;
use crate::images::Input;
use crate::next_steps::{Done, NextSteps, Planned};

/// Prints text to the standard output, with its colours only where they are wanted.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Assignments on their way out.
pub(crate) struct Sink {
    format: Format,
    /// None until there is something to write to the standard output: a run that fails prints no header.
    writer: Option<AssignmentWriter>,
    spreadsheet: bool,
    folder: Option<Folder>,
    next: Option<NextSteps>,
    planned: Planned,
    /// Whether rows wait until everything else is saved.
    holds: bool,
    held: Vec<SortedItem>,
}

impl Sink {
    /// Opens a file before any work is done, so that a wrong path costs no time. With `holds` no row goes out before
    /// [`finish`](Self::finish), for runs that save something else: whoever reads the rows may leave after the first.
    pub(crate) fn open(output: &args::Output, next: Option<NextSteps>, holds: bool) -> Result<Self, Failure> {
        let format = output.format;
        let mut sink = Self {
            format,
            writer: None,
            spreadsheet: output.spreadsheet,
            folder: None,
            next,
            planned: Planned::default(),
            holds,
            held: Vec::new(),
        };
        let Some(path) = &output.out else {
            if format == Format::Parquet && io::stdout().is_terminal() {
                return Err(Failure::Usage(
                    "Parquet cannot be shown in a terminal; name a folder with --out DIR".into(),
                ));
            }
            return Ok(sink);
        };
        sink.folder = Some(Folder::create(path, "--out")?);
        let file = path.join(format!("assignments.{}", format.extension()));
        sink.writer = Some(AssignmentWriter::create(file, format)?.for_spreadsheets(sink.spreadsheet));
        Ok(sink)
    }

    /// Writes where some items went, and their scenes where these were looked for among all items.
    pub(crate) fn write(
        &mut self,
        ids: &[String],
        assignments: &[Assignment],
        taxonomy: &Taxonomy,
        scenes: Option<&Scenes>,
    ) -> Result<(), Failure> {
        for (at, (id, assignment)) in ids.iter().zip(assignments).enumerate() {
            let entry = &taxonomy.entries()[assignment.category];
            let row = AssignmentRow {
                id,
                category: &entry.name,
                kind: entry.kind,
                score: assignment.score,
                scene: scenes.map(|scenes| scenes.of()[at] + 1),
            };
            match self.holds || self.next.is_some() {
                // Nothing is written before it is clear that everything can be.
                true => self.held.push(SortedItem::new(&row)),
                false => self.write_row(&row)?,
            }
        }
        Ok(())
    }

    fn write_row(&mut self, row: &AssignmentRow) -> Result<(), Failure> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let out = Box::new(BufWriter::new(io::stdout()));
                let writer = AssignmentWriter::new(out, "the standard output", self.format)?;
                none.insert(writer.for_spreadsheets(self.spreadsheet))
            }
        };
        Ok(writer.write(row)?)
    }

    /// The folder, if results go into one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| folder.path.as_path())
    }

    /// Makes sure that what comes after the assignments can be done. It is called when they are all there, and before
    /// anything else is written.
    pub(crate) fn plan(&mut self, input: &Input) -> Result<(), Failure> {
        if let Some(next) = self.next.take() {
            self.planned = next.plan(input, &mut self.held)?;
        }
        Ok(())
    }

    /// Lets the assignments appear and does what comes after them. Rows for the standard output come last: whoever reads
    /// them may leave.
    pub(crate) fn finish(mut self, global: &Global) -> Result<Done, Failure> {
        let mut done = Done::default();
        let to_folder = self.folder.is_some();
        if !to_folder {
            done = self.planned.run(global)?;
        }
        for item in std::mem::take(&mut self.held) {
            self.write_row(&item.row())?;
        }
        if let Some(writer) = self.writer {
            writer.finish()?;
        }
        if let Some(folder) = self.folder {
            folder.keep();
        }
        match to_folder {
            true => self.planned.run(global),
            false => Ok(done),
        }
    }
}

/// A folder for results, removed again when it was made for them and nothing came of it.
pub(crate) struct Folder {
    path: PathBuf,
    /// The folders that were not there before, the innermost first.
    made: Vec<PathBuf>,
}

impl Folder {
    /// Makes a folder that an option names.
    pub(crate) fn create(path: &Path, option: &str) -> Result<Self, Failure> {
        let missing = path
            .ancestors()
            .filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let folder = Self {
            path: path.to_owned(),
            made: missing.map(Path::to_owned).collect(),
        };
        fs::create_dir_all(path).map_err(|e| {
            Failure::failed(format!(
                "cannot make the folder {}: {e}; name another with {option}",
                path.display()
            ))
        })?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn keep(mut self) {
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
