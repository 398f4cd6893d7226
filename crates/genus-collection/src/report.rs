//! One page that shows a collection: its groups with their names, what waits, the map, and what was done.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use genus::{Counts, ImageOptions, Length, Progress, ReportSource, begin_page, describe, illustrate};
use genus_core::{Assignment, Score, Stop, Support, Task};
use genus_data::ImageItem;
use genus_report::{HistoryEntry, Provenance};

use crate::collection::{Collection, Groups, ItemInfo};
use crate::error::Error;
use crate::export::named;
use crate::knowledge::{Model, spread};
use crate::model::{GroupId, ItemId};

/// Items that are shown.
const SHOWN: usize = 5_000;
/// Entries of the log that are shown.
const ENTRIES: usize = 200;

impl Collection {
    /// Writes `report.html` into a folder: one page that stands alone. `tell` says an entry of the log in words, and when it was;
    /// `tell_asked` does the same for a question and its answer.
    pub fn report(
        &self,
        folder: &Path,
        tell: impl Fn(&crate::Entry) -> (String, String),
        tell_asked: impl Fn(&crate::Asked) -> genus_report::Asked,
        progress: &dyn Progress,
    ) -> Result<PathBuf, Error> {
        let made = genus::Folder::create(folder, genus::Purpose::Results)?;
        let dim = self.dim()?.ok_or(Error::Nothing)?;
        let report = self.store.snapshot(|store| {
            let groups = Groups::read(store)?;
            let model = Model::load(store, &groups, dim)?.ok_or(Error::Nothing)?;
            let taxonomy = named(&model, &groups, &self.groups()?)?;
            let number: BTreeMap<&str, usize> = taxonomy
                .entries()
                .iter()
                .enumerate()
                .map(|(at, entry)| (entry.name.as_str(), at))
                .collect();
            let category = |item: &ItemInfo| -> Option<(usize, GroupId, Score)> {
                let shown = item.state.shown()?;
                let score = Score {
                    similarity: 0.0,
                    margin: 0.0,
                    probability: shown.probability,
                    unsure: shown.unsure,
                };
                Some((*number.get(shown.name)?, shown.group?, score))
            };
            let mut counts = Counts::new(&taxonomy);
            let mut all: Vec<ItemInfo> = Vec::new();
            self.for_each_block(|block| {
                for item in block {
                    if let Some((at, _, score)) = category(&item) {
                        counts.items[at] += 1;
                        counts.unsure[at] += u64::from(score.unsure);
                        counts.judged = true;
                        all.push(item);
                    }
                }
                Ok(())
            })?;
            let chosen: Vec<usize> = spread(&(0..all.len()).collect::<Vec<_>>(), SHOWN);
            let shown: Vec<&ItemInfo> = chosen.iter().map(|&at| &all[at]).collect();
            let ids: Vec<ItemId> = shown.iter().map(|item| item.id).collect();
            if ids.is_empty() {
                return Err(Error::Nothing);
            }
            let features = store.features(&ids, dim)?;
            let cosines = model.cosines(&features);
            let mut assignments = Vec::new();
            for (row, item) in shown.iter().enumerate() {
                if let Some((at, group, mut score)) = category(item) {
                    (score.similarity, score.margin) = model.fit(&cosines, row, group).unwrap_or((0.0, 0.0));
                    assignments.push(Assignment { category: at, score });
                }
            }
            let names: Vec<String> = shown.iter().map(|item| item.name.clone()).collect();
            let task = Task::new(&Support::none(dim), features)?;
            progress.start("drawing the map", Length::Unknown);
            let mut report = describe(&ReportSource {
                task: &task,
                taxonomy: &taxonomy,
                counts: &counts,
                stop: Stop::Direct,
                assignments: &assignments,
                scenes: None,
                ids: &names,
                examples: &[],
                truths: None,
                seed: self.seed()?,
            });
            progress.end();
            let images: Vec<ImageItem> = shown
                .iter()
                .filter_map(|item| {
                    Some(ImageItem {
                        id: item.name.clone(),
                        path: item.path.clone()?,
                        label: None,
                        pixels: None,
                    })
                })
                .collect();
            illustrate(&mut report, &images, &[], &ImageOptions::default().limits, progress)?;
            let origin = self.origin()?;
            let status = self.status()?;
            report.title = self
                .folder()
                .file_name()
                .map_or_else(|| "collection".to_owned(), |name| name.to_string_lossy().into_owned());
            report.made = Provenance {
                method: "collection".to_owned(),
                how: format!(
                    "a collection of {} items, {} of them confirmed by people; {} wait, {} are noise",
                    status.items, status.confirmed, status.waiting, status.noise
                ),
                encoder: origin.images.map(|images| images.encoder).or(origin.encoder),
                seed: origin.seed,
                seconds: 0.0,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            };
            report.asked = self.asked(ENTRIES)?.iter().map(tell_asked).collect();
            let parents: BTreeMap<String, Option<String>> = self
                .groups()?
                .into_iter()
                .map(|group| (group.name, group.parent_name))
                .collect();
            for (category, entry) in report.categories.iter_mut().zip(taxonomy.entries()) {
                category.parent = parents.get(&entry.name).cloned().flatten();
            }
            report.history = self
                .log(None, ENTRIES)?
                .iter()
                .map(|entry| {
                    let (when, what) = tell(entry);
                    HistoryEntry {
                        when,
                        who: entry.author.clone(),
                        what,
                    }
                })
                .collect();
            Ok(report)
        })?;
        let page = begin_page(&report, folder)?;
        let path = page.path().to_owned();
        page.commit()?;
        made.keep();
        Ok(path)
    }
}
