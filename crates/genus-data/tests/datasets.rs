//! The paper's data sets in the layouts that people have: found, listed, split, and refused with the missing piece.

mod common;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use common::{assert_mentions, golden};
use genus_data::datasets::{DATASETS, DatasetEntry, ImageSet, Images};
use genus_data::{DataError, Split};
use genus_files::RawPixels;
use tempfile::TempDir;

/// A folder with these files; those that end in `/` are folders.
fn tree<S: AsRef<str>>(files: &[S]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for file in files {
        put(root.path(), file.as_ref(), "");
    }
    root
}

fn put(root: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = root.join(name);
    if name.ends_with('/') {
        fs::create_dir_all(path).unwrap();
    } else {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn put_golden(root: &Path, name: &str, golden_name: &str) {
    let bytes = fs::read(golden("datasets").join(golden_name)).unwrap();
    put(root, name, bytes);
}

fn open(name: &str, root: &Path, images: Images) -> Result<ImageSet, DataError> {
    DatasetEntry::find(name).unwrap().open(root, images)
}

#[track_caller]
fn refusal(name: &str, root: &Path, images: Images) -> String {
    match open(name, root, images) {
        Ok(set) => panic!("{name} was found: {set:?}"),
        Err(error) => error.to_string(),
    }
}

/// The ids and the labels.
fn listed(set: &ImageSet) -> Vec<(&str, &str)> {
    let items = set.list.items.iter();
    items
        .map(|item| (item.id.as_str(), item.label.as_deref().unwrap()))
        .collect()
}

fn ids(set: &ImageSet) -> Vec<&str> {
    set.list.items.iter().map(|item| item.id.as_str()).collect()
}

#[track_caller]
fn assert_note(set: &ImageSet, part: &str) {
    assert!(set.notes.iter().any(|note| note.contains(part)), "{:?}", set.notes);
}

/// The split that ships with the crate.
fn shipped(name: &str) -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/datasets/splits.json");
    let all: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    all[name].clone()
}

fn numbers(value: &serde_json::Value) -> Vec<usize> {
    let numbers = value.as_array().unwrap().iter();
    numbers.map(|n| n.as_u64().unwrap() as usize).collect()
}

fn texts(value: &serde_json::Value) -> Vec<String> {
    let texts = value.as_array().unwrap().iter();
    texts.map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// What is known of every split: disjoint, complete, of the published sizes, in the order of the lists.
#[track_caller]
fn assert_split(set: &ImageSet, base: usize, novel: usize) {
    let split = shipped(&set.name);
    let names = |list: &str| -> Vec<String> {
        let places = numbers(&split[list]);
        places.iter().map(|&place| set.classes[place].clone()).collect()
    };
    assert_eq!((set.base.len(), set.novel.len()), (base, novel));
    assert_eq!(set.classes.len(), base + novel);
    assert_eq!(set.base, names("known"));
    assert_eq!(set.novel, names("new"));
    let all: BTreeSet<&String> = set.base.iter().chain(&set.novel).collect();
    assert_eq!(all, set.classes.iter().collect());
    assert_eq!(
        set.images_of(&set.base) + set.images_of(&set.novel),
        set.list.items.len()
    );
    let ids: HashSet<&str> = set.list.items.iter().map(|item| item.id.as_str()).collect();
    assert_eq!(ids.len(), set.list.items.len());
}

// ------------------------------------------------------------------------------------------------- names

#[test]
fn names_and_choices_are_found() {
    let names: Vec<&str> = DATASETS.iter().map(|entry| entry.name).collect();
    assert_eq!(
        names,
        [
            "cifar100",
            "imagenet100",
            "cub200",
            "cars",
            "aircraft",
            "herbarium19",
            "omniglot"
        ]
    );
    for entry in DATASETS {
        assert_eq!(
            DatasetEntry::find(&entry.name.to_uppercase()).unwrap().title,
            entry.title
        );
        assert!(!entry.layouts.is_empty() && !entry.paper.is_empty() && !entry.split_source().is_empty());
    }
    let unknown = DatasetEntry::find("mnist").err().unwrap().to_string();
    assert_mentions(&unknown, &["\"mnist\"", "cifar100, imagenet100, cub200"]);
    for images in Images::ALL {
        assert_eq!(images.to_string().parse(), Ok(images));
    }
    assert_eq!("Paper".parse(), Ok(Images::Paper));
    assert_eq!(Images::default(), Images::All);
    let wrong = "validation".parse::<Images>().unwrap_err().to_string();
    assert_mentions(&wrong, &["\"validation\"", "train, test, all or paper"]);
}

#[test]
fn nothing_found_names_everything_that_was_looked_for() {
    let root = tree(&["readme.txt", "cifar100/notes.txt"]);
    for entry in DATASETS {
        let message = entry.open(root.path(), Images::All).unwrap_err().to_string();
        assert_mentions(&message, &[entry.title, root.path().to_str().unwrap()]);
    }
    let message = refusal("cifar100", root.path(), Images::All);
    for file in [
        "train",
        "train.bin",
        "cifar-100-python",
        "cifar100/train.bin",
        "cifar100/test",
    ] {
        assert_mentions(&message, &[&format!("{}\n", root.path().join(file).display())]);
    }
    let message = refusal("cars", root.path(), Images::All);
    assert_mentions(
        &message,
        &[
            "devkit/cars_test_annos_withlabels.mat",
            "anno_train.csv",
            "cars_annos.mat",
        ],
    );
    let message = refusal("cub200", &root.path().join("absent"), Images::All);
    assert_mentions(&message, &["absent", "cannot read"]);
    let message = refusal("cub200", &root.path().join("readme.txt"), Images::All);
    assert_mentions(&message, &["readme.txt", "not a folder", "CUB-200"]);
}

#[test]
fn shipped_splits_are_disjoint_and_complete() {
    let sizes = [
        ("cifar100", 50, 50),
        ("imagenet100", 50, 50),
        ("cub200", 100, 100),
        ("cars", 98, 98),
        ("aircraft", 50, 50),
        ("herbarium19", 341, 342),
        ("omniglot", 30, 20),
    ];
    for (name, known, new) in sizes {
        let split = shipped(name);
        let lists = [numbers(&split["known"]), numbers(&split["new"])];
        assert_eq!([lists[0].len(), lists[1].len()], [known, new], "{name}");
        let all: BTreeSet<usize> = lists.into_iter().flatten().collect();
        assert!(all.into_iter().eq(0..known + new), "{name}");
        if let Some(classes) = split["classes"].as_array() {
            let distinct: HashSet<&str> = classes.iter().map(|class| class.as_str().unwrap()).collect();
            assert_eq!(distinct.len(), known + new, "{name}");
        }
    }
}

#[test]
fn hard_new_cars_are_other_years_of_known_cars() {
    // This holds in the official order of the classes alone, and so checks the shipped names against the split.
    let split = shipped("cars");
    let (classes, known, new) = (
        texts(&split["classes"]),
        numbers(&split["known"]),
        numbers(&split["new"]),
    );
    let model = |class: &usize| classes[*class].rsplit_once(' ').unwrap().0.to_owned();
    let known: HashSet<String> = known.iter().map(model).collect();
    for class in &new[..7] {
        assert!(known.contains(&model(class)), "{}", classes[*class]);
    }
    // The trap: sorted by name the order is another.
    assert!(!classes.is_sorted());
}

// ------------------------------------------------------------------------------------------------- CIFAR-100

fn cifar(train: &str, test: &str, meta: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, golden_name) in [("train", train), ("test", test), ("meta", meta)] {
        if !golden_name.is_empty() {
            put_golden(root.path(), &format!("cifar-100-python/{name}"), golden_name);
        }
    }
    root
}

/// The pixels of an image, which must be those that the script of the goldens has put there.
fn assert_pixels(path: &Path, pixels: RawPixels, image: usize) {
    assert_eq!((pixels.width, pixels.height), (32, 32));
    let bytes = fs::read(path).unwrap();
    let found = &bytes[pixels.offset as usize..][..3072];
    let expected: Vec<u8> = (0..3072).map(|j| ((7 * image + j) % 251) as u8).collect();
    assert_eq!(found, expected);
}

#[test]
fn cifar_pickles_of_python_2_and_3_are_read_in_place() {
    for (test, meta) in [
        ("cifar_protocol3", "cifar_meta"),
        ("cifar_protocol4", "cifar_meta"),
        ("cifar_protocol5", "cifar_meta_protocol4"),
    ] {
        let root = cifar("cifar_python2", test, meta);
        let set = open("cifar100", root.path(), Images::All).unwrap();
        assert_eq!(
            listed(&set),
            [
                ("train/00000", "class_13"),
                ("train/00001", "class_43"),
                ("train/00002", "class_73"),
                ("test/00000", "class_13"),
                ("test/00001", "class_43"),
            ]
        );
        for (item, image) in set.list.items.iter().zip([0, 1, 2, 0, 1]) {
            assert_pixels(&item.path, item.pixels.unwrap(), image);
        }
        assert_eq!((set.classes.len(), &*set.classes[99]), (100, "class_99"));
        assert_eq!(set.base, ["class_13", "class_43"]);
        assert_eq!(set.novel, ["class_73"]);
        assert_eq!((set.images_of(&set.base), set.images_of(&set.novel)), (4, 1));
        assert_note(&set, "97 of 100 classes have no images");
        assert_eq!(set.root, root.path().join("cifar-100-python"));
        // The folder itself may be named, too, and the paper takes the training images.
        let set = open("cifar100", &set.root, Images::Paper).unwrap();
        assert_eq!(ids(&set), ["train/00000", "train/00001", "train/00002"]);
        let set = open("cifar100", root.path(), Images::Test).unwrap();
        assert_eq!(ids(&set), ["test/00000", "test/00001"]);
    }
}

#[test]
fn cifar_pickles_of_other_kinds_are_refused_with_the_way_out() {
    for (train, parts) in [
        (
            "cifar_latin1",
            ["as a text", "protocol=4", "cifar-100-binary"].as_slice(),
        ),
        ("cifar_protocol0", &["protocols 2 to 5", "protocol=4"]),
        ("cifar_fortran", &["\"data\"", "row after row"]),
        ("cifar_uint16", &["\"data\"", "uint8"]),
        ("cifar_wide", &["6144 bytes", "3072"]),
        ("cifar_no_array", &["\"data\"", "array of NumPy"]),
        ("cifar_list", &["no dictionary"]),
        ("cifar_label_100", &["row 1", "label 100", "0 to 99"]),
        ("cifar_label_negative", &["row 1", "label -1"]),
        ("cifar_labels_short", &["2 images and 1 labels"]),
        ("cifar_meta", &["no \"fine_labels\""]),
    ] {
        let root = cifar(train, "", "cifar_meta");
        let message = refusal("cifar100", root.path(), Images::Train);
        assert_mentions(&message, parts);
        assert_mentions(&message, &["cifar-100-python/train"]);
    }
    let root = cifar("cifar_python2", "", "cifar_python2");
    assert_mentions(
        &refusal("cifar100", root.path(), Images::Train),
        &["meta", "fine_label_names"],
    );
}

#[test]
fn cifar_without_a_piece() {
    let root = cifar("cifar_python2", "", "");
    let message = refusal("cifar100", root.path(), Images::All);
    assert_mentions(
        &message,
        &[
            "cifar-100-python/test is missing",
            "cifar-100-python.tar.gz",
            "\"train\"",
        ],
    );
    let set = open("cifar100", root.path(), Images::Train).unwrap();
    assert_note(&set, "meta is missing: the classes have their official names");
    assert_eq!(listed(&set)[0], ("train/00000", "bus"));
    assert_eq!(set.classes, texts(&shipped("cifar100")["classes"]));
}

/// The binary version of images with these coarse and fine labels.
fn binary(labels: &[(u8, u8)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (i, &(coarse, fine)) in labels.iter().enumerate() {
        bytes.extend([coarse, fine]);
        bytes.extend((0..3072).map(|j| ((7 * i + j) % 251) as u8));
    }
    bytes
}

#[test]
fn cifar_binary_version() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cifar-100-binary");
    put(&folder, "train.bin", binary(&[(19, 99), (0, 0), (3, 50)]));
    let set = open("cifar100", root.path(), Images::Train).unwrap();
    assert_note(&set, "fine_label_names.txt is missing");
    assert_eq!(
        listed(&set),
        [
            ("train/00000", "worm"),
            ("train/00001", "apple"),
            ("train/00002", "mouse")
        ]
    );
    assert_eq!((set.base.len(), set.novel.len()), (1, 2));
    for (image, item) in set.list.items.iter().enumerate() {
        assert_pixels(&item.path, item.pixels.unwrap(), image);
    }
    let names: Vec<String> = (0..100).map(|i| format!("name {i}")).collect();
    put(&folder, "fine_label_names.txt", names.join("\n") + "\n\n");
    put(&folder, "test.bin", binary(&[(0, 7)]));
    let set = open("cifar100", root.path(), Images::All).unwrap();
    assert_eq!(listed(&set)[3], ("test/00000", "name 7"));

    put(&folder, "fine_label_names.txt", names[1..].join("\r\n"));
    assert_mentions(
        &refusal("cifar100", root.path(), Images::All),
        &["fine_label_names.txt", "99 classes", "100"],
    );
    put(&folder, "fine_label_names.txt", vec!["same"; 100].join("\n"));
    assert_mentions(
        &refusal("cifar100", root.path(), Images::All),
        &["two classes", "\"same\""],
    );
    put(&folder, "fine_label_names.txt", b"caf\xe9\n");
    assert_mentions(&refusal("cifar100", root.path(), Images::All), &["line 1", "UTF-8"]);
    fs::remove_file(folder.join("fine_label_names.txt")).unwrap();
    for (bytes, part) in [
        (binary(&[(0, 1), (0, 100)]), "row 2: label 100"),
        (binary(&[(20, 1)]), "row 1: label 20"),
        (binary(&[(0, 1)])[..3073].to_vec(), "3073 bytes are no whole number"),
        (Vec::new(), "0 bytes"),
    ] {
        put(&folder, "test.bin", bytes);
        assert_mentions(&refusal("cifar100", root.path(), Images::Test), &["test.bin", part]);
    }
    fs::remove_file(folder.join("test.bin")).unwrap();
    assert_mentions(
        &refusal("cifar100", root.path(), Images::Test),
        &["test.bin is missing", "cifar-100-binary.tar.gz"],
    );
}

#[test]
fn cifar_folders() {
    let classes = texts(&shipped("cifar100")["classes"]);
    let mut files: Vec<String> = classes
        .iter()
        .map(|class| format!("cifar100/train/{class}/b.png"))
        .collect();
    files.extend(
        ["apple/a.png", "apple/notes.txt", ".hidden/x.png", "dragon/x.png"].map(|f| format!("cifar100/train/{f}")),
    );
    let root = tree(&files);
    let set = open("cifar100", root.path(), Images::Paper).unwrap();
    assert_split(&set, 50, 50);
    assert_eq!(set.list.items.len(), 101);
    assert_eq!(
        listed(&set)[..2],
        [("train/apple/a.png", "apple"), ("train/apple/b.png", "apple")]
    );
    assert!(set.list.items.iter().all(|item| item.pixels.is_none()));
    assert_note(&set, "train/dragon");
    assert_mentions(
        &refusal("cifar100", root.path(), Images::All),
        &["cifar100/test is missing", "\"train\""],
    );
    put(root.path(), "cifar100/test/Sweet Pepper/1.png", "");
    let set = open("cifar100", root.path(), Images::Test).unwrap();
    assert_eq!(listed(&set), [("test/Sweet Pepper/1.png", "sweet_pepper")]);
    assert_eq!((set.base.len(), &*set.novel[0]), (0, "sweet_pepper"));
}

// ------------------------------------------------------------------------------------------------- ImageNet-100

#[test]
fn imagenet_with_all_classes_gives_the_published_hundred() {
    let wnids = texts(&shipped("imagenet100")["classes"]);
    let mut files = vec![
        "imagenet/train/n00000001/x.JPEG".to_owned(),
        "imagenet/train/n99999999/x.JPEG".to_owned(),
    ];
    files.extend(wnids.iter().map(|wnid| format!("imagenet/train/{wnid}/{wnid}_1.JPEG")));
    files.push("imagenet/train/extra/x.JPEG".to_owned());
    let root = tree(&files);
    let set = open("imagenet100", root.path(), Images::Paper).unwrap();
    assert_split(&set, 50, 50);
    assert_eq!(set.classes, wnids);
    assert_eq!(set.list.items.len(), 100);
    assert_eq!(listed(&set)[0], ("train/n01443537/n01443537_1.JPEG", "n01443537"));
    assert!(set.notes.is_empty(), "{:?}", set.notes);

    assert_mentions(
        &refusal("imagenet100", root.path(), Images::All),
        &["imagenet/val", "is missing", "\"train\""],
    );
    put(root.path(), "imagenet/val/ILSVRC2012_val_00000001.JPEG", "");
    assert_mentions(
        &refusal("imagenet100", root.path(), Images::Test),
        &["imagenet/val", "without a folder a class", "sort them"],
    );
    fs::remove_dir_all(root.path().join("imagenet/train").join(&wnids[7])).unwrap();
    fs::remove_dir_all(root.path().join("imagenet/train").join(&wnids[9])).unwrap();
    put(root.path(), "imagenet/train/n00000002/", "");
    let message = refusal("imagenet100", root.path(), Images::Train);
    assert_mentions(
        &message,
        &[&format!("train/{} is missing", wnids[7]), &wnids[9], "2 of the 100"],
    );
}

#[test]
fn imagenet_with_a_hundred_folders_takes_them_all() {
    let files = |part: &str| {
        (0..100)
            .map(|i| format!("{part}/n{:08}/1.JPEG", 7 * i + 3))
            .collect::<Vec<_>>()
    };
    let root = tree(&[files("train"), files("val")].concat());
    let set = open("imagenet100", root.path(), Images::All).unwrap();
    assert_split(&set, 50, 50);
    assert_eq!(set.list.items.len(), 200);
    assert_eq!(set.base[..2], ["n00000003", "n00000010"]);
    assert_note(&set, "not the published hundred");
    let set = open("imagenet100", root.path(), Images::Test).unwrap();
    assert_eq!(ids(&set)[0], "val/n00000003/1.JPEG");
    // The test images alone are a data set, too.
    fs::remove_dir_all(root.path().join("train")).unwrap();
    assert_eq!(open("imagenet100", root.path(), Images::Test).unwrap(), set);
}

// ------------------------------------------------------------------------------------------------- CUB-200

/// Four images of three classes; the last is not there.
fn cub() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let classes: String = (1..=200).map(|n| format!("{n} {n:03}.Bird_{n}\n")).collect();
    put(root.path(), "CUB_200_2011/classes.txt", classes);
    let images = "1 001.Bird_1/a.jpg\n2 001.Bird_1/b.jpg\n3 151.Bird_151/c d.jpg\n4 200.Bird_200/gone.jpg\n";
    put(root.path(), "CUB_200_2011/images.txt", images);
    put(
        root.path(),
        "CUB_200_2011/image_class_labels.txt",
        "1 1\n2 1\n3 151\n4 200\n",
    );
    put(root.path(), "CUB_200_2011/train_test_split.txt", "1 0\n2 1\n3 1\n4 1\n");
    for image in [
        "001.Bird_1/a.jpg",
        "001.Bird_1/b.jpg",
        "151.Bird_151/c d.jpg",
        "003.Bird_3/unlisted.jpg",
    ] {
        put(root.path(), &format!("CUB_200_2011/images/{image}"), "");
    }
    root
}

