//! `genus calibrate`: how far items of one class lie apart, learnt once from classes with many labelled items.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anstyle::Style;
use genus_core::{Calibration, CalibrationError, CalibrationSettings, Source};
use genus_data::{
    CalibrationOrigin, Split, TableFile, is_image_source, list_images, read_calibration, read_table, write_calibration,
};

use crate::args::{Calibrate, Global};
use crate::failure::Failure;
use crate::images::Embedder;
use crate::output;
use crate::progress::Bar;
use crate::summary::{plural, thousands};

pub(crate) fn run(args: &Calibrate, global: &Global) -> Result<(), Failure> {
    match (&args.show, args.items.as_ref().or(args.features.as_ref())) {
        (Some(file), _) => show(file),
        (None, Some(items)) => fit(args, items, global),
        (None, None) => Err(Failure::Usage(
            "name labelled items, as in `genus calibrate base.npz`, or a calibration with --show".into(),
        )),
    }
}

fn fit(args: &Calibrate, items: &Path, global: &Global) -> Result<(), Failure> {
    let start = Instant::now();
    check_out(&args.out, items)?;
    let split = args.split.as_ref().map(Split::read).transpose()?;
    // The split is looked at before hours of work.
    if let (Some(split), true) = (&split, is_image_source(items)?) {
        let labels = list_images(items)?.items.into_iter().filter_map(|item| item.label);
        let mut classes: Vec<String> = labels.collect();
        classes.sort_unstable();
        classes.dedup();
        split.resolve(&classes, None)?;
    }
    let input = Embedder::new(&args.images, global).input(items, true)?;
    let file = read_table(input.path())?;
    let classes = chosen_classes(args, items, split.as_ref(), &file)?;
    let table = file.table;
    let class_of = |row: usize| classes.get(table.labels[row].as_deref()?).copied();
    let (rows, labels): (Vec<usize>, Vec<usize>) =
        (0..table.len()).filter_map(|row| Some((row, class_of(row)?))).unzip();
    let settings = CalibrationSettings {
        seed: global.seed,
        ..CalibrationSettings::default()
    };
    let calibration = {
        let bar = Bar::new(global);
        bar.spin("calibrating");
        Calibration::fit(&table.features.select(&rows), &labels, settings)
    };
    let of_what = match &args.split {
        Some(split) => format!("{}, base classes of {}", items.display(), split.display()),
        None => items.display().to_string(),
    };
    let calibration = calibration.map_err(|e| Failure::failed(format!("{of_what}: {e}{}", way_out(&e))))?;
    let made = CalibrationOrigin {
        encoder: file.encoder,
        fitted_on: of_what,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: global.seed,
    };
    write_calibration(&args.out, &calibration, &made)?;
    if !global.quiet {
        let left_out = table.len() - rows.len();
        say_as_is!("{}", notes(args, classes.len(), &calibration, left_out));
        say!(
            "Calibrated on {} {} of {} items, variance {:.3} within a class, written to {} ({:.1} s)",
            thousands(calibration.classes() as u64),
            if args.split.is_some() {
                "base classes"
            } else {
                "classes"
            },
            thousands(calibration.to_parts().items as u64),
            calibration.variance(),
            args.out.display(),
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// Refuses to write over the items, or under a name that says something else.
fn check_out(out: &Path, items: &Path) -> Result<(), Failure> {
    if out.extension().is_none_or(|extension| extension != "safetensors") {
        return Err(Failure::Usage(format!(
            "a calibration is a .safetensors file, and {} does not end so; name it as in -o birds.safetensors",
            out.display()
        )));
    }
    match (out.canonicalize(), items.canonicalize()) {
        (Ok(out_file), Ok(items_file)) if out_file == items_file => Err(Failure::Usage(format!(
            "{} holds the items and would be overwritten; name another file with -o",
            items.display()
        ))),
        _ => Ok(()),
    }
}

/// The classes that are learnt from, with their numbers.
fn chosen_classes(
    args: &Calibrate,
    items: &Path,
    split: Option<&Split>,
    file: &TableFile,
) -> Result<BTreeMap<String, usize>, Failure> {
    let mut classes = file.table.classes();
    if classes.is_empty() {
        return Err(Failure::failed(format!(
            "{}: no item has a label; a calibration is learnt from items whose classes are known",
            items.display()
        )));
    }
    if let Some(split) = split {
        classes = split.resolve(&classes, file.class_names.as_deref())?.base;
    }
    if let (Some(path), true) = (&args.split, classes.is_empty()) {
        return Err(Failure::failed(format!(
            "split {}: there is no base class; list the classes to learn from in \"base\", or leave out --split to learn \
             from all labelled classes",
            path.display()
        )));
    }
    classes.sort_unstable();
    Ok(classes.into_iter().zip(0..).collect())
}

/// What was learnt from, where that is not what was named.
fn notes(args: &Calibrate, classes: usize, calibration: &Calibration, left_out: usize) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    if args.split.is_none() {
        let _ = writeln!(
            text,
            "No --split, so all {} labelled classes count as base classes",
            thousands(classes as u64)
        );
        if left_out > 0 {
            let items = plural(left_out as u64, "item", "items");
            let _ = writeln!(text, "Left out: {} {items} without a label", thousands(left_out as u64));
        }
    }
    let single = classes.saturating_sub(calibration.classes()) as u64;
    if single > 0 {
        let classes = plural(single, "class", "classes");
        let _ = writeln!(text, "Left out: {} {classes} of a single item", thousands(single));
    }
    text
}

fn way_out(error: &CalibrationError) -> &'static str {
    match error {
        CalibrationError::TooFewClasses { .. } => {
            "; label items of more classes, or discover without a calibration: the examples then say how far items of a \
             class lie apart"
        }
        CalibrationError::NoSpread => "; take different items of each class",
        _ => "",
    }
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
    output::print(&text)
}

fn learnt_from(calibration: &Calibration) -> String {
    let parts = calibration.to_parts();
    let (classes, items) = (thousands(parts.classes as u64), thousands(parts.items as u64));
    match parts.source {
        Source::Base => format!("{classes} base classes, {items} items"),
        Source::Examples => format!("{items} examples of {classes} classes"),
        Source::Prior => "other encoders: there was one example a class".to_owned(),
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

/// A calibration that a command was given, with its file.
pub(crate) struct Given {
    path: PathBuf,
    pub(crate) calibration: Arc<Calibration>,
    pub(crate) made: CalibrationOrigin,
}

impl Given {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let (calibration, made) = read_calibration(path)?;
        Ok(Self {
            path: path.to_owned(),
            calibration: Arc::new(calibration),
            made,
        })
    }

    /// Fails when it is not of the features of another file, as far as the files say.
    pub(crate) fn check(&self, other: &Path, dim: usize, encoder: Option<&str>) -> Result<(), Failure> {
        let (path, other) = (self.path.display(), other.display());
        let again = "calibrate on features of the same encoder (`genus calibrate`)";
        if let (Some(own), Some(encoder)) = (self.made.encoder.as_deref(), encoder)
            && own != encoder
        {
            return Err(Failure::failed(format!(
                "{path} is a calibration of the encoder \"{own}\", but {other} was made by \"{encoder}\"; {again}"
            )));
        }
        if self.calibration.dim() != dim {
            return Err(Failure::failed(format!(
                "{path} is a calibration of {} features, but {other} has {dim} an item; {again}",
                self.calibration.dim()
            )));
        }
        Ok(())
    }
}

/// What a calibration was learnt from, as it goes on after "calibrated".
pub(crate) fn knowledge(calibration: &Calibration) -> String {
    match calibration.source() {
        Source::Base => format!("on {} base classes", thousands(calibration.classes() as u64)),
        Source::Examples => "by the examples".to_owned(),
        Source::Prior => "by the prior".to_owned(),
    }
}
