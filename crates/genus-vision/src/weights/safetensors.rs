//! The safetensors container: a JSON header and the tensors behind it.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Seek};
use std::rc::Rc;

use ::safetensors::Dtype as Named;
use ::safetensors::tensor::Metadata;

use super::Weights;
use super::problem::Problem;
use super::select::{Leaf, finish};
use super::storage::{Dtype, Source, View};

/// The longest header that the format allows.
const MAX_HEADER: u64 = 100_000_000;

pub(super) fn read(mut reader: BufReader<impl Read + Seek>, file_length: u64) -> Result<Weights, Problem> {
    let mut length = [0; 8];
    reader.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER || length > file_length.saturating_sub(8) {
        return Err(Problem::Malformed(format!(
            "its header claims {length} bytes of a file of {file_length}"
        )));
    }
    let mut header = Vec::new();
    (&mut reader).take(length).read_to_end(&mut header)?;
    let metadata: Metadata = serde_json::from_slice(&header)
        .map_err(|e| Problem::Malformed(format!("its header is not a safetensors header ({e})")))?;
    drop(header);
    let start = 8 + length;
    if start.checked_add(metadata.data_len() as u64) != Some(file_length) {
        return Err(Problem::Malformed(format!(
            "its tensors need {} bytes but {} follow the header",
            metadata.data_len(),
            file_length - start
        )));
    }

    let mut ranges = BTreeMap::new();
    let mut leaves = BTreeMap::new();
    // In the order of names, so that the same file always gives the same error.
    let tensors: BTreeMap<_, _> = metadata.tensors().into_iter().collect();
    for (name, info) in tensors {
        let (from, to) = info.data_offsets;
        let (from, to) = (from as u64, to as u64);
        if from > to || to > file_length - start {
            return Err(Problem::Malformed(format!(
                "tensor {name:?} reaches beyond the end of the file"
            )));
        }
        let leaf = match dtype(info.dtype) {
            Dtype::Integer(_) => continue,
            Dtype::Other(kind, _) => Leaf::Unsupported(kind),
            dtype => {
                let shape: Vec<u64> = info.shape.iter().map(|&length| length as u64).collect();
                let mut strides = vec![1_u64; shape.len()];
                for i in (1..shape.len()).rev() {
                    strides[i - 1] = strides[i].saturating_mul(shape[i]);
                }
                let key: Rc<str> = name.as_str().into();
                ranges.insert(Rc::clone(&key), (start + from, to - from));
                Leaf::Floats(View {
                    key,
                    dtype,
                    length: (to - from) / dtype.size(),
                    offset: 0,
                    shape,
                    strides,
                })
            }
        };
        leaves.insert(name, leaf);
    }
    finish(leaves, None, &mut Ranges { reader, ranges }, file_length)
}

/// Storages that lie whole in the file.
pub(super) struct Ranges<R> {
    pub(super) reader: BufReader<R>,
    /// The first byte and the number of bytes by key.
    pub(super) ranges: BTreeMap<Rc<str>, (u64, u64)>,
}

impl<R: Read + Seek> Source for Ranges<R> {
    fn open(&mut self, key: &str) -> Result<(u64, Box<dyn Read + '_>), Problem> {
        let Some(&(start, length)) = self.ranges.get(key) else {
            return Err(Problem::Malformed(format!("storage {key:?} is missing")));
        };
        go_to(&mut self.reader, start)?;
        Ok((length, Box::new((&mut self.reader).take(length))))
    }
}

/// Moves to a byte of the file. Storages are read roughly in their order and many are small: unlike `seek`, this keeps
/// what was already read.
pub(super) fn go_to(reader: &mut BufReader<impl Read + Seek>, position: u64) -> Result<(), Problem> {
    let here = reader.stream_position()?;
    reader.seek_relative(position.wrapping_sub(here).cast_signed())?;
    Ok(())
}

fn dtype(dtype: Named) -> Dtype {
    match dtype {
        Named::F16 => Dtype::F16,
        Named::BF16 => Dtype::BF16,
        Named::F32 => Dtype::F32,
        Named::F64 => Dtype::F64,
        Named::BOOL | Named::U8 | Named::I8 => Dtype::Integer(1),
        Named::U16 | Named::I16 => Dtype::Integer(2),
        Named::U32 | Named::I32 => Dtype::Integer(4),
        Named::U64 | Named::I64 => Dtype::Integer(8),
        Named::C64 => Dtype::Other("of complex numbers", 8),
        _ => Dtype::Other("of floats of less than 16 bits", 1),
    }
}
