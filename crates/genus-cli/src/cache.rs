//! `genus cache`: the features that are remembered.

use genus::CacheChoice;
use genus::text::thousands;
use genus_data::FeatureCache;

use crate::args::CacheCommand;
use crate::failure::Failure;
use crate::say::print;
use crate::summary;

pub(crate) fn run(command: &CacheCommand) -> Result<(), Failure> {
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
                text += "nothing is remembered yet\n";
            }
            print(&text)
        }
        CacheCommand::Clear => Ok(FeatureCache::clear(&root)?),
    }
}
