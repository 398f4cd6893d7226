//! `genus encoders`: what can make features of images.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use genus::text::thousands;
use genus::{CacheChoice, ImageOptions, OnnxInfo, is_onnx};
use genus_vision::{
    Encoder, EncoderSpec, Hub, MODELS, Model, OnnxError, OnnxLength, OnnxSettings, OnnxValue, Precision, WeightsHome,
};
use serde::Serialize;

use crate::args::Arguments;
use crate::failure::{Failure, printable};
use crate::progress::Bar;
use crate::say::{Terminal, print};
use crate::summary;

/// List encoders, show one, or download its weights
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  genus encoders list\n  genus encoders info dinov2-small\n  \
                        genus encoders pull dino-vitb16"
)]
pub(crate) struct EncodersArgs {
    #[command(subcommand)]
    command: EncodersCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EncodersCommand {
    /// List the named encoders
    ///
    /// Parameters and download sizes are computed from the network definitions. Speeds are shown once measured.
    #[command(
        after_help = "Examples:\n  genus encoders list\n  genus encoders list --measure\n  genus encoders list --json"
    )]
    List {
        /// First measure the speed of the available encoders on this machine (a few seconds each; the result is cached)
        #[arg(long)]
        measure: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show an encoder, with its fingerprint if its weights are available
    #[command(after_help = "Examples:\n  genus encoders info dinov2-small\n  \
                            genus encoders info vit:heads=6 --weights my_vit.pth")]
    Info {
        /// The encoder, or the folder of a training run
        #[arg(value_name = "ENCODER")]
        encoder: String,
        /// The encoder's weights, .safetensors or PyTorch
        #[arg(long, value_name = "FILE")]
        weights: Option<PathBuf>,
        /// Precision of matrix products
        #[arg(long, value_name = "f32|bf16")]
        precision: Option<Precision>,
    },
    /// Download the weights of an encoder from the Hugging Face hub, and print their path
    #[command(after_help = "Examples:\n  genus encoders pull dino-vitb16\n\n\
                      HF_HOME, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE are honoured.")]
    Pull {
        /// The encoder
        #[arg(value_name = "ENCODER")]
        encoder: String,
    },
}

impl Arguments for EncodersArgs {
    type Options = EncodersCommand;

    fn options(self, _seed: u64) -> Result<EncodersCommand, Failure> {
        Ok(self.command)
    }

    fn run(command: EncodersCommand, terminal: Terminal) -> Result<(), Failure> {
        match command {
            EncodersCommand::List { measure, json } => list(measure, json, terminal),
            EncodersCommand::Info {
                encoder,
                weights,
                precision,
            } => {
                let options = ImageOptions {
                    encoder: Some(encoder),
                    weights,
                    ..ImageOptions::default()
                };
                info(&options, precision)
            }
            EncodersCommand::Pull { encoder } => pull(&encoder, terminal),
        }
    }
}

fn pull(encoder: &str, terminal: Terminal) -> Result<(), Failure> {
    let spec = EncoderSpec::parse(encoder)?;
    if spec.model.home == WeightsHome::Embedded {
        return print(&format!("{} is built in: nothing to download\n", spec.model.name));
    }
    let path = genus::fetch_weights(&spec, &Bar::new(terminal))?;
    print(&format!("{}\n", path.display()))
}

/// An encoder as it is listed.
#[derive(Serialize)]
struct ListedEncoder {
    name: &'static str,
    about: &'static str,
    good_for: &'static str,
    /// Whether it is taken where none is named.
    default: bool,
    features: Option<usize>,
    parameters: Option<u64>,
    /// What would be fetched.
    download_bytes: Option<u64>,
    /// Whether it runs without fetching anything.
    at_hand: bool,
    /// Its weights, where they are files on this machine.
    weights: Option<PathBuf>,
    /// On this machine, where it was measured.
    images_per_second: Option<f64>,
    licence: &'static str,
}

fn list(measure: bool, json: bool, terminal: Terminal) -> Result<(), Failure> {
    let hub = Hub::from_env();
    let cached = |model: &Model| match model.home {
        WeightsHome::Hub { repo, file } => hub.cached(repo, file),
        _ => None,
    };
    let at_hand = |model: &Model| model.home == WeightsHome::Embedded || cached(model).is_some();
    if measure {
        let progress = Bar::new(terminal);
        for model in MODELS.iter().filter(|model| at_hand(model)) {
            genus::measure_speed(&ImageOptions::default().with_encoder(model.name), &progress)?;
        }
    }
    let speeds = genus::remembered_speeds(&CacheChoice::User);
    let listed = MODELS.iter().map(|model| ListedEncoder {
        name: model.name,
        about: model.about,
        good_for: model.good_for,
        default: model.name == Model::DEFAULT,
        features: (model.dim > 0).then_some(model.dim),
        parameters: model.parameters(),
        download_bytes: model.download(),
        at_hand: at_hand(model),
        weights: cached(model),
        images_per_second: speeds.get(model.name).copied(),
        licence: model.licence,
    });
    let listed: Vec<ListedEncoder> = listed.collect();
    match json {
        true => {
            let text = serde_json::to_string_pretty(&listed).map_err(|e| Failure::failed(e.to_string()))?;
            print(&(text + "\n"))
        }
        false => print(&table(&listed)),
    }
}

