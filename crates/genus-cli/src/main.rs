//! The binary `genus`: arguments, progress, messages, exit codes.
//!
//! Data goes to the standard output, everything else to the standard error. Exit codes: 0 success, 1 failure, 2 wrong
//! usage, 3 success but for files that were skipped, 130 interrupted, 143 terminated.

#[macro_use]
mod say;

mod args;
mod assign;
mod bench;
mod cache;
mod calibrate;
mod collection;
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

use std::process::ExitCode;
use std::time::Instant;

use clap::{CommandFactory, FromArgMatches};

use args::{Args, Command};
use failure::Failure;

/// Tasks of half a megabyte come and go by the thousand; the system's allocator hands that memory back every time, and
/// fetching it again costs more than the clustering.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    quiet_reader_panics();
    if let Err(e) = signals::listen() {
        say!("genus: cannot listen for interrupts: {e}");
    }
    let matches = Args::grouped().get_matches();
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Some(path) = &args.global.summary {
        record::will_go_to(path);
    }
    let start = Instant::now();
    let result = run(&args);
    record::time("total", start.elapsed());
    let (mut code, failure) = match result {
        Ok(()) => (record::code(), None),
        Err(failure) => (failure.code(), Some(failure)),
    };
    if let Some(failure) = failure.as_ref().filter(|failure| failure.message().is_some()) {
        say!("{failure}");
    }
    if let Some(path) = &args.global.summary
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

fn run(args: &Args) -> Result<(), Failure> {
    if let Some(threads) = args.global.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.get())
            .build_global()
            .map_err(|e| Failure::failed(format!("cannot start {threads} threads: {e}")))?;
    }
    match &args.command {
        Command::Discover(discover) => discover::run(discover, &args.global),
        Command::Assign(assign) => assign::run(assign, &args.global),
        Command::Collection(command) => collection::run(command, &args.global),
        Command::Serve(serve) => serve::run(serve, &args.global),
        Command::Token { command } => serve::token(command, &args.global),
        Command::Calibrate(calibrate) => calibrate::run(calibrate, &args.global),
        Command::Embed(embed) => embed::run(embed, &args.global),
        Command::Train(train) => train::run(train, &args.global),
        Command::Bench(bench) => bench::run(bench, &args.global),
        Command::Demo(demo) => demo::run(demo, &args.global),
        Command::Methods => methods::run(),
        Command::Encoders { command } => encoders::run(command, &args.global),
        Command::Cache { command } => cache::run(command),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "genus", &mut script);
            say::print(&String::from_utf8_lossy(&script))
        }
        Command::Man { folder } => man::run(folder, &args.global),
    }
}
