//! Any bytes are a file of a taxonomy's folder or an error: no panic, no endless loop, and what is read can take items.
#![cfg_attr(fuzzing, no_main)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use genus_core::{Assignment, Features, Kind, Score, Taxonomy, TaxonomyEntry};
use genus_data::{
    FeatureWriter, GrowthState, ItemKey, KnownItem, KnownItems, Origin, SideFile, TaxonomyFolder, read_growing,
    read_taxonomy,
};
use genus_fuzz::{chosen, folder, fuzz_target, mark, write};

/// The file that is fuzzed, `taxonomy.toml` first.
const FILES: [&str; 4] = [
    "taxonomy.toml",
    "centres.safetensors",
    "waiting.npz",
    "items.safetensors",
];

/// A folder whose files belong together.
struct Whole {
    folder: PathBuf,
    toml: String,
    /// The marks of the other files in it.
    marks: Vec<String>,
}

static FOLDERS: LazyLock<Vec<Whole>> = LazyLock::new(|| FILES.iter().map(|name| whole(&folder(name))).collect());

fn whole(folder: &Path) -> Whole {
    let entries = ["cat", "dog"].map(|name| TaxonomyEntry {
        name: name.to_owned(),
        kind: Kind::Known,
        items: 1,
    });
    let centres = Features::new(2, vec![1.0, 0.0, 0.5, 2.0]).unwrap();
    let taxonomy = Taxonomy::from_parts(entries.to_vec(), centres).unwrap();
    let made = Origin {
        method: "shc".to_owned(),
        seed: 0,
        version: "0".to_owned(),
        encoder: None,
        images: None,
        growing: Some(GrowthState {
            familiar: 0.5,
            waiting: 1,
        }),
        calibration: None,
    };
    let mut items = KnownItems::default();
    let score = Score {
        similarity: 0.5,
        margin: 0.25,
        probability: None,
        unsure: true,
    };
    let place = Assignment { category: 1, score };
    items.insert(
        ItemKey::new("a", &[1.0, 2.0]),
        KnownItem {
            place,
            waiting: Some(0),
        },
    );
    let mut writer = TaxonomyFolder::open(folder).unwrap();
    let mut table = FeatureWriter::create(writer.stage(SideFile::Waiting), 2, None, false).unwrap();
    table.write(&["a".to_owned()], &[], &[1.0, 2.0]).unwrap();
    table.finish().unwrap();
    writer.write(&taxonomy, &made, Some(&items)).unwrap();
    let marks = FILES[1..]
        .iter()
        .map(|name| mark(&fs::read(folder.join(name)).unwrap()));
    Whole {
        marks: marks.collect(),
        toml: fs::read_to_string(folder.join(FILES[0])).unwrap(),
        folder: folder.to_owned(),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = chosen(bytes, FILES.len()) else {
        return;
    };
    let Whole { folder, toml, marks } = &FOLDERS[which];
    write(&folder.join(FILES[which]), rest);
    if which > 0 {
        // The file belongs to the folder, whatever it has become.
        let toml = toml.replace(&marks[which - 1], &mark(rest));
        write(&folder.join(FILES[0]), toml.as_bytes());
    }
    let found = read_taxonomy(folder);
    if let Ok((taxonomy, _)) = &found {
        let dim = taxonomy.centres().dim();
        let item = Features::new(dim, vec![0.5; dim]).unwrap();
        let _ = taxonomy.assign(&item);
    }
    if let Ok(growing) = read_growing(folder) {
        assert!(found.is_ok());
        let categories = growing.taxonomy.entries().len();
        assert!(growing.growth.items.iter().all(|item| item.place.category < categories));
    }
});
