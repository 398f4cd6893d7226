//! The tensors of a weights file, by name.
//!
//! A file is a container of *storages* (runs of numbers) and of *views* into them (the tensors). The containers are in
//! `safetensors` and `torch`; `checkpoint` says what the pickles of `torch.save` mean, `select` finds the network among
//! their views, and `storage` reads what the views look at. Nothing of a file is trusted: lengths are compared with the
//! file's before memory is asked for, and nothing in it is run.

mod checkpoint;
mod problem;
mod safetensors;
mod select;
mod source;
mod storage;
mod torch;
mod write;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

pub use problem::WeightsError;
pub use source::WeightsSource;
pub use write::to_safetensors;

use problem::Problem;

/// A dense tensor of 32-bit floats, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The length of every dimension.
    pub shape: Vec<usize>,
    /// The values.
    pub values: Vec<f32>,
}

/// The floating-point tensors of a network under the names that they have in its file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    /// The tensors by name, without the prefixes that wrappers put before all of them (`module.`, `_orig_mod.`,
    /// `backbone.`).
    pub tensors: BTreeMap<String, Tensor>,
    /// The part of a training checkpoint that was taken, such as `teacher`; nothing where the file holds one network.
    pub part: Option<String>,
    /// Whether the file has 8-bit integers in place of floats, with a scale for every output channel.
    pub int8: bool,
}

impl Weights {
    /// Gives a hash of all names, shapes and values that is the same whatever format they were read from.
    pub fn hash(&self) -> blake3::Hash {
        /// Enough for blake3 to work in its widest registers, and within the second-level cache.
        const VALUES: usize = 1 << 14;
        let mut hasher = blake3::Hasher::new();
        let mut bytes = vec![[0; 4]; VALUES];
        for (name, tensor) in &self.tensors {
            // Every length goes before what it measures, so that no two sets of tensors give the same bytes.
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name.as_bytes());
            hasher.update(&(tensor.shape.len() as u64).to_le_bytes());
            for &length in &tensor.shape {
                hasher.update(&(length as u64).to_le_bytes());
            }
            for values in tensor.values.chunks(VALUES) {
                let bytes = &mut bytes[..values.len()];
                for (bytes, value) in bytes.iter_mut().zip(values) {
                    *bytes = value.to_le_bytes();
                }
                hasher.update(bytes.as_flattened());
            }
        }
        hasher.finalize()
    }
}

/// Reads the floating-point tensors of a `.safetensors` file or of a PyTorch file (`.pth`, `.pt`, `.bin`).
///
/// The format is found by content. Of a training checkpoint the network alone is read: the `teacher` where there is
/// one, else `state_dict`, `model`, `model_state_dict` or `student`. Integer tensors (counters) are left out, but 8-bit integers `NAME` beside `NAME.scale`
/// are weights.
pub fn read_weights(path: impl AsRef<Path>) -> Result<Weights, WeightsError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let unreadable = |e| Problem::Io(e).in_file(&name);
    // Asked before opening: to open a pipe is to wait for its writer, and a device may have no end.
    let found = std::fs::metadata(path).map_err(unreadable)?;
    if !found.is_file() && !found.is_dir() {
        return Err(unreadable(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a device or a pipe; copy it into a file first",
        )));
    }
    let file = File::open(path).map_err(unreadable)?;
    read_weights_from(file, &name)
}

/// Reads weights as [`read_weights`] does from anything with a position; `name` stands for the file in errors.
///
/// ```
/// let error = genus_vision::read_weights_from(std::io::Cursor::new(b"not a network"), "a.pth").unwrap_err();
/// assert!(error.to_string().starts_with("a.pth: "));
/// ```
pub fn read_weights_from(reader: impl Read + Seek, name: &str) -> Result<Weights, WeightsError> {
    read(reader).map_err(|problem| problem.in_file(name))
}

fn read(reader: impl Read + Seek) -> Result<Weights, Problem> {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let length = reader.seek(SeekFrom::End(0))?;
    reader.rewind()?;
    let mut start = Vec::new();
    (&mut reader).take(32).read_to_end(&mut start)?;
    reader.rewind()?;
    if start.starts_with(b"PK\x03\x04") {
        torch::read_zip(reader, length)
    } else if torch::is_legacy(&start) {
        torch::read_legacy(reader, length)
    } else if start.get(8) == Some(&b'{') {
        safetensors::read(reader, length)
    } else {
        Err(Problem::Unknown(hint(&start, length)))
    }
}

/// What a file that is not a weights file most likely is.
fn hint(start: &[u8], length: u64) -> &'static str {
    if length == 0 {
        "it is empty; download it again"
    } else if start.starts_with(b"version https://git-lfs") {
        "it is a Git LFS pointer; fetch the file itself with `git lfs pull`"
    } else if start.trim_ascii_start().starts_with(b"<") {
        "it is a web page; download the file that the page links to"
    } else if start.starts_with(b"\x89HDF") {
        "it is an HDF5 file; convert it to .safetensors"
    } else {
        "it is neither safetensors nor a file of torch.save; convert it to .safetensors"
    }
}
