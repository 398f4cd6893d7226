//! `genus embed`: images to a feature file.

use crate::args::{Embed, Global};
use crate::failure::Failure;
use crate::progress::Bar;

pub(crate) fn run(args: &Embed, global: &Global) -> Result<(), Failure> {
    genus::embed(&args.images, &args.out, &args.options.options(), &Bar::new(global))?;
    Ok(())
}
