//! Numbers that begin where a cache line does.

use std::ops::{Deref, DerefMut};

/// The numbers of a cache line.
pub const LINE: usize = 16;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct CacheLine([f32; LINE]);

/// A vector of numbers, a whole number of cache lines and aligned to them: a register is never read out of two lines.
#[derive(Debug, Default)]
pub struct Buffer(Vec<CacheLine>);

impl Buffer {
    /// So many zeros, rounded up to whole lines.
    pub fn zeros(len: usize) -> Self {
        Self(vec![CacheLine([0.0; LINE]); len.div_ceil(LINE)])
    }

    /// Makes room for so many numbers; what is in them is of no account.
    pub fn reserve(&mut self, len: usize) {
        if self.len() < len {
            *self = Self::zeros(len);
        }
    }
}

impl From<&[f32]> for Buffer {
    fn from(values: &[f32]) -> Self {
        let mut buffer = Self::zeros(values.len());
        buffer[..values.len()].copy_from_slice(values);
        buffer
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: a line is sixteen numbers and nothing else (`repr(C)`, 64 bytes long and aligned), so lines one after the other
        // are numbers one after the other, of the same lifetime.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), LINE * self.0.len()) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above; the borrow is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), LINE * self.0.len()) }
    }
}
