//! `genus completions`: a completion script for a shell, from the same definition as the help.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{Args, Arguments};
use crate::failure::Failure;
use crate::say::{self, Terminal};

/// Print a shell completion script
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  genus completions bash > ~/.local/share/bash-completion/completions/genus\n  \
                            genus completions zsh > ~/.zfunc/_genus\n  \
                            genus completions fish > ~/.config/fish/completions/genus.fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl Arguments for CompletionsArgs {
    type Options = Shell;

    fn options(self, _seed: u64) -> Result<Shell, Failure> {
        Ok(self.shell)
    }

    fn run(shell: Shell, _terminal: Terminal) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Args::command(), "genus", &mut script);
        say::print(&String::from_utf8_lossy(&script))
    }
}
