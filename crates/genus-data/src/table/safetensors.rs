//! The safetensors format: a JSON header and the tensors behind it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use genus_files::safetensors::read_header;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use super::arrays::{
    Arrangement, Arrays, CLASSES, Column, ENCODER, IDS, Matrix, SideColumns, column_shape, matrix_shape, stream_error,
};
use super::columns::TableOptions;
use super::element::{Element, Number};
use super::encoder;
use super::source::{FileOrigin, TableSource};
use crate::error::DataError;

/// Opens a `.safetensors` file: features and, where it has them, labels; class names and ids as JSON lists, and the
/// encoder as it is, in its metadata.
pub(super) fn open(
    origin: FileOrigin,
    mut file: File,
    options: &TableOptions,
) -> Result<Box<dyn TableSource>, DataError> {
    let (metadata, data_start) = header(&origin, &mut file)?;
    // Ids are no tensor, so nobody names one.
    let options = TableOptions {
        id: None,
        ..options.clone()
    };
    let tensors = Arrangement::of(&origin, "tensor", &metadata.offset_keys(), &options)?;
    let x = &tensors.features;
    let Some(info) = metadata.info(x) else {
        return Err(origin.malformed(format!("no tensor \"{x}\"")));
    };
    let (rows, dim) = matrix_shape(&origin, &format!("\"{x}\""), &shape(info))?;
    let element = element(info.dtype).ok_or_else(|| wrong_type(&origin, x, info, "F16, BF16, F32 or F64"))?;
    let bytes = Box::new(tensor_bytes(&origin, data_start, info)?);
    let matrix = Matrix {
        rows,
        dim,
        element,
        bytes,
        columns_first: false,
    };

    let y = tensors
        .labels
        .as_deref()
        .and_then(|name| Some((name, metadata.info(name)?)));
    let labels = y
        .map(|(name, info)| read_integers(&origin, data_start, name, info, rows))
        .transpose()?;
    let list = |key: &str| -> Result<Option<Vec<String>>, DataError> {
        let Some(json) = metadata.metadata().as_ref().and_then(|map| map.get(key)) else {
            return Ok(None);
        };
        serde_json::from_str(json).map(Some).map_err(|e| {
            origin.malformed(format!(
                "\"{key}\" in the metadata is not a JSON list of texts ({e}); write it with json.dumps"
            ))
        })
    };
    let ids = list(IDS)?;
    if let Some(ids) = &ids {
        column_shape(&origin, IDS, &[ids.len() as u64], rows)?;
    }
    let classes = list(CLASSES)?;
    let encoder = metadata.metadata().as_ref().and_then(|map| map.get(ENCODER));
    let beside = SideColumns {
        ids: ids.map(Column::Texts),
        labels: labels.map(Column::Integers),
        classes,
        encoder: encoder.cloned().and_then(encoder::from_text),
    };
    Arrays::open(origin, matrix, beside)
}

/// Reads the header and gives the position of the tensors.
fn header(origin: &FileOrigin, file: &mut File) -> Result<(Metadata, u64), DataError> {
    let length = file.metadata().map_err(|e| origin.io(e))?.len();
    read_header(file, length).map_err(|e| {
        origin.format(e, |problem| {
            format!("not a readable safetensors file: {problem}; it was cut off or is damaged, write it again")
        })
    })
}

/// The bytes of one tensor, from a handle of their own.
fn tensor_bytes(
    origin: &FileOrigin,
    data_start: u64,
    info: &TensorInfo,
) -> Result<impl Read + Send + use<>, DataError> {
    let (start, end) = info.data_offsets;
    let mut file = File::open(origin.file()).map_err(|e| origin.io(e))?;
    file.seek(SeekFrom::Start(data_start + start as u64))
        .map_err(|e| origin.io(e))?;
    Ok(file.take((end - start) as u64))
}

fn read_integers(
    origin: &FileOrigin,
    data_start: u64,
    name: &str,
    info: &TensorInfo,
    rows: u64,
) -> Result<Vec<i128>, DataError> {
    column_shape(origin, name, &shape(info), rows)?;
    let mut bytes = Vec::new();
    tensor_bytes(origin, data_start, info)?
        .read_to_end(&mut bytes)
        .map_err(|e| stream_error(origin, e))?;
    let integers = element(info.dtype).and_then(|element| element.decode_integers(&bytes));
    let integers = integers.ok_or_else(|| wrong_type(origin, name, info, "integers"))?;
    column_shape(origin, name, &[integers.len() as u64], rows)?;
    Ok(integers)
}

fn shape(info: &TensorInfo) -> Vec<u64> {
    info.shape.iter().map(|&n| n as u64).collect()
}

fn wrong_type(origin: &FileOrigin, name: &str, info: &TensorInfo, needed: &str) -> DataError {
    origin.malformed(format!(
        "tensor \"{name}\" holds {:?} where {needed} are needed; convert it",
        info.dtype
    ))
}

fn element(dtype: Dtype) -> Option<Element> {
    let number = match dtype {
        Dtype::BF16 => Number::Bf16,
        Dtype::F16 => Number::F16,
        Dtype::F32 => Number::F32,
        Dtype::F64 => Number::F64,
        Dtype::I8 => Number::I8,
        Dtype::I16 => Number::I16,
        Dtype::I32 => Number::I32,
        Dtype::I64 => Number::I64,
        Dtype::U8 | Dtype::BOOL => Number::U8,
        Dtype::U16 => Number::U16,
        Dtype::U32 => Number::U32,
        Dtype::U64 => Number::U64,
        _ => return None,
    };
    Some(Element {
        number,
        big_endian: false,
    })
}
