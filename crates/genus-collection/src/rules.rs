//! What an action does: pure rules over whatever state there is, which they see through a [`View`].
//!
//! A [`Draft`] collects what changes; reading through it shows the state as it will be. Everything that an entry of the log does is
//! in its [`Changes`], before and after, so that the state is the sum of the log, and undoing is reading one entry backwards.
//!
//! Merging is one note on a group (`into`), however many items it has. What a merge or a split says about items, that they stay
//! where they are, is one note as well (`sealed`): it binds the items that had come by then.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use thiserror::Error;

use crate::model::{Action, EntryId, Group, GroupId, ItemId, Place, PlacedItem};

/// The longest name, in bytes.
pub(crate) const LONGEST_NAME: usize = 1000;
/// How the names of groups begin that nobody has named.
const NEW: &str = "new-";

/// A state as the rules see it.
pub(crate) trait View {
    /// Why it cannot be seen.
    type Error: From<Refusal>;

    fn group(&self, id: GroupId) -> Result<Option<Group>, Self::Error>;
    /// The groups whose `into` is this one.
    fn merged_into(&self, id: GroupId) -> Result<Vec<GroupId>, Self::Error>;
    /// The group that stands by itself and is called this.
    fn called(&self, name: &str) -> Result<Option<GroupId>, Self::Error>;
    fn place(&self, item: ItemId) -> Result<Option<PlacedItem>, Self::Error>;
    /// The items whose place names this very group as the one that they are in.
    fn members(&self, group: GroupId) -> Result<Vec<ItemId>, Self::Error>;
    /// The groups that a person said an item is not of.
    fn rejections(&self, item: ItemId) -> Result<Vec<GroupId>, Self::Error>;
    /// The items that a person said are not of a group.
    fn rejected_from(&self, group: GroupId) -> Result<Vec<ItemId>, Self::Error>;
}

/// Why something that was said cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such group, or no longer.
    #[error("there is no group {group}")]
    NoGroup {
        /// Its number.
        group: GroupId,
    },
    /// There is no such item.
    #[error("there is no item #{item}")]
    NoItem {
        /// Its number.
        item: ItemId,
    },
    /// A name without anything to see.
    #[error("a name needs at least one letter")]
    EmptyName,
    /// A name that no list has room for.
    #[error("a name has at most {LONGEST_NAME} bytes, and this one has {bytes}")]
    LongName {
        /// How many it has.
        bytes: usize,
    },
    /// Another group is called that.
    #[error("group {group} is called \"{name}\" already")]
    NameTaken {
        /// That group.
        group: GroupId,
        /// The name.
        name: String,
    },
    /// There is nothing to merge.
    #[error("it takes two groups to merge")]
    OneGroup,
    /// Groups of different names would be merged.
    #[error("\"{first}\" and \"{second}\" both have names; say which one stays")]
    TwoNames {
        /// A name.
        first: String,
        /// Another.
        second: String,
    },
    /// A part of a group that is none.
    #[error("item #{item} is not in group {group}, so it is no part of it")]
    NotInGroup {
        /// The item.
        item: ItemId,
        /// The group.
        group: GroupId,
    },
    /// An item in two parts.
    #[error("item #{item} is in two parts")]
    InTwoParts {
        /// The item.
        item: ItemId,
    },
    /// A split after which everything would be as before.
    #[error("a split needs two parts that have items")]
    OnePart,
    /// Nothing was guessed that could be right or wrong.
    #[error("item #{item} is in no group, and none is guessed; move it where it belongs")]
    Nowhere {
        /// The item.
        item: ItemId,
    },
    /// There is nothing to undo.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// There is nothing to redo.
    #[error("there is nothing to redo: nothing was undone, or something else was done since")]
    NothingToRedo,
    /// Nothing was said.
    #[error("there is nothing to do")]
    NothingToDo,
}

