//! `genus assign --grow`: a taxonomy that grows with the items.

use std::path::Path;

use genus_core::{Assignment, Place, Stream, TaskError, Taxonomy};
use genus_data::{Origin, write_taxonomy};

use crate::blocks;
use crate::failure::Failure;
use crate::output::{Folder, Sink};
use crate::progress::Bar;

/// Observes the items of a file in their order, writes where each is in the end, and the grown taxonomy into a folder.
pub(crate) fn run(
    taxonomy: Taxonomy,
    folder: &Path,
    items: &Path,
    made: &Origin,
    sink: &mut Sink,
    bar: &Bar,
) -> Result<Taxonomy, Failure> {
    let mut stream = Stream::new(taxonomy).map_err(|e| Failure::failed(format!("--grow: {e}")))?;
    let kept = Folder::create(folder)?;
    let mut ids = Vec::new();
    let mut places: Vec<Assignment> = Vec::new();
    blocks::for_each(items, |block| {
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
    write_taxonomy(folder, &grown, made)?;
    kept.keep();
    Ok(grown)
}

/// Notes where items are now.
fn settle(places: &mut [Assignment], settled: impl IntoIterator<Item = (u64, Assignment)>) {
    for (number, place) in settled {
        places[number as usize] = place;
    }
}

/// The same error with the row of the file that it is about.
fn in_row(error: TaskError, row: usize) -> TaskError {
    use genus_core::FeatureError::{NotFinite, ZeroRow};
    match error {
        TaskError::Queries(ZeroRow { .. }) => TaskError::Queries(ZeroRow { row }),
        TaskError::Queries(NotFinite { column, value, .. }) => TaskError::Queries(NotFinite { row, column, value }),
        other => other,
    }
}
