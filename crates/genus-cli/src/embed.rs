//! `genus embed`: images to a feature file.

use genus_data::list_images;

use crate::args::{Embed, Global};
use crate::failure::Failure;
use crate::images::Embedder;

pub(crate) fn run(args: &Embed, global: &Global) -> Result<(), Failure> {
    let list = list_images(&args.images)?;
    Embedder::new(&args.options, global).embed(&list, &args.images, &args.out)
}
