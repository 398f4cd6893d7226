//! Files of the Hugging Face hub, in the cache that its other clients share.
//!
//! A repository's folder in the cache holds `blobs/ETAG` (the contents), `snapshots/COMMIT/FILE` (links to blobs) and
//! `refs/main` (the commit that was last seen). A file that is there is used without asking the network.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};
use thiserror::Error;
use ureq::http::{HeaderMap, Response, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy};

/// The hub that is asked where `HF_ENDPOINT` names no other.
const ENDPOINT: &str = "https://huggingface.co";
/// How often a request may be sent on.
const MAX_REDIRECTS: usize = 8;
/// How often in a row a download may break off without having come further.
const MAX_FAILURES: u32 = 5;
/// How much longer to wait after every failure.
const PAUSE: Duration = Duration::from_millis(300);
/// How long a silent connection is waited for; large files take long, but never say nothing for so long.
const SILENCE: Duration = Duration::from_secs(60);
/// The bytes between two reports of progress.
const CHUNK: usize = 1 << 18;

/// Why a file of the hub cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HubError {
    /// The name is not one that the hub has.
    #[error("{name:?} is not the name of a repository or file on the hub; write ORGANISATION/NAME and FOLDER/FILE")]
    Name {
        /// The repository or file.
        name: String,
    },
    /// The hub cannot be asked.
    #[error(
        "{reason}; download {url} on a machine that can, then put it at {}",
        .place.display()
    )]
    Unavailable {
        /// Where the file is.
        url: String,
        /// Where the file would be found.
        place: PathBuf,
        /// What happened.
        reason: String,
    },
    /// The hub wants to know who asks.
    #[error(
        "{url}: the hub denies access ({status}): the repository is private, gated or not there; accept its terms on \
         its page if it has any, and set HF_TOKEN to a token of your account"
    )]
    Denied {
        /// Where the file is.
        url: String,
        /// The answer's number.
        status: u16,
    },
    /// The hub has no such file.
    #[error("{url}: the hub has no such file (404); check the names of the repository and the file")]
    NotFound {
        /// Where the file should be.
        url: String,
    },
    /// The hub answers, but not with a file.
    #[error("{url}: {problem}; try again later")]
    Answer {
        /// What was asked for.
        url: String,
        /// What is wrong with the answer.
        problem: String,
    },
    /// What arrived is not what the hub has.
    #[error("{url}: the download is damaged ({problem}) and was removed; try again")]
    Damaged {
        /// Where the file is.
        url: String,
        /// The difference.
        problem: String,
    },
    /// The cache cannot be read or written.
    #[error("{}: {source}; set HF_HOME to a folder that can be written", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Where the hub is, where its files are kept, and whether it may be asked.
#[derive(Clone, PartialEq, Eq)]
pub struct HubSettings {
    /// The folder of all repositories.
    pub cache: PathBuf,
    /// The address of the hub, such as `https://huggingface.co`.
    pub endpoint: String,
    /// The token of an account, for repositories that want one.
    pub token: Option<String>,
    /// Whether the network must not be used.
    pub offline: bool,
}

impl HubSettings {
    /// Derives the settings from the variables that the hub's other clients know, as `lookup` gives them.
    ///
    /// These are `HF_HOME`, `HF_HUB_CACHE`, `HF_HUB_OFFLINE`, `HF_ENDPOINT`, `HF_TOKEN`, `HF_TOKEN_PATH`, the older
    /// `HUGGINGFACE_HUB_CACHE` and `HUGGING_FACE_HUB_TOKEN`, and `XDG_CACHE_HOME`. An empty variable is as good
    /// as none.
    pub fn from_variables(home: &Path, lookup: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name: &str| lookup(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
        let path = |name: &str| {
            variable(name).map(|path| match path.strip_prefix("~/") {
                Some(below) => home.join(below),
                None => PathBuf::from(path),
            })
        };
        let hf_home = path("HF_HOME").unwrap_or_else(|| {
            let caches = path("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache"));
            caches.join("huggingface")
        });
        let cache = path("HF_HUB_CACHE").or_else(|| path("HUGGINGFACE_HUB_CACHE"));
        let token_file = path("HF_TOKEN_PATH").unwrap_or_else(|| hf_home.join("token"));
        let token = variable("HF_TOKEN")
            .or_else(|| variable("HUGGING_FACE_HUB_TOKEN"))
            .or_else(|| fs::read_to_string(token_file).ok().map(|token| token.trim().to_owned()))
            // Anything else could not stand in a header.
            .filter(|token| !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic()));
        let offline = variable("HF_HUB_OFFLINE").map(|v| v.to_ascii_lowercase());
        Self {
            cache: cache.unwrap_or_else(|| hf_home.join("hub")),
            endpoint: variable("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned()),
            token,
            offline: offline.is_some_and(|v| ["1", "true", "yes", "on"].contains(&v.as_str())),
        }
    }
}

