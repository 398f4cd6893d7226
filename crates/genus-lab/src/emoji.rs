//! The demonstration on pictures: emoji of fourteen kinds, five of them known from five examples each.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use genus_core::rng::Rng;
use genus_data::{Emoji, emoji};

/// How many kinds are known, and from how many examples each.
const KNOWN: usize = 5;
const EXAMPLES: usize = 5;
/// The use of random numbers.
const USE: u64 = 0xE0;

/// A pile of emoji, and labelled examples of some of their kinds.
pub struct EmojiPile {
    /// All kinds, the known ones first.
    pub kinds: Vec<String>,
    /// The labelled examples.
    pub examples: Vec<Emoji>,
    /// The others, by the name of their file.
    pub pile: BTreeMap<String, Emoji>,
}

/// An [`EmojiPile`] as people have their pictures.
pub struct EmojiFolders {
    /// A folder a known kind.
    pub labelled: PathBuf,
    /// The pile, in one folder.
    pub pile: PathBuf,
    /// A table with the truth about the pile.
    pub truth: PathBuf,
}

impl EmojiPile {
    /// Draws which kinds are known, and from which examples.
    pub fn new(seed: u64) -> Self {
        let mut of_kind: BTreeMap<String, Vec<Emoji>> = BTreeMap::new();
        for picture in emoji() {
            of_kind.entry(picture.kind.clone()).or_default().push(picture);
        }
        let kinds: Vec<String> = of_kind.keys().cloned().collect();
        let known = Rng::new(seed, &[USE]).sample(kinds.len(), KNOWN);
        let (mut examples, mut pile) = (Vec::new(), BTreeMap::new());
        for (number, (kind, pictures)) in of_kind.into_iter().enumerate() {
            let chosen = match known.contains(&number) {
                true => Rng::new(seed, &[USE, 1, number as u64]).sample(pictures.len(), EXAMPLES),
                false => Vec::new(),
            };
            debug_assert_eq!(kind, kinds[number]);
            for (at, picture) in pictures.into_iter().enumerate() {
                match chosen.contains(&at) {
                    true => examples.push(picture),
                    false => drop(pile.insert(format!("{}.png", picture.name), picture)),
                }
            }
        }
        let (first, rest): (Vec<usize>, Vec<usize>) = (0..kinds.len()).partition(|number| known.contains(number));
        let kinds = first.into_iter().chain(rest).map(|number| kinds[number].clone());
        Self {
            kinds: kinds.collect(),
            examples,
            pile,
        }
    }

    /// The known kinds.
    pub fn known(&self) -> &[String] {
        &self.kinds[..KNOWN]
    }

    /// The number of a picture's kind.
    pub fn truth(&self, file: &str) -> usize {
        let kind = self.pile.get(file).map(|picture| &picture.kind);
        let number = self.kinds.iter().position(|other| Some(other) == kind);
        number.unwrap_or(self.kinds.len())
    }

    /// Writes the pictures into a folder.
    pub fn write(&self, folder: &Path) -> io::Result<EmojiFolders> {
        let folders = EmojiFolders {
            labelled: folder.join("labelled"),
            pile: folder.join("emoji"),
            truth: folder.join("truth.csv"),
        };
        for Emoji { kind, name, png, .. } in &self.examples {
            let of_kind = folders.labelled.join(kind);
            std::fs::create_dir_all(&of_kind)?;
            std::fs::write(of_kind.join(format!("{name}.png")), png)?;
        }
        std::fs::create_dir_all(&folders.pile)?;
        let mut truth = String::from("id,truth\n");
        for (file, Emoji { kind, png, .. }) in &self.pile {
            std::fs::write(folders.pile.join(file), png)?;
            truth += &format!("{file},{kind}\n");
        }
        std::fs::write(&folders.truth, truth)?;
        Ok(folders)
    }
}
