//! What a collection is made of: items that are somewhere, groups, and the log of what was done.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// The number of an item, which no other ever has.
    ItemId
}
number! {
    /// The number of a group, which no other ever has.
    GroupId
}
number! {
    /// The number of an entry of the log, counted from 1. Time may jump, these do not.
    EntryId
}

/// Where an item is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// In a group.
    In {
        /// The group as it was when the item came; it may be part of another by now.
        group: GroupId,
        /// How likely it belongs there, where anything said so.
        probability: Option<f32>,
        /// Whether a person said so: then it is an example.
        said: bool,
    },
    /// In none yet.
    Waiting {
        /// The best guess.
        guess: Option<GroupId>,
        /// How likely it belongs there.
        probability: Option<f32>,
    },
    /// Belongs nowhere, as a person said.
    Noise,
}

impl Place {
    /// The group that an item is in.
    pub fn group(&self) -> Option<GroupId> {
        match *self {
            Place::In { group, .. } => Some(group),
            _ => None,
        }
    }

    /// Whether a person said so.
    pub fn said(&self) -> bool {
        matches!(self, Place::In { said: true, .. } | Place::Noise)
    }

    /// How likely an item belongs to its group, or to the one that is guessed.
    pub fn probability(&self) -> Option<f32> {
        match *self {
            Place::In { probability, .. } | Place::Waiting { probability, .. } => probability,
            Place::Noise => None,
        }
    }
}

/// Where an item is, and which entry of the log put it there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacedItem {
    /// Where it is.
    pub place: Place,
    /// Since when.
    pub since: EntryId,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// What it is called.
    pub name: String,
    /// Whether a person called it that. Otherwise it is `new-1`, `new-2` and so on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
    /// The group that it is part of since a merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<GroupId>,
    /// Whether it is no more. Its number is not used again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// The last merge or split that it took part in. Items that were in it then stay with each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<EntryId>,
    /// The larger group that it is one of, as refreshing found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<GroupId>,
    /// Whether it holds groups and no items.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holds_groups: bool,
}

impl Group {
    /// A group that nothing has happened to.
    pub fn new(name: impl Into<String>, named: bool) -> Self {
        Self {
            name: name.into(),
            named,
            into: None,
            ended: false,
            sealed: None,
            parent: None,
            holds_groups: false,
        }
    }

    /// Whether it is there by itself.
    pub fn stands(&self) -> bool {
        !self.ended && self.into.is_none()
    }
}

/// What a person, or a command for them, says about a collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "do")]
#[non_exhaustive]
pub enum Action {
    /// Calls a group something.
    Name {
        /// The group.
        group: GroupId,
        /// The name.
        name: String,
    },
    /// Makes groups one.
    Merge {
        /// The groups.
        groups: Vec<GroupId>,
        /// The one whose number and name stay; by default the one that has a name, or the first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        into: Option<GroupId>,
    },
    /// Makes new groups of parts of a group.
    Split {
        /// The group.
        group: GroupId,
        /// The items of every part. Items in none stay; when all are in one, the part that most of what was confirmed is in, or
        /// else the largest, stays.
        parts: Vec<Vec<ItemId>>,
    },
    /// Puts items into a group.
    Move {
        /// The items.
        items: Vec<ItemId>,
        /// The group.
        to: GroupId,
    },
    /// Puts items into a group of their own.
    MoveToNew {
        /// The items.
        items: Vec<ItemId>,
        /// What it is called, if it is called anything yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Says that items are where they belong; one that waits joins the group that was guessed.
    Confirm {
        /// The items.
        items: Vec<ItemId>,
    },
    /// Says the same of all items of a group.
    ConfirmGroup {
        /// The group.
        group: GroupId,
    },
    /// Says that items are not where they belong.
    Reject {
        /// The items.
        items: Vec<ItemId>,
    },
    /// Says that items belong to no class.
    Noise {
        /// The items.
        items: Vec<ItemId>,
    },
    /// Several things that are done and undone as one.
    Several {
        /// Where they come from.
        from: String,
        /// What is done.
        actions: Vec<Action>,
    },
}

impl Action {
    /// The word for it in the log.
    pub fn word(&self) -> &'static str {
        match self {
            Action::Name { .. } => "name",
            Action::Merge { .. } => "merge",
            Action::Split { .. } => "split",
            Action::Move { .. } | Action::MoveToNew { .. } => "move",
            Action::Confirm { .. } | Action::ConfirmGroup { .. } => "confirm",
            Action::Reject { .. } => "reject",
            Action::Noise { .. } => "noise",
            Action::Several { .. } => "apply",
        }
    }
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Its number.
    pub no: EntryId,
    /// Milliseconds since 1970, as the clock had it.
    pub time: i64,
    /// Who did it.
    pub author: String,
    /// What was done, in a word: `init`, `add`, `refresh`, `undo`, `redo` or that of an [`Action`].
    pub kind: String,
    /// The details.
    pub said: serde_json::Value,
    /// The entry that it undid or redid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<EntryId>,
    /// How many items it changed.
    pub items: u64,
    /// How many groups it changed.
    pub groups: u64,
}
