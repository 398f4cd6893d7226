//! `genus demo`: a pile sorted before one's eyes.

mod digits;
mod emoji;

use genus_core::metrics::Accuracy;
use genus_vision::{EncoderSpec, Model, WeightsHome};

use crate::args::{DemoArgs, DemoPile, GlobalArgs};
use crate::failure::Failure;

const METHODS: [&str; 6] = ["proto", "rankstat", "gcd", "shc", "ukc", SHOWN];
/// The method whose answer is drawn: the default.
const SHOWN: &str = "calibrated";

/// The heading of the table of methods.
const HEADING: &str = "method       All   Old   New   categories";

pub(crate) fn run(args: &DemoArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let home = EncoderSpec::parse(Model::DEFAULT)?.model.home;
    match args.pile {
        Some(DemoPile::Digits) => digits::run(args, global),
        Some(DemoPile::Emoji) => emoji::run(args, global),
        // Pictures need an encoder, and a program may be built without one inside.
        None if home != WeightsHome::Embedded => digits::run(args, global),
        None => emoji::run(args, global),
    }
}

/// A row of the table of methods.
fn row(method: &str, accuracy: &Accuracy, categories: usize, of: usize) -> String {
    format!(
        "{method:<10} {:5.1} {:5.1} {:>5} {categories:6} of {of}",
        100.0 * accuracy.all,
        100.0 * accuracy.old,
        match accuracy.new == 0.0 {
            true => "–".to_owned(),
            false => format!("{:.1}", 100.0 * accuracy.new),
        },
    )
}

fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
