//! Images as inputs: files of their own, or the members of a tar archive (WebDataset). They become features on the way in.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use genus::{ImageOptions, LiveEncoder, Silent};
use genus_core::Features;
use genus_data::{FilePosition, Origin, RefusedRow, Table};
use rayon::prelude::*;

use crate::BulkError;

/// Images that are in memory at a time.
const BLOCK: usize = 64;
/// The most bytes of an image, and of a name in an archive.
const MAX_IMAGE: u64 = 256 << 20;
const MAX_NAME: u64 = 64 << 10;

/// How the names of images end.
const ENDINGS: [&str; 10] = [
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff",
];

/// Whether a name is that of an image.
pub(crate) fn is_image(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    !file.starts_with('.') && ENDINGS.iter().any(|ending| file.ends_with(ending))
}

/// Whether a name is that of an archive of images.
pub(crate) fn is_archive(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".tar")
}

/// The encoder that made the features of a taxonomy, or the one that is built in.
pub(crate) fn encoder(made: Option<(&Path, &Origin)>) -> Result<LiveEncoder, BulkError> {
    Ok(LiveEncoder::load(&ImageOptions::default(), made, &Silent)?)
}

/// The encoder with this fingerprint.
pub(crate) fn encoder_of(origin: &Origin) -> Result<LiveEncoder, BulkError> {
    encoder(Some((Path::new("the plan"), origin)))
}

/// Images on their way to become features.
pub(crate) struct Pictures<'a> {
    encoder: &'a LiveEncoder,
    /// What they are called, which they are of their file from 1 on, and their files.
    waiting: Vec<(String, u64, Vec<u8>)>,
}

impl<'a> Pictures<'a> {
    pub(crate) fn new(encoder: &'a LiveEncoder) -> Self {
        Self {
            encoder,
            waiting: Vec::new(),
        }
    }

    /// Takes an image; says whether those that wait should be embedded now.
    pub(crate) fn add(&mut self, id: String, number: u64, file: Vec<u8>) -> bool {
        self.waiting.push((id, number, file));
        self.waiting.len() >= BLOCK
    }

