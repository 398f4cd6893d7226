//! Long work on a thread of its own, while Python's thread passes on how far it is and looks for Ctrl-C.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use genus::{Length, Note, Progress, Skipped};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::failure::panicked;

/// How long Python's thread sleeps between looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);
/// How long work that was broken off has to notice it before it is left behind.
const PATIENCE: Duration = Duration::from_millis(500);
/// As much as the main thread of a program has.
const STACK: usize = 8 << 20;

/// What a run says on its way, to be passed on to Python.
enum Said {
    Start(String, Length),
    Advance(u64),
    End,
    Note(&'static str, String, BTreeMap<&'static str, u64>),
}

/// What comes of a run in the end.
enum Message<T> {
    Said(Said),
    Done(thread::Result<PyResult<T>>),
}

/// Ends the work at the next thing that it says, when nobody waits for it any more.
struct BrokenOff;

/// Passes on what a run says.
struct Listener<T: Send> {
    to: Mutex<Sender<Message<T>>>,
    broken_off: Arc<AtomicBool>,
    /// Whether anybody wants to know how far it is; notes are always passed on.
    heard: bool,
}

impl<T: Send> Listener<T> {
    fn say(&self, said: Said) {
        if self.broken_off.load(Ordering::Relaxed) {
            // Without the message of a panic: it is none.
            resume_unwind(Box::new(BrokenOff));
        }
        if self.heard || matches!(said, Said::Note(..)) {
            let to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever listened may have gone.
            let _ = to.send(Message::Said(said));
        }
    }
}

impl<T: Send> Progress for Listener<T> {
    fn start(&self, stage: &str, length: Length) {
        self.say(Said::Start(stage.to_owned(), length));
    }

    fn advance(&self, steps: u64) {
        self.say(Said::Advance(steps));
    }

    fn end(&self) {
        self.say(Said::End);
    }

    fn note(&self, note: &Note) {
        if let Some((kind, text, numbers)) = in_words(note) {
            self.say(Said::Note(kind, text, numbers));
        }
    }
}

/// A note as its kind, what it says, and numbers that go with it.
fn in_words(note: &Note) -> Option<(&'static str, String, BTreeMap<&'static str, u64>)> {
    let none = BTreeMap::new();
    Some(match note {
        Note::Embedded {
            images,
            recalled,
            encoder,
            ..
        } => (
            "embedded",
            (*encoder).to_owned(),
            BTreeMap::from([("images", *images), ("recalled", *recalled)]),
        ),
        Note::Skipped([]) => return None,
        Note::Skipped(skipped) => {
            let first = skipped.iter().take(5);
            let named = first.map(|Skipped { path, reason }| format!("{}: {reason}", path.display()));
            let named: Vec<String> = named.collect();
            let left = skipped.len() - named.len();
            let more = if left > 0 {
                format!(" and {left} more")
            } else {
                String::new()
            };
            (
                "skipped",
                format!("{}{more}", named.join("; ")),
                BTreeMap::from([("files", skipped.len() as u64)]),
            )
        }
        Note::Unsupported(formats) => {
            let named = formats.iter().map(|(ending, count)| format!("{count} .{ending}"));
            let named: Vec<String> = named.collect();
            let text = format!(
                "{} left out: pictures of these formats cannot be read",
                named.join(", ")
            );
            ("skipped", text, none)
        }
        Note::DoubtfulExamples { images } => {
            let text = format!("{images} images that were sorted with doubt are no examples");
            ("warning", text, none)
        }
        Note::ColumnsLeftOut { table, columns } => {
            let text = format!(
                "{}: columns that are no features are left out: {}",
                table.display(),
                columns.join(", ")
            );
            ("warning", text, none)
        }
        Note::UnusedLabels { pile, items } => {
            let text = format!("{}: {items} items have a label, and none is used", pile.display());
            ("warning", text, none)
        }
        Note::OddLabel { label, examples } => {
            let text = format!(
                "{examples} examples have the label {label:?}, which reads as if they had none; unlabelled is None, NaN, \"\" or -1"
            );
            ("warning", text, none)
        }
        Note::NotRemembered(error) => ("warning", error.to_string(), none),
        Note::DataSet { title, note } => ("warning", format!("{title}: {note}"), none),
        Note::TwoStep { items, subset } => {
            let text = format!("{subset} of {items} items are clustered, and the others assigned");
            ("said", text, none)
        }
        _ => return None,
    })
}

/// The threads that work is done on. A process that was forked has none of its parent's, so it gets its own.
fn pool() -> PyResult<Arc<ThreadPool>> {
    static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    match &*pool {
        Some((of, pool)) if *of == process => Ok(pool.clone()),
        _ => {
            let made = ThreadPoolBuilder::new().stack_size(STACK).build();
            let made = Arc::new(made.map_err(|e| PyRuntimeError::new_err(format!("there are no threads: {e}")))?);
            // The one of the parent is never dropped: its threads are not there to be waited for.
            std::mem::forget(pool.replace((process, made.clone())));
            Ok(made)
        }
    }
}

