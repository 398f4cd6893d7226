//! A collection; what it says is handed on as JSON.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use genus_collection::{Action, AddOptions, ExportOptions, GroupId, ItemId, Items, Level};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::discover::{Given, Images};
use crate::failure::raised;
use crate::job::run;

/// A folder that lives.
#[pyclass(frozen, module = "genus._genus")]
pub(crate) struct Collection(Arc<Mutex<Option<genus_collection::Collection>>>);

fn text(value: impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(&value).map_err(raised)
}

impl Collection {
    fn new(collection: genus_collection::Collection) -> Self {
        Self(Arc::new(Mutex::new(Some(collection))))
    }

    /// Does something with the collection, on a thread of its own.
    fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        listener: Option<&Bound<'_, PyAny>>,
        work: impl FnOnce(&mut genus_collection::Collection, &dyn genus::Progress) -> Result<T, genus_collection::Error>
        + Send
        + 'static,
    ) -> PyResult<T> {
        let collection = self.0.clone();
        run(py, listener, move |progress| {
            let mut collection = collection.lock().unwrap_or_else(PoisonError::into_inner);
            let open = collection
                .as_mut()
                .ok_or_else(|| PyValueError::new_err("the collection is closed"))?;
            work(open, progress).map_err(raised)
        })
    }
}

#[pymethods]
impl Collection {
    /// Makes an empty one.
    #[staticmethod]
    fn create(folder: PathBuf, author: &str) -> PyResult<Self> {
        Ok(Self::new(
            genus_collection::Collection::create(folder, author).map_err(raised)?,
        ))
    }

    /// Opens one to look at it.
    #[staticmethod]
    fn open(folder: PathBuf) -> PyResult<Self> {
        Ok(Self::new(genus_collection::Collection::open(folder).map_err(raised)?))
    }

    /// Opens one to change it.
    #[staticmethod]
    fn open_to_write(py: Python<'_>, folder: PathBuf, author: String) -> PyResult<Self> {
        let opened = run(py, None, move |_| {
            genus_collection::Collection::open_to_write(folder, &author).map_err(raised)
        })?;
        Ok(Self::new(opened))
    }

    /// Lets others change it.
    fn close(&self, py: Python<'_>) {
        let collection = self.0.clone();
        py.detach(move || *collection.lock().unwrap_or_else(PoisonError::into_inner) = None);
    }

    fn status(&self, py: Python<'_>) -> PyResult<String> {
        text(self.with(py, None, |collection, _| collection.status())?)
    }

    fn groups(&self, py: Python<'_>) -> PyResult<String> {
        text(self.with(py, None, |collection, _| collection.groups())?)
    }

    /// Items of a group, those that `waiting` or `noise` says, or all of them.
    fn items(&self, py: Python<'_>, group: Option<i64>, which: String) -> PyResult<String> {
        let which = match (group, &*which) {
            (Some(group), "waiting") => Items::GuessedFor(GroupId(group)),
            (Some(group), _) => Items::Of(GroupId(group)),
            (None, "waiting") => Items::Waiting,
            (None, "noise") => Items::Noise,
            (None, _) => Items::All,
        };
        text(self.with(py, None, move |collection, _| {
            let mut all = Vec::new();
            loop {
                let after = all.last().map(|item: &genus_collection::ItemInfo| item.id);
                let more = collection.items(which, after, 10_000)?;
                if more.is_empty() {
                    return Ok(all);
                }
                all.extend(more);
            }
        })?)
    }

    fn find_group(&self, py: Python<'_>, name: String) -> PyResult<i64> {
        Ok(self
            .with(py, None, move |collection, _| collection.find_group(&name))?
            .0)
    }

    fn find_item(&self, py: Python<'_>, name: String) -> PyResult<i64> {
        Ok(self.with(py, None, move |collection, _| collection.find_item(&name))?.0)
    }

    fn log(&self, py: Python<'_>, most: usize) -> PyResult<String> {
        text(self.with(py, None, move |collection, _| collection.log(None, most))?)
    }

