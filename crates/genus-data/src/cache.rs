//! The feature cache: features that an encoder made once, found again by the content of the image.
//!
//! `features/<hash of the encoder>/` below the root has `encoder.txt`, the encoder's text, and segments. A segment is a
//! head and then records of one length: the key, the row, a checksum over both. Every process appends to a segment of
//! its own, which it holds a lock on, and nobody changes another's, so any number of processes may share a cache; a record
//! that was cut off or damaged is one that is not there.
//!
//! Segments that nobody appends to any more are merged, always several of about the same size, so that there are a few for
//! every power of eight, however many processes there were.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::DataError;
use genus_files::{AtomicFile, FileError, is_at};

const FEATURES: &str = "features";
const ENCODER: &str = "encoder.txt";
const SEGMENT: &str = "seg";

/// The head of a segment: this mark, then the number of features as four bytes.
const MARK: &[u8; 12] = b"genus cache1";
const HEAD: u64 = 16;
const KEY: usize = 32;
const CHECKSUM: usize = 8;

/// Records that may be lost when the process is killed.
const PENDING_RECORDS: u64 = 64;
/// Bytes of records that are held back at most.
const PENDING_BYTES: usize = 1 << 20;

/// So many segments of about the same size become one.
const MERGED: usize = 8;
/// So many at most, as all of them are open meanwhile.
const MERGED_AT_ONCE: usize = 64;
/// Segments that stay open between reads.
const KEPT_OPEN: usize = 16;
/// How often a folder is listed again because a segment has gone since.
const LISTINGS: usize = 5;

/// The longest text of an encoder that is read back.
const MAX_ENCODER: u64 = 1 << 20;

/// The features that one encoder made, by the hash of the image's bytes.
///
/// ```
/// let root = tempfile::tempdir()?;
/// let cache = genus_data::FeatureCache::open(root.path(), "squares 1", 2)?;
/// let content = [7; 32];
/// assert_eq!(cache.get(&content), None);
/// cache.put(&content, &[0.5, 2.0])?;
/// assert_eq!(cache.get(&content), Some(vec![0.5, 2.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FeatureCache {
    folder: PathBuf,
    encoder: String,
    dim: usize,
    /// The segments that were there on opening.
    segments: Vec<StoredSegment>,
    index: RwLock<HashMap<[u8; KEY], Location>>,
    own: Mutex<OwnSegment>,
}

/// Where a record is.
#[derive(Clone, Copy)]
enum Location {
    /// A record of a segment that was there on opening.
    Found { segment: u32, record: u64 },
    /// A record of this process.
    Own { record: u64 },
}

/// What this process adds.
#[derive(Default)]
struct OwnSegment {
    /// Made with the first record.
    segment: Option<Segment>,
    /// Records in the file.
    written: u64,
    /// Records that are not yet in the file.
    pending: Vec<u8>,
}

/// What a cache holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheInfo {
    /// One entry an encoder, in the order of their texts.
    pub encoders: Vec<CachedEncoder>,
}

/// What a cache holds of one encoder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CachedEncoder {
    /// The encoder's text.
    pub encoder: String,
    /// The number of images; one that two processes met at the same time counts twice.
    pub images: u64,
    /// The bytes of all its files.
    pub bytes: u64,
}

impl FeatureCache {
    /// Opens the part of a cache that belongs to an encoder and makes it where it is missing.
    ///
    /// Rows of another number of features are as good as not there.
    pub fn open(root: &Path, encoder: &str, dim: usize) -> Result<Self, DataError> {
        let folder = root.join(FEATURES).join(folder_name(encoder));
        let mut cache = Self {
            folder,
            encoder: encoder.to_owned(),
            dim,
            segments: Vec::new(),
            index: RwLock::default(),
            own: Mutex::default(),
        };
        cache.prepare_folder()?;
        // Without it the cache is slower and as good.
        let _ = merge(&cache.folder, dim);
        for listing in 1..=LISTINGS {
            if cache.index_segments(listing == LISTINGS)? {
                break;
            }
        }
        Ok(cache)
    }

