//! `genus methods`: the table of methods and their parameters.

use std::fmt::Write;

use anstyle::Style;
use genus_core::methods::{METHODS, Parameter};
use genus_lab::BASELINES;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::say::{Terminal, print};

/// List the methods and their parameters
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  genus methods\n  genus discover table.csv --method ukc:alpha=1.6")]
pub(crate) struct MethodsArgs {}

impl Arguments for MethodsArgs {
    type Options = ();

    fn options(self, _seed: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn run((): (), _terminal: Terminal) -> Result<(), Failure> {
        list()
    }
}

fn list() -> Result<(), Failure> {
    let bold = Style::new().bold();
    let mut text = String::new();
    let mut add = |name: &str, summary: &str, parameters: &[Parameter]| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{bold}{name}{bold:#}  {summary}");
        for parameter in parameters {
            let setting = format!("{}={}", parameter.name, parameter.default);
            let _ = writeln!(text, "    {setting:<24} {}", parameter.help);
        }
        text.push('\n');
    };
    for method in METHODS {
        add(method.name, method.summary, method.parameters);
    }
    for baseline in BASELINES {
        add(
            baseline.name,
            &format!("{} (bench only)", baseline.summary),
            baseline.parameters,
        );
    }
    text.push_str("Set parameters after the name: --method shc:t=3:attach=cosine\n");
    print(&text)
}
