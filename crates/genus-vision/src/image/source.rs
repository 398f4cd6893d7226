//! Where an image lies on disk.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::decode::{ImageError, Limits, read_file};

/// An image on disk: a file of its own, or bare pixels inside of a larger file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageSource {
    path: PathBuf,
    planes: Option<Planes>,
}

/// A red, a green and a blue plane of eight bits, one after the other, as in the files of CIFAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Planes {
    offset: u64,
    width: u32,
    height: u32,
}

impl ImageSource {
    /// An image file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            planes: None,
        }
    }

    /// Three planes of eight bits, red, green and blue, that begin at a place within a file.
    pub fn planes(path: impl Into<PathBuf>, offset: u64, width: u32, height: u32) -> Self {
        Self {
            path: path.into(),
            planes: Some(Planes { offset, width, height }),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of an image file, for [`decode`](super::decode()); bare pixels become one in the format PPM.
    pub fn read(&self, limits: &Limits) -> Result<Vec<u8>, ImageError> {
        let Some(Planes { offset, width, height }) = self.planes else {
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
