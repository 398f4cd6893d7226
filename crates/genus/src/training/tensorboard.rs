//! Event files that TensorBoard shows as curves.
//!
//! An event file is a row of records, each with its length and checksums, and a record is a protobuf message. Of all the
//! messages only scalars are written here: three fields do not justify a dependency.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// What the first record of every event file says.
const FILE_VERSION: &str = "brain.Event:2";

/// An event file that grows as a run goes on.
pub(crate) struct EventWriter {
    file: File,
}

impl EventWriter {
    /// Begins a new event file in a folder, which is made where it is missing. The time is in seconds since 1970.
    pub(crate) fn create(folder: &Path, wall_time: f64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut number = 0u32;
        let file = loop {
            // TensorBoard reads the files of a folder in the order of their names, hence the digits of equal number.
            let name = format!("events.out.tfevents.{:010}.{number:04}.genus", wall_time as u64);
            let created = OpenOptions::new().write(true).create_new(true).open(folder.join(name));
            match created {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => number += 1,
                created => break created?,
            }
        };
        let mut writer = Self { file };
        let mut event = Message::default();
        event.double(Event::WALL_TIME, wall_time);
        event.bytes(Event::FILE_VERSION, FILE_VERSION.as_bytes());
        writer.write(&event)?;
        Ok(writer)
    }

    /// Adds a value for each of some tags, all of the same step.
    pub(crate) fn scalars(&mut self, step: u64, wall_time: f64, values: &[(&str, f32)]) -> io::Result<()> {
        let mut summary = Message::default();
        for &(tag, value) in values {
            let mut entry = Message::default();
            entry.bytes(ValueFields::TAG, tag.as_bytes());
            entry.float(ValueFields::SIMPLE_VALUE, value);
            summary.bytes(SummaryFields::VALUE, &entry.0);
        }
        let mut event = Message::default();
        event.double(Event::WALL_TIME, wall_time);
        event.integer(Event::STEP, step);
        event.bytes(Event::SUMMARY, &summary.0);
        self.write(&event)
    }

    /// Appends a record: its length, a checksum of that, the message, a checksum of that.
    fn write(&mut self, message: &Message) -> io::Result<()> {
        let length = (message.0.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(message.0.len() + 16);
        record.extend(length);
        record.extend(masked(crc32c(&length)).to_le_bytes());
        record.extend(&message.0);
        record.extend(masked(crc32c(&message.0)).to_le_bytes());
        // In one piece and with no buffer between: whoever watches the run sees whole records, and at once.
        self.file.write_all(&record)?;
        self.file.flush()
    }
}

/// The numbers of the fields of TensorBoard's `Event`.
struct Event;

impl Event {
    const WALL_TIME: u64 = 1;
    const STEP: u64 = 2;
    const FILE_VERSION: u64 = 3;
    const SUMMARY: u64 = 5;
}

/// The number of the field of `SummaryFields`.
struct SummaryFields;

impl SummaryFields {
    const VALUE: u64 = 1;
}

/// The numbers of the fields of `SummaryFields.ValueFields`.
struct ValueFields;

impl ValueFields {
    const TAG: u64 = 1;
    const SIMPLE_VALUE: u64 = 2;
}

/// A protobuf message as it is being written. A field is its number and its kind in one integer, then its content.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn integer(&mut self, field: u64, value: u64) {
        // What is zero by default is left out, as all protobuf writers do.
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    fn double(&mut self, field: u64, value: f64) {
        self.varint(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, content: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(content.len() as u64);
        self.0.extend(content);
    }

    fn float(&mut self, field: u64, value: f32) {
        self.varint(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
    }

    /// Seven bits a byte, the lowest first; the eighth says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// A checksum as it stands in the file: records may contain records, and a checksum of checksums would be weak.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The checksum of Castagnoli, which is not the CRC-32 of ZIP files.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes
        .iter()
        .fold(!0, |crc, &byte| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)])
}