    /// Finds out which records there are; whether all segments were there that were listed, unless that does not matter.
    fn index_segments(&mut self, in_any_case: bool) -> Result<bool, DataError> {
        self.segments.clear();
        let mut index = HashMap::new();
        for (path, _) in files(&self.folder)?.into_iter().filter(|(path, _)| is_segment(path)) {
            let segment = match Segment::open(&path) {
                Ok(segment) => segment,
                // Merged by another process, or cleared: whoever clears the cache at this moment is right.
                Err(e) if e.kind() == io::ErrorKind::NotFound && !in_any_case => return Ok(false),
                Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => continue,
                // Too many open files, say. What cannot be read now is not missing.
                Err(source) => return Err(DataError::Read { path, source }),
            };
            if segment.dim() != Some(self.dim) {
                continue;
            }
            let number = self.segments.len() as u32;
            // Later segments win, as they were written by those who found the earlier record damaged.
            segment.for_each_key(self.dim, |record, key| {
                let segment = number;
                index.insert(key, Location::Found { segment, record });
            });
            let open = (self.segments.len() < KEPT_OPEN).then_some(segment);
            self.segments.push(StoredSegment { path, open });
        }
        self.index = RwLock::new(index);
        Ok(true)
    }

    /// The features of an image, when they are there and whole.
    pub fn get(&self, content: &[u8; KEY]) -> Option<Vec<f32>> {
        let location = *self.index.read().unwrap_or_else(PoisonError::into_inner).get(content)?;
        let mut record = vec![0; record_length(self.dim)];
        match location {
            Location::Found { segment, record: at } => {
                self.segments.get(segment as usize)?.read(at, &mut record).ok()?;
            }
            Location::Own { record: at } => {
                let own = self.own();
                if at >= own.written {
                    let pending = usize::try_from(at - own.written).ok()?;
                    let mut records = own.pending.chunks_exact(record.len());
                    record.copy_from_slice(records.nth(pending)?);
                } else {
                    own.segment.as_ref()?.read(at, &mut record).ok()?;
                }
            }
        }
        decode(content, &record)
    }

    /// Keeps the features of an image.
    ///
    /// They are found again at once, and by other processes that open the cache after the next [`flush`](Self::flush),
    /// which happens by itself every few records and at the end.
    pub fn put(&self, content: &[u8; KEY], row: &[f32]) -> Result<(), DataError> {
        if row.len() != self.dim {
            return Err(DataError::Malformed {
                path: self.folder.clone(),
                problem: format!(
                    "a row of {} features does not belong into a cache of rows of {}; open the cache with the \
                     number of features that the encoder gives",
                    row.len(),
                    self.dim
                ),
            });
        }
        if self.get(content).is_some() {
            return Ok(());
        }
        let mut own = self.own();
        let length = record_length(self.dim);
        let record = own.written + (own.pending.len() / length) as u64;
        encode(content, row, &mut own.pending);
        self.index
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(*content, Location::Own { record });
        if own.pending.len() >= PENDING_BYTES || record + 1 - own.written >= PENDING_RECORDS {
            self.write_pending(&mut own)?;
        }
        Ok(())
    }

    /// Writes what is held back.
    pub fn flush(&self) -> Result<(), DataError> {
        self.write_pending(&mut self.own())
    }

    /// What the cache below a root holds; nothing where there is none.
    pub fn info(root: &Path) -> Result<CacheInfo, DataError> {
        let mut info = CacheInfo::default();
        for folder in encoder_folders(root)? {
            let mut found = CachedEncoder {
                encoder: String::new(),
                images: 0,
                bytes: 0,
            };
            for (path, bytes) in files(&folder)? {
                found.bytes += bytes;
                if is_segment(&path) {
                    let segment = File::open(&path).ok().map(Segment::new);
                    let dim = segment.and_then(|segment| segment.dim());
                    found.images += dim.map_or(0, |dim| bytes.saturating_sub(HEAD) / record_length(dim) as u64);
                } else {
                    found.encoder = read_encoder(&path)?;
                }
            }
            info.encoders.push(found);
        }
        info.encoders.sort();
        Ok(info)
    }

