//! One method's answer.

use std::fmt;

/// Whether a category was named by the user or found by Genus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// One of the labelled classes.
    Known,
    /// A group of items that fit no labelled class.
    New,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Known => "known",
            Kind::New => "new",
        })
    }
}
