//! `genus assign`: further items for a taxonomy, which may grow by them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use genus::text::{plural, thousands};
use genus::{AssignOptions, CalibrationFile, Inputs, Page};

use crate::args::Arguments;
use crate::args::shared::{ImageArgs, NextStepsArgs, OutputArgs, TableArgs};
use crate::failure::Failure;
use crate::output::{self, Target};
use crate::progress::Bar;
use crate::say::Terminal;
use crate::{record, summary};

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
    taxonomy: PathBuf,
    /// The items to assign: a feature file, or images
    #[arg(long, value_name = "FILE|DIR")]
    query: PathBuf,
    /// What `genus calibrate` learnt from base classes, for a taxonomy of a method that knows no probabilities
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// Let new groups form as the items come, in their order, and write the grown taxonomy here, which may be where it came
    /// from. Items that fit nothing in the end are unsure and in no category; they wait there for those of the next run
    #[arg(long, value_name = "DIR")]
    grow: Option<PathBuf>,
    /// Leave the report out; otherwise report.html in --out and in --grow shows the items
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

pub(crate) struct Assign {
    taxonomy: PathBuf,
    query: PathBuf,
    options: AssignOptions,
    /// Where the grown taxonomy goes, where it is to grow.
    grow: Option<PathBuf>,
    target: Target,
    report: bool,
}

impl Arguments for AssignArgs {
    type Options = Assign;

    fn options(self, _seed: u64) -> Result<Assign, Failure> {
        Ok(Assign {
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

    fn run(assign: Assign, terminal: Terminal) -> Result<(), Failure> {
        assign.run(terminal)
    }
}

impl Assign {
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