    /// Deletes the files of a cache, and nothing that it did not write.
    pub fn clear(root: &Path) -> Result<(), DataError> {
        for folder in encoder_folders(root)? {
            for (path, _) in files(&folder)? {
                match fs::remove_file(&path) {
                    // Another process clears as well.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    result => result.map_err(|source| DataError::Delete { path, source })?,
                }
            }
            // Folders go when they are empty; what others put there stays.
            let _ = fs::remove_dir(&folder);
        }
        let _ = fs::remove_dir(root.join(FEATURES));
        Ok(())
    }

    fn own(&self) -> MutexGuard<'_, OwnSegment> {
        // After a panic elsewhere the records are still whole or fail their checksum.
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the folder and the encoder's text where they are missing.
    fn prepare_folder(&self) -> Result<(), DataError> {
        fs::create_dir_all(&self.folder).map_err(|source| FileError::Write {
            target: self.folder.display().to_string(),
            source,
            way_out: "; name another folder for the cache in GENUS_CACHE",
        })?;
        let path = self.folder.join(ENCODER);
        if !path.exists() {
            let mut file = AtomicFile::create_own(&path)?;
            file.write_all(self.encoder.as_bytes())
                .map_err(|e| DataError::write(path.display(), e))?;
            return Ok(file.commit()?);
        }
        if read_encoder(&path)? != self.encoder {
            return Err(DataError::Malformed {
                path,
                problem: "it names another encoder than the one its folder is for; clear the cache".to_owned(),
            });
        }
        Ok(())
    }

    /// Appends what is pending to this process's segment. What cannot be written is forgotten, so that a full disk does
    /// not fill the memory as well.
    fn write_pending(&self, own: &mut OwnSegment) -> Result<(), DataError> {
        if own.pending.is_empty() {
            return Ok(());
        }
        let length = record_length(self.dim);
        let written = self.append(own);
        match written {
            Ok(()) => own.written += (own.pending.len() / length) as u64,
            Err(_) => {
                let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
                for record in own.pending.chunks_exact(length) {
                    let (key, _) = record.split_at(KEY);
                    index.remove(key);
                }
            }
        }
        own.pending.clear();
        written
    }

    fn append(&self, own: &mut OwnSegment) -> Result<(), DataError> {
        let failed = |e| DataError::write(self.folder.display(), e);
        if own.segment.is_none() {
            // The cache may have been cleared since it was opened.
            self.prepare_folder()?;
            own.segment = Some(Segment::create(&self.folder, self.dim).map_err(failed)?);
        }
        let Some(segment) = &own.segment else { return Ok(()) };
        // At its place and not at the end, where a write that failed may have left a part of a record.
        let at = HEAD + own.written * record_length(self.dim) as u64;
        segment.write_at(&own.pending, at).map_err(failed)
    }
}

impl Drop for FeatureCache {
    fn drop(&mut self) {
        // A cache that cannot be written costs time and nothing else.
        let _ = self.flush();
    }
}

/// The folder where features are kept unless the caller says otherwise: `$GENUS_CACHE`, else `genus` in the user's
/// cache folder; `None` when there is no home.
pub fn default_root() -> Option<PathBuf> {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // A relative path would be another folder wherever one stands.
    let absolute = |name: &str| named(name).filter(|path| path.is_absolute());
    let system = || {
        if cfg!(windows) {
            absolute("LOCALAPPDATA").map(|folder| folder.join("genus").join("cache"))
        } else if cfg!(target_os = "macos") {
            env::home_dir().map(|home| home.join("Library/Caches/genus"))
        } else {
            env::home_dir().map(|home| home.join(".cache/genus"))
        }
    };
    named("GENUS_CACHE")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|folder| folder.join("genus")))
        .or_else(system)
}

/// A segment that was there on opening.
struct StoredSegment {
    path: PathBuf,
    /// None of more than a few, which are opened when they are read.
    open: Option<Segment>,
}

impl StoredSegment {
    fn read(&self, record: u64, into: &mut [u8]) -> io::Result<()> {
        match &self.open {
            Some(segment) => segment.read(record, into),
            None => Segment::open(&self.path)?.read(record, into),
        }
    }
}

/// A file of records.
struct Segment {
    #[cfg(unix)]
    file: File,
    #[cfg(not(unix))]
    file: Mutex<File>,
}