#[test]
fn cub_by_its_lists() {
    let root = cub();
    let set = open("cub200", root.path(), Images::All).unwrap();
    assert_eq!(
        listed(&set),
        [
            ("images/001.Bird_1/a.jpg", "001.Bird_1"),
            ("images/001.Bird_1/b.jpg", "001.Bird_1"),
            ("images/151.Bird_151/c d.jpg", "151.Bird_151"),
        ]
    );
    assert!(set.list.items.iter().all(|item| item.path.is_file()));
    // Of the published list, class 151 is the first and class 1 is further down.
    assert_eq!(set.base, ["151.Bird_151", "001.Bird_1"]);
    let (path, reason) = &set.list.skipped[0];
    assert!(path.ends_with("200.Bird_200/gone.jpg"));
    assert_mentions(reason, &["annotations list it"]);
    assert_note(&set, "1 file is skipped");
    let train = open("cub200", root.path(), Images::Train).unwrap();
    assert_eq!(ids(&train), ["images/001.Bird_1/b.jpg", "images/151.Bird_151/c d.jpg"]);
    assert_eq!(open("cub200", root.path(), Images::Paper).unwrap(), train);
    let test = open("cub200", root.path(), Images::Test).unwrap();
    assert_eq!(ids(&test), ["images/001.Bird_1/a.jpg"]);
}

