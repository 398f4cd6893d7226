//! The arguments of the program.
//!
//! They are what was typed and nothing more. A command has its own in its file, where they become the options that it runs with
//! (see [`Arguments`]); those that several commands have are in [`shared`]. One definition feeds parsing, help, completions and
//! manual pages.

pub(crate) mod shared;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::builder::styling::{AnsiColor, Styles};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::failure::Failure;
use crate::say::Terminal;
use shared::ranged;

/// The arguments of a command.
pub(crate) trait Arguments {
    /// What they mean: the options of the library, and what only a terminal needs. All that the command sees.
    type Options;

    /// Makes options of arguments; `seed` is that of the whole program.
    fn options(self, seed: u64) -> Result<Self::Options, Failure>;

    /// Runs the command.
    fn run(options: Self::Options, terminal: Terminal) -> Result<(), Failure>;
}

/// Makes the commands of a table: what is parsed, what the help lists under each heading, and what runs. After `..` stand several
/// commands of one family.
macro_rules! commands {
    ($($heading:literal => $(..$family:ident($group:ty),)? $($name:ident($args:ty)),*;)*) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $($(#[command(flatten)] $family(Box<$group>),)? $($name(Box<$args>),)*)*
        }

        impl Command {
            fn run(self, seed: u64, terminal: Terminal) -> Result<(), Failure> {
                match self {
                    $($(Command::$family(args) => run(*args, seed, terminal),)?
                    $(Command::$name(args) => run(*args, seed, terminal),)*)*
                }
            }

            /// The headings of the help, with the names of the commands under each.
            fn headings() -> Vec<(&'static str, Vec<String>)> {
                vec![$(($heading, {
                    let family: Option<Vec<String>> = None
                        $(.or(Some(names(<$group>::augment_subcommands(clap::Command::default())))))?;
                    let others = [$(stringify!($name)),*].map(str::to_lowercase);
                    family.unwrap_or_default().into_iter().chain(others).collect()
                })),*]
            }
        }
    };
}

commands! {
    "Sort once" => Demo(crate::demo::DemoArgs), Discover(crate::discover::DiscoverArgs), Assign(crate::assign::AssignArgs);
    "A collection" => ..Collection(crate::collection::CollectionCommand),
        Serve(crate::serve::ServeArgs), Token(crate::serve::TokenArgs);
    "Encoders" => Embed(crate::embed::EmbedArgs), Encoders(crate::encoders::EncodersArgs), Cache(crate::cache::CacheArgs),
        Train(crate::train::TrainArgs);
    "Research" => Calibrate(crate::calibrate::CalibrateArgs), Bench(crate::bench::BenchArgs), Methods(crate::methods::MethodsArgs);
    "Other" => Completions(crate::completions::CompletionsArgs), Man(crate::man::ManArgs);
}

fn run<A: Arguments>(args: A, seed: u64, terminal: Terminal) -> Result<(), Failure> {
    A::run(args.options(seed)?, terminal)
}

fn names(command: clap::Command) -> Vec<String> {
    command
        .get_subcommands()
        .map(|found| found.get_name().to_owned())
        .collect()
}

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
    command: Command,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Args {
    /// What was typed; the program ends here where it was help that was asked for, or where it makes no sense.
    pub(crate) fn read() -> Self {
        Self::from_arg_matches(&Self::grouped().get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// The file for the summary of the run.
    pub(crate) fn summary(&self) -> Option<&Path> {
        self.global.summary.as_deref()
    }

    /// Runs the command.
    pub(crate) fn run(self) -> Result<(), Failure> {
        if let Some(threads) = self.global.threads {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads.get())
                .build_global()
                .map_err(|e| Failure::failed(format!("cannot start {threads} threads: {e}")))?;
        }
        let terminal = Terminal {
            quiet: self.global.quiet,
        };
        self.command.run(self.global.seed, terminal)
    }

    /// The command whose help has the commands in groups, which clap has no way to say.
    fn grouped() -> clap::Command {
        let command = Args::command();
        let width = names(command.clone()).iter().map(String::len).max().unwrap_or(0);
        let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
        let mut text = String::new();
        for (heading, names) in Command::headings() {
            text += &format!("{header}{heading}:{header:#}\n");
            for name in names {
                let about = command.find_subcommand(&name).and_then(clap::Command::get_about);
                let about = about.map(ToString::to_string).unwrap_or_default();
                text += &format!("  {literal}{name:<width$}{literal:#}  {about}\n");
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

/// What every command has.
#[derive(Debug, clap::Args)]
struct GlobalArgs {
    /// Number of threads; all cores by default. Results do not depend on it
    #[arg(long, value_parser = ranged::<NonZeroUsize>("threads"), global = true, value_name = "N", help_heading = GLOBAL)]
    threads: Option<NonZeroUsize>,
    /// Seed of everything random; the same seed gives the same bytes
    #[arg(long, global = true, default_value_t = 0, value_name = "N", help_heading = GLOBAL)]
    seed: u64,
    /// No progress and no summary, only errors
    #[arg(long, short, global = true, help_heading = GLOBAL)]
    quiet: bool,
    /// Write what the run did as JSON: counts, times, what was skipped, how it ended
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    summary: Option<PathBuf>,
}
