//! A folder of photographs: sorts it by a few examples, which lie in one folder per class, and writes a folder of results.
//!
//! ```sh
//! cargo run --release -p genus --example photographs labelled/ photos/ result/
//! ```
//!
//! A fourth argument names another encoder, with a file of its weights if need be: `resnet18@resnet18.safetensors`.

use std::path::PathBuf;

use genus::{Destination, DiscoverOptions, ImageOptions, Inputs, Length, Note, OutputOptions, Page, Progress};

/// Says on standard error what happens meanwhile.
struct Terminal;

impl Progress for Terminal {
    fn start(&self, stage: &str, _: Length) {
        eprintln!("{stage} …");
    }
    fn advance(&self, _: u64) {}
    fn note(&self, note: &Note) {
        eprintln!("{note:?}");
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [labelled, photos, result, encoder @ ..] = &arguments[..] else {
        return Err("give the folder of examples, the folder of photographs and the folder for the results".into());
    };
    let mut options = DiscoverOptions::default();
    if let [encoder] = encoder {
        options.images = ImageOptions::default().with_encoder(encoder);
    }

    let inputs = Inputs::new(PathBuf::from(labelled), PathBuf::from(photos));
    let page = Page::new(&inputs, &options.tables, None, None)?;
    let outcome = genus::discover(inputs, &options, &Terminal)?;
    for entry in outcome.taxonomy.entries() {
        println!("{}: {} photographs", entry.name, entry.items);
    }
    let folder = Destination::Folder(PathBuf::from(result));
    let saved = outcome.write(folder, OutputOptions::default(), Some(&page), &Terminal)?;
    if let Some(report) = saved.report {
        println!("see {}", report.display());
    }
    Ok(())
}
