//! `genus embed`: images to a feature file.

use crate::args::{EmbedArgs, GlobalArgs};
use crate::failure::Failure;
use crate::progress::Bar;

pub(crate) fn run(args: &EmbedArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let tables = args.columns.options();
    genus::embed(
        &args.images,
        &args.out,
        &args.options.options(),
        &tables,
        &Bar::new(global),
    )?;
    Ok(())
}