impl fmt::Debug for HubSettings {
    /// Shows whether there is a token, never the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubSettings")
            .field("cache", &self.cache)
            .field("endpoint", &self.endpoint)
            .field("token", &self.token.as_ref().map(|_| "(hidden)"))
            .field("offline", &self.offline)
            .finish()
    }
}

/// A client of the Hugging Face hub with its cache.
///
/// ```
/// use genus_vision::{Hub, HubSettings};
///
/// let hub = Hub::new(HubSettings {
///     cache: std::env::temp_dir().join("no-such-cache"),
///     endpoint: "https://huggingface.co".to_owned(),
///     token: None,
///     offline: true,
/// });
/// assert_eq!(hub.cached("facebook/dinov2-small", "model.safetensors"), None);
/// let error = hub.fetch("facebook/dinov2-small", "model.safetensors", &mut |_, _| {}).unwrap_err();
/// let url = "https://huggingface.co/facebook/dinov2-small/resolve/main/model.safetensors";
/// assert!(error.to_string().contains(url));
/// ```
#[derive(Debug)]
pub struct Hub {
    settings: HubSettings,
    agent: Agent,
}

impl Hub {
    /// Makes a client that takes nothing from the environment.
    pub fn new(settings: HubSettings) -> Self {
        Self::with_proxy(settings, None)
    }

    /// Makes a client with the settings and the proxy that the environment names.
    pub fn from_env() -> Self {
        let home = std::env::home_dir().unwrap_or_default();
        let settings = HubSettings::from_variables(&home, |name| std::env::var(name).ok());
        Self::with_proxy(settings, Proxy::try_from_env())
    }

