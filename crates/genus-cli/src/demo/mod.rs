//! `genus demo`: a pile sorted before one's eyes.

mod digits;
mod emoji;

use std::path::PathBuf;

use genus_core::metrics::Accuracy;
use genus_vision::{EncoderSpec, Model, WeightsHome};

use crate::args::Arguments;
use crate::failure::Failure;
use crate::say::Terminal;

const METHODS: [&str; 6] = ["proto", "rankstat", "gcd", "shc", "ukc", SHOWN];
/// The method whose answer is drawn: the default.
const SHOWN: &str = "calibrated";

/// The heading of the table of methods.
const HEADING: &str = "method       All   Old   New   categories";

/// See Genus sort emoji, most kinds of them never labelled
///
/// 362 emoji of 14 kinds ship with the program. Five kinds are known from five pictures each, the other nine are never named.
/// The pictures are processed like your own photographs, with the built-in encoder. No data and no network needed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  genus demo\n  genus demo --seed 3\n  genus demo --out emoji\n  genus demo digits")]
pub(crate) struct DemoArgs {
    /// What to sort: emoji (the default), or 1,797 handwritten digits by their pixels
    #[arg(value_name = "emoji|digits")]
    pile: Option<DemoPile>,
    /// Also write a report to DIR/report.html
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// What a demo sorts.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum DemoPile {
    Emoji,
    Digits,
}

pub(crate) struct DemoCommand {
    pile: DemoPile,
    out: Option<PathBuf>,
    seed: u64,
}

impl Arguments for DemoArgs {
    type Options = DemoCommand;

    fn options(self, seed: u64) -> Result<DemoCommand, Failure> {
        let home = EncoderSpec::parse(Model::DEFAULT)?.model.home;
        Ok(DemoCommand {
            // Pictures need an encoder, and a program may be built without one inside.
            pile: self.pile.unwrap_or(match home {
                WeightsHome::Embedded => DemoPile::Emoji,
                _ => DemoPile::Digits,
            }),
            out: self.out,
            seed,
        })
    }

    fn run(demo: DemoCommand, terminal: Terminal) -> Result<(), Failure> {
        match demo.pile {
            DemoPile::Digits => digits::run(demo.out.as_deref(), demo.seed),
            DemoPile::Emoji => emoji::run(demo.out.as_deref(), demo.seed, terminal),
        }
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
