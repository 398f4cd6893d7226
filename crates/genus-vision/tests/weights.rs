//! Weights files against what PyTorch reads in them, and against files that mean harm.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use genus_vision::{Tensor, Weights, WeightsError, read_weights, read_weights_from};
use proptest::prelude::*;
use serde_json::Value;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/weights")
}

fn expected() -> Value {
    serde_json::from_slice(&fs::read(goldens().join("expected.json")).unwrap()).unwrap()
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().unwrap().iter()
}

/// All goldens, those to refuse included, as (name, bytes).
fn all_files() -> Vec<(String, Vec<u8>)> {
    let expected = expected();
    let read = entries(&expected["read"]).map(|(name, _)| name.clone());
    let refused = entries(&expected["refused"]).map(|(name, _)| format!("refused/{name}"));
    let files = read.chain(refused);
    files
        .map(|name| (name.clone(), fs::read(goldens().join(name)).unwrap()))
        .collect()
}

fn parse(bytes: &[u8]) -> Result<Weights, WeightsError> {
    read_weights_from(Cursor::new(bytes), "file")
}

#[test]
fn every_form_is_read_as_pytorch_reads_it() {
    let expected = expected();
    for (file, expected) in entries(&expected["read"]) {
        let weights = read_weights(goldens().join(file)).unwrap_or_else(|e| panic!("{e}"));
        let tensors: BTreeMap<String, Tensor> = entries(&expected["tensors"])
            .map(|(name, tensor)| {
                let shape = serde_json::from_value(tensor["shape"].clone()).unwrap();
                let values = serde_json::from_value(tensor["values"].clone()).unwrap();
                (name.clone(), Tensor { shape, values })
            })
            .collect();
        assert_eq!(weights.tensors, tensors, "{file}");
        assert_eq!(weights.part.as_deref(), expected["part"].as_str(), "{file}");
    }
}

#[test]
fn what_cannot_be_used_is_refused_with_its_reason() {
    let expected = expected();
    for (file, reason) in entries(&expected["refused"]) {
        let path = goldens().join("refused").join(file);
        let error = read_weights(&path).expect_err(file).to_string();
        assert!(error.starts_with(&path.display().to_string()), "{error}");
        assert!(error.contains(reason.as_str().unwrap()), "{error}");
    }
    let error = read_weights(goldens().join("absent.pth")).unwrap_err();
    assert!(matches!(error, WeightsError::Io { .. }), "{error}");
}

#[test]
fn the_hash_is_that_of_names_shapes_and_values() {
    let weights = read_weights(goldens().join("plain.pth")).unwrap();
    let mut bytes = Vec::new();
    for (name, tensor) in &weights.tensors {
        bytes.extend((name.len() as u64).to_le_bytes());
        bytes.extend(name.bytes());
        bytes.extend((tensor.shape.len() as u64).to_le_bytes());
        bytes.extend(tensor.shape.iter().flat_map(|&n| (n as u64).to_le_bytes()));
        bytes.extend(tensor.values.iter().flat_map(|v| v.to_le_bytes()));
    }
    assert_eq!(weights.hash(), blake3::hash(&bytes));
    for same in [
        "plain.safetensors",
        "plain_legacy.pth",
        "deflated.pth",
        "big_endian.pth",
        "wrapped.pth",
        "protocol5_legacy.pth",
    ] {
        assert_eq!(
            read_weights(goldens().join(same)).unwrap().hash(),
            weights.hash(),
            "{same}"
        );
    }
    let mut other = weights.clone();
    other.tensors.get_mut("norm.bias").unwrap().shape = vec![2, 3];
    assert_ne!(other.hash(), weights.hash());
    let mut other = weights.clone();
    other.tensors.get_mut("norm.bias").unwrap().values[5] += 1.0;
    assert_ne!(other.hash(), weights.hash());
}

#[test]
fn a_file_cut_at_any_length_is_an_error() {
    for (name, bytes) in all_files() {
        for length in 0..bytes.len() {
            assert!(
                parse(&bytes[..length]).is_err(),
                "{name} cut to {length} bytes was read"
            );
        }
    }
}