    fn with_proxy(mut settings: HubSettings, proxy: Option<Proxy>) -> Self {
        settings
            .endpoint
            .truncate(settings.endpoint.trim_end_matches('/').len());
        // The system's certificates, which know the proxies of companies.
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let config = Agent::config_builder()
            .proxy(proxy)
            .tls_config(tls)
            .user_agent(concat!("genus/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .http_status_as_error(false)
            // Redirects are followed here: the first answer has the headers, and the token is for the hub alone.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(Duration::from_secs(20)))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .build();
        Self {
            settings,
            agent: config.into(),
        }
    }

    /// Gives the settings in use.
    pub fn settings(&self) -> &HubSettings {
        &self.settings
    }

    /// Finds a file in the cache: in the commit that was last seen, else in any other.
    pub fn cached(&self, repo: &str, file: &str) -> Option<PathBuf> {
        let wanted = HubFile::check(&self.settings.endpoint, repo, file).ok()?;
        let folder = self.folder(&wanted);
        let snapshots = folder.join("snapshots");
        let in_main = main_commit(&folder).map(|commit| snapshots.join(commit).join(file));
        if let Some(path) = in_main.filter(|path| path.is_file()) {
            return Some(path);
        }
        let entries = fs::read_dir(&snapshots).ok()?.filter_map(Result::ok);
        let paths = entries.map(|entry| entry.path().join(file));
        // The order of a folder's entries is the file system's; that of names is always the same.
        paths.filter(|path| path.is_file()).min()
    }

    /// Gives the path of a file, from the cache or else from the network, calling `progress` with the bytes that are
    /// there and their total.
    ///
    /// A download that breaks off is continued, in this call and in the next. Any number of processes may fetch the
    /// same file: the first downloads it and the others wait.
    pub fn fetch(
        &self,
        repo: &str,
        file: &str,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<PathBuf, HubError> {
        let wanted = HubFile::check(&self.settings.endpoint, repo, file)?;
        if let Some(path) = self.cached(repo, file) {
            return Ok(path);
        }
        if self.settings.offline {
            let reason = format!("{file} of {repo} is not in the cache, and HF_HUB_OFFLINE forbids to download it");
            return Err(self.unavailable(&wanted, reason));
        }
        let remote = self.look(&wanted)?;
        let folder = self.folder(&wanted);
        let blob = folder.join("blobs").join(&remote.etag);
        let pointer = folder.join("snapshots").join(&remote.commit).join(file);

        // The lock that the Python client takes as well. It ends with the handle, however the process ends.
        let locks = self.settings.cache.join(".locks").join(wanted.folder());
        create_folder(&locks)?;
        let lock_path = locks.join(format!("{}.lock", remote.etag));
        let lock = File::create(&lock_path).map_err(at(&lock_path))?;
        lock.lock().map_err(at(&lock_path))?;
        if !blob.is_file() {
            self.download(&wanted, &remote, &blob, progress)?;
        }
        link(&blob, &pointer, file)?;
        let refs = folder.join("refs");
        create_folder(&refs)?;
        replace(&refs.join("main"), |temporary| fs::write(temporary, &remote.commit))?;
        drop(lock);
        Ok(pointer)
    }

    /// The folder of a repository in the cache.
    fn folder(&self, wanted: &HubFile<'_>) -> PathBuf {
        self.settings.cache.join(wanted.folder())
    }

    fn unavailable(&self, wanted: &HubFile<'_>, reason: String) -> HubError {
        let folder = self.folder(wanted);
        let commit = main_commit(&folder).unwrap_or_else(|| "main".to_owned());
        HubError::Unavailable {
            url: wanted.url.clone(),
            place: folder.join("snapshots").join(commit).join(wanted.file),
            reason,
        }
    }

    /// Asks the hub about a file, up to the address where its bytes are.
    fn look(&self, wanted: &HubFile<'_>) -> Result<HubMetadata, HubError> {
        let (mut commit, mut linked_etag, mut etag, mut size) = (None, None, None, None);
        let mut location = wanted.url.clone();
        for _ in 0..MAX_REDIRECTS {
            let response = self.request(wanted, &location, None)?;
            let headers = response.headers();
            // The hub's own answer counts; what a store of large files says about itself is no matter.
            commit = commit.or_else(|| text(headers, "x-repo-commit"));
            linked_etag = linked_etag.or_else(|| text(headers, "x-linked-etag"));
            etag = etag.or_else(|| text(headers, "etag"));
            size = size.or_else(|| number(headers, "x-linked-size"));
            let next = redirect(&location, &response).transpose();
            if let Some(next) = next.map_err(|problem| wanted.answer(problem))? {
                location = next;
                if commit.is_none() || linked_etag.is_none() || size.is_none() {
                    continue;
                }
            } else {
                size = size.or_else(|| number(headers, "content-length"));
            }
            let commit = commit.filter(|commit| is_commit(commit));
            let commit = commit.ok_or_else(|| wanted.answer("the answer names no commit, so it is not a hub's"))?;
            let etag = linked_etag.or(etag).map(|etag| plain_etag(&etag).to_owned());
            let etag = etag.filter(|etag| is_safe(etag));
            let etag = etag.ok_or_else(|| wanted.answer("the answer has no usable ETag"))?;
            return Ok(HubMetadata {
                commit,
                etag,
                size,
                location,
            });
        }
        Err(wanted.answer("the hub sends from one address to the next without end"))
    }

    /// Sends one request: a HEAD, or a GET from a byte on.
    fn request(&self, wanted: &HubFile<'_>, location: &str, from: Option<u64>) -> Result<Response<Body>, HubError> {
        let mut request = match from {
            Some(_) => self.agent.get(location),
            None => self.agent.head(location),
        };
        if let Some(from) = from.filter(|&from| from > 0) {
            request = request.header(header::RANGE, format!("bytes={from}-"));
        }
        if let Some(token) = &self.settings.token
            && origin(location).is_some()
            && origin(location) == origin(&self.settings.endpoint)
        {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let response = request.call().map_err(|e| {
            let reason = format!("{} cannot be reached ({e})", host(location));
            self.unavailable(wanted, reason)
        })?;
        let url = wanted.url.clone();
        match response.status().as_u16() {
            200..=399 | 416 => Ok(response),
            status @ (401 | 403) => Err(HubError::Denied { url, status }),
            404 => Err(HubError::NotFound { url }),
            status => Err(wanted.answer(&format!("{} answers with status {status}", host(location)))),
        }
    }

    /// Downloads to `blob` by way of `blob.incomplete`, going on where an earlier download ended.
    fn download(
        &self,
        wanted: &HubFile<'_>,
        remote: &HubMetadata,
        blob: &Path,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<(), HubError> {
        let mut part = PartialFile::open(blob.with_file_name(format!("{}.incomplete", remote.etag)))?;
        if remote.size.is_some_and(|size| part.done > size) {
            part.clear()?;
        }
        progress(part.done, remote.size);
        let (mut furthest, mut failures) = (part.done, 0);
        let mut location = remote.location.clone();
        while remote.size.is_none_or(|size| part.done < size) {
            let end = self.transfer(wanted, remote, &location, &mut part, progress);
            let complete = remote.size.map_or(matches!(end, Ok(true)), |size| part.done == size);
            if complete {
                break;
            }
            failures = if part.done > furthest { 0 } else { failures + 1 };
            furthest = furthest.max(part.done);
            let error = match end {
                Err(error @ (HubError::Io { .. } | HubError::Damaged { .. })) => return Err(error),
                Err(error) => error,
                Ok(_) => self.unavailable(wanted, format!("the download breaks off after {} bytes", part.done)),
            };
            if failures >= MAX_FAILURES {
                return Err(error);
            }
            // The address in a store expires after a while: the hub gives another.
            std::thread::sleep(PAUSE * failures);
            if let Ok(again) = self.look(wanted) {
                if again.etag != remote.etag {
                    return Err(wanted.answer("the file was changed during the download"));
                }
                location = again.location;
            }
        }
        part.file.sync_all().map_err(at(&part.path))?;
        verify(wanted, remote, &mut part)?;
        drop(part.file);
        fs::rename(&part.path, blob).map_err(at(blob))
    }

    /// One connection's worth of a download; true where it came to the end that the answer announced.
    fn transfer(
        &self,
        wanted: &HubFile<'_>,
        remote: &HubMetadata,
        location: &str,
        part: &mut PartialFile,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<bool, HubError> {
        let mut location = location.to_owned();
        let mut response = self.request(wanted, &location, Some(part.done))?;
        for _ in 0..MAX_REDIRECTS {
            let Some(next) = redirect(&location, &response) else {
                break;
            };
            location = next.map_err(|problem| wanted.answer(problem))?;
            response = self.request(wanted, &location, Some(part.done))?;
        }
        let status = response.status().as_u16();
        let range = text(response.headers(), "content-range");
        let continues = status == 206 && range.is_some_and(|range| range.starts_with(&format!("bytes {}-", part.done)));
        if !continues {
            // A store that does not know ranges begins anew; one that has nothing at the range is asked anew.
            part.clear()?;
            if status != 200 {
                return Ok(false);
            }
        }
        let announced = number(response.headers(), "content-length").map(|length| part.done.saturating_add(length));
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; CHUNK];
        loop {
            // An error here is a broken connection: what came before it is kept.
            let length = match body.read(&mut buffer) {
                Ok(0) => return Ok(announced.is_none_or(|announced| part.done == announced)),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Ok(false),
            };
            part.file.write_all(&buffer[..length]).map_err(at(&part.path))?;
            part.done += length as u64;
            if let Some(size) = remote.size.filter(|&size| part.done > size) {
                return Err(part.damaged(wanted, format!("more than its {size} bytes arrived")));
            }
            progress(part.done, remote.size);
        }
    }
}

/// A file that is not whole yet, at its end.
struct PartialFile {
    path: PathBuf,
    file: File,
    done: u64,
}

impl PartialFile {
    fn open(path: PathBuf) -> Result<Self, HubError> {
        if let Some(parent) = path.parent() {
            create_folder(parent)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let mut file = options.open(&path).map_err(at(&path))?;
        let done = file.seek(SeekFrom::End(0)).map_err(at(&path))?;
        Ok(Self { path, file, done })
    }

    fn clear(&mut self) -> Result<(), HubError> {
        self.file.set_len(0).map_err(at(&self.path))?;
        self.file.rewind().map_err(at(&self.path))?;
        self.done = 0;
        Ok(())
    }

    /// Removes what arrived, so that the next attempt does not build on it.
    fn damaged(&self, wanted: &HubFile<'_>, problem: String) -> HubError {
        match fs::remove_file(&self.path) {
            Ok(()) => HubError::Damaged {
                url: wanted.url.clone(),
                problem,
            },
            Err(error) => at(&self.path)(error),
        }
    }
}

/// Compares the hash where the hub gives one, which it does for all large files.
fn verify(wanted: &HubFile<'_>, remote: &HubMetadata, part: &mut PartialFile) -> Result<(), HubError> {
    if remote.etag.len() != 64 || !is_hex(&remote.etag) {
        return Ok(());
    }
    part.file.rewind().map_err(at(&part.path))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        match part.file.read(&mut buffer).map_err(at(&part.path))? {
            0 => break,
            length => hasher.update(&buffer[..length]),
        }
    }
    let found: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    match found.eq_ignore_ascii_case(&remote.etag) {
        true => Ok(()),
        false => Err(part.damaged(wanted, format!("its SHA-256 is {found} and should be {}", remote.etag))),
    }
}

/// What the hub says about a file, all of it checked.
struct HubMetadata {
    commit: String,
    etag: String,
    size: Option<u64>,
    /// Where the bytes are.
    location: String,
}

/// A file of a repository; the names are safe in addresses and paths.
struct HubFile<'a> {
    repo: &'a str,
    file: &'a str,
    /// The address that is named in errors; the bytes may be elsewhere.
    url: String,
}

impl<'a> HubFile<'a> {
    fn check(endpoint: &str, repo: &'a str, file: &'a str) -> Result<Self, HubError> {
        let wrong = |name: &str| HubError::Name { name: name.to_owned() };
        if repo.split('/').count() > 2 || !repo.split('/').all(is_safe) {
            return Err(wrong(repo));
        }
        if !file.split('/').all(is_safe) {
            return Err(wrong(file));
        }
        let url = format!("{endpoint}/{repo}/resolve/main/{file}");
        Ok(Self { repo, file, url })
    }

    fn answer(&self, problem: &str) -> HubError {
        HubError::Answer {
            url: self.url.clone(),
            problem: problem.to_owned(),
        }
    }

    fn folder(&self) -> String {
        format!("models--{}", self.repo.replace('/', "--"))
    }
}

/// Whether a text may be one component of a path on any system.
fn is_safe(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-+".contains(&b);
    !name.is_empty() && name.len() <= 128 && name.bytes().all(allowed) && name.bytes().any(|b| b != b'.')
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_commit(text: &str) -> bool {
    (40..=64).contains(&text.len()) && is_hex(text)
}

/// An ETag without its quotes and without the mark of a weak one.
fn plain_etag(etag: &str) -> &str {
    etag.trim_start_matches("W/").trim_matches('"')
}

/// The commit that was last seen of a repository in the cache.
fn main_commit(folder: &Path) -> Option<String> {
    let commit = fs::read_to_string(folder.join("refs").join("main")).ok()?;
    Some(commit.trim().to_owned()).filter(|commit| is_safe(commit))
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.trim().to_owned())
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    text(headers, name)?.parse().ok()
}

/// The next address where an answer is a redirect.
fn redirect(from: &str, response: &Response<Body>) -> Option<Result<String, &'static str>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let next = text(response.headers(), "location").and_then(|location| {
        let origin = origin(from)?;
        let scheme = from.split("//").next()?;
        match &location {
            to if to.starts_with("https://") || to.starts_with("http://") => Some(location),
            to if to.starts_with("//") => Some(format!("{scheme}{to}")),
            to if to.starts_with('/') => Some(format!("{origin}{to}")),
            _ => None,
        }
    });
    Some(match next {
        None => Err("the answer is a redirect to nowhere"),
        Some(next) if from.starts_with("https:") && !next.starts_with("https:") => {
            Err("the answer is a redirect to an address without encryption")
        }
        Some(next) => Ok(next),
    })
}

/// The scheme and host of an address.
fn origin(url: &str) -> Option<&str> {
    let start = url.find("://")? + 3;
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |end| start + end);
    Some(&url[..end])
}

