//! The arguments of every command. One definition feeds parsing, help, completions and manual pages.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use genus::training::TrainedBlocks;
use genus::{CacheChoice, ImageOptions, TableFormat, TableOptions};
use genus_core::episode::{Half, ShortClasses, Tail};
use genus_core::projection::Projection;
use genus_core::{CentreNorm, Prototypes, ranges};
use genus_data::datasets::{Images, ParseImagesError};
use genus_data::{Export, Format, LinkKind};
use genus_lab::{ALPHAS, DataInput, DataSource, EmbeddingOptions, PileVariable, THRESHOLDS};
use genus_vision::{Limits, Model, Precision};

use crate::collection::CollectionCommand;
use crate::failure::Failure;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The heading of the options that every command has.
const GLOBAL: &str = "Global options";

macro_rules! examples {
    () => {
        "\
Examples:
  genus demo                                          see it work, no data needed
  genus discover --support labelled/ --query photos/ --out result
  genus discover --support labelled.csv --query pile.parquet > assignments.csv
  genus discover table.npz --out result               rows without a label are the pile
  genus assign --taxonomy result --query more.parquet
  genus calibrate base.npz -o base.safetensors        once, for --calibration
  genus train base/ --encoder dino-vitb16 --out runs/birds
  genus bench main --features cub.npz --split cub.json"
    };
}

macro_rules! limits {
    () => {
        "\
Limits, so that no small file fills the memory; an error names the file and the limit:
  a row of a table    1,048,576 features; 16 MiB in .csv, .tsv and .jsonl, and the same for a header
  a text in a table   256 KiB in .parquet, .feather and .npz; 1 GiB for a column of a .npz
  a page of Parquet   256 MiB; 1 GiB for those of all features at a time, and for a batch of Arrow
  a table unpacked    1 GiB, or 256 times the size of its file
  a file of ours      64 MiB of text, 256 MiB for a calibration, 4 GiB for other tensors
  an image            --max-file-mb, --max-megapixels; one of more than 16 megapixels at a time
Whole numbers have a range each. Devices are refused, and a pipe is read once."
    };
}

macro_rules! exit_codes {
    () => {
        "\
Exit codes:
  0    success
  1    failure; the message says what to do
  2    the command was not meant like this
  3    success, but files were skipped: --summary names them
  130  interrupted (Ctrl-C), 143 terminated (SIGTERM)"
    };
}

/// Sorts items into the classes you know and the categories you do not know yet.
///
/// From a few labelled examples of some classes and a pile of unlabelled items, Genus says which items belong to the known
/// classes and groups the rest into new categories, without being told how many there are.
#[derive(Debug, Parser)]
#[command(
    name = "genus",
    version,
    styles = STYLES,
    after_help = examples!(),
    after_long_help = concat!(examples!(), "\n\n", exit_codes!(), "\n\n", limits!())
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
}

/// The commands as the help groups them; what is in none comes last.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Sort once", &["demo", "discover", "assign"]),
    (
        "A collection",
        &[
            "init", "add", "status", "groups", "show", "name", "merge", "split", "move", "confirm", "reject", "noise",
            "undo", "redo", "log", "refresh", "ask", "apply", "report", "export", "check", "compact", "serve", "token",
        ],
    ),
    ("Encoders", &["embed", "encoders", "cache", "train"]),
    ("Research", &["calibrate", "bench", "methods"]),
];

impl Args {
    /// The command whose help has the commands in groups, which clap has no way to say.
    pub(crate) fn grouped() -> clap::Command {
        let command = Args::command();
        let about = |name: &str| -> Option<(String, String)> {
            let found = command.find_subcommand(name)?;
            Some((name.to_owned(), found.get_about()?.to_string()))
        };
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let others: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .filter(|name| !listed.contains(name))
            .collect();
        let groups = GROUPS.iter().map(|&(title, names)| (title, names.to_vec()));
        let width = command
            .get_subcommands()
            .map(|found| found.get_name().len())
            .max()
            .unwrap_or(0);
        let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
        let mut text = String::new();
        for (title, names) in groups.chain([("Other", others)]) {
            text += &format!("{header}{title}:{header:#}\n");
            for (name, about) in names.iter().filter_map(|name| about(name)) {
                text += &format!(
                    "  {literal}{name}{literal:#}{}  {about}\n",
                    " ".repeat(width - name.len())
                );
            }
            text.push('\n');
        }
        let template = format!(
            "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}{{all-args}}{{after-help}}"
        );
        command
            .mut_subcommands(|found| found.hide(true))
            // Of commands that are hidden the usage would say nothing.
            .override_usage("genus [OPTIONS] <COMMAND>")
            .help_template(template)
    }
}

