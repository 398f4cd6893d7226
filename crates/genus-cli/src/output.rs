//! Where results go, and what there is to say of what was written.

use std::io::{self, BufWriter, IsTerminal};
use std::path::Path;

use genus::text::thousands;
use genus::{Destination, NextSteps, Output, OutputOptions, Saved};
use genus_data::Format;

use crate::args::{self, Global};
use crate::failure::{Failure, printable};

/// Opens the folder that was named, or the standard output.
pub(crate) fn open(output: &args::Output, next: &args::NextSteps, pile: &Path) -> Result<Output, Failure> {
    let to = match &output.out {
        Some(folder) => Destination::Folder(folder.clone()),
        None if output.format == Format::Parquet && io::stdout().is_terminal() => {
            return Err(Failure::Usage(
                "Parquet cannot be shown in a terminal; name a folder with --out DIR".into(),
            ));
        }
        None => Destination::Writer {
            name: "the standard output".to_owned(),
            writer: Box::new(BufWriter::new(io::stdout())),
        },
    };
    let options = OutputOptions {
        format: output.format,
        spreadsheet: output.spreadsheet,
        next: NextSteps {
            sort_into: next.sort_into.clone(),
            link: next.link,
            allow_outside: next.allow_outside,
            exports: next.export.clone(),
        },
    };
    Ok(Output::open(to, options, pile)?)
}

/// Says what was done with the files of the items.
pub(crate) fn say_next_steps(saved: &Saved, global: &Global) {
    if global.quiet {
        return;
    }
    if let Some((files, folder)) = &saved.sorted {
        let line = format!("{} files sorted into {}", thousands(*files), folder.display());
        say!("{}", printable(&line));
    }
    for export in &saved.exports {
        say!("{}", printable(export.next()));
    }
}
