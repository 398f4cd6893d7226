//! What is in a collection, in the files that other programs read; and what can be saved of a damaged one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use genus::Progress;
use genus_core::{Features, Kind, Score, Taxonomy, TaxonomyEntry};
use genus_data::{
    AssignmentWriter, Export, ExportFiles, FeatureWriter, Format, LinkKind, SortedItem, Sorting, write_taxonomy,
};
use genus_files::AtomicFile;
use serde::Serialize;

use crate::collection::{Collection, GroupInfo, Groups, ItemInfo};
use crate::error::Error;
use crate::knowledge::Model;
use crate::model::{GroupId, ItemId};
use crate::store::{self, Store};

/// What is written of a collection.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// The format of the assignments.
    pub format: Format,
    /// Whether CSV cells that a spreadsheet would take for a formula get an apostrophe.
    pub spreadsheet: bool,
    /// Whether features are written, too, as `features.parquet`.
    pub features: bool,
    /// Sort the photographs into this folder, one folder a group.
    pub sort_into: Option<PathBuf>,
    /// Whether sorted files are links or copies.
    pub link: LinkKind,
    /// Whether the names of items without a file may refer to files outside of the current folder.
    pub allow_outside: bool,
    /// The programs to write files for.
    pub exports: Vec<Export>,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExportOutcome {
    /// The folder.
    pub folder: PathBuf,
    /// Rows of the assignments.
    pub items: u64,
    /// Items that belong to no class and were left out.
    pub noise: u64,
    /// Photographs that were sorted into folders.
    pub sorted: u64,
    /// Items whose file is not there; they are in no folder and in no file for other programs.
    pub without_file: u64,
    /// How the files for other programs are imported, in words.
    pub next: Vec<String>,
}

/// What was saved of a damaged collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SalvageOutcome {
    /// The folder.
    pub folder: PathBuf,
    /// Items of which something is left.
    pub items: u64,
    /// Those of them whose features are left.
    pub with_features: u64,
    /// Items of which a part is lost.
    pub damaged: u64,
}

impl Collection {
    /// Writes the assignments, the groups and a taxonomy that `assign` takes into a folder, and what else is asked for.
    pub fn export(
        &self,
        folder: &Path,
        options: &ExportOptions,
        progress: &dyn Progress,
    ) -> Result<ExportOutcome, Error> {
        let made = genus::Folder::create(folder, genus::Purpose::Results)?;
        let outcome = self.store.snapshot(|store| {
            let dim = self.dim()?.ok_or(Error::Nothing)?;
            let groups = Groups::read(store)?;
            let model = Model::load(store, &groups, dim)?;
            let mut outcome = ExportOutcome {
                folder: folder.to_owned(),
                ..ExportOutcome::default()
            };
            let path = folder.join(format!("assignments.{}", options.format.extension()));
            let writer = AssignmentWriter::create_with_parents(path, options.format)?;
            let mut writer = writer.for_spreadsheets(options.spreadsheet);
            let mut features = match options.features {
                true => {
                    let encoder = store.meta("encoder")?;
                    let path = folder.join("features.parquet");
                    Some(FeatureWriter::create_own(&path, dim, encoder.as_deref(), true)?)
                }
                false => None,
            };
            let wants_files = options.sort_into.is_some() || !options.exports.is_empty();
            let mut files = Vec::new();
            progress.start("items", genus::Length::Steps(self.status()?.items));
            self.for_each_sorted(store, model.as_ref(), dim, |item, row, values| {
                progress.step();
                let Some(row) = row else {
                    outcome.noise += 1;
                    return Ok(());
                };
                writer.write_under(&row.row(), item.parent_name.as_deref())?;
                outcome.items += 1;
                if let Some(features) = &mut features {
                    let label = (!row.score.unsure).then(|| row.category.clone());
                    features.write(std::slice::from_ref(&row.id), &[label], values)?;
                }
                if wants_files && !row.category.is_empty() {
                    match file_of(item, options.allow_outside)? {
                        Some(path) => files.push(SortedItem { path, ..row }),
                        None => outcome.without_file += 1,
                    }
                }
                Ok(())
            })?;
            progress.end();
            let sorting = match &options.sort_into {
                Some(into) => Some(Sorting::plan(into, options.link, &files)?),
                None => None,
            };
            writer.finish()?;
            if let Some(features) = features {
                features.finish()?;
            }
            write_groups(folder, &self.groups()?)?;
            if let Some(model) = &model {
                let taxonomy = named(model, &groups, &self.groups()?)?;
                write_taxonomy(folder, &taxonomy, &self.origin()?)?;
            }
            if let Some(sorting) = &sorting {
                sorting.run(|| progress.step())?;
                outcome.sorted = files.len() as u64;
            }
            for export in &options.exports {
                let made_by = format!("genus {}", env!("CARGO_PKG_VERSION"));
                let exported = match (export, &sorting) {
                    (Export::LabelStudio, _) => ExportFiles::label_studio(folder, &files, &made_by)?,
                    (Export::FiftyOne, _) => ExportFiles::fiftyone(folder, &files)?,
                    (Export::ImageFolder, Some(sorting)) => ExportFiles::imagefolder(sorting, &files)?,
                    (Export::ImageFolder, None) => {
                        return Err(genus::Error::ExportNeedsFolder { export: *export }.into());
                    }
                };
                exported.write()?;
                outcome.next.push(exported.next().to_owned());
            }
            Ok(outcome)
        })?;
        made.keep();
        Ok(outcome)
    }