/// Reads a number that the table of ranges has under a name.
fn ranged<T>(name: &'static str) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr<Err: ToString> + Clone + Send + Sync + 'static,
{
    move |text| {
        if let Ok(number) = text.parse() {
            ranges::check(name, number).map_err(|e| format!("it must be {e}"))?;
        }
        text.parse().map_err(|e: T::Err| e.to_string())
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct GlobalArgs {
    /// Number of threads; all cores by default. Results do not depend on it
    #[arg(long, value_parser = ranged::<NonZeroUsize>("threads"), global = true, value_name = "N", help_heading = GLOBAL)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Seed of everything random; the same seed gives the same bytes
    #[arg(long, global = true, default_value_t = 0, value_name = "N", help_heading = GLOBAL)]
    pub(crate) seed: u64,
    /// No progress and no summary, only errors
    #[arg(long, short, global = true, help_heading = GLOBAL)]
    pub(crate) quiet: bool,
    /// Write what the run did as JSON: counts, times, what was skipped, how it ended
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub(crate) summary: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Discover(DiscoverArgs),
    Assign(AssignArgs),
    #[command(flatten)]
    Collection(CollectionCommand),
    Serve(crate::serve::ServeArgs),
    /// Make, list and revoke tokens: who may use a collection that is served
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  genus token create birds --name Anna --role label\n  genus token list birds\n  \
                            genus token revoke birds Anna"
    )]
    Token {
        #[command(subcommand)]
        command: crate::serve::TokenCommand,
    },
    Calibrate(CalibrateArgs),
    Embed(EmbedArgs),
    Train(Box<TrainArgs>),
    Bench(Box<BenchArgs>),
    Demo(DemoArgs),
    /// List the methods and their parameters
    #[command(after_help = "Examples:\n  genus methods\n  genus discover table.csv --method ukc:alpha=1.6")]
    Methods,
    /// List the encoders, say what one is, or fetch its weights
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  genus encoders list\n  genus encoders info dinov2-small\n  \
                            genus encoders pull dino-vitb16"
    )]
    Encoders {
        #[command(subcommand)]
        command: EncodersCommand,
    },
    /// Show or clear the features that are remembered
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  genus cache info\n  genus cache clear\n\n\
                      The cache is $GENUS_CACHE, or genus in the cache folder of the system."
    )]
    Cache {
        #[command(subcommand)]
        command: CacheCommand,
    },
    /// Print a completion script for a shell
    #[command(
        after_help = "Examples:\n  genus completions bash > ~/.local/share/bash-completion/completions/genus\n  \
                            genus completions zsh > ~/.zfunc/_genus\n  \
                            genus completions fish > ~/.config/fish/completions/genus.fish"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write a manual page for every command
    #[command(after_help = "Examples:\n  genus man ~/.local/share/man/man1")]
    Man {
        /// The folder for the pages, which is made if need be
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Sort a pile into known classes and new categories
///
/// The labelled examples come from one place and the pile from another (--support, --query), or both from one table in which
/// rows without a label are the pile. A place is a folder of images (one folder a class for the examples), a manifest of
/// images (a table with a column path, or a .txt with a path a line), or a feature file (.npy, .npz, .safetensors, .csv, .tsv,
/// .jsonl, .parquet, .feather).
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "\
genus discover [OPTIONS] <TABLE>
       genus discover [OPTIONS] [--support <FILE|DIR>] --query <FILE|DIR>",
    after_help = "\
Examples:
  genus discover --support labelled/ --query photos/ --out result
  genus discover --support labelled/ --query photos/ --encoder dinov2-small
  genus discover --support labelled.npz --query pile.npy
  genus discover --query photos/ --out result
  genus discover table.csv --out result --format parquet
  genus discover table.tsv --label species --features 'pca*' --unlabelled unknown --unlabelled NA
  genus discover table.jsonl --out result --text caption --truth species
  genus discover table.parquet --calibration base.safetensors
  genus discover table.parquet --method ukc:alpha=1.3 --seed 7
  genus discover --support s.csv --query millions.parquet --subset 5000 --out result
  genus discover --support labelled/ --query photos/ --sort-into sorted --link hard
  genus discover --support labelled/ --query photos/ --out result --export label-studio

With --out, DIR/report.html shows what was found: open it in a browser.

Output (CSV to the standard output, or DIR/assignments.* with --out):
  id,category,kind,score,margin,probability,scene
  kind         known, new, or unsure where the category is only the best guess
  score        the cosine to the category's centre
  margin       its lead over the next category
  probability  how likely the item belongs there, where a calibration says so
  scene        the same for copies, crops and frames of a burst; empty where nobody looked"
)]
pub(crate) struct DiscoverArgs {
    /// One table with labelled and unlabelled rows
    #[arg(value_name = "TABLE", conflicts_with_all = ["support", "query"], required_unless_present_any = ["support", "query"])]
    pub(crate) table: Option<PathBuf>,
    /// The labelled examples: a feature file, or images. One class is enough; without any, everything is new
    #[arg(long, short, value_name = "FILE|DIR", requires = "query")]
    pub(crate) support: Option<PathBuf>,
    /// The pile to sort: a feature file, or images
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) query: Option<PathBuf>,
    /// The method and its parameters, as in shc:t=3; see `genus methods`
    #[arg(long, short, default_value = "calibrated", value_name = "METHOD")]
    pub(crate) method: String,
    /// What `genus calibrate` learnt from base classes; without it the examples say how far items of a class lie apart
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) prototypes: PrototypeKind,
    /// Cluster so many random queries and assign the rest to the nearest category; their content decides which, whatever their
    /// order. By default this happens by itself, with 5,000, when there are more than 20,000 queries
    #[arg(long, value_parser = ranged::<NonZeroUsize>("subset"), value_name = "N")]
    pub(crate) subset: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) second_step: SecondStep,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
    #[command(flatten)]
    pub(crate) images: ImageArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) next: NextStepsArgs,
}

/// Assign further items to the categories of a taxonomy
///
/// The taxonomy is the folder that `genus discover --out` wrote. Every item gets the category that it fits best and, where the
/// taxonomy has a calibration, a probability; the file is streamed, so it may be larger than memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  genus assign --taxonomy result --query more.parquet > more.csv
  genus assign --taxonomy result --query more.npy --out sorted --format jsonl
  genus assign --taxonomy result --query more.npy --calibration base.safetensors
  genus assign --taxonomy result --query today.parquet --grow result > today.csv
  embeddings | genus assign --taxonomy result --query - --input jsonl --format jsonl

With --query - --input jsonl (or csv), every line is answered as it comes.")]
pub(crate) struct AssignArgs {
    /// The folder of the taxonomy
    #[arg(long, short, value_name = "DIR")]
    pub(crate) taxonomy: PathBuf,
    /// The items to assign: a feature file, or images
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) query: PathBuf,
    /// What `genus calibrate` learnt from base classes, for a taxonomy of a method that knows no probabilities
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// Let new groups form as the items come, in their order, and write the grown taxonomy here, which may be where it came
    /// from. Items that fit nothing in the end are unsure and in no category; they wait there for those of the next run
    #[arg(long, value_name = "DIR")]
    pub(crate) grow: Option<PathBuf>,
    /// Leave the report out; otherwise report.html in --out and in --grow shows the items
    #[arg(long)]
    pub(crate) no_report: bool,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
    #[command(flatten)]
    pub(crate) images: ImageArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) next: NextStepsArgs,
}

/// Learn from base classes how far items of one class lie apart
///
/// The more of that is known, the surer Genus divides a pile. Base classes are any classes of the same kind of things, seen by
/// the same encoder, of which many items are labelled; they need not be in the pile. One small file keeps what was learnt, for
/// `genus discover --calibration` and `genus assign --calibration`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "\
genus calibrate [OPTIONS] <FILE|DIR>...
       genus calibrate --show <FILE>",
    after_help = "\
Examples:
  genus calibrate birds.npz --split birds.json -o birds.safetensors
  genus calibrate base.parquet --label species
  genus calibrate base/ --encoder dinov2-small -o base.safetensors
  genus calibrate birds.npz letters.npz -o general.safetensors
  genus calibrate --show birds.safetensors
  genus discover --support labelled.npz --query pile.npz --calibration birds.safetensors"
)]
pub(crate) struct CalibrateArgs {
    /// Labelled items: a feature file, a folder of images with one folder a class, or a manifest of images. Several are several
    /// kinds of things, for piles of any kind
    #[arg(value_name = "FILE|DIR", required_unless_present = "show")]
    pub(crate) items: Vec<PathBuf>,
    /// Class split, JSON {"base": [...], "novel": [...]}; only base classes are learnt from, without it all labelled ones
    #[arg(long, value_name = "FILE")]
    pub(crate) split: Option<PathBuf>,
    /// The file to write
    #[arg(long, short, default_value = "calibration.safetensors", value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Print what is in a calibration instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["items", "split", "out"])]
    pub(crate) show: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
    #[command(flatten)]
    pub(crate) images: ImageArgs,
}

