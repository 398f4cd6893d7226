//! `genus man`: a man page for every command, from the same definition as its help.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_mangen::Man;
use genus_files::AtomicFile;

use crate::args::{Args, Arguments};
use crate::failure::Failure;
use crate::say::Terminal;

/// Write man pages for all commands
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  genus man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The folder for the pages; created if needed
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Arguments for ManArgs {
    type Options = PathBuf;

    fn options(self, _seed: u64) -> Result<PathBuf, Failure> {
        Ok(self.folder)
    }

    fn run(folder: PathBuf, terminal: Terminal) -> Result<(), Failure> {
        write_pages(&folder, terminal)
    }
}

fn write_pages(folder: &Path, terminal: Terminal) -> Result<(), Failure> {
    let failed = |path: &Path, e: io::Error| Failure::failed(format!("cannot write {}: {e}", path.display()));
    fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
    // Building gives every command the options that all have.
    let mut program = Args::command().disable_help_subcommand(true);
    program.build();
    let mut commands = vec![program];
    let mut pages = 0;
    while let Some(command) = commands.pop() {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let path = folder.join(format!("{name}.1"));
        commands.extend(command.get_subcommands().cloned());
        let mut page = Vec::new();
        Man::new(command).render(&mut page).map_err(|e| failed(&path, e))?;
        let mut file = AtomicFile::create(&path)?;
        file.write_all(&page).map_err(|e| failed(&path, e))?;
        file.commit()?;
        pages += 1;
    }
    if !terminal.quiet {
        let first = folder.join("genus.1");
        say!(
            "Wrote {pages} pages to {}; try man -l {}",
            folder.display(),
            first.display()
        );
    }
    Ok(())
}
