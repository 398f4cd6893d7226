//! How far items of one class lie apart, learnt once from classes with many labelled items.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use genus_core::{Calibration, CalibrationSettings, Source as LearntFrom};
use genus_data::{
    CalibrationOrigin, Split, TableFile, TableOptions, is_image_source, list_images, read_calibration,
    write_calibration,
};

use crate::discover::note_left_out;
use crate::images::{Embedder, ImageOptions};
use crate::items::Source;
use crate::text::thousands;
use crate::{Error, Length, Progress, Skipped};

/// How a calibration is learnt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CalibrateOptions {
    /// A class split; only its base classes are learnt from. Without one all labelled classes are.
    pub split: Option<PathBuf>,
    /// The seed of what is random.
    pub seed: u64,
    /// How images become features.
    pub images: ImageOptions,
    /// Which columns of tables are what.
    pub tables: TableOptions,
}

/// What was learnt, and from what.
#[derive(Debug)]
pub struct CalibrateOutcome {
    /// The calibration.
    pub calibration: Calibration,
    /// Where it comes from.
    pub origin: CalibrationOrigin,
    /// The classes that were to be learnt from, those of a single item included.
    pub classes: usize,
    /// Items that were left out: without a label, or not of a base class.
    pub left_out: usize,
    /// Images that could not be read.
    pub skipped: Vec<Skipped>,
    /// How long it took.
    pub time: Duration,
}

impl CalibrateOutcome {
    /// Writes the calibration to a file.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        Ok(write_calibration(path, &self.calibration, &self.origin)?)
    }
}

/// Learns from labelled items how far items of one class lie apart.
pub fn calibrate(
    items: impl Into<Source>,
    options: &CalibrateOptions,
    progress: &dyn Progress,
) -> Result<CalibrateOutcome, Error> {
    let start = Instant::now();
    let source = items.into();
    let path = source.path().to_owned();
    let split = options.split.as_ref().map(Split::read).transpose()?;
    // The split is looked at before hours of work.
    if let (Some(split), Source::Path(path)) = (&split, &source)
        && is_image_source(path, &options.tables)?
    {
        let labels = list_images(path, &options.tables)?
            .items
            .into_iter()
            .filter_map(|item| item.label);
        let mut classes: Vec<String> = labels.collect();
        classes.sort_unstable();
        classes.dedup();
        split.resolve(&classes, None)?;
    }
    let mut embedder = Embedder::new(&options.images, progress);
    let file = embedder.items(source, &options.tables.for_examples(), true)?.read()?;
    note_left_out(&path, &file.left_out, progress);
    let classes = chosen_classes(options, &path, split.as_ref(), &file)?;
    let table = file.table;
    let class_of = |row: usize| classes.get(table.labels[row].as_deref()?).copied();
    let (rows, labels): (Vec<usize>, Vec<usize>) =
        (0..table.len()).filter_map(|row| Some((row, class_of(row)?))).unzip();
    let settings = CalibrationSettings {
        seed: options.seed,
        ..CalibrationSettings::default()
    };
    progress.start("calibrating", Length::Unknown);
    let calibration = Calibration::fit(&table.features.select(&rows), &labels, settings);
    progress.end();
    let fitted_on = match &options.split {
        Some(split) => format!("{}, base classes of {}", path.display(), split.display()),
        None => path.display().to_string(),
    };
    let calibration = calibration.map_err(|source| Error::CannotCalibrate {
        what: fitted_on.clone(),
        source,
    })?;
    Ok(CalibrateOutcome {
        calibration,
        origin: CalibrationOrigin {
            encoder: file.encoder,
            fitted_on,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: options.seed,
        },
        classes: classes.len(),
        left_out: table.len() - rows.len(),
        skipped: embedder.skipped().to_vec(),
        time: start.elapsed(),
    })
}

/// The classes that are learnt from, with their numbers.
fn chosen_classes(
    options: &CalibrateOptions,
    items: &Path,
    split: Option<&Split>,
    file: &TableFile,
) -> Result<BTreeMap<String, usize>, Error> {
    let mut classes = file.table.classes();
    if classes.is_empty() {
        return Err(Error::NoLabels {
            items: items.to_owned(),
        });
    }
    if let Some(split) = split {
        classes = split.resolve(&classes, file.class_names.as_deref())?.base;
    }
    if let (Some(split), true) = (&options.split, classes.is_empty()) {
        return Err(Error::NoBaseClasses { split: split.clone() });
    }
    classes.sort_unstable();
    Ok(classes.into_iter().zip(0..).collect())
}

/// A calibration to go by, with the file that it comes from.
#[derive(Clone, Debug)]
pub struct CalibrationFile {
    path: PathBuf,
    /// The calibration.
    pub calibration: Arc<Calibration>,
    /// Where it comes from.
    pub origin: CalibrationOrigin,
}

impl CalibrationFile {
    /// Reads a calibration.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let (calibration, origin) = read_calibration(path)?;
        Ok(Self {
            path: path.to_owned(),
            calibration: Arc::new(calibration),
            origin,
        })
    }

    /// The file, or what stands for it in messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fails when it is not of the features of some items, as far as the files say.
    pub fn check(&self, items: &Path, dim: usize, encoder: Option<&str>) -> Result<(), Error> {
        let (calibration, items) = (self.path.clone(), items.to_owned());
        if let (Some(own), Some(encoder)) = (self.origin.encoder.clone(), encoder)
            && own != encoder
        {
            let encoder = encoder.to_owned();
            return Err(Error::CalibrationEncoder {
                calibration,
                own,
                items,
                encoder,
            });
        }
        match self.calibration.dim() {
            own if own == dim => Ok(()),
            own => Err(Error::CalibrationDim {
                calibration,
                own,
                items,
                dim,
            }),
        }
    }
}

impl From<CalibrateOutcome> for CalibrationFile {
    fn from(outcome: CalibrateOutcome) -> Self {
        Self {
            path: PathBuf::from("the calibration in memory"),
            calibration: Arc::new(outcome.calibration),
            origin: outcome.origin,
        }
    }
}

/// What a calibration was learnt from, as it goes on after "calibrated".
pub fn knowledge(calibration: &Calibration) -> String {
    match calibration.source() {
        LearntFrom::Base => format!("on {} base classes", thousands(calibration.classes() as u64)),
        LearntFrom::Examples => "by the examples".to_owned(),
        LearntFrom::Prior => "by the prior".to_owned(),
    }
}