impl Segment {
    /// A new segment under a name that nobody else has.
    fn create(folder: &Path, dim: usize) -> io::Result<Self> {
        let head = head(dim)?;
        let process = std::process::id();
        loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            // The time comes first, so that names sort as the segments were begun.
            let path = folder.join(format!("{:024x}-{process}.{SEGMENT}", now.as_nanos()));
            let created = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
            match created {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                created => {
                    let file = created?;
                    if cfg!(unix) {
                        // Where there are no locks, nothing is merged.
                        let _ = file.lock();
                    }
                    // Before it was locked it looked like one that nobody appends to.
                    if !is_at(&file, &path) {
                        continue;
                    }
                    let segment = Self::new(file);
                    segment.write_at(&head, 0)?;
                    return Ok(segment);
                }
            }
        }
    }

    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::new(File::open(path)?))
    }

    /// The number of features of its rows; `None` when it is not a segment.
    fn dim(&self) -> Option<usize> {
        let mut head = [0; HEAD as usize];
        self.read_at(&mut head, 0).ok()?;
        let (mark, features) = head.split_first_chunk()?;
        let features = u32::from_le_bytes(features.try_into().ok()?);
        (mark == MARK).then_some(features as usize)
    }

    /// Gives the key of every record that is there in full length.
    fn for_each_key(&self, dim: usize, mut each: impl FnMut(u64, [u8; KEY])) {
        let length = record_length(dim) as u64;
        let records = self.length().unwrap_or(0).saturating_sub(HEAD) / length;
        let mut key = [0; KEY];
        for record in 0..records {
            if self.read_at(&mut key, HEAD + record * length).is_err() {
                return;
            }
            each(record, key);
        }
    }

    fn read(&self, record: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_at(into, HEAD + record * into.len() as u64)
    }
}

#[cfg(unix)]
impl Segment {
    fn new(file: File) -> Self {
        Self { file }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, at)
    }
}

#[cfg(not(unix))]
impl Segment {
    fn new(file: File) -> Self {
        Self { file: Mutex::new(file) }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file().metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        let mut file = self.file();
        io::Seek::seek(&mut *file, io::SeekFrom::Start(at))?;
        io::Read::read_exact(&mut *file, into)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut file = self.file();
        io::Seek::seek(&mut *file, io::SeekFrom::Start(at))?;
        file.write_all(bytes)
    }

    fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Merges the segments that nobody appends to, where there are several of about the same size.
fn merge(folder: &Path, dim: usize) -> Result<(), DataError> {
    if !cfg!(unix) {
        // Locks elsewhere keep others from reading.
        return Ok(());
    }
    loop {
        let mut classes: BTreeMap<u32, Vec<PathBuf>> = BTreeMap::new();
        for (path, length) in files(folder)?.into_iter().filter(|(path, _)| is_segment(path)) {
            let records = length.saturating_sub(HEAD) / record_length(dim) as u64;
            let class = records.max(1).ilog(MERGED as u64);
            classes.entry(class).or_default().push(path);
        }
        let mut merged = false;
        for paths in classes.values().filter(|paths| paths.len() >= MERGED) {
            merged |= merge_some(folder, dim, paths)?;
        }
        if !merged {
            return Ok(());
        }
    }
}

/// Makes one segment of some, leaving out those that are in use; whether there were enough of them.
fn merge_some(folder: &Path, dim: usize, paths: &[PathBuf]) -> Result<bool, DataError> {
    let read_failed = |path: &Path, source| DataError::Read {
        path: path.to_owned(),
        source,
    };
    let mut sources = Vec::new();
    for path in paths {
        let Ok(file) = File::open(path) else { continue };
        // Locked until they are gone, so that nobody else merges them.
        let is_idle = file.try_lock().is_ok() && is_at(&file, path);
        let segment = Segment::new(file);
        let is_ours = segment.dim() == Some(dim) || segment.length().is_ok_and(|length| length < HEAD);
        if is_idle && is_ours {
            sources.push((path, segment));
        }
        if sources.len() == MERGED_AT_ONCE {
            break;
        }
    }
    if sources.len() < MERGED {
        return Ok(false);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = format!("{:024x}-{}.{SEGMENT}", now.as_nanos(), std::process::id());
    let target = folder.join(name);
    let write_failed = |e| DataError::write(target.display(), e);
    let mut file = AtomicFile::create_own(&target)?;
    file.write_all(&head(dim).map_err(write_failed)?)
        .map_err(write_failed)?;
    let mut record = vec![0; record_length(dim)];
    let mut written = HashSet::new();
    for (path, segment) in &sources {
        let mut keys = Vec::new();
        segment.for_each_key(dim, |at, key| keys.push((at, key)));
        for (at, key) in keys {
            segment.read(at, &mut record).map_err(|e| read_failed(path, e))?;
            // Only what is whole, and only once.
            if decode(&key, &record).is_some() && written.insert(key) {
                file.write_all(&record).map_err(write_failed)?;
            }
        }
    }
    file.commit()?;
    for (path, _) in &sources {
        // One that stays is merged again.
        let _ = fs::remove_file(path);
    }
    Ok(true)
}

/// The head of a segment.
fn head(dim: usize) -> io::Result<Vec<u8>> {
    let features = u32::try_from(dim).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut head = MARK.to_vec();
    head.extend(features.to_le_bytes());
    Ok(head)
}

fn record_length(dim: usize) -> usize {
    dim.saturating_mul(4).saturating_add(KEY + CHECKSUM)
}

fn encode(key: &[u8; KEY], row: &[f32], to: &mut Vec<u8>) {
    let start = to.len();
    to.extend(key);
    to.extend(row.iter().flat_map(|value| value.to_le_bytes()));
    let checksum = checksum(&to[start..]);
    to.extend(checksum);
}

/// The row of a record, unless the record is another's or damaged.
fn decode(key: &[u8; KEY], record: &[u8]) -> Option<Vec<f32>> {
    let (content, sum) = record.split_last_chunk::<CHECKSUM>()?;
    let (found, row) = content.split_first_chunk::<KEY>()?;
    let whole = found == key && *sum == checksum(content);
    let (values, _) = row.as_chunks::<4>();
    whole.then(|| values.iter().map(|&value| f32::from_le_bytes(value)).collect())
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let mut sum = [0; CHECKSUM];
    sum.copy_from_slice(&blake3::hash(bytes).as_bytes()[..CHECKSUM]);
    sum
}

/// What the folder of an encoder is called.
fn folder_name(encoder: &str) -> String {
    blake3::hash(encoder.as_bytes()).to_hex()[..32].to_owned()
}

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == SEGMENT)
}

/// The folders of encoders below a root, which are no links.
fn encoder_folders(root: &Path) -> Result<Vec<PathBuf>, DataError> {
    let features = root.join(FEATURES);
    if !fs::symlink_metadata(&features).is_ok_and(|found| found.is_dir()) {
        return Ok(Vec::new());
    }
    let entries = entries(&features)?;
    let ours = entries.into_iter().filter(|(path, found)| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let hash = name.len() == 32 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        hash && found.is_dir()
    });
    Ok(ours.map(|(path, _)| path).collect())
}

/// The files of an encoder that are the cache's own, and their lengths, sorted by name.
fn files(folder: &Path) -> Result<Vec<(PathBuf, u64)>, DataError> {
    let ours = entries(folder)?.into_iter().filter(|(path, found)| {
        let encoder = path.file_name().is_some_and(|name| name == ENCODER);
        found.is_file() && (encoder || is_segment(path))
    });
    Ok(ours.map(|(path, found)| (path, found.len())).collect())
}

/// What is in a folder, sorted by name; links are links.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, fs::Metadata)>, DataError> {
    let failed = |source| DataError::Read {
        path: folder.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // What is gone by now was cleared by another process.
        if let Ok(metadata) = entry.metadata() {
            found.push((entry.path(), metadata));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}

fn read_encoder(path: &Path) -> Result<String, DataError> {
    let failed = |source| DataError::Read {
        path: path.to_owned(),
        source,
    };
    let mut text = Vec::new();
    let file = File::open(path).map_err(failed)?;
    io::Read::read_to_end(&mut io::Read::take(file, MAX_ENCODER), &mut text).map_err(failed)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