/// Turn images into a feature file
///
/// The images are those of a folder (with one folder a class, the folder is the label), of a manifest (.csv, .jsonl or .parquet
/// with a column path and optional columns id and label), or of a list with a path a line (.txt, or - for the standard
/// input). What was embedded before is not embedded again: after an interrupt the same command goes on where it stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  genus embed photos/ -o photos.parquet
  genus embed photos/ --encoder dino-vitb16 -o photos.npz
  genus embed photos/ --encoder efficientnet-lite2 --weights efficientnet_lite2.pth -o photos.npz
  find . -name '*.jpg' | genus embed - -o found.parquet
  genus discover --support labelled.npz --query photos.npz")]
pub(crate) struct EmbedArgs {
    /// A folder, a manifest, or - for a list on the standard input
    #[arg(value_name = "PATH")]
    pub(crate) images: PathBuf,
    /// The feature file: .parquet, .npz, .safetensors, .csv or .jsonl
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    #[command(flatten)]
    pub(crate) options: ImageArgs,
}

/// Train an encoder on classes you know
///
/// The images are those of a folder with one folder a class, or of a manifest with labels; with --split only its base classes
/// are used. The last blocks of a network and a projection head learn, on episodes, to bring the images of a class together
/// (supervised contrastive loss); with --objective ocd they learn, on batches of two views, to give them the same code of bits,
/// which is the baseline OCD. Some base classes are held out, and how well they are sorted is said as it goes on. Ctrl-C
/// finishes the step and saves; --resume goes on. The folder of the run is then an encoder: --encoder runs/birds.
#[derive(Debug, clap::Args)]
#[command(
    allow_negative_numbers = true,
    override_usage = "\
genus train [OPTIONS] <IMAGES> --out <DIR>
       genus train --resume <DIR>",
    after_help = "\
Examples:
  genus train birds/ --split birds.json --out runs/birds --cache-trunk 4
  genus train birds/ --encoder efficientnet-lite2 --blocks 3 --lr 0.003 --out runs/lite
  genus train letters/ --encoder conv4 --from-scratch --no-mirror --epochs 20 --out runs/letters
  genus train birds/ --split birds.json --objective ocd --out runs/codes
  genus train --resume runs/birds
  genus discover --support labelled/ --query photos/ --encoder runs/birds"
)]
pub(crate) struct TrainArgs {
    /// A folder with one folder a class, or a manifest with labels
    #[arg(value_name = "IMAGES", required_unless_present_any = ["resume", "data"])]
    pub(crate) images: Option<PathBuf>,
    /// A data set that has a name instead, as in cub200; see `genus bench data`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["images", "split"])]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) data_root: DataRoot,
    /// Which of the data set's images are taken
    #[arg(long = "images", id = "part", value_name = "train|test|all|paper", requires = "data")]
    pub(crate) part: Option<Images>,
    /// The folder of the run
    #[arg(long, short, value_name = "DIR", required_unless_present = "resume")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with the run of this folder, with its settings
    #[arg(long, value_name = "DIR", conflicts_with_all = SETTINGS)]
    pub(crate) resume: Option<PathBuf>,
    /// Class split, JSON {"base": [...], "novel": [...]}; only base classes are trained on
    #[arg(long, value_name = "FILE")]
    pub(crate) split: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) encoder: EncoderChoice,
    /// Begin with random weights
    #[arg(long, conflicts_with = "weights", help_heading = IMAGES)]
    pub(crate) from_scratch: bool,
    /// What is learnt: features (contrast), or codes (ocd), whose head is then in hash.safetensors beside the encoder
    #[arg(long, default_value = "contrast", value_name = "contrast|ocd")]
    pub(crate) objective: ObjectiveName,
    /// How many of the last blocks are trained, or all; by default 2, 1 for ocd, and all from scratch. The authors' code trains 1
    #[arg(long, value_name = "N|all")]
    pub(crate) blocks: Option<TrainedBlocks>,
    /// What batch normalisations of trained blocks go by: the statistics they came with (fixed) or those of the batch; by default
    /// fixed, and batch from scratch
    #[arg(long, value_name = "fixed|batch")]
    pub(crate) statistics: Option<StatisticsName>,
    #[command(flatten)]
    pub(crate) classes: Classes,
    /// Queries of a class; the authors' script uses 30
    #[arg(long, value_parser = ranged::<usize>("query"), default_value_t = 15, value_name = "Q")]
    pub(crate) query: usize,
    /// Epochs, by default 50, and 100 for ocd; 0 gives the encoder as it is before training
    #[arg(long, value_parser = ranged::<u64>("epochs"), value_name = "N")]
    pub(crate) epochs: Option<u64>,
    /// Episodes of an epoch, each a step; by default 50
    #[arg(long, value_parser = ranged::<u64>("episodes"), value_name = "N")]
    pub(crate) episodes: Option<u64>,
    /// Take steps on so many images of all classes instead of on episodes, and an epoch for once through them; by default 128 for
    /// ocd
    #[arg(long, value_parser = ranged::<usize>("batch"), value_name = "N", conflicts_with = "episodes")]
    pub(crate) batch: Option<usize>,
    /// Learning rate at the beginning
    #[arg(long, default_value_t = 0.01, value_name = "RATE")]
    pub(crate) lr: f64,
    /// How the learning rate changes: cosine (to a thousandth), or constant as in the authors' code
    #[arg(long, default_value = "cosine", value_name = "cosine|constant")]
    pub(crate) schedule: ScheduleName,
    /// Momentum
    #[arg(long, default_value_t = 0.9, value_name = "M")]
    pub(crate) momentum: f64,
    /// Weight decay
    #[arg(long, default_value_t = 5e-5, value_name = "D")]
    pub(crate) weight_decay: f64,
    /// Temperature of the loss
    #[arg(long, default_value_t = 0.07, value_name = "T")]
    pub(crate) temperature: f64,
    /// Views of every image in a step; by default 1, and 2 for ocd
    #[arg(long, value_parser = ranged::<usize>("views"), value_name = "N")]
    pub(crate) views: Option<usize>,
    /// Do not mirror images: for letters, digits, signs
    #[arg(long)]
    pub(crate) no_mirror: bool,
    /// Length of the two layers inside of the head
    #[arg(long, value_parser = ranged::<usize>("head-hidden"), default_value_t = 2048, value_name = "N")]
    pub(crate) head_hidden: usize,
    /// Length of the head's last layer; 0 stops at the 256 values before it
    #[arg(long, value_parser = ranged::<usize>("head-width"), default_value_t = 65_536, value_name = "N")]
    pub(crate) head_width: usize,
    /// Bits of a code of ocd
    #[arg(long, value_parser = ranged::<usize>("bits"), default_value_t = 12, value_name = "N")]
    pub(crate) bits: usize,
    /// Run the frozen blocks once, on so many views of every image, and train on what they gave; 0 runs them in every step
    #[arg(long, value_parser = ranged::<usize>("cache-trunk"), default_value_t = 0, value_name = "VIEWS")]
    pub(crate) cache_trunk: usize,
    /// Base classes that are held out for validation; by default as many as an episode needs, if twice as many are left
    #[arg(long, value_parser = ranged::<usize>("validation-classes"), value_name = "N")]
    pub(crate) validation_classes: Option<usize>,
    /// Episodes of a validation
    #[arg(long, value_parser = ranged::<std::num::NonZeroU64>("validation-episodes"), default_value = "200", value_name = "N")]
    pub(crate) validation_episodes: std::num::NonZeroU64,
    /// Epochs from one validation to the next
    #[arg(long, value_parser = ranged::<u64>("validate-every"), default_value_t = 5, value_name = "N")]
    pub(crate) validate_every: u64,
}