    /// The features of those that wait, and those that could not be read.
    pub(crate) fn embed(&mut self) -> Result<(Option<Table>, Vec<RefusedRow>), BulkError> {
        let waiting = std::mem::take(&mut self.waiting);
        let features: Vec<Result<Vec<f32>, BulkError>> = waiting
            .par_iter()
            .map(|(_, _, file)| Ok(self.encoder.features(file)?))
            .collect();
        let (mut ids, mut values, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for ((id, number, _), features) in waiting.into_iter().zip(features) {
            let reason = match features {
                Ok(row) if row.iter().any(|value| *value != 0.0) => {
                    ids.push(id);
                    values.extend(row);
                    continue;
                }
                Ok(_) => "all features are zero".to_owned(),
                Err(BulkError::Pipeline(error)) => match *error {
                    genus::Error::Unreadable { reason, .. } => reason,
                    error => return Err(error.into()),
                },
                Err(error) => return Err(error),
            };
            refused.push(RefusedRow {
                place: FilePosition::Row(number),
                id: Some(id),
                reason,
            });
        }
        if ids.is_empty() {
            return Ok((None, refused));
        }
        let features = Features::new(values.len() / ids.len(), values).map_err(genus::Error::from)?;
        let table = Table {
            labels: vec![None; ids.len()],
            ids,
            features,
        };
        Ok((Some(table), refused))
    }
}

/// Hands on the images of an archive, each with its name and its number among them from 1 on, until `each` has enough.
pub(crate) fn for_each_member(
    path: &Path,
    each: &mut dyn FnMut(String, u64, Vec<u8>) -> Result<bool, BulkError>,
) -> Result<(), BulkError> {
    let failed = |source| BulkError::Read {
        name: path.display().to_string(),
        source,
    };
    let mut archive = Archive::open(path).map_err(failed)?;
    let mut number = 0;
    while let Some((name, length)) = archive.next().map_err(failed)? {
        if !is_image(&name) {
            continue;
        }
        number += 1;
        let file = archive.read(length).map_err(failed)?;
        if !each(name, number, file)? {
            break;
        }
    }
    Ok(())
}

/// Members of a tar archive one after the other: the format of POSIX, with the long names of GNU and pax.
struct Archive {
    from: BufReader<File>,
    /// Bytes until the next header.
    left: u64,
}

/// Bytes of a header, which everything in an archive is padded to.
const HEADER: usize = 512;

fn damaged(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a damaged tar archive: {problem}"))
}

impl Archive {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            from: BufReader::with_capacity(1 << 20, File::open(path)?),
            left: 0,
        })
    }

    /// The name and the length of the next file; `None` at the end.
    fn next(&mut self) -> io::Result<Option<(String, u64)>> {
        let mut long = None;
        loop {
            let skipped = io::copy(&mut self.from.by_ref().take(self.left), &mut io::sink())?;
            if skipped != self.left {
                return Err(damaged("it ends within a file"));
            }
            self.left = 0;
            let mut header = [0; HEADER];
            match self.from.read_exact(&mut header) {
                // Some writers leave out the two empty blocks at the end.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                result => result?,
            }
            if header.iter().all(|byte| *byte == 0) {
                return Ok(None);
            }
            let sum: u64 = header
                .iter()
                .enumerate()
                .map(|(at, byte)| match at {
                    148..156 => u64::from(b' '),
                    _ => u64::from(*byte),
                })
                .sum();
            if octal(&header[148..156]) != Some(sum) {
                return Err(damaged("a header makes no sense"));
            }
            let length = length(&header[124..136]).ok_or_else(|| damaged("a length makes no sense"))?;
            self.left = length
                .checked_next_multiple_of(HEADER as u64)
                .ok_or_else(|| damaged("a length has no end"))?;
            match header[156] {
                b'L' => long = Some(text(&self.small(length)?)),
                b'x' => long = pax_path(&self.small(length)?).or(long),
                0 | b'0' | b'7' => {
                    let name = text(&header[..100]);
                    let prefix = match header[257..263].starts_with(b"ustar") && header[262] == 0 {
                        true => text(&header[345..500]),
                        false => String::new(),
                    };
                    let short = match prefix.is_empty() {
                        true => name,
                        false => format!("{prefix}/{name}"),
                    };
                    return Ok(Some((long.take().unwrap_or(short), length)));
                }
                _ => long = None,
            }
        }
    }

    /// The content of what came last.
    fn read(&mut self, length: u64) -> io::Result<Vec<u8>> {
        if length > MAX_IMAGE {
            // It is passed over, and no image that can be decoded.
            return Ok(Vec::new());
        }
        let mut bytes = Vec::new();
        self.from.by_ref().take(length).read_to_end(&mut bytes)?;
        self.left -= bytes.len() as u64;
        match bytes.len() as u64 == length {
            true => Ok(bytes),
            false => Err(damaged("it ends within a file")),
        }
    }

    fn small(&mut self, length: u64) -> io::Result<Vec<u8>> {
        match length > MAX_NAME {
            true => Err(damaged("a name is longer than any")),
            false => self.read(length),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn octal(bytes: &[u8]) -> Option<u64> {
    let digits = text(bytes);
    match digits.trim() {
        "" => Some(0),
        digits => u64::from_str_radix(digits, 8).ok(),
    }
}

/// A length in octal digits or, of files beyond eight gigabytes, in base 256.
fn length(bytes: &[u8]) -> Option<u64> {
    match bytes.first()? & 0x80 {
        0 => octal(bytes),
        _ => {
            let (high, low) = bytes.split_at(bytes.len() - 8);
            let is_small = high[0] == 0x80 && high[1..].iter().all(|byte| *byte == 0);
            is_small.then(|| low.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        }
    }
}

/// The `path` among the records of a pax header, which are `LENGTH KEY=VALUE` with a line break each.
fn pax_path(bytes: &[u8]) -> Option<String> {
    let mut rest = bytes;
    while let Some(space) = rest.iter().position(|byte| *byte == b' ') {
        let length: usize = std::str::from_utf8(&rest[..space]).ok()?.parse().ok()?;
        let record = rest.get(space + 1..length.checked_sub(1)?)?;
        if let Some(path) = record.strip_prefix(b"path=") {
            return Some(String::from_utf8_lossy(path).into_owned());
        }
        rest = rest.get(length..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_pax_are_read_and_damaged_ones_are_none() {
        assert_eq!(
            pax_path(b"12 size=123\n20 path=a/long name\n"),
            Some("a/long name".to_owned())
        );
        for damaged in [&b"99 path=a\n"[..], b"x path=a\n", b"0 path=a\n", b"5", b" path=a"] {
            assert_eq!(pax_path(damaged), None);
        }
        assert_eq!(length(b"\x80\0\0\0\0\0\0\x02\0\0\0\0"), Some(2 << 32));
        assert_eq!(length(b"\xff\0\0\0\0\0\0\x02\0\0\0\0"), None);
        assert_eq!(octal(b"0000644\0"), Some(0o644));
        assert_eq!(octal(b"9"), None);
    }
}
