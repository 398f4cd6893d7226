//! Where results go, and what there is to say of what was written.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use genus::text::{plural, thousands};
use genus::{Destination, Output, OutputOptions, SavedFiles};
use genus_data::Format;

use crate::failure::{Failure, printable};
use crate::say::Terminal;

/// Where results go.
pub(crate) struct OutputTarget {
    /// The folder; without one, standard output.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) options: OutputOptions,
}

impl OutputTarget {
    /// Opens the folder that was named, or standard output.
    pub(crate) fn open(self, pile: &Path) -> Result<Output, Failure> {
        let to = match self.folder {
            Some(folder) => Destination::Folder(folder),
            None if self.options.format == Format::Parquet && io::stdout().is_terminal() => {
                return Err(Failure::Usage(
                    "Parquet cannot be shown in a terminal; name a folder with --out DIR".into(),
                ));
            }
            None => Destination::Writer {
                name: "the standard output".to_owned(),
                writer: match io::stdout().is_terminal() {
                    true => Box::new(TerminalWriter::new(io::stdout())),
                    false => Box::new(BufWriter::new(io::stdout())),
                },
            },
        };
        Ok(Output::open(to, self.options, pile)?)
    }
}

/// Says where the results are, and what was done with the files of the items.
pub(crate) fn say_saved(saved: &SavedFiles, terminal: Terminal) {
    if terminal.quiet {
        return;
    }
    if let Some(folder) = &saved.folder {
        say!("Written to {}", folder.display());
    }
    if let Some(report) = &saved.report {
        say!("Open {} in a browser", report.display());
    }
    if let Some((files, folder)) = &saved.sorted {
        let word = plural(*files, "file", "files");
        let line = format!("{} {word} sorted into {}", thousands(*files), folder.display());
        say!("{}", printable(&line));
    }
    for export in &saved.exports {
        say!("{}", printable(export.next()));
    }
}

/// Rows on a terminal, which obeys control characters: names come from files. A file or a pipe gets them as they are.
struct TerminalWriter<W> {
    terminal: W,
    /// What came since the end of the last line.
    begun: Vec<u8>,
}

impl<W: Write> TerminalWriter<W> {
    fn new(terminal: W) -> Self {
        Self {
            terminal,
            begun: Vec::new(),
        }
    }
}

impl<W: Write> Write for TerminalWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend(bytes);
        if let Some(end) = self.begun.iter().rposition(|&byte| byte == b'\n') {
            let begun = self.begun.split_off(end + 1);
            let lines = std::mem::replace(&mut self.begun, begun);
            self.terminal
                .write_all(printable(&String::from_utf8_lossy(&lines)).as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let begun = std::mem::take(&mut self.begun);
        self.terminal
            .write_all(printable(&String::from_utf8_lossy(&begun)).as_bytes())?;
        self.terminal.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_shown_nothing_that_it_obeys() {
        let text = "id,category\n\u{1b}[31mred\u{1b}[0m,bell\u{7}\né\u{9b}2J,ü\nlast";
        let expected = "id,category\n\u{fffd}[31mred\u{fffd}[0m,bell\u{fffd}\né\u{fffd}2J,ü\nlast";
        // However the bytes are cut.
        for size in 1..text.len() {
            let mut shown = TerminalWriter::new(Vec::new());
            text.as_bytes()
                .chunks(size)
                .for_each(|part| shown.write_all(part).unwrap());
            shown.flush().unwrap();
            assert_eq!(String::from_utf8(shown.terminal).unwrap(), expected);
        }
    }
}
