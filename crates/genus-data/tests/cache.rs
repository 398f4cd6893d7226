//! The feature cache gives back what was put into it or nothing, whatever happens to its files.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::assert_mentions;
use genus_data::{CacheInfo, CachedEncoder, FeatureCache, default_root};

const DIM: usize = 3;
const RECORD: usize = 32 + 4 * DIM + 8;

fn key(n: u32) -> [u8; 32] {
    let mut key = [7; 32];
    key[..4].copy_from_slice(&n.to_le_bytes());
    key
}

fn row(n: u32) -> [f32; DIM] {
    [n as f32, 0.5, -1.0 / (n as f32 + 1.0)]
}

fn open(root: &Path) -> FeatureCache {
    FeatureCache::open(root, "encoder 1", DIM).unwrap()
}

/// A cache with records of these numbers, closed again.
fn filled(numbers: std::ops::Range<u32>) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let cache = open(root.path());
    numbers.for_each(|n| cache.put(&key(n), &row(n)).unwrap());
    root
}

fn segments(root: &Path) -> Vec<PathBuf> {
    let folder = fs::read_dir(root.join("features"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "seg"))
        .collect();
    found.sort();
    found
}

#[test]
fn rows_are_found_at_once_and_again() {
    let root = tempfile::tempdir().unwrap();
    let cache = open(root.path());
    assert_eq!(cache.get(&key(0)), None);
    for n in 0..500 {
        cache.put(&key(n), &row(n)).unwrap();
        assert_eq!(cache.get(&key(n)).as_deref(), Some(&row(n)[..]));
        assert_eq!(cache.get(&key(n / 2)).as_deref(), Some(&row(n / 2)[..]));
    }
    drop(cache);
    let cache = open(root.path());
    for n in 0..500 {
        assert_eq!(cache.get(&key(n)).as_deref(), Some(&row(n)[..]));
    }
    assert_eq!(cache.get(&key(500)), None);
    cache.put(&key(1), &row(1)).unwrap();
    drop(cache);
    assert_eq!(segments(root.path()).len(), 1, "nothing new was put");
}

#[test]
fn most_is_on_the_disk_before_the_end() {
    let root = tempfile::tempdir().unwrap();
    let cache = open(root.path());
    (0..500).for_each(|n| cache.put(&key(n), &row(n)).unwrap());
    // As if the process were killed here.
    std::mem::forget(cache);
    let again = open(root.path());
    let found = (0..500).filter(|&n| again.get(&key(n)).is_some()).count();
    assert!(found > 400, "{found} of 500");
    again.put(&key(499), &row(499)).unwrap();
    assert_eq!(again.get(&key(499)).as_deref(), Some(&row(499)[..]));
}

#[test]
fn two_caches_write_at_the_same_time() {
    let root = tempfile::tempdir().unwrap();
    let caches = [open(root.path()), open(root.path())];
    std::thread::scope(|scope| {
        for (which, cache) in caches.iter().enumerate() {
            for thread in 0..2 {
                scope.spawn(move || {
                    // All write a part that is their own and a part that others write as well.
                    let first = (2 * which as u32 + thread) * 200;
                    for n in (first..first + 200).chain(1000..1100) {
                        cache.put(&key(n), &row(n)).unwrap();
                        assert_eq!(cache.get(&key(n)).as_deref(), Some(&row(n)[..]));
                    }
                });
            }
        }
    });
    drop(caches);
    assert_eq!(segments(root.path()).len(), 2);
    let cache = open(root.path());
    for n in (0..800).chain(1000..1100) {
        assert_eq!(cache.get(&key(n)).as_deref(), Some(&row(n)[..]));
    }
}

#[test]
fn a_segment_cut_off_anywhere_gives_its_whole_records() {
    let root = filled(0..3);
    let [segment] = &segments(root.path())[..] else {
        panic!()
    };
    let bytes = fs::read(segment).unwrap();
    assert_eq!(bytes.len(), 16 + 3 * RECORD);
    for length in (0..bytes.len()).rev() {
        fs::File::options()
            .write(true)
            .open(segment)
            .unwrap()
            .set_len(length as u64)
            .unwrap();
        let whole = length.saturating_sub(16) / RECORD;
        let cache = open(root.path());
        for n in 0..3 {
            let expected = ((n as usize) < whole).then(|| row(n).to_vec());
            assert_eq!(cache.get(&key(n)), expected, "record {n} of {length} bytes");
        }
    }
}

