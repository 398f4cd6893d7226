//! `genus cache`: the features that are remembered.

use clap::Subcommand;
use genus::CacheChoice;
use genus::text::thousands;
use genus_data::FeatureCache;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::say::{Terminal, print};
use crate::summary;

/// Show or clear the feature cache
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  genus cache info\n  genus cache clear\n\n\
                  The cache is $GENUS_CACHE, or genus in the system's cache folder."
)]
pub(crate) struct CacheArgs {
    #[command(subcommand)]
    command: CacheCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Show the number of cached images per encoder
    #[command(after_help = "Examples:\n  genus cache info")]
    Info,
    /// Delete all cached features
    #[command(after_help = "Examples:\n  genus cache clear")]
    Clear,
}

impl Arguments for CacheArgs {
    type Options = CacheCommand;

    fn options(self, _seed: u64) -> Result<CacheCommand, Failure> {
        Ok(self.command)
    }

    fn run(command: CacheCommand, _terminal: Terminal) -> Result<(), Failure> {
        show_or_clear(command)
    }
}

fn show_or_clear(command: CacheCommand) -> Result<(), Failure> {
    let Some(root) = CacheChoice::User.folder()? else {
        return Ok(());
    };
    match command {
        CacheCommand::Info => {
            let info = FeatureCache::info(&root)?;
            let mut text = format!("{}\n", root.display());
            for encoder in &info.encoders {
                text += &format!(
                    "{:>12} images {:>10}  {}\n",
                    thousands(encoder.images),
                    summary::bytes(encoder.bytes),
                    encoder.encoder
                );
            }
            if info.encoders.is_empty() {
                text += "the cache is empty\n";
            }
            print(&text)
        }
        CacheCommand::Clear => Ok(FeatureCache::clear(&root)?),
    }
}
