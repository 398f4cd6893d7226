//! The inputs of a shard: whether they are what they were, and where their bytes are on this machine.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use genus_data::{RowGroup, row_groups};
use genus_files::ScratchFolder;

use crate::BulkError;
use crate::manifest::{Check, Input, Manifest, Piece};
use crate::place::{Found, SourceFile};

/// Bytes at the end of a file that every part of it is remembered by: in Parquet they say where everything is.
const END: u64 = 64 << 10;
/// Bytes at both ends of a part that are looked at, and how many blocks of how many bytes between.
const EDGE: u64 = 64 << 10;
const BLOCKS: u64 = 64;
const BLOCK: u64 = 4 << 10;

/// What is remembered of a part of a file.
pub(crate) fn fingerprint(
    file: &SourceFile,
    found: &Found,
    (start, end): (u64, u64),
    check: Check,
) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&found.bytes.to_le_bytes());
    if let (Check::Sampled, Some(etag)) = (check, &found.etag) {
        hasher.update(etag.as_bytes());
        return Ok(short(&hasher));
    }
    let mut add = |start: u64, end: u64| {
        file.read_range(start, end, &mut |bytes| {
            hasher.update(bytes);
            Ok(())
        })
    };
    add(found.bytes.saturating_sub(END), found.bytes)?;
    let length = end - start;
    match check {
        Check::Sampled if length > 2 * EDGE + BLOCKS * BLOCK => {
            add(start, start + EDGE)?;
            let between = length - 2 * EDGE - BLOCK;
            for block in 0..BLOCKS {
                let at = start + EDGE + between / BLOCKS * block;
                add(at, at + BLOCK)?;
            }
            add(end - EDGE, end)?;
        }
        _ => add(start, end)?,
    }
    Ok(short(&hasher))
}

fn short(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..32].to_owned()
}

/// The files that a shard reads, on this machine as long as this lives.
pub(crate) struct Inputs<'a> {
    manifest: &'a Manifest,
    shard: usize,
    /// Where what is elsewhere is copied to.
    scratch: Option<ScratchFolder>,
}

impl<'a> Inputs<'a> {
    pub(crate) fn new(manifest: &'a Manifest, shard: usize) -> Self {
        Self {
            manifest,
            shard,
            scratch: None,
        }
    }

    /// Fails when an input is not what it was when the job was planned.
    pub(crate) fn check(&self, piece: &Piece) -> Result<(), BulkError> {
        let input = &self.manifest.inputs[piece.input];
        let changed = |problem: String| BulkError::Changed {
            shard: self.shard,
            input: input.name.clone(),
            problem,
        };
        let file = SourceFile::of(&input.name)?;
        let unreadable = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => changed("it is not there any more".to_owned()),
            io::ErrorKind::UnexpectedEof => changed("it has become shorter".to_owned()),
            _ => unreadable(input, e),
        };
        let found = file.find().map_err(unreadable)?;
        if found.bytes != input.bytes {
            return Err(changed(format!(
                "it has {} bytes, and had {}",
                found.bytes, input.bytes
            )));
        }
        let now = fingerprint(&file, &found, (piece.start, piece.end), self.manifest.check).map_err(unreadable)?;
        match now == piece.fingerprint {
            true => Ok(()),
            false => Err(changed("other bytes".to_owned())),
        }
    }

    /// The bytes of a piece.
    pub(crate) fn bytes(&self, piece: &Piece) -> Result<Vec<u8>, BulkError> {
        let input = &self.manifest.inputs[piece.input];
        let mut bytes = Vec::new();
        let read = SourceFile::of(&input.name)?.read_range(piece.start, piece.end, &mut |more| {
            bytes.extend_from_slice(more);
            Ok(())
        });
        read.map_err(|e| unreadable(input, e))?;
        Ok(bytes)
    }

    /// Where a piece can be read as a file: where it is, or in a copy that has the bytes of the piece and of the end of the file.
    pub(crate) fn path(&mut self, piece: &Piece) -> Result<PathBuf, BulkError> {
        let input = &self.manifest.inputs[piece.input];
        let file = SourceFile::of(&input.name)?;
        if let Some(path) = file.path() {
            return Ok(path.to_owned());
        }
        let scratch = match self.scratch.take() {
            Some(scratch) => scratch,
            None => ScratchFolder::new().map_err(|e| unreadable(input, e))?,
        };
        let folder = self.scratch.insert(scratch).path();
        let path = folder.join(file_name(&input.name));
        let ranges = match piece.row_groups {
            Some(_) => vec![
                (piece.start, piece.end),
                footer(&file, input.bytes).map_err(|e| unreadable(input, e))?,
            ],
            None => vec![(0, input.bytes)],
        };
        copy(&file, input.bytes, &ranges, &path).map_err(|e| unreadable(input, e))?;
        Ok(path)
    }
}

/// The last part of a name, which says the format.
fn file_name(name: &str) -> &str {
    let name = name.split(['?', '#']).next().unwrap_or(name);
    name.rsplit('/').next().unwrap_or(name)
}

fn unreadable(input: &Input, source: io::Error) -> BulkError {
    BulkError::Read {
        name: input.name.clone(),
        source,
    }
}

/// Copies ranges of a file to where they are in it; between them there is nothing, which takes no room.
fn copy(file: &SourceFile, length: u64, ranges: &[(u64, u64)], to: &Path) -> io::Result<()> {
    let mut copy = File::create(to)?;
    copy.set_len(length)?;
    for &(start, end) in ranges {
        copy.seek(SeekFrom::Start(start))?;
        file.read_range(start, end, &mut |bytes| copy.write_all(bytes))?;
    }
    Ok(())
}

/// Where the end of a Parquet file is that says where everything is.
fn footer(file: &SourceFile, length: u64) -> io::Result<(u64, u64)> {
    let mut end = Vec::new();
    file.read_range(length.saturating_sub(8), length, &mut |bytes| {
        end.extend_from_slice(bytes);
        Ok(())
    })?;
    let said = end.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    Ok((length.saturating_sub(u64::from(said) + 8), length))
}

/// The row groups of a Parquet file, wherever it is. Of a file elsewhere only its end is read.
pub(crate) fn groups_of(name: &str, bytes: u64) -> Result<Vec<RowGroup>, BulkError> {
    let file = SourceFile::of(name)?;
    if let Some(path) = file.path() {
        return Ok(row_groups(path)?);
    }
    let failed = |source| BulkError::Read {
        name: name.to_owned(),
        source,
    };
    let scratch = ScratchFolder::new().map_err(failed)?;
    let path = scratch.path().join(file_name(name));
    let end = footer(&file, bytes).map_err(failed)?;
    copy(&file, bytes, &[end], &path).map_err(failed)?;
    Ok(row_groups(&path)?)
}

/// A copy of a whole file that is elsewhere, or where it is.
pub(crate) fn whole(name: &str, scratch: &ScratchFolder) -> Result<PathBuf, BulkError> {
    let file = SourceFile::of(name)?;
    if let Some(path) = file.path() {
        return Ok(path.to_owned());
    }
    let failed = |source| BulkError::Read {
        name: name.to_owned(),
        source,
    };
    let bytes = file.find().map_err(failed)?.bytes;
    let path = scratch.path().join(file_name(name));
    copy(&file, bytes, &[(0, bytes)], &path).map_err(failed)?;
    Ok(path)
}