#[test]
fn damaged_records_are_not_there_and_can_be_put_again() {
    let root = filled(0..2);
    let [segment] = &segments(root.path())[..] else {
        panic!()
    };
    let bytes = fs::read(segment).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(segment, &damaged).unwrap();
        let cache = open(root.path());
        for n in 0..2 {
            let start = 16 + n as usize * RECORD;
            let hit = at < 16 || (start..start + RECORD).contains(&at);
            assert_eq!(
                cache.get(&key(n)),
                (!hit).then(|| row(n).to_vec()),
                "byte {at}, record {n}"
            );
        }
    }
    let mut damaged = bytes.clone();
    damaged[16 + 40] ^= 1;
    fs::write(segment, &damaged).unwrap();
    let cache = open(root.path());
    cache.put(&key(0), &row(0)).unwrap();
    assert_eq!(cache.get(&key(0)).as_deref(), Some(&row(0)[..]));
    drop(cache);
    assert_eq!(open(root.path()).get(&key(0)).as_deref(), Some(&row(0)[..]));
}

#[test]
fn other_dimensions_and_encoders_do_not_see_it() {
    let root = filled(0..5);
    let wider = FeatureCache::open(root.path(), "encoder 1", DIM + 1).unwrap();
    let other = FeatureCache::open(root.path(), "encoder 2", DIM).unwrap();
    for n in 0..5 {
        assert_eq!(wider.get(&key(n)), None);
        assert_eq!(other.get(&key(n)), None);
    }
    let refused = wider.put(&key(0), &row(0)).unwrap_err().to_string();
    assert_mentions(&refused, &["3 features", "rows of 4"]);
    other.put(&key(0), &row(9)).unwrap();
    drop(other);
    assert_eq!(open(root.path()).get(&key(0)).as_deref(), Some(&row(0)[..]));
    let info = FeatureCache::info(root.path()).unwrap();
    let counts: Vec<_> = info.encoders.iter().map(|e| (e.encoder.as_str(), e.images)).collect();
    assert_eq!(counts, [("encoder 1", 5), ("encoder 2", 1)]);
    assert_eq!(info.encoders[1].bytes, (9 + 16 + RECORD) as u64);
}

#[test]
fn the_text_of_the_encoder_must_be_its_own() {
    let root = filled(0..1);
    let text = segments(root.path())[0].with_file_name("encoder.txt");
    assert_eq!(fs::read_to_string(&text).unwrap(), "encoder 1");
    fs::write(&text, "another").unwrap();
    let refused = FeatureCache::open(root.path(), "encoder 1", DIM)
        .err()
        .unwrap()
        .to_string();
    assert_mentions(&refused, &["encoder.txt", "clear the cache"]);
}

#[test]
fn a_cache_that_cannot_be_made_says_how_to_name_another() {
    let root = tempfile::tempdir().unwrap();
    let in_the_way = root.path().join("file");
    fs::write(&in_the_way, "").unwrap();
    let refused = FeatureCache::open(&in_the_way, "encoder 1", DIM)
        .err()
        .unwrap()
        .to_string();
    assert_mentions(&refused, &["file", "GENUS_CACHE"]);
}

#[test]
fn clearing_takes_its_own_files_only() {
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(FeatureCache::info(empty.path()).unwrap(), CacheInfo::default());
    FeatureCache::clear(empty.path()).unwrap();
    FeatureCache::clear(&empty.path().join("missing")).unwrap();

    let root = filled(0..5);
    drop(FeatureCache::open(root.path(), "encoder 2", DIM).unwrap());
    let mine = segments(root.path())[0].parent().unwrap().to_owned();
    let foreign = [
        root.path().join("mine.txt"),
        root.path().join("features/notes.seg"),
        root.path().join("features/models/encoder.txt"),
        mine.join("thesis.doc"),
    ];
    fs::create_dir(root.path().join("features/models")).unwrap();
    foreign.iter().for_each(|path| fs::write(path, "precious").unwrap());
    #[cfg(unix)]
    let linked = {
        let target = tempfile::tempdir().unwrap();
        fs::write(target.path().join("x.seg"), "precious").unwrap();
        let name = "0123456789abcdef".repeat(2);
        std::os::unix::fs::symlink(target.path(), root.path().join("features").join(name)).unwrap();
        std::os::unix::fs::symlink(target.path().join("x.seg"), mine.join("y.seg")).unwrap();
        target
    };
    FeatureCache::clear(root.path()).unwrap();
    for path in &foreign {
        assert_eq!(fs::read_to_string(path).unwrap(), "precious", "{}", path.display());
    }
    #[cfg(unix)]
    assert!(linked.path().join("x.seg").exists() && mine.join("y.seg").is_symlink());
    assert_eq!(open(root.path()).get(&key(0)), None);
}

