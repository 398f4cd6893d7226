//! `genus encoders`: what can make features of images.

use genus_vision::{Encoder, EncoderSpec, Home, Hub, MODELS, Precision};

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
                encoder: Some(encoder.clone()),
                weights: weights.clone(),
            };
            info(&choice, *precision)
        }
        EncodersCommand::Pull { encoder } => {
            let spec = EncoderSpec::parse(encoder)?;
            if spec.model.home == Home::Embedded {
                return print(&format!(
                    "{} is inside of this program: nothing to fetch\n",
                    spec.model.name
                ));
            }
            let path = genus::fetch_weights(&spec, &Bar::new(global))?;
            print(&format!("{}\n", path.display()))
        }
    }
}

fn list() -> Result<(), Failure> {
    let hub = Hub::from_env();
    let mut text = String::new();
    for model in MODELS {
        let here = match model.home {
            Home::Embedded => true,
            Home::Hub { repo, file } => hub.cached(repo, file).is_some(),
            Home::Own => false,
        };
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
    let mut weights = weights;
    if let Home::Hub { repo, file } = model.home {
        text += &format!("hub           {repo}, {file}\n");
        weights = weights.or_else(|| Some(Hub::from_env().cached(repo, file)?.into()));
    }
    match weights {
        None => text += "weights       not on this machine\n",
        Some(weights) => {
            text += &format!("weights       {weights}\n");
            let encoder = spec.load(weights, spec.isa(precision)?)?;
            text += &format!("architecture  {}\n", encoder.architecture());
            text += &format!("features      {}\n", encoder.dim());
            text += &format!("runs on       {}, {}\n", encoder.isa(), encoder.isa().precision());
            text += &format!("fingerprint   {}\n", encoder.fingerprint());
        }
    }
    print(&text)
}
