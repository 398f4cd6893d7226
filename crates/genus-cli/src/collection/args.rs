//! The arguments of the commands that are about a collection, and what they mean.

use std::path::PathBuf;

use clap::Subcommand;

use genus_collection::{AddOptions, ExportOptions, Level};

use super::{Destination, ItemNames, Parts, Request, Session, Task};
use crate::args::Arguments;
use crate::args::shared::{ImageArgs, TableArgs};
use crate::failure::Failure;
use crate::say::Terminal;

/// What every command about a collection has.
#[derive(Debug, clap::Args)]
pub(crate) struct CollectionArgs {
    /// The folder of the collection
    #[arg(value_name = "COLLECTION")]
    folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The same for commands that change it.
#[derive(Debug, clap::Args)]
pub(crate) struct ChangeArgs {
    #[command(flatten)]
    place: CollectionArgs,
    /// Who the log says it was; by default who is logged in
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CollectionCommand {
    /// Make a collection: a folder of items, groups and all that was said about them
    #[command(after_help = "\
Examples:
  genus init birds
  genus init birds --support labelled/
  genus init birds --support labelled.parquet
  genus init birds --from result")]
    Init(InitArgs),
    /// Add items: each joins a group, waits, or forms a new group with others
    ///
    /// The same photograph twice is one item, so the same folder can be added again and again. Either all items are added or none;
    /// what was embedded before an interrupt is not embedded again.
    #[command(after_help = "\
Examples:
  genus add birds photos/
  genus add birds today.parquet
  genus add birds more-examples/ --labelled")]
    Add(AddArgs),
    /// Show a collection in numbers
    #[command(after_help = "Examples:\n  genus status birds\n  genus status birds --json")]
    Status(CollectionArgs),
    /// List the groups of a collection
    #[command(after_help = "Examples:\n  genus groups birds\n  genus groups birds --json")]
    Groups(GroupsArgs),
    /// Show the items of a group, those that wait, or one item
    #[command(after_help = "\
Examples:
  genus show birds new-3
  genus show birds waiting -n 50
  genus show birds noise
  genus show birds IMG_0412.jpg")]
    Show(ShowArgs),
    /// Name a group
    #[command(after_help = "\
Examples:
  genus name birds new-3 \"Herring gull\"
  genus name birds new-5 \"Herring gull\" --merge     when a group is called that already")]
    Name(NameArgs),
    /// Make groups one, for good
    #[command(after_help = "\
Examples:
  genus merge birds new-3 new-7
  genus merge birds new-3 \"Herring gull\"
  genus merge birds gull \"Herring gull\" --into \"Herring gull\"")]
    Merge(MergeArgs),
    /// Make several groups of one, for good
    ///
    /// Without items, parts are proposed by how the items lie: as many as there seem to be, or as --into says. With items, these
    /// are a group of their own.
    #[command(after_help = "\
Examples:
  genus split birds new-4
  genus split birds new-4 --into 2 --dry-run
  genus split birds new-4 --items IMG_0412.jpg IMG_0413.jpg")]
    Split(SplitArgs),
    /// Put items into a group, which makes them examples of it
    #[command(after_help = "\
Examples:
  genus move birds IMG_0412.jpg '#87' --to \"Herring gull\"
  genus move birds IMG_0412.jpg IMG_0413.jpg --to-new
  genus move birds IMG_0412.jpg --to-new \"Ivory gull\"")]
    Move(MoveArgs),
    /// Say that items are where they belong, which makes them examples
    #[command(after_help = "\
Examples:
  genus confirm birds IMG_0412.jpg IMG_0413.jpg
  genus confirm birds --group new-3")]
    Confirm(ConfirmArgs),
    /// Say that items do not belong to the group that they are in
    #[command(after_help = "Examples:\n  genus reject birds IMG_0412.jpg IMG_0413.jpg")]
    Reject(ItemArgs),
    /// Say that items belong nowhere
    #[command(after_help = "Examples:\n  genus noise birds IMG_0412.jpg")]
    Noise(ItemArgs),
    /// Undo what was done last
    #[command(after_help = "Examples:\n  genus undo birds")]
    Undo(ChangeArgs),
    /// Do again what was undone
    #[command(after_help = "Examples:\n  genus redo birds")]
    Redo(ChangeArgs),
    /// List what was done, the last first
    #[command(after_help = "Examples:\n  genus log birds\n  genus log birds -n 100 --json")]
    Log(LogArgs),
    /// Sort everything anew that nobody has decided about
    ///
    /// Items that were confirmed or moved stay and are examples, merged groups stay one and split ones apart, items stay out of
    /// where they were rejected, and groups keep their numbers and names.
    #[command(after_help = "Examples:\n  genus refresh birds\n  genus refresh birds --level coarser")]
    Refresh(RefreshArgs),
    /// List the questions whose answers would help most
    #[command(after_help = "Examples:\n  genus ask birds -n 20")]
    Ask(LogArgs),
    /// Write report.html: groups, what waits, the map, and what was done
    #[command(after_help = "Examples:\n  genus report birds\n  genus report birds -o pages")]
    Report(ReportArgs),
    /// Take corrections in: an edited table, a Label Studio or FiftyOne export, a sorted folder
    ///
    /// What differs from the collection is a correction: an item in another category is moved there (a category that is new becomes
    /// a group), one whose kind is no longer unsure is confirmed, one that is unsure now, or has no category, is rejected, and the
    /// category noise is for items that belong nowhere. A group all of whose items have one new category is renamed.
    #[command(after_help = "\
