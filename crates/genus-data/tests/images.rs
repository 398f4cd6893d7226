//! Images are listed from folders and manifests, in one order, and what cannot be listed is named.

mod common;

use std::fs;
use std::path::Path;

use common::{assert_mentions, file};
use genus_data::{
    DataError, ImageList, TableOptions, is_image_source, list_folder, list_images, list_manifest, read_list,
};
use proptest::prelude::*;

/// Nothing is said about tables.
fn usual() -> TableOptions {
    TableOptions::default()
}

fn touch(root: &Path, names: &[&str]) {
    for name in names {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
}

fn ids(list: &ImageList) -> Vec<&str> {
    list.items.iter().map(|item| item.id.as_str()).collect()
}

fn labels(list: &ImageList) -> Vec<Option<&str>> {
    list.items.iter().map(|item| item.label.as_deref()).collect()
}

fn refused(result: Result<ImageList, DataError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_folder_gives_its_images_in_order_with_labels() {
    let root = tempfile::tempdir().unwrap();
    touch(
        root.path(),
        &[
            "b.JPG",
            "cat/2.jpeg",
            "cat/10.png",
            "cat/deep/er/1.webp",
            "cat.gif",
            "a.tiff",
            "notes.txt",
            "jpg",
            ".hidden.png",
            ".git/x.png",
            "cat/.thumbs/1.png",
            "dog/1.jfif",
            "empty/readme.md",
        ],
    );
    let list = list_folder(root.path()).unwrap();
    assert_eq!(
        ids(&list),
        [
            "a.tiff",
            "b.JPG",
            "cat/10.png",
            "cat/2.jpeg",
            "cat/deep/er/1.webp",
            "cat.gif",
            "dog/1.jfif"
        ]
    );
    let cat = Some("cat");
    assert_eq!(labels(&list), [None, None, cat, cat, cat, None, Some("dog")]);
    assert_eq!(list.items[2].path, root.path().join("cat").join("10.png"));
    assert_eq!(list.skipped, []);
    assert_eq!(list_images(root.path(), &usual()).unwrap(), list);
}

#[test]
fn pictures_that_cannot_be_read_are_counted() {
    let root = tempfile::tempdir().unwrap();
    touch(root.path(), &["a.HEIC", "cat/b.HEIC", "cat/c.nef", "notes.doc"]);
    let message = refused(list_folder(root.path()));
    assert_mentions(&message, &["no images", "2 that end in .HEIC", "1 that end in .nef"]);
    touch(root.path(), &["cat/d.jpg"]);
    let counts = list_folder(root.path()).unwrap().unsupported();
    assert_eq!(
        counts.into_iter().collect::<Vec<_>>(),
        [("HEIC".to_owned(), 2), ("nef".to_owned(), 1)]
    );
}

#[test]
fn what_was_sorted_with_doubt_has_no_label() {
    let root = tempfile::tempdir().unwrap();
    touch(root.path(), &["cat/a.jpg", "unsure/cat/b.jpg"]);
    assert_eq!(labels(&list_folder(root.path()).unwrap()), [Some("cat"), None]);
    // A class may be called so.
    let root = tempfile::tempdir().unwrap();
    touch(root.path(), &["cat/a.jpg", "unsure/b.jpg"]);
    assert_eq!(
        labels(&list_folder(root.path()).unwrap()),
        [Some("cat"), Some("unsure")]
    );
}

#[test]
fn a_folder_of_texts_is_told_from_an_empty_one() {
    let root = tempfile::tempdir().unwrap();
    touch(root.path(), &["a.txt", "b.md"]);
    assert_mentions(&refused(list_folder(root.path())), &["texts", "embedding model"]);
}

#[test]
fn a_folder_without_images_says_what_counts() {
    let root = tempfile::tempdir().unwrap();
    touch(root.path(), &["notes.doc"]);
    let name = root.path().display().to_string();
    assert_mentions(
        &refused(list_folder(root.path())),
        &[
            &name, ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff",
        ],
    );
    assert_mentions(
        &refused(list_folder(root.path().join("missing"))),
        &["missing", "cannot read"],
    );
    assert_mentions(
        &refused(list_folder(root.path().join("notes.doc"))),
        &["notes.doc", "cannot read"],
    );
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn links_are_followed_but_not_in_circles() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        touch(root.path(), &["cat/1.png"]);
        touch(elsewhere.path(), &["owl.png", "in/2.png"]);
        symlink(root.path(), root.path().join("cat/up")).unwrap();
        symlink(".", root.path().join("here")).unwrap();
        symlink("nowhere", root.path().join("broken.png")).unwrap();
        symlink("itself.png", root.path().join("itself.png")).unwrap();
        symlink(elsewhere.path(), root.path().join("owl")).unwrap();
        symlink(elsewhere.path().join("owl.png"), root.path().join("z.png")).unwrap();
        let list = list_folder(root.path()).unwrap();
        assert_eq!(ids(&list), ["cat/1.png", "owl/in/2.png", "owl/owl.png", "z.png"]);
        let skipped: Vec<_> = list.skipped.iter().map(|(path, _)| path.clone()).collect();
        let expected = ["broken.png", "cat/up", "here", "itself.png"].map(|name| root.path().join(name));
        assert_eq!(skipped, expected);
        for (path, reason) in &list.skipped {
            assert_mentions(reason, &["the link leads"]);
            let circle = path.ends_with("up") || path.ends_with("here");
            assert_eq!(reason.contains("back"), circle, "{reason}");
        }
    }

    #[test]
    fn folders_that_cannot_be_read_are_skipped() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), &["open/1.png", "shut/2.png"]);
        let shut = root.path().join("shut");
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
        if fs::read_dir(&shut).is_ok() {
            eprintln!("skipped: this user may read everything");
        } else {
            let list = list_folder(root.path()).unwrap();
            assert_eq!(ids(&list), ["open/1.png"]);
            assert_eq!(list.skipped.len(), 1);
            assert_eq!(list.skipped[0].0, shut);
            fs::remove_dir_all(root.path().join("open")).unwrap();
            assert_mentions(&refused(list_folder(root.path())), &["shut", "could not be listed"]);
        }
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn names_that_are_not_utf8_get_an_id_of_their_own() {
        let root = tempfile::tempdir().unwrap();
        let names: [&[u8]; 4] = [b"a\xff.png", b"a%FF.png", b"50%\xe9.png", "grüße.png".as_bytes()];
        for name in names {
            if fs::write(root.path().join(OsStr::from_bytes(name)), "x").is_err() {
                eprintln!("skipped: this file system has only Unicode names");
                return;
            }
        }
        fs::create_dir(root.path().join(OsStr::from_bytes(b"\xfe"))).unwrap();
        fs::write(root.path().join(OsStr::from_bytes(b"\xfe/1.png")), "x").unwrap();
        let list = list_folder(root.path()).unwrap();
        assert_eq!(
            ids(&list),
            ["50%25%E9.png", "a%FF.png", "a%FF.png%", "grüße.png", "%FE/1.png"]
        );
        assert_eq!(labels(&list)[4], Some("%FE"));
        for item in &list.items {
            assert_eq!(fs::read(&item.path).unwrap(), b"x", "{}", item.id);
        }
    }

    #[test]
    fn a_list_may_name_any_bytes() {
        let (_folder, path) = file("l.txt", b"a\xff.png\nsub/b.png\n");
        let list = list_manifest(&path, &usual()).unwrap();
        assert_eq!(ids(&list), ["a%FF.png", "sub/b.png"]);
        let expected = path.parent().unwrap().join(OsStr::from_bytes(b"a\xff.png"));
        assert_eq!(list.items[0].path, expected);
    }

    #[test]
    fn pipes_are_no_images() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), &["1.png"]);
        let _socket = std::os::unix::net::UnixListener::bind(root.path().join("s.png")).unwrap();
        let list = list_folder(root.path()).unwrap();
        assert_eq!(ids(&list), ["1.png"]);
        assert_mentions(&list.skipped[0].1, &["not a regular file"]);
    }
}

