//! Annotations and pickles that are damaged or made to do harm are refused: no panic, no hang, no memory without bounds.

mod common;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use common::{assert_mentions, golden};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use genus_data::DataError;
use genus_data::datasets::{DatasetEntry, ImageSet, Images};
use proptest::prelude::*;
use tempfile::TempDir;

fn golden_bytes(name: &str) -> Vec<u8> {
    fs::read(golden("datasets").join(name)).unwrap()
}

/// A data set whose one file can be replaced again and again.
struct Victim {
    _folder: TempDir,
    root: PathBuf,
    file: PathBuf,
    name: &'static str,
}

impl Victim {
    /// Stanford Cars with three images, whose training annotations are the file.
    fn cars() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        fs::create_dir_all(root.join("devkit")).unwrap();
        fs::create_dir_all(root.join("cars_train")).unwrap();
        for image in 1..=3 {
            fs::write(root.join(format!("cars_train/{image:05}.jpg")), "").unwrap();
        }
        let file = root.join("devkit/cars_train_annos.mat");
        Self {
            _folder: folder,
            root,
            file,
            name: "cars",
        }
    }

    /// CIFAR-100, whose training images are the file.
    fn cifar() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        let file = root.join("train");
        Self {
            _folder: folder,
            root,
            file,
            name: "cifar100",
        }
    }

    fn open(&self, bytes: &[u8]) -> Result<ImageSet, DataError> {
        fs::write(&self.file, bytes).unwrap();
        self.open_as_it_is()
    }

    #[track_caller]
    fn refusal(&self, bytes: &[u8]) -> String {
        fs::write(&self.file, bytes).unwrap();
        self.refusal_as_it_is()
    }

    /// What is said when only the first bytes of the file are left.
    #[track_caller]
    fn refusal_of_first(&self, length: usize) -> String {
        let file = fs::File::options().write(true).open(&self.file).unwrap();
        file.set_len(length as u64).unwrap();
        self.refusal_as_it_is()
    }

    #[track_caller]
    fn refusal_as_it_is(&self) -> String {
        match self.open_as_it_is() {
            Ok(set) => panic!("{} was read: {set:?}", self.name),
            Err(error) => error.to_string(),
        }
    }

    fn open_as_it_is(&self) -> Result<ImageSet, DataError> {
        DatasetEntry::find(self.name).unwrap().open(&self.root, Images::Train)
    }
}

/// Whatever came of damaged bytes, what is listed is whole.
fn assert_whole(set: &ImageSet, file: &Path, length: usize) {
    assert!(!set.list.items.is_empty());
    for item in &set.list.items {
        assert!(set.classes.contains(item.label.as_ref().unwrap()));
        if let Some(pixels) = item.pixels {
            assert_eq!(item.path, file);
            assert!(pixels.offset + 3072 <= length as u64);
        }
    }
}

#[test]
fn files_cut_off_anywhere_are_refused() {
    let cars = Victim::cars();
    for name in [
        "cars_train_annos.mat",
        "cars_train_plain.mat",
        "cars_train_big_endian.mat",
    ] {
        let bytes = golden_bytes(name);
        cars.open(&bytes).unwrap();
        for length in (0..bytes.len()).rev() {
            let message = cars.refusal_of_first(length);
            assert_mentions(&message, &["cars_train_annos.mat"]);
        }
    }
    let cifar = Victim::cifar();
    for name in ["cifar_python2", "cifar_protocol4", "cifar_protocol5"] {
        let bytes = golden_bytes(name);
        cifar.open(&bytes).unwrap();
        // The pixels are alike, so that a few cuts among them do.
        let few = |n: &usize| n.is_multiple_of(97) || *n < 900 || bytes.len() - n < 300;
        for length in (0..bytes.len()).rev().filter(few) {
            let message = cifar.refusal_of_first(length);
            assert_mentions(&message, &["train", "pickle"]);
        }
    }
}