/// What a run that is gone on with has of its own.
const SETTINGS: [&str; 33] = [
    "images",
    "data",
    "part",
    "out",
    "split",
    "encoder",
    "weights",
    "from_scratch",
    "objective",
    "blocks",
    "statistics",
    "way",
    "shot",
    "new",
    "query",
    "short_classes",
    "epochs",
    "episodes",
    "batch",
    "lr",
    "schedule",
    "momentum",
    "weight_decay",
    "temperature",
    "views",
    "no_mirror",
    "head_hidden",
    "head_width",
    "bits",
    "cache_trunk",
    "validation_classes",
    "validation_episodes",
    "validate_every",
];

/// What a network is trained for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ObjectiveName {
    Contrast,
    Ocd,
}

/// What batch normalisations go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StatisticsName {
    Fixed,
    Batch,
}

/// How the learning rate changes.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ScheduleName {
    Cosine,
    Constant,
}

/// The heading of the options that matter for tables only.
const TABLES: &str = "Options for tables";

/// Which columns of a table are what, but for its features.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ColumnArgs {
    /// The column of labels; by default label, class, target or y
    #[arg(long, value_name = "COLUMN", help_heading = TABLES)]
    label: Option<String>,
    /// The column of ids; by default id, or a path
    #[arg(long, value_name = "COLUMN", help_heading = TABLES)]
    id: Option<String>,
    /// A label that means "no label", as in unknown, NA or ?; may be given several times. An empty one always means it
    #[arg(long, value_name = "WORD", help_heading = TABLES)]
    unlabelled: Vec<String>,
}

impl ColumnArgs {
    pub(crate) fn options(&self) -> TableOptions {
        TableOptions {
            id: self.id.clone(),
            label: self.label.clone(),
            unlabelled: self.unlabelled.iter().map(|word| word.trim().to_owned()).collect(),
            ..TableOptions::default()
        }
    }
}

/// Which columns of a table are what.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TableArgs {
    /// The columns of features, as in pca1,pca2 or 'pca*', or one column of lists; by default columns that are numbered from 0 or
    /// 1, or embedding
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', help_heading = TABLES)]
    features: Vec<String>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// The format of tables whose names do not say it: csv, tsv, jsonl, parquet, arrow, npy, npz or safetensors. With it - is a
    /// table on the standard input
    #[arg(long, value_name = "FORMAT", help_heading = TABLES)]
    input: Option<TableFormat>,
}

impl TableArgs {
    pub(crate) fn options(&self) -> TableOptions {
        TableOptions {
            features: self.features.clone(),
            format: self.input,
            ..self.columns.options()
        }
    }
}

