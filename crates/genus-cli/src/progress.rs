//! Progress on the standard error, only when that is a terminal.

use std::sync::OnceLock;
use std::time::Duration;

use genus_lab::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Global;

/// A bar that appears when its length is known, and vanishes at the end.
pub(crate) struct Bar {
    quiet: bool,
    bar: OnceLock<ProgressBar>,
}

impl Bar {
    pub(crate) fn new(global: &Global) -> Self {
        Self {
            quiet: global.quiet,
            bar: OnceLock::new(),
        }
    }

    /// Advances by several steps.
    pub(crate) fn add(&self, steps: u64) {
        if let Some(bar) = self.bar.get() {
            bar.inc(steps);
        }
    }

    /// Shows bytes on their way; with no total when nobody knows it.
    pub(crate) fn bytes(&self, what: &str, total: Option<u64>) {
        let Some(total) = total else { return self.spin(what) };
        self.start(what, total);
        let template = "{msg} {wide_bar:.green/dim} {bytes}/{total_bytes} · {bytes_per_sec} · {eta} left";
        if let (Some(bar), Ok(style)) = (self.bar.get(), ProgressStyle::with_template(template)) {
            bar.set_style(style);
        }
    }

    /// Shows something of unknown length.
    pub(crate) fn spin(&self, what: &str) {
        let bar = self.bar.get_or_init(|| {
            if self.quiet {
                ProgressBar::hidden()
            } else {
                ProgressBar::new_spinner()
            }
        });
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {pos} · {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
    }
}

impl Progress for Bar {
    fn start(&self, what: &str, steps: u64) {
        let bar = self.bar.get_or_init(|| {
            if self.quiet {
                ProgressBar::hidden()
            } else {
                ProgressBar::new(steps)
            }
        });
        let template = "{msg} {wide_bar:.green/dim} {human_pos}/{human_len} · {per_sec} · {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_length(steps);
        bar.reset();
        bar.set_message(what.to_owned());
    }

    fn step(&self) {
        self.add(1);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
