//! What comes after sorting: a folder a category, and files for other programs.

use std::fs;
use std::path::{Path, PathBuf};

use genus_data::{Export, ExportFiles, LinkKind, SortedItem, Sorting};

use crate::items::{ItemFile, Items};
use crate::output::SavedFiles;
use crate::{Error, Length, Progress};

/// What to do with the files of the items.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NextSteps {
    /// Sort them into this folder, with one folder per category.
    pub sort_into: Option<PathBuf>,
    /// Whether sorted files are links or copies.
    pub link: LinkKind,
    /// Whether ids of a table may name files outside its folder and the current folder.
    pub allow_outside: bool,
    /// The programs to write files for.
    pub exports: Vec<Export>,
}

impl NextSteps {
    pub(crate) fn is_empty(&self) -> bool {
        self.sort_into.is_none() && self.exports.is_empty()
    }

    /// Fails where it is clear beforehand that something cannot be done.
    pub(crate) fn check(&mut self, has_folder: bool, pile: &Path) -> Result<(), Error> {
        self.exports.sort();
        self.exports.dedup();
        for &export in &self.exports {
            let has_place = match export {
                Export::ImageFolder => self.sort_into.is_some(),
                _ => has_folder,
            };
            if !has_place {
                return Err(Error::ExportNeedsFolder { export });
            }
        }
        if let Some(folder) = &self.sort_into {
            not_inside(folder, pile)?;
            Sorting::plan(folder, self.link, &[])?;
        }
        Ok(())
    }

    /// Finds the files of the items, and fails where something is in the way. Exports go into `out`, and say who made them.
    pub(crate) fn plan(
        self,
        source: &Items,
        items: &mut [SortedItem],
        out: &Path,
        made_by: &str,
    ) -> Result<NextStepsPlan, Error> {
        let file_of = source.files();
        for item in items.iter_mut() {
            item.path = match file_of(&item.id) {
                ItemFile::Inside(path) => path,
                ItemFile::Outside(path) if self.allow_outside => path,
                ItemFile::Outside(path) => {
                    return Err(Error::FileOutside {
                        id: item.id.clone(),
                        path,
                        table: source.path().to_owned(),
                    });
                }
                ItemFile::Missing => {
                    return Err(Error::NoFile {
                        id: item.id.clone(),
                        table: source.path().to_owned(),
                        sorting: self.sort_into.is_some(),
                    });
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
                (Export::LabelStudio, _) => ExportFiles::label_studio(out, items, made_by)?,
                (Export::FiftyOne, _) => ExportFiles::fiftyone(out, items)?,
                (Export::ImageFolder, Some(sorting)) => ExportFiles::imagefolder(sorting, items)?,
                (Export::ImageFolder, None) => continue,
            });
        }
        Ok(NextStepsPlan { sorting, exports })
    }
}

/// Fails when the links would be among the files that the next run sorts.
fn not_inside(folder: &Path, pile: &Path) -> Result<(), Error> {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    // The folder may have to be made; what is there of the way to it may lead through links.
    let there = absolute.ancestors().find_map(|folder| fs::canonicalize(folder).ok());
    match (there, fs::canonicalize(pile)) {
        (Some(there), Ok(found)) if found.is_dir() && there.starts_with(&found) => Err(Error::SortIntoPile {
            folder: folder.to_owned(),
            pile: pile.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Next steps with nothing in the way.
#[derive(Default)]
pub(crate) struct NextStepsPlan {
    sorting: Option<Sorting>,
    exports: Vec<ExportFiles>,
}

impl NextStepsPlan {
    /// Makes the links and writes the exports.
    pub(crate) fn run(self, saved: &mut SavedFiles, progress: &dyn Progress) -> Result<(), Error> {
        if let Some(sorting) = self.sorting {
            let count = sorting.targets().len() as u64;
            progress.start("files", Length::Steps(count));
            sorting.run(|| progress.step())?;
            progress.end();
            saved.sorted = Some((count, sorting.folder().to_owned()));
        }
        for export in self.exports {
            export.write()?;
            saved.exports.push(export);
        }
        Ok(())
    }
}