/// The encoders for people, a line each.
fn table(listed: &[ListedEncoder]) -> String {
    let header = [
        "name",
        "features",
        "parameters",
        "download",
        "available",
        "images/s",
        "good for",
    ]
    .map(str::to_owned);
    let unknown = || "–".to_owned();
    let rows = listed.iter().map(|encoder| {
        [
            encoder.name.to_owned(),
            encoder.features.map_or_else(unknown, |features| features.to_string()),
            encoder
                .parameters
                .map_or_else(unknown, |count| format!("{:.1} M", count as f64 / 1e6)),
            encoder.download_bytes.map_or_else(unknown, summary::bytes),
            if encoder.at_hand { "yes" } else { "" }.to_owned(),
            encoder
                .images_per_second
                .map_or_else(String::new, |speed| format!("{speed:.1}")),
            encoder.good_for.to_owned(),
        ]
    });
    let rows: Vec<[String; 7]> = std::iter::once(header).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| match column {
                0 | 4 => format!("{cell:<width$}"),
                6 => cell.clone(),
                _ => format!("{cell:>width$}"),
            });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text += "\n";
    }
    text += "\n`genus encoders pull NAME` downloads weights; --weights FILE uses your own.";
    if listed
        .iter()
        .any(|encoder| encoder.at_hand && encoder.images_per_second.is_none())
    {
        text += " `genus encoders list --measure` measures the\nspeed of available encoders on this machine.";
    }
    text + "\n"
}

/// What a file of ONNX says, what the settings beside it say, and what is missing.
fn onnx_info(model: &Path) -> Result<(), Failure> {
    let info = OnnxInfo::of(model)?;
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let settings = OnnxSettings::path(model);
    let mut text = format!("{}: a network in a file of ONNX, for ONNX Runtime\n", name(model));
    let mut missing = Vec::new();
    text += &format!("parameters    {}\n", thousands(info.model.parameters));
    for (what, values) in [("input ", &info.model.inputs), ("output", &info.model.outputs)] {
        for value in values {
            text += &format!("{what}        {value}\n");
        }
    }
    for file in &info.model.weights_in {
        text += &format!("weights in    {}\n", file.display());
        if !file.is_file() {
            missing.push(format!("{}, which has weights of it", file.display()));
        }
    }
    match &info.settings {
        Ok(found) => {
            text += &format!("settings      {}\n", settings.display());
            text += &format!("transform     {}\n", found.transform);
            let first = |values: &[OnnxValue]| values.first().map_or_else(String::new, |value| value.name.clone());
            let input = found.input.clone().unwrap_or_else(|| first(&info.model.inputs));
            let output = found.output.clone().unwrap_or_else(|| first(&info.model.outputs));
            text += &format!("takes         {input} gives {output}, pooling {}\n", found.pooling);
        }
        Err(OnnxError::NoSettings { .. }) => {
            let side = info.model.inputs.first().and_then(|input| match input.shape[..] {
                [_, _, OnnxLength::Fixed(height), OnnxLength::Fixed(width)] if height == width => Some(height),
                _ => None,
            });
            missing.push(format!(
                "{}, which says what images it takes; write into it for example\n  size = {}\n  mean = [0.485, 0.456, 0.406]\n  \
                 std = [0.229, 0.224, 0.225]",
                settings.display(),
                side.unwrap_or(224),
            ));
        }
        Err(error) => missing.push(format!("settings that can be used: {error}")),
    }
    match &info.trial {
        None => {}
        Some(Ok((features, fingerprint))) => {
            text += &format!("features      {features}\n");
            text += &format!("fingerprint   {fingerprint}\n");
        }
        Some(Err(error)) => missing.push(format!("a way to run it: {error}")),
    }
    for what in missing {
        text += &format!("missing       {what}\n");
    }
    print(&printable(&text))
}

fn info(options: &ImageOptions, precision: Option<Precision>) -> Result<(), Failure> {
    if is_onnx(options.encoder()) {
        let model = Path::new(options.encoder());
        return match options.weights.is_some() || precision.is_some() {
            true => Err(genus::Error::OnnxIsWhole { model: model.into() }.into()),
            false => onnx_info(model),
        };
    }
    let (spec, weights) = options.find()?;
    let model = spec.model;
    let mut text = format!("{}: {}\n", model.name, model.about);
    text += &format!("good for      {}\n", model.good_for);
    text += &format!("transform     {}\n", spec.transform);
    text += &format!("licence       {}\n", model.licence);
    let mut weights = weights;
    if let WeightsHome::Hub { repo, file } = model.home {
        text += &format!("hub           {repo}, {file}\n");
        weights = weights.or_else(|| Some(Hub::from_env().cached(repo, file)?.into()));
    }
    match weights {
        None => {
            text += "weights       not on this machine\n";
            if let Some(count) = model.parameters() {
                text += &format!("parameters    {}\n", thousands(count));
            }
        }
        Some(weights) => {
            text += &format!("weights       {weights}\n");
            let encoder = spec.load(weights, spec.isa(precision)?)?;
            text += &format!("architecture  {}\n", encoder.architecture());
            if let Some(count) = encoder.architecture().parameters(spec.transform.crop) {
                text += &format!("parameters    {}\n", thousands(count));
            }
            text += &format!("features      {}\n", encoder.dim());
            text += &format!("runs on       {}, {}\n", encoder.isa(), encoder.isa().precision());
            text += &format!("fingerprint   {}\n", encoder.fingerprint());
        }
    }
    print(&text)
}