/// What something was and what it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change<T> {
    pub(crate) before: T,
    pub(crate) after: T,
}

/// All that an entry of the log changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Changes {
    pub(crate) items: BTreeMap<ItemId, Change<Option<PlacedItem>>>,
    pub(crate) groups: BTreeMap<GroupId, Change<Option<Group>>>,
    pub(crate) rejections: BTreeMap<(ItemId, GroupId), Change<bool>>,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.groups.is_empty() && self.rejections.is_empty()
    }
}

/// The numbers that the next new group gets, which never go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    pub(crate) group: i64,
    /// The number in its name.
    pub(crate) name: i64,
}

/// A state with changes on top of it.
pub(crate) struct Draft<'a, V> {
    base: &'a V,
    /// The entry of the log that the changes will be.
    pub(crate) entry: EntryId,
    pub(crate) next: Next,
    pub(crate) changes: Changes,
    /// The groups among the changed ones that stand by themselves, by name.
    names: HashMap<String, GroupId>,
}

impl<'a, V: View> Draft<'a, V> {
    pub(crate) fn new(base: &'a V, entry: EntryId, next: Next) -> Self {
        Self {
            base,
            entry,
            next,
            changes: Changes::default(),
            names: HashMap::new(),
        }
    }

    /// The changes without those that change nothing.
    pub(crate) fn finish(mut self) -> (Changes, Next) {
        self.changes.items.retain(|_, change| change.before != change.after);
        self.changes.groups.retain(|_, change| change.before != change.after);
        self.changes
            .rejections
            .retain(|_, change| change.before != change.after);
        (self.changes, self.next)
    }

    pub(crate) fn group(&self, id: GroupId) -> Result<Option<Group>, V::Error> {
        match self.changes.groups.get(&id) {
            Some(change) => Ok(change.after.clone()),
            None => self.base.group(id),
        }
    }

    fn set_group(&mut self, id: GroupId, after: Option<Group>) -> Result<(), V::Error> {
        if let Some(Change {
            after: Some(before), ..
        }) = self.changes.groups.get(&id)
            && self.names.get(&before.name) == Some(&id)
        {
            self.names.remove(&before.name);
        }
        self.note_name(id, after.as_ref());
        match self.changes.groups.get_mut(&id) {
            Some(change) => change.after = after,
            None => {
                let before = self.base.group(id)?;
                self.changes.groups.insert(id, Change { before, after });
            }
        }
        Ok(())
    }

    fn note_name(&mut self, id: GroupId, group: Option<&Group>) {
        if let Some(group) = group.filter(|group| group.stands()) {
            self.names.insert(group.name.clone(), id);
        }
    }

    /// Changes a group that is there.
    pub(crate) fn change_group(&mut self, id: GroupId, change: impl FnOnce(&mut Group)) -> Result<(), V::Error> {
        let mut group = self.group(id)?.ok_or(Refusal::NoGroup { group: id })?;
        change(&mut group);
        self.set_group(id, Some(group))
    }

    pub(crate) fn place(&self, item: ItemId) -> Result<Option<PlacedItem>, V::Error> {
        match self.changes.items.get(&item) {
            Some(change) => Ok(change.after),
            None => self.base.place(item),
        }
    }

    fn set_place(&mut self, item: ItemId, after: Option<PlacedItem>) -> Result<(), V::Error> {
        match self.changes.items.get_mut(&item) {
            Some(change) => change.after = after,
            None => {
                let before = self.base.place(item)?;
                self.changes.items.insert(item, Change { before, after });
            }
        }
        Ok(())
    }

    /// Puts an item somewhere, where it is from now on; one that stays in its group has been there as long as before.
    pub(crate) fn put(&mut self, item: ItemId, place: Place) -> Result<(), V::Error> {
        let before = self.place(item)?;
        let stays = |placed: &PlacedItem| place.group().is_some() && placed.place.group() == place.group();
        let since = before.filter(stays).map_or(self.entry, |placed| placed.since);
        self.set_place(item, Some(PlacedItem { place, since }))
    }