/// The heading of the options that matter for images only.
const IMAGES: &str = "Options for images";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EncoderChoice {
    /// The encoder, as in dinov2-small or dinov2-small:size=448 (see `genus encoders list`), or the folder of a training. By default
    /// it is the one inside of this program; `train` and `bench paper` take that of the paper, `assign` that of the taxonomy
    #[arg(long, value_name = "ENCODER", help_heading = IMAGES)]
    pub(crate) encoder: Option<String>,
    /// The encoder's weights, .safetensors or PyTorch; without it they are its own, or from the Hugging Face hub or its cache
    #[arg(long, value_name = "FILE", help_heading = IMAGES)]
    pub(crate) weights: Option<PathBuf>,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ImageArgs {
    #[command(flatten)]
    pub(crate) encoder: EncoderChoice,
    /// Precision of the matrix products, f32 by default. bf16 is faster where the processor has it (AVX512-BF16 or AMX), for vision
    /// transformers only; features of one are never compared with those of the other
    #[arg(long, value_name = "f32|bf16", help_heading = IMAGES)]
    pub(crate) precision: Option<Precision>,
    /// Embed every image, and remember none
    #[arg(long, help_heading = IMAGES)]
    pub(crate) no_cache: bool,
    /// Fail at the first image that cannot be read, instead of skipping it
    #[arg(long, help_heading = IMAGES)]
    pub(crate) strict: bool,
    /// Skip images of more than so many million pixels
    #[arg(long, value_parser = ranged::<u64>("max-megapixels"), default_value_t = 100, value_name = "N", help_heading = IMAGES)]
    pub(crate) max_megapixels: u64,
    /// Skip image files of more than so many megabytes
    #[arg(long, value_parser = ranged::<u64>("max-file-mb"), default_value_t = 256, value_name = "N", help_heading = IMAGES)]
    pub(crate) max_file_mb: u64,
}

impl EncoderChoice {
    /// The same as options, with everything else as it is by default.
    pub(crate) fn options(&self) -> ImageOptions {
        ImageOptions {
            encoder: self.encoder.clone(),
            weights: self.weights.clone(),
            ..ImageOptions::default()
        }
    }
}

/// The same options with the encoder of the paper where none is named.
pub(crate) fn of_paper(mut options: ImageOptions) -> ImageOptions {
    options.encoder.get_or_insert_with(|| Model::PAPER.to_owned());
    options
}

impl ImageArgs {
    pub(crate) fn options(&self) -> ImageOptions {
        ImageOptions {
            precision: self.precision,
            cache: match self.no_cache {
                true => CacheChoice::Nowhere,
                false => CacheChoice::User,
            },
            strict: self.strict,
            limits: Limits {
                file_bytes: self.max_file_mb.saturating_mul(1 << 20),
                pixels: self.max_megapixels.saturating_mul(1_000_000),
            },
            ..self.encoder.options()
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum EncodersCommand {
    /// All encoders that have a name
    ///
    /// Parameters and the size of the download are counted from the networks. The speed is shown once it was measured.
    #[command(
        after_help = "Examples:\n  genus encoders list\n  genus encoders list --measure\n  genus encoders list --json"
    )]
    List {
        /// Measure first how fast the encoders at hand are on this machine: a few seconds each, and it is remembered
        #[arg(long)]
        measure: bool,
        /// Print all that is known as JSON
        #[arg(long)]
        json: bool,
    },
    /// What an encoder is, and its fingerprint when its weights are here
    #[command(after_help = "Examples:\n  genus encoders info dinov2-small\n  \
                            genus encoders info vit:heads=6 --weights my_vit.pth")]
    Info {
        /// The encoder, or the folder of a training
        #[arg(value_name = "ENCODER")]
        encoder: String,
        /// The encoder's weights, .safetensors or PyTorch
        #[arg(long, value_name = "FILE")]
        weights: Option<PathBuf>,
        /// How precisely the network is computed
        #[arg(long, value_name = "f32|bf16")]
        precision: Option<Precision>,
    },
    /// Fetch the weights of an encoder from the Hugging Face hub, and say where they are
    #[command(after_help = "Examples:\n  genus encoders pull dino-vitb16\n\n\
                      HF_HOME, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE are honoured.")]
    Pull {
        /// The encoder
        #[arg(value_name = "ENCODER")]
        encoder: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// How many images are remembered, for each encoder
    #[command(after_help = "Examples:\n  genus cache info")]
    Info,
    /// Forget all features
    #[command(after_help = "Examples:\n  genus cache clear")]
    Clear,
}

/// Run the paper's experiments
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  genus bench main --features cub.npz --split cub.split.json
  genus bench main --features cub.npz --shot 1 --methods shc,ukc --json cub.json
  genus bench realtime --data cub200 --data-root /data --encoder dinov2-small
  genus bench paper --data-root /data --out results"
)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) experiment: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// All methods on episodes of one shape: the main table, and calibrated, the default of discover
    #[command(
        after_help = "Examples:\n  genus bench main --features cub.npz --split cub.split.json\n  \
                            genus bench main --data cub200 --data-root /data --encoder runs/cub --shot 1\n  \
                            genus bench main --features cub.npz --methods shc,shc:boost=1.1 --shot 1\n  \
                            genus bench main --features cub.npz --tail 3-24 --outliers 5"
    )]
    Main(EpisodeBench),
    /// Every query judged by itself against the known classes
    #[command(
        after_help = "Examples:\n  genus bench realtime --features cub.npz --split cub.split.json --svg trade-off.svg"
    )]
    Realtime(EpisodeBench),
    /// Large tasks: cluster a subset, assign the rest
    #[command(
        mut_arg("tail", |arg| arg.hide(true)),
        mut_arg("outliers", |arg| arg.hide(true)),
        after_help = "Examples:\n  genus bench large --features cifar.npz --subset 400 --tasks 10\n  \
                            genus bench large --features cifar.npz --authors --tasks 1"
    )]
    Large {
        #[command(flatten)]
        common: BenchCommon,
        /// How many queries are clustered
        #[arg(long, value_parser = ranged::<NonZeroUsize>("subset"), default_value = "400", value_name = "N")]
        subset: NonZeroUsize,
        /// How many tasks are averaged
        #[arg(long, value_parser = ranged::<std::num::NonZeroU64>("tasks"), default_value = "10", value_name = "N", visible_alias = "episodes")]
        tasks: std::num::NonZeroU64,
        #[command(flatten)]
        second_step: SecondStep,
        /// Take the data in its own order and cluster the first 40 items a class, as the authors' code does
        #[arg(long)]
        authors: bool,
    },
    /// Accuracy against the number of queries of a class
    #[command(
        after_help = "Examples:\n  genus bench queries --features cub.npz --query 1,5,10,15,20 --svg queries.svg"
    )]
    Queries {
        #[command(flatten)]
        common: BenchCommon,
        /// Numbers of queries of a class; by default 1,5,10,15,20,25,30 as far as the data goes
        #[arg(long, value_parser = ranged::<NonZeroUsize>("query"), value_name = "Q,…", value_delimiter = ',')]
        query: Vec<NonZeroUsize>,
        #[command(flatten)]
        episodes: Episodes,
    },
    /// Piles as people have them: items a class, long tails, bursts, numbers of examples, outliers
    #[command(
        after_help = "Examples:\n  genus bench piles --features birds.npz --svg piles.svg --report piles.html\n  \
                            genus bench piles --features birds.npz --half first --with-base\n  \
                            genus bench piles --features birds.npz --classes 48 --way 10 --items 200 --vary items,tail"
    )]
    Piles(Box<PilesBench>),
    /// A pile item by item in several random orders, as `assign --grow` takes it, beside the pile at once and OCD
    #[command(
        after_help = "Examples:\n  genus bench stream --features birds.npz --svg stream.svg\n  \
                            genus bench stream --features birds.npz --split birds.split.json --tail 6-200 --orders 10"
    )]
    Stream(Box<StreamBench>),
    /// More known and new classes: 5 and 20, 10 and 20, 10 and 40
    #[command(after_help = "Examples:\n  genus bench tasks --features cub.npz --split cub.split.json")]
    Tasks(EpisodeBench),
    /// The calibrated method without one part of it at a time, and SHC and UKC on its features
    #[command(
        after_help = "Examples:\n  genus bench ablation --features cub.npz --split cub.split.json\n  \
                            genus bench ablation --features cub.npz --split cub.split.json --tail 3-24 --outliers 5"
    )]
    Ablation(EpisodeBench),
    /// UKC against α
    #[command(
        after_help = "Examples:\n  genus bench alpha --features cub.npz --alpha 1.2,1.4,1.6\n  \
                            genus bench alpha --features cub.npz --methods ukc:first-alpha=1.4"
    )]
    Alpha {
        #[command(flatten)]
        bench: EpisodeBench,
        /// Values of α
        #[arg(long, value_name = "A,…", value_delimiter = ',', default_values_t = ALPHAS)]
        alpha: Vec<f64>,
    },
    /// SHC against t
    #[command(after_help = "Examples:\n  genus bench threshold --features cub.npz --threshold 0,1,2,3,4")]
    Threshold {
        #[command(flatten)]
        bench: EpisodeBench,
        /// Values of t
        #[arg(long, value_parser = ranged::<usize>("threshold"), value_name = "T,…", value_delimiter = ',', default_values_t = THRESHOLDS)]
        threshold: Vec<usize>,
    },
    /// Several encoders on the same images
    #[command(
        after_help = "Examples:\n  genus bench backbones --data cub200 --data-root /data --encoders dino-vitb16,resnet18,resnet50\n  \
                            genus bench backbones --images birds/ --encoders resnet18@my.pth,runs/birds"
    )]
    Backbones {
        #[command(flatten)]
        bench: EpisodeBench,
        /// The encoders, each a name, the folder of a training, or either with its weights as in resnet18@FILE
        #[arg(long, value_name = "A,B,…", value_delimiter = ',', required = true)]
        encoders: Vec<String>,
    },
    /// Encoders trained on one data set, tested on others
    #[command(
        after_help = "Examples:\n  genus bench transfer --data cub200,cars --data-root /data --trained cub200=runs/cub,cars=runs/cars"
    )]
    Transfer {
        /// The data sets to test on
        #[arg(long, value_name = "A,B,…", value_delimiter = ',', required = true)]
        data: Vec<String>,
        #[command(flatten)]
        data_root: DataRoot,
        /// Which of the data sets' images are taken
        #[arg(long, default_value_t, value_name = "train|test|all|paper")]
        images: Images,
        /// The folders of the trainings, with the data set that each was trained on
        #[arg(long, value_name = "NAME=RUN,…", value_delimiter = ',', required = true)]
        trained: Vec<String>,
        #[command(flatten)]
        trial: TrialArgs,
        #[command(flatten)]
        results: Results,
        #[command(flatten)]
        image_options: ImageArgs,
        #[command(flatten)]
        episodes: Episodes,
        /// Queries of a class
        #[arg(long, value_parser = ranged::<usize>("query"), default_value_t = 15, value_name = "Q", conflicts_with = "tail")]
        query: usize,
    },
    /// Draw single episodes: maps of what was found, and confusion matrices
    #[command(after_help = "Examples:\n  genus bench plot --features cub.npz --split cub.split.json --out figures")]
    Plot {
        #[command(flatten)]
        source: BenchSource,
        #[command(flatten)]
        trial: TrialArgs,
        /// The folder for the drawings
        #[arg(long, short, value_name = "DIR")]
        out: PathBuf,
        /// How many episodes are drawn
        #[arg(long, value_parser = ranged::<std::num::NonZeroU64>("episodes"), default_value = "4", value_name = "N")]
        episodes: std::num::NonZeroU64,
        /// Queries of a class
        #[arg(long, value_parser = ranged::<usize>("query"), default_value_t = 15, value_name = "Q", conflicts_with = "tail")]
        query: usize,
        /// How points are laid out in the plane
        #[arg(long, default_value_t = Projection::Tsne, value_name = "tsne|pca")]
        projection: Projection,
        #[command(flatten)]
        page: PageFile,
    },
    /// Which data sets are on disk, and how many images they have beside the paper's counts
    #[command(after_help = "Examples:\n  genus bench data --data-root /data\n  genus bench data --data cub200")]
    Data {
        #[command(flatten)]
        data_root: DataRoot,
        /// The data sets to look for; by default all
        #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
        data: Vec<String>,
    },
    /// Everything that the disk allows, into one folder; goes on where it was interrupted
    #[command(after_help = "Examples:\n  genus bench paper --data-root /data --out results\n  \
                            genus bench paper --data-root /data --data cub200 --encoder efficientnet-lite2 --weights lite2.pth\n  \
                            genus bench paper --data-root /data --trained cub200=runs/cub --encoders resnet18,resnet50")]
    Paper(Box<PaperBench>),
}