Examples:
  genus apply birds assignments.csv --dry-run
  genus apply birds project-1-at-2026-05-01.json
  genus apply birds sorted/")]
    Apply(ApplyArgs),
    /// Write assignments and groups, files for other programs, or what is left of a damaged one
    #[command(after_help = "\
Examples:
  genus export birds -o result
  genus export birds -o result --sort-into sorted --link hard
  genus export birds -o result --export label-studio
  genus export birds -o saved --salvage")]
    Export(ExportArgs),
    /// Look whether all is in order, and which photographs are missing
    #[command(after_help = "Examples:\n  genus check birds")]
    Check(CollectionArgs),
    /// Give back the room of what is no longer used
    #[command(after_help = "Examples:\n  genus compact birds")]
    Compact(ChangeArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// Labelled examples: images with one folder a class, a manifest, or a feature file
    #[arg(long, short, value_name = "FILE|DIR")]
    support: Option<PathBuf>,
    /// Take over the taxonomy of a folder that `genus discover --out` wrote, with its names
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    #[command(flatten)]
    images: ImageArgs,
    #[command(flatten)]
    tables: TableArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// The items: a folder of images, a manifest, or a feature file
    #[arg(value_name = "FILE|DIR")]
    items: PathBuf,
    /// Take labels for what a person said: the items are examples of groups of these names
    #[arg(long)]
    labelled: bool,
    #[command(flatten)]
    images: ImageArgs,
    #[command(flatten)]
    tables: TableArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GroupsArgs {
    #[command(flatten)]
    place: CollectionArgs,
    /// At most so many, those with names and the largest first
    #[arg(short, value_name = "N")]
    n: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    place: CollectionArgs,
    /// A group by name or as #12, an item by name, `waiting` or `noise`
    #[arg(value_name = "GROUP|ITEM")]
    what: String,
    /// At most so many items
    #[arg(short, default_value_t = 100, value_name = "N")]
    n: usize,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// The group, by its name so far or as #12
    #[arg(value_name = "GROUP")]
    group: String,
    /// What it is to be called
    #[arg(value_name = "NAME")]
    name: String,
    /// When a group is called that already, make the two one
    #[arg(long)]
    merge: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// The groups, by name or as #12
    #[arg(value_name = "GROUP", required = true)]
    groups: Vec<String>,
    /// The one whose number and name stay; by default the one with a name
    #[arg(long, value_name = "GROUP")]
    into: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SplitArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// The group, by name or as #12
    #[arg(value_name = "GROUP")]
    group: String,
    /// How many parts there are to be
    #[arg(long, value_name = "N", conflicts_with = "items")]
    into: Option<usize>,
    /// The items that are to be a group of their own
    #[arg(long, value_name = "ITEM", num_args = 1..)]
    items: Vec<String>,
    /// Say what the parts would be, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MoveArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// The items, by name or as #12
    #[arg(value_name = "ITEM", required = true)]
    items: Vec<String>,
    /// The group, by name or as #12
    #[arg(
        long,
        value_name = "GROUP",
        required_unless_present = "to_new",
        conflicts_with = "to_new"
    )]
    to: Option<String>,
    /// A new group, which may be named
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    to_new: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ConfirmArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// The items, by name or as #12; one that waits joins the group that was guessed
    #[arg(value_name = "ITEM", required_unless_present = "group", conflicts_with = "group")]
    items: Vec<String>,
    /// All items of this group instead
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ItemArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// The items, by name or as #12
    #[arg(value_name = "ITEM", required = true)]
    items: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    place: CollectionArgs,
    /// At most so many
    #[arg(short, default_value_t = 20, value_name = "N")]
    n: usize,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// The corrections
    #[arg(value_name = "FILE|DIR")]
    corrections: PathBuf,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    place: CollectionArgs,
    /// The folder to write into
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// The format of the assignments
    #[arg(long, default_value = "csv", value_name = "csv|jsonl|parquet")]
    format: genus_data::Format,
    /// Mark what a spreadsheet would take for a formula
    #[arg(long)]
    spreadsheet: bool,
    /// Write features.parquet, too
    #[arg(long)]
    with_features: bool,
    /// Sort the photographs into this folder, one folder a group
    #[arg(long, value_name = "DIR")]
    sort_into: Option<PathBuf>,
    /// What a sorted photograph is
    #[arg(long, default_value = "sym", value_name = "sym|hard|copy")]
    link: genus_data::LinkKind,
    /// Write files for other programs
    #[arg(long, value_name = "label-studio|fiftyone|imagefolder", value_delimiter = ',')]
    export: Vec<genus_data::Export>,
    /// Save what can be read of a damaged collection: items.csv and features.parquet
    #[arg(long, conflicts_with_all = ["sort_into", "export", "with_features"])]
    salvage: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    place: CollectionArgs,
    /// The folder to write into; by default that of the collection
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RefreshArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// Let groups that nobody named be larger (coarser) or smaller (finer) than they are found
    #[arg(long, value_name = "coarser|finer")]
    level: Option<LevelName>,
}