#[test]
fn a_text_lists_a_path_a_line() {
    let text = "\u{feff}# my images\na.jpg\r\n\n  \nsub/b c.jpg\n/abs/c.jpg\n #d.jpg";
    let (_folder, path) = file("l.txt", text);
    let list = list_images(&path, &usual()).unwrap();
    assert_eq!(ids(&list), ["a.jpg", "sub/b c.jpg", "/abs/c.jpg", " #d.jpg"]);
    let base = path.parent().unwrap();
    assert_eq!(list.items[1].path, base.join("sub/b c.jpg"));
    assert_eq!(list.items[2].path, Path::new("/abs/c.jpg"));
    assert!(labels(&list).iter().all(Option::is_none));
}

#[test]
fn a_text_may_be_cut_by_nul_characters() {
    let (_folder, path) = file("l.txt", "a\nb.jpg\0#c.jpg\0\0d.jpg");
    assert_eq!(
        ids(&list_manifest(&path, &usual()).unwrap()),
        ["a\nb.jpg", "#c.jpg", "d.jpg"]
    );
}

#[test]
fn relative_paths_of_a_stream_start_from_its_base() {
    let list = read_list(&b"a.jpg\n"[..], Path::new("stream"), Path::new("")).unwrap();
    assert_eq!(list.items[0].path, Path::new("a.jpg"));
}

