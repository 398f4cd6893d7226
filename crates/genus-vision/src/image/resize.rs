//! Pillow's resampling.

use std::fmt;

/// The kernel of a resize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Pillow's `BILINEAR`.
    Bilinear,
    /// Pillow's `BICUBIC` (a = −0.5).
    Bicubic,
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Filter::Bilinear => "bilinear",
            Filter::Bicubic => "bicubic",
        })
    }
}