#[test]
fn cub_without_a_piece_names_it() {
    for (piece, images, parts) in [
        ("images.txt", Images::All, ["images.txt is missing", "CUB_200_2011.tgz"]),
        (
            "image_class_labels.txt",
            Images::All,
            ["image_class_labels.txt is missing", "CUB_200_2011.tgz"],
        ),
        (
            "classes.txt",
            Images::All,
            ["classes.txt is missing", "CUB_200_2011.tgz"],
        ),
        (
            "train_test_split.txt",
            Images::Train,
            ["train_test_split.txt is missing", "\"all\""],
        ),
        ("images", Images::All, ["CUB_200_2011/images is missing", "unpack"]),
    ] {
        let root = cub();
        let path = root.path().join("CUB_200_2011").join(piece);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        assert_mentions(&refusal("cub200", root.path(), images), &parts);
    }
    let root = cub();
    fs::remove_file(root.path().join("CUB_200_2011/train_test_split.txt")).unwrap();
    assert_eq!(open("cub200", root.path(), Images::All).unwrap().list.items.len(), 3);
    fs::remove_dir_all(root.path().join("CUB_200_2011/images")).unwrap();
    put(root.path(), "CUB_200_2011/images/", "");
    assert_mentions(
        &refusal("cub200", root.path(), Images::All),
        &["none of the 4 images", "a.jpg", "unpack"],
    );
}

