//! `genus assign`: further items for a taxonomy, which may grow by them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use genus::text::{plural, thousands};
use genus::{AssignOptions, CalibrationFile, Inputs, Page};

use crate::args::Arguments;
use crate::args::shared::{ImageArgs, NextStepsArgs, OutputArgs, TableArgs};
use crate::failure::Failure;
use crate::output::{self, OutputTarget};
use crate::progress::Bar;
use crate::say::Terminal;
use crate::{record, summary};

/// Assign further items to the categories of a taxonomy
///
/// The taxonomy is the folder written by `genus discover --out`. Every item gets the best matching category and, if the
/// taxonomy is calibrated, a probability. The input is streamed, so it may be larger than memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  genus assign --taxonomy result --query more.parquet > more.csv
  genus assign --taxonomy result --query more.npy --out sorted --format jsonl
  genus assign --taxonomy result --query more.npy --calibration base.safetensors
  genus assign --taxonomy result --query today.parquet --grow result > today.csv
  embeddings | genus assign --taxonomy result --query - --input jsonl --format jsonl

With --query - --input jsonl (or csv), each line is answered as it arrives.")]
pub(crate) struct AssignArgs {
    /// The folder of the taxonomy
    #[arg(long, short, value_name = "DIR")]
    taxonomy: PathBuf,
    /// The items to assign: a feature file or images
    #[arg(long, value_name = "FILE|DIR")]
    query: PathBuf,
    /// A calibration made by `genus calibrate`, for a taxonomy of a method without probabilities
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// Form new groups from the items, in their order, and write the grown taxonomy to this folder, which may be the same one.
    /// Items that fit no category are unsure, and wait in that folder for the next run
    #[arg(long, value_name = "DIR")]
    grow: Option<PathBuf>,
    /// Do not write report.html into --out and --grow
    #[arg(long)]
    no_report: bool,
    #[command(flatten)]
    tables: TableArgs,
    #[command(flatten)]
    images: ImageArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    next: NextStepsArgs,
}

pub(crate) struct AssignCommand {
    taxonomy: PathBuf,
    query: PathBuf,
    options: AssignOptions,
    /// Where the grown taxonomy goes, where it is to grow.
    grow: Option<PathBuf>,
    target: OutputTarget,
    report: bool,
}

impl Arguments for AssignArgs {
    type Options = AssignCommand;

    fn options(self, _seed: u64) -> Result<AssignCommand, Failure> {
        Ok(AssignCommand {
            taxonomy: self.taxonomy,
            query: self.query,
            options: AssignOptions {
                calibration: self.calibration.as_deref().map(CalibrationFile::read).transpose()?,
                images: self.images.options(),
                tables: self.tables.options(),
            },
            grow: self.grow,
            target: self.output.target(self.next),
            report: !self.no_report,
        })
    }

    fn run(assign: AssignCommand, terminal: Terminal) -> Result<(), Failure> {
        assign.run(terminal)
    }
}

impl AssignCommand {
    fn run(self, terminal: Terminal) -> Result<(), Failure> {
        let start = Instant::now();
        let progress = Bar::new(terminal);
        let mut output = self.target.open(&self.query)?;
        let page = match self.report {
            true => {
                let inputs = Inputs::without_examples(&self.query);
                Some(Page::new(&inputs, &self.options.tables, None, None)?)
            }
            false => None,
        };
        let (taxonomy, query) = (&self.taxonomy, &self.query);
        if let Some(into) = &self.grow {
            return grow(taxonomy, query, into, &self.options, output, page.as_ref(), terminal);
        }
        let outcome = genus::assign_into(taxonomy, query, &self.options, &mut output, &progress)?;
        let saved = outcome.save(output, page.as_ref(), &progress)?;
        drop(progress);
        record::items(&outcome.taxonomy, &outcome.counts);
        record::time("sorting", outcome.time);
        if !terminal.quiet {
            let text = summary::text(&outcome.taxonomy, &outcome.counts, &outcome.how(), start.elapsed());
            say_as_is!("{text}");
        }
        output::say_saved(&saved, terminal);
        Ok(())
    }
}

fn grow(
    taxonomy: &Path,
    query: &Path,
    into: &Path,
    options: &AssignOptions,
    output: genus::Output,
    page: Option<&Page>,
    terminal: Terminal,
) -> Result<(), Failure> {
    let start = Instant::now();
    let progress = Bar::new(terminal);
    let outcome = genus::grow(taxonomy, query, into, options, &progress)?;
    let (taxonomy, counts) = (outcome.taxonomy.clone(), outcome.counts.clone());
    let how = outcome.how();
    let [known, waiting, joined] = [outcome.known, outcome.waiting, outcome.joined].map(|count| count as u64);
    let saved = outcome.save(Some(output), page, &progress)?;
    drop(progress);
    record::items(&taxonomy, &counts);
    if !terminal.quiet {
        say_as_is!("{}", summary::text(&taxonomy, &counts, &how, start.elapsed()));
        if known > 0 {
            let were = plural(known, "item was", "items were");
            say!("{} {were} there before and did not count again", thousands(known));
        }
        if waiting > 0 {
            let wait = plural(waiting, "item waits for others", "items wait for others");
            say!("{} {wait} to agree with", thousands(waiting));
        }
        if joined > 0 {
            let have = plural(joined, "item of earlier files has", "items of earlier files have");
            say!("{} {have} joined a category (joined.csv)", thousands(joined));
        }
    }
    output::say_saved(&saved, terminal);
    Ok(())
}
