//! The arguments of the commands that are about a collection, and what they mean.

use std::path::PathBuf;

use clap::Subcommand;

use genus_collection::{AddOptions, ExportOptions, Level};

use super::{CollectionTask, ItemNames, MoveTarget, Request, Session, SplitParts};
use crate::args::Arguments;
use crate::args::shared::{ImageArgs, TableArgs, ranged};
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
    /// The author recorded in the log; by default the current user
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CollectionCommand {
    /// Create a collection: a folder of items, groups and decisions
    #[command(after_help = "\
Examples:
  genus init birds
  genus init birds --support labelled/
  genus init birds --support labelled.parquet
  genus init birds --from result")]
    Init(InitArgs),
    /// Add items: each joins a group, waits, or forms a new group with others
    ///
    /// The same photograph is one item however often it is added, so a folder can be added repeatedly. Either all items are
    /// added or none. After an interrupt, the same command resumes.
    #[command(after_help = "\
Examples:
  genus add birds photos/
  genus add birds today.parquet
  genus add birds more-examples/ --labelled")]
    Add(AddArgs),
    /// Show the size and state of a collection
    #[command(after_help = "Examples:\n  genus status birds\n  genus status birds --json")]
    Status(CollectionArgs),
    /// List the groups of a collection
    #[command(after_help = "Examples:\n  genus groups birds\n  genus groups birds --json")]
    Groups(GroupsArgs),
    /// Show the items of a group, the waiting items, or one item
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
    /// Merge groups permanently
    #[command(after_help = "\
Examples:
  genus merge birds new-3 new-7
  genus merge birds new-3 \"Herring gull\"
  genus merge birds gull \"Herring gull\" --into \"Herring gull\"")]
    Merge(MergeArgs),
    /// Split a group permanently
    ///
    /// By default the parts are found by clustering; --into sets their number. With --items, these items become a new group.
    #[command(after_help = "\
Examples:
  genus split birds new-4
  genus split birds new-4 --into 2 --dry-run
  genus split birds new-4 --items IMG_0412.jpg IMG_0413.jpg")]
    Split(SplitArgs),
    /// Move items to a group; they become examples of it
    #[command(after_help = "\
Examples:
  genus move birds IMG_0412.jpg '#87' --to \"Herring gull\"
  genus move birds IMG_0412.jpg IMG_0413.jpg --to-new
  genus move birds IMG_0412.jpg --to-new \"Ivory gull\"")]
    Move(MoveArgs),
    /// Confirm that items are in the right group; they become examples of it
    #[command(after_help = "\
Examples:
  genus confirm birds IMG_0412.jpg IMG_0413.jpg
  genus confirm birds --group new-3")]
    Confirm(ConfirmArgs),
    /// Say that items do not belong to their group
    #[command(after_help = "Examples:\n  genus reject birds IMG_0412.jpg IMG_0413.jpg")]
    Reject(ItemArgs),
    /// Mark items as noise: they belong to no group
    #[command(after_help = "Examples:\n  genus noise birds IMG_0412.jpg")]
    Noise(ItemArgs),
    /// Undo the last change
    #[command(after_help = "Examples:\n  genus undo birds")]
    Undo(ChangeArgs),
    /// Redo the last change that was undone
    #[command(after_help = "Examples:\n  genus redo birds")]
    Redo(ChangeArgs),
    /// List changes, the latest first
    #[command(after_help = "Examples:\n  genus log birds\n  genus log birds -n 100 --json")]
    Log(LogArgs),
    /// Sort all undecided items again
    ///
    /// Confirmed and moved items stay where they are and serve as examples. Merged groups stay merged, split groups stay split,
    /// rejected items stay out, and groups keep their numbers and names.
    #[command(after_help = "Examples:\n  genus refresh birds\n  genus refresh birds --level coarser")]
    Refresh(RefreshArgs),
    /// List the questions whose answers would help most
    #[command(after_help = "Examples:\n  genus ask birds -n 20")]
    Ask(LogArgs),
    /// Apply corrections from an edited table, a Label Studio or FiftyOne export, or a sorted folder
    ///
    /// Every difference from the collection is a correction. An item with another category is moved there (a new category
    /// becomes a group); an item whose kind is no longer unsure is confirmed; an item that is now unsure or has no category is
    /// rejected; an item with the category noise is marked as noise. A group whose items all have the same new category is
    /// renamed.
    #[command(after_help = "\
