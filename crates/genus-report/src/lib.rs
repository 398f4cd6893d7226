//! What a discovery found, as one page of HTML that stands alone.
//!
//! A [`Report`] is a plain description of a finished discovery: its items and categories, how it was made and why it came
//! out so. [`Report::html`] gives the page. It needs no network and no other file, and whatever items are called, their
//! names are data to it and never markup.
//!
//! ```
//! use genus_core::{Kind, Score};
//! use genus_report::{Category, Item, Provenance, Report, Why};
//!
//! let report = Report {
//!     title: "photos".into(),
//!     things: ["photo".into(), "photos".into()],
//!     made: Provenance { method: "shc".into(), version: "0.1.0".into(), ..Provenance::default() },
//!     categories: vec![Category { name: "cat".into(), kind: Kind::Known, items: 1, unsure: 0, parent: None }],
//!     items: vec![Item {
//!         id: "</script><b>tom.jpg".into(),
//!         category: 0,
//!         score: Score { similarity: 0.9, margin: 0.2, probability: None, unsure: false },
//!         ..Item::default()
//!     }],
//!     examples: vec![],
//!     projection: None,
//!     why: Why::default(),
//!     truth: None,
//!     history: vec![],
//!     asked: vec![],
//! };
//! let page = report.html();
//! assert!(page.starts_with("<!doctype html>") && !page.contains("<b>tom"));
//! ```

mod data;
mod document;
pub mod modules;
mod page;
pub mod palette;
mod pictures;
mod truth;

use genus_core::explain::{CategoryTree, Confusable, Link, Neighbour};
use genus_core::{Kind, Score};

pub use document::{Document, escape};
pub use pictures::{Pictures, Slot};
pub use truth::Truth;

/// A finished discovery.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was sorted, as the name of a folder or a file.
    pub title: String,
    /// What one item and several are called.
    pub things: [String; 2],
    /// How it was made.
    pub made: Provenance,
    /// The categories, known ones first.
    pub categories: Vec<Category>,
    /// The items to show: all of them, or a random sample.
    pub items: Vec<Item>,
    /// The labelled examples.
    pub examples: Vec<Example>,
    /// How the places of the map were found, if there is a map.
    pub projection: Option<String>,
    /// Why it came out so.
    pub why: Why,
    /// How right it is, where the truth is known.
    pub truth: Option<Truth>,
    /// What was done to it, the last first, where it has a history.
    pub history: Vec<HistoryEntry>,
    /// What people were asked about it, the open questions first.
    pub asked: Vec<Asked>,
}

/// A question that people were asked, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// When.
    pub when: String,
    /// What.
    pub question: String,
    /// What was answered; nothing yet where it is open.
    pub answer: Option<String>,
}

/// Something that was done, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryEntry {
    /// When.
    pub when: String,
    /// Who did it.
    pub who: String,
    /// What it was.
    pub what: String,
}

/// How a discovery was made.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    /// The method with its parameters.
    pub method: String,
    /// The calibration of the method and how it stopped, in words.
    pub how: String,
    /// What made the features, where it is known.
    pub encoder: Option<String>,
    /// The seed.
    pub seed: u64,
    /// The running time.
    pub seconds: f64,
    /// The version of Genus.
    pub version: String,
}

/// A category and how many items it has in all, shown or not.
#[derive(Clone, Debug)]
pub struct Category {
    /// What it is called.
    pub name: String,
    /// Named by the user or found.
    pub kind: Kind,
    /// Items in it.
    pub items: u64,
    /// Those of them that are unsure.
    pub unsure: u64,
    /// The larger category that it is one of, where there is one.
    pub parent: Option<String>,
}

/// An item that was sorted.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is called.
    pub id: String,
    /// The number of its category.
    pub category: usize,
    /// How well it fits.
    pub score: Score,
    /// The next best category.
    pub rival: Option<usize>,
    /// Where it lies on the map.
    pub place: Option<[f32; 2]>,
    /// What it says.
    pub text: Option<String>,
    /// A small JPEG, PNG or WebP.
    pub picture: Option<Vec<u8>>,
    /// Its true class, by its number in [`Truth::classes`].
    pub truth: Option<usize>,
    /// The number of its scene, where scenes were looked for: copies, crops and frames of one burst have the same.
    pub scene: Option<usize>,
    /// What ties it to its category, where ties decided.
    pub tied: Option<NeighbourTies>,
}

/// An item's nearest neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourTies {
    /// How many of its nearest neighbours, of [`Communities::neighbours`], are in its category.
    pub own: usize,
    /// A few of the nearest, the very nearest first.
    pub nearest: Vec<Slot>,
}

impl Default for Item {
    fn default() -> Self {
        Self {
            id: String::new(),
            category: 0,
            score: Score {
                similarity: 0.0,
                margin: 0.0,
                probability: None,
                unsure: false,
            },
            rival: None,
            place: None,
            text: None,
            picture: None,
            truth: None,
            scene: None,
            tied: None,
        }
    }
}

/// A labelled example.
#[derive(Clone, Debug, Default)]
pub struct Example {
    /// What it is called.
    pub id: String,
    /// The number of its class, which is that of its category.
    pub class: usize,
    /// Where it lies on the map.
    pub place: Option<[f32; 2]>,
    /// What it says.
    pub text: Option<String>,
    /// A small JPEG, PNG or WebP.
    pub picture: Option<Vec<u8>>,
}

/// The explanation of a discovery.
#[derive(Clone, Debug, Default)]
pub struct Why {
    /// How the categories hang together, for methods that merge.
    pub tree: Option<CategoryTree>,
    /// The links between categories, for methods based on neighbours.
    pub communities: Option<Communities>,
    /// The similarity at which merging ended, where there was one for all.
    pub cut: Option<f32>,
    /// The probability below which an item is unsure.
    pub doubt: Option<f32>,
    /// The nearest other categories of each.
    pub nearest: Vec<Vec<Neighbour>>,
    /// The categories that are most easily confused.
    pub confusable: Vec<Confusable>,
}

/// Categories that are communities: what has its neighbours in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Communities {
    /// How many nearest neighbours of every item were looked at.
    pub neighbours: usize,
    /// The pairs of categories that are linked most, the strongest first; `None` where the items were too many to look.
    pub links: Option<Vec<Link>>,
}

impl Report {
    /// The page.
    pub fn html(&self) -> String {
        page::html(self)
    }

    /// The items of every category as its sheet shows them: mistakes first, then from typical to doubtful, and what is
    /// unsure last.
    pub(crate) fn sheets(&self) -> Vec<Vec<usize>> {
        let mut sheets = vec![Vec::new(); self.categories.len()];
        for (at, item) in self.items.iter().enumerate() {
            if let Some(sheet) = sheets.get_mut(item.category) {
                sheet.push(at);
            }
        }
        for sheet in &mut sheets {
            sheet.sort_by(|&a, &b| {
                let (a, b) = (&self.items[a], &self.items[b]);
                let mistakes = self.is_mistake(b).cmp(&self.is_mistake(a));
                let doubts = a.score.unsure.cmp(&b.score.unsure);
                mistakes
                    .then(doubts)
                    .then(b.score.similarity.total_cmp(&a.score.similarity))
                    .then(a.scene.cmp(&b.scene))
            });
        }
        sheets
    }

    pub(crate) fn is_mistake(&self, item: &Item) -> bool {
        let judged = self.truth.as_ref().zip(item.truth);
        judged.is_some_and(|(truth, class)| truth.class_of(item.category) != Some(class))
    }
}
