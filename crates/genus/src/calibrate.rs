//! How far items of one class lie apart, learnt once from classes with many labelled items.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(feature = "embedded")]
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use genus_core::{Calibration, CalibrationError, CalibrationSettings, Centre, Features, Source as LearntFrom};
use genus_data::{
    CalibrationOrigin, Split, TableFile, TableOptions, is_image_source, list_images, read_calibration, same_encoder,
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
    /// The random seed.
    pub seed: u64,
    /// How images become features.
    pub images: ImageOptions,
    /// Which columns of tables are ids, labels and features.
    pub tables: TableOptions,
}

/// A calibration, and what it was learnt from.
#[derive(Debug)]
pub struct CalibrateOutcome {
    /// The calibration.
    pub calibration: Calibration,
    /// Its origin.
    pub origin: CalibrationOrigin,
    /// The number of base classes, including those with a single item.
    pub classes: usize,
    /// The number of items left out: without a label, or not of a base class.
    pub left_out: usize,
    /// Images that could not be read.
    pub skipped: Vec<Skipped>,
    /// The running time.
    pub time: Duration,
}

impl CalibrateOutcome {
    /// Writes the calibration to a file.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        Ok(write_calibration(path, &self.calibration, &self.origin)?)
    }
}

/// Learns from labelled items how far apart items of one class lie.
pub fn calibrate(
    items: impl Into<Source>,
    options: &CalibrateOptions,
    progress: &dyn Progress,
) -> Result<CalibrateOutcome, Error> {
    calibrate_kinds(vec![items.into()], options, progress)
}

/// Learns from several kinds of labelled items, such as birds and letters, for piles of any kind. Classes of one name are
/// different classes in different kinds. A split says which classes of a single kind are learnt from.
pub fn calibrate_kinds(
    kinds: Vec<Source>,
    options: &CalibrateOptions,
    progress: &dyn Progress,
) -> Result<CalibrateOutcome, Error> {
    let start = Instant::now();
    let paths: Vec<PathBuf> = kinds.iter().map(|source| source.path().to_owned()).collect();
    if paths.len() > 1 && options.split.is_some() {
        return Err(Error::SplitOfKinds { kinds: paths.len() });
    }
    let mut embedder = Embedder::new(&options.images, progress);
    let mut base = BaseItems::default();
    for (source, path) in kinds.into_iter().zip(&paths) {
        base.add(source, [&paths[0], path], options, &mut embedder, progress)?;
    }
    let settings = CalibrationSettings {
        seed: options.seed,
        // The mean of several kinds is that of none: every pile has its own.
        centre: if paths.len() > 1 { Centre::Task } else { Centre::Base },
        ..CalibrationSettings::default()
    };
    progress.start("calibrating", Length::Unknown);
    let calibration = match Features::new(base.dim, base.values) {
        Ok(items) => Calibration::fit_kinds(&items, &base.labels, &base.kinds, settings),
        // Only no feature at all is not a matrix.
        Err(_) => Err(CalibrationError::NoSpread),
    };
    progress.end();
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let fitted_on = match &options.split {
        Some(split) => format!("{}, base classes of {}", names[0], split.display()),
        None => names.join(", "),
    };
    let calibration = calibration.map_err(|source| Error::CannotCalibrate {
        what: fitted_on.clone(),
        source,
    })?;
    Ok(CalibrateOutcome {
        calibration,
        origin: CalibrationOrigin {
            encoder: base.encoder,
            fitted_on,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: options.seed,
        },
        classes: base.kinds.len(),
        left_out: base.left_out,
        skipped: embedder.skipped().to_vec(),
        time: start.elapsed(),
    })
}

/// Labelled items of base classes, kind by kind.
#[derive(Default)]
struct BaseItems {
    dim: usize,
    values: Vec<f32>,
    /// The class of every item, numbered through all kinds.
    labels: Vec<usize>,
    /// The kind of every class.
    kinds: Vec<usize>,
    encoder: Option<String>,
    left_out: usize,
}