/// splitmix64, for mutations that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// A few bytes of the file changed, put in, taken out or moved.
    fn mutate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len());
            if bytes.is_empty() {
                break;
            }
            match self.below(6) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.next() as u8,
                2 => bytes[at] = [0x00, 0x7f, 0x80, 0xff][self.below(4)],
                3 => bytes.insert(at, b"(N.)]}tuesqQR0\x81\x85\x94"[self.below(17)]),
                4 => drop(bytes.drain(at..(at + 1 + self.below(8)).min(bytes.len()))),
                _ => {
                    let from = self.below(bytes.len());
                    let piece = bytes[from..(from + self.below(24)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        bytes
    }
}

#[test]
fn changed_files_never_panic() {
    let mut random = Random(1);
    for (_, bytes) in all_files() {
        for _ in 0..400 {
            let _ = parse(&random.mutate(&bytes));
        }
    }
}

#[test]
fn changed_pickles_under_right_checksums_never_panic() {
    let mut random = Random(2);
    let mut read = 0;
    for (_, bytes) in all_files() {
        let Ok(mut archive) = ZipArchive::new(Cursor::new(bytes)) else {
            continue;
        };
        let names: Vec<String> = archive.file_names().map(|name| name.unwrap().into_owned()).collect();
        let mut contents = Vec::new();
        for name in names {
            let mut content = Vec::new();
            std::io::copy(&mut archive.by_name(&name).unwrap(), &mut content).unwrap();
            contents.push((name, content));
        }
        for _ in 0..400 {
            let changed = contents.iter().map(|(name, content)| match name.ends_with("data.pkl") {
                true => (name.as_str(), random.mutate(content)),
                false => (name.as_str(), content.clone()),
            });
            read += usize::from(parse(&zip_of(changed, CompressionMethod::Stored)).is_ok());
        }
    }
    // Some changes touch what is never looked at; were there none, the pickles would not be reached.
    assert!(read > 100, "{read}");
}

fn zip_of<'a>(files: impl IntoIterator<Item = (&'a str, Vec<u8>)>, method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(name, SimpleFileOptions::default().compression_method(method))
            .unwrap();
        zip.write_all(&content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A file with a pickle of one's own and one storage of the floats 0, 1, 2 and so on.
fn with_storage(pickle: &[u8], length: u16) -> Result<Weights, WeightsError> {
    let storage: Vec<u8> = (0..length).flat_map(|i| f32::from(i).to_le_bytes()).collect();
    let files = [("a/data.pkl", pickle.to_vec()), ("a/data/0", storage)];
    parse(&zip_of(files, CompressionMethod::Stored))
}

fn with_pickle(pickle: &[u8]) -> Result<Weights, WeightsError> {
    with_storage(pickle, 12)
}

/// A text of up to 255 bytes.
fn text(text: &str) -> Vec<u8> {
    [&[0x8c, text.len() as u8], text.as_bytes()].concat()
}

fn int(value: i64) -> Vec<u8> {
    [&[0x8a, 8][..], &value.to_le_bytes()].concat()
}

fn tuple(items: &[i64]) -> Vec<u8> {
    [
        b"(".to_vec(),
        items.iter().flat_map(|&i| int(i)).collect(),
        b"t".to_vec(),
    ]
    .concat()
}

/// A tensor on a storage that claims `length` floats.
fn tensor(length: i64, offset: i64, shape: &[i64], strides: &[i64]) -> Vec<u8> {
    [
        b"ctorch._utils\n_rebuild_tensor_v2\n((".to_vec(),
        text("storage"),
        b"ctorch\nFloatStorage\n".to_vec(),
        text("0"),
        text("cpu"),
        int(length),
        b"tQ".to_vec(),
        int(offset),
        tuple(shape),
        tuple(strides),
        b"\x89}tR".to_vec(),
    ]
    .concat()
}

fn dict(key: &str, value: &[u8]) -> Vec<u8> {
    [b"}".to_vec(), text(key), value.to_vec(), b"s".to_vec()].concat()
}

fn read_tensor(length: i64, offset: i64, shape: &[i64], strides: &[i64]) -> Result<Weights, WeightsError> {
    with_pickle(
        &[
            b"\x80\x02".to_vec(),
            dict("w", &tensor(length, offset, shape, strides)),
            b".".to_vec(),
        ]
        .concat(),
    )
}

#[test]
fn views_stay_in_their_storages() {
    let weights = read_tensor(12, 1, &[2, 2], &[6, 2]).unwrap();
    assert_eq!(weights.tensors["w"].values, [1.0, 3.0, 7.0, 9.0]);
    // The last element is the storage's last.
    assert!(read_tensor(12, 3, &[2, 2], &[6, 2]).is_ok());
    let max = i64::MAX;
    for (length, offset, shape, strides) in [
        (12, 4, &[2, 2][..], &[6, 2][..]),
        (12, 12, &[], &[]),
        (12, -1, &[2], &[1]),
        (12, 3, &[2], &[-1]),
        (12, 0, &[-2], &[1]),
        (12, 0, &[13], &[1]),
        (12, max, &[2], &[1]),
        (12, 0, &[2], &[max]),
        (12, 0, &[max, max], &[1, 1]),
        (12, 0, &[max, max], &[0, 0]),
        (12, 0, &[2], &[]),
        (12, 0, &[2], &[1, 1]),
        (max, 0, &[max], &[1]),
        (max, 0, &[2], &[1]),
        (13, 0, &[2], &[1]),
        (11, 0, &[2], &[1]),
        (-1, 0, &[2], &[1]),
    ] {
        let error = read_tensor(length, offset, shape, strides)
            .expect_err("outside")
            .to_string();
        assert!(
            error.contains("damaged") || error.contains("no valid"),
            "{length} {offset} {shape:?} {strides:?}: {error}"
        );
    }
    let seventeen = [1; 17];
    assert!(read_tensor(12, 0, &seventeen, &seventeen).is_err());
}

/// The values of a view by definition: every index times its stride.
fn view_by_definition(offset: i64, shape: &[i64], strides: &[i64]) -> Vec<f32> {
    let count: i64 = shape.iter().product();
    let value = |mut index: i64| {
        let mut place = offset;
        for (length, stride) in shape.iter().zip(strides).rev() {
            place += index % length * stride;
            index /= length;
        }
        place as f32
    };
    (0..count).map(value).collect()
}

proptest! {
    /// Several views of one storage, side by side or overlapping, in order or not.
    #[test]
    fn views_are_what_their_strides_say(
        views in prop::collection::vec(
            (0_i64..150, prop::collection::vec((0_i64..5, 0_i64..20), 0..4), any::<bool>()), 1..4)
    ) {
        let mut pickle = b"}(".to_vec();
        let mut expected = BTreeMap::new();
        for (i, (offset, dims, contiguous)) in views.iter().enumerate() {
            let (shape, mut strides): (Vec<i64>, Vec<i64>) = dims.iter().copied().unzip();
            if *contiguous {
                strides = (0..shape.len()).map(|i| shape[i + 1..].iter().product()).collect();
            }
            pickle.extend(text(&i.to_string()));
            pickle.extend(tensor(400, *offset, &shape, &strides));
            let values = view_by_definition(*offset, &shape, &strides);
            let shape = shape.iter().map(|&length| length as usize).collect();
            expected.insert(i.to_string(), Tensor { shape, values });
        }
        pickle.extend(b"u.");
        prop_assert_eq!(with_storage(&pickle, 400).unwrap().tensors, expected);
    }
}

#[test]
fn every_16_bit_float_is_converted() {
    for (dtype, value) in [
        ("F16", (|bits| half::f16::from_bits(bits).to_f32()) as fn(u16) -> f32),
        ("BF16", |bits| half::bf16::from_bits(bits).to_f32()),
    ] {
        let bits: Vec<u16> = (0..=u16::MAX).filter(|&bits| value(bits).is_finite()).collect();
        let (count, size) = (bits.len(), 2 * bits.len());
        let header = format!(r#"{{"a":{{"dtype":"{dtype}","shape":[{count}],"data_offsets":[0,{size}]}}}}"#);
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.bytes());
        bytes.extend(bits.iter().flat_map(|bits| bits.to_le_bytes()));
        let values = &parse(&bytes).unwrap().tensors["a"].values;
        let expected = bits.iter().map(|&bits| value(bits).to_bits());
        assert!(values.iter().map(|v| v.to_bits()).eq(expected), "{dtype}");
    }
}

#[test]
fn a_small_file_cannot_grow() {
    // One number repeated beyond all memory.
    let error = read_tensor(12, 0, &[1 << 40], &[0]).unwrap_err();
    assert!(matches!(error, WeightsError::TooLarge { .. }), "{error}");

    // The same tensor under a great many names.
    let mut pickle = [b"\x80\x02".to_vec(), tensor(12, 0, &[12], &[1]), b"q\x000}(".to_vec()].concat();
    for i in 0..100_000 {
        pickle.extend([&text(&i.to_string())[..], b"h\x00"].concat());
    }
    pickle.extend(b"u.");
    let many = with_pickle(&pickle).unwrap();
    assert_eq!(many.tensors.len(), 100_000);

    // Storages that unpack to a thousand times their size.
    let zeros = vec![0; 64 << 20];
    let pickle = [dict("w", &tensor(16 << 20, 0, &[16 << 20], &[1])), b".".to_vec()].concat();
    let bomb = zip_of(
        [("a/data.pkl", pickle), ("a/data/0", zeros)],
        CompressionMethod::Deflated,
    );
    assert!(bomb.len() < 1 << 20);
    let error = parse(&bomb).unwrap_err();
    assert!(matches!(error, WeightsError::TooLarge { .. }), "{error}");

    // A pickle that unpacks likewise.
    let nones = vec![b'N'; 64 << 20];
    let bomb = zip_of([("a/data.pkl", nones)], CompressionMethod::Deflated);
    let error = parse(&bomb).unwrap_err();
    assert!(matches!(error, WeightsError::TooLarge { .. }), "{error}");
}

#[test]
fn references_to_references_end() {
    // Every dictionary holds the one before it twice: 2^60 paths to one tensor.
    let mut pickle = dict("w", &tensor(12, 0, &[12], &[1]));
    for _ in 0..60 {
        pickle.extend(
            [
                b"q\x000}(".to_vec(),
                text("a"),
                b"h\x00".to_vec(),
                text("b"),
                b"h\x00u".to_vec(),
            ]
            .concat(),
        );
    }
    pickle.push(b'.');
    let error = with_pickle(&pickle).unwrap_err();
    assert!(matches!(error, WeightsError::TooLarge { .. }), "{error}");

    // A dictionary in itself, and one that is its own teacher.
    for key in ["a", "teacher"] {
        let pickle = [
            b"}q\x00".to_vec(),
            text(key),
            b"h\x00s".to_vec(),
            text("w"),
            tensor(12, 0, &[1], &[1]),
        ]
        .concat();
        let error = with_pickle(&[pickle, b"s.".to_vec()].concat()).unwrap_err();
        assert!(matches!(error, WeightsError::TooLarge { .. }), "{error}");
    }

    // A list in itself, and lists, tuples and marks in great depth: dropping them must not overflow the stack.
    assert!(with_pickle(b"]q\x00h\x00a.").is_err());
    for nest in [&b"]a"[..], b"\x85", b"("] {
        let deep = [b"]".to_vec(), nest.repeat(1 << 20), b".".to_vec()].concat();
        assert!(with_pickle(&deep).is_err());
    }
    // A tensor wrapped in functions that rebuild it.
    let mut pickle = b"N".to_vec();
    for _ in 0..100_000 {
        pickle.extend(b"q\x000ctorch._tensor\n_rebuild_from_type_v2\nNh\x00\x87");
    }
    pickle.extend(b"q\x000ctorch._tensor\n_rebuild_from_type_v2\nh\x00R.");
    assert!(with_pickle(&pickle).is_err());
}

#[test]
fn claimed_lengths_are_not_believed() {
    for opcode in [
        b"X\xff\xff\xff\xff".to_vec(),
        b"\x8b\xff\xff\xff\x7f".to_vec(),
        b"B\xff\xff\xff\xff".to_vec(),
    ] {
        assert!(with_pickle(&opcode).is_err());
    }
    for opcode in [0x8d, 0x8e, 0x96] {
        assert!(with_pickle(&[&[opcode][..], &u64::MAX.to_le_bytes()].concat()).is_err());
    }
    let header = |length: u64, json: &str| [&length.to_le_bytes(), json.as_bytes()].concat();
    for bytes in [
        header(u64::MAX, "{}"),
        header(99_999_999, "{}"),
        header(62, r#"{"a":{"dtype":"F32","shape":[4294967296],"data_offsets":[0,4]}}"#),
        header(
            70,
            r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,17179869184]}}"#,
        ),
        header(2, r#"{}"#),
    ] {
        assert!(parse(&bytes).is_err());
    }
}

