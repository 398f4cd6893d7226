//! What happens when somebody stops the program.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::{record, serve, train};

/// The number of the signal that stopped the program; by default that of an interrupt.
static SIGNAL: AtomicU8 = AtomicU8::new(2);

/// The exit code of a program that was stopped: 130 by an interrupt, 143 by SIGTERM.
pub(crate) fn code() -> u8 {
    SIGNAL.load(Ordering::SeqCst).saturating_add(128)
}

/// Stops the program. Half-written files are removed before; a training finishes its step first, and a service
/// answers what it was asked.
fn stop(signal: u8) {
    SIGNAL.store(signal, Ordering::SeqCst);
    if train::interrupt() || serve::interrupt() {
        return;
    }
    record::write_stopped(code());
    let _discarded = genus_files::discard_unfinished();
    std::process::exit(i32::from(code()));
}

/// Begins to listen.
#[cfg(unix)]
pub(crate) fn listen() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    // A file that may not grow any more is an error of the write, which is dealt with, and no reason to be killed.
    signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default())?;
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let listener = std::thread::Builder::new().name("signals".to_owned());
    listener.spawn(move || {
        signals
            .forever()
            .for_each(|signal| stop(u8::try_from(signal).unwrap_or(0)))
    })?;
    Ok(())
}

/// Begins to listen.
#[cfg(not(unix))]
pub(crate) fn listen() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| stop(2))
}
