//! `genus assign`: further items for a taxonomy, streamed.

use std::path::Path;
use std::time::Instant;

use genus_data::{TableReader, read_growing, read_taxonomy, same_encoder};
use genus_lab::Progress;

use crate::args::{Assign, Global};
use crate::blocks;
use crate::calibrate::{Given, knowledge};
use crate::failure::Failure;
use crate::grow::{Ground, Grown, Growth};
use crate::images::Embedder;
use crate::next_steps::NextSteps;
use crate::output::Sink;
use crate::progress::Bar;
use crate::summary::{self, Counts, plural, thousands};

pub(crate) fn run(args: &Assign, global: &Global) -> Result<(), Failure> {
    let start = Instant::now();
    // The folder is nobody else's before it is read, or what others add in between would be lost.
    let ground = args.grow.as_deref().map(Ground::open).transpose()?;
    let (mut taxonomy, made, grown) = match ground {
        None => {
            let (taxonomy, made) = read_taxonomy(&args.taxonomy)?;
            (taxonomy, made, None)
        }
        Some(ground) => {
            let found = read_growing(&args.taxonomy)?;
            (found.taxonomy, found.made, Some((found.growth, ground)))
        }
    };
    let own = taxonomy.calibration().cloned();
    if let Some(path) = &args.calibration {
        if let Some(own) = &own {
            return Err(Failure::failed(format!(
                "{} has a calibration of its own ({}); leave out --calibration, or run `genus discover` again with it",
                args.taxonomy.display(),
                knowledge(own)
            )));
        }
        let given = Given::read(path)?;
        given.check(&args.taxonomy, taxonomy.centres().dim(), made.encoder.as_deref())?;
        let failed = |e| Failure::failed(format!("{}: {e}", path.display()));
        taxonomy = taxonomy.calibrated_by(given.calibration).map_err(failed)?;
    }
    let growth = grown.map(|(before, ground)| Growth::new(taxonomy.clone(), &made, before, &args.taxonomy, ground));
    let growth = growth.transpose()?;
    let next = NextSteps::new(&args.next, &args.output, &args.query, &made.method)?;
    let mut sink = Sink::open(&args.output, next, growth.is_some())?;
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
    if let Some(growth) = growth {
        let Grown {
            taxonomy,
            counts,
            known,
            joined,
            waiting,
        } = growth.run(&query, &made, &mut sink, &bar)?;
        let done = sink.finish(global)?;
        drop(bar);
        if !global.quiet {
            let how = format!("grown from a taxonomy of {}", made.method);
            say_as_is!("{}", summary::text(&taxonomy, &counts, &how, start.elapsed()));
            if known > 0 {
                let were = plural(known as u64, "item was", "items were");
                say!(
                    "{} {were} there before and did not count again",
                    thousands(known as u64)
                );
            }
            if waiting > 0 {
                let wait = plural(waiting as u64, "item waits for others", "items wait for others");
                say!("{} {wait} to agree with", thousands(waiting as u64));
            }
            if joined > 0 {
                let have = plural(
                    joined as u64,
                    "item of earlier files has",
                    "items of earlier files have",
                );
                say!("{} {have} joined a category (joined.csv)", thousands(joined as u64));
            }
        }
        done.say(global);
        return Ok(());
    }
    let mut counts = Counts::new(&taxonomy);
    blocks::for_each(query.path(), |block| {
        let assignments = taxonomy.assign(&block.features)?;
        counts.add(&assignments);
        sink.write(&block.ids, &assignments, &taxonomy, None)?;
        bar.add(block.len() as u64);
        Ok(())
    })?;
    sink.plan(&query)?;
    let done = sink.finish(global)?;
    drop(bar);
    if !global.quiet {
        let how = match (own, taxonomy.calibration()) {
            (Some(own), _) => format!("taxonomy of {} {}", made.method, knowledge(&own)),
            (None, Some(given)) => format!("taxonomy of {}, calibrated {}", made.method, knowledge(given)),
            (None, None) => format!("taxonomy of {}", made.method),
        };
        say_as_is!("{}", summary::text(&taxonomy, &counts, &how, start.elapsed()));
    }
    done.say(global);
    Ok(())
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
