//! The settings beside a file of ONNX.

use std::fmt;
use std::path::{Path, PathBuf};

use genus_core::ranges;
use serde::Deserialize;

use super::OnnxError;
use crate::image::{Filter, Transform};

/// No settings file is longer.
const MOST_BYTES: u64 = 1 << 16;

/// What the file beside a model says of the images that it takes.
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
#[derive(Clone, Debug, PartialEq)]
pub struct OnnxSettings {
    /// What an image goes through before the network.
    pub transform: Transform,
    /// The input that takes images; by default the first.
    pub input: Option<String>,
    /// The output that is taken; by default the first.
    pub output: Option<String>,
    /// How it becomes one row an image.
    pub pooling: OnnxPooling,
}

/// How what leaves the network becomes one row an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnnxPooling {
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

impl fmt::Display for OnnxPooling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OnnxPooling::None => "none",
            OnnxPooling::Cls => "cls",
            OnnxPooling::Mean => "mean",
            OnnxPooling::Map => "map",
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    size: usize,
    resize: Option<usize>,
    #[serde(default)]
    filter: FilterName,
    mean: [f32; 3],
    std: [f32; 3],
    input: Option<String>,
    output: Option<String>,
    #[serde(default)]
    pooling: OnnxPooling,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FilterName {
    Bilinear,
    #[default]
    Bicubic,
}

impl OnnxSettings {
    /// Where the settings of a model are.
    pub fn path(model: &Path) -> PathBuf {
        model.with_extension("toml")
    }

    /// Reads the settings of a model.
    pub fn read(model: &Path) -> Result<Self, OnnxError> {
        let path = Self::path(model);
        let bytes = match genus_files::read_named(&path, MOST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(OnnxError::NoSettings {
                    settings: path,
                    model: model.to_owned(),
                });
            }
            Err(source) => return Err(OnnxError::Read { path, source }),
        };
        let wrong = |problem: String| OnnxError::Settings {
            path: path.clone(),
            problem,
        };
        let written: Written =
            toml::from_str(&String::from_utf8_lossy(&bytes)).map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            transform: transform(&written).map_err(wrong)?,
            input: written.input,
            output: written.output,
            pooling: written.pooling,
        })
    }
}

fn transform(settings: &Written) -> Result<Transform, String> {
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
