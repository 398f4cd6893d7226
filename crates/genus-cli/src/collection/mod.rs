//! The commands about a collection: arguments → calls of `genus-collection` → prose or JSON.

mod args;
mod words;

pub(crate) use args::CollectionCommand;

use std::path::{Path, PathBuf};

use genus::text::{plural, thousands};
use genus_collection::{
    Action, AddOptions, AddOutcome, Collection, Entry, Error, ExportOptions, GroupId, ItemId, ItemState, Items, Level,
    Refusal,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::say::{self, Terminal};

/// Items that are listed of a part that is only proposed.
const SHOWN_OF_PART: usize = 8;

/// What is asked of a collection.
pub(crate) struct Request {
    folder: PathBuf,
    /// Who the log says it was.
    author: String,
    json: bool,
    task: CollectionTask,
}

/// What can be asked of a collection.
pub(crate) enum CollectionTask {
    Init {
        seed: u64,
        support: Option<PathBuf>,
        options: AddOptions,
        from: Option<PathBuf>,
    },
    Add {
        items: PathBuf,
        options: AddOptions,
    },
    Status,
    Groups {
        most: usize,
    },
    Show {
        what: String,
        most: usize,
    },
    Name {
        group: String,
        name: String,
        merge: bool,
    },
    Merge {
        groups: Vec<String>,
        into: Option<String>,
    },
    Split {
        group: String,
        parts: SplitParts,
        dry_run: bool,
    },
    Move {
        items: Vec<String>,
        to: MoveTarget,
    },
    Confirm(ItemNames),
    Reject(Vec<String>),
    Noise(Vec<String>),
    Undo,
    Redo,
    Log {
        most: usize,
    },
    Refresh(Level),
    Ask {
        most: usize,
    },
    Report {
        out: Option<PathBuf>,
    },
    Apply {
        corrections: PathBuf,
        dry_run: bool,
    },
    Export {
        out: PathBuf,
        options: ExportOptions,
    },
    Salvage {
        out: PathBuf,
    },
    Check,
    Compact,
}

/// What a group is split into.
pub(crate) enum SplitParts {
    /// As many as were asked for, or as many as there seem to be.
    Proposed(Option<usize>),
    /// These items, and the others.
    Items(Vec<String>),
}

/// Where items are moved.
pub(crate) enum MoveTarget {
    Group(String),
    /// A new group, which may have a name.
    New(Option<String>),
}

/// Items, one by one or as those of a group.
pub(crate) enum ItemNames {
    Items(Vec<String>),
    Group(String),
}

/// A collection, who works on it, and how answers are shown.
struct Session {
    folder: PathBuf,
    author: String,
    json: bool,
    terminal: Terminal,
}

impl Session {
    fn run(&self, task: CollectionTask) -> Result<(), Failure> {
        match task {
            CollectionTask::Init {
                seed,
                support,
                options,
                from,
            } => self.init(seed, support.as_deref(), &options, from.as_deref()),
            CollectionTask::Add { items, options } => self.add(&items, &options),
            CollectionTask::Status => {
                let status = self.open()?.status()?;
                self.show(&status, || words::status(&status))
            }
            CollectionTask::Groups { most } => {
                let mut groups = self.open()?.groups()?;
                let total = groups.len();
                groups.truncate(most);
                self.show(&groups, || words::groups(&groups, total))
            }
            CollectionTask::Show { what, most } => self.show_items(&what, most),
            CollectionTask::Name { group, name, merge } => self.name(&group, name, merge),
            CollectionTask::Merge { groups, into } => self.act(|collection| {
                let groups = groups.iter().map(|name| collection.find_group(name));
                Ok(Action::Merge {
                    groups: groups.collect::<Result<Vec<GroupId>, Error>>()?,
                    into: into.map(|name| collection.find_group(&name)).transpose()?,
                })
            }),
            CollectionTask::Split { group, parts, dry_run } => self.split(&group, &parts, dry_run),
            CollectionTask::Move { items, to } => self.act(|collection| {
                let items = find_items(collection, &items)?;
                Ok(match to {
                    MoveTarget::Group(group) => Action::Move {
                        items,
                        to: collection.find_group(&group)?,
                    },
                    MoveTarget::New(name) => Action::MoveToNew { items, name },
                })
            }),
            CollectionTask::Confirm(which) => self.act(|collection| {
                Ok(match which {
                    ItemNames::Group(group) => Action::ConfirmGroup {
                        group: collection.find_group(&group)?,
                    },
                    ItemNames::Items(items) => Action::Confirm {
                        items: find_items(collection, &items)?,
                    },
                })
            }),
            CollectionTask::Reject(items) => self.act(|collection| {
                Ok(Action::Reject {
                    items: find_items(collection, &items)?,
                })
            }),
            CollectionTask::Noise(items) => self.act(|collection| {
                Ok(Action::Noise {
                    items: find_items(collection, &items)?,
                })
            }),
            CollectionTask::Undo => {
                let entry = self.open_to_write()?.undo()?;
                self.done(Some(&entry))
            }
            CollectionTask::Redo => {
                let entry = self.open_to_write()?.redo()?;
                self.done(Some(&entry))
            }
            CollectionTask::Log { most } => {
                let entries = self.open()?.log(None, most)?;
                self.show(&entries, || words::log(&entries))
            }
            CollectionTask::Refresh(level) => {
                let progress = self.progress();
                let refreshed = self.open_to_write()?.refresh(level, &progress)?;
                drop(progress);
                self.report(&refreshed, || words::refreshed(&refreshed))
            }
            CollectionTask::Ask { most } => {
                let collection = self.open()?;
                let questions = collection.ask(most)?;
                collection.note_asked(&questions);
                self.show(&questions, || words::questions(&questions, &self.folder))
            }
            CollectionTask::Report { out } => self.write_report(out.as_ref().unwrap_or(&self.folder)),
            CollectionTask::Apply { corrections, dry_run } => self.apply(&corrections, dry_run),
            CollectionTask::Export { out, options } => {
                let progress = self.progress();
                let outcome = self.open()?.export(&out, &options, &progress)?;
                drop(progress);
                self.report(&outcome, || words::exported(&outcome))
            }
            CollectionTask::Salvage { out } => {
                let saved = Collection::salvage(&self.folder, &out).map_err(|error| match error {
                    Error::Damaged { .. } => Failure::failed(format!("{error}; nothing of it can be read")),
                    error => error.into(),
                })?;
                self.show(&saved, || words::salvaged(&saved))
            }
            CollectionTask::Check => self.check(),
            CollectionTask::Compact => {
                let compacted = self.open_to_write()?.compact()?;
                self.report(&compacted, || words::compacted(&compacted))
            }
        }
    }

    fn open(&self) -> Result<Collection, Failure> {
        Ok(Collection::open(&self.folder)?)
    }

    fn open_to_write(&self) -> Result<Collection, Failure> {
        Ok(Collection::open_to_write(&self.folder, &self.author)?)
    }

    fn progress(&self) -> Bar {
        Bar::new(self.terminal)
    }

    /// Prints what was asked for: JSON, or a text.
    fn show(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        match self.json {
            true => say::print(&format!("{:#}\n", to_json(value))),
            false => say::print(&text()),
        }
    }

    /// The same for what was done, of which the prose goes to standard error.
    fn report(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.json {
            return say::print(&format!("{:#}\n", to_json(value)));
        }
        if !self.terminal.quiet {
            say_as_is!("{}", text());
        }
        Ok(())
    }

    fn done(&self, entry: Option<&Entry>) -> Result<(), Failure> {
        self.report(&entry, || match entry {
            Some(entry) => words::done(entry),
            None => "Nothing to change\n".to_owned(),
        })
    }

    fn act(&self, action: impl FnOnce(&Collection) -> Result<Action, Error>) -> Result<(), Failure> {
        let mut collection = self.open_to_write()?;
        let action = action(&collection)?;
        let entry = collection.act(&action)?;
        self.done(entry.as_ref())
    }

    fn init(
        &self,
        seed: u64,
        support: Option<&Path>,
        options: &AddOptions,
        from: Option<&Path>,
    ) -> Result<(), Failure> {
        let progress = self.progress();
        let folder = &self.folder;
        let is_new = !folder.exists();
        let was_there = self.open().is_ok();
        let remove_new = || {
            if !was_there {
                Collection::remove_new(folder, is_new);
            }
        };
        let mut collection = Collection::create(folder, &self.author)?;
        collection.set_seed(seed)?;
        if let Some(from) = from
            && let Err(error) = collection.take_over(from)
        {
            drop(collection);
            remove_new();
            return Err(error.into());
        }
        let mut added = None;
        if let Some(support) = support {
            match collection.add(support, options, &progress) {
                Ok(done) => added = Some(done),
                Err(error) => {
                    // A collection without the examples that it was to have would only be in the way.
                    drop(collection);
                    remove_new();
                    return Err(error.into());
                }
            }
        }
        drop(progress);
        let status = collection.status()?;
        self.report(&status, || words::made(&status, added.as_ref()))
    }

    fn add(&self, items: &Path, options: &AddOptions) -> Result<(), Failure> {
        let progress = self.progress();
        let mut collection = self.open_to_write()?;
        let added: AddOutcome = collection.add(items, options, &progress)?;
        drop(progress);
        self.report(&added, || words::added(&added, &self.folder))
    }

    fn show_items(&self, what: &str, most: usize) -> Result<(), Failure> {
        let collection = self.open()?;
        let which = match what {
            "waiting" => Some(Items::Waiting),
            "noise" => Some(Items::Noise),
            name => match collection.find_group(name) {
                Ok(group) => Some(Items::Of(group)),
                Err(no_group @ Error::NoSuchGroup { .. }) => match collection.find_item(name) {
                    Ok(item) => {
                        let item = collection.item(item)?;
                        return self.show(&item, || words::items(std::slice::from_ref(&item), 1));
                    }
                    Err(Error::NoSuchItem { .. }) => return Err(no_group.into()),
                    Err(error) => return Err(error.into()),
                },
                Err(error) => return Err(error.into()),
            },
        };
        let Some(which) = which else { return Ok(()) };
        let items = collection.items(which, None, most)?;
        match which {
            Items::Of(group) => {
                let group = collection.group(group)?;
                let value = json!({ "group": to_json(&group), "items": to_json(&items) });
                self.show(&value, || words::group(&group) + &words::items(&items, group.items))
            }
            _ => {
                let status = collection.status()?;
                let total = if which == Items::Noise {
                    status.noise
                } else {
                    status.waiting
                };
                self.show(&items, || words::items(&items, total))
            }
        }
    }

    fn name(&self, group: &str, name: String, merge: bool) -> Result<(), Failure> {
        let mut collection = self.open_to_write()?;
        let group = collection.find_group(group)?;
        match collection.act(&Action::Name { group, name }) {
            Ok(entry) => self.done(entry.as_ref()),
            Err(Error::Refused(Refusal::NameTaken { group: other, .. })) if merge => {
                let entry = collection.act(&Action::Merge {
                    groups: vec![other, group],
                    into: Some(other),
                })?;
                self.done(entry.as_ref())
            }
            Err(error @ Error::Refused(Refusal::NameTaken { .. })) => Err(Failure::failed(format!(
                "{error}; use --merge to merge the two, or choose another name"
            ))),
            Err(error) => Err(error.into()),
        }
    }

    fn split(&self, group: &str, parts: &SplitParts, dry_run: bool) -> Result<(), Failure> {
        let collection = self.open()?;
        let group = collection.find_group(group)?;
        let parts = match parts {
            SplitParts::Proposed(into) => collection.propose_split(group, *into)?,
            SplitParts::Items(items) => vec![find_items(&collection, items)?],
        };
        if dry_run {
            let mut text = String::new();
            for (at, part) in parts.iter().enumerate() {
                let items = part.iter().take(SHOWN_OF_PART).map(|&item| collection.item(item));
                let items = items.collect::<Result<Vec<_>, _>>()?;
                let count = part.len() as u64;
                text += &format!(
                    "part {}: {} {}\n",
                    at + 1,
                    thousands(count),
                    plural(count, "item", "items")
                );
                text += &words::items(&items, count);
            }
            return self.show(&parts, || text);
        }
        drop(collection);
        let mut collection = self.open_to_write()?;
        let entry = collection.act(&Action::Split { group, parts })?;
        self.done(entry.as_ref())
    }

    fn apply(&self, from: &Path, dry_run: bool) -> Result<(), Failure> {
        // They are read once, as they may come through a pipe, and by then nobody else changes the collection.
        let mut collection = match dry_run {
            true => self.open()?,
            false => self.open_to_write()?,
        };
        let corrections = collection.corrections(from)?;
        if dry_run || corrections.actions.is_empty() {
            let preview = match corrections.actions.is_empty() {
                true => genus_collection::Preview::default(),
                false => collection.preview(&corrections.clone().into_action(from))?,
            };
            let value = json!({ "corrections": to_json(&corrections), "preview": to_json(&preview) });
            return self.show(&value, || words::corrections(&corrections, &preview));
        }
        let unknown = corrections.unknown;
        let entry = collection.apply(from, corrections)?;
        if unknown > 0 && !self.terminal.quiet {
            say!("{} of its rows match no item here", thousands(unknown));
        }
        self.done(entry.as_ref())
    }

    fn write_report(&self, folder: &Path) -> Result<(), Failure> {
        let progress = self.progress();
        let path = self.open()?.report(folder, words::happening, words::asked, &progress)?;
        drop(progress);
        if self.json {
            return say::print(&format!("{:#}\n", json!({ "report": path })));
        }
        if !self.terminal.quiet {
            say!("Open {} in a browser", path.display());
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Failure> {
        let checked = self.open()?.check()?;
        self.show(&checked, || words::checked(&checked))?;
        match checked.is_sound() {
            true => Ok(()),
            false => Err(Failure::failed(format!(
                "{} is damaged; `genus export {0} --salvage -o DIR` saves what can be saved",
                self.folder.display()
            ))),
        }
    }
}

fn to_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// Who is logged in.
pub(crate) fn user() -> String {
    let user = ["USER", "LOGNAME", "USERNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    user.unwrap_or_else(|| "somebody".to_owned())
}

fn find_items(collection: &Collection, names: &[String]) -> Result<Vec<ItemId>, Error> {
    names.iter().map(|name| collection.find_item(name)).collect()
}

/// Where an item is, in a few words.
fn state(state: &ItemState) -> String {
    match state {
        ItemState::In { group_name, .. } => group_name.clone(),
        ItemState::Waiting {
            guess_name: Some(name), ..
        } => format!("waits ({name}?)"),
        ItemState::Waiting { .. } => "waits".to_owned(),
        ItemState::Noise => "noise".to_owned(),
    }
}