#[test]
fn cub_with_damaged_lists() {
    for (file, content, parts) in [
        (
            "image_class_labels.txt",
            "1 1\n2 201\n3 151\n4 200\n",
            ["image 2 has the class 201", "1 to 200"],
        ),
        (
            "image_class_labels.txt",
            "1 1\n2 0\n3 151\n4 200\n",
            ["image 2 has the class 0", "1 to 200"],
        ),
        (
            "image_class_labels.txt",
            "1 1\n2 two\n3 151\n4 200\n",
            ["image 2 has the class two", "1 to 200"],
        ),
        (
            "image_class_labels.txt",
            "1 1\n3 151\n4 200\n",
            ["no class for image 2", "b.jpg"],
        ),
        ("image_class_labels.txt", "1 1\n1 2\n", ["line 2", "second time"]),
        ("images.txt", "1 a.jpg\nb.jpg\n", ["line 2", "\"b.jpg\" is no number"]),
        ("images.txt", "1\n", ["line 1", "nothing follows"]),
        ("classes.txt", "1 a\n2 b\n", ["classes.txt", "from 1 to 200"]),
        (
            "train_test_split.txt",
            "1 0\n2 5\n3 1\n4 1\n",
            ["train_test_split.txt", "image 2 has neither"],
        ),
    ] {
        let root = cub();
        put(root.path(), &format!("CUB_200_2011/{file}"), content);
        assert_mentions(&refusal("cub200", root.path(), Images::Train), &parts);
    }
    // The same file under two numbers, and one that would lie elsewhere.
    let root = cub();
    put(root.path(), "secret.jpg", "");
    let images = "1 001.Bird_1/a.jpg\n2 001.Bird_1/a.jpg\n3 ../../secret.jpg\n4 /etc/passwd\n";
    put(root.path(), "CUB_200_2011/images.txt", images);
    let set = open("cub200", root.path(), Images::All).unwrap();
    assert_eq!(ids(&set), ["images/001.Bird_1/a.jpg"]);
    let reasons: Vec<&str> = set.list.skipped.iter().map(|skipped| skipped.1.as_str()).collect();
    assert_mentions(reasons[0], &["twice"]);
    assert_mentions(reasons[1], &["outside"]);
    assert_eq!(reasons.len(), 3);
}

