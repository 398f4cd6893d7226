//! The arguments of the commands that are about a collection.

use std::path::PathBuf;

use clap::Subcommand;

use crate::args::{ImageArgs, TableArgs};

/// What every command about a collection has.
#[derive(Debug, clap::Args)]
pub(crate) struct CollectionArgs {
    /// The folder of the collection
    #[arg(value_name = "COLLECTION")]
    pub(crate) folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The same for commands that change it.
#[derive(Debug, clap::Args)]
pub(crate) struct ChangeArgs {
    #[command(flatten)]
    pub(crate) place: CollectionArgs,
    /// Who the log says it was; by default who is logged in
    #[arg(long, value_name = "NAME")]
    pub(crate) author: Option<String>,
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
    /// Give back the room of what is no longer used
    #[command(after_help = "Examples:\n  genus compact birds")]
    Compact(ChangeArgs),
    /// Look whether all is in order, and which photographs are missing
    #[command(after_help = "Examples:\n  genus check birds")]
    Check(CollectionArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Labelled examples: images with one folder a class, a manifest, or a feature file
    #[arg(long, short, value_name = "FILE|DIR")]
    pub(crate) support: Option<PathBuf>,
    /// Take over the taxonomy of a folder that `genus discover --out` wrote, with its names
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) images: ImageArgs,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// The items: a folder of images, a manifest, or a feature file
    #[arg(value_name = "FILE|DIR")]
    pub(crate) items: PathBuf,
    /// Take labels for what a person said: the items are examples of groups of these names
    #[arg(long)]
    pub(crate) labelled: bool,
    #[command(flatten)]
    pub(crate) images: ImageArgs,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GroupsArgs {
    #[command(flatten)]
    pub(crate) place: CollectionArgs,
    /// At most so many, those with names and the largest first
    #[arg(short, value_name = "N")]
    pub(crate) n: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) place: CollectionArgs,
    /// A group by name or as #12, an item by name, `waiting` or `noise`
    #[arg(value_name = "GROUP|ITEM")]
    pub(crate) what: String,
    /// At most so many items
    #[arg(short, default_value_t = 100, value_name = "N")]
    pub(crate) n: usize,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// The group, by its name so far or as #12
    #[arg(value_name = "GROUP")]
    pub(crate) group: String,
    /// What it is to be called
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// When a group is called that already, make the two one
    #[arg(long)]
    pub(crate) merge: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// The groups, by name or as #12
    #[arg(value_name = "GROUP", required = true)]
    pub(crate) groups: Vec<String>,
    /// The one whose number and name stay; by default the one with a name
    #[arg(long, value_name = "GROUP")]
    pub(crate) into: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SplitArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// The group, by name or as #12
    #[arg(value_name = "GROUP")]
    pub(crate) group: String,
    /// How many parts there are to be
    #[arg(long, value_name = "N", conflicts_with = "items")]
    pub(crate) into: Option<usize>,
    /// The items that are to be a group of their own
    #[arg(long, value_name = "ITEM", num_args = 1..)]
    pub(crate) items: Vec<String>,
    /// Say what the parts would be, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MoveArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// The items, by name or as #12
    #[arg(value_name = "ITEM", required = true)]
    pub(crate) items: Vec<String>,
    /// The group, by name or as #12
    #[arg(
        long,
        value_name = "GROUP",
        required_unless_present = "to_new",
        conflicts_with = "to_new"
    )]
    pub(crate) to: Option<String>,
    /// A new group, which may be named
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub(crate) to_new: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ConfirmArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// The items, by name or as #12; one that waits joins the group that was guessed
    #[arg(value_name = "ITEM", required_unless_present = "group", conflicts_with = "group")]
    pub(crate) items: Vec<String>,
    /// All items of this group instead
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ItemArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// The items, by name or as #12
    #[arg(value_name = "ITEM", required = true)]
    pub(crate) items: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    pub(crate) place: CollectionArgs,
    /// At most so many
    #[arg(short, default_value_t = 20, value_name = "N")]
    pub(crate) n: usize,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// The corrections
    #[arg(value_name = "FILE|DIR")]
    pub(crate) corrections: PathBuf,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) place: CollectionArgs,
    /// The folder to write into
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// The format of the assignments
    #[arg(long, default_value = "csv", value_name = "csv|jsonl|parquet")]
    pub(crate) format: genus_data::Format,
    /// Mark what a spreadsheet would take for a formula
    #[arg(long)]
    pub(crate) spreadsheet: bool,
    /// Write features.parquet, too
    #[arg(long)]
    pub(crate) with_features: bool,
    /// Sort the photographs into this folder, one folder a group
    #[arg(long, value_name = "DIR")]
    pub(crate) sort_into: Option<PathBuf>,
    /// What a sorted photograph is
    #[arg(long, default_value = "sym", value_name = "sym|hard|copy")]
    pub(crate) link: genus_data::LinkKind,
    /// Write files for other programs
    #[arg(long, value_name = "label-studio|fiftyone|imagefolder", value_delimiter = ',')]
    pub(crate) export: Vec<genus_data::Export>,
    /// Save what can be read of a damaged collection: items.csv and features.parquet
    #[arg(long, conflicts_with_all = ["sort_into", "export", "with_features"])]
    pub(crate) salvage: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) place: CollectionArgs,
    /// The folder to write into; by default that of the collection
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RefreshArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Let groups that nobody named be larger (coarser) or smaller (finer) than they are found
    #[arg(long, value_name = "coarser|finer")]
    pub(crate) level: Option<Level>,
}

/// How fine groups are to be.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Level {
    Coarser,
    Finer,
}