fn host(url: &str) -> &str {
    origin(url).unwrap_or(url)
}

fn at(path: &Path) -> impl Fn(io::Error) -> HubError {
    move |source| HubError::Io {
        path: path.to_owned(),
        source,
    }
}

fn create_folder(path: &Path) -> Result<(), HubError> {
    fs::create_dir_all(path).map_err(at(path))
}

/// Makes a file under a name of its own and gives it the right one when it is whole.
fn replace(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), HubError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.{count}", std::process::id()));
    let made = make(&temporary).and_then(|()| fs::rename(&temporary, path));
    made.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        at(path)(error)
    })
}

/// Links a snapshot's file to its blob by a relative path, as other clients do, or copies it where there are no links.
fn link(blob: &Path, pointer: &Path, file: &str) -> Result<(), HubError> {
    if pointer.is_file() {
        return Ok(());
    }
    if let Some(parent) = pointer.parent() {
        create_folder(parent)?;
    }
    let up = "../".repeat(2 + file.matches('/').count());
    let target = format!("{up}blobs/{}", blob.file_name().unwrap_or_default().to_string_lossy());
    replace(pointer, |temporary| match symlink(&target, temporary) {
        Ok(()) => Ok(()),
        Err(_) => fs::copy(blob, temporary).map(drop),
    })
}

#[cfg(unix)]
fn symlink(target: &str, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &str, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target.replace('/', "\\"), link)
}

#[cfg(not(any(unix, windows)))]
fn symlink(_: &str, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