Examples:
  genus apply birds assignments.csv --dry-run
  genus apply birds project-1-at-2026-05-01.json
  genus apply birds sorted/")]
    Apply(ApplyArgs),
    /// Write report.html: groups, waiting items, map and history
    #[command(after_help = "Examples:\n  genus report birds\n  genus report birds -o pages")]
    Report(ReportArgs),
    /// Export assignments and groups, files for other programs, or the rest of a damaged collection
    #[command(after_help = "\
Examples:
  genus export birds -o result
  genus export birds -o result --sort-into sorted --link hard
  genus export birds -o result --export label-studio
  genus export birds -o saved --salvage")]
    Export(ExportArgs),
    /// Check the integrity of a collection, and look for missing photographs
    #[command(after_help = "Examples:\n  genus check birds")]
    Check(CollectionArgs),
    /// Free unused disk space
    #[command(after_help = "Examples:\n  genus compact birds")]
    Compact(ChangeArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// Labelled examples: images with one folder per class, a manifest, or a feature file
    #[arg(long, short, value_name = "FILE|DIR")]
    support: Option<PathBuf>,
    /// Import the taxonomy in a folder written by `genus discover --out`, with its names
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
    /// Treat labels as decisions: the items become examples of the groups with these names
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
    /// Show at most N groups, named and largest first
    #[arg(short, value_parser = ranged::<usize>("n"), value_name = "N")]
    n: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    place: CollectionArgs,
    /// A group (name or #12), an item (name), `waiting` or `noise`
    #[arg(value_name = "GROUP|ITEM")]
    what: String,
    /// Show at most N items
    #[arg(short, value_parser = ranged::<usize>("n"), default_value_t = 100, value_name = "N")]
    n: usize,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// The group, by its current name or as #12
    #[arg(value_name = "GROUP")]
    group: String,
    /// The new name
    #[arg(value_name = "NAME")]
    name: String,
    /// If another group has that name, merge the two
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
    /// The group whose number and name are kept; by default the one with a name
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
    /// The number of parts
    #[arg(long, value_parser = ranged::<usize>("parts"), value_name = "N", conflicts_with = "items")]
    into: Option<usize>,
    /// The items that become a new group
    #[arg(long, value_name = "ITEM", num_args = 1..)]
    items: Vec<String>,
    /// Show the parts without changing anything
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
    /// A new group, with an optional name
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    to_new: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ConfirmArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// The items, by name or as #12; a waiting item joins its most likely group
    #[arg(value_name = "ITEM", required_unless_present = "group", conflicts_with = "group")]
    items: Vec<String>,
    /// Confirm all items of this group instead
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
    /// Show at most N
    #[arg(short, value_parser = ranged::<usize>("n"), default_value_t = 20, value_name = "N")]
    n: usize,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// The corrections
    #[arg(value_name = "FILE|DIR")]
    corrections: PathBuf,
    /// Show the changes without making them
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
    /// Put an apostrophe before CSV cells that a spreadsheet would take for a formula
    #[arg(long)]
    spreadsheet: bool,
    /// Also write features.parquet
    #[arg(long)]
    with_features: bool,
    /// Sort the photographs into DIR, with one folder per group
    #[arg(long, value_name = "DIR")]
    sort_into: Option<PathBuf>,
    /// What --sort-into makes: symbolic links, hard links or copies
    #[arg(long, default_value = "sym", value_name = "sym|hard|copy")]
    link: genus_data::LinkKind,
    /// Allow the names of items without a file to refer to files outside of the current folder
    #[arg(long)]
    allow_outside: bool,
    /// Also write files for other programs
    #[arg(long, value_name = "label-studio|fiftyone|imagefolder", value_delimiter = ',')]
    export: Vec<genus_data::Export>,
    /// Recover what can be read of a damaged collection, as items.csv and features.parquet
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
    /// Make unnamed groups larger (coarser) or smaller (finer) than found
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
            CollectionCommand::Init(args) => args.change.request(CollectionTask::Init {
                seed,
                support: args.support,
                options: AddOptions {
                    images: args.images.options(),
                    tables: args.tables.options(),
                    labelled: true,
                },
                from: args.from,
            }),
            CollectionCommand::Add(args) => args.change.request(CollectionTask::Add {
                items: args.items,
                options: AddOptions {
                    images: args.images.options(),
                    tables: args.tables.options(),
                    labelled: args.labelled,
                },
            }),
            CollectionCommand::Status(place) => place.request(CollectionTask::Status),
            CollectionCommand::Groups(args) => args.place.request(CollectionTask::Groups {
                most: args.n.unwrap_or(usize::MAX),
            }),
            CollectionCommand::Show(args) => args.place.request(CollectionTask::Show {
                what: args.what,
                most: args.n,
            }),
            CollectionCommand::Name(args) => args.change.request(CollectionTask::Name {
                group: args.group,
                name: args.name,
                merge: args.merge,
            }),
            CollectionCommand::Merge(args) => args.change.request(CollectionTask::Merge {
                groups: args.groups,
                into: args.into,
            }),
            CollectionCommand::Split(args) => args.change.request(CollectionTask::Split {
                group: args.group,
                parts: match args.items.is_empty() {
                    true => SplitParts::Proposed(args.into),
                    false => SplitParts::Items(args.items),
                },
                dry_run: args.dry_run,
            }),
            CollectionCommand::Move(args) => args.change.request(CollectionTask::Move {
                items: args.items,
                to: match args.to {
                    Some(group) => MoveTarget::Group(group),
                    None => MoveTarget::New(args.to_new.filter(|name| !name.is_empty())),
                },
            }),
            CollectionCommand::Confirm(args) => args.change.request(CollectionTask::Confirm(match args.group {
                Some(group) => ItemNames::Group(group),
                None => ItemNames::Items(args.items),
            })),
            CollectionCommand::Reject(args) => args.change.request(CollectionTask::Reject(args.items)),
            CollectionCommand::Noise(args) => args.change.request(CollectionTask::Noise(args.items)),
            CollectionCommand::Undo(change) => change.request(CollectionTask::Undo),
            CollectionCommand::Redo(change) => change.request(CollectionTask::Redo),
            CollectionCommand::Log(args) => args.place.request(CollectionTask::Log { most: args.n }),
            CollectionCommand::Refresh(args) => args.change.request(CollectionTask::Refresh(match args.level {
                None => Level::AsFound,
                Some(LevelName::Coarser) => Level::Coarser,
                Some(LevelName::Finer) => Level::Finer,
            })),
            CollectionCommand::Ask(args) => args.place.request(CollectionTask::Ask { most: args.n }),
            CollectionCommand::Report(args) => args.place.request(CollectionTask::Report { out: args.out }),
            CollectionCommand::Apply(args) => args.change.request(CollectionTask::Apply {
                corrections: args.corrections,
                dry_run: args.dry_run,
            }),
            CollectionCommand::Export(args) if args.salvage => {
                args.place.request(CollectionTask::Salvage { out: args.out })
            }
            CollectionCommand::Export(args) => args.place.request(CollectionTask::Export {
                out: args.out,
                options: ExportOptions {
                    format: args.format,
                    spreadsheet: args.spreadsheet,
                    features: args.with_features,
                    sort_into: args.sort_into,
                    link: args.link,
                    allow_outside: args.allow_outside,
                    exports: args.export,
                },
            }),
            CollectionCommand::Check(place) => place.request(CollectionTask::Check),
            CollectionCommand::Compact(change) => change.request(CollectionTask::Compact),
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
    fn request(self, task: CollectionTask) -> Request {
        Request {
            folder: self.folder,
            author: super::user(),
            json: self.json,
            task,
        }
    }
}

impl ChangeArgs {
    fn request(self, task: CollectionTask) -> Request {
        let request = self.place.request(task);
        Request {
            author: self.author.unwrap_or(request.author),
            ..request
        }
    }
}
