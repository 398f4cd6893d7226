//! Collections that live: items, groups, names and all that was ever said about them, in one file.
//!
//! A [`Collection`] is a folder with one SQLite database. Items come in again and again; each joins a group, waits, or forms a new
//! one with others. A person names groups, merges and splits them, moves items, confirms and rejects, and undoes any of it. What a
//! person said is law: sorting anew never contradicts it.
//!
//! ```
//! use genus::{Features, Silent, Table};
//! use genus_collection::{Action, AddOptions, Collection, Items};
//!
//! # let folder = tempfile::tempdir()?;
//! // Features in memory: three kinds of things, nobody knows which.
//! let row = |at: usize| {
//!     let mut row = [0.0; 6];
//!     row[at % 3] = 1.0;
//!     row[3 + at % 2] = 0.2 + 0.01 * at as f32;
//!     row
//! };
//! let things = Table {
//!     ids: (0..30).map(|at| format!("thing {at}")).collect(),
//!     labels: vec![None; 30],
//!     features: Features::from_rows((0..30).map(row))?,
//! };
//! let mut collection = Collection::create(folder.path().join("things"), "me")?;
//! collection.add(things, &AddOptions::default(), &Silent)?;
//!
//! let group = collection.groups()?[0].id;
//! collection.act(&Action::Name { group, name: "Herring gull".to_owned() })?;
//! assert_eq!(collection.groups()?[0].name, "Herring gull");
//! assert!(!collection.items(Items::Of(group), None, 100)?.is_empty());
//! collection.undo()?;
//! assert_eq!(collection.groups()?[0].name, "new-1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every change is an entry of an append-only log, and the state is what the log adds up to ([`Collection::check`] adds it up again).
//! The rules are apart from the database that they are kept in.

mod add;
mod apply;
mod ask;
mod check;
mod collection;
mod error;
mod export;
mod knowledge;
mod levels;
mod live;
mod map;
mod model;
mod query;
mod refine;
mod refresh;
mod report;
mod rules;
mod split;
mod store;
mod tokens;

pub use add::{AddOptions, AddOutcome};
pub use apply::Corrections;
pub use ask::{Answer, Asked, Candidate, Question};
pub use check::{CheckOutcome, CompactOutcome, FileProblem};
pub use collection::{Collection, GroupInfo, ItemInfo, ItemState, Items, Preview, Status};
pub use error::Error;
pub use export::{ExportOptions, ExportOutcome, SalvageOutcome};
pub use levels::Level;
pub use live::{Arrival, ArrivedImage, Decision, ItemError, Reply, Review};
pub use map::Map;
pub use model::{Action, Entry, EntryId, Group, GroupId, ItemId, Place, PlacedItem};
pub use query::{Cursor, ItemKind, ItemPage, NoCursor, Query, Sort};
pub use refresh::{Fate, RefreshOutcome};
pub use rules::Refusal;
pub use tokens::{NoRole, Role, Token, TokenHash, Tokens};
