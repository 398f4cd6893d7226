//! A calibration on disk: one safetensors file with a mean, directions and factors, and in its metadata a TOML text that
//! says the rest.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

use genus_core::{Calibration, CalibrationParts};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use crate::error::DataError;
use crate::fingerprint::fingerprint;
use genus_files::{AtomicFile, read_named};

const FORMAT: &str = "genus calibration 2";
/// The key of the text in the metadata.
const KEY: &str = "genus";
/// The last line of the text: the mark of all that is before it and of the tensors.
const MARK: &str = "fingerprint = ";
const MEAN: &str = "mean";
const DIRECTIONS: &str = "directions";
const FACTORS: &str = "factors";
/// No calibration is larger: this would be 8,000 directions of as many features.
const MOST_BYTES: u64 = 1 << 28;

/// How a calibration was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalibrationOrigin {
    /// Which encoder made the features, when their file said so.
    pub encoder: Option<String>,
    /// What it was fitted on, in words or as a file.
    pub fitted_on: String,
    /// The version of Genus.
    pub version: String,
    /// The seed.
    pub seed: u64,
}

#[derive(Serialize, Deserialize)]
struct CalibrationText {
    format: String,
    features: usize,
    source: String,
    classes: usize,
    items: usize,
    centre: String,
    tree: String,
    eagerness: String,
    variance: f64,
    largest: f64,
    dimensions: f64,
    merges: [f64; 5],
    arrivals: [f64; 5],
    places: [f64; 5],
    doubt: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoder: Option<String>,
    fitted_on: String,
    version: String,
    /// As a text, for TOML has no integers of this length.
    seed: String,
}

/// Writes a calibration into a file that appears whole or not at all.
pub fn write_calibration(
    path: impl AsRef<Path>,
    calibration: &Calibration,
    made: &CalibrationOrigin,
) -> Result<(), DataError> {
    let path = path.as_ref();
    let failed = |e| DataError::write(path.display(), e);
    let bytes = to_bytes(calibration, made).map_err(failed)?;
    let mut file = AtomicFile::create(path)?;
    file.write_all(&bytes).map_err(failed)?;
    Ok(file.commit()?)
}

/// Reads a calibration.
pub fn read_calibration(path: impl AsRef<Path>) -> Result<(Calibration, CalibrationOrigin), DataError> {
    let path = path.as_ref();
    let unreadable = |source| DataError::Read {
        path: path.to_owned(),
        source,
    };
    if path.is_dir() {
        return Err(DataError::Directory { path: path.to_owned() });
    }
    let bytes = read_named(path, MOST_BYTES).map_err(unreadable)?;
    from_bytes(path, &bytes)
}

/// A hash of all that a calibration knows, whatever file it came from.
pub fn calibration_fingerprint(calibration: &Calibration) -> String {
    let nowhere = CalibrationOrigin {
        encoder: None,
        fitted_on: String::new(),
        version: String::new(),
        seed: 0,
    };
    let bytes = to_bytes(calibration, &nowhere).expect("a calibration can be written");
    blake3::hash(&bytes).to_hex().to_string()
}