#[test]
fn a_cache_that_is_cleared_while_open_goes_on() {
    let root = filled(0..1);
    let cache = open(root.path());
    FeatureCache::clear(root.path()).unwrap();
    assert!(!root.path().join("features").exists());
    cache.put(&key(1), &row(1)).unwrap();
    drop(cache);
    let info = FeatureCache::info(root.path()).unwrap();
    let bytes = (9 + 16 + RECORD) as u64;
    let encoder = "encoder 1".to_owned();
    let expected = CachedEncoder {
        encoder,
        images: 1,
        bytes,
    };
    assert_eq!(info.encoders, [expected]);
}

/// Not a test of its own: prints the root that the environment of this process gives.
#[test]
#[ignore = "run by the_root_comes_from_the_environment"]
fn print_the_root() {
    println!("root={:?}", default_root());
}

#[cfg(target_os = "linux")]
#[test]
fn the_root_comes_from_the_environment() {
    let root = |variables: &[(&str, &str)]| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "print_the_root", "--ignored", "--nocapture"]);
        command
            .env_remove("GENUS_CACHE")
            .env_remove("XDG_CACHE_HOME")
            .env("HOME", "/home/me");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (_, found) = text.split_once("root=").unwrap();
        found.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        root(&[("GENUS_CACHE", "here"), ("XDG_CACHE_HOME", "/x")]),
        "Some(\"here\")"
    );
    assert_eq!(
        root(&[("GENUS_CACHE", ""), ("XDG_CACHE_HOME", "/x")]),
        "Some(\"/x/genus\")"
    );
    assert_eq!(
        root(&[("XDG_CACHE_HOME", "relative")]),
        "Some(\"/home/me/.cache/genus\")"
    );
    assert_eq!(root(&[]), "Some(\"/home/me/.cache/genus\")");
}

#[cfg(unix)]
#[test]
fn many_processes_leave_few_segments() {
    let root = tempfile::tempdir().unwrap();
    let runs = 600;
    for n in 0..runs {
        let cache = open(root.path());
        cache.put(&key(n), &row(n)).unwrap();
        // At most seven for every power of eight, and the one that was just written.
        drop(cache);
        assert!(
            segments(root.path()).len() <= 7 * 4 + 1,
            "{}",
            segments(root.path()).len()
        );
    }
    let cache = open(root.path());
    for n in 0..runs {
        assert_eq!(cache.get(&key(n)).as_deref(), Some(&row(n)[..]));
    }
    let info = FeatureCache::info(root.path()).unwrap();
    assert_eq!(info.encoders[0].images, u64::from(runs));
}

#[cfg(unix)]
#[test]
fn merging_leaves_what_is_in_use_and_what_is_not_ours() {
    let root = filled(0..1);
    // Somebody else's file, and processes that still append.
    let folder = segments(root.path())[0].parent().unwrap().to_owned();
    fs::write(folder.join("0.seg"), "not a segment of ours").unwrap();
    let living: Vec<FeatureCache> = (1..30)
        .map(|n| {
            let cache = open(root.path());
            cache.put(&key(n), &row(n)).unwrap();
            cache.flush().unwrap();
            cache
        })
        .collect();
    assert_eq!(segments(root.path()).len(), 31);
    // What they append later is found as well.
    for (cache, n) in living.iter().zip(100..) {
        cache.put(&key(n), &row(n)).unwrap();
    }
    drop(living);
    let cache = open(root.path());
    assert!(segments(root.path()).len() < 10, "{:?}", segments(root.path()));
    for n in (0..30).chain(100..129) {
        assert_eq!(cache.get(&key(n)).as_deref(), Some(&row(n)[..]), "{n}");
    }
    assert_eq!(fs::read(folder.join("0.seg")).unwrap(), b"not a segment of ours");
}

/// Damaged records are left out when segments are merged, and the whole one of the same image stays.
#[cfg(unix)]
#[test]
fn merging_keeps_what_is_whole() {
    let root = tempfile::tempdir().unwrap();
    for n in 0..7 {
        open(root.path()).put(&key(n), &row(n)).unwrap();
    }
    let first = &segments(root.path())[0];
    let mut bytes = fs::read(first).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(first, bytes).unwrap();
    // The same image is remembered again, which makes eight.
    open(root.path()).put(&key(0), &row(0)).unwrap();
    let cache = open(root.path());
    assert_eq!(segments(root.path()).len(), 1);
    for n in 0..7 {
        assert_eq!(cache.get(&key(n)).as_deref(), Some(&row(n)[..]), "{n}");
    }
    assert_eq!(FeatureCache::info(root.path()).unwrap().encoders[0].images, 7);
}