/// Piles as people have them.
#[derive(Debug, clap::Args)]
pub(crate) struct PilesBench {
    #[command(flatten)]
    pub(crate) source: BenchSource,
    #[command(flatten)]
    pub(crate) half: HalfArgs,
    /// Classes of a pile
    #[arg(long, value_parser = ranged::<NonZeroUsize>("classes"), default_value = "24", value_name = "N")]
    pub(crate) classes: NonZeroUsize,
    /// Known classes among them
    #[arg(long, value_parser = ranged::<usize>("way"), default_value_t = 8, value_name = "N")]
    pub(crate) way: usize,
    /// Labelled examples of a known class, where these are not what is varied
    #[arg(long, value_parser = ranged::<usize>("shot"), default_value_t = 5, value_name = "K")]
    pub(crate) shot: usize,
    /// Numbers of items of a class, examples not counted; what else is varied is varied at the middle one
    #[arg(long, value_parser = ranged::<NonZeroUsize>("items"), value_name = "Q,…", value_delimiter = ',', default_values = ["20", "60", "200"])]
    pub(crate) items: Vec<NonZeroUsize>,
    /// The fewest and the most items of a class in the pile with a long tail, on a geometric ladder
    #[arg(long, default_value = "6-200", value_name = "LOW-HIGH")]
    pub(crate) tail: Tail,
    /// Frames of a burst. They are made in the space of features: the row itself, and rows that lie near it
    #[arg(long, value_parser = ranged::<NonZeroUsize>("bursts"), default_value = "3", value_name = "N")]
    pub(crate) bursts: NonZeroUsize,
    /// Numbers of examples of a known class
    #[arg(long, value_parser = ranged::<NonZeroUsize>("examples"), value_name = "K,…", value_delimiter = ',', default_values = ["1", "5", "10"])]
    pub(crate) examples: Vec<NonZeroUsize>,
    /// Items of a pile that belong nowhere, each of another class that is not in the pile; they are not scored
    #[arg(long, value_parser = ranged::<NonZeroUsize>("outliers"), default_value = "10", value_name = "N")]
    pub(crate) outliers: NonZeroUsize,
    /// What is varied: items, tail, bursts, examples, outliers; by default everything
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub(crate) vary: Vec<PileVariable>,
    /// How many piles of each kind are averaged
    #[arg(long, value_parser = ranged::<std::num::NonZeroU64>("draws"), default_value = "3", value_name = "N", visible_alias = "episodes")]
    pub(crate) draws: std::num::NonZeroU64,
    #[command(flatten)]
    pub(crate) choice: MethodChoice,
    #[command(flatten)]
    pub(crate) results: Results,
}

/// A pile item by item.
#[derive(Debug, clap::Args)]
pub(crate) struct StreamBench {
    #[command(flatten)]
    pub(crate) source: BenchSource,
    #[command(flatten)]
    pub(crate) half: HalfArgs,
    /// Classes of a pile
    #[arg(long, value_parser = ranged::<NonZeroUsize>("classes"), default_value = "24", value_name = "N")]
    pub(crate) classes: NonZeroUsize,
    /// Known classes among them
    #[arg(long, value_parser = ranged::<usize>("way"), default_value_t = 8, value_name = "N")]
    pub(crate) way: usize,
    /// Labelled examples of a known class
    #[arg(long, value_parser = ranged::<usize>("shot"), default_value_t = 5, value_name = "K")]
    pub(crate) shot: usize,
    /// Items of a class
    #[arg(long, value_parser = ranged::<NonZeroUsize>("items"), default_value = "60", value_name = "Q", conflicts_with = "tail")]
    pub(crate) items: NonZeroUsize,
    /// A long tail: few items of some classes and many of others, on a geometric ladder
    #[arg(long, value_name = "LOW-HIGH")]
    pub(crate) tail: Option<Tail>,
    /// How many random orders the items of a pile come in
    #[arg(long, value_parser = ranged::<std::num::NonZeroU64>("orders"), default_value = "5", value_name = "N")]
    pub(crate) orders: std::num::NonZeroU64,
    /// How many times it is looked at where everything is, the last time at the end
    #[arg(long, value_parser = ranged::<NonZeroUsize>("looks"), default_value = "8", value_name = "N")]
    pub(crate) looks: NonZeroUsize,
    /// How many piles are averaged
    #[arg(long, value_parser = ranged::<std::num::NonZeroU64>("draws"), default_value = "1", value_name = "N", visible_alias = "episodes")]
    pub(crate) draws: std::num::NonZeroU64,
    #[command(flatten)]
    pub(crate) choice: MethodChoice,
    #[command(flatten)]
    pub(crate) results: Results,
}