    /// Puts an item somewhere that was nowhere before.
    pub(crate) fn put_new(&mut self, item: ItemId, place: Place) {
        let since = self.entry;
        let after = Some(PlacedItem { place, since });
        self.changes.items.insert(item, Change { before: None, after });
    }

    /// Puts an item somewhere, where it was seen to be before.
    pub(crate) fn put_from(&mut self, item: ItemId, before: PlacedItem, place: Place) {
        let stays = place.group().is_some() && before.place.group() == place.group();
        let since = if stays { before.since } else { self.entry };
        let change = Change {
            before: Some(before),
            after: Some(PlacedItem { place, since }),
        };
        self.changes.items.insert(item, change);
    }

    pub(crate) fn members(&self, group: GroupId) -> Result<Vec<ItemId>, V::Error> {
        let mut members: BTreeSet<ItemId> = self.base.members(group)?.into_iter().collect();
        for (&item, change) in &self.changes.items {
            match change.after.and_then(|placed| placed.place.group()) == Some(group) {
                true => members.insert(item),
                false => members.remove(&item),
            };
        }
        Ok(members.into_iter().collect())
    }

    fn set_rejection(&mut self, item: ItemId, group: GroupId, after: bool) -> Result<(), V::Error> {
        match self.changes.rejections.get_mut(&(item, group)) {
            Some(change) => change.after = after,
            None => {
                let before = self.base.rejections(item)?.contains(&group);
                self.changes.rejections.insert((item, group), Change { before, after });
            }
        }
        Ok(())
    }

    pub(crate) fn rejections(&self, item: ItemId) -> Result<Vec<GroupId>, V::Error> {
        let mut groups: BTreeSet<GroupId> = self.base.rejections(item)?.into_iter().collect();
        let own = self
            .changes
            .rejections
            .range((item, GroupId(i64::MIN))..=(item, GroupId(i64::MAX)));
        for (&(_, group), change) in own {
            match change.after {
                true => groups.insert(group),
                false => groups.remove(&group),
            };
        }
        Ok(groups.into_iter().collect())
    }

    fn rejected_from(&self, group: GroupId) -> Result<Vec<ItemId>, V::Error> {
        let mut items: BTreeSet<ItemId> = self.base.rejected_from(group)?.into_iter().collect();
        for (&(item, rejected), change) in &self.changes.rejections {
            if rejected == group {
                match change.after {
                    true => items.insert(item),
                    false => items.remove(&item),
                };
            }
        }
        Ok(items.into_iter().collect())
    }

    /// The group that stands by itself and is called this, as it will be.
    pub(crate) fn called_now(&self, name: &str) -> Result<Option<GroupId>, V::Error> {
        if let Some(&id) = self.names.get(name) {
            return Ok(Some(id));
        }
        // What is said about it here counts.
        let found = self.base.called(name)?;
        Ok(found.filter(|id| !self.changes.groups.contains_key(id)))
    }

    fn merged_into(&self, id: GroupId) -> Result<Vec<GroupId>, V::Error> {
        let mut merged: BTreeSet<GroupId> = self.base.merged_into(id)?.into_iter().collect();
        for (&other, change) in &self.changes.groups {
            match change.after.as_ref().and_then(|group| group.into) == Some(id) {
                true => merged.insert(other),
                false => merged.remove(&other),
            };
        }
        Ok(merged.into_iter().collect())
    }

    /// The group that a group is part of by now: itself, or what it was merged into. `None` when that is no more.
    pub(crate) fn resolve(&self, mut id: GroupId) -> Result<Option<GroupId>, V::Error> {
        loop {
            match self.group(id)? {
                Some(Group { into: Some(into), .. }) => id = into,
                Some(group) if !group.ended => return Ok(Some(id)),
                _ => return Ok(None),
            }
        }
    }

