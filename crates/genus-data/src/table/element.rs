//! The numbers that binary files hold, and their way to `f32`.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// A type of number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Bf16,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

/// A type of number and its byte order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) number: Number,
    pub(super) big_endian: bool,
}

impl Element {
    /// Bytes an element.
    pub(super) fn size(self) -> usize {
        match self.number {
            Number::I8 | Number::U8 => 1,
            Number::Bf16 | Number::F16 | Number::I16 | Number::U16 => 2,
            Number::F32 | Number::I32 | Number::U32 => 4,
            Number::F64 | Number::I64 | Number::U64 => 8,
        }
    }

    /// Appends whole elements as `f32`, rounding to nearest; what is too large becomes infinite.
    pub(super) fn decode(self, bytes: &[u8], values: &mut Vec<f32>) {
        match self.number {
            Number::F32 => self.extend(bytes, values, f32::from_le_bytes),
            Number::F64 => self.extend(bytes, values, |b| f64::from_le_bytes(b) as f32),
            Number::F16 => {
                let mut halves = Vec::new();
                self.extend(bytes, &mut halves, f16::from_le_bytes);
                append_f16(&halves, values);
            }
            Number::Bf16 => self.extend(bytes, values, |b| bf16::from_le_bytes(b).to_f32()),
            Number::I8 => self.extend(bytes, values, |b| i8::from_le_bytes(b) as f32),
            Number::I16 => self.extend(bytes, values, |b| i16::from_le_bytes(b) as f32),
            Number::I32 => self.extend(bytes, values, |b| i32::from_le_bytes(b) as f32),
            Number::I64 => self.extend(bytes, values, |b| i64::from_le_bytes(b) as f32),
            Number::U8 => self.extend(bytes, values, |b| u8::from_le_bytes(b) as f32),
            Number::U16 => self.extend(bytes, values, |b| u16::from_le_bytes(b) as f32),
            Number::U32 => self.extend(bytes, values, |b| u32::from_le_bytes(b) as f32),
            Number::U64 => self.extend(bytes, values, |b| u64::from_le_bytes(b) as f32),
        }
    }

    /// The elements as integers, or `None` when they are floats.
    pub(super) fn decode_integers(self, bytes: &[u8]) -> Option<Vec<i128>> {
        let mut integers = Vec::with_capacity(bytes.len() / self.size());
        match self.number {
            Number::Bf16 | Number::F16 | Number::F32 | Number::F64 => return None,
            Number::I8 => self.extend(bytes, &mut integers, |b| i8::from_le_bytes(b).into()),
            Number::I16 => self.extend(bytes, &mut integers, |b| i16::from_le_bytes(b).into()),
            Number::I32 => self.extend(bytes, &mut integers, |b| i32::from_le_bytes(b).into()),
            Number::I64 => self.extend(bytes, &mut integers, |b| i64::from_le_bytes(b).into()),
            Number::U8 => self.extend(bytes, &mut integers, |b| u8::from_le_bytes(b).into()),
            Number::U16 => self.extend(bytes, &mut integers, |b| u16::from_le_bytes(b).into()),
            Number::U32 => self.extend(bytes, &mut integers, |b| u32::from_le_bytes(b).into()),
            Number::U64 => self.extend(bytes, &mut integers, |b| u64::from_le_bytes(b).into()),
        }
        Some(integers)
    }

    fn extend<const N: usize, T>(self, bytes: &[u8], to: &mut Vec<T>, from_le: impl Fn([u8; N]) -> T) {
        let (elements, _) = bytes.as_chunks::<N>();
        if self.big_endian {
            to.extend(elements.iter().map(|&element| {
                let mut element = element;
                element.reverse();
                from_le(element)
            }));
        } else {
            to.extend(elements.iter().map(|&element| from_le(element)));
        }
    }
}

/// Appends halves as `f32` with the processor's own conversion where it has one.
pub(super) fn append_f16(halves: &[f16], values: &mut Vec<f32>) {
    let start = values.len();
    values.resize(start + halves.len(), 0.0);
    halves.convert_to_f32_slice(&mut values[start..]);
}