/// Which of the classes are drawn from.
#[derive(Debug, clap::Args)]
pub(crate) struct HalfArgs {
    /// Draw from one half of the classes only: first, to choose something on, or second, to measure it on. Classes
    /// go to the two in turn, whatever the seed
    #[arg(long, value_name = "first|second")]
    pub(crate) half: Option<Half>,
    /// Learn from the other half: its classes are base classes
    #[arg(long, requires = "half")]
    pub(crate) with_base: bool,
}

/// Everything that the disk allows.
#[derive(Debug, clap::Args)]
pub(crate) struct PaperBench {
    #[command(flatten)]
    pub(crate) data_root: DataRoot,
    /// The data sets; by default those of the paper
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub(crate) data: Vec<String>,
    /// Which of the data sets' images are taken
    #[arg(long, default_value_t, value_name = "train|test|all|paper")]
    pub(crate) images: Images,
    /// The folder of the results
    #[arg(long, short, default_value = "results", value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) image_options: ImageArgs,
    /// Train the encoder on the base classes of every data set first, in OUT/runs, for so many epochs
    #[arg(long, value_parser = ranged::<u64>("epochs"), value_name = "EPOCHS", num_args = 0..=1, default_missing_value = "50")]
    pub(crate) train: Option<u64>,
    /// Folders of trainings, with the data set that each was trained on
    #[arg(long, value_name = "NAME=RUN,…", value_delimiter = ',')]
    pub(crate) trained: Vec<String>,
    /// Encoders for the table of backbones
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub(crate) encoders: Vec<String>,
    #[command(flatten)]
    pub(crate) views: ViewCount,
    /// Methods of the main, real-time and large-scale tables; by default those of the paper
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub(crate) methods: Vec<String>,
    /// What to do with classes that have too few items: error, or skip them
    #[arg(long, default_value_t = ShortClasses::Skip, value_name = "error|skip")]
    pub(crate) short_classes: ShortClasses,
    #[command(flatten)]
    pub(crate) episodes: Episodes,
    #[command(flatten)]
    pub(crate) page: PageFile,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DataRoot {
    /// The folder that data sets with a name lie in; by default that of GENUS_DATA, or the current one
    #[arg(long, value_name = "DIR")]
    data_root: Option<PathBuf>,
}

impl DataRoot {
    /// The folder.
    pub(crate) fn path(&self) -> PathBuf {
        let named = self.data_root.clone();
        named
            .or_else(|| std::env::var_os("GENUS_DATA").map(PathBuf::from))
            .unwrap_or_else(|| ".".into())
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ViewCount {
    /// Augmented views of every image for the baselines that are trained; by default 2 when one of them runs
    #[arg(long, value_parser = ranged::<usize>("views"), value_name = "N", help_heading = IMAGES)]
    pub(crate) views: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchCommon {
    #[command(flatten)]
    pub(crate) source: BenchSource,
    #[command(flatten)]
    pub(crate) trial: TrialArgs,
    #[command(flatten)]
    pub(crate) results: Results,
}

/// The data of a bench.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchSource {
    /// The feature file, with labels
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present_any = ["images", "data"],
        conflicts_with_all = ["images", "data"]
    )]
    pub(crate) features: Option<PathBuf>,
    /// A data set that has a name, as in cub200; see `genus bench data`
    #[arg(long, value_name = "NAME", conflicts_with = "split")]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) data_root: DataRoot,
    /// Images: a folder with one folder a class, or a manifest with labels; with --data which of its images: train, test, all
    /// or paper
    #[arg(long, value_name = "DIR|PART")]
    pub(crate) images: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    /// The columns of features, as in pca1,pca2 or 'pca*', or one column of lists
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', help_heading = TABLES)]
    pub(crate) feature_columns: Vec<String>,
    #[command(flatten)]
    pub(crate) image_options: ImageArgs,
    #[command(flatten)]
    pub(crate) views: ViewCount,
    /// The folder of a training with --objective ocd; without it only OCD's head is trained, on the features
    #[arg(long, value_name = "RUN", help_heading = IMAGES, conflicts_with = "features")]
    pub(crate) ocd: Option<PathBuf>,
    /// Class split, JSON {"base": [...], "novel": [...]}; episodes are drawn from the novel classes, without it from all
    #[arg(long, value_name = "FILE")]
    pub(crate) split: Option<PathBuf>,
    /// Which of the paper's data sets a feature file is of, to print the paper's figures beside
    #[arg(long, value_name = "NAME", conflicts_with = "data")]
    pub(crate) paper_set: Option<String>,
}

impl BenchSource {
    /// The data, as the lab wants it.
    pub(crate) fn source(&self, calibration: Option<&Path>) -> Result<DataSource, Failure> {
        let input = match (&self.data, self.features.as_ref().or(self.images.as_ref())) {
            (Some(name), _) => DataInput::Named {
                name: name.clone(),
                root: self.data_root.path(),
                images: match &self.images {
                    None => Images::default(),
                    Some(text) => text
                        .to_string_lossy()
                        .parse()
                        .map_err(|e: ParseImagesError| Failure::Usage(e.to_string()))?,
                },
            },
            (None, Some(path)) => DataInput::Path(path.clone()),
            (None, None) => {
                return Err(Failure::Usage(
                    "name a feature file with --features, images with --images, or a data set with --data".into(),
                ));
            }
        };
        Ok(DataSource {
            input,
            split: self.split.clone(),
            paper_set: self.paper_set.clone(),
            calibration: calibration.map(Path::to_owned),
            tables: TableOptions {
                features: self.feature_columns.clone(),
                ..self.columns.options()
            },
            embedding: EmbeddingOptions {
                images: self.image_options.options(),
                views: self.views.views,
                ocd: self.ocd.clone(),
            },
        })
    }
}

/// What all experiments on episodes can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct TrialArgs {
    #[command(flatten)]
    pub(crate) classes: Classes,
    /// A long tail: few queries of some classes and many of others, on a geometric ladder; by itself 3-24
    #[arg(long, value_name = "LOW-HIGH", num_args = 0..=1, default_missing_value = "3-24")]
    pub(crate) tail: Option<Tail>,
    /// Queries that belong nowhere, each of another class that is not in the episode; they are not scored
    #[arg(long, value_parser = ranged::<usize>("outliers"), default_value_t = 0, value_name = "N")]
    pub(crate) outliers: usize,
    #[command(flatten)]
    pub(crate) choice: MethodChoice,
}

