//! Networks of any kind through ONNX Runtime, a library that is looked for when the first model is loaded.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use genus_core::ranges;
use ort::environment::Environment;
use ort::session::Session;
use ort::value::TensorRef;
use serde::Deserialize;
use thiserror::Error;

use crate::encoder::{EncodeError, Encoder, Fingerprint, check_pixels, finite};
use crate::image::{Filter, Transform};

/// The variable that names the library.
const LIBRARY: &str = "ORT_DYLIB_PATH";
/// No settings file is longer.
const MOST_BYTES: u64 = 1 << 16;

/// A network in an ONNX file, with a small TOML file next to it that describes its images.
///
/// Beside `model.onnx` is `model.toml`:
///
/// ```toml
/// size = 224                      # the side of the images that the network takes
/// resize = 256                    # the shorter side before the middle is cut out; by default `size`
/// filter = "bicubic"              # or "bilinear"
/// mean = [0.485, 0.456, 0.406]    # per channel, of values between 0 and 1
/// std = [0.229, 0.224, 0.225]
/// input = "pixel_values"          # by default the only one
/// output = "last_hidden_state"    # by default the first
/// pooling = "cls"                 # none, cls (the first token), mean (of all tokens), map (mean over height and width)
/// ```
pub struct OnnxEncoder {
    session: Mutex<Session>,
    input: String,
    output: String,
    pooling: Pooling,
    dim: usize,
    transform: Transform,
    fingerprint: Fingerprint,
}

/// How what leaves the network becomes one row an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Pooling {
    /// It is a row an image.
    #[default]
    None,
    /// The first of its tokens.
    Cls,
    /// The mean of its tokens.
    Mean,
    /// The mean of its map, channels first.
    Map,
}

impl Pooling {
    fn name(self) -> &'static str {
        match self {
            Pooling::None => "none",
            Pooling::Cls => "cls",
            Pooling::Mean => "mean",
            Pooling::Map => "map",
        }
    }

    /// The row of an image, given the shape and the values of the network's output for it; `None` where these are of something else.
    fn row(self, shape: &[i64], values: &[f32]) -> Option<Vec<f32>> {
        let lengths: Vec<usize> = shape
            .iter()
            .map(|&length| usize::try_from(length).ok())
            .collect::<Option<_>>()?;
        if lengths
            .iter()
            .try_fold(1, |all: usize, &length| all.checked_mul(length))?
            != values.len()
            || values.is_empty()
        {
            return None;
        }
        let mean_of = |rows: usize, value: &dyn Fn(usize) -> f32| {
            ((0..rows).map(|row| f64::from(value(row))).sum::<f64>() / rows as f64) as f32
        };
        match (self, &lengths[..]) {
            (Pooling::None, [1, _] | [1, _, 1, 1]) => Some(values.to_vec()),
            (Pooling::Cls, &[1, _, dim]) => Some(values[..dim].to_vec()),
            (Pooling::Mean, &[1, tokens, dim]) => Some(
                (0..dim)
                    .map(|at| mean_of(tokens, &|token| values[token * dim + at]))
                    .collect(),
            ),
            (Pooling::Map, &[1, channels, height, width]) => {
                let area = height * width;
                Some(
                    (0..channels)
                        .map(|channel| mean_of(area, &|at| values[channel * area + at]))
                        .collect(),
                )
            }
            _ => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OnnxSettings {
    size: usize,
    resize: Option<usize>,
    #[serde(default)]
    filter: FilterName,
    mean: [f32; 3],
    std: [f32; 3],
    input: Option<String>,
    output: Option<String>,
    #[serde(default)]
    pooling: Pooling,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FilterName {
    Bilinear,
    #[default]
    Bicubic,
}

/// Why a model cannot be loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Nothing says what images the network takes.
    #[error(
        "{} is missing, which says what images {} takes; write for example\n  size = 224\n  \
         mean = [0.485, 0.456, 0.406]\n  std = [0.229, 0.224, 0.225]",
        settings.display(),
        model.display()
    )]
    NoSettings {
        /// The file that is missing.
        settings: PathBuf,
        /// The model.
        model: PathBuf,
    },
    /// The settings make no sense.
    #[error("{}: {problem}", path.display())]
    OnnxSettings {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The library is not there.
    #[error(
        "ONNX Runtime cannot be loaded: {problem}\nInstall it, for example with `pip install onnxruntime`, and name its library in \
         {LIBRARY}, as in\n  {LIBRARY}=…/site-packages/onnxruntime/capi/libonnxruntime.so.1.22.0"
    )]
    Library {
        /// What the system said.
        problem: String,
    },
    /// The model cannot be run.
    #[error("{}: {problem}", model.display())]
    Model {
        /// The model.
        model: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// The runtime, loaded once.
fn environment() -> Result<&'static Environment, OnnxError> {
    static LOADED: OnceLock<Result<Environment, String>> = OnceLock::new();
    let load = || {
        let usual = || {
            format!(
                "{}onnxruntime{}",
                std::env::consts::DLL_PREFIX,
                std::env::consts::DLL_SUFFIX
            )
            .into()
        };
        let library = std::env::var_os(LIBRARY)
            .filter(|name| !name.is_empty())
            .unwrap_or_else(usual);
        let builder = ort::init_from(Path::new(&library)).map_err(|error| error.to_string())?;
        let quiet = builder.with_name("genus").with_telemetry(false);
        quiet.build().map_err(|error| error.to_string())
    };
    LOADED.get_or_init(load).as_ref().map_err(|problem| OnnxError::Library {
        problem: problem.clone(),
    })
}

