//! The header of a safetensors file.

use std::io::Read;

use ::safetensors::tensor::Metadata;

use crate::FormatError;

/// The longest header that the format allows.
const MAX_HEADER: u64 = 100_000_000;

/// Reads the header and gives the position of the first tensor. All lengths have been compared with the file's.
pub fn read_header(reader: &mut impl Read, file_length: u64) -> Result<(Metadata, u64), FormatError> {
    let mut length = [0; 8];
    reader.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER || length > file_length.saturating_sub(8) {
        return Err(FormatError::Malformed(format!(
            "its header claims {length} bytes of a file of {file_length}"
        )));
    }
    let mut header = Vec::new();
    reader.take(length).read_to_end(&mut header)?;
    let metadata: Metadata = serde_json::from_slice(&header)
        .map_err(|e| FormatError::Malformed(format!("its header is not a safetensors header ({e})")))?;
    let start = 8 + length;
    let tensors = metadata.data_len() as u64;
    if start.checked_add(tensors) != Some(file_length) {
        return Err(FormatError::Malformed(format!(
            "its tensors need {tensors} bytes but {} follow the header",
            file_length.saturating_sub(start)
        )));
    }
    if let Some((name, _)) = metadata.tensors().into_iter().find(|(_, info)| {
        let (from, to) = info.data_offsets;
        from > to || to as u64 > tensors
    }) {
        return Err(FormatError::Malformed(format!(
            "tensor {name:?} reaches beyond the end of the file"
        )));
    }
    Ok((metadata, start))
}