/// What every byte does to a checksum.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ 0x82f6_3b78
            } else {
                crc >> 1
            };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// What TensorBoard's own writer made of the same events; `make_events.py` beside it does.
    const GOLDEN: &[u8] = include_bytes!("../../tests/goldens/events.tfevents");

    /// The steps, times and values of the golden file.
    type Scalars = (u64, f64, Vec<(String, f32)>);

    fn scalars() -> Vec<Scalars> {
        let named = |values: &[(&str, f32)]| values.iter().map(|&(tag, value)| (tag.to_owned(), value)).collect();
        // Steps of none to nine bytes, a tag beyond ASCII, and one whose length takes two bytes.
        let long = "long/".repeat(40);
        vec![
            (0, 1_700_000_000.25, named(&[("loss", 2.5)])),
            (1, 1_700_000_001.5, named(&[("loss", 0.0), ("rate", 1e-4)])),
            (
                300,
                1_700_000_002.0,
                named(&[("Genauigkeit/größte", -0.1), (&long, 3.0)]),
            ),
            (
                i64::MAX as u64,
                1_700_000_003.0,
                named(&[("loss", f32::MAX), ("rate", f32::INFINITY)]),
            ),
        ]
    }

    fn write(folder: &Path) {
        let mut writer = EventWriter::create(folder, 1_700_000_000.0).unwrap();
        for (step, wall_time, values) in scalars() {
            let values: Vec<_> = values.iter().map(|(tag, value)| (tag.as_str(), *value)).collect();
            writer.scalars(step, wall_time, &values).unwrap();
        }
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
        let (taken, rest) = bytes.split_at(count);
        *bytes = rest;
        taken
    }

    fn take_varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = take(bytes, 1)[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    /// One bit at a time, as the checksum is defined.
    fn naive_crc32c(bytes: &[u8]) -> u32 {
        let mut crc = u32::MAX;
        for bit in bytes.iter().flat_map(|byte| (0..8).map(move |at| byte >> at & 1)) {
            let odd = crc & 1 != u32::from(bit);
            crc >>= 1;
            if odd {
                crc ^= 0x1edc_6f41_u32.reverse_bits();
            }
        }
        !crc
    }

    fn assert_checksum(content: &[u8], found: &[u8]) {
        let masked = u32::from_le_bytes(found.try_into().unwrap());
        let crc = masked.wrapping_sub(0xa282_ead8).rotate_left(15);
        assert_eq!(crc, naive_crc32c(content));
    }

    fn records(mut file: &[u8]) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        while !file.is_empty() {
            let length = take(&mut file, 8);
            assert_checksum(length, take(&mut file, 4));
            let length = u64::from_le_bytes(length.try_into().unwrap());
            let content = take(&mut file, length as usize);
            assert_checksum(content, take(&mut file, 4));
            records.push(content.to_vec());
        }
        records
    }

    /// The number of every field and its content, an integer as eight bytes.
    fn fields(mut message: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut fields = Vec::new();
        while !message.is_empty() {
            let key = take_varint(&mut message);
            let content = match key & 7 {
                0 => take_varint(&mut message).to_le_bytes().to_vec(),
                1 => take(&mut message, 8).to_vec(),
                2 => {
                    let length = take_varint(&mut message);
                    take(&mut message, length as usize).to_vec()
                }
                5 => take(&mut message, 4).to_vec(),
                kind => panic!("no field is of kind {kind}"),
            };
            fields.push((key >> 3, content));
        }
        fields
    }

    fn decode(record: &[u8]) -> Scalars {
        let (mut step, mut wall_time, mut values) = (0, 0.0, Vec::new());
        for (number, content) in fields(record) {
            match number {
                1 => wall_time = f64::from_le_bytes(content.try_into().unwrap()),
                2 => step = u64::from_le_bytes(content.try_into().unwrap()),
                5 => {
                    for (number, value) in fields(&content) {
                        assert_eq!(number, 1);
                        let [(1, tag), (2, value)] = &fields(&value)[..] else {
                            panic!("{value:?}")
                        };
                        let value = f32::from_le_bytes(value[..].try_into().unwrap());
                        values.push((String::from_utf8(tag.clone()).unwrap(), value));
                    }
                }
                _ => panic!("no scalar has a field {number}"),
            }
        }
        (step, wall_time, values)
    }

    #[test]
    fn the_checksum_is_that_of_castagnoli() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        let every: Vec<u8> = (0..=255).collect();
        for end in 0..=every.len() {
            assert_eq!(crc32c(&every[..end]), naive_crc32c(&every[..end]));
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path());
        let file = fs::read(&files(folder.path())[0]).unwrap();
        let records = records(&file);
        let wall_time = 1_700_000_000f64.to_le_bytes().to_vec();
        assert_eq!(fields(&records[0]), [(1, wall_time), (3, b"brain.Event:2".to_vec())]);
        let read: Vec<_> = records[1..].iter().map(|record| decode(record)).collect();
        assert_eq!(read, scalars());
    }

    #[test]
    fn tensorboard_writes_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path());
        assert!(fs::read(&files(folder.path())[0]).unwrap() == GOLDEN);
    }

    #[test]
    fn every_run_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        write(&inner);
        let first = fs::read(&files(&inner)[0]).unwrap();
        let mut second = EventWriter::create(&inner, 1_700_000_000.9).unwrap();
        second.scalars(7, 1_700_000_001.0, &[("loss", 1.0)]).unwrap();
        EventWriter::create(&inner, 12.0).unwrap();
        let names: Vec<_> = files(&inner)
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(
            names,
            [
                "events.out.tfevents.0000000012.0000.genus",
                "events.out.tfevents.1700000000.0000.genus",
                "events.out.tfevents.1700000000.0001.genus"
            ]
        );
        assert_eq!(fs::read(&files(&inner)[1]).unwrap(), first);
    }

    #[test]
    fn an_event_can_be_read_as_soon_as_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = EventWriter::create(folder.path(), 5.0).unwrap();
        let path = &files(folder.path())[0];
        for step in 1..4 {
            writer.scalars(step, 6.0, &[("loss", 0.5)]).unwrap();
            let records = records(&fs::read(path).unwrap());
            assert_eq!(records.len() as u64, step + 1);
        }
    }
}
