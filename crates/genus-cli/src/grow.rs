//! `genus assign --grow`: a taxonomy that grows with the items.

use std::path::Path;

use genus_core::{Assignment, FeatureError, Place, Stream, TaskError, Taxonomy};
use genus_data::{Origin, write_taxonomy};

use crate::blocks;
use crate::failure::Failure;
use crate::images::Input;
use crate::output::{Folder, Sink};
use crate::progress::Bar;

/// A taxonomy that is to grow, and the folder that it goes into.
pub(crate) struct Growth {
    stream: Stream,
    folder: Folder,
}

impl Growth {
    pub(crate) fn new(taxonomy: Taxonomy, folder: &Path) -> Result<Self, Failure> {
        let way_out = "or give one with --calibration";
        Ok(Self {
            stream: Stream::new(taxonomy).map_err(|e| Failure::failed(format!("--grow: {e}, {way_out}")))?,
            folder: Folder::create(folder, "--grow")?,
        })
    }

    /// Observes the items of a file in their order and writes where each is in the end, and the grown taxonomy. The
    /// categories, with the numbers of these items.
    pub(crate) fn run(self, items: &Input, made: &Origin, sink: &mut Sink, bar: &Bar) -> Result<Taxonomy, Failure> {
        let Self { mut stream, folder } = self;
        let mut ids = Vec::new();
        let mut places: Vec<Assignment> = Vec::new();
        blocks::for_each(items.path(), |block| {
            for item in block.features.iter() {
                let observation = stream.observe(item).map_err(|e| in_row(e, places.len()))?;
                let (Place::Joined(place) | Place::Waiting(place)) = observation.place;
                places.push(place);
                settle(&mut places, observation.settled);
                settle(&mut places, observation.given_up);
            }
            bar.add(block.len() as u64);
            ids.extend(block.ids);
            Ok(())
        })?;
        settle(&mut places, stream.review());
        settle(&mut places, stream.waiting());
        let grown = stream.taxonomy();
        sink.write(&ids, &places, &grown)?;
        sink.plan(items)?;
        write_taxonomy(folder.path(), &grown, made)?;
        folder.keep();
        let mut counts = vec![0; grown.entries().len()];
        places.iter().for_each(|place| counts[place.category] += 1);
        Ok(grown.with_items(&counts))
    }
}

/// Notes where items are now.
fn settle(places: &mut [Assignment], settled: impl IntoIterator<Item = (u64, Assignment)>) {
    for (number, place) in settled {
        places[number as usize] = place;
    }
}

/// The same error with the row of the file that it is about.
fn in_row(error: TaskError, row: usize) -> TaskError {
    match error {
        TaskError::Queries(FeatureError::ZeroRow { .. }) => TaskError::Queries(FeatureError::ZeroRow { row }),
        other => other,
    }
}
