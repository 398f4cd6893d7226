//! `genus embed`: images to a feature file.

use std::path::PathBuf;

use genus::{ImageOptions, TableOptions};

use crate::args::Arguments;
use crate::args::shared::{ColumnArgs, ImageArgs};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::say::Terminal;

/// Turn images into a feature file
///
/// The images come from a folder (with one folder per class, its name is the label), a manifest (.csv, .jsonl or .parquet with
/// a column path and optional columns id and label), or a list with one path per line (.txt, or - for standard input). Images
/// in the cache are not embedded again, so after an interrupt the same command resumes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  genus embed photos/ -o photos.parquet
  genus embed photos/ --encoder dino-vitb16 -o photos.npz
  genus embed photos/ --encoder efficientnet-lite2 --weights efficientnet_lite2.pth -o photos.npz
  find . -name '*.jpg' | genus embed - -o found.parquet
  genus discover --support labelled.npz --query photos.npz")]
pub(crate) struct EmbedArgs {
    /// A folder, a manifest, or - for a list on standard input
    #[arg(value_name = "PATH")]
    images: PathBuf,
    /// The feature file: .parquet, .npz, .safetensors, .csv or .jsonl
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    options: ImageArgs,
}

pub(crate) struct EmbedCommand {
    images: PathBuf,
    out: PathBuf,
    options: ImageOptions,
    tables: TableOptions,
}

impl Arguments for EmbedArgs {
    type Options = EmbedCommand;

    fn options(self, _seed: u64) -> Result<EmbedCommand, Failure> {
        Ok(EmbedCommand {
            images: self.images,
            out: self.out,
            options: self.options.options(),
            tables: self.columns.options(),
        })
    }

    fn run(embed: EmbedCommand, terminal: Terminal) -> Result<(), Failure> {
        let progress = Bar::new(terminal);
        genus::embed(&embed.images, &embed.out, &embed.options, &embed.tables, &progress)?;
        Ok(())
    }
}
