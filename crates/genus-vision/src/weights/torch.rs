//! The two containers of `torch.save`: a ZIP archive, and the stream of pickles and storages that it wrote before 1.6.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Seek};
use std::rc::Rc;

use genus_files::archive::{Directory, EntryReader};
use genus_files::pickle::Value;

use super::Weights;
use super::checkpoint::{Checkpoint, MAX_BYTES};
use super::problem::Problem;
use super::safetensors::{Ranges, go_to};
use super::select::{finish, network};
use super::storage::{Dtype, StorageSource};

/// The number that marks the format, in the pickle with which a stream begins.
const MAGIC: &[u8] = b"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

/// Whether a file begins as a stream does, in any protocol.
pub(super) fn is_legacy(start: &[u8]) -> bool {
    start.first() == Some(&0x80) && start.windows(MAGIC.len()).any(|bytes| bytes == MAGIC)
}

/// Reads the archive: `NAME/data.pkl`, the storages `NAME/data/KEY` and `NAME/byteorder`, under any one name.
pub(super) fn read_zip(mut reader: impl Read + Seek, file_length: u64) -> Result<Weights, Problem> {
    let directory = Directory::read(&mut reader)?;
    let pickles = directory
        .names()
        .filter(|name| *name == "data.pkl" || name.ends_with("/data.pkl"));
    let Some(pickle) = pickles.min_by_key(|name| name.len()) else {
        return Err(Problem::Unknown(
            "it is a ZIP archive without a data.pkl; unpack it, or save the state_dict() with torch.save",
        ));
    };
    let top = pickle.trim_end_matches("data.pkl").to_owned();
    if directory.contains(&format!("{top}constants.pkl")) {
        return Err(Problem::Unsupported(
            "it is a TorchScript program; load it with torch.jit.load and save its state_dict() with torch.save",
        ));
    }
    let mut archive = TorchArchive {
        reader,
        directory,
        top,
        big_endian: false,
    };
    if archive.directory.contains(&format!("{}byteorder", archive.top)) {
        let mut order = Vec::new();
        archive.entry("byteorder")?.1.take(16).read_to_end(&mut order)?;
        archive.big_endian = match order.trim_ascii() {
            b"little" => false,
            b"big" => true,
            _ => {
                return Err(Problem::Malformed(
                    "its byte order is neither little nor big".to_owned(),
                ));
            }
        };
    }
    let mut pickle = BufReader::new(archive.entry("data.pkl")?.1);
    let checkpoint = Checkpoint::read(&mut pickle)?;
    // To the end, where the checksum is compared.
    io::copy(&mut (&mut pickle).take(MAX_BYTES), &mut io::sink())?;
    drop(pickle);
    let (leaves, part) = network(&checkpoint)?;
    drop(checkpoint);
    finish(leaves, part, &mut archive, file_length)
}

struct TorchArchive<R> {
    reader: R,
    directory: Directory,
    /// What all names begin with, a folder and its slash.
    top: String,
    big_endian: bool,
}

impl<R: Read + Seek> TorchArchive<R> {
    /// The number of an entry's bytes and the bytes, unpacked.
    fn entry(&mut self, name: &str) -> Result<(u64, EntryReader<&mut R>), Problem> {
        let entry = self.directory.entry(&format!("{}{name}", self.top))?;
        Ok((entry.length(), entry.open(&mut self.reader)?))
    }
}

impl<R: Read + Seek> StorageSource for TorchArchive<R> {
    fn open(&mut self, key: &str) -> Result<(u64, Box<dyn Read + '_>), Problem> {
        let (size, entry) = self.entry(&format!("data/{key}"))?;
        Ok((size, Box::new(entry)))
    }

    fn big_endian(&self) -> bool {
        self.big_endian
    }
}

/// Reads the stream: three pickles about the format, the objects, the list of keys, and the storages in that order,
/// each after its length.
pub(super) fn read_legacy(mut reader: BufReader<impl Read + Seek>, file_length: u64) -> Result<Weights, Problem> {
    Checkpoint::read(&mut reader)?;
    let version = Checkpoint::read(&mut reader)?;
    if !matches!(version.root(), Value::Int(1001)) {
        return Err(Problem::Unsupported(
            "it is of a version that PyTorch never released; save it again with torch.save",
        ));
    }
    let system = Checkpoint::read(&mut reader)?;
    if system.item(system.root(), "little_endian")? == Some(Value::Bool(false)) {
        return Err(Problem::Unsupported(
            "it was written by a big-endian machine in PyTorch's old format; save it again with torch.save",
        ));
    }
    let checkpoint = Checkpoint::read(&mut reader)?;
    let keys = Checkpoint::read(&mut reader)?;
    let Some(list) = keys.list(keys.root()) else {
        return Err(Problem::Malformed("it has no list of storages".to_owned()));
    };

    let sizes: BTreeMap<Rc<str>, (u64, u64)> = checkpoint
        .storages()?
        .into_iter()
        .map(|storage| (storage.key, (storage.dtype.map_or(1, Dtype::size), storage.length)))
        .collect();
    let mut ranges = BTreeMap::new();
    let mut position = reader.stream_position()?;
    for &key in list {
        let Some(key) = keys.text(key) else {
            return Err(Problem::Malformed("a storage has no name".to_owned()));
        };
        let Some(&(size, expected)) = sizes.get(key) else {
            return Err(Problem::Malformed(format!("storage {key:?} belongs to no tensor")));
        };
        let mut length = [0; 8];
        go_to(&mut reader, position)?;
        reader.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        let start = position + 8;
        let bytes = length
            .checked_mul(size)
            .filter(|&bytes| bytes <= file_length.saturating_sub(start));
        let Some(bytes) = bytes.filter(|_| length == expected) else {
            return Err(Problem::Malformed(format!(
                "storage {key:?} claims {length} elements where {expected} are expected in {} bytes",
                file_length.saturating_sub(start)
            )));
        };
        ranges.insert(Rc::from(key), (start, bytes));
        position = start + bytes;
    }
    let (leaves, part) = network(&checkpoint)?;
    drop((checkpoint, keys));
    finish(leaves, part, &mut Ranges { reader, ranges }, file_length)
}
