//! Omniglot: a folder an alphabet with a folder a character; the alphabets of the evaluation set are new.
//!
//! Background and evaluation have no characters in common, so that here the training images are those of the background
//! alphabets and the test images those of the evaluation alphabets. Most will want all.

use std::path::{Path, PathBuf};

use super::folders::{ClassFolder, class_folders};
use super::listing::{Listing, SearchedPaths, some};
use super::{DatasetEntry, ImageSet, Images, Part};
use crate::error::DataError;

pub(super) const ENTRY: DatasetEntry = DatasetEntry {
    name: "omniglot",
    title: "Omniglot",
    layouts: "{images_background,images_evaluation}/<Alphabet>/characterNN/*.png; or all alphabets in one folder, \
              omniglot_resized/<Alphabet>/characterNN/*.png",
    paper: "all images; the paper has no table of it",
    folders: &[
        "omniglot",
        "omniglot-py",
        "omniglot_resized",
        "Omniglot",
        "omniglot/python",
        "omniglot/omniglot_resized",
        "omniglot/omniglot-py",
    ],
    open,
};

/// The characters of the 30 background alphabets and of all 50.
const CHARACTERS: [usize; 2] = [964, 1623];

fn open(
    entry: &'static DatasetEntry,
    root: &Path,
    images: Images,
    looked: &mut SearchedPaths,
) -> Result<Option<ImageSet>, DataError> {
    let split = entry.split();
    let place = |name: &str| split.classes.iter().position(|alphabet| alphabet == name);
    let mut prefixes: Vec<String> = Vec::new();
    for part in [Part::Train, Part::Test] {
        let name = half(part);
        if let Some(path) = looked.folder(root.join(name)) {
            // Some programs unpack an archive into a folder of its name.
            let nested = path.join(name).is_dir();
            prefixes.push(if nested {
                format!("{name}/{name}/")
            } else {
                format!("{name}/")
            });
        }
    }
    let official = !prefixes.is_empty();
    if !official {
        looked.folder(root.join("Alphabet_of_the_Magi"));
        prefixes.push(String::new());
    }
    // The alphabets by their places, background first.
    let mut alphabets: Vec<(usize, String, ClassFolder)> = Vec::new();
    let mut strange = Vec::new();
    for prefix in prefixes {
        for folder in class_folders(&root.join(&prefix))? {
            match place(&folder.name) {
                Some(place) => alphabets.push((place, prefix.clone(), folder)),
                None => strange.push(format!("{prefix}{}", folder.name)),
            }
        }
    }
    if alphabets.is_empty() {
        return Ok(None);
    }
    alphabets.sort_by_key(|alphabet| alphabet.0);
    if let Some(pair) = alphabets.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(DataError::Malformed {
            path: pair[1].2.path.clone(),
            problem: format!("the alphabet is also in {}; remove one", pair[0].2.path.display()),
        });
    }
    let background = split.known.len();
    let is_new = |place: usize| place >= background;
    let parts = images.parts(Images::All);
    for &part in parts {
        if !alphabets
            .iter()
            .any(|alphabet| is_new(alphabet.0) == (part == Part::Test))
        {
            let path = if official {
                root.join(half(part))
            } else {
                missing_alphabet(root, part, &split.classes, background)
            };
            let way_out = format!("unpack {}.zip beside the other, {}", half(part), part.without());
            return Err(entry.missing(path, way_out));
        }
    }
    // The classes: all characters that are there, with how many of them are of background alphabets.
    let (mut classes, mut folders, mut known) = (Vec::new(), Vec::new(), 0);
    for (place, prefix, alphabet) in &alphabets {
        for character in class_folders(&alphabet.path)? {
            let class = format!("{}/{}", alphabet.name, character.name);
            known += usize::from(!is_new(*place));
            let part = if is_new(*place) { Part::Test } else { Part::Train };
            folders.push((part, format!("{prefix}{class}"), character.path));
            classes.push(class);
        }
    }
    let count = classes.len();
    let mut listing = Listing::new(entry, root, classes)?;
    for (class, (part, prefix, path)) in folders.into_iter().enumerate() {
        if parts.contains(&part) {
            listing.folder(&path, &prefix, class)?;
        }
    }
    if [known, count] != CHARACTERS {
        listing.note(format!(
            "{known} characters of background alphabets and {} of evaluation alphabets where Omniglot has {} and {}",
            count - known,
            CHARACTERS[0],
            CHARACTERS[1] - CHARACTERS[0]
        ));
    }
    if official && !strange.is_empty() {
        listing.note(format!(
            "folders that are no alphabets of Omniglot are ignored: {}",
            some(&strange)
        ));
    }
    if images == Images::Paper {
        listing.note("all images are taken: the paper has no table of Omniglot");
    }
    let places: Vec<usize> = (0..count).collect();
    listing.finish_with(&places[..known], &places[known..]).map(Some)
}

fn half(part: Part) -> &'static str {
    match part {
        Part::Train => "images_background",
        Part::Test => "images_evaluation",
    }
}

/// The first alphabet of a half that is not there at all.
fn missing_alphabet(root: &Path, part: Part, alphabets: &[String], background: usize) -> PathBuf {
    let first = if part == Part::Train { 0 } else { background };
    alphabets
        .get(first)
        .map_or_else(|| root.to_owned(), |name| root.join(name))
}