#[test]
fn pickles_of_python_2_are_read() {
    // Strings instead of texts, and an ordered dictionary as a list of pairs.
    let mut pickle = b"\x80\x02ccollections\nOrderedDict\n(]](U\x01w".to_vec();
    pickle.extend(tensor(12, 0, &[3], &[1]));
    pickle.extend(b"eatR.");
    let weights = with_pickle(&pickle).unwrap();
    assert_eq!(weights.tensors["w"].values, [0.0, 1.0, 2.0]);
}

/// A released file in PyTorch's old format, where it lies beside the repository.
#[test]
#[ignore = "needs ../shared/weights/efficientnet_lite2.pth beside the repository"]
fn a_released_network_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/weights/efficientnet_lite2.pth");
    let weights = read_weights(&path).unwrap();
    assert_eq!(weights.part, None);
    assert_eq!(weights.tensors["_conv_stem.weight"].shape, [32, 3, 3, 3]);
    assert!(!weights.tensors.keys().any(|name| name.ends_with("num_batches_tracked")));
    println!("{} tensors, {}", weights.tensors.len(), weights.hash());
}

/// Weights are read at several places, which a pipe does not have; to open one would be to wait.
#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.pth");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for path in [pipe.as_path(), std::path::Path::new("/dev/zero")] {
        let said = genus_vision::read_weights(path).unwrap_err().to_string();
        assert!(
            said.contains(&path.display().to_string()) && said.contains("a device or a pipe"),
            "{said}"
        );
    }
}

