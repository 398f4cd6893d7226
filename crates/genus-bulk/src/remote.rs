//! Object stores: S3 and what speaks its protocol, GCS, Azure, and HTTP for reading. Addresses and credentials come from the
//! environment as other programs take them (`AWS_…`, `GOOGLE_…`, `AZURE_STORAGE_…`), or from the machine that the process runs on.

use std::collections::BTreeMap;
use std::env;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, parse_url_opts};
use tokio::runtime::Runtime;
use url::Url;

use crate::BulkError;
use crate::place::{Found, of_folder};

/// Bytes that are asked for at a time.
const RANGE: u64 = 16 << 20;
/// How often something is asked for again, beside the tries that a client makes by itself, and how long is waited in between at first.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// A file or a prefix of an object store.
#[derive(Clone, Debug)]
pub struct Remote {
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// As it was named, without a slash at its end.
    name: String,
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        // TLS takes the provider that the rest of this program has.
        let _ = rustls::crypto::ring::default_provider().install_default();
        #[expect(clippy::expect_used, reason = "without threads nothing can be done at all")]
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("threads for the network")
    })
}

/// Tries again what failed for a reason that may pass.
fn again<T, F: Future<Output = Result<T, Error>>>(mut attempt: impl FnMut() -> F) -> Result<T, Error> {
    let mut pause = PAUSE;
    let mut left = TRIES;
    loop {
        let result = runtime().block_on(attempt());
        left -= 1;
        match result {
            Err(Error::Generic { .. }) if left > 0 => std::thread::sleep(pause),
            result => return result,
        }
        pause *= 2;
    }
}

fn into_io(error: Error) -> io::Error {
    let kind = match &error {
        Error::NotFound { .. } => io::ErrorKind::NotFound,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        Error::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl Remote {
    pub(crate) fn open(name: &str) -> Result<Self, BulkError> {
        /// A client for every store, by what stands before the path.
        static STORES: Mutex<BTreeMap<String, Arc<dyn ObjectStore>>> = Mutex::new(BTreeMap::new());
        let wrong = |problem: String| BulkError::Store {
            name: name.to_owned(),
            problem,
        };
        let url = Url::parse(name).map_err(|e| wrong(e.to_string()))?;
        runtime();
        let options = env::vars().map(|(key, value)| (key.to_ascii_lowercase(), value));
        let (store, path) = parse_url_opts(&url, options).map_err(|e| wrong(e.to_string()))?;
        let key = name.strip_suffix(url.path()).unwrap_or(name).to_owned();
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        let store = stores.entry(key).or_insert_with(|| Arc::from(store)).clone();
        Ok(Self {
            store,
            path,
            name: name.trim_end_matches('/').to_owned(),
        })
    }

    pub(crate) fn full(&self, name: &str) -> String {
        match name {
            "" => self.name.clone(),
            name => format!("{}/{name}", self.name),
        }
    }

    fn at(&self, name: &str) -> Path {
        Path::from_iter(self.path.parts().chain(Path::from(name).parts()))
    }

    fn failed(&self, name: &str, error: Error) -> BulkError {
        BulkError::Read {
            name: self.full(name),
            source: into_io(error),
        }
    }

    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, BulkError> {
        let path = self.at(name);
        let read = again(|| async { self.store.get(&path).await?.bytes().await });
        match read {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(name, error)),
        }
    }

    /// Whoever comes second finds that the name is taken, and so does who asks again because the answer was lost.
    pub(crate) fn publish(&self, name: &str, bytes: &[u8]) -> Result<bool, BulkError> {
        match self.put(name, bytes, PutMode::Create) {
            Ok(()) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            Err(error) => Err(self.unwritable(name, error)),
        }
    }

    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), BulkError> {
        let put = self.put(name, bytes, PutMode::Overwrite);
        put.map_err(|error| self.unwritable(name, error))
    }

    fn put(&self, name: &str, bytes: &[u8], mode: PutMode) -> Result<(), Error> {
        let path = self.at(name);
        let payload = PutPayload::from(bytes.to_vec());
        again(|| {
            let options = PutOptions::from(mode.clone());
            self.store.put_opts(&path, payload.clone(), options)
        })?;
        Ok(())
    }

    fn unwritable(&self, name: &str, error: Error) -> BulkError {
        BulkError::Write {
            name: self.full(name),
            source: into_io(error),
        }
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), BulkError> {
        let path = self.at(name);
        match again(|| self.store.delete(&path)) {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.unwritable(name, error)),
        }
    }

    pub(crate) fn list(&self, folder: &str) -> Result<Vec<String>, BulkError> {
        let path = self.at(folder);
        let found = again(|| self.store.list_with_delimiter(Some(&path))).map_err(|e| self.failed(folder, e))?;
        let names = found.objects.iter().filter_map(|object| object.location.filename());
        Ok(names.map(str::to_owned).collect())
    }

    pub(crate) fn find(&self) -> io::Result<Found> {
        let found = again(|| self.store.head(&self.path)).map_err(into_io)?;
        Ok(Found {
            bytes: found.size,
            etag: found.e_tag,
        })
    }

    pub(crate) fn read_range(
        &self,
        start: u64,
        end: u64,
        each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut at = start;
        while at < end {
            let next = (at + RANGE).min(end);
            let bytes = again(|| self.store.get_range(&self.path, at..next)).map_err(into_io)?;
            if bytes.len() as u64 != next - at {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            each(&bytes)?;
            at = next;
        }
        Ok(())
    }

    /// The files below the last folder of a pattern that fit it.
    pub(crate) fn matching(pattern: &str) -> Result<Vec<String>, BulkError> {
        let is_pattern = |text: &str| text.contains(['*', '?', '[']);
        // A question mark of an address is not one of a pattern.
        let is_http = pattern.starts_with("http://") || pattern.starts_with("https://");
        let is_prefix = pattern.ends_with('/');
        if !is_prefix && (is_http || !is_pattern(pattern)) {
            return Ok(vec![pattern.to_owned()]);
        }
        let scheme = pattern.find("://").map_or(0, |at| at + 3);
        let special = pattern[scheme..]
            .find(['*', '?', '['])
            .map_or(pattern.len(), |at| scheme + at);
        let folder = &pattern[..pattern[..special].rfind('/').map_or(special, |at| at + 1)];
        let root = Self::open(folder)?;
        let matcher = glob::Pattern::new(pattern).map_err(|e| BulkError::Pattern {
            pattern: pattern.to_owned(),
            problem: e.to_string(),
        })?;
        let options = glob::MatchOptions {
            require_literal_separator: true,
            ..glob::MatchOptions::new()
        };
        let listed = again(|| root.store.list(Some(&root.path)).try_collect::<Vec<_>>());
        let listed = listed.map_err(|error| root.failed("", error))?;
        let names = listed.iter().filter_map(|object| {
            let below: Vec<_> = object
                .location
                .prefix_match(&root.path)?
                .map(|part| part.as_ref().to_owned())
                .collect();
            Some(root.full(&below.join("/")))
        });
        Ok(match is_prefix {
            true => of_folder(names.collect()),
            false => names.filter(|name| matcher.matches_with(name, options)).collect(),
        })
    }
}