    /// A group and all that were ever merged into it.
    pub(crate) fn tree(&self, id: GroupId) -> Result<Vec<GroupId>, V::Error> {
        let mut tree = vec![id];
        let mut at = 0;
        while let Some(&next) = tree.get(at) {
            tree.extend(self.merged_into(next)?);
            at += 1;
        }
        Ok(tree)
    }

    /// The number of a group that stands by itself and has items.
    fn standing(&self, id: GroupId) -> Result<GroupId, V::Error> {
        match self.group(id)? {
            Some(group) if group.stands() && !group.holds_groups => Ok(id),
            _ => Err(Refusal::NoGroup { group: id }.into()),
        }
    }

    fn there(&self, item: ItemId) -> Result<PlacedItem, V::Error> {
        Ok(self.place(item)?.ok_or(Refusal::NoItem { item })?)
    }

    /// A new group, called so by a person or as nobody has been called yet.
    pub(crate) fn new_group(&mut self, name: Option<&str>) -> Result<GroupId, V::Error> {
        let group = match name {
            Some(name) => Group::new(self.free_name(name, None)?, true),
            None => {
                let number = self.next.name;
                self.next.name += 1;
                Group::new(format!("{NEW}{number}"), false)
            }
        };
        let id = GroupId(self.next.group);
        self.next.group += 1;
        self.note_name(id, Some(&group));
        let after = Some(group);
        self.changes.groups.insert(id, Change { before: None, after });
        Ok(id)
    }

    /// A new group that holds groups.
    pub(crate) fn new_parent(&mut self) -> Result<GroupId, V::Error> {
        let id = GroupId(self.next.group);
        self.next.group += 1;
        let mut name = format!("set-{id}");
        while self.called_now(&name)?.is_some() {
            name.push('\'');
        }
        let group = Group {
            holds_groups: true,
            ..Group::new(name, false)
        };
        self.note_name(id, Some(&group));
        let after = Some(group);
        self.changes.groups.insert(id, Change { before: None, after });
        Ok(id)
    }

    /// A name that no other group has.
    fn free_name(&mut self, name: &str, own: Option<GroupId>) -> Result<String, V::Error> {
        if name.chars().all(|c| c.is_whitespace() || c.is_control()) {
            return Err(Refusal::EmptyName.into());
        }
        if name.len() > LONGEST_NAME {
            return Err(Refusal::LongName { bytes: name.len() }.into());
        }
        if let Some(group) = self.called_now(name)?.filter(|&group| Some(group) != own) {
            let name = name.to_owned();
            return Err(Refusal::NameTaken { group, name }.into());
        }
        // Groups that come later are not called that, even when this is undone and redone in between.
        if let Some(number) = name.strip_prefix(NEW).and_then(|text| text.parse::<u32>().ok()) {
            self.next.name = self.next.name.max(i64::from(number) + 1);
        }
        Ok(name.to_owned())
    }

    /// Does what was said.
    pub(crate) fn act(&mut self, action: &Action) -> Result<(), V::Error> {
        match action {
            Action::Name { group, name } => {
                let id = *group;
                if !self.group(id)?.is_some_and(|group| group.stands()) {
                    return Err(Refusal::NoGroup { group: id }.into());
                }
                let name = self.free_name(name.trim(), Some(id))?;
                self.change_group(id, |group| {
                    group.name = name;
                    group.named = true;
                })
            }
            Action::Merge { groups, into } => self.merge(groups, *into),
            Action::Split { group, parts } => self.split(*group, parts),
            Action::Move { items, to } => {
                let to = self.standing(*to)?;
                items.iter().try_for_each(|&item| self.move_item(item, to))
            }
            Action::MoveToNew { items, name } => {
                let name = name.as_deref().map(str::trim);
                let to = self.new_group(name)?;
                items.iter().try_for_each(|&item| self.move_item(item, to))
            }
            Action::Confirm { items } => items.iter().try_for_each(|&item| self.confirm(item)),
            Action::ConfirmGroup { group } => {
                let group = self.standing(*group)?;
                for part in self.tree(group)? {
                    self.members(part)?
                        .into_iter()
                        .try_for_each(|item| self.confirm(item))?;
                }
                Ok(())
            }
            Action::Reject { items } => items.iter().try_for_each(|&item| self.reject(item)),
            Action::Noise { items } => items.iter().try_for_each(|&item| {
                self.there(item)?;
                self.put(item, Place::Noise)
            }),
            Action::Several { actions, .. } => actions.iter().try_for_each(|action| self.act(action)),
        }
    }

