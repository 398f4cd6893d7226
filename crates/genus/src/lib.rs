//! Sorts images and features into the classes you know and new categories: the whole pipeline as a library.
//!
//! From a few labelled examples of some classes and a pile of unlabelled items, [`discover`] says which items belong to the known
//! classes and groups the rest into new categories, without being told how many there are. Items are features in memory, feature
//! files, or images in a folder or manifest, which are embedded on the way in.
//!
//! ```
//! use genus::{DiscoverOptions, Features, Inputs, Silent, Table};
//!
//! // Features in memory: three labelled examples of two classes each, and a pile that holds a third.
//! let row = |class: usize, at: usize| {
//!     let mut row = [0.0; 6];
//!     row[class] = 1.0;
//!     row[3 + at % 3] = 0.3;
//!     row
//! };
//! let examples = Table {
//!     ids: (0..6).map(|at| format!("example {at}")).collect(),
//!     labels: (0..6).map(|at| Some(["cat", "dog"][at / 3].to_owned())).collect(),
//!     features: Features::from_rows((0..6).map(|at| row(at / 3, at)))?,
//! };
//! let pile = Table {
//!     ids: (0..30).map(|at| format!("photo {at}")).collect(),
//!     labels: vec![None; 30],
//!     features: Features::from_rows((0..30).map(|at| row(at / 10, at)))?,
//! };
//! let outcome = genus::discover(Inputs::new(examples, pile), &DiscoverOptions::default(), &Silent)?;
//! assert_eq!(outcome.assignments[0].category, "cat");
//! assert_eq!(outcome.assignments[29].category, "new-1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A folder of results has the assignments, the taxonomy and a page that shows them; further items are assigned to it.
//!
//! ```
//! use genus::{AssignOptions, Destination, DiscoverOptions, Inputs, OutputOptions, Page, Silent};
//!
//! # let temporary = std::env::temp_dir().join(format!("genus-front-page-{}", std::process::id()));
//! # std::fs::create_dir_all(&temporary)?;
//! # let table = temporary.join("table.csv");
//! # let rows = (0..24).map(|at| {
//! #     let label = ["a", "b", ""][at % 3].repeat(usize::from(at < 9));
//! #     let mut row = [0.01 * at as f32; 3];
//! #     row[at % 3] += 1.0;
//! #     format!("item {at},{label},{},{},{}\n", row[0], row[1], row[2])
//! # });
//! # std::fs::write(&table, format!("id,label,f0,f1,f2\n{}", rows.collect::<String>()))?;
//! # let result = temporary.join("result");
//! // Rows without a label are the pile.
//! let inputs = Inputs::Mixed((&table).into());
//! let options = DiscoverOptions::default();
//! let page = Page::new(&inputs, &options.tables, None, None)?;
//! let outcome = genus::discover(inputs, &options, &Silent)?;
//! let to = Destination::Folder(result.clone());
//! let saved = outcome.write(to, OutputOptions::default(), Some(&page), &Silent)?;
//! assert!(saved.report.is_some_and(|page| page.ends_with("report.html")));
//!
//! let more = genus::assign(&result, &table, &AssignOptions::default(), &Silent)?;
//! assert_eq!(more.assignments.len(), 24);
//! # std::fs::remove_dir_all(&temporary)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Images go the same way. Errors are values that say what is wrong, and [`Progress`] hears what happens meanwhile.
//!
//! ```
//! use genus::{DiscoverOptions, Error, Inputs, Length, Note, Progress};
//!
//! struct Log;
//!
//! impl Progress for Log {
//!     fn start(&self, stage: &str, length: Length) {
//!         eprintln!("{stage}: {length:?}");
//!     }
//!     fn advance(&self, _steps: u64) {}
//!     fn note(&self, note: &Note) {
//!         eprintln!("{note:?}");
//!     }
//! }
//!
//! let inputs = Inputs::without_examples("photos that are not there");
//! let error = genus::discover(inputs, &DiscoverOptions::default(), &Log).unwrap_err();
//! assert!(matches!(error, Error::Data(_)));
//! ```

mod assign;
mod calibrate;
mod counts;
mod discover;
mod error;
mod grow;
mod images;
mod items;
mod next_steps;
mod output;
mod progress;
mod report;
mod rows;
mod speed;
pub mod text;
pub mod training;

pub use assign::{AssignOptions, AssignOutcome, assign, assign_into, with_calibration};
pub use calibrate::{CalibrateOptions, CalibrateOutcome, CalibrationFile, calibrate, calibrate_kinds, knowledge};
pub use counts::Counts;
pub use discover::{ClusteredItems, DiscoverOptions, Examples, Inputs, Outcome, Timings, discover, discover_into, how};
pub use error::{Error, Purpose};
pub use grow::{GrowOutcome, grow};
pub use images::{CacheChoice, Embedder, ImageOptions, LiveEncoder, OnnxInfo, embed, fetch_weights, is_onnx};
pub use items::{Header, Items, Source};
pub use next_steps::NextSteps;
pub use output::{Destination, Folder, Output, OutputOptions, Rows, SavedFiles};
pub use progress::{Length, Note, Progress, Silent, Skipped};
pub use report::{Page, REPORT_FILE, ReportSource, begin_page, describe, illustrate};
pub use rows::{LabelledRows, SortedRows, discover_rows, stream_of_rows};
pub use speed::{measure_speed, remembered_speeds};
pub use training::train;

// What the options and outcomes are made of.
pub use genus_core::methods::MethodSpec;
pub use genus_core::{Features, FeaturesView, Taxonomy};
pub use genus_data::{Export, Format, LinkKind, SortedItem, Table, TableFormat, TableOptions};
