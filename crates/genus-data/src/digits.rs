//! A small data set to try things on: handwritten digits of the UCI Machine Learning Repository.

use std::io::Read;

use flate2::read::GzDecoder;
use genus_core::Features;

/// Pixels, image after image, then the labels; `assets/make_digits.py` writes it.
static ASSET: &[u8] = include_bytes!("../assets/digits.gz");
const IMAGES: usize = 1797;
const PIXELS: usize = 64;

/// 1,797 handwritten digits in 8 × 8 pixels, the test set of "Optical Recognition of Handwritten Digits" by E. Alpaydin
/// and C. Kaynak, UCI Machine Learning Repository, [doi 10.24432/C50P49](https://doi.org/10.24432/C50P49), CC BY 4.0.
#[derive(Clone, Debug, PartialEq)]
pub struct Digits {
    /// One image a row, line by line, in 64 grey values from 0 to 16.
    pub pixels: Features,
    /// The digit that each image shows, 0 to 9.
    pub labels: Vec<u8>,
}

/// The handwritten digits, which are part of this crate.
pub fn digits() -> Digits {
    let mut bytes = Vec::with_capacity(IMAGES * (PIXELS + 1));
    GzDecoder::new(ASSET)
        .read_to_end(&mut bytes)
        .expect("the asset is compiled in, and a test reads it");
    let labels = bytes.split_off(IMAGES * PIXELS);
    let pixels = bytes.into_iter().map(f32::from).collect();
    let pixels = Features::new(PIXELS, pixels).expect("bytes are finite, and a test counts them");
    Digits { pixels, labels }
}
