//! Items by what is true of them, in an order, page by page.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::collection::{Collection, Groups, ItemInfo};
use crate::error::Error;
use crate::model::{GroupId, ItemId};
use crate::rules::Refusal;
use crate::store::{Order, Store, Wanted, WantedPlace};

/// What is true of the items that are wanted. By default these are all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The group that they are in, or that is guessed for those that wait.
    pub group: Option<GroupId>,
    /// What they are. Without it, and with a group, they are in that group.
    pub kind: Option<ItemKind>,
    /// Whether a person said so.
    pub confirmed: Option<bool>,
    /// How sure their place is, at least.
    pub at_least: Option<f64>,
    /// The same, at most.
    pub at_most: Option<f64>,
    /// What is in their names, in upper or lower case.
    pub name: Option<String>,
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// In a group that a person has named.
    Known,
    /// In a group that nobody has named yet.
    Group,
    /// In none yet.
    Waiting,
    /// Belongs nowhere.
    Noise,
}

/// The order of items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// By their numbers.
    #[default]
    Number,
    /// From typical to doubtful.
    Surest,
    /// From doubtful to typical.
    LeastSure,
}

/// Where a page of items ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cursor {
    sure: f64,
    item: ItemId,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.sure.to_bits(), self.item)
    }
}

/// A text that is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid cursor of a page of items")]
pub struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (sure, item) = text.split_once('-').ok_or(NoCursor)?;
        let sure = f64::from_bits(u64::from_str_radix(sure, 16).map_err(|_| NoCursor)?);
        let item = ItemId(item.parse().map_err(|_| NoCursor)?);
        match sure.is_finite() {
            true => Ok(Self { sure, item }),
            false => Err(NoCursor),
        }
    }
}

/// Some of the items that were asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemPage {
    /// The items.
    pub items: Vec<ItemInfo>,
    /// Where the next page begins; none after the last.
    pub next: Option<Cursor>,
    /// How many there are on all pages.
    pub total: u64,
}

impl Query {
    fn wanted(&self, store: &Store, sort: Sort) -> Result<(Groups, Wanted), Error> {
        let groups = Groups::read(store)?;
        let parts = match self.group {
            None => None,
            Some(group) => {
                let whole = groups.resolve(group).ok_or(Refusal::NoGroup { group })?;
                Some(groups.parts.get(&whole).cloned().unwrap_or_default())
            }
        };
        let of_kind = |named: bool| -> Vec<GroupId> {
            let all = groups.parts.iter().filter(|(id, _)| groups.all[id].named == named);
            let all = all.flat_map(|(_, parts)| parts.iter().copied());
            all.filter(|part| parts.as_ref().is_none_or(|parts| parts.contains(part)))
                .collect()
        };
        let places = match (self.kind, &parts) {
            (None, None) => None,
            (None, Some(parts)) => Some(vec![WantedPlace::In(parts.clone())]),
            (Some(ItemKind::Known), _) => Some(vec![WantedPlace::In(of_kind(true))]),
            (Some(ItemKind::Group), _) => Some(vec![WantedPlace::In(of_kind(false))]),
            (Some(ItemKind::Waiting), _) => Some(vec![WantedPlace::Waiting(parts.clone())]),
            (Some(ItemKind::Noise), None) => Some(vec![WantedPlace::Noise]),
            (Some(ItemKind::Noise), Some(_)) => Some(Vec::new()),
        };
        let wanted = Wanted {
            places,
            said: self.confirmed,
            at_least: self.at_least,
            at_most: self.at_most,
            name: self.name.clone().filter(|name| !name.is_empty()),
            order: match sort {
                Sort::Number => Order::Number,
                Sort::Surest => Order::Surest,
                Sort::LeastSure => Order::LeastSure,
            },
        };
        Ok((groups, wanted))
    }
}

impl Collection {
    /// A page of the items that are wanted: those after a cursor, at most so many.
    pub fn query(&self, query: &Query, sort: Sort, after: Option<Cursor>, most: usize) -> Result<ItemPage, Error> {
        self.store.snapshot(|store| {
            let (groups, wanted) = query.wanted(store, sort)?;
            let after = after.map(|cursor| (cursor.sure, cursor.item));
            // One more shows whether there is a next page.
            let mut found = store.select(&wanted, after, most.saturating_add(1))?;
            let more = found.len() > most;
            found.truncate(most);
            let next = found.last().filter(|_| more).map(|(sure, item)| Cursor {
                sure: *sure,
                item: item.id,
            });
            Ok(ItemPage {
                next,
                total: store.count(&wanted)?,
                items: found.into_iter().filter_map(|(_, item)| groups.item(item)).collect(),
            })
        })
    }

    /// The numbers of all items that are wanted.
    pub fn select(&self, query: &Query) -> Result<Vec<ItemId>, Error> {
        self.store.snapshot(|store| {
            let (_, wanted) = query.wanted(store, Sort::Number)?;
            store.select_numbers(&wanted)
        })
    }
}
