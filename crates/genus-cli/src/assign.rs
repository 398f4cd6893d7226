//! `genus assign`: further items for a taxonomy, streamed.

use std::path::Path;
use std::time::Instant;

use genus_core::{Taxonomy, TaxonomyEntry};
use genus_data::{TableReader, read_taxonomy, same_encoder};
use genus_lab::Progress;

use crate::args::{Assign, Global};
use crate::blocks;
use crate::failure::Failure;
use crate::grow;
use crate::images::Embedder;
use crate::output::Sink;
use crate::progress::Bar;
use crate::summary;

pub(crate) fn run(args: &Assign, global: &Global) -> Result<(), Failure> {
    let start = Instant::now();
    let (taxonomy, made) = read_taxonomy(&args.taxonomy)?;
    let mut sink = Sink::open(&args.output)?;
    let query = Embedder::new(&args.images, global).input(&args.query, false)?;
    let rows = {
        let reader = TableReader::open(query.path())?;
        same_encoder(
            (&args.taxonomy, made.encoder.as_deref()),
            (&args.query, reader.encoder()),
        )?;
        check_dim(&args.taxonomy, taxonomy.centres().dim(), &args.query, reader.dim())?;
        reader.rows()
    };
    let bar = Bar::new(global);
    match rows {
        Some(rows) => bar.start("items", rows),
        None => bar.spin("items"),
    }
    let mut counts = vec![0u64; taxonomy.entries().len()];
    if let Some(folder) = &args.grow {
        let taxonomy = grow::run(taxonomy, folder, query.path(), &made, &mut sink, &bar)?;
        sink.finish()?;
        drop(bar);
        if !global.quiet {
            let how = format!("grown from a taxonomy of {}", made.method);
            anstream::eprint!("{}", summary::text(taxonomy.entries(), &how, start.elapsed()));
            anstream::eprintln!("Written to {}", folder.display());
        }
        return Ok(());
    }
    blocks::for_each(query.path(), |block| {
        let assignments = taxonomy.assign(&block.features)?;
        assignments
            .iter()
            .for_each(|assignment| counts[assignment.category] += 1);
        sink.write(&block.ids, &assignments, &taxonomy)?;
        bar.add(block.len() as u64);
        Ok(())
    })?;
    sink.finish()?;
    drop(bar);
    if !global.quiet {
        let how = format!("taxonomy of {}", made.method);
        anstream::eprint!("{}", summary::text(&counted(&taxonomy, &counts), &how, start.elapsed()));
    }
    Ok(())
}

/// The categories with other numbers of items.
pub(crate) fn counted(taxonomy: &Taxonomy, counts: &[u64]) -> Vec<TaxonomyEntry> {
    let entries = taxonomy.entries().iter().zip(counts);
    entries
        .map(|(entry, &items)| TaxonomyEntry { items, ..entry.clone() })
        .collect()
}

/// Fails when two files cannot come from the same encoder.
pub(crate) fn check_dim(a: &Path, a_dim: usize, b: &Path, b_dim: usize) -> Result<(), Failure> {
    if a_dim == b_dim {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{} has {a_dim} features an item, but {} has {b_dim}; features must come from the same encoder",
        a.display(),
        b.display()
    )))
}