impl OnnxEncoder {
    /// Loads a model and the settings next to it, and tries it on an image.
    pub fn load(model: &Path) -> Result<Self, OnnxError> {
        let read = |path: &Path, source| OnnxError::Read {
            path: path.to_owned(),
            source,
        };
        let hash = hash(model).map_err(|source| read(model, source))?;
        let path = model.with_extension("toml");
        let text = match genus_files::read_named(&path, MOST_BYTES) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(OnnxError::NoSettings {
                    settings: path,
                    model: model.to_owned(),
                });
            }
            Err(source) => return Err(read(&path, source)),
        };
        let wrong = |problem: String| OnnxError::Settings {
            path: path.clone(),
            problem,
        };
        let settings: OnnxSettings = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let transform = transform(&settings).map_err(wrong)?;
        let bad = |problem: String| OnnxError::Model {
            model: model.to_owned(),
            problem,
        };
        let session = session(model).map_err(|problem| match problem {
            SessionError::Library(error) => error,
            SessionError::Model(problem) => bad(problem),
        })?;
        let (inputs, outputs) = (names(session.inputs()), names(session.outputs()));
        let chosen = |asked: Option<String>, names: &[String], what: &str| match asked {
            Some(name) if names.contains(&name) => Ok(name),
            Some(name) => Err(bad(format!(
                "there is no {what} `{name}`; there are {}",
                names.join(", ")
            ))),
            None => names.first().cloned().ok_or_else(|| bad(format!("it has no {what}"))),
        };
        let input = chosen(settings.input, &inputs, "input")?;
        let output = chosen(settings.output, &outputs, "output")?;
        let kind = format!("onnx {output} {}", settings.pooling.name());
        let mut encoder = Self {
            session: Mutex::new(session),
            input,
            output,
            pooling: settings.pooling,
            dim: 0,
            transform,
            fingerprint: Fingerprint::new(&kind, &hash, &transform),
        };
        // Only a trial tells how many features there are.
        encoder.dim = encoder.features(&vec![0.0; transform.values()]).map_err(bad)?.len();
        Ok(encoder)
    }

    /// The features of one image, or what is wrong with them.
    fn features(&self, image: &[f32]) -> Result<Vec<f32>, String> {
        let side = self.transform.crop;
        let pixels = TensorRef::from_array_view(([1, 3, side, side], image)).map_err(|error| error.to_string())?;
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let outputs = session
            .run(ort::inputs![self.input.as_str() => pixels])
            .map_err(|error| error.to_string())?;
        let found = outputs.get(&self.output).ok_or("it gave no such output")?;
        let (shape, values) = found.try_extract_tensor::<f32>().map_err(|error| error.to_string())?;
        self.pooling.row(shape, values).ok_or_else(|| {
            let shape: Vec<String> = shape.iter().map(i64::to_string).collect();
            let (shape, pooling) = (shape.join(" × "), self.pooling.name());
            format!(
                "the output `{}` of one image is {shape}, of which the pooling `{pooling}` makes no row; \
                 none takes 1 × features, cls and mean take 1 × tokens × features, map takes 1 × channels × height × width",
                self.output
            )
        })
    }
}

impl Encoder for OnnxEncoder {
    fn dim(&self) -> usize {
        self.dim
    }

    fn transform(&self) -> &Transform {
        &self.transform
    }

    fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// One image at a time: what a network makes of a batch is its own affair, and features depend on the image alone.
    fn encode(&self, pixels: &[f32]) -> Result<Vec<f32>, EncodeError> {
        check_pixels(pixels, &self.transform)?;
        let images = pixels.chunks_exact(self.transform.values());
        let rows = images.map(|image| self.features(image).map_err(|problem| EncodeError::Runtime { problem }));
        finite(rows.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

enum SessionError {
    Library(OnnxError),
    Model(String),
}

fn session(model: &Path) -> Result<Session, SessionError> {
    let environment = environment().map_err(SessionError::Library)?;
    let threads = rayon::current_num_threads();
    let built = Session::builder(environment)
        .and_then(|builder| Ok(builder.with_intra_threads(threads)?.with_deterministic_compute(true)?))
        .and_then(|mut builder| builder.commit_from_file(model));
    built.map_err(|error| SessionError::Model(error.to_string()))
}

fn names(outlets: &[ort::value::Outlet]) -> Vec<String> {
    outlets.iter().map(|outlet| outlet.name().to_owned()).collect()
}

fn transform(settings: &OnnxSettings) -> Result<Transform, String> {
    let most = ranges::find("size").map_or(usize::MAX, |range| range.most as usize);
    let resize = settings.resize.unwrap_or(settings.size);
    for (name, value) in [("size", settings.size), ("resize", resize)] {
        if value == 0 || value > most {
            return Err(format!(
                "`{name}` is {value}; it is a number of pixels from 1 to {most}"
            ));
        }
    }
    if resize < settings.size {
        return Err(format!(
            "`resize` is {resize}, and no {} pixels can be cut out of it",
            settings.size
        ));
    }
    if !settings.mean.iter().all(|v| v.is_finite()) || !settings.std.iter().all(|v| v.is_finite() && *v > 0.0) {
        return Err("`mean` and `std` are three numbers each, and those of `std` positive".to_owned());
    }
    Ok(Transform {
        resize,
        filter: match settings.filter {
            FilterName::Bilinear => Filter::Bilinear,
            FilterName::Bicubic => Filter::Bicubic,
        },
        crop: settings.size,
        mean: settings.mean,
        std: settings.std,
    })
}

/// The hash of a model, and of the file beside it that large ones keep their weights in.
fn hash(model: &Path) -> std::io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(model)?)?;
    for ending in ["onnx.data", "onnx_data"] {
        let weights = model.with_extension(ending);
        if weights.is_file() {
            hasher.update_reader(File::open(weights)?)?;
        }
    }
    Ok(hasher.finalize())
}