/// How fine groups are to be.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum LevelName {
    Coarser,
    Finer,
}

impl Arguments for CollectionCommand {
    type Options = Request;

    fn options(self, seed: u64) -> Result<Request, Failure> {
        Ok(match self {
            CollectionCommand::Init(args) => args.change.request(Task::Init {
                seed,
                support: args.support,
                options: AddOptions {
                    images: args.images.options(),
                    tables: args.tables.options(),
                    labelled: true,
                },
                from: args.from,
            }),
            CollectionCommand::Add(args) => args.change.request(Task::Add {
                items: args.items,
                options: AddOptions {
                    images: args.images.options(),
                    tables: args.tables.options(),
                    labelled: args.labelled,
                },
            }),
            CollectionCommand::Status(place) => place.request(Task::Status),
            CollectionCommand::Groups(args) => args.place.request(Task::Groups {
                most: args.n.unwrap_or(usize::MAX),
            }),
            CollectionCommand::Show(args) => args.place.request(Task::Show {
                what: args.what,
                most: args.n,
            }),
            CollectionCommand::Name(args) => args.change.request(Task::Name {
                group: args.group,
                name: args.name,
                merge: args.merge,
            }),
            CollectionCommand::Merge(args) => args.change.request(Task::Merge {
                groups: args.groups,
                into: args.into,
            }),
            CollectionCommand::Split(args) => args.change.request(Task::Split {
                group: args.group,
                parts: match args.items.is_empty() {
                    true => Parts::Proposed(args.into),
                    false => Parts::Items(args.items),
                },
                dry_run: args.dry_run,
            }),
            CollectionCommand::Move(args) => args.change.request(Task::Move {
                items: args.items,
                to: match args.to {
                    Some(group) => Destination::Group(group),
                    None => Destination::New(args.to_new.filter(|name| !name.is_empty())),
                },
            }),
            CollectionCommand::Confirm(args) => args.change.request(Task::Confirm(match args.group {
                Some(group) => ItemNames::Group(group),
                None => ItemNames::Items(args.items),
            })),
            CollectionCommand::Reject(args) => args.change.request(Task::Reject(args.items)),
            CollectionCommand::Noise(args) => args.change.request(Task::Noise(args.items)),
            CollectionCommand::Undo(change) => change.request(Task::Undo),
            CollectionCommand::Redo(change) => change.request(Task::Redo),
            CollectionCommand::Log(args) => args.place.request(Task::Log { most: args.n }),
            CollectionCommand::Refresh(args) => args.change.request(Task::Refresh(match args.level {
                None => Level::AsFound,
                Some(LevelName::Coarser) => Level::Coarser,
                Some(LevelName::Finer) => Level::Finer,
            })),
            CollectionCommand::Ask(args) => args.place.request(Task::Ask { most: args.n }),
            CollectionCommand::Report(args) => args.place.request(Task::Report { out: args.out }),
            CollectionCommand::Apply(args) => args.change.request(Task::Apply {
                corrections: args.corrections,
                dry_run: args.dry_run,
            }),
            CollectionCommand::Export(args) if args.salvage => args.place.request(Task::Salvage { out: args.out }),
            CollectionCommand::Export(args) => args.place.request(Task::Export {
                out: args.out,
                options: ExportOptions {
                    format: args.format,
                    spreadsheet: args.spreadsheet,
                    features: args.with_features,
                    sort_into: args.sort_into,
                    link: args.link,
                    exports: args.export,
                },
            }),
            CollectionCommand::Check(place) => place.request(Task::Check),
            CollectionCommand::Compact(change) => change.request(Task::Compact),
        })
    }

    fn run(request: Request, terminal: Terminal) -> Result<(), Failure> {
        let Request {
            folder,
            author,
            json,
            task,
        } = request;
        let session = Session {
            folder,
            author,
            json,
            terminal,
        };
        session.run(task)
    }
}

impl CollectionArgs {
    fn request(self, task: Task) -> Request {
        Request {
            folder: self.folder,
            author: super::user(),
            json: self.json,
            task,
        }
    }
}

impl ChangeArgs {
    fn request(self, task: Task) -> Request {
        let request = self.place.request(task);
        Request {
            author: self.author.unwrap_or(request.author),
            ..request
        }
    }
}
