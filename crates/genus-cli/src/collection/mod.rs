//! The commands about a collection: arguments → calls of `genus-collection` → prose or JSON.

mod args;
mod words;

pub(crate) use args::CollectionCommand;

use genus::text::{plural, thousands};
use genus_collection::{
    Action, AddOptions, Added, Collection, Entry, Error, ExportOptions, GroupId, ItemId, ItemState, Items, Level,
    Refusal,
};
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::say;
use args::{
    AddArgs, ApplyArgs, ChangeArgs, CollectionArgs, ExportArgs, InitArgs, MergeArgs, MoveArgs, NameArgs, ShowArgs,
    SplitArgs,
};

/// Items that are listed of a part that is only proposed.
const SHOWN_OF_PART: usize = 8;

pub(crate) fn run(command: &CollectionCommand, global: &GlobalArgs) -> Result<(), Failure> {
    match command {
        CollectionCommand::Init(args) => init(args, global),
        CollectionCommand::Add(args) => add(args, global),
        CollectionCommand::Status(place) => {
            let status = Collection::open(&place.folder)?.status()?;
            show(place, &status, || words::status(&status))
        }
        CollectionCommand::Groups(args) => {
            let mut groups = Collection::open(&args.place.folder)?.groups()?;
            let total = groups.len();
            groups.truncate(args.n.unwrap_or(usize::MAX));
            show(&args.place, &groups, || words::groups(&groups, total))
        }
        CollectionCommand::Show(args) => show_items(args),
        CollectionCommand::Name(args) => name(args, global),
        CollectionCommand::Merge(args) => merge(args, global),
        CollectionCommand::Split(args) => split(args, global),
        CollectionCommand::Move(args) => move_items(args, global),
        CollectionCommand::Confirm(args) => act(&args.change, global, |collection| match &args.group {
            Some(group) => Ok(Action::ConfirmGroup {
                group: collection.find_group(group)?,
            }),
            None => Ok(Action::Confirm {
                items: find_items(collection, &args.items)?,
            }),
        }),
        CollectionCommand::Reject(args) => act(&args.change, global, |collection| {
            Ok(Action::Reject {
                items: find_items(collection, &args.items)?,
            })
        }),
        CollectionCommand::Noise(args) => act(&args.change, global, |collection| {
            Ok(Action::Noise {
                items: find_items(collection, &args.items)?,
            })
        }),
        CollectionCommand::Undo(change) => {
            let entry = open(change)?.undo()?;
            done(change, global, Some(&entry))
        }
        CollectionCommand::Redo(change) => {
            let entry = open(change)?.redo()?;
            done(change, global, Some(&entry))
        }
        CollectionCommand::Log(args) => {
            let entries = Collection::open(&args.place.folder)?.log(None, args.n)?;
            show(&args.place, &entries, || words::log(&entries))
        }
        CollectionCommand::Refresh(args) => {
            let progress = Bar::new(global);
            let level = match args.level {
                None => Level::AsFound,
                Some(args::Level::Coarser) => Level::Coarser,
                Some(args::Level::Finer) => Level::Finer,
            };
            let refreshed = open(&args.change)?.refresh(level, &progress)?;
            drop(progress);
            told(&args.change, global, &refreshed, || words::refreshed(&refreshed))
        }
        CollectionCommand::Ask(args) => {
            let questions = Collection::open(&args.place.folder)?.ask(args.n)?;
            show(&args.place, &questions, || {
                words::questions(&questions, &args.place.folder)
            })
        }
        CollectionCommand::Report(args) => {
            let progress = Bar::new(global);
            let folder = args.out.as_ref().unwrap_or(&args.place.folder);
            let path = Collection::open(&args.place.folder)?.report(folder, words::happening, &progress)?;
            drop(progress);
            if !global.quiet && !args.place.json {
                say!("Open {} in a browser", path.display());
            }
            match args.place.json {
                true => say::print(&format!("{:#}\n", json!({ "report": path }))),
                false => Ok(()),
            }
        }
        CollectionCommand::Apply(args) => apply(args, global),
        CollectionCommand::Export(args) => export(args, global),
        CollectionCommand::Compact(change) => {
            let compacted = open(change)?.compact()?;
            told(change, global, &compacted, || words::compacted(&compacted))
        }
        CollectionCommand::Check(place) => check(place),
    }
}

/// Prints what was asked for: JSON, or a text.
fn show(place: &CollectionArgs, value: &impl serde::Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
    match place.json {
        true => say::print(&format!("{:#}\n", to_json(value))),
        false => say::print(&text()),
    }
}