#[test]
fn cub_folders() {
    let mut files: Vec<String> = (1..=200).map(|n| format!("cub200/{n:03}.Bird_{n}/x.jpg")).collect();
    files.extend(["cub200/201.Extra/x.jpg", "cub200/notes/x.jpg", "cub200/license.txt"].map(str::to_owned));
    let root = tree(&files);
    let set = open("cub200", root.path(), Images::All).unwrap();
    assert_split(&set, 100, 100);
    assert_eq!(set.base[0], "151.Bird_151");
    assert!(set.notes.is_empty(), "{:?}", set.notes);
    for images in [Images::Train, Images::Paper] {
        let set = open("cub200", root.path(), images).unwrap();
        assert_eq!(set.list.items.len(), 200);
        assert_note(&set, "train_test_split.txt is not there");
    }
    assert_mentions(
        &refusal("cub200", root.path(), Images::Test),
        &["train_test_split.txt is missing", "\"all\""],
    );
    fs::remove_dir_all(root.path().join("cub200/007.Bird_7")).unwrap();
    let set = open("cub200", root.path(), Images::All).unwrap();
    assert_eq!(set.classes[6], "007");
    assert_note(&set, "1 of 200 classes have no images here and are left out: 007");
    put(root.path(), "cub200/008.Again/x.jpg", "");
    assert_mentions(
        &refusal("cub200", root.path(), Images::All),
        &["008.Bird_8", "two folders"],
    );
}

#[test]
fn cub_folders_in_halves() {
    let files = (1..=200).flat_map(|n| {
        let of = |part: &str| format!("cub200/{part}/{n:03}.Bird_{n}/{part}.jpg");
        [of("train"), of("test")]
    });
    let root = tree(&files.collect::<Vec<_>>());
    let all = open("cub200", root.path(), Images::All).unwrap();
    assert_split(&all, 100, 100);
    assert_eq!(all.list.items.len(), 400);
    let train = open("cub200", root.path(), Images::Train).unwrap();
    assert_eq!(train.list.items.len(), 200);
    assert_eq!(ids(&train)[0], "train/001.Bird_1/train.jpg");
    assert_eq!(open("cub200", root.path(), Images::Paper).unwrap(), train);
    let test = open("cub200", root.path(), Images::Test).unwrap();
    assert!(ids(&test).iter().all(|id| id.starts_with("test/")));
    fs::remove_dir_all(root.path().join("cub200/test")).unwrap();
    assert_eq!(open("cub200", root.path(), Images::Train).unwrap(), train);
    assert_mentions(
        &refusal("cub200", root.path(), Images::Test),
        &["test", "folder a class"],
    );
}

// ------------------------------------------------------------------------------------------------- Stanford Cars

const CAR_ITEMS: [(&str, usize); 5] = [
    ("cars_train/00001.jpg", 14),
    ("cars_train/00002.jpg", 2),
    ("cars_train/00003.jpg", 196),
    ("cars_test/00001.jpg", 181),
    ("cars_test/00002.jpg", 24),
];

/// The images of the annotations and the devkit at these places.
fn cars(train: &str, test: &str, meta: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (item, _) in CAR_ITEMS {
        put(root.path(), item, "");
    }
    for (place, file) in [
        (train, "cars_train_annos.mat"),
        (test, "cars_test_annos_withlabels.mat"),
        (meta, "cars_meta.mat"),
    ] {
        if !place.is_empty() {
            put_golden(root.path(), &format!("{place}/{file}"), file);
        }
    }
    root
}

#[test]
fn cars_devkit_wherever_it_lies() {
    for (train, test, meta) in [
        ("devkit", "devkit", "devkit"),
        ("devkit", ".", "devkit"),
        ("car_devkit/devkit", "car_devkit/devkit", "car_devkit/devkit"),
        ("devkit", "devkit", ""),
    ] {
        let root = cars(train, test, meta);
        let set = open("cars", root.path(), Images::All).unwrap();
        let official = texts(&shipped("cars")["classes"]);
        for ((id, label), (expected, number)) in listed(&set).into_iter().zip(CAR_ITEMS) {
            assert_eq!((id, label), (expected, set.classes[number - 1].as_str()));
        }
        assert_eq!(set.list.items.len(), 5);
        if meta.is_empty() {
            assert_eq!(set.classes, official);
            assert_note(&set, "cars_meta.mat is missing");
        } else {
            assert_eq!(set.classes[1], "Citroën Größe 2012");
            assert_eq!(set.classes[173], official[173]);
        }
        assert_eq!(ids(&open("cars", root.path(), Images::Train).unwrap()).len(), 3);
        assert_eq!(ids(&open("cars", root.path(), Images::Test).unwrap()).len(), 2);
        // Class 196 of the training images falls to the authors' 160 classes, class 181 of the test images does not.
        let paper = open("cars", root.path(), Images::Paper).unwrap();
        assert_eq!(
            ids(&paper),
            [
                "cars_train/00001.jpg",
                "cars_train/00002.jpg",
                "cars_test/00001.jpg",
                "cars_test/00002.jpg"
            ]
        );
        assert_note(&paper, "161 to 196 are dropped");
    }
}

#[test]
fn cars_annotations_of_every_kind_say_the_same() {
    let root = cars("devkit", "devkit", "devkit");
    let expected = open("cars", root.path(), Images::All).unwrap();
    for golden_name in ["cars_train_plain.mat", "cars_train_big_endian.mat"] {
        put_golden(root.path(), "devkit/cars_train_annos.mat", golden_name);
        assert_eq!(
            open("cars", root.path(), Images::All).unwrap(),
            expected,
            "{golden_name}"
        );
    }
}

#[test]
fn cars_in_folders_of_folders_and_in_one_file() {
    let root = cars("car_devkit/devkit", "car_devkit/devkit", "car_devkit/devkit");
    for half in ["cars_train", "cars_test"] {
        fs::rename(root.path().join(half), root.path().join("moved")).unwrap();
        fs::create_dir(root.path().join(half)).unwrap();
        fs::rename(root.path().join("moved"), root.path().join(half).join(half)).unwrap();
    }
    let set = open("cars", root.path(), Images::All).unwrap();
    assert_eq!(ids(&set)[3], "cars_test/cars_test/00001.jpg");
    assert_eq!(set.list.items.len(), 5);

    let files: Vec<String> = (1..=5).map(|i| format!("stanford_cars/car_ims/{i:06}.jpg")).collect();
    let root = tree(&files);
    put_golden(root.path(), "stanford_cars/cars_annos.mat", "cars_annos.mat");
    let one = open("cars", root.path(), Images::All).unwrap();
    let labels = |set: &ImageSet| set.list.items.iter().map(|item| item.label.clone()).collect::<Vec<_>>();
    assert_eq!(labels(&one), labels(&set));
    assert_eq!(
        ids(&open("cars", root.path(), Images::Test).unwrap()),
        ["car_ims/000004.jpg", "car_ims/000005.jpg"]
    );
    assert_eq!(open("cars", root.path(), Images::Paper).unwrap().list.items.len(), 4);
}

