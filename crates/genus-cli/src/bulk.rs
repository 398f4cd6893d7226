//! `genus bulk`: piles of any size in shards that any scheduler can run.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use genus::text::{plural, thousands};
use genus::{CalibrationFile, Length, MethodSpec, Progress as _};
use genus_bulk::{
    BulkError, Check, Estimate, Job, PlanOptions, Ran, Reduced, Round, Runner, Status, Summary, Target, plan,
};
use genus_data::Format;
use serde_json::json;

use crate::args::Arguments;
use crate::args::shared::TableArgs;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::say::{self, Terminal};

/// How often `status --watch` looks.
const WATCH_EVERY: Duration = Duration::from_secs(2);

/// Sort piles of any size, in shards that any scheduler can run
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  genus bulk plan embeddings/ --taxonomy result --out sorted\n  genus bulk run sorted --all\n  \
                        genus bulk verify sorted"
)]
pub(crate) struct BulkArgs {
    #[command(subcommand)]
    command: BulkCommand,
}

#[derive(Debug, Subcommand)]
enum BulkCommand {
    Plan(Box<PlanArgs>),
    Run(RunArgs),
    /// End a round all of whose shards are done: counts, summary and taxonomy, or the beginning of the next round
    #[command(after_help = "Examples:\n  genus bulk reduce sorted")]
    Reduce(JobArgs),
    /// Look whether every row is there once and every file is what it was published as; exit code 1 where not
    #[command(after_help = "Examples:\n  genus bulk verify sorted")]
    Verify(JobArgs),
    Status(StatusArgs),
}

/// Plan a job: find the inputs, cut them into shards, and take the output place
///
/// Inputs are feature files, folders of them, or patterns such as 'parts/*.parquet', on this machine or, where the program was built
/// for that, at addresses such as 's3://bucket/parts/*.parquet'.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  genus bulk plan 'embeddings/*.parquet' --taxonomy result --out sorted
  genus bulk plan embeddings/ --discover --out sorted
  genus bulk plan embeddings/ --discover --support labelled.csv --out sorted")]
pub(crate) struct PlanArgs {
    /// What is read
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<String>,
    /// Where everything is written: a new folder or address
    #[arg(long, value_name = "PLACE")]
    out: String,
    /// Assign to the taxonomy of this folder, made by `genus discover --out`
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "discover",
        conflicts_with = "discover"
    )]
    taxonomy: Option<PathBuf>,
    /// A calibration, for a taxonomy that has none of its own
    #[arg(long, value_name = "FILE", requires = "taxonomy")]
    calibration: Option<PathBuf>,
    /// Discover the categories first, in a sample and then in all rows
    #[arg(long)]
    discover: bool,
    /// Labelled examples of known classes, as a table
    #[arg(long, value_name = "FILE", requires = "discover")]
    support: Option<PathBuf>,
    /// The method of the discovery, as in `genus discover`
    #[arg(long, value_name = "METHOD", default_value = "calibrated", requires = "discover")]
    method: MethodSpec,
    /// Items that one machine discovers at once
    #[arg(long, value_name = "N", default_value_t = PlanOptions::SAMPLE, requires = "discover")]
    sample: usize,
    /// Passes of k-means over all rows, each of which may add categories of what fits nothing
    #[arg(long, value_name = "N", default_value_t = PlanOptions::PASSES, requires = "discover")]
    passes: usize,
    /// The form of the assignments: parquet, csv or jsonl
    #[arg(long, value_name = "FORMAT", default_value_t = Format::Parquet)]
    format: Format,
    /// Megabytes of a shard, about
    #[arg(long, value_name = "MB", default_value_t = PlanOptions::SHARD_BYTES >> 20)]
    shard_mb: u64,
    /// Rows of a shard, at most, where the inputs say how many they have
    #[arg(long, value_name = "N", default_value_t = PlanOptions::SHARD_ROWS)]
    shard_rows: u64,
    /// See every change of an input by a hash of all its bytes, which are then read once more for the plan and for every shard; by
    /// default by its size, its end and blocks all over it
    #[arg(long)]
    check_content: bool,
    /// Do not try a shard to say how long all will take
    #[arg(long)]
    no_estimate: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tables: TableArgs,
}

/// Run shards of a job; those that are done already cost nothing
///
/// The same shard may be run twice, or in two places at once: its result is there once.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("which").required(true).args(["shard", "shards", "all"])),
    after_help = "\
Examples:
  genus bulk run sorted --shard 7
  genus bulk run sorted --shards 0-99
  genus bulk run sorted --all             all that is left, on this machine"
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    job: JobArgs,
    /// One shard
    #[arg(long, value_name = "K")]
    shard: Option<usize>,
    /// The shards from one to another
    #[arg(long, value_name = "A-B", value_parser = range)]
    shards: Option<(usize, usize)>,
    /// All shards that are left, of this round and those after it, each round reduced
    #[arg(long)]
    all: bool,
}

