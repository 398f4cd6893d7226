//! What comes after sorting: a folder a category, and files for other programs.

use std::fs;
use std::path::{Path, PathBuf};

use genus_data::{Export, Exported, Link, SortedItem, Sorting};
use genus_lab::Progress;

use crate::args::{self, Global};
use crate::failure::{Failure, printable};
use crate::images::{Input, ItemFile};
use crate::progress::Bar;
use crate::summary;

/// What is to be done with the items.
pub(crate) struct NextSteps {
    sort_into: Option<PathBuf>,
    link: Link,
    allow_outside: bool,
    exports: Vec<Export>,
    /// Where exports go, if they do not go into the sorted folder.
    out: PathBuf,
    /// What made the predictions.
    made_by: String,
}

impl NextSteps {
    /// What was asked for, if anything was; it fails where it is clear beforehand that it cannot be done.
    pub(crate) fn new(
        asked: &args::NextSteps,
        output: &args::Output,
        pile: &Path,
        method: &str,
    ) -> Result<Option<Self>, Failure> {
        if asked.sort_into.is_none() && asked.export.is_empty() {
            return Ok(None);
        }
        let mut exports = asked.export.clone();
        exports.sort();
        exports.dedup();
        for export in &exports {
            let (needed, found) = match export {
                Export::ImageFolder => ("--sort-into DIR, whose images it describes", asked.sort_into.is_some()),
                _ => ("--out DIR, where it is written", output.out.is_some()),
            };
            if !found {
                return Err(Failure::Usage(format!("--export {export} needs {needed}")));
            }
        }
        if let Some(folder) = &asked.sort_into {
            not_inside(folder, pile)?;
            Sorting::plan(folder, asked.link, &[])?;
        }
        Ok(Some(Self {
            sort_into: asked.sort_into.clone(),
            link: asked.link,
            allow_outside: asked.allow_outside,
            exports,
            out: output.out.clone().unwrap_or_default(),
            made_by: format!("genus {} {method}", env!("CARGO_PKG_VERSION")),
        }))
    }

    /// Finds the files of the items, and fails where something is in the way.
    pub(crate) fn plan(self, input: &Input, items: &mut [SortedItem]) -> Result<Planned, Failure> {
        let file_of = input.files();
        for item in items.iter_mut() {
            let option = if self.sort_into.is_some() {
                "--sort-into"
            } else {
                "--export"
            };
            item.path = match file_of(&item.id) {
                ItemFile::Inside(path) => path,
                ItemFile::Outside(path) if self.allow_outside => path,
                ItemFile::Outside(path) => {
                    return Err(Failure::failed(format!(
                        "\"{}\" names {}, which is neither below here nor beside {}; whoever made the table may have chosen \
                         it. Allow such files with --allow-outside",
                        item.id,
                        path.display(),
                        input.path().display()
                    )));
                }
                ItemFile::Missing => {
                    return Err(Failure::failed(format!(
                        "{option} needs the files of the items, but \"{}\" is no file, neither from here nor beside {}; \
                         sort images, or a table whose ids are their paths",
                        item.id,
                        input.path().display()
                    )));
                }
            };
        }
        let sorting = self
            .sort_into
            .map(|folder| Sorting::plan(&folder, self.link, items))
            .transpose()?;
        let mut exports = Vec::new();
        for export in self.exports {
            exports.push(match (export, &sorting) {
                (Export::LabelStudio, _) => Exported::label_studio(&self.out, items, &self.made_by)?,
                (Export::FiftyOne, _) => Exported::fiftyone(&self.out, items)?,
                (Export::ImageFolder, Some(sorting)) => Exported::imagefolder(sorting, items)?,
                (Export::ImageFolder, None) => continue,
            });
        }
        Ok(Planned { sorting, exports })
    }
}

/// Fails when the links would be among the files that the next run sorts.
fn not_inside(folder: &Path, pile: &Path) -> Result<(), Failure> {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    // The folder may have to be made; what is there of the way to it may lead through links.
    let there = absolute.ancestors().find_map(|folder| fs::canonicalize(folder).ok());
    let inside = match (there, fs::canonicalize(pile)) {
        (Some(there), Ok(pile)) => pile.is_dir() && there.starts_with(pile),
        _ => false,
    };
    match inside {
        false => Ok(()),
        true => Err(Failure::Usage(format!(
            "--sort-into {} is inside {}, so that the next run would sort the links as well; name a folder elsewhere",
            folder.display(),
            pile.display()
        ))),
    }
}

/// Next steps with nothing in the way.
#[derive(Default)]
pub(crate) struct Planned {
    sorting: Option<Sorting>,
    exports: Vec<Exported>,
}

impl Planned {
    /// Makes the links and writes the exports.
    pub(crate) fn run(&self, global: &Global) -> Result<Done, Failure> {
        let mut done = Done::default();
        if let Some(sorting) = &self.sorting {
            let count = sorting.targets().len() as u64;
            let bar = Bar::new(global);
            bar.start("files", count);
            sorting.run(|| bar.step())?;
            drop(bar);
            let (files, folder) = (summary::thousands(count), sorting.folder().display());
            done.lines.push(format!("{files} files sorted into {folder}"));
        }
        for export in &self.exports {
            export.write()?;
            done.lines.push(export.next().to_string());
        }
        Ok(done)
    }
}

/// What there is to say of next steps that are done.
#[derive(Default)]
pub(crate) struct Done {
    lines: Vec<String>,
}

impl Done {
    /// Says it, unless nothing is to be said.
    pub(crate) fn say(&self, global: &Global) {
        if !global.quiet {
            self.lines.iter().for_each(|line| say!("{}", printable(line)));
        }
    }
}