/// Not a test of its own: prints what standard input of this process lists.
#[test]
#[ignore = "run by the_standard_input_is_a_list"]
fn print_the_standard_input() {
    for item in list_images("-", &usual()).unwrap().items {
        println!("item={} {}", item.id, item.path.display());
    }
}

#[test]
fn the_standard_input_is_a_list() {
    let (_folder, list) = file("l", "a.jpg\nsub/b.jpg\n");
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "print_the_standard_input", "--ignored", "--nocapture"])
        .stdin(fs::File::open(list).unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let items: Vec<_> = text
        .split("item=")
        .skip(1)
        .filter_map(|item| item.lines().next())
        .collect();
    assert_eq!(items, ["a.jpg a.jpg", "sub/b.jpg sub/b.jpg"]);
}

#[test]
fn tables_list_paths_ids_and_labels() {
    for (name, content) in [
        (
            "m.csv",
            "label,path,id,note\ncat,a.jpg,x,1\n,b.jpg,y,2\n-1,c.jpg,z,\n7,\"d,e.jpg\",w,\n",
        ),
        (
            "m.csv",
            "label,image,id\r\ncat,a.jpg,x\r\n,b.jpg,y\r\n-1,c.jpg,z\r\n7,\"d,e.jpg\",w\r\n",
        ),
        (
            "m.jsonl",
            "{\"file\":\"a.jpg\",\"id\":\"x\",\"label\":\"cat\"}\n{\"filename\":\"b.jpg\",\"id\":\"y\"}\n\n\
             {\"path\":\"c.jpg\",\"id\":\"z\",\"label\":-1}\n{\"image\":\"d,e.jpg\",\"id\":\"w\",\"label\":7}",
        ),
    ] {
        let (_folder, path) = file(name, content);
        assert!(is_image_source(&path, &usual()).unwrap());
        let list = list_images(&path, &usual()).unwrap();
        assert_eq!(ids(&list), ["x", "y", "z", "w"], "{content}");
        assert_eq!(labels(&list), [Some("cat"), None, None, Some("7")]);
        assert_eq!(list.items[3].path, path.parent().unwrap().join("d,e.jpg"));
    }
    let (_folder, path) = file("m.csv", "filename\nsub/a.jpg\n");
    assert_eq!(ids(&list_manifest(&path, &usual()).unwrap()), ["sub/a.jpg"]);
}

#[test]
fn a_parquet_manifest_is_read() {
    let list = list_images(common::golden("manifest.parquet"), &usual()).unwrap();
    assert_eq!(ids(&list), ["11", "12", "13"]);
    assert_eq!(labels(&list), [Some("cat"), None, Some("dog")]);
    assert!(list.items[0].path.ends_with("goldens/images/1.jpg"));
    assert!(is_image_source(common::golden("manifest.parquet"), &usual()).unwrap());
}

#[test]
fn bad_manifests_name_the_line_and_the_way_out() {
    let say = |name: &str, content: &str| {
        let (_folder, path) = file(name, content);
        let message = refused(list_manifest(&path, &usual()));
        assert_mentions(&message, &[name]);
        message
    };
    let same = ["line 2", "line 4", "same id \"a.jpg\""];
    assert_mentions(&say("m.txt", "# x\na.jpg\n\na.jpg\n"), &same);
    assert_mentions(&say("m.csv", "path\na.jpg\nb.jpg\na.jpg\n"), &same);
    assert_mentions(
        &say("m.jsonl", "{\"path\":\"a\",\"id\":1}\n{\"path\":\"b\",\"id\":1}\n"),
        &["line 1", "line 2", "\"1\""],
    );
    assert_mentions(
        &say("m.csv", "name,id\na,b\n"),
        &["no column \"path\"", "\"name\", \"id\""],
    );
    assert_mentions(&say("m.jsonl", "{\"name\":1}\n"), &["line 1", "path is empty"]);
    assert_mentions(&say("m.jsonl", "[1]\n"), &["line 1", "object like"]);
    assert_mentions(&say("m.csv", "path,id\na.jpg\n"), &["line 2", "1 cells", "2 columns"]);
    assert_mentions(&say("m.csv", "path,id\n,x\n"), &["line 2", "path is empty"]);
    assert_mentions(&say("m.csv", "path,id\na.jpg,\n"), &["line 2", "id is empty"]);
    for (name, content) in [
        ("m.txt", "# none\n"),
        ("m.csv", "path\n"),
        ("m.csv", ""),
        ("m.jsonl", "\n"),
    ] {
        assert_mentions(&say(name, content), &["no images"]);
    }
    assert_mentions(&say("m.xml", ""), &[".txt", ".csv", ".jsonl", ".parquet"]);
    for name in ["no.txt", "no.csv", "no.jsonl", "no.parquet"] {
        assert_mentions(
            &refused(list_manifest(common::golden(name), &usual())),
            &[name, "cannot read"],
        );
    }
    assert_mentions(
        &refused(list_manifest(common::golden("f4.npy"), &usual())),
        &["f4.npy", "list of images"],
    );
    assert_mentions(
        &refused(list_manifest(common::golden("list_f4.parquet"), &usual())),
        &["no column \"path\"", "embedding"],
    );
}

