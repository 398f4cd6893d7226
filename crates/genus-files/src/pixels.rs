//! Images that lie in a larger file.

/// Where the pixels of an image lie in a file: three planes (red, green, blue) of a byte a pixel, row after row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawPixels {
    /// The place of the first byte of the red plane in the file.
    pub offset: u64,
    /// How many pixels a row has.
    pub width: u32,
    /// How many rows a plane has.
    pub height: u32,
}