/// A safetensors file of tensors with their types.
fn safetensors(tensors: &[(&str, safetensors::Dtype, &[usize], &[u8])]) -> Vec<u8> {
    let views = tensors.iter().map(|&(name, dtype, shape, bytes)| {
        let view = safetensors::tensor::TensorView::new(dtype, shape.to_vec(), bytes);
        (name, view.unwrap())
    });
    safetensors::serialize(views, None).unwrap()
}

#[test]
fn integers_of_8_bits_are_weights_where_they_have_scales() {
    use safetensors::Dtype::{F32, I8};
    let integers: Vec<u8> = [-127_i8, 0, 127, 1, -128, 64]
        .iter()
        .map(|v| v.cast_unsigned())
        .collect();
    let floats = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let scales = floats(&[0.5, 0.25]);
    let counter = [7];
    let file = safetensors(&[
        ("module.conv.weight", I8, &[2, 3, 1, 1], &integers),
        ("module.conv.weight.scale", F32, &[2], &scales),
        ("module.steps", I8, &[1], &counter),
    ]);
    let weights = parse(&file).unwrap();
    assert!(weights.int8);
    let names: Vec<&String> = weights.tensors.keys().collect();
    assert_eq!(names, ["conv.weight"]);
    let conv = &weights.tensors["conv.weight"];
    assert_eq!(conv.shape, [2, 3, 1, 1]);
    assert_eq!(conv.values, [-63.5, 0.0, 63.5, 0.25, -32.0, 16.0]);

    let three = floats(&[1.0; 3]);
    let infinite = floats(&[f32::MAX, 1.0]);
    for (shape, scales, expected) in [
        (&[3][..], &three, "no scale for every output channel"),
        (&[2, 1][..], &scales, "no scale for every output channel"),
        (&[2][..], &infinite, "conv.weight"),
    ] {
        let file = safetensors(&[
            ("conv.weight", I8, &[2, 3], &integers),
            ("conv.weight.scale", F32, shape, scales),
        ]);
        let error = parse(&file).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