    #[allow(clippy::too_many_arguments)]
    fn add<'py>(
        &self,
        py: Python<'py>,
        items: Given<'py>,
        images: Images,
        labelled: bool,
        listener: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<String> {
        let items = items.source()?;
        let options = AddOptions {
            images: images.options()?,
            labelled,
            ..AddOptions::default()
        };
        text(self.with(py, listener, move |collection, progress| {
            collection.add(items, &options, progress)
        })?)
    }

    /// Does what an action says; the entry of the log, or null.
    fn act(&self, py: Python<'_>, action: &str) -> PyResult<String> {
        let action: Action = serde_json::from_str(action).map_err(raised)?;
        text(self.with(py, None, move |collection, _| collection.act(&action))?)
    }

    /// What an action would do.
    fn preview(&self, py: Python<'_>, action: &str) -> PyResult<String> {
        let action: Action = serde_json::from_str(action).map_err(raised)?;
        text(self.with(py, None, move |collection, _| collection.preview(&action))?)
    }

    fn undo(&self, py: Python<'_>) -> PyResult<String> {
        text(self.with(py, None, |collection, _| collection.undo())?)
    }

    fn redo(&self, py: Python<'_>) -> PyResult<String> {
        text(self.with(py, None, |collection, _| collection.redo())?)
    }

    fn refresh(&self, py: Python<'_>, level: &str, listener: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let level = match level {
            "as-found" => Level::AsFound,
            "coarser" => Level::Coarser,
            "finer" => Level::Finer,
            other => {
                let problem = format!("level is {other:?}, and one of \"as-found\", \"coarser\", \"finer\" is needed");
                return Err(PyValueError::new_err(problem));
            }
        };
        text(self.with(py, listener, move |collection, progress| {
            collection.refresh(level, progress)
        })?)
    }

    fn ask(&self, py: Python<'_>, count: usize) -> PyResult<String> {
        text(self.with(py, None, move |collection, _| collection.ask(count))?)
    }

    /// Parts of a group, as numbers of items.
    fn propose_split(&self, py: Python<'_>, group: i64, into: Option<usize>) -> PyResult<Vec<Vec<i64>>> {
        let parts = self.with(py, None, move |collection, _| {
            collection.propose_split(GroupId(group), into)
        })?;
        let numbers = |part: Vec<ItemId>| part.into_iter().map(|item| item.0).collect();
        Ok(parts.into_iter().map(numbers).collect())
    }

    fn export(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        format: &str,
        features: bool,
        sort_into: Option<PathBuf>,
        listener: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let options = ExportOptions {
            format: format
                .parse()
                .map_err(|e| PyValueError::new_err(format!("format: {e}")))?,
            features,
            sort_into,
            ..ExportOptions::default()
        };
        text(self.with(py, listener, move |collection, progress| {
            collection.export(&folder, &options, progress)
        })?)
    }

    /// Writes a page into a folder; its path.
    fn report(&self, py: Python<'_>, folder: PathBuf, listener: Option<&Bound<'_, PyAny>>) -> PyResult<PathBuf> {
        let when = |time| Python::attach(|py| when(py, time)).unwrap_or_default();
        let tell = move |entry: &genus_collection::Entry| {
            (
                format!("{} by {}: {} items", entry.kind, entry.author, entry.items),
                when(entry.time),
            )
        };
        let tell_asked = move |asked: &genus_collection::Asked| asked.in_words(when(asked.time));
        self.with(py, listener, move |collection, progress| {
            collection.report(&folder, tell, tell_asked, progress)
        })
    }

    fn check(&self, py: Python<'_>) -> PyResult<String> {
        text(self.with(py, None, |collection, _| collection.check())?)
    }
}

/// A time of the log as a text.
fn when(py: Python<'_>, milliseconds: i64) -> PyResult<String> {
    let datetime = py.import("datetime")?.getattr("datetime")?;
    let time = datetime.call_method1("fromtimestamp", (milliseconds as f64 / 1e3,))?;
    time.call_method1("strftime", ("%Y-%m-%d %H:%M",))?.extract()
}
