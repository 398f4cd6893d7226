//! `genus discover`: a pile sorted into known classes and new categories.

use std::time::Instant;

use genus::{CalibrationFile, DiscoverOptions, Inputs, MethodSpec, Page, Source};
use genus_core::Source as LearntFrom;

use crate::args::{DiscoverArgs, GlobalArgs};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{output, record, summary};

pub(crate) fn run(args: &DiscoverArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let start = Instant::now();
    let progress = Bar::new(global);
    let inputs = inputs(args)?;
    let options = options(args, global)?;
    let mut output = output::open(&args.output, &args.next, inputs.pile().path())?;
    let page = match output.folder() {
        Some(_) if !args.report.no_report => {
            let (truth, text) = (args.report.truth.as_deref(), args.report.text.as_deref());
            Some(Page::new(&inputs, &options.tables, truth, text)?)
        }
        _ => None,
    };
    let outcome = genus::discover_into(inputs, &options, &mut output, &progress)?;
    let saved = outcome.save(output, page.as_ref(), &progress)?;
    drop(progress);
    record::items(&outcome.taxonomy, &outcome.counts);
    record::time("reading", outcome.timings.reading);
    record::time("sorting", outcome.timings.total - outcome.timings.reading);
    if !global.quiet {
        let how = outcome.how();
        say_as_is!(
            "{}",
            summary::text(&outcome.taxonomy, &outcome.counts, &how, start.elapsed())
        );
        if outcome.examples.is_empty() {
            say!("There is no labelled example, so everything is new.");
        }
        let source = outcome.taxonomy.calibration().map(|calibration| calibration.source());
        if source == Some(LearntFrom::Prior) {
            say!("More examples, or base classes (genus calibrate), make it surer.");
        }
        if let Some(truth) = &saved.truth {
            say!("{}", summary::truth(truth));
        }
    }
    output::say_written(&saved, global);
    output::say_next_steps(&saved, global);
    Ok(())
}

fn inputs(args: &DiscoverArgs) -> Result<Inputs, Failure> {
    match (&args.table, &args.support, &args.query) {
        (Some(table), ..) => Ok(Inputs::Mixed(table.into())),
        (None, support, Some(query)) => Ok(Inputs::Separate {
            support: support.as_ref().map(Source::from),
            query: query.into(),
        }),
        _ => Err(Failure::Usage(
            "name one TABLE, or --query and, where there are examples, --support".into(),
        )),
    }
}

fn options(args: &DiscoverArgs, global: &GlobalArgs) -> Result<DiscoverOptions, Failure> {
    let method: MethodSpec = args.method.parse()?;
    let calibration = match &args.calibration {
        // What has no use for one says so, whatever is in the file.
        Some(_) if !method.takes_calibration() => {
            return Err(genus::Error::NoUseForCalibration {
                method: method.to_string(),
            }
            .into());
        }
        Some(path) => Some(CalibrationFile::read(path)?),
        None => None,
    };
    Ok(DiscoverOptions {
        method,
        seed: global.seed,
        prototypes: args.prototypes.kind,
        calibration,
        subset: args.subset,
        refine: args.second_step.refine,
        centre_norm: args.second_step.centre_norm,
        images: args.images.options(),
        tables: args.tables.options(),
    })
}
