//! The folder of a taxonomy has one state or the next, wherever a change is cut short.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use common::assert_mentions;
use genus_core::{Assignment, Features, Kind, Score, Taxonomy, TaxonomyEntry};
use genus_data::{
    FeatureWriter, GrowthState, ItemKey, KnownItem, KnownItems, Origin, SideFile, TaxonomyFolder, read_growing,
    read_taxonomy, write_taxonomy,
};

type Contents = BTreeMap<String, Vec<u8>>;

fn contents(folder: &Path) -> Contents {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

/// A folder with these files and no others.
fn folder_of(contents: &Contents) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in contents {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn taxonomy(categories: u64) -> Taxonomy {
    let entries = (0..categories).map(|at| TaxonomyEntry {
        name: format!("category {at}"),
        kind: Kind::Novel,
        items: at,
    });
    let values = (0..3 * categories).map(|value| value as f32 + 1.0).collect();
    Taxonomy::from_parts(entries.collect(), Features::new(3, values).unwrap()).unwrap()
}

fn items(count: u32, waiting: u32) -> KnownItems {
    let mut items = KnownItems::default();
    for number in 0..count {
        let score = Score {
            similarity: 0.1 * number as f32,
            margin: -0.5,
            probability: (number % 2 == 0).then_some(0.75),
            unsure: number < waiting,
        };
        let place = Assignment { category: 1, score };
        let waiting = (number < waiting).then_some(number);
        let key = ItemKey::new(&format!("item {number}"), &[number as f32]);
        items.insert(key, KnownItem { place, waiting });
    }
    items
}

/// Writes a taxonomy that has grown, with so many categories, items and items that wait.
fn grow(folder: &Path, categories: u64, count: u32, waiting: u32, joined: Option<&str>) {
    let mut open = TaxonomyFolder::open(folder).unwrap();
    if waiting > 0 {
        let path = open.stage(SideFile::Waiting);
        let mut writer = FeatureWriter::create(path, 3, None, false).unwrap();
        for number in 0..waiting {
            writer
                .write(&[format!("item {number}")], &[], &[1.0, number as f32, 2.0])
                .unwrap();
        }
        writer.finish().unwrap();
    }
    if let Some(text) = joined {
        fs::write(open.stage(SideFile::Joined), text).unwrap();
    }
    let made = Origin {
        method: "calibrated".to_owned(),
        seed: 1,
        version: "0".to_owned(),
        encoder: None,
        images: None,
        growing: Some(GrowthState {
            familiar: 0.25,
            waiting: waiting as usize,
        }),
        calibration: None,
    };
    open.write(&taxonomy(categories), &made, Some(&items(count, waiting)))
        .unwrap();
}

/// What a folder says, whoever asks.
fn state(folder: &Path) -> (usize, usize, usize) {
    let found = read_growing(folder).unwrap();
    assert_eq!(read_taxonomy(folder).unwrap().0, found.taxonomy);
    let waiting = found.growth.waiting.map_or(0, |table| table.len());
    (found.taxonomy.entries().len(), found.growth.items.len(), waiting)
}

#[test]
fn everything_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    grow(folder.path(), 3, 5, 2, Some("joined"));
    let found = read_growing(folder.path()).unwrap();
    assert_eq!(found.taxonomy, taxonomy(3));
    assert_eq!(found.growth.items, items(5, 2));
    assert_eq!(found.growth.waiting.unwrap().ids, ["item 0", "item 1"]);
    let known = &found.growth.items;
    assert_eq!(known.find(&ItemKey::new("item 3", &[3.0])), Some(3));
    // Neither the id nor the content alone makes an item.
    assert_eq!(known.find(&ItemKey::new("item 3", &[4.0])), None);
    assert_eq!(known.find(&ItemKey::new("item 4", &[3.0])), None);
    let names: Vec<String> = contents(folder.path()).into_keys().collect();
    assert_eq!(
        names,
        [
            "centres.safetensors",
            "items.safetensors",
            "joined.csv",
            "taxonomy.toml",
            "waiting.npz"
        ]
    );
}

#[test]
fn a_change_that_is_cut_short_happened_or_did_not() {
    let pairs = [
        // More of everything; then nothing waits and none has joined; then something waits again.
        ((2, 4, 2, Some("first")), (3, 7, 3, Some("second"))),
        ((2, 4, 2, Some("first")), (3, 7, 0, None)),
        ((2, 4, 0, None), (2, 5, 1, Some("second"))),
    ];
    for (before, after) in pairs {
        let make = |(categories, count, waiting, joined): (u64, u32, u32, Option<&str>)| {
            let folder = tempfile::tempdir().unwrap();
            grow(folder.path(), categories, count, waiting, joined);
            let counts = (categories as usize, count as usize, waiting as usize);
            (contents(folder.path()), counts)
        };
        let ((old, old_state), (new, new_state)) = (make(before), make(after));
        // What lies beside the old files when the new ones are ready; what goes is an empty file.
        let mut staged: Contents = new.clone();
        staged.remove("taxonomy.toml");
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            staged.insert(name.clone(), Vec::new());
        }
        let names: Vec<&String> = staged.keys().collect();
        let next = |name: &str| format!(".next.{name}");
        // Before the one step: any number of files are ready.
        for ready in 0..=names.len() {
            let mut found = old.clone();
            found.extend(names[..ready].iter().map(|name| (next(name), staged[*name].clone())));
            let folder = folder_of(&found);
            assert_eq!(state(folder.path()), old_state);
            drop(TaxonomyFolder::open(folder.path()).unwrap());
            assert!(contents(folder.path()) == old, "{ready} of {names:?}");
            // And the change can be made after all.
            let (categories, count, waiting, joined) = after;
            grow(folder.path(), categories, count, waiting, joined);
            assert!(contents(folder.path()) == new, "{ready} of {names:?}");
        }
        // After it: any number of files have their names.
        for named in 0..=names.len() {
            let mut found = old.clone();
            found.insert("taxonomy.toml".to_owned(), new["taxonomy.toml"].clone());
            for (at, name) in names.iter().enumerate() {
                match (at < named, staged[*name].is_empty()) {
                    (false, _) => found.insert(next(name), staged[*name].clone()),
                    (true, false) => found.insert((*name).clone(), staged[*name].clone()),
                    (true, true) => found.remove(*name),
                };
            }
            let folder = folder_of(&found);
            assert_eq!(state(folder.path()), new_state);
            drop(TaxonomyFolder::open(folder.path()).unwrap());
            assert!(contents(folder.path()) == new, "{named} of {names:?}");
        }
    }
}