/// Say how far a job has come
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  genus bulk status sorted --watch")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    job: JobArgs,
    /// Go on saying so until the job is done
    #[arg(long)]
    watch: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct JobArgs {
    /// The output place of the job, or its manifest
    #[arg(value_name = "JOB")]
    job: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Reads `3-17`.
fn range(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('-').map(|(first, last)| (first.parse(), last.parse()));
    match numbers {
        Some((Ok(first), Ok(last))) if first <= last => Ok((first, last)),
        _ => Err("it must be two numbers such as 0-99, the first not above the second".to_owned()),
    }
}

pub(crate) enum BulkOptions {
    Plan(Box<PlanCommand>),
    Run(RunArgs),
    Reduce(JobArgs),
    Verify(JobArgs),
    Status(StatusArgs),
}

pub(crate) struct PlanCommand {
    options: PlanOptions,
    /// Whether a shard is tried to say how long all will take.
    estimate: bool,
    json: bool,
}

impl Arguments for BulkArgs {
    type Options = BulkOptions;

    fn options(self, seed: u64) -> Result<BulkOptions, Failure> {
        Ok(match self.command {
            BulkCommand::Plan(args) => BulkOptions::Plan(Box::new(args.options(seed)?)),
            BulkCommand::Run(args) => BulkOptions::Run(args),
            BulkCommand::Reduce(args) => BulkOptions::Reduce(args),
            BulkCommand::Verify(args) => BulkOptions::Verify(args),
            BulkCommand::Status(args) => BulkOptions::Status(args),
        })
    }

    fn run(options: BulkOptions, terminal: Terminal) -> Result<(), Failure> {
        match options {
            BulkOptions::Plan(command) => make_plan(&command, terminal),
            BulkOptions::Run(args) => run_shards(&args, terminal),
            BulkOptions::Reduce(args) => {
                let job = Job::open(&args.job)?;
                let bar = Bar::new(terminal);
                let reduced = job.reduce(&bar)?;
                drop(bar);
                say_reduced(&reduced, &args, terminal)
            }
            BulkOptions::Verify(args) => verify(&args, terminal),
            BulkOptions::Status(args) => status(&args),
        }
    }
}

impl PlanArgs {
    fn options(self, seed: u64) -> Result<PlanCommand, Failure> {
        let target = match self.taxonomy {
            Some(folder) => Target::Taxonomy {
                folder,
                calibration: self.calibration.as_deref().map(CalibrationFile::read).transpose()?,
            },
            None => Target::Discovery {
                method: self.method.to_string(),
                seed,
                sample: self.sample,
                passes: self.passes,
                examples: self.support,
            },
        };
        Ok(PlanCommand {
            estimate: !self.no_estimate,
            json: self.json,
            options: PlanOptions {
                format: self.format,
                tables: self.tables.options(),
                shard_bytes: self.shard_mb.saturating_mul(1 << 20),
                shard_rows: self.shard_rows,
                check: match self.check_content {
                    true => Check::Content,
                    false => Check::Sampled,
                },
                ..PlanOptions::new(self.inputs, self.out, target)
            },
        })
    }
}

fn make_plan(command: &PlanCommand, terminal: Terminal) -> Result<(), Failure> {
    let job = plan(&command.options)?;
    let estimate = match command.estimate {
        true => Some(job.estimate()?),
        false => None,
    };
    let manifest = job.manifest();
    if command.json {
        let value = json!({
            "manifest": job.place().full("manifest.json"),
            "inputs": manifest.inputs.len(),
            "shards": manifest.shards.len(),
            "rounds": manifest.rounds().iter().map(Round::to_string).collect::<Vec<_>>(),
            "bytes": manifest.bytes(),
            "rows": manifest.rows(),
            "rows_a_second": estimate.map(|estimate| estimate.rows_a_second),
            "core_hours": estimate.and_then(|estimate| estimate.core_hours),
        });
        return say::print(&format!("{value:#}\n"));
    }
    if !terminal.quiet {
        let (shards, inputs) = (manifest.shards.len() as u64, manifest.inputs.len() as u64);
        say!(
            "{} {} of {} {}, {}{}",
            thousands(shards),
            plural(shards, "shard", "shards"),
            thousands(inputs),
            plural(inputs, "file", "files"),
            gigabytes(manifest.bytes()),
            manifest
                .rows()
                .map_or(String::new(), |rows| format!(", {} rows", thousands(rows))),
        );
        if let Some(estimate) = &estimate {
            say!("{}", cost(estimate));
        }
        say!("Written to {}", job.place().full("manifest.json"));
    }
    Ok(())
}

/// Bytes for people.
fn gigabytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// What a job will cost, in words.
fn cost(estimate: &Estimate) -> String {
    let rate = format!(
        "{} rows a second on this machine",
        thousands(estimate.rows_a_second as u64)
    );
    let rounds = match estimate.rounds {
        1 => String::new(),
        rounds => format!(" for {rounds} rounds"),
    };
    match estimate.core_hours {
        Some(hours) if hours < 1.0 => format!("About {:.0} core minutes{rounds}: {rate}", (60.0 * hours).max(1.0)),
        Some(hours) => format!("About {hours:.1} core hours{rounds}: {rate}"),
        None => format!("{rate}; how many rows there are is not known"),
    }
}

fn run_shards(args: &RunArgs, terminal: Terminal) -> Result<(), Failure> {
    let job = Job::open(&args.job.job)?;
    let threads = rayon::current_num_threads();
    let last = job.manifest().shards.len() - 1;
    let named = match (args.shard, args.shards) {
        (Some(shard), _) => Some((shard, shard)),
        (None, range) => range,
    };
    if let Some((first, end)) = named {
        if end > last {
            return Err(BulkError::NoShard { shard: end, last }.into());
        }
        let shards: Vec<usize> = (first..=end).collect();
        let runner = Runner::new(&job, None)?;
        let ran = run_round(&runner, &shards, &job, threads, terminal);
        return end_of_run(&ran, &runner, args, terminal);
    }
    loop {
        let runner = Runner::new(&job, None)?;
        let shards = job.missing(runner.round())?;
        let ran = run_round(&runner, &shards, &job, threads, terminal);
        end_of_run(&ran, &runner, args, terminal)?;
        let bar = Bar::new(terminal);
        let reduced = job.reduce(&bar)?;
        drop(bar);
        if let Reduced::Done(_) = reduced {
            return say_reduced(&reduced, &args.job, terminal);
        }
    }
}

fn run_round(runner: &Runner, shards: &[usize], job: &Job, threads: usize, terminal: Terminal) -> Ran {
    let bar = Bar::new(terminal);
    let rows: Option<u64> = shards.iter().map(|&shard| job.manifest().shards[shard].rows()).sum();
    bar.start(
        &format!("{} rows", runner.round()),
        rows.map_or(Length::Unknown, Length::Steps),
    );
    let ran = runner.run(shards, threads, &bar);
    bar.end();
    ran
}

/// Says what became of some shards; fails if any did.
fn end_of_run(ran: &Ran, runner: &Runner, args: &RunArgs, terminal: Terminal) -> Result<(), Failure> {
    for (shard, error) in &ran.failed {
        say!("shard {shard}: {error}");
    }
    let rows: u64 = ran.done.iter().map(|receipt| receipt.rows).sum();
    let rejected: u64 = ran.done.iter().map(|receipt| receipt.rejected).sum();
    if args.job.json && !args.all {
        let value = json!({
            "round": runner.round().to_string(),
            "done": ran.done,
            "before": ran.before,
            "failed": ran.failed.iter().map(|(shard, error)| json!({"shard": shard, "error": error.to_string()})).collect::<Vec<_>>(),
        });
        say::print(&format!("{value:#}\n"))?;
    } else if !terminal.quiet {
        let done = ran.done.len() as u64;
        let mut line = format!(
            "{}: {} {} done, {} rows",
            runner.round(),
            thousands(done),
            plural(done, "shard", "shards"),
            thousands(rows)
        );
        if rejected > 0 {
            line += &format!(", {} could not be used", thousands(rejected));
        }
        if ran.before > 0 {
            line += &format!(", {} done before", thousands(ran.before as u64));
        }
        say!("{line}");
    }
    match ran.failed.len() as u64 {
        0 => Ok(()),
        failed => Err(Failure::failed(format!(
            "{} {} failed; the others are done, and the same command tries these again",
            thousands(failed),
            plural(failed, "shard", "shards")
        ))),
    }
}

fn say_reduced(reduced: &Reduced, args: &JobArgs, terminal: Terminal) -> Result<(), Failure> {
    match reduced {
        Reduced::Next(round) if args.json => say::print(&format!("{:#}\n", json!({"next": round.to_string()}))),
        Reduced::Next(round) => {
            if !terminal.quiet {
                say!("The next round is {round}");
            }
            Ok(())
        }
        Reduced::Done(summary) if args.json => {
            let value = serde_json::to_value(summary).unwrap_or_default();
            say::print(&format!("{value:#}\n"))
        }
        Reduced::Done(summary) => {
            if !terminal.quiet {
                say_summary(summary);
            }
            Ok(())
        }
    }
}

fn say_summary(summary: &Summary) {
    /// Categories that are listed.
    const LISTED: usize = 20;
    say!(
        "{} {} in {} categories, {} unsure{}",
        thousands(summary.rows),
        plural(summary.rows, "row", "rows"),
        summary.categories.len(),
        thousands(summary.unsure),
        match summary.rejected {
            0 => String::new(),
            rejected => format!("; {} could not be used (assignments/rejected)", thousands(rejected)),
        }
    );
    for category in summary.categories.iter().take(LISTED) {
        let line = format!(
            "  {:<5} {:<24} {}",
            category.kind,
            category.name,
            thousands(category.items)
        );
        say!("{}", crate::failure::printable(&line));
    }
    if summary.categories.len() > LISTED {
        say!("  and {} more in counts.csv", summary.categories.len() - LISTED);
    }
}

fn verify(args: &JobArgs, terminal: Terminal) -> Result<(), Failure> {
    let job = Job::open(&args.job)?;
    let verdict = job.verify()?;
    if args.json {
        let value = serde_json::to_value(&verdict).unwrap_or_default();
        say::print(&format!("{value:#}\n"))?;
    } else if !terminal.quiet {
        for problem in &verdict.problems {
            say!("{}", crate::failure::printable(problem));
        }
        say!(
            "{}: {} of {} shards, {} rows, {} could not be used",
            verdict.round,
            verdict.shards - verdict.missing.len(),
            verdict.shards,
            thousands(verdict.rows),
            thousands(verdict.rejected)
        );
    }
    if !verdict.missing.is_empty() {
        return Err(BulkError::Missing {
            round: verdict.round,
            missing: verdict.missing,
            shards: verdict.shards,
        }
        .into());
    }
    match verdict.problems.len() as u64 {
        0 => Ok(()),
        count => Err(Failure::failed(format!(
            "{} {}",
            thousands(count),
            plural(count, "problem", "problems")
        ))),
    }
}

fn status(args: &StatusArgs) -> Result<(), Failure> {
    let job = Job::open(&args.job.job)?;
    loop {
        let status = job.status()?;
        match args.job.json {
            true => {
                let value = serde_json::to_value(&status).unwrap_or_default();
                say::print(&format!("{value}\n"))?;
            }
            false => say::print(&status_text(&status))?,
        }
        if !args.watch || status.is_complete {
            return Ok(());
        }
        std::thread::sleep(WATCH_EVERY);
    }
}

fn status_text(status: &Status) -> String {
    let mut text = format!(
        "{} ({} of {}): {} of {} shards, {} of {}",
        status.round,
        status.number,
        status.rounds,
        status.done,
        status.shards,
        gigabytes(status.bytes),
        gigabytes(status.bytes_in_all)
    );
    if status.is_complete {
        text += ", complete";
    } else if status.done == status.shards {
        text += ", to be reduced";
    }
    text.push('\n');
    for worker in &status.workers {
        text += &format!(
            "  shard {} on {} ({}): {} rows\n",
            worker.shard,
            worker.machine,
            worker.process,
            thousands(worker.rows)
        );
    }
    for worker in &status.lost {
        text += &format!(
            "  shard {} on {} ({}): nothing heard for a minute\n",
            worker.shard, worker.machine, worker.process
        );
    }
    text
}

impl From<BulkError> for Failure {
    fn from(error: BulkError) -> Self {
        match error {
            BulkError::Pipeline(error) => (*error).into(),
            BulkError::Data(error) => error.into(),
            BulkError::File(error) => error.into(),
            BulkError::NoShard { .. } | BulkError::Pattern { .. } => Failure::Usage(error.to_string()),
            BulkError::NoJob { .. } => Failure::failed(format!("{error}; `genus bulk plan` makes one")),
            BulkError::Taken { .. } => Failure::failed(format!("{error}: name another with --out")),
            BulkError::Changed { .. } => {
                Failure::failed(format!("{error}; bring it back, or plan again into another place"))
            }
            BulkError::Missing { .. } => {
                Failure::failed(format!("{error}; run them: `genus bulk run JOB --shards A-B` or --all"))
            }
            BulkError::NotBegun { .. } => {
                Failure::failed(format!("{error}; run `genus bulk reduce`, or `genus bulk plan` again"))
            }
            BulkError::NoObjectStore { .. } => Failure::failed(format!(
                "{error}; build it with `cargo install --path crates/genus-cli --features object-store`"
            )),
            other => Failure::failed(other.to_string()),
        }
    }
}