impl BaseItems {
    /// Adds the items of a kind; their features must match those of the `first`.
    fn add(
        &mut self,
        source: Source,
        [first, path]: [&Path; 2],
        options: &CalibrateOptions,
        embedder: &mut Embedder,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let split = options.split.as_ref().map(Split::read).transpose()?;
        // The split is looked at before hours of work.
        if let (Some(split), Source::Path(path)) = (&split, &source)
            && is_image_source(path, &options.tables)?
        {
            let list = list_images(path, &options.tables)?;
            let labels = list.items.into_iter().filter_map(|item| item.label);
            let mut classes: Vec<String> = labels.collect();
            classes.sort_unstable();
            classes.dedup();
            split.resolve(&classes, None)?;
        }
        let file = embedder.items(source, &options.tables.for_examples(), true)?.read()?;
        note_left_out(path, &file.left_out, progress);
        let classes = chosen_classes(options, path, split.as_ref(), &file)?;
        let TableFile { table, encoder, .. } = file;
        let dim = table.features.dim();
        same_encoder((first, self.encoder.as_deref()), (path, encoder.as_deref()))?;
        if !self.kinds.is_empty() && dim != self.dim {
            return Err(Error::Dim {
                first: first.to_owned(),
                first_dim: self.dim,
                second: path.to_owned(),
                second_dim: dim,
            });
        }
        let (before, kind) = (self.kinds.len(), self.kinds.last().map_or(0, |last| last + 1));
        self.dim = dim;
        for (row, label) in table.features.iter().zip(&table.labels) {
            match label.as_deref().and_then(|label| classes.get(label)) {
                Some(class) => {
                    self.values.extend_from_slice(row);
                    self.labels.push(before + class);
                }
                None => self.left_out += 1,
            }
        }
        self.kinds.resize(before + classes.len(), kind);
        self.encoder = self.encoder.take().or(encoder);
        Ok(())
    }
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

/// A calibration, with the file that it was read from.
#[derive(Clone, Debug)]
pub struct CalibrationFile {
    path: PathBuf,
    /// The calibration.
    pub calibration: Arc<Calibration>,
    /// Its origin.
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

    /// The calibration of the built-in encoder, if these features come from it.
    pub fn shipped(encoder: Option<&str>) -> Option<Self> {
        Self::of_embedded().filter(|shipped| shipped.origin.encoder.as_deref() == encoder)
    }

    /// The one that ships with the encoder built into this program, where one is.
    pub fn of_embedded() -> Option<Self> {
        let (calibration, origin) = shipped()?;
        Some(Self {
            path: PathBuf::from(SHIPPED),
            calibration: calibration.clone(),
            origin: origin.clone(),
        })
    }

    /// One that is in no file.
    pub fn in_memory(calibration: Calibration, origin: CalibrationOrigin) -> Self {
        Self {
            path: PathBuf::from("the calibration in memory"),
            calibration: Arc::new(calibration),
            origin,
        }
    }

    /// The file, or its name in messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if it does not match the features of some items, as far as the files tell.
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
        Self::in_memory(outcome.calibration, outcome.origin)
    }
}

/// The name of the built-in calibration in messages.
const SHIPPED: &str = "the calibration of the embedded encoder";

/// The calibration of the embedded encoder, read once.
#[cfg(feature = "embedded")]
fn shipped() -> Option<&'static (Arc<Calibration>, CalibrationOrigin)> {
    static READ: OnceLock<(Arc<Calibration>, CalibrationOrigin)> = OnceLock::new();
    Some(READ.get_or_init(|| {
        let read = genus_data::calibration_from_bytes(Path::new(SHIPPED), genus_lite2::CALIBRATION);
        let (calibration, origin) = read.expect("the file is compiled in, and a test reads it");
        (Arc::new(calibration), origin)
    }))
}

#[cfg(not(feature = "embedded"))]
fn shipped() -> Option<&'static (Arc<Calibration>, CalibrationOrigin)> {
    None
}

/// What a calibration was learnt from, to follow the word "calibrated".
pub fn knowledge(calibration: &Calibration) -> String {
    match calibration.source() {
        LearntFrom::Base => format!("on {} base classes", thousands(calibration.classes() as u64)),
        LearntFrom::Examples => "by the examples".to_owned(),
        LearntFrom::Prior => "by the prior".to_owned(),
    }
}