/// The same for what was done, of which the prose goes to the standard error.
fn told(
    change: &ChangeArgs,
    global: &GlobalArgs,
    value: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if change.place.json {
        return say::print(&format!("{:#}\n", to_json(value)));
    }
    if !global.quiet {
        say_as_is!("{}", text());
    }
    Ok(())
}

fn to_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

fn done(change: &ChangeArgs, global: &GlobalArgs, entry: Option<&Entry>) -> Result<(), Failure> {
    told(change, global, &entry, || match entry {
        Some(entry) => words::done(entry),
        None => "It is so already: nothing was changed\n".to_owned(),
    })
}

fn open(change: &ChangeArgs) -> Result<Collection, Failure> {
    Ok(Collection::open_to_write(&change.place.folder, &author(change))?)
}

/// Who the log says it was.
fn author(change: &ChangeArgs) -> String {
    change.author.clone().unwrap_or_else(user)
}

/// Who is logged in.
pub(crate) fn user() -> String {
    let user = ["USER", "LOGNAME", "USERNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    user.unwrap_or_else(|| "somebody".to_owned())
}

fn act(
    change: &ChangeArgs,
    global: &GlobalArgs,
    action: impl FnOnce(&Collection) -> Result<Action, Error>,
) -> Result<(), Failure> {
    let mut collection = open(change)?;
    let action = action(&collection)?;
    let entry = collection.act(&action)?;
    done(change, global, entry.as_ref())
}

fn find_items(collection: &Collection, names: &[String]) -> Result<Vec<ItemId>, Error> {
    names.iter().map(|name| collection.find_item(name)).collect()
}

fn init(args: &InitArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let progress = Bar::new(global);
    let folder = &args.change.place.folder;
    let is_new = !folder.exists();
    let mut collection = Collection::create(folder, &author(&args.change))?;
    collection.set_seed(global.seed)?;
    if let Some(from) = &args.from
        && let Err(error) = collection.take_over(from)
    {
        drop(collection);
        Collection::remove_new(folder, is_new);
        return Err(error.into());
    }
    let mut added = None;
    if let Some(support) = &args.support {
        let options = AddOptions {
            images: args.images.options(),
            tables: args.tables.options(),
            labelled: true,
        };
        match collection.add(support, &options, &progress) {
            Ok(done) => added = Some(done),
            Err(error) => {
                // A collection without the examples that it was to have would only be in the way.
                drop(collection);
                Collection::remove_new(folder, is_new);
                return Err(error.into());
            }
        }
    }
    drop(progress);
    let status = collection.status()?;
    told(&args.change, global, &status, || words::made(&status, added.as_ref()))
}

fn add(args: &AddArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let progress = Bar::new(global);
    let mut collection = open(&args.change)?;
    let options = AddOptions {
        images: args.images.options(),
        tables: args.tables.options(),
        labelled: args.labelled,
    };
    let added: Added = collection.add(&args.items, &options, &progress)?;
    drop(progress);
    told(&args.change, global, &added, || {
        words::added(&added, &args.change.place.folder)
    })
}

fn show_items(args: &ShowArgs) -> Result<(), Failure> {
    let collection = Collection::open(&args.place.folder)?;
    let which = match args.what.as_str() {
        "waiting" => Some(Items::Waiting),
        "noise" => Some(Items::Noise),
        name => match collection.find_group(name) {
            Ok(group) => Some(Items::Of(group)),
            Err(no_group @ Error::NoSuchGroup { .. }) => match collection.find_item(name) {
                Ok(item) => {
                    let item = collection.item(item)?;
                    return show(&args.place, &item, || words::items(std::slice::from_ref(&item), 1));
                }
                Err(Error::NoSuchItem { .. }) => return Err(no_group.into()),
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        },
    };
    let Some(which) = which else { return Ok(()) };
    let items = collection.items(which, None, args.n)?;
    match which {
        Items::Of(group) => {
            let group = collection.group(group)?;
            let value = json!({ "group": to_json(&group), "items": to_json(&items) });
            show(&args.place, &value, || {
                words::group(&group) + &words::items(&items, group.items)
            })
        }
        _ => {
            let status = collection.status()?;
            let total = if which == Items::Noise {
                status.noise
            } else {
                status.waiting
            };
            show(&args.place, &items, || words::items(&items, total))
        }
    }
}

fn name(args: &NameArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let mut collection = open(&args.change)?;
    let group = collection.find_group(&args.group)?;
    let name = args.name.clone();
    match collection.act(&Action::Name { group, name }) {
        Ok(entry) => done(&args.change, global, entry.as_ref()),
        Err(Error::Refused(Refusal::NameTaken { group: other, .. })) if args.merge => {
            let entry = collection.act(&Action::Merge {
                groups: vec![other, group],
                into: Some(other),
            })?;
            done(&args.change, global, entry.as_ref())
        }
        Err(error @ Error::Refused(Refusal::NameTaken { .. })) => Err(Failure::failed(format!(
            "{error}; say --merge to make the two one, or choose another name"
        ))),
        Err(error) => Err(error.into()),
    }
}

fn merge(args: &MergeArgs, global: &GlobalArgs) -> Result<(), Failure> {
    act(&args.change, global, |collection| {
        let groups = args.groups.iter().map(|name| collection.find_group(name));
        Ok(Action::Merge {
            groups: groups.collect::<Result<Vec<GroupId>, Error>>()?,
            into: args
                .into
                .as_deref()
                .map(|name| collection.find_group(name))
                .transpose()?,
        })
    })
}

fn split(args: &SplitArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let collection = Collection::open(&args.change.place.folder)?;
    let group = collection.find_group(&args.group)?;
    let parts = match args.items.is_empty() {
        true => collection.propose_split(group, args.into)?,
        false => vec![find_items(&collection, &args.items)?],
    };
    if args.dry_run {
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
        return show(&args.change.place, &parts, || text);
    }
    drop(collection);
    let mut collection = open(&args.change)?;
    let entry = collection.act(&Action::Split { group, parts })?;
    done(&args.change, global, entry.as_ref())
}

fn move_items(args: &MoveArgs, global: &GlobalArgs) -> Result<(), Failure> {
    act(&args.change, global, |collection| {
        let items = find_items(collection, &args.items)?;
        Ok(match (&args.to, &args.to_new) {
            (Some(group), _) => Action::Move {
                items,
                to: collection.find_group(group)?,
            },
            (None, name) => Action::MoveToNew {
                items,
                name: name.clone().filter(|name| !name.is_empty()),
            },
        })
    })
}

fn apply(args: &ApplyArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let collection = Collection::open(&args.change.place.folder)?;
    let corrections = collection.corrections(&args.corrections)?;
    if args.dry_run || corrections.actions.is_empty() {
        let preview = match corrections.actions.is_empty() {
            true => genus_collection::Preview::default(),
            false => collection.preview(&corrections.clone().into_action(&args.corrections))?,
        };
        let value = json!({ "corrections": to_json(&corrections), "preview": to_json(&preview) });
        return show(&args.change.place, &value, || {
            words::corrections(&corrections, &preview)
        });
    }
    drop(collection);
    let mut collection = open(&args.change)?;
    // Somebody may have changed it in between.
    let corrections = collection.corrections(&args.corrections)?;
    let unknown = corrections.unknown;
    let entry = collection.apply(&args.corrections, corrections)?;
    if unknown > 0 && !global.quiet {
        say!("{} of its rows are of no item here", thousands(unknown));
    }
    done(&args.change, global, entry.as_ref())
}

fn export(args: &ExportArgs, global: &GlobalArgs) -> Result<(), Failure> {
    if args.salvage {
        let saved = Collection::salvage(&args.place.folder, &args.out)?;
        return show(&args.place, &saved, || words::salvaged(&saved));
    }
    let progress = Bar::new(global);
    let options = ExportOptions {
        format: args.format,
        spreadsheet: args.spreadsheet,
        features: args.with_features,
        sort_into: args.sort_into.clone(),
        link: args.link,
        exports: args.export.clone(),
    };
    let outcome = Collection::open(&args.place.folder)?.export(&args.out, &options, &progress)?;
    drop(progress);
    match args.place.json {
        true => say::print(&format!("{:#}\n", to_json(&outcome))),
        false => {
            if !global.quiet {
                say_as_is!("{}", words::exported(&outcome));
            }
            Ok(())
        }
    }
}

fn check(place: &CollectionArgs) -> Result<(), Failure> {
    let checked = Collection::open(&place.folder)?.check()?;
    show(place, &checked, || words::checked(&checked))?;
    match checked.is_sound() {
        true => Ok(()),
        false => Err(Failure::failed(format!(
            "{} is damaged; `genus export {0} --salvage -o DIR` saves what can be saved",
            place.folder.display()
        ))),
    }
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
