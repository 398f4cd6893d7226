//! The encoder's mark: a line of text in a feature file that says which encoder made its features.

use std::path::Path;

use super::source::FileOrigin;
use crate::error::{DataError, FilePosition};

/// The mark that a text means; an empty one says nothing.
pub(super) fn from_text(text: String) -> Option<String> {
    (!text.trim().is_empty()).then_some(text)
}

/// Compares a row's mark with that of the rows before it.
pub(super) fn agree(
    origin: &FileOrigin,
    place: FilePosition,
    before: Option<&str>,
    this: Option<&str>,
) -> Result<(), DataError> {
    if before == this {
        return Ok(());
    }
    let quoted = |mark: Option<&str>| mark.map_or("no encoder".to_owned(), |mark| format!("\"{mark}\""));
    Err(origin.row(
        place,
        format!(
            "the row is of {} where the rows before are of {}; keep the features of one encoder in one file",
            quoted(this),
            quoted(before)
        ),
    ))
}

/// Checks that the features of two files can be compared: that one encoder made both, as far as the files say.
pub fn same_encoder(a: (&Path, Option<&str>), b: (&Path, Option<&str>)) -> Result<(), DataError> {
    match (a, b) {
        ((first, Some(first_encoder)), (second, Some(second_encoder))) if first_encoder != second_encoder => {
            Err(DataError::Encoders {
                first: first.to_owned(),
                first_encoder: first_encoder.to_owned(),
                second: second.to_owned(),
                second_encoder: second_encoder.to_owned(),
            })
        }
        _ => Ok(()),
    }
}
