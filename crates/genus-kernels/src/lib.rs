//! The arithmetic of networks on a processor, and the only `unsafe` code beside products of `genus-core`.
//!
//! What is unsafe here is of two kinds: instructions that not every processor has, and pointers in innermost loops. The first is
//! `with_simd`'s alone, which asks the processor before it enters code that was compiled for such instructions. For the second,
//! every function that is visible outside takes slices, asserts that all it is going to touch lies inside them, and only then
//! goes on with pointers. Threads share a result by rows and columns: [`product()`] asserts that its rows do not overlap, and
//! every piece writes its own.
//!
//! It is a crate of its own so that it is always compiled with all optimisations, in tests too.
//!
//! ```
//! use genus_kernels::{Activation, Addend, Isa, Operand, Packed, RowLayout, Precision, product};
//!
//! let isa = Isa::best(Precision::F32)?;
//! // Two rows of three terms times a matrix of one column, and a bias.
//! let rows = [1.0, 2.0, 3.0, -1.0, -2.0, -3.0];
//! let column = Packed::new(isa, [1, 3], &[0.5], |_, _| 1.0);
//! let left = Operand::whole(&rows, RowLayout::rows(3), 3);
//! // Results have room for whole registers.
//! let mut out = [0.0; 32];
//! product([1, 2], left, &column, Addend::Nothing, Activation::Relu, &mut out, RowLayout::rows(16));
//! assert_eq!([out[0], out[16]], [6.5, 0.0]);
//! # Ok::<(), genus_kernels::IsaError>(())
//! ```

#[cfg(target_arch = "x86_64")]
mod amx;
mod attention;
mod buffer;
mod depthwise;
mod gate;
mod isa;
mod math;
mod norm;
mod product;
// A method there is an instruction, and as safe as the trait says that it is.
#[allow(clippy::undocumented_unsafe_blocks)]
mod simd;
mod tile;

pub use attention::{AttentionHead, Workspace, attend};
pub use buffer::{Buffer, LINE};
pub use depthwise::{Depthwise, MapLayout};
pub use gate::gate;
pub use isa::{Isa, IsaError, Precision};
pub use norm::LayerNorm;
pub use product::{Activation, Addend, Operand, Packed, RowLayout, product, row_stride};

#[cfg(test)]
mod tests;
