//! `genus cache`: the features that are remembered.

use genus_data::FeatureCache;

use crate::args::CacheCommand;
use crate::failure::Failure;
use crate::{images, output, summary};

pub(crate) fn run(command: &CacheCommand) -> Result<(), Failure> {
    let root = images::cache_root()?;
    match command {
        CacheCommand::Info => {
            let info = FeatureCache::info(&root)?;
            let mut text = format!("{}\n", root.display());
            for encoder in &info.encoders {
                text += &format!(
                    "{:>12} images {:>10}  {}\n",
                    summary::thousands(encoder.images),
                    summary::bytes(encoder.bytes),
                    encoder.encoder
                );
            }
            if info.encoders.is_empty() {
                text += "nothing is remembered yet\n";
            }
            output::print(&text)
        }
        CacheCommand::Clear => Ok(FeatureCache::clear(&root)?),
    }
}
