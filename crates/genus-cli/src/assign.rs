//! `genus assign`: further items for a taxonomy, which may grow by them.

use std::path::Path;
use std::time::Instant;

use genus::text::{plural, thousands};
use genus::{AssignOptions, CalibrationFile, Inputs, Page};

use crate::args::{AssignArgs, GlobalArgs};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{output, record, summary};

pub(crate) fn run(args: &AssignArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let start = Instant::now();
    let progress = Bar::new(global);
    let calibration = args.calibration.as_deref().map(CalibrationFile::read).transpose()?;
    let options = AssignOptions {
        calibration,
        images: args.images.options(),
        tables: args.tables.options(),
    };
    let mut output = output::open(&args.output, &args.next, &args.query)?;
    let page = match args.no_report {
        true => None,
        false => Some(Page::new(
            &Inputs::without_examples(&args.query),
            &options.tables,
            None,
            None,
        )?),
    };
    if let Some(into) = &args.grow {
        return grow(args, into, &options, output, page.as_ref(), progress, global);
    }
    let outcome = genus::assign_into(&args.taxonomy, &args.query, &options, &mut output, &progress)?;
    let saved = outcome.save(output, page.as_ref(), &progress)?;
    drop(progress);
    record::items(&outcome.taxonomy, &outcome.counts);
    record::time("sorting", outcome.time);
    if !global.quiet {
        let text = summary::text(&outcome.taxonomy, &outcome.counts, &outcome.how(), start.elapsed());
        say_as_is!("{text}");
    }
    output::say_written(&saved, global);
    output::say_next_steps(&saved, global);
    Ok(())
}

fn grow(
    args: &AssignArgs,
    into: &Path,
    options: &AssignOptions,
    output: genus::Output,
    page: Option<&Page>,
    progress: Bar,
    global: &GlobalArgs,
) -> Result<(), Failure> {
    let start = Instant::now();
    let outcome = genus::grow(&args.taxonomy, &args.query, into, options, &progress)?;
    let (taxonomy, counts) = (outcome.taxonomy.clone(), outcome.counts.clone());
    let how = outcome.how();
    let [known, waiting, joined] = [outcome.known, outcome.waiting, outcome.joined].map(|count| count as u64);
    let saved = outcome.save(Some(output), page, &progress)?;
    drop(progress);
    record::items(&taxonomy, &counts);
    if !global.quiet {
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
    output::say_written(&saved, global);
    output::say_next_steps(&saved, global);
    Ok(())
}