    fn merge(&mut self, groups: &[GroupId], into: Option<GroupId>) -> Result<(), V::Error> {
        let mut all: Vec<GroupId> = Vec::new();
        for &group in groups.iter().chain(&into) {
            let group = self.standing(group)?;
            if !all.contains(&group) {
                all.push(group);
            }
        }
        if all.len() < 2 {
            return Err(Refusal::OneGroup.into());
        }
        let into = match into {
            Some(into) => into,
            None => {
                let mut named = Vec::new();
                for &id in &all {
                    named.extend(
                        self.group(id)?
                            .filter(|group| group.named)
                            .map(|group| (id, group.name)),
                    );
                }
                match &named[..] {
                    [] => all[0],
                    [(id, _)] => *id,
                    [(_, first), (_, second), ..] => {
                        let (first, second) = (first.clone(), second.clone());
                        return Err(Refusal::TwoNames { first, second }.into());
                    }
                }
            }
        };
        let mut tree = Vec::new();
        for &group in &all {
            tree.extend(self.tree(group)?);
        }
        for &group in all.iter().filter(|&&group| group != into) {
            self.change_group(group, |group| group.into = Some(into))?;
        }
        self.seal(&tree)?;
        // Who is not of one of them is not of what they are together, unless a person put him there.
        for &group in &tree {
            for item in self.rejected_from(group)? {
                let Some(PlacedItem {
                    place: Place::In { group: own, said, .. },
                    ..
                }) = self.place(item)?
                else {
                    continue;
                };
                if !tree.contains(&own) {
                    continue;
                }
                match said {
                    true => self.set_rejection(item, group, false)?,
                    false => self.put(
                        item,
                        Place::Waiting {
                            guess: None,
                            probability: None,
                        },
                    )?,
                }
            }
        }
        Ok(())
    }

    fn seal(&mut self, groups: &[GroupId]) -> Result<(), V::Error> {
        let entry = self.entry;
        groups
            .iter()
            .try_for_each(|&id| self.change_group(id, |group| group.sealed = Some(entry)))
    }

    fn split(&mut self, group: GroupId, parts: &[Vec<ItemId>]) -> Result<(), V::Error> {
        let group = self.standing(group)?;
        let tree = self.tree(group)?;
        let mut seen = BTreeSet::new();
        let mut sizes = Vec::new();
        for part in parts {
            let mut said = 0;
            for &item in part {
                let placed = self.there(item)?;
                match placed.place {
                    Place::In {
                        group, said: by_person, ..
                    } if tree.contains(&group) => said += usize::from(by_person),
                    _ => return Err(Refusal::NotInGroup { item, group }.into()),
                }
                if !seen.insert(item) {
                    return Err(Refusal::InTwoParts { item }.into());
                }
            }
            sizes.push((said, part.len()));
        }
        let mut total = 0;
        for &part in &tree {
            total += self.members(part)?.len();
        }
        // Without a rest one of the parts stays.
        let stays = match total > seen.len() {
            true => None,
            false => (0..parts.len()).rev().max_by_key(|&at| sizes[at]),
        };
        let leaving: Vec<&Vec<ItemId>> = parts
            .iter()
            .enumerate()
            .filter(|&(at, part)| Some(at) != stays && !part.is_empty())
            .map(|(_, part)| part)
            .collect();
        if leaving.is_empty() || total == 0 {
            return Err(Refusal::OnePart.into());
        }
        let mut sealed = tree;
        for part in leaving {
            let to = self.new_group(None)?;
            sealed.push(to);
            for &item in part {
                if let Place::In { probability, said, .. } = self.there(item)?.place {
                    let place = Place::In {
                        group: to,
                        probability,
                        said,
                    };
                    self.put(item, place)?;
                }
            }
        }
        self.seal(&sealed)
    }