#[test]
fn cars_without_a_piece() {
    let root = cars("devkit", "", "devkit");
    put_golden(root.path(), "devkit/cars_test_annos.mat", "cars_test_annos.mat");
    let message = refusal("cars", root.path(), Images::All);
    assert_mentions(
        &message,
        &[
            "devkit/cars_test_annos_withlabels.mat is missing",
            "cars_test_annos.mat has no classes",
            "\"train\"",
        ],
    );
    assert_eq!(open("cars", root.path(), Images::Train).unwrap().list.items.len(), 3);
    // The file without the classes under the name of the other.
    put_golden(
        root.path(),
        "devkit/cars_test_annos_withlabels.mat",
        "cars_test_annos.mat",
    );
    assert_mentions(
        &refusal("cars", root.path(), Images::Test),
        &["no \"class\"", "without the classes"],
    );

    let root = cars("devkit", "devkit", "devkit");
    fs::remove_file(root.path().join("cars_train/00002.jpg")).unwrap();
    let set = open("cars", root.path(), Images::All).unwrap();
    assert_eq!(set.list.items.len(), 4);
    assert!(set.list.skipped[0].0.ends_with("cars_train/00002.jpg"));
    fs::remove_dir_all(root.path().join("cars_test")).unwrap();
    assert_mentions(
        &refusal("cars", root.path(), Images::All),
        &["cars_test is missing", "cars_test.tgz"],
    );

    for (file, golden_name, parts) in [
        ("cars_train_annos.mat", "cars_class_0.mat", ["row 2", "1 to 196"]),
        ("cars_train_annos.mat", "cars_class_197.mat", ["row 1", "1 to 196"]),
        (
            "cars_train_annos.mat",
            "cars_meta.mat",
            ["cars_train_annos.mat", "no structures \"annotations\""],
        ),
        ("cars_meta.mat", "cars_meta_short.mat", ["195 classes", "196"]),
        (
            "cars_meta.mat",
            "cars_train_annos.mat",
            ["cars_meta.mat", "no \"class_names\""],
        ),
    ] {
        let root = cars("devkit", "devkit", "devkit");
        put_golden(root.path(), &format!("devkit/{file}"), golden_name);
        assert_mentions(&refusal("cars", root.path(), Images::All), &parts);
    }
}

#[test]
fn cars_as_csv() {
    let root = tempfile::tempdir().unwrap();
    let official = texts(&shipped("cars")["classes"]);
    put(
        root.path(),
        "anno_train.csv",
        "00001.jpg,39,116,569,375,14\n00002.jpg,1,2,3,4,196\n00009.jpg,1,2,3,4,1\n",
    );
    put(
        root.path(),
        "anno_test.csv",
        "fname,x1,y1,x2,y2,class_id\n\"00001.jpg\",1,2,3,4,181\n",
    );
    put(root.path(), "names.csv", official.join("\n"));
    put(root.path(), "car_data/car_data/train/Audi TTS Coupe 2012/00001.jpg", "");
    put(
        root.path(),
        "car_data/car_data/train/smart fortwo Convertible 2012/00002.jpg",
        "",
    );
    put(root.path(), "cars_test/00001.jpg", "");
    let set = open("cars", root.path(), Images::All).unwrap();
    assert_eq!(
        listed(&set),
        [
            (
                "car_data/car_data/train/Audi TTS Coupe 2012/00001.jpg",
                "Audi TTS Coupe 2012"
            ),
            (
                "car_data/car_data/train/smart fortwo Convertible 2012/00002.jpg",
                "smart fortwo Convertible 2012"
            ),
            ("cars_test/00001.jpg", "Suzuki Aerio Sedan 2007"),
        ]
    );
    assert_eq!(set.list.skipped.len(), 1);
    assert_eq!(open("cars", root.path(), Images::Paper).unwrap().list.items.len(), 2);
    for (content, parts) in [
        (
            "00001.jpg,1,2,3,4,1\n00001.jpg,1,2,3,4,197\n",
            ["line 2", "\"197\" is no class"],
        ),
        ("00001.jpg,1,2,3,4\n", ["line 1", "six cells"]),
        ("00001.jpg,1,2,3,4,1\nx.jpg,1,2,3,4,\n", ["line 2", "\"\" is no class"]),
    ] {
        put(root.path(), "anno_test.csv", content);
        assert_mentions(&refusal("cars", root.path(), Images::All), &parts);
    }
    fs::remove_file(root.path().join("anno_test.csv")).unwrap();
    assert_mentions(
        &refusal("cars", root.path(), Images::All),
        &["anno_test.csv is missing", "\"train\""],
    );
}

#[test]
fn cars_in_folders_are_found_by_name_and_not_by_rank() {
    let official = texts(&shipped("cars")["classes"]);
    let folder = |name: &str| name.replace('/', "-");
    let mut files: Vec<String> = official
        .iter()
        .map(|name| format!("cars/train/{}/1.jpg", folder(name)))
        .collect();
    files.push(format!("cars/test/{}/1.jpg", official[195].replace(' ', "_")));
    let root = tree(&files);
    let set = open("cars", root.path(), Images::All).unwrap();
    assert_split(&set, 98, 98);
    assert_eq!(set.classes, official);
    assert_eq!(
        listed(&set)[196],
        (
            "test/smart_fortwo_Convertible_2012/1.jpg",
            "smart fortwo Convertible 2012"
        )
    );
    assert!(listed(&set).contains(&(
        "train/Ram C-V Cargo Van Minivan 2012/1.jpg",
        "Ram C/V Cargo Van Minivan 2012"
    )));
    assert_eq!(open("cars", root.path(), Images::Paper).unwrap().list.items.len(), 161);
    // An extra folder beside all classes is ignored; one in the place of a class is not.
    put(root.path(), "cars/train/trash/1.jpg", "");
    assert_note(&open("cars", root.path(), Images::Train).unwrap(), "trash");
    fs::rename(
        root.path().join("cars/train/GMC Acadia SUV 2012"),
        root.path().join("cars/train/Acadia"),
    )
    .unwrap();
    let message = refusal("cars", root.path(), Images::Train);
    assert_mentions(&message, &["1 classes", "Acadia, trash", "cars_meta.mat"]);
    // Folders that are numbers say nothing about the order.
    let root = tree(&["cars/train/1/1.jpg", "cars/train/2/1.jpg"]);
    assert_mentions(
        &refusal("cars", root.path(), Images::Train),
        &["no StanfordCars", "cars/devkit/cars_meta.mat"],
    );
}

