//! `genus methods`: the table of methods and their parameters.

use std::fmt::Write;

use anstyle::Style;
use genus_core::methods::METHODS;

use crate::failure::Failure;
use crate::output;

pub(crate) fn run() -> Result<(), Failure> {
    let bold = Style::new().bold();
    let mut text = String::new();
    for method in METHODS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{bold}{}{bold:#}  {}", method.name, method.summary);
        for parameter in method.parameters {
            let setting = format!("{}={}", parameter.name, parameter.default);
            let _ = writeln!(text, "    {setting:<24} {}", parameter.help);
        }
        text.push('\n');
    }
    text.push_str("Set parameters after the name: --method shc:t=3:attach=cosine\n");
    output::print(&text)
}
