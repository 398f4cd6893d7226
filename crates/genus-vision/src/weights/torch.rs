//! The two containers of `torch.save`: a ZIP archive, and the stream of pickles and storages that it wrote before 1.6.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Seek};
use std::rc::Rc;

use zip::ZipArchive;

use super::Weights;
use super::pickle::{MAX_BYTES, Program, Value};
use super::problem::Problem;
use super::safetensors::{Ranges, go_to};
use super::select::{finish, network};
use super::storage::{Dtype, Source};

/// The number that marks the format, in the pickle with which a stream begins.
const MAGIC: &[u8] = b"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

/// Whether a file begins as a stream does, in any protocol.
pub(super) fn is_legacy(start: &[u8]) -> bool {
    start.first() == Some(&0x80) && start.windows(MAGIC.len()).any(|bytes| bytes == MAGIC)
}

/// Reads the archive: `NAME/data.pkl`, the storages `NAME/data/KEY` and `NAME/byteorder`, under any one name.
pub(super) fn read_zip(reader: impl Read + Seek, file_length: u64) -> Result<Weights, Problem> {
    let archive = ZipArchive::new(reader)?;
    let pickles = archive.file_names().filter_map(Result::ok).filter(|name| {
        let name: &str = name;
        name == "data.pkl" || name.ends_with("/data.pkl")
    });
    let Some(pickle) = pickles.min_by_key(|name| name.len()).map(|name| name.into_owned()) else {
        return Err(Problem::Unknown(
            "it is a ZIP archive without a data.pkl; unpack it, or save the state_dict() with torch.save",
        ));
    };
    let top = pickle.trim_end_matches("data.pkl").to_owned();
    if archive.index_for_name(&format!("{top}constants.pkl")).is_some() {
        return Err(Problem::Unsupported(
            "it is a TorchScript program; load it with torch.jit.load and save its state_dict() with torch.save",
        ));
    }
    let mut archive = Archive {
        archive,
        top,
        big_endian: false,
    };
    if archive
        .archive
        .index_for_name(&format!("{}byteorder", archive.top))
        .is_some()
    {
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
    let program = Program::read(&mut pickle)?;
    // To the end, where the checksum is compared.
    io::copy(&mut (&mut pickle).take(MAX_BYTES), &mut io::sink())?;
    drop(pickle);
    let (leaves, part) = network(&program)?;
    drop(program);
    finish(leaves, part, &mut archive, file_length)
}

struct Archive<R> {
    archive: ZipArchive<R>,
    /// What all names begin with, a folder and its slash.
    top: String,
    big_endian: bool,
}

impl<R: Read + Seek> Archive<R> {
    /// The number of an entry's bytes and the bytes, unpacked.
    fn entry(&mut self, name: &str) -> Result<(u64, impl Read + '_), Problem> {
        let entry = self.archive.by_name(&format!("{}{name}", self.top))?;
        let size = entry.size();
        // One byte more than the entry claims ends the reading of one that claims too little.
        Ok((size, entry.take(size.saturating_add(1))))
    }
}

impl<R: Read + Seek> Source for Archive<R> {
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
    Program::read(&mut reader)?;
    let version = Program::read(&mut reader)?;
    if !matches!(version.root, Value::Int(1001)) {
        return Err(Problem::Unsupported(
            "it is of a version that PyTorch never released; save it again with torch.save",
        ));
    }
    let system = Program::read(&mut reader)?;
    if let Value::Dict(system_info) = system.root
        && matches!(system.item(system_info, "little_endian"), Some(Value::Bool(false)))
    {
        return Err(Problem::Unsupported(
            "it was written by a big-endian machine in PyTorch's old format; save it again with torch.save",
        ));
    }
    let program = Program::read(&mut reader)?;
    let keys = Program::read(&mut reader)?;
    let Value::List(list) = keys.root else {
        return Err(Problem::Malformed("it has no list of storages".to_owned()));
    };

    let sizes: BTreeMap<&str, (u64, u64)> = program
        .storages()
        .iter()
        .map(|storage| (&*storage.key, (storage.dtype.map_or(1, Dtype::size), storage.length)))
        .collect();
    let mut ranges = BTreeMap::new();
    let mut position = reader.stream_position()?;
    for key in keys.sequence(list) {
        let Value::Text(key) = *key else {
            return Err(Problem::Malformed("a storage has no name".to_owned()));
        };
        let key = keys.text(key);
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
    let (leaves, part) = network(&program)?;
    drop((program, keys));
    finish(leaves, part, &mut Ranges { reader, ranges }, file_length)
}
