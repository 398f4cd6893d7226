//! Storages, and the tensors that are views into them.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::rc::Rc;

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::Tensor;
use super::problem::Problem;

/// How much more memory and work than its own length a file may ask for. Tied weights count once for every name,
/// 16-bit floats double, and honest files stay below six.
const MAX_GROWTH: u64 = 16;
/// What every file may ask for, however short.
const FREE: u64 = 1 << 20;
/// The bytes that are read and converted at a time: they stay in the second-level cache.
const CHUNK: usize = 1 << 18;

/// The type of a storage's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dtype {
    F16,
    BF16,
    F32,
    F64,
    /// Weights of 8 bits, whose scales are a tensor of their own.
    I8,
    /// Integers and truth values of so many bytes: never weights.
    Integer(u8),
    /// What has no plain values, and the bytes of one element.
    Other(&'static str, u8),
}

impl Dtype {
    pub(super) fn size(self) -> u64 {
        match self {
            Self::I8 => 1,
            Self::F16 | Self::BF16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
            Self::Integer(size) | Self::Other(_, size) => u64::from(size),
        }
    }
}

/// A tensor as a window on a storage.
#[derive(Clone, Debug)]
pub(super) struct TensorView {
    pub(super) key: Rc<str>,
    pub(super) dtype: Dtype,
    /// The elements of the storage.
    pub(super) length: u64,
    /// The element at which the tensor begins.
    pub(super) offset: u64,
    pub(super) shape: Vec<u64>,
    pub(super) strides: Vec<u64>,
}

impl TensorView {
    /// The number of values, if all of them lie in the storage.
    fn count(&self) -> Option<u64> {
        if self.shape.len() != self.strides.len() {
            return None;
        }
        if self.shape.contains(&0) {
            return Some(0);
        }
        let mut count = 1_u64;
        let mut last = self.offset;
        for (&length, &stride) in self.shape.iter().zip(&self.strides) {
            count = count.checked_mul(length)?;
            last = last.checked_add((length - 1).checked_mul(stride)?)?;
        }
        (last < self.length).then_some(count)
    }

    /// Whether the values follow each other in the storage.
    fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        self.shape.iter().zip(&self.strides).rev().all(|(&length, &stride)| {
            let fits = length == 1 || stride == expected;
            // Cannot overflow where `count` did not.
            expected = expected.saturating_mul(length);
            fits
        })
    }

    /// Collects the values of the view from the values of its whole storage.
    fn gather(&self, storage: &[f32], count: usize) -> Vec<f32> {
        let mut values = Vec::with_capacity(count);
        let dims: Vec<(usize, usize)> = self
            .shape
            .iter()
            .zip(&self.strides)
            .map(|(&n, &s)| (n as usize, s as usize))
            .collect();
        let (outer, inner) = dims.split_at(dims.len().saturating_sub(1));
        let (length, stride) = inner.first().copied().unwrap_or((1, 1));
        let mut start = self.offset as usize;
        let mut position = vec![0; outer.len()];
        while values.len() < count {
            if stride == 1 {
                values.extend_from_slice(&storage[start..start + length]);
            } else {
                values.extend((0..length).map(|i| storage[start + i * stride]));
            }
            for (at, &(length, stride)) in position.iter_mut().zip(outer).rev() {
                *at += 1;
                start += stride;
                if *at < length {
                    break;
                }
                start -= stride * length;
                *at = 0;
            }
        }
        values
    }
}