/// A calibration as the bytes of its file.
pub fn to_bytes(calibration: &Calibration, made: &CalibrationOrigin) -> io::Result<Vec<u8>> {
    let parts = calibration.to_parts();
    let text = CalibrationText {
        format: FORMAT.to_owned(),
        features: parts.mean.len(),
        source: parts.source.to_string(),
        classes: parts.classes,
        items: parts.items,
        centre: parts.centre.to_string(),
        tree: parts.tree.to_string(),
        eagerness: parts.eagerness.to_string(),
        variance: parts.variance,
        largest: parts.largest,
        dimensions: parts.dimensions,
        merges: parts.merges,
        arrivals: parts.arrivals,
        places: parts.places,
        doubt: parts.doubt,
        encoder: made.encoder.clone(),
        fitted_on: made.fitted_on.clone(),
        version: made.version.clone(),
        seed: made.seed.to_string(),
    };
    let text = toml::to_string(&text).map_err(io::Error::other)?;
    let [mean, directions, factors] = [&parts.mean, &parts.directions, &parts.factors]
        .map(|values| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
    let mark = mark_of(&text, [&mean, &directions, &factors]);
    let (features, count) = (parts.mean.len(), parts.factors.len());
    let mut tensors = vec![(MEAN, vec![features], &mean), (FACTORS, vec![count], &factors)];
    if count > 0 {
        tensors.push((DIRECTIONS, vec![count, features], &directions));
    }
    let views = tensors
        .into_iter()
        .map(|(name, shape, bytes)| Ok((name, TensorView::new(Dtype::F32, shape, bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(io::Error::other)?;
    let metadata = HashMap::from([(KEY.to_owned(), text + &mark)]);
    safetensors::serialize(views, Some(metadata)).map_err(io::Error::other)
}

/// The calibration of a file's bytes; errors name the file.
pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<(Calibration, CalibrationOrigin), DataError> {
    let damaged = |problem: &dyn Display| {
        malformed(
            path,
            format!("the calibration is damaged: {problem}; make it again with `genus calibrate`"),
        )
    };
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| not_one(path, &e))?;
    let whole = header.metadata().as_ref().and_then(|map| map.get(KEY));
    let whole = whole.ok_or_else(|| not_one(path, &"it holds other tensors"))?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|e| damaged(&e))?;
    let (text, mark) = whole.split_at(whole.rfind(MARK).unwrap_or(whole.len()));
    let FormatLine { format } = toml::from_str(text).map_err(|e| damaged(&e))?;
    // A newer format may differ in all that follows.
    if format != FORMAT {
        let problem = format!("its format is `{format}`, and this version reads `{FORMAT}`");
        return Err(malformed(path, problem));
    }
    let file: CalibrationText = toml::from_str(text).map_err(|e| damaged(&e))?;
    let count = match tensors.tensor(FACTORS) {
        Ok(factors) => factors.shape().first().copied().unwrap_or(0),
        Err(e) => return Err(damaged(&e)),
    };
    let tensor = |name: &str, shape: &[usize]| match tensors.tensor(name) {
        Ok(view) if view.dtype() == Dtype::F32 && view.shape() == shape => Ok(view.data()),
        Ok(view) => Err(damaged(&format!(
            "`{name}` is {:?} of {:?} where {shape:?} of F32 is expected",
            view.shape(),
            view.dtype()
        ))),
        Err(e) => Err(damaged(&e)),
    };
    let mean = tensor(MEAN, &[file.features])?;
    let factors = tensor(FACTORS, &[count])?;
    let directions = match count {
        0 => &[],
        _ => tensor(DIRECTIONS, &[count, file.features])?,
    };
    if mark != mark_of(text, [mean, directions, factors]) {
        return Err(damaged(&"its content has changed since it was written"));
    }
    let parts = CalibrationParts {
        source: choice(&file.source).map_err(|e| damaged(&e))?,
        classes: file.classes,
        items: file.items,
        centre: choice(&file.centre).map_err(|e| damaged(&e))?,
        mean: floats(mean),
        directions: floats(directions),
        factors: floats(factors),
        tree: choice(&file.tree).map_err(|e| damaged(&e))?,
        eagerness: choice(&file.eagerness).map_err(|e| damaged(&e))?,
        variance: file.variance,
        largest: file.largest,
        dimensions: file.dimensions,
        merges: file.merges,
        arrivals: file.arrivals,
        places: file.places,
        doubt: file.doubt,
    };
    let made = CalibrationOrigin {
        encoder: file.encoder,
        fitted_on: file.fitted_on,
        version: file.version,
        seed: file.seed.parse().map_err(|e| damaged(&format!("its seed: {e}")))?,
    };
    let calibration = Calibration::from_parts(parts).map_err(|e| damaged(&e))?;
    Ok((calibration, made))
}

/// The line of the text that says how to read the others.
#[derive(Deserialize)]
struct FormatLine {
    format: String,
}

/// The last line of a text.
fn mark_of(text: &str, tensors: [&[u8]; 3]) -> String {
    let bytes = text.as_bytes().iter().chain(tensors.into_iter().flatten());
    format!("{MARK}\"{}\"\n", fingerprint(bytes))
}

fn choice<T: FromStr<Err = String>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|expected| format!("`{text}` is not {expected}"))
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let values = bytes.chunks_exact(4);
    values.map(|v| f32::from_le_bytes([v[0], v[1], v[2], v[3]])).collect()
}

fn not_one(path: &Path, why: &dyn Display) -> DataError {
    malformed(
        path,
        format!("it is not a calibration ({why}); `genus calibrate` makes one"),
    )
}

fn malformed(path: &Path, problem: String) -> DataError {
    DataError::Malformed {
        path: path.to_owned(),
        problem,
    }
}
