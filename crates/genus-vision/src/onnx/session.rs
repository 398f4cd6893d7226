//! Networks of any kind through ONNX Runtime, a library that is looked for when the first model is loaded.

use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use ort::environment::Environment;
use ort::session::Session;
use ort::value::TensorRef;

use super::{LIBRARY, OnnxError, OnnxPooling, OnnxSettings};
use crate::encoder::{EncodeError, Encoder, Fingerprint, check_pixels, finite};
use crate::image::Transform;

/// A network in a file of ONNX, with a small TOML file beside it that says what images it takes ([`OnnxSettings`]).
pub struct OnnxEncoder {
    session: Mutex<Session>,
    input: String,
    output: String,
    pooling: OnnxPooling,
    dim: usize,
    transform: Transform,
    fingerprint: Fingerprint,
}

impl OnnxPooling {
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
            (OnnxPooling::None, [1, _] | [1, _, 1, 1]) => Some(values.to_vec()),
            (OnnxPooling::Cls, &[1, _, dim]) => Some(values[..dim].to_vec()),
            (OnnxPooling::Mean, &[1, tokens, dim]) => Some(
                (0..dim)
                    .map(|at| mean_of(tokens, &|token| values[token * dim + at]))
                    .collect(),
            ),
            (OnnxPooling::Map, &[1, channels, height, width]) => {
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
        let hash = hash(model).map_err(|source| OnnxError::Read {
            path: model.to_owned(),
            source,
        })?;
        let settings = OnnxSettings::read(model)?;
        let transform = settings.transform;
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
        let kind = format!("onnx {output} {}", settings.pooling);
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
            let (shape, pooling) = (shape.join(" × "), self.pooling);
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