// ------------------------------------------------------------------------------------------------- FGVC-Aircraft

fn aircraft(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    // Not sorted, as a trap; the name with a stroke and a space is that of a real one.
    let mut variants: Vec<String> = (0..99).map(|i| format!("Variant {:02}", (i * 37) % 99)).collect();
    variants.push("F/A-18".to_owned());
    put(
        root.path(),
        "fgvc-aircraft-2013b/data/variants.txt",
        variants.join("\n") + "\n",
    );
    for (name, content) in files {
        put(root.path(), &format!("fgvc-aircraft-2013b/data/{name}"), content);
    }
    for image in ["0000001", "0000002", "0000003"] {
        put(root.path(), &format!("fgvc-aircraft-2013b/data/images/{image}.jpg"), "");
    }
    root
}

#[test]
fn aircraft_by_its_lists() {
    let test = ("images_variant_test.txt", "0000003 Variant 98\n");
    for lists in [
        vec![
            ("images_variant_trainval.txt", "0000001 F/A-18\n0000002 Variant 00\n"),
            test,
        ],
        vec![
            ("images_variant_train.txt", "0000001 F/A-18\n"),
            ("images_variant_val.txt", "0000002 Variant 00\n"),
            test,
        ],
    ] {
        let root = aircraft(&lists);
        let set = open("aircraft", root.path(), Images::All).unwrap();
        assert_eq!(set.classes[..2], ["F/A-18", "Variant 00"]);
        assert_eq!(
            listed(&set),
            [
                ("images/0000001.jpg", "F/A-18"),
                ("images/0000002.jpg", "Variant 00"),
                ("images/0000003.jpg", "Variant 98"),
            ]
        );
        assert_eq!(
            open("aircraft", root.path(), Images::Train).unwrap().list.items.len(),
            2
        );
        assert_eq!(
            ids(&open("aircraft", root.path(), Images::Test).unwrap()),
            ["images/0000003.jpg"]
        );
        assert_note(&open("aircraft", root.path(), Images::Paper).unwrap(), "4.4k");
    }
}

#[test]
fn aircraft_without_variants_needs_all_of_them_in_the_lists() {
    let all: String = (0..100).map(|i| format!("{i:07} Variant {:02}\n", 99 - i)).collect();
    let root = aircraft(&[("images_variant_trainval.txt", &all)]);
    assert_mentions(
        &refusal("aircraft", root.path(), Images::Train),
        &["\"Variant 99\"", "variants.txt"],
    );
    fs::remove_file(root.path().join("fgvc-aircraft-2013b/data/variants.txt")).unwrap();
    for i in 0..100 {
        put(root.path(), &format!("fgvc-aircraft-2013b/data/images/{i:07}.jpg"), "");
    }
    let set = open("aircraft", root.path(), Images::Train).unwrap();
    assert_split(&set, 50, 50);
    assert_eq!(set.classes[0], "Variant 00");
    put(
        root.path(),
        "fgvc-aircraft-2013b/data/images_variant_trainval.txt",
        "1 One\n2 Two\n",
    );
    assert_mentions(&refusal("aircraft", root.path(), Images::Train), &["2 variants", "100"]);
}

#[test]
fn aircraft_without_a_piece() {
    let root = aircraft(&[("images_variant_trainval.txt", "0000001 F/A-18\n")]);
    assert_mentions(
        &refusal("aircraft", root.path(), Images::All),
        &["images_variant_test.txt is missing", "\"train\""],
    );
    fs::remove_dir_all(root.path().join("fgvc-aircraft-2013b/data/images")).unwrap();
    assert_mentions(
        &refusal("aircraft", root.path(), Images::Train),
        &["data/images is missing"],
    );
    let root = aircraft(&[("images_variant_train.txt", "0000001 F/A-18\n")]);
    assert_mentions(
        &refusal("aircraft", root.path(), Images::Train),
        &["images_variant_val.txt is missing", "images_variant_trainval.txt"],
    );
    let root = aircraft(&[("images_variant_test.txt", "0000001\n")]);
    assert_mentions(
        &refusal("aircraft", root.path(), Images::Test),
        &["line 1", "no image and variant"],
    );
    assert_mentions(
        &refusal("aircraft", root.path(), Images::Train),
        &["images_variant_trainval.txt is missing"],
    );
}

// ------------------------------------------------------------------------------------------------- Herbarium-19

#[test]
fn herbarium_sorts_its_folders_as_text() {
    let mut files: Vec<String> = (0..683)
        .map(|i| format!("herbarium_19/small-train/{i}/1.jpg"))
        .collect();
    files.push("herbarium_19/small-validation/10/1.jpg".to_owned());
    files.push("herbarium_19/small-test/1.jpg".to_owned());
    let root = tree(&files);
    let set = open("herbarium19", root.path(), Images::All).unwrap();
    assert_split(&set, 341, 342);
    assert_eq!(set.classes[..4], ["0", "1", "10", "100"]);
    assert_eq!(set.list.items.len(), 684);
    let test = open("herbarium19", root.path(), Images::Test).unwrap();
    assert_eq!(listed(&test), [("small-validation/10/1.jpg", "10")]);
    assert_note(&open("herbarium19", root.path(), Images::Paper).unwrap(), "no table");
    put(root.path(), "herbarium_19/small-train/extra/1.jpg", "");
    assert_mentions(&refusal("herbarium19", root.path(), Images::All), &["684", "683"]);
    fs::remove_dir_all(root.path().join("herbarium_19/small-train/extra")).unwrap();
    fs::remove_dir_all(root.path().join("herbarium_19/small-validation")).unwrap();
    assert_mentions(
        &refusal("herbarium19", root.path(), Images::All),
        &["small-validation is missing", "\"train\""],
    );
}

