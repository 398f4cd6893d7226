//! `genus calibrate`: how far items of one class lie apart, learnt once from classes with many labelled items.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anstyle::Style;
use genus::text::{plural, thousands};
use genus::{CalibrateOptions, CalibrateOutcome};
use genus_core::{Calibration, Source};
use genus_data::read_calibration;

use crate::args::Arguments;
use crate::args::shared::{ImageArgs, TableArgs};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::say::{Terminal, print};

/// Learn how far apart items of one class lie
///
/// A calibration makes `genus discover` more accurate. It is learnt from base classes: any classes of the same kind of things,
/// embedded by the same encoder, with many labelled items. They need not occur in the pile. The result is a small file for
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
    /// Labelled items: a feature file, a folder of images with one folder per class, or a manifest of images. Several inputs
    /// are several kinds of things, which makes a calibration for piles of any kind
    #[arg(value_name = "FILE|DIR", required_unless_present = "show")]
    items: Vec<PathBuf>,
    /// Class split, JSON {"base": [...], "novel": [...]}; by default all labelled classes are base classes
    #[arg(long, value_name = "FILE")]
    split: Option<PathBuf>,
    /// The output file
    #[arg(long, short, default_value = "calibration.safetensors", value_name = "FILE")]
    out: PathBuf,
    /// Print the contents of a calibration instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["items", "split", "out"])]
    show: Option<PathBuf>,
    #[command(flatten)]
    tables: TableArgs,
    #[command(flatten)]
    images: ImageArgs,
}

pub(crate) enum CalibrateCommand {
    /// Print what is in a file.
    Show(PathBuf),
    /// Learn from items of one kind of things or several.
    Learn {
        items: Vec<PathBuf>,
        options: Box<CalibrateOptions>,
        out: PathBuf,
    },
}

impl Arguments for CalibrateArgs {
    type Options = CalibrateCommand;

    fn options(self, seed: u64) -> Result<CalibrateCommand, Failure> {
        match self.show {
            Some(file) => Ok(CalibrateCommand::Show(file)),
            None if self.items.is_empty() => Err(Failure::Usage(
                "name labelled items, as in `genus calibrate base.npz`, or a calibration with --show".into(),
            )),
            None => Ok(CalibrateCommand::Learn {
                items: self.items,
                options: Box::new(CalibrateOptions {
                    split: self.split,
                    seed,
                    images: self.images.options(),
                    tables: self.tables.options(),
                }),
                out: self.out,
            }),
        }
    }

    fn run(calibrate: CalibrateCommand, terminal: Terminal) -> Result<(), Failure> {
        match calibrate {
            CalibrateCommand::Show(file) => show(&file),
            CalibrateCommand::Learn { items, options, out } => learn(&items, &options, &out, terminal),
        }
    }
}

fn learn(items: &[PathBuf], options: &CalibrateOptions, out: &Path, terminal: Terminal) -> Result<(), Failure> {
    for items in items {
        check_out(out, items)?;
    }
    let sources = items.iter().map(|items| items.into()).collect();
    let outcome = genus::calibrate_kinds(sources, options, &Bar::new(terminal))?;
    outcome.write(out)?;
    if !terminal.quiet {
        say_as_is!("{}", notes(options, &outcome));
        say!(
            "Calibrated on {} {} of {} items, variance {:.3} within a class, written to {} ({:.1} s)",
            thousands(outcome.calibration.classes() as u64),
            if options.split.is_some() {
                "base classes"
            } else {
                "classes"
            },
            thousands(outcome.calibration.to_parts().items as u64),
            outcome.calibration.variance(),
            out.display(),
            outcome.time.as_secs_f64()
        );
    }
    Ok(())
}

/// Refuses to write over the items, or under a name that says something else.
fn check_out(out: &Path, items: &Path) -> Result<(), Failure> {
    if out.extension().is_none_or(|extension| extension != "safetensors") {
        return Err(Failure::Usage(format!(
            "a calibration is a .safetensors file, but the output file is {}; use a name such as -o birds.safetensors",
            out.display()
        )));
    }
    match (out.canonicalize(), items.canonicalize()) {
        (Ok(out_file), Ok(items_file)) if out_file == items_file => Err(Failure::Usage(format!(
            "{} contains the items and would be overwritten; choose another file with -o",
            items.display()
        ))),
        _ => Ok(()),
    }
}

/// What was learnt from, where that is not what was named.
fn notes(options: &CalibrateOptions, outcome: &CalibrateOutcome) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    if options.split.is_none() {
        let _ = writeln!(
            text,
            "No --split: all {} labelled classes are base classes",
            thousands(outcome.classes as u64)
        );
        if outcome.left_out > 0 {
            let count = outcome.left_out as u64;
            let items = plural(count, "item", "items");
            let _ = writeln!(text, "Left out: {} {items} without a label", thousands(count));
        }
    }
    let single = outcome.classes.saturating_sub(outcome.calibration.classes()) as u64;
    if single > 0 {
        let classes = plural(single, "class", "classes");
        let _ = writeln!(text, "Left out: {} {classes} with a single item", thousands(single));
    }
    text
}

/// Prints what is in a calibration.
fn show(path: &Path) -> Result<(), Failure> {
    let (calibration, made) = read_calibration(path)?;
    let parts = calibration.to_parts();
    let bold = Style::new().bold();
    let mut text = format!("{bold}{}{bold:#}\n", path.display());
    let mut add = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    add("learnt from", learnt_from(&calibration));
    add("fitted on", made.fitted_on);
    add(
        "encoder",
        made.encoder
            .unwrap_or_else(|| "not named by the feature file".to_owned()),
    );
    add("features", parts.mean.len().to_string());
    add(
        "variance",
        format!(
            "{:.3} within a class: two items of one have a cosine of {:.2} on average",
            parts.variance,
            1.0 - parts.variance
        ),
    );
    add("unsure", format!("below a probability of {:.2}", parts.doubt));
    add("centre", parts.centre.to_string());
    add("directions", directions(&parts.factors));
    add("tree", format!("{}, eagerness {}", parts.tree, parts.eagerness));
    let coefficients = |values: &[f64]| values.iter().map(|v| format!("{v:.2}")).collect::<Vec<_>>().join(" ");
    add("merges", coefficients(&parts.merges));
    add("arrivals", coefficients(&parts.arrivals));
    add("places", coefficients(&parts.places));
    add("made by", format!("genus {}, seed {}", made.version, made.seed));
    print(&text)
}

fn learnt_from(calibration: &Calibration) -> String {
    let parts = calibration.to_parts();
    let (classes, items) = (thousands(parts.classes as u64), thousands(parts.items as u64));
    match parts.source {
        Source::Base => format!("{classes} base classes, {items} items"),
        Source::Examples => format!("{items} examples of {classes} classes"),
        Source::Prior => "other encoders, as there was one example per class".to_owned(),
    }
}

/// How much is left of the damped directions.
fn directions(factors: &[f32]) -> String {
    let least = factors.iter().copied().fold(1.0, f32::min);
    let most = factors.iter().copied().fold(0.0, f32::max);
    match factors.len() {
        0 => "none damped".to_owned(),
        count => format!("{count} damped, to {least:.2} … {most:.2} of their length"),
    }
}