#[test]
fn a_new_taxonomy_takes_away_what_the_one_before_had() {
    let folder = tempfile::tempdir().unwrap();
    // Files of the user that happen to be called the same.
    fs::write(folder.path().join("joined.csv"), "mine").unwrap();
    let made = |growing| Origin {
        method: "shc".to_owned(),
        seed: 1,
        version: "0".to_owned(),
        encoder: None,
        images: None,
        growing,
        calibration: None,
    };
    write_taxonomy(folder.path(), &taxonomy(2), &made(None)).unwrap();
    assert_eq!(fs::read(folder.path().join("joined.csv")).unwrap(), b"mine");
    grow(folder.path(), 3, 4, 1, None);
    write_taxonomy(folder.path(), &taxonomy(2), &made(None)).unwrap();
    let names: Vec<String> = contents(folder.path()).into_keys().collect();
    assert_eq!(names, ["centres.safetensors", "joined.csv", "taxonomy.toml"]);
}

#[test]
fn a_folder_of_an_older_release_is_read() {
    let folder = tempfile::tempdir().unwrap();
    grow(folder.path(), 3, 4, 2, None);
    // It did not mark what it had beside it, and did not know items.
    fs::remove_file(folder.path().join("items.safetensors")).unwrap();
    let path = folder.path().join("taxonomy.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (start, rest) = text.split_once("[beside]").unwrap();
    let (_, end) = rest.split_once("[made]").unwrap();
    fs::write(&path, format!("{start}[made]{end}")).unwrap();
    assert_eq!(state(folder.path()), (3, 0, 2));
    grow(folder.path(), 3, 4, 0, None);
    assert_eq!(state(folder.path()), (3, 4, 0));
    assert!(!folder.path().join("waiting.npz").exists());
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    grow(folder.path(), 3, 4, 2, None);
    let refused = || read_growing(folder.path()).unwrap_err().to_string();
    for name in ["waiting.npz", "items.safetensors"] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        let mut other = whole.clone();
        *other.last_mut().unwrap() ^= 1;
        fs::write(&path, other).unwrap();
        assert_mentions(&refused(), &[name, "does not belong", "taxonomy.toml"]);
        fs::remove_file(&path).unwrap();
        assert_mentions(&refused(), &[name, "no such file"]);
        // To assign it is not needed.
        read_taxonomy(folder.path()).unwrap();
        fs::write(&path, whole).unwrap();
    }
    read_growing(folder.path()).unwrap();
}

#[test]
fn readers_beside_a_writer_see_one_state_or_another() {
    let folder = tempfile::tempdir().unwrap();
    grow(folder.path(), 2, 4, 2, Some("first"));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..40 {
                let (categories, count, waiting) = if round % 2 == 0 { (3, 7, 0) } else { (2, 4, 2) };
                grow(
                    folder.path(),
                    categories,
                    count,
                    waiting,
                    (waiting > 0).then_some("some"),
                );
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        while !done.load(std::sync::atomic::Ordering::SeqCst) {
            let found = read_growing(folder.path()).unwrap();
            let state = (found.taxonomy.entries().len(), found.growth.items.len());
            assert!([(2, 4), (3, 7)].contains(&state), "{state:?}");
        }
    });
}