/// Gives one byte for ever and fails the test when it is asked for too much.
struct Endless(u64);

impl std::io::Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0 += buffer.len() as u64;
        assert!(self.0 < 1 << 20, "a line without end is read on and on");
        buffer.fill(b'a');
        Ok(buffer.len())
    }
}

#[test]
fn long_lines_are_an_error_and_not_memory() {
    let reader = std::io::BufReader::new(Endless(0));
    let message = refused(read_list(reader, Path::new("m"), Path::new("")));
    assert_mentions(&message, &["m, line 1", "64 KiB"]);
    let long = "a".repeat(65 << 10);
    for (name, content) in [
        ("m.txt", format!("a.jpg\n{long}\n")),
        ("m.csv", format!("path\n{long}\n")),
        ("m.jsonl", format!("{{\"path\":\"b\"}}\n{{\"path\":\"{long}\"}}\n")),
    ] {
        let (_folder, path) = file(name, content);
        assert_mentions(&refused(list_manifest(&path, &usual())), &[name, "line 2", "64 KiB"]);
    }
}

#[test]
fn images_are_told_from_features() {
    let folder = tempfile::tempdir().unwrap();
    for source in [folder.path(), Path::new("-"), Path::new("missing.txt")] {
        assert!(is_image_source(source, &usual()).unwrap(), "{}", source.display());
    }
    for name in [
        "f4.npy",
        "texts.npz",
        "f4.safetensors",
        "rows.csv",
        "list.csv",
        "rows.jsonl",
        "list_f4.parquet",
    ] {
        assert!(!is_image_source(common::golden(name), &usual()).unwrap(), "{name}");
    }
    for (content, images) in [
        ("path,label\n", true),
        ("file,sha256,md5,width,height\n", true),
        ("path,f0\n", false),
        ("path,embedding\n", false),
        ("file,dim_0,dim_1\n", false),
        ("file,x1,x2\n", false),
        ("image,0,1,2\n", false),
        ("id,label\n", false),
        ("", false),
    ] {
        let (_folder, path) = file("s.csv", content);
        assert_eq!(is_image_source(&path, &usual()).unwrap(), images, "{content}");
    }
    for (content, images) in [
        ("\n{\"path\":\"a\"}\n", true),
        ("{\"path\":\"a\",\"embedding\":[1]}\n", false),
        ("nonsense\n", false),
    ] {
        let (_folder, path) = file("s.jsonl", content);
        assert_eq!(is_image_source(&path, &usual()).unwrap(), images, "{content}");
    }
    let missing = is_image_source(folder.path().join("missing.csv"), &usual()).unwrap_err();
    assert_mentions(&missing.to_string(), &["missing.csv", "cannot read"]);
}

const SEEDS: [(&str, &[u8]); 4] = [
    ("m.txt", b"# list\na.jpg\r\n\nsub/b \xff.jpg\n"),
    ("m.txt", b"a.jpg\0b.jpg\0"),
    ("m.csv", b"path,id,label\n\"a,b.jpg\",x,cat\nc.jpg,y,\n"),
    (
        "m.jsonl",
        b"{\"path\":\"a.jpg\",\"id\":3,\"label\":null}\n{\"image\":\"b\"}\n",
    ),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_manifests_give_unique_ids_or_an_error(
        which in 0..SEEDS.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..10),
    ) {
        let (name, seed) = SEEDS[which];
        let mut bytes = seed.to_vec();
        for (at, value, how) in damage {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            match how {
                0 => bytes.insert(at, value),
                1 if at < bytes.len() => bytes[at] = value,
                _ => bytes.truncate(bytes.len().saturating_sub(usize::from(value % 8))),
            }
        }
        let (_folder, path) = file(name, bytes);
        if let Ok(list) = list_manifest(&path, &usual()) {
            let distinct: std::collections::HashSet<_> = ids(&list).into_iter().collect();
            prop_assert_eq!(distinct.len(), list.items.len());
            prop_assert!(list.items.iter().all(|item| !item.id.is_empty()));
        }
    }
}