/// A tensor that is looked for by name.
#[derive(Debug)]
pub(super) enum TensorEntry {
    Floats(TensorView),
    /// What it is instead.
    Unsupported(&'static str),
}

impl TensorEntry {
    /// Nothing for a tensor of integers, which is a counter.
    pub(super) fn of(view: TensorView) -> Option<Self> {
        match view.dtype {
            Dtype::Integer(_) => None,
            Dtype::Other(kind, _) => Some(TensorEntry::Unsupported(kind)),
            _ => Some(TensorEntry::Floats(view)),
        }
    }
}

/// A container's storages by key.
pub(super) trait StorageSource {
    /// The number of a storage's bytes, which the container has compared with its own length, and the bytes.
    fn open(&mut self, key: &str) -> Result<(u64, Box<dyn Read + '_>), Problem>;

    /// Whether numbers have their highest byte first.
    fn big_endian(&self) -> bool {
        false
    }
}

/// A view with its name and the number of its values.
struct NamedView {
    name: String,
    view: TensorView,
    count: u64,
}

/// Reads the tensors of all views, each storage once and one after the other.
pub(super) fn read_tensors(
    views: BTreeMap<String, TensorView>,
    source: &mut dyn StorageSource,
    file_length: u64,
) -> Result<BTreeMap<String, Tensor>, Problem> {
    let allowed = file_length.saturating_mul(MAX_GROWTH).saturating_add(FREE);
    // Beyond this no length is one of memory.
    let mut budget = ByteBudget(allowed.min(isize::MAX as u64));
    let mut tensors = BTreeMap::new();
    let mut storages: BTreeMap<(Rc<str>, Dtype), Vec<NamedView>> = BTreeMap::new();
    for (name, view) in views {
        let Some(count) = view.count() else {
            let problem = format!(
                "tensor {name:?} of shape {:?} reaches outside of its storage",
                view.shape
            );
            return Err(Problem::Malformed(problem));
        };
        budget.spend(count, 4)?;
        if count == 0 {
            tensors.insert(name, tensor(&view, Vec::new())?);
            continue;
        }
        let group = storages.entry((Rc::clone(&view.key), view.dtype)).or_default();
        group.push(NamedView { name, view, count });
    }
    let big_endian = source.big_endian();
    let mut buffer = vec![0; CHUNK];
    for ((key, dtype), mut group) in storages {
        let (bytes, reader) = source.open(&key)?;
        for NamedView { name, view, .. } in &group {
            if view.length.checked_mul(dtype.size()) != Some(bytes) {
                return Err(Problem::Malformed(format!(
                    "tensor {name:?} expects a storage of {} elements of {} bytes where {bytes} bytes are",
                    view.length,
                    dtype.size()
                )));
            }
        }
        budget.spend(bytes, 1)?;
        let mut stream = ValueReader {
            reader,
            dtype,
            big_endian,
            buffer: &mut buffer,
        };
        group.sort_by_key(|named| named.view.offset);
        let apart = group
            .windows(2)
            .all(|pair| pair[0].view.offset + pair[0].count <= pair[1].view.offset);
        if apart && group.iter().all(|named| named.view.is_contiguous()) {
            let mut position = 0;
            for NamedView { name, view, count } in group {
                stream.skip(view.offset - position)?;
                position = view.offset + count;
                let values = stream.values(count, Some(&name))?;
                tensors.insert(name, tensor(&view, values)?);
            }
        } else {
            let length = bytes / dtype.size();
            budget.spend(length, 4)?;
            let all = stream.values(length, None)?;
            for NamedView { name, view, count } in group {
                let values = view.gather(&all, count as usize);
                if !all_finite(&values) {
                    return Err(Problem::NotFinite(name));
                }
                tensors.insert(name, tensor(&view, values)?);
            }
        }
        // To the end, where containers with checksums compare them.
        stream.finish()?;
    }
    Ok(tensors)
}

fn tensor(view: &TensorView, values: Vec<f32>) -> Result<Tensor, Problem> {
    let shape = view.shape.iter().map(|&length| usize::try_from(length));
    let shape = shape.collect::<Result<_, _>>();
    let shape = shape.map_err(|_| Problem::TooLarge("a tensor's shape is beyond this machine's memory".to_owned()))?;
    Ok(Tensor { shape, values })
}

/// What may still be allocated and read.
struct ByteBudget(u64);

impl ByteBudget {
    fn spend(&mut self, count: u64, size: u64) -> Result<(), Problem> {
        let left = count.checked_mul(size).and_then(|bytes| self.0.checked_sub(bytes));
        self.0 = left.ok_or_else(|| {
            Problem::TooLarge(format!(
                "its tensors grow to over {MAX_GROWTH} times the length of the file"
            ))
        })?;
        Ok(())
    }
}

/// The bytes of a storage on their way to 32-bit floats.
struct ValueReader<'a> {
    reader: Box<dyn Read + 'a>,
    dtype: Dtype,
    big_endian: bool,
    buffer: &'a mut [u8],
}

impl ValueReader<'_> {
    fn skip(&mut self, count: u64) -> Result<(), Problem> {
        let bytes = count * self.dtype.size();
        let skipped = io::copy(&mut (&mut self.reader).take(bytes), &mut io::sink())?;
        match skipped == bytes {
            true => Ok(()),
            false => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }

    /// The next values; those of a named tensor must be finite.
    fn values(&mut self, count: u64, name: Option<&str>) -> Result<Vec<f32>, Problem> {
        let size = self.dtype.size() as usize;
        let mut values = Vec::with_capacity(count as usize);
        let mut left = count as usize;
        while left > 0 {
            let now = left.min(self.buffer.len() / size);
            let bytes = &mut self.buffer[..now * size];
            self.reader.read_exact(bytes)?;
            if self.big_endian {
                bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
            }
            convert(self.dtype, bytes, &mut values);
            if let Some(name) = name
                && !all_finite(&values[values.len() - now..])
            {
                return Err(Problem::NotFinite(name.to_owned()));
            }
            left -= now;
        }
        Ok(values)
    }

    fn finish(mut self) -> Result<(), Problem> {
        while self.reader.read(self.buffer)? > 0 {}
        Ok(())
    }
}

/// Appends little-endian elements as 32-bit floats.
fn convert(dtype: Dtype, bytes: &[u8], values: &mut Vec<f32>) {
    match dtype {
        Dtype::I8 => values.extend(bytes.iter().map(|&byte| f32::from(byte.cast_signed()))),
        Dtype::F32 => values.extend(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b))),
        Dtype::F64 => values.extend(bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b) as f32)),
        Dtype::BF16 => {
            let bits = bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b));
            values.extend(bits.map(|b| f32::from_bits(u32::from(b) << 16)));
        }
        Dtype::F16 => {
            // In pieces through the processor's own instructions, where it has them.
            let mut halves = [f16::ZERO; 512];
            for bytes in bytes.chunks(2 * halves.len()) {
                let halves = &mut halves[..bytes.len() / 2];
                for (half, b) in halves.iter_mut().zip(bytes.as_chunks().0) {
                    *half = f16::from_le_bytes(*b);
                }
                let start = values.len();
                values.resize(start + halves.len(), 0.0);
                halves.convert_to_f32_slice(&mut values[start..]);
            }
        }
        // Views of these are never read.
        Dtype::Integer(_) | Dtype::Other(..) => {}
    }
}

/// Without an early end, so that the compiler may take many values at a time.
fn all_finite(values: &[f32]) -> bool {
    values.iter().fold(true, |all, v| all & v.is_finite())
}