/// What is run.
#[derive(Debug, clap::Args)]
pub(crate) struct MethodChoice {
    /// Methods with their parameters, as in shc,ukc:alpha=1.3; by default those of the paper's table and calibrated, which
    /// discover uses
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub(crate) methods: Vec<String>,
    /// What the method calibrated knows of the features (genus calibrate); by default it learns from the base classes
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) prototypes: PrototypeKind,
}

/// How often it is run, and where the results go.
#[derive(Debug, clap::Args)]
pub(crate) struct Results {
    /// Run with so many seeds, from --seed on, and give the means over them
    #[arg(long, value_parser = ranged::<NonZeroUsize>("seeds"), default_value = "1", value_name = "N")]
    pub(crate) seeds: NonZeroUsize,
    /// Write the results as JSON too
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the main table as CSV too
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the main table for LaTeX too
    #[arg(long, value_name = "FILE")]
    pub(crate) latex: Option<PathBuf>,
    /// Draw the accuracies into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageFile,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PageFile {
    /// Write one self-contained page (HTML) with the tables, the charts and this command too
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// The classes of an episode.
#[derive(Debug, clap::Args)]
pub(crate) struct Classes {
    /// Known classes of an episode
    #[arg(long, value_parser = ranged::<usize>("way"), default_value_t = 5, value_name = "N")]
    pub(crate) way: usize,
    /// Labelled examples of a known class
    #[arg(long, value_parser = ranged::<usize>("shot"), default_value_t = 5, value_name = "K")]
    pub(crate) shot: usize,
    /// New classes of an episode
    #[arg(long, value_parser = ranged::<usize>("new"), default_value_t = 5, value_name = "M")]
    pub(crate) new: usize,
    /// What to do with classes that have too few items: error, or skip them
    #[arg(long, default_value_t = ShortClasses::Error, value_name = "error|skip")]
    pub(crate) short_classes: ShortClasses,
}

/// What experiments on episodes of one shape have in common.
#[derive(Debug, clap::Args)]
pub(crate) struct EpisodeBench {
    #[command(flatten)]
    pub(crate) common: BenchCommon,
    /// Queries of a class
    #[arg(long, value_parser = ranged::<usize>("query"), default_value_t = 15, value_name = "Q", conflicts_with = "tail")]
    pub(crate) query: usize,
    #[command(flatten)]
    pub(crate) episodes: Episodes,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Episodes {
    /// How many episodes are averaged
    #[arg(long, value_parser = ranged::<std::num::NonZeroU64>("episodes"), default_value = "500", value_name = "N")]
    pub(crate) episodes: std::num::NonZeroU64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PrototypeKind {
    /// How examples become a class's prototype: raw-mean, unit-mean or unit-mean-unnormalised
    #[arg(long = "proto", default_value_t = Prototypes::default(), value_name = "KIND")]
    pub(crate) kind: Prototypes,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SecondStep {
    /// Passes of k-means over all items before they are assigned
    #[arg(long, value_parser = ranged::<usize>("refine"), default_value_t = 0, value_name = "N")]
    pub(crate) refine: usize,
    /// How centres are scaled before items are assigned: cosine, or authors-columns as in the authors' code
    #[arg(long, default_value_t = CentreNorm::Cosine, value_name = "NORM")]
    pub(crate) centre_norm: CentreNorm,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// Write the results into this folder instead of the standard output
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Format of the assignments: csv, jsonl or parquet
    #[arg(long, short, default_value_t = Format::Csv, value_name = "FORMAT")]
    pub(crate) format: Format,
    /// Put an apostrophe before names in CSV that a spreadsheet would take for a formula (= + - @)
    #[arg(long)]
    pub(crate) spreadsheet: bool,
}

/// The heading of what the report is told.
const REPORT: &str = "Report (DIR/report.html, with --out)";

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Leave the report out
    #[arg(long, help_heading = REPORT, requires = "out", conflicts_with_all = ["truth", "text"])]
    pub(crate) no_report: bool,
    /// What the items really are: a table with the columns id and truth (or label), or a column of the pile; label for a folder
    /// of images with one folder a class. The report then says how right the result is
    #[arg(long, value_name = "FILE|COLUMN", help_heading = REPORT, requires = "out")]
    pub(crate) truth: Option<String>,
    /// What the items say: a table with the columns id and text, or a column of the pile
    #[arg(long, value_name = "FILE|COLUMN", help_heading = REPORT, requires = "out")]
    pub(crate) text: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Next steps, for images and tables whose ids are paths")]
pub(crate) struct NextStepsArgs {
    /// Make a folder for every category in this one, with links to its files; unsure ones are in unsure/, by their best guess.
    /// Nothing is moved or replaced, and links that are there already stay
    #[arg(long, value_name = "DIR")]
    pub(crate) sort_into: Option<PathBuf>,
    /// What --sort-into makes: symbolic links, hard links or copies
    #[arg(long, default_value_t = LinkKind::Sym, value_name = "sym|hard|copy", requires = "sort_into")]
    pub(crate) link: LinkKind,
    /// Let the ids of a table name files outside of its folder and of the current one
    #[arg(long)]
    pub(crate) allow_outside: bool,
    /// Write files for another program too; may be given several times. label-studio (tasks with predictions) and fiftyone go
    /// into --out, imagefolder (metadata.csv for Hugging Face datasets) into --sort-into
    #[arg(long, value_name = "label-studio|fiftyone|imagefolder")]
    pub(crate) export: Vec<Export>,
}

/// See Genus sort pictures into kinds, most of them never labelled
///
/// 362 emoji of 14 kinds ship inside the binary. Five kinds are known from five pictures each, the other nine are never named. They
/// go the way of your own photographs: through the encoder inside of this program into groups. No data and no network needed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  genus demo\n  genus demo --seed 3\n  genus demo --out emoji\n  genus demo digits")]
pub(crate) struct DemoArgs {
    /// What is sorted: emoji by default, or 1,797 handwritten digits by their pixels
    #[arg(value_name = "emoji|digits")]
    pub(crate) pile: Option<DemoPile>,
    /// Write what was found as a page to look at into this folder: DIR/report.html
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// What a demo sorts.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum DemoPile {
    Emoji,
    Digits,
}
