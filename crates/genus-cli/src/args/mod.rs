//! The arguments of the program.
//!
//! Each command defines its own in its file and turns them into options before it runs (see [`Arguments`]); arguments of
//! several commands are in [`shared`]. One definition feeds parsing, help, completions and man pages.

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
    /// What the command runs with: the options of the library, and what only a terminal needs.
    type Options;

    /// Turns arguments into options; `seed` is the global option.
    fn options(self, seed: u64) -> Result<Self::Options, Failure>;

    /// Runs the command.
    fn run(options: Self::Options, terminal: Terminal) -> Result<(), Failure>;
}

/// Defines all commands: parsing, the headings of the help, and dispatch. `..` includes an enum of commands.
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
    "Sort a pile" => Demo(crate::demo::DemoArgs), Discover(crate::discover::DiscoverArgs), Assign(crate::assign::AssignArgs),
        Bulk(crate::bulk::BulkArgs);
    "Collections" => ..Collection(crate::collection::CollectionCommand),
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
  genus demo                                          try it, no data needed
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
Limits on input files, which keep memory use bounded; errors name the file and the limit:
  table rows          1,048,576 features; 16 MiB in .csv, .tsv and .jsonl, also for headers
  texts in tables     256 KiB in .parquet, .feather and .npz; 1 GiB for a column of .npz
  Parquet pages       256 MiB; 1 GiB for the pages of all features at a time, and for an Arrow batch
  unpacked tables     1 GiB, or 256 times the file size
  Genus's own files   64 MiB of text, 256 MiB for a calibration, 4 GiB for other tensors
  images              --max-file-mb, --max-megapixels; larger than 16 megapixels one at a time
All numeric options have a range. Devices are refused, and a pipe is read once."
    };
}

macro_rules! exit_codes {
    () => {
        "\
Exit codes:
  0    success
  1    failure; the message says what to do
  2    wrong usage
  3    success, but some files were skipped (--summary names them)
  130  interrupted (Ctrl-C), 143 terminated (SIGTERM)"
    };
}

/// Sorts items into known classes and new categories.
///
/// Given a few labelled examples of some classes and a pile of unlabelled items, Genus finds the items of the known classes and
/// groups the rest into new categories, without being told how many there are.
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
    /// Parses the command line; exits on `--help` and on errors.
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

    /// The command with its subcommands grouped in the help, which clap cannot do itself.
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
            // The usage would not mention hidden commands.
            .override_usage("genus [OPTIONS] <COMMAND>")
            .help_template(template)
    }
}

/// What every command has.
#[derive(Debug, clap::Args)]
struct GlobalArgs {
    /// Number of threads; by default all cores. Results do not depend on it
    #[arg(long, value_parser = ranged::<NonZeroUsize>("threads"), global = true, value_name = "N", help_heading = GLOBAL)]
    threads: Option<NonZeroUsize>,
    /// Random seed; the same seed gives the same bytes
    #[arg(long, global = true, default_value_t = 0, value_name = "N", help_heading = GLOBAL)]
    seed: u64,
    /// Print errors only: no progress, no summary
    #[arg(long, short, global = true, help_heading = GLOBAL)]
    quiet: bool,
    /// Write a summary of the run as JSON: counts, times, skipped files, exit code
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    summary: Option<PathBuf>,
}