/// Does `work` on a thread of its own. `listener` is told how far it is, as `listener(kind, text, number)`.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    listener: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&dyn Progress) -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    let pool = pool()?;
    let (to, from) = channel();
    let broken_off = Arc::new(AtomicBool::new(false));
    let progress = Listener {
        to: Mutex::new(to.clone()),
        broken_off: broken_off.clone(),
        heard: listener.is_some(),
    };
    let spawned = thread::Builder::new().stack_size(STACK).spawn(move || {
        let done = catch_unwind(AssertUnwindSafe(|| pool.install(|| work(&progress))));
        let _ = to.send(Message::Done(done));
    });
    spawned.map_err(|e| PyRuntimeError::new_err(format!("there is no thread for the work: {e}")))?;
    // Python's thread alone takes what comes, but has to show that it might give it to another.
    let from = Mutex::new(from);
    let waited = wait(py, listener, &from);
    if waited.is_err() {
        broken_off.store(true, Ordering::Relaxed);
        // What it has half done it undoes now, if it notices.
        py.detach(|| {
            let until = Instant::now() + PATIENCE;
            while let Ok(Message::Said(_)) = next(&from, until.saturating_duration_since(Instant::now())) {}
        });
    }
    match waited? {
        Ok(result) => result,
        Err(payload) if payload.is::<BrokenOff>() => Err(PyKeyboardInterrupt::new_err(())),
        Err(payload) => Err(panicked(&*payload)),
    }
}

/// The next message, if there is one before so long.
fn next<T>(from: &Mutex<Receiver<Message<T>>>, wait: Duration) -> Result<Message<T>, RecvTimeoutError> {
    from.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(wait)
}

/// Waits for the end of the work. Fails when Python is interrupted, or the listener.
fn wait<T: Send>(
    py: Python<'_>,
    listener: Option<&Bound<'_, PyAny>>,
    from: &Mutex<Receiver<Message<T>>>,
) -> PyResult<thread::Result<PyResult<T>>> {
    loop {
        let mut message = py.detach(|| next(from, LOOK));
        let mut steps = 0;
        while let Ok(now) = message {
            match now {
                Message::Done(done) => return Ok(done),
                Message::Said(Said::Advance(more)) => steps += more,
                Message::Said(said) => {
                    pass_on(listener, &mut steps)?;
                    tell(py, listener, said)?;
                }
            }
            message = next(from, Duration::ZERO);
        }
        pass_on(listener, &mut steps)?;
        py.check_signals()?;
    }
}

/// Passes on steps that were counted together.
fn pass_on(listener: Option<&Bound<'_, PyAny>>, steps: &mut u64) -> PyResult<()> {
    if let (Some(listener), 1..) = (listener, *steps) {
        listener.call1(("advance", "", *steps))?;
    }
    *steps = 0;
    Ok(())
}

fn tell(py: Python<'_>, listener: Option<&Bound<'_, PyAny>>, said: Said) -> PyResult<()> {
    let Some(listener) = listener else {
        // What is to be known is known without a listener, too.
        if let Said::Note("warning" | "skipped", text, _) = said {
            py.import("warnings")?.call_method1("warn", (text,))?;
        }
        return Ok(());
    };
    match said {
        Said::Start(stage, Length::Steps(steps)) => listener.call1(("start", stage, steps))?,
        Said::Start(stage, Length::Bytes(bytes)) => listener.call1(("start-bytes", stage, bytes))?,
        Said::Start(stage, Length::Unknown) => listener.call1(("start", stage, py.None()))?,
        Said::Advance(steps) => listener.call1(("advance", "", steps))?,
        Said::End => listener.call1(("end", "", py.None()))?,
        Said::Note(kind, text, numbers) => {
            let more = PyDict::new(py);
            for (name, number) in numbers {
                more.set_item(name, number)?;
            }
            listener.call1((kind, text, more))?
        }
    };
    Ok(())
}

/// Panics, so that a test can see what becomes of that.
#[pyfunction]
#[pyo3(name = "_panic")]
pub(crate) fn panic_for_tests(py: Python<'_>) -> PyResult<()> {
    run(py, None, |_| {
        assert_eq!(std::env::consts::OS, "", "as the test wants");
        Ok(())
    })
}

/// Works for so many seconds without a word, so that a test can interrupt it.
#[pyfunction]
#[pyo3(name = "_sleep")]
pub(crate) fn sleep_for_tests(py: Python<'_>, seconds: f64) -> PyResult<()> {
    run(py, None, move |_| {
        thread::sleep(Duration::from_secs_f64(seconds));
        Ok(())
    })
}