    /// Hands on every item, as a row of the assignments unless it belongs to no class, with its features.
    fn for_each_sorted(
        &self,
        store: &Store,
        model: Option<&Model>,
        dim: usize,
        mut each: impl FnMut(&ItemInfo, Option<SortedItem>, &[f32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let named: BTreeMap<GroupId, bool> = self
            .groups()?
            .into_iter()
            .map(|group| (group.id, group.named))
            .collect();
        let shared = store.shared_names()?;
        self.for_each_block(|block| {
            let ids: Vec<ItemId> = block.iter().map(|item| item.id).collect();
            let features = store.features(&ids, dim)?;
            let cosines = model.map(|model| (model, model.cosines(&features)));
            for (at, item) in block.iter().enumerate() {
                let Some(shown) = item.state.shown() else {
                    each(item, None, features.row(at))?;
                    continue;
                };
                let (similarity, margin) = match (&cosines, shown.group) {
                    (Some((model, cosines)), Some(group)) => model.fit(cosines, at, group).unwrap_or((0.0, 0.0)),
                    _ => (0.0, 0.0),
                };
                let is_named = shown
                    .group
                    .and_then(|group| named.get(&group))
                    .copied()
                    .unwrap_or(false);
                let row = SortedItem {
                    // So that every row can come back as a correction.
                    id: match shared.contains(&item.name) {
                        true => format!("#{} {}", item.id, item.name),
                        false => item.name.clone(),
                    },
                    path: PathBuf::new(),
                    category: shown.name.to_owned(),
                    kind: if is_named { Kind::Known } else { Kind::Novel },
                    score: Score {
                        similarity,
                        margin,
                        probability: shown.probability,
                        unsure: shown.unsure,
                    },
                    scene: item.scene.and_then(|scene| usize::try_from(scene).ok()),
                };
                each(item, Some(row), features.row(at))?;
            }
            Ok(())
        })
    }

    /// Saves what can be read of a damaged collection into a folder: `items.csv`, and `features.parquet` with groups as labels.
    pub fn salvage(collection: &Path, folder: &Path) -> Result<SalvageOutcome, Error> {
        let store = Store::open(collection, false)?;
        let made = genus::Folder::create(folder, genus::Purpose::Results)?;
        let (items, damaged) = store::salvage(&store);
        let groups = Groups::read(&store).ok();
        let mut outcome = SalvageOutcome {
            folder: folder.to_owned(),
            items: items.len() as u64,
            damaged,
            ..SalvageOutcome::default()
        };
        let mut table = csv::Writer::from_writer(Vec::new());
        let failed = |e: csv::Error| Error::Io {
            path: folder.join("items.csv"),
            source: e.into(),
        };
        table
            .write_record(["number", "id", "path", "category", "kind"])
            .map_err(failed)?;
        let mut writer: Option<FeatureWriter> = None;
        for item in &items {
            let whole = item.group.and_then(|group| groups.as_ref()?.resolve(group));
            let category = match (whole, &groups) {
                (Some(whole), Some(groups)) => groups.name(whole),
                _ => item.group.map_or_else(String::new, |group| format!("#{group}")),
            };
            let name = item.name.clone().unwrap_or_default();
            let kind = match (item.is_noise(), item.is_in_group()) {
                (true, _) => "noise",
                (_, true) => "in",
                _ => "unsure",
            };
            let path = item
                .path
                .as_ref()
                .map_or_else(String::new, |path| path.display().to_string());
            table
                .write_record([&item.id.to_string(), &name, &path, &category, kind])
                .map_err(failed)?;
            let Some(features) = &item.features else { continue };
            let row: Vec<f32> = features.iter().map(|value| value.to_f32()).collect();
            if row.iter().any(|value| !value.is_finite()) || row.iter().all(|value| *value == 0.0) {
                continue;
            }
            let writer = match &mut writer {
                Some(writer) => writer,
                None => {
                    let encoder = store.meta("encoder").ok().flatten();
                    let path = folder.join("features.parquet");
                    writer.insert(FeatureWriter::create_own(&path, row.len(), encoder.as_deref(), true)?)
                }
            };
            let label = (item.is_in_group() && !category.is_empty()).then_some(category);
            // A row of another width is one more that is damaged.
            match writer.write(&[format!("#{} {name}", item.id)], &[label], &row) {
                Ok(()) => outcome.with_features += 1,
                Err(_) => outcome.damaged += 1,
            }
        }
        if let Some(writer) = writer {
            writer.finish()?;
        }
        let bytes = table.into_inner().map_err(|e| Error::Io {
            path: folder.join("items.csv"),
            source: e.into_error(),
        })?;
        whole_file(&folder.join("items.csv"), &bytes)?;
        made.keep();
        Ok(outcome)
    }
}

/// The file of an item, if it is there: where it was seen or, of an item that came without one, what its name says. Names come from
/// tables and over the network, so they lead out of the current folder only where that is allowed.
fn file_of(item: &ItemInfo, allow_outside: bool) -> Result<Option<PathBuf>, Error> {
    if let Some(path) = &item.path {
        return Ok(path.is_file().then(|| path.clone()));
    }
    let path = PathBuf::from(&item.name);
    if !path.is_file() {
        return Ok(None);
    }
    let here = Path::new(".").canonicalize();
    // Where it leads in the end.
    let is_inside = here.is_ok_and(|here| path.canonicalize().is_ok_and(|end| end.starts_with(here)));
    match is_inside || allow_outside {
        true => Ok(Some(path)),
        false => Err(Error::FileOutside {
            item: item.name.clone(),
            path,
        }),
    }
}

/// The groups as a table.
fn write_groups(folder: &Path, groups: &[GroupInfo]) -> Result<(), Error> {
    let path = folder.join("groups.csv");
    let failed = |source: std::io::Error| Error::Io {
        path: path.clone(),
        source,
    };
    let mut table = csv::Writer::from_writer(Vec::new());
    let header = ["number", "name", "kind", "items", "confirmed", "waiting", "parent"];
    table.write_record(header).map_err(|e| failed(e.into()))?;
    for group in groups {
        let kind = match (group.holds_groups, group.named) {
            (true, _) => "groups",
            (_, true) => "known",
            _ => "new",
        };
        let record = [
            group.id.to_string(),
            group.name.clone(),
            kind.to_owned(),
            group.items.to_string(),
            group.confirmed.to_string(),
            group.guessed.to_string(),
            group.parent_name.clone().unwrap_or_default(),
        ];
        table.write_record(record).map_err(|e| failed(e.into()))?;
    }
    let bytes = table.into_inner().map_err(|e| failed(e.into_error()))?;
    whole_file(&path, &bytes)
}

fn whole_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file = AtomicFile::create_own(path)?;
    file.append(bytes)?;
    Ok(file.commit()?)
}

/// The model as a taxonomy with the names of the groups, those that people gave first.
pub(crate) fn named(model: &Model, groups: &Groups, infos: &[GroupInfo]) -> Result<Taxonomy, Error> {
    let is_named = |at: usize| groups.all[&model.groups[at]].named;
    let mut order: Vec<usize> = (0..model.groups.len()).collect();
    order.sort_by_key(|&at| !is_named(at));
    let members = model.taxonomy.members();
    let sizes: BTreeMap<GroupId, u64> = infos.iter().map(|info| (info.id, info.items)).collect();
    let entries = order.iter().map(|&at| TaxonomyEntry {
        name: groups.name(model.groups[at]),
        kind: if is_named(at) { Kind::Known } else { Kind::Novel },
        items: sizes.get(&model.groups[at]).copied().unwrap_or(0),
    });
    let centres: Features = model.taxonomy.centres().select(&order);
    let mut taxonomy = Taxonomy::from_parts(entries.collect(), centres)?;
    if let Some(calibration) = model.taxonomy.calibration() {
        let members = order.iter().map(|&at| members[at]).collect();
        taxonomy = taxonomy.with_calibration(calibration.clone(), members)?;
        if let Some(familiar) = model.taxonomy.familiar() {
            taxonomy = taxonomy.with_familiar(familiar)?;
        }
    }
    Ok(taxonomy)
}
