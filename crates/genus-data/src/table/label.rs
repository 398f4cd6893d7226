//! One rule for labels in every format: a null, an empty text and a negative integer mean that the row is unlabelled;
//! any other integer stands for its class name, or for itself where the file names no classes.

/// The label that a text means.
pub(crate) fn from_text(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The label that a cell means, in a format that cannot tell texts from integers.
pub(crate) fn from_cell(cell: &str) -> Option<String> {
    let negative = cell.trim().starts_with('-') && cell.trim().parse::<i128>().is_ok_and(|n| n < 0);
    (!negative && !cell.trim().is_empty()).then(|| cell.to_owned())
}

/// The label that an integer means in a file that names no classes.
pub(super) fn from_integer(integer: i128) -> Option<String> {
    (integer >= 0).then(|| integer.to_string())
}

/// The label that an integer means in a file that names its classes; an error when there is no such class.
pub(super) fn from_index(index: i128, classes: &[String]) -> Result<Option<String>, ()> {
    if index < 0 {
        return Ok(None);
    }
    let class = usize::try_from(index).ok().and_then(|i| classes.get(i));
    class.map(|name| Some(name.clone())).ok_or(())
}
