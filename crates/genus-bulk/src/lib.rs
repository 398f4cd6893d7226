//! Piles of any size in shards that any scheduler can run.
//!
//! [`plan`] cuts the inputs into shards and writes a manifest into an output place: a folder, or a prefix of an object store. Any
//! number of processes on any number of machines then [run](Runner) shards, each as often as it likes: a shard publishes its part under
//! a name that its content gives it, and its receipt last, which appears unless there is one. So a crash costs the shards that were
//! running, and doing a shard twice, or in two places at once, gives the same once. [`Job::reduce`] ends a round, [`Job::verify`] looks
//! whether every row is there once, and [`Job::status`] says how far the job has come.
//!
//! A job assigns to a taxonomy, or discovers its categories first: in rounds, each of which every shard takes part in. A sample is
//! gathered and discovered on one machine; passes of k-means go over all rows, whose sums are added up in a tree of a fixed form; what
//! fits nothing is gathered and becomes new categories. The result is a taxonomy like any other.
//!
//! ```
//! use genus::{DiscoverOptions, Destination, Inputs, OutputOptions, Silent};
//! use genus_bulk::{Job, PlanOptions, Reduced, Runner, Target, plan};
//!
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! # let row = |at: usize| format!("item {at},{},{},{}\n", [9, 0, 1][at % 3], [0, 9, 1][at % 3], 1 + at % 2);
//! # std::fs::write(folder.join("pile.csv"), format!("id,f0,f1,f2\n{}", (0..60).map(row).collect::<String>()))?;
//! # let [pile, taxonomy, out] = ["pile.csv", "taxonomy", "out"].map(|name| folder.join(name).display().to_string());
//! let outcome = genus::discover(Inputs::without_examples(&pile), &DiscoverOptions::default(), &Silent)?;
//! outcome.write(Destination::Folder(taxonomy.clone().into()), OutputOptions::default(), None, &Silent)?;
//!
//! let target = Target::Taxonomy { folder: taxonomy.into(), calibration: None };
//! plan(&PlanOptions::new(vec![pile], &out, target))?;
//! // Anywhere where the place can be reached:
//! let job = Job::open(&out)?;
//! let ran = Runner::new(&job, None)?.run(&[0], 1, &Silent);
//! assert!(ran.failed.is_empty());
//! let Reduced::Done(summary) = job.reduce(&Silent)? else { panic!("there is one round") };
//! assert_eq!(summary.rows, 60);
//! assert!(job.verify()?.is_clean());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod beat;
mod error;
mod job;
mod manifest;
mod pictures;
mod place;
mod plan;
mod receipt;
mod reduce;
#[cfg(feature = "object-store")]
mod remote;
mod run;
mod source;
mod state;
mod status;
mod sums;
mod verify;

pub use beat::Worker;
pub use error::BulkError;
pub use job::Job;
pub use manifest::{Check, Columns, Discovery, Input, Manifest, Piece, Round, Shard};
pub use place::Place;
pub use plan::{Estimate, PlanOptions, Target, plan};
pub use receipt::{Part, PartKind, Receipt};
pub use reduce::{CategoryCount, PartSummary, Reduced, Summary};
pub use run::{Ran, Runner};
pub use status::Status;
pub use verify::Verdict;
