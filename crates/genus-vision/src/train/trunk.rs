//! The frozen part of a network: it runs without gradients, and what it gives can be kept in a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::runner::Runner;

/// The blocks before those that are trained.
#[derive(Debug)]
pub struct Trunk {
    pub(crate) runner: Runner,
}

impl Trunk {
    /// What leaves the trunk for every image, a row an image: what a [`Trainer`](super::Trainer) takes.
    ///
    /// `pixels` holds whole images, one after the other, each as a transform gives it.
    pub fn run(&self, pixels: &[f32]) -> Vec<f32> {
        self.runner.run(pixels)
    }
}

/// What a trunk gave for many views of images, in a file.
///
/// Rows are read where they lie: a training takes a few hundred of them a step, and the system keeps in memory what fits. (A
/// map of the file would save one copy and would end the program when somebody shortens the file.)
#[derive(Debug)]
pub struct TrunkStore {
    file: File,
    /// The number of values of a row.
    values: usize,
    rows: u64,
}

/// Says what the file is; the last byte is the version of its layout.
const MAGIC: &[u8; 16] = b"genus trunk   \x00\x01";
/// Magic, key, number of values.
const HEADER: u64 = 16 + 32 + 8;

impl TrunkStore {
    /// Opens the file with the rows that it has, or begins it anew when it was made for something else.
    ///
    /// `key` stands for everything that the rows depend on. A row that was cut short is dropped.
    pub fn open(path: &Path, key: [u8; 32], values: usize) -> io::Result<Self> {
        if std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is a link or no file; remove it",
            ));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = genus_files::open_own(&mut options, path)?;
        let mut header = MAGIC.to_vec();
        header.extend(key);
        header.extend((values as u64).to_le_bytes());
        let mut found = Vec::new();
        (&mut file).take(HEADER).read_to_end(&mut found)?;
        if found != header {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&header)?;
        }
        let row = 4 * values.max(1) as u64;
        let rows = (file.metadata()?.len() - HEADER) / row;
        file.set_len(HEADER + rows * row)?;
        Ok(Self { file, values, rows })
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds whole rows at the end.
    pub fn append(&mut self, rows: &[f32]) -> io::Result<()> {
        let bytes: Vec<u8> = rows.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.file.seek(SeekFrom::Start(self.start(self.rows)))?;
        self.file.write_all(&bytes)?;
        self.rows += (rows.len() / self.values.max(1)) as u64;
        Ok(())
    }

    /// Reads a row to the end of `out`.
    pub fn read(&mut self, row: u64, out: &mut Vec<f32>) -> io::Result<()> {
        let mut bytes = vec![0; 4 * self.values];
        self.file.seek(SeekFrom::Start(self.start(row)))?;
        self.file.read_exact(&mut bytes)?;
        out.extend(bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)));
        Ok(())
    }

    fn start(&self, row: u64) -> u64 {
        HEADER + row * 4 * self.values as u64
    }
}
