//! `genus encoders`: what can make features of images.

use genus_vision::{Encoder, EncoderSpec, Hub, MODELS, Precision};

use crate::args::{EncoderChoice, EncodersCommand, Global};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::say::print;

pub(crate) fn run(command: &EncodersCommand, global: &Global) -> Result<(), Failure> {
    match command {
        EncodersCommand::List => list(),
        EncodersCommand::Info {
            encoder,
            weights,
            precision,
        } => {
            let choice = EncoderChoice {
                encoder: encoder.clone(),
                weights: weights.clone(),
            };
            info(&choice, *precision)
        }
        EncodersCommand::Pull { encoder } => {
            let path = genus::fetch_weights(&EncoderSpec::parse(encoder)?, &Bar::new(global))?;
            print(&format!("{}\n", path.display()))
        }
    }
}

fn list() -> Result<(), Failure> {
    let hub = Hub::from_env();
    let mut text = String::new();
    for model in &MODELS {
        let here = model.hub.is_some_and(|(repo, file)| hub.cached(repo, file).is_some());
        let features = match model.dim {
            0 => "any".to_owned(),
            dim => dim.to_string(),
        };
        let mark = if here { "here" } else { "" };
        text += format!("{:<20} {features:>5} features  {mark:<5} {}\n", model.name, model.about).trim_end();
        text += "\n";
    }
    text += "\nhere: the weights are on this machine. `genus encoders pull NAME` gets them, --weights FILE takes your own.\n";
    print(&text)
}

fn info(choice: &EncoderChoice, precision: Option<Precision>) -> Result<(), Failure> {
    let (spec, weights) = choice.options().find()?;
    let model = spec.model;
    let mut text = format!("{}: {}\n", model.name, model.about);
    text += &format!("transform     {}\n", spec.transform);
    text += &format!("licence       {}\n", model.licence);
    let hub = Hub::from_env();
    let cached = model.hub.and_then(|(repo, file)| hub.cached(repo, file));
    if let Some((repo, file)) = model.hub {
        text += &format!("hub           {repo}, {file}\n");
    }
    let weights = weights.or(cached);
    match &weights {
        None => text += "weights       not on this machine\n",
        Some(path) => {
            let encoder = spec.load(path, spec.isa(precision)?)?;
            text += &format!("weights       {}\n", path.display());
            text += &format!("architecture  {}\n", encoder.architecture());
            text += &format!("features      {}\n", encoder.dim());
            text += &format!("runs on       {}, {}\n", encoder.isa(), encoder.isa().precision());
            text += &format!("fingerprint   {}\n", encoder.fingerprint());
        }
    }
    print(&text)
}
