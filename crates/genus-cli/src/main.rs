//! The binary `genus`: arguments, progress, messages, exit codes.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: 0 success, 1 failure, 2 wrong
//! usage, 3 success but for files that were skipped, 130 interrupted, 143 terminated.

#[macro_use]
mod say;

mod args;
mod assign;
mod bench;
mod bulk;
mod cache;
mod calibrate;
mod collection;
mod completions;
mod demo;
mod discover;
mod embed;
mod encoders;
mod failure;
mod man;
mod methods;
mod output;
mod progress;
mod record;
mod serve;
mod signals;
mod summary;
mod train;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use args::Args;

/// Tasks of half a megabyte come and go by the thousand; the system's allocator hands that memory back every time, and
/// fetching it again costs more than the clustering.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    quiet_reader_panics();
    if let Err(e) = signals::listen() {
        say!("genus: cannot listen for interrupts: {e}");
    }
    let args = Args::read();
    let summary = args.summary().map(Path::to_owned);
    if let Some(path) = &summary {
        record::will_go_to(path);
    }
    let start = Instant::now();
    let result = args.run();
    record::time("total", start.elapsed());
    let (mut code, failure) = match result {
        Ok(()) => (record::code(), None),
        Err(failure) => (failure.code(), Some(failure)),
    };
    if let Some(failure) = failure.as_ref().filter(|failure| failure.message().is_some()) {
        say!("{failure}");
    }
    if let Some(path) = &summary
        && let Err(failure) = record::write(path, code, failure.as_ref())
    {
        say!("{failure}");
        code = failure.code();
    }
    ExitCode::from(code)
}

/// Keeps panics that `genus-data` turns into errors from the screen: those of the Parquet decoder on damaged files.
fn quiet_reader_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !genus_data::panic_is_caught() {
            usual(panic);
        }
    }));
}
