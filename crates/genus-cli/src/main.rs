//! The binary `genus`: arguments, progress, messages, exit codes.
//!
//! Data goes to the standard output, everything else to the standard error. Exit codes: 0 success, 1 failure, 2 wrong
//! usage, 130 interrupted.

#[macro_use]
mod say;

mod args;
mod assign;
mod bench;
mod cache;
mod calibrate;
mod demo;
mod discover;
mod embed;
mod encoders;
mod failure;
mod man;
mod methods;
mod output;
mod progress;
mod summary;
mod train;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command};
use failure::Failure;

/// Tasks of half a megabyte come and go by the thousand; the system's allocator hands that memory back every time, and
/// fetching it again costs more than the clustering.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    quiet_reader_panics();
    // Half-written files are removed before an interrupt ends the program; a training finishes its step first.
    let handler = ctrlc::set_handler(|| {
        if train::interrupt() {
            return;
        }
        let _discarded = genus_files::discard_unfinished();
        std::process::exit(130);
    });
    // A file that may not grow any more is an error of the write, which is dealt with, and no reason to be killed.
    #[cfg(unix)]
    let handler = handler.map_err(|e| e.to_string()).and_then(|()| {
        let noted = std::sync::Arc::default();
        let registered = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, noted);
        registered.map(drop).map_err(|e| e.to_string())
    });
    if let Err(e) = handler {
        say!("genus: cannot listen for interrupts: {e}");
    }
    match run(&Args::parse()) {
        Ok(()) | Err(Failure::ReaderLeft) => ExitCode::SUCCESS,
        Err(failure) => {
            say!("{failure}");
            ExitCode::from(failure.code())
        }
    }
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