    fn move_item(&mut self, item: ItemId, to: GroupId) -> Result<(), V::Error> {
        let placed = self.there(item)?;
        // One that is there already is only confirmed, wherever in the group it came in.
        let own = match placed.place.group() {
            Some(group) if self.resolve(group)? == Some(to) => group,
            _ => to,
        };
        for rejected in self.rejections(item)? {
            if self.resolve(rejected)? == Some(to) {
                self.set_rejection(item, rejected, false)?;
            }
        }
        let place = Place::In {
            group: own,
            probability: None,
            said: true,
        };
        self.put(item, place)
    }

    fn confirm(&mut self, item: ItemId) -> Result<(), V::Error> {
        let group = match self.there(item)?.place {
            Place::In { group, .. } | Place::Waiting { guess: Some(group), .. } => self.resolve(group)?,
            _ => None,
        };
        match group {
            Some(group) => self.move_item(item, group),
            None => Err(Refusal::Nowhere { item }.into()),
        }
    }

    fn reject(&mut self, item: ItemId) -> Result<(), V::Error> {
        let group = match self.there(item)?.place {
            Place::In { group, .. } | Place::Waiting { guess: Some(group), .. } => self.resolve(group)?,
            _ => None,
        };
        let group = group.ok_or(Refusal::Nowhere { item })?;
        self.set_rejection(item, group, true)?;
        self.put(
            item,
            Place::Waiting {
                guess: None,
                probability: None,
            },
        )
    }