/// Changes some bytes of a file.
fn damaged(name: &str, changes: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    let mut bytes = golden_bytes(name);
    for (place, value) in changes {
        let place = place.index(bytes.len());
        bytes[place] = *value;
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn changed_annotations_do_no_harm(which in 0usize..3, changes in changes()) {
        let names = ["cars_train_annos.mat", "cars_train_plain.mat", "cars_train_big_endian.mat"];
        let (cars, bytes) = (Victim::cars(), damaged(names[which], &changes));
        if let Ok(set) = cars.open(&bytes) {
            assert_whole(&set, &cars.file, bytes.len());
        }
    }

    #[test]
    fn changed_pickles_do_no_harm(which in 0usize..3, changes in changes(), keep in 0usize..2) {
        let names = ["cifar_python2", "cifar_protocol4", "cifar_protocol5"];
        let (cifar, mut bytes) = (Victim::cifar(), damaged(names[which], &changes));
        if keep == 1 {
            // Changes among the pixels do nothing: here they hit what comes before.
            bytes = golden_bytes(names[which]);
            for (place, value) in &changes {
                let place = place.index(300);
                bytes[place] = *value;
            }
        }
        if let Ok(set) = cifar.open(&bytes) {
            assert_whole(&set, &cifar.file, bytes.len());
        }
    }

    #[test]
    fn any_steps_do_no_harm(steps in prop::collection::vec(
        prop::sample::select(b"(.012NKMJUTBCX]})tldaesucRbqrhj\x81\x85\x86\x87\x88\x89\x8a\x8c\x93\x94\x95\x96\x00\x01\x02\x03".to_vec()),
        0..200,
    )) {
        let cifar = Victim::cifar();
        let mut bytes = b"\x80\x02".to_vec();
        bytes.extend(steps);
        bytes.push(b'.');
        cifar.refusal(&bytes);
    }
}

// ------------------------------------------------------------------------------------------------- MATLAB

const HEADER: &[u8; 4] = b"\x00\x01IM";

fn mat(elements: &[u8]) -> Vec<u8> {
    let mut bytes = b"MATLAB 5.0 MAT-file".to_vec();
    bytes.resize(124, b' ');
    bytes.extend(HEADER);
    bytes.extend(elements);
    bytes
}

fn element(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = [kind.to_le_bytes(), (data.len() as u32).to_le_bytes()].concat();
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

fn array(class: u8, sizes: [i32; 2], name: &str, rest: &[u8]) -> Vec<u8> {
    let flags = element(6, &[class, 0, 0, 0, 0, 0, 0, 0]);
    let sizes = element(5, &sizes.map(i32::to_le_bytes).concat());
    element(14, &[&flags, &sizes, &element(1, name.as_bytes()), rest].concat())
}

fn compressed(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).unwrap();
    let data = encoder.finish().unwrap();
    [&15u32.to_le_bytes()[..], &(data.len() as u32).to_le_bytes(), &data].concat()
}

const CELL: u8 = 1;
const STRUCT: u8 = 2;
const DOUBLE: u8 = 6;

#[test]
fn mat_files_of_other_kinds_are_named() {
    let cars = Victim::cars();
    let mut hdf = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".to_vec();
    hdf.resize(600, 0);
    assert_mentions(&cars.refusal(&hdf), &["version 7.3 (HDF5)", "save -v7"]);
    let mut hdf = vec![b' '; 600];
    hdf[512..520].copy_from_slice(b"\x89HDF\r\n\x1a\n");
    assert_mentions(&cars.refusal(&hdf), &["version 7.3 (HDF5)"]);
    assert_mentions(&cars.refusal(&[0; 200]), &["no MAT file of level 5"]);
    assert_mentions(&cars.refusal(b""), &["0 bytes"]);
    assert_mentions(&cars.refusal(&mat(b"")), &["no structures \"annotations\""]);
}

#[test]
fn hostile_mat_files_are_refused() {
    let cars = Victim::cars();
    let fields = |width: i32, names: &[u8]| [element(5, &width.to_le_bytes()), element(1, names)].concat();
    let number = array(DOUBLE, [1, 1], "", &element(2, &[1]));
    let mut deep = number.clone();
    for _ in 0..2000 {
        deep = array(CELL, [1, 1], "annotations", &deep);
    }
    let many = array(CELL, [1, 3_000_000], "annotations", &element(14, b"").repeat(3_000_000));
    for (what, elements, part) in [
        (
            "a length beyond the end",
            [14u32.to_le_bytes(), u32::MAX.to_le_bytes()].concat(),
            "ends in the middle",
        ),
        (
            "a short element of five bytes",
            vec![1, 0, 5, 0, 0, 0, 0, 0],
            "short element",
        ),
        ("no flags", element(14, &element(9, &[0; 8])), "what it is"),
        (
            "a negative size",
            array(STRUCT, [1, -1], "annotations", b""),
            "negative size",
        ),
        (
            "a size beyond memory",
            array(STRUCT, [i32::MAX, i32::MAX], "annotations", &fields(8, b"class\0\0\0")),
            "not there",
        ),
        (
            "cells that are not there",
            array(CELL, [i32::MAX, 1], "annotations", b""),
            "not there",
        ),
        (
            "numbers that are not there",
            array(DOUBLE, [1, 9], "annotations", &element(9, &[0; 8])),
            "9 numbers has 1",
        ),
        (
            "many numbers",
            array(DOUBLE, [1, 9 << 20], "annotations", &element(2, &vec![0; 9 << 20])),
            "more than 8 MB of numbers",
        ),
        (
            "half a number",
            array(DOUBLE, [1, 1], "annotations", &element(9, &[0; 7])),
            "middle of a number",
        ),
        (
            "numbers of no type",
            array(DOUBLE, [1, 1], "annotations", &element(99, &[0; 8])),
            "type 99",
        ),
        (
            "fields without width",
            array(STRUCT, [1, 1], "annotations", &fields(0, b"")),
            "fields are called",
        ),
        (
            "fields of negative width",
            array(STRUCT, [1, 1], "annotations", &fields(-8, b"class\0\0\0")),
            "fields are called",
        ),
        (
            "no fields",
            array(STRUCT, [1, 1], "annotations", &fields(8, b"")),
            "no \"class\"",
        ),
        (
            "a field that is no array",
            array(
                STRUCT,
                [1, 1],
                "annotations",
                &[fields(8, b"class\0\0\0"), element(9, &[0; 8])].concat(),
            ),
            "holds no array",
        ),
        ("arrays in arrays", deep, "deep in one another"),
        ("many arrays", compressed(&many), "two million arrays"),
        (
            "text that is none",
            array(4, [1, 2], "annotations", &element(17, &[0, 0xd8, 0, 0xd8])),
            "Unicode",
        ),
        (
            "the same variable twice",
            [
                array(CELL, [0, 0], "annotations", b""),
                array(CELL, [0, 0], "annotations", b""),
            ]
            .concat(),
            "two variables",
        ),
        ("compressed rubbish", element(15, &[1, 2, 3, 4]), "damaged"),
        ("nothing inside", compressed(b""), "ends in the middle"),
        (
            "an object in the place of structures",
            array(3, [1, 1], "annotations", b""),
            "no structures",
        ),
    ] {
        let message = cars.refusal(&mat(&elements));
        assert!(message.contains(part), "{what}: {message}");
    }
}

#[test]
fn a_compression_bomb_is_refused() {
    let bomb = compressed(&vec![0; 130 << 20]);
    assert!(bomb.len() < 1 << 20);
    assert_mentions(&Victim::cars().refusal(&mat(&bomb)), &["more than 128 MB"]);
}

// ------------------------------------------------------------------------------------------------- pickles

#[test]
fn hostile_pickles_are_refused() {
    let cifar = Victim::cifar();
    let pickle = |steps: &[u8]| [b"\x80\x02", steps].concat();
    let long_name = [b"c".as_slice(), &[b'a'; 5000], b"\nb\n."].concat();
    for (what, steps, part) in [
        (
            "bytes beyond the end",
            b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff.".to_vec(),
            "ends too early",
        ),
        ("bytes of 4 GB", b"B\xff\xff\xff\xff.".to_vec(), "ends too early"),
        (
            "a text beyond the end",
            b"X\xff\xff\xff\x7f.".to_vec(),
            "ends too early",
        ),
        ("an empty stack", b".".to_vec(), "more than it has put down"),
        ("below a mark", b"N(.".to_vec(), "more than it has put down"),
        ("no mark", b"Nt.".to_vec(), "more than it has put down"),
        ("something not remembered", b"h\x07.".to_vec(), "did not remember"),
        ("a list in itself", b"]q\x00h\x00a.".to_vec(), "no dictionary"),
        (
            "a dictionary in itself",
            b"}q\x00U\x04datah\x00s.".to_vec(),
            "no \"fine_labels\"",
        ),
        ("a key without a value", b"(Nd.".to_vec(), "key without a value"),
        ("append to none", b"NNa.".to_vec(), "no list"),
        ("set in none", b"NNNs.".to_vec(), "no dictionary"),
        ("state of none", b"NNb.".to_vec(), "no dictionary"),
        ("a long name", long_name, "too long"),
        ("a name that is no text", b"NN\x93.".to_vec(), "no text"),
        (
            "a key that is not UTF-8",
            b"}\x8c\x01\xffNs.".to_vec(),
            "no \"fine_labels\"",
        ),
        ("an unknown step", b"\xfe.".to_vec(), "0xfe at byte 2"),
        (
            "a call of anything",
            b"cos\nsystem\n(U\x02lstR.".to_vec(),
            "no dictionary",
        ),
        (
            "many steps",
            [b"N".to_vec(), b"2".repeat(8_400_000), b".".to_vec()].concat(),
            "8388608 instructions",
        ),
        ("many marks", b"(".repeat(8_400_000), "8388608 instructions"),
    ] {
        let message = cifar.refusal(&pickle(&steps));
        assert!(message.contains(part), "{what}: {message}");
        assert_mentions(&message, &["train"]);
    }
    // An array that says another size than it has, or a size beyond all numbers.
    let bytes = golden_bytes("cifar_protocol4");
    let place = bytes.windows(3).position(|w| w == [b'M', 0, 12]).unwrap();
    for size in [[b'M', 1, 12], [b'M', 255, 255]] {
        let mut wrong = bytes.clone();
        wrong[place..place + 3].copy_from_slice(&size);
        assert_mentions(&cifar.refusal(&wrong), &["\"data\"", "not of 6144"]);
    }
}
