//! Where an image lies on disk.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use genus_files::RawPixels;

use super::decode::{ImageError, Limits, read_file};

/// An image on disk: a file of its own, or bare pixels inside a larger file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageSource {
    path: PathBuf,
    pixels: Option<RawPixels>,
}

impl ImageSource {
    /// An image file, or one that holds bare pixels at some place.
    pub fn new(path: impl Into<PathBuf>, pixels: Option<RawPixels>) -> Self {
        Self {
            path: path.into(),
            pixels,
        }
    }

    /// An image file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::new(path, None)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of an image file, for [`decode`](super::decode()); bare pixels become one in the format PPM.
    pub fn read(&self, limits: &Limits) -> Result<Vec<u8>, ImageError> {
        let Some(RawPixels { offset, width, height }) = self.pixels else {
            return read_file(&self.path, limits);
        };
        limits.check(u64::from(width), u64::from(height))?;
        let count = width as usize * height as usize;
        if !std::fs::metadata(&self.path)?.is_file() {
            return Err(ImageError::NotAFile);
        }
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut planes = vec![0; 3 * count];
        file.read_exact(&mut planes)?;
        let mut bytes = format!("P6\n{width} {height}\n255\n").into_bytes();
        for pixel in 0..count {
            bytes.extend([planes[pixel], planes[count + pixel], planes[2 * count + pixel]]);
        }
        Ok(bytes)
    }
}

impl From<&Path> for ImageSource {
    fn from(path: &Path) -> Self {
        Self::file(path)
    }
}