    /// Whether a person said that an item is not of a group.
    pub(crate) fn is_rejected(&self, item: ItemId, group: GroupId) -> Result<bool, V::Error> {
        for rejected in self.rejections(item)? {
            if self.resolve(rejected)? == Some(group) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes everything that some changes touched what it was before them, or after.
    pub(crate) fn restore(&mut self, changes: &Changes, to_before: bool) -> Result<(), V::Error> {
        fn side<T: Clone>(change: &Change<T>, to_before: bool) -> T {
            match to_before {
                true => change.before.clone(),
                false => change.after.clone(),
            }
        }
        for (&item, change) in &changes.items {
            self.set_place(item, side(change, to_before))?;
        }
        for (&(item, group), change) in &changes.rejections {
            self.set_rejection(item, group, side(change, to_before))?;
        }
        for (&id, change) in &changes.groups {
            // A group that was not there yet has been since: its number is taken.
            let restored = match side(change, to_before) {
                Some(group) => Some(group),
                None => self.group(id)?.map(|group| Group { ended: true, ..group }),
            };
            self.set_group(id, restored)?;
        }
        // Who came since into a group that is no more waits.
        let mut gone = BTreeSet::new();
        for &id in changes.groups.keys() {
            if self.resolve(id)?.is_none() {
                gone.insert(id);
            }
        }
        let mut left: Vec<ItemId> = Vec::new();
        for &id in &gone {
            let unchanged = |item: &ItemId| !self.changes.items.contains_key(item);
            left.extend(self.base.members(id)?.into_iter().filter(unchanged));
        }
        for (&item, change) in &self.changes.items {
            let group = change.after.and_then(|placed| placed.place.group());
            if group.is_some_and(|group| gone.contains(&group)) {
                left.push(item);
            }
        }
        left.into_iter().try_for_each(|item| {
            let place = Place::Waiting {
                guess: None,
                probability: None,
            };
            self.put(item, place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing.
    struct Empty;

    impl View for Empty {
        type Error = Refusal;

        fn group(&self, _: GroupId) -> Result<Option<Group>, Refusal> {
            Ok(None)
        }
        fn merged_into(&self, _: GroupId) -> Result<Vec<GroupId>, Refusal> {
            Ok(Vec::new())
        }
        fn called(&self, _: &str) -> Result<Option<GroupId>, Refusal> {
            Ok(None)
        }
        fn place(&self, _: ItemId) -> Result<Option<PlacedItem>, Refusal> {
            Ok(None)
        }
        fn members(&self, _: GroupId) -> Result<Vec<ItemId>, Refusal> {
            Ok(Vec::new())
        }
        fn rejections(&self, _: ItemId) -> Result<Vec<GroupId>, Refusal> {
            Ok(Vec::new())
        }
        fn rejected_from(&self, _: GroupId) -> Result<Vec<ItemId>, Refusal> {
            Ok(Vec::new())
        }
    }

    fn draft() -> Draft<'static, Empty> {
        Draft::new(&Empty, EntryId(1), Next { group: 1, name: 1 })
    }

    #[test]
    fn a_name_like_ours_is_not_given_again() {
        let mut draft = draft();
        let first = draft.new_group(None).unwrap();
        let name = "new-7".to_owned();
        draft.act(&Action::Name { group: first, name }).unwrap();
        let second = draft.new_group(None).unwrap();
        assert_eq!(draft.group(second).unwrap().unwrap().name, "new-8");
        let name = "new-7".to_owned();
        let refused = draft.act(&Action::Name { group: second, name });
        assert!(matches!(refused, Err(Refusal::NameTaken { group, .. }) if group == first));
    }

    #[test]
    fn two_names_are_never_merged_by_accident() {
        let mut draft = draft();
        let gull = draft.new_group(Some("gull")).unwrap();
        let tern = draft.new_group(Some("tern")).unwrap();
        let new = draft.new_group(None).unwrap();
        let groups = vec![new, tern];
        draft.act(&Action::Merge { groups, into: None }).unwrap();
        assert_eq!(draft.resolve(new), Ok(Some(tern)));
        let groups = vec![gull, tern];
        let merge = |into| Action::Merge {
            groups: groups.clone(),
            into,
        };
        assert!(matches!(draft.act(&merge(None)), Err(Refusal::TwoNames { .. })));
        draft.act(&merge(Some(gull))).unwrap();
        assert_eq!(draft.resolve(new), Ok(Some(gull)));
    }

    #[test]
    fn who_is_not_of_a_part_is_not_of_the_whole() {
        let mut draft = draft();
        let [a, b] = [(); 2].map(|()| draft.new_group(None).unwrap());
        let place = |group, said| Place::In {
            group,
            probability: Some(0.9),
            said,
        };
        let (doubtful, sure) = (ItemId(1), ItemId(2));
        draft.put_new(doubtful, place(a, false));
        draft.put_new(sure, place(a, false));
        let items = vec![doubtful, sure];
        draft.act(&Action::Reject { items }).unwrap();
        // One finds its way into another group by itself, the other is put there.
        draft.put(doubtful, place(b, false)).unwrap();
        draft
            .act(&Action::Move {
                items: vec![sure],
                to: b,
            })
            .unwrap();
        let groups = vec![a, b];
        draft.act(&Action::Merge { groups, into: None }).unwrap();
        assert!(matches!(
            draft.place(doubtful).unwrap().unwrap().place,
            Place::Waiting { guess: None, .. }
        ));
        assert_eq!(draft.place(sure).unwrap().unwrap().place.group(), Some(b));
        assert_eq!(draft.rejections(sure), Ok(vec![]));
    }
}
