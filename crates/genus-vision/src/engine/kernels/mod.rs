//! The engine's arithmetic, and the only `unsafe` code of this crate.
//!
//! What is unsafe here is of two kinds: instructions that not every processor has, and pointers in innermost loops. The first is
//! [`simd::with_simd`]'s alone, which asks the processor before it enters code that was compiled for such instructions. For the
//! second, every function that is visible outside takes slices, asserts that all it is going to touch lies inside them, and
//! only then goes on with pointers. Threads share a result by rows and columns: [`product()`] asserts that its rows do not
//! overlap, and every piece writes its own.
#![allow(unsafe_code)]

mod attention;
mod buffer;
mod depthwise;
mod math;
mod norm;
mod product;
mod simd;
mod tile;

pub(crate) use attention::{Head, Workspace, attend};
pub(crate) use buffer::{Buffer, LINE};
pub(crate) use depthwise::{Depthwise, Square};
pub(crate) use norm::Norm;
pub(crate) use product::{Activation, Add, Operand, Packed, Place, product, row_stride};

#[cfg(test)]
mod tests;