// ------------------------------------------------------------------------------------------------- Omniglot

#[test]
fn omniglot_in_two_folders_or_one() {
    let (greek, angelic) = ("Greek/character01/0394_01.png", "Angelic/character02/0965_01.png");
    for (prefixes, root) in [
        (["images_background/", "images_evaluation/"], "omniglot/"),
        (
            ["images_background/images_background/", "images_evaluation/"],
            "omniglot-py/",
        ),
        (["", ""], "omniglot_resized/"),
    ] {
        let files = [
            format!("{root}{}{greek}", prefixes[0]),
            format!("{root}{}Braille/character26/a.png", prefixes[0]),
            format!("{root}{}{angelic}", prefixes[1]),
            format!("{root}{}Klingon/character01/a.png", prefixes[1]),
            format!("{root}readme.txt"),
        ];
        let data = tree(&files);
        let set = open("omniglot", data.path(), Images::All).unwrap();
        assert_eq!(set.base, ["Braille/character26", "Greek/character01"]);
        assert_eq!(set.novel, ["Angelic/character02"]);
        assert_eq!(set.classes, [set.base.clone(), set.novel.clone()].concat());
        assert_eq!(
            listed(&set)[1..],
            [
                (&*format!("{}{greek}", prefixes[0]), "Greek/character01"),
                (&*format!("{}{angelic}", prefixes[1]), "Angelic/character02"),
            ]
        );
        assert_note(
            &set,
            "2 characters of background alphabets and 1 of evaluation alphabets where Omniglot has 964 and 659",
        );
        assert_eq!(
            open("omniglot", data.path(), Images::Train).unwrap().list.items.len(),
            2
        );
        assert_eq!(open("omniglot", data.path(), Images::Test).unwrap().list.items.len(), 1);
        fs::remove_dir_all(set.list.items[2].path.parent().unwrap().parent().unwrap()).unwrap();
        let message = refusal("omniglot", data.path(), Images::All);
        assert_mentions(&message, &["is missing", "images_evaluation", "\"train\""]);
        assert_eq!(open("omniglot", data.path(), Images::Train).unwrap().novel, [""; 0]);
    }
    let twice = tree(&[
        "images_background/Greek/character01/1.png",
        "images_evaluation/Greek/character01/1.png",
    ]);
    assert_mentions(
        &refusal("omniglot", twice.path(), Images::All),
        &["images_evaluation/Greek", "also in"],
    );
}

// ------------------------------------------------------------------------------------------------- all of them

#[test]
fn data_sets_beside_each_other_are_told_apart() {
    let root = cub();
    for (name, golden_name) in [
        ("train", "cifar_python2"),
        ("test", "cifar_protocol4"),
        ("meta", "cifar_meta"),
    ] {
        put_golden(root.path(), &format!("cifar-100-python/{name}"), golden_name);
    }
    put(root.path(), "omniglot/images_background/Greek/character01/a.png", "");
    put(root.path(), "omniglot/images_evaluation/ULOG/character01/a.png", "");
    let items = |name| open(name, root.path(), Images::All).map(|set| set.list.items.len());
    assert_eq!(items("cub200").unwrap(), 3);
    assert_eq!(items("cifar100").unwrap(), 5);
    assert_eq!(items("omniglot").unwrap(), 2);
    for name in ["cars", "imagenet100", "aircraft", "herbarium19"] {
        assert!(matches!(items(name), Err(DataError::NoDataset { .. })), "{name}");
    }
}

#[test]
fn a_split_file_that_names_another_class_is_refused() {
    let root = cub();
    let set = open("cub200", root.path(), Images::All).unwrap();
    put(root.path(), "split.json", r#"{"novel": ["999.Dodo"]}"#);
    let split = Split::read(root.path().join("split.json")).unwrap();
    let labels: Vec<String> = set.base.iter().chain(&set.novel).cloned().collect();
    let message = split.resolve(&labels, Some(&set.classes)).unwrap_err().to_string();
    assert_mentions(&message, &["split.json", "999.Dodo"]);
    // Indices mean places in the official order.
    put(root.path(), "split.json", r#"{"novel": [150]}"#);
    let split = Split::read(root.path().join("split.json")).unwrap();
    let resolved = split.resolve(&labels, Some(&set.classes)).unwrap();
    assert_eq!(
        (resolved.base, resolved.novel),
        (vec!["001.Bird_1".to_owned()], vec!["151.Bird_151".to_owned()])
    );
}

#[cfg(unix)]
#[test]
fn names_that_are_not_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let root = tree(&["001.Albatross/plain.jpg"]);
    let folder = root.path().join("001.Albatross");
    if fs::write(folder.join(OsStr::from_bytes(b"caf\xe9.jpg")), "").is_err() {
        println!("skipped: this file system takes UTF-8 alone");
        return;
    }
    fs::write(root.path().join("001.Albatross/caf%E9.jpg"), "").unwrap();
    let set = open("cub200", root.path(), Images::All).unwrap();
    let distinct: BTreeSet<&str> = ids(&set).into_iter().collect();
    assert_eq!(distinct.len(), 3, "{distinct:?}");
    assert!(set.list.items.iter().all(|item| item.path.is_file()));
    let root = cub();
    put(root.path(), "CUB_200_2011/images.txt", b"1 caf\xe9.jpg\n");
    assert_mentions(
        &refusal("cub200", root.path(), Images::All),
        &["images.txt, line 1", "UTF-8"],
    );
}

#[test]
fn the_same_folder_gives_the_same_list() {
    let root = tree(&[
        "001.A/b.jpg",
        "001.A/a.jpg",
        "200.Z/sub/c.jpg",
        "002.B/d.JPG",
        "002.B/e.txt",
    ]);
    let set = open("cub200", root.path(), Images::All).unwrap();
    assert_eq!(
        ids(&set),
        ["001.A/a.jpg", "001.A/b.jpg", "002.B/d.JPG", "200.Z/sub/c.jpg"]
    );
    assert_eq!(open("cub200", root.path(), Images::All).unwrap(), set);
    let counts: BTreeMap<&str, usize> = set
        .classes
        .iter()
        .map(|class| (class.as_str(), set.images_of(std::slice::from_ref(class))))
        .collect();
    assert_eq!((counts["001.A"], counts["002.B"], counts["003"]), (2, 1, 0));
}
