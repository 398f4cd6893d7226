//! The safetensors container: a JSON header and the tensors behind it.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Seek};
use std::rc::Rc;

use ::safetensors::Dtype as Named;
use genus_files::safetensors::read_header;

use super::Weights;
use super::problem::Problem;
use super::select::{finish, scale_of};
use super::storage::{Dtype, StorageSource, TensorEntry, TensorView};

pub(super) fn read(mut reader: BufReader<impl Read + Seek>, file_length: u64) -> Result<Weights, Problem> {
    let (metadata, start) = read_header(&mut reader, file_length)?;
    let mut ranges = BTreeMap::new();
    let mut leaves = BTreeMap::new();
    // In the order of names, so that the same file always gives the same error.
    let tensors: BTreeMap<_, _> = metadata.tensors().into_iter().collect();
    for (name, info) in tensors {
        let (from, to) = info.data_offsets;
        let (from, to) = (from as u64, to as u64);
        let shape: Vec<u64> = info.shape.iter().map(|&length| length as u64).collect();
        let mut strides = vec![1_u64; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i].saturating_mul(shape[i]);
        }
        let key: Rc<str> = name.as_str().into();
        ranges.insert(Rc::clone(&key), (start + from, to - from));
        let dtype = match info.dtype {
            Named::I8 if metadata.info(&scale_of(&name)).is_some() => Dtype::I8,
            other => dtype(other),
        };
        let view = TensorView {
            key,
            dtype,
            length: (to - from) / dtype.size(),
            offset: 0,
            shape,
            strides,
        };
        if let Some(leaf) = TensorEntry::of(view) {
            leaves.insert(name, leaf);
        }
    }
    finish(leaves, None, &mut Ranges { reader, ranges }, file_length)
}

/// Storages that lie whole in the file.
pub(super) struct Ranges<R> {
    pub(super) reader: BufReader<R>,
    /// The first byte and the number of bytes by key.
    pub(super) ranges: BTreeMap<Rc<str>, (u64, u64)>,
}

impl<R: Read + Seek> StorageSource for Ranges<R> {
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
