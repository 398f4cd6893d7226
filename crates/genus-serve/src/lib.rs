//! A collection as a service: items in, decisions out, and a page to answer on.
//!
//! [`serve`] answers HTTP on top of a [`genus_collection::Collection`]: one thread writes, with many requests to one commit, and
//! everything else reads. What is true of items, and all SQL, is in that crate; here are requests, answers and who may.
//!
//! ```no_run
//! use genus_serve::{Options, Stop, serve};
//!
//! let options = Options::new("birds", "127.0.0.1:7878".parse()?);
//! serve(&options, &Stop::default(), |address| println!("http://{address}"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod actions;
mod api;
mod events;
mod intake;
mod limits;
mod metrics;
mod page;
mod problem;
mod read;
mod server;
mod thumbnails;
mod wire;
mod writer;

pub use api::openapi;
pub use limits::Limits;
pub use server::{Options, ServeError, Stop, serve};
