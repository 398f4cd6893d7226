//! The database: all SQL of the crate.
//!
//! The tables `place`, `grp`, `rejection` and `tally` are what the `log_*` tables add up to; they change together, in one
//! transaction. `item` and `feature` hold what is true of items whatever anybody says. `centre` and `knowledge` are remembered, and
//! can be made again. Features are in a table of their own, so that nothing else reads past them.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use genus_core::Features;
use genus_data::EncoderRecord;
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use crate::error::Error;
use crate::live::Reply;
use crate::model::{Entry, EntryId, Group, GroupId, ItemId, Place, PlacedItem};
use crate::rules::{Change, Changes, Next, View};

/// The file in a collection's folder.
pub(crate) const FILE: &str = "collection.db";
/// `genu`, so that `file` and others can tell what it is.
const APPLICATION: i64 = 0x6765_6e75;
/// The version of the schema: how many of the migrations were made.
const VERSION: i64 = MIGRATIONS.len() as i64;
/// Features of 1,280 half floats, six on a page; 4 KB pages would be half empty.
const PAGE: i64 = 16_384;
/// How long another writer is waited for when it is not known by the lock of the folder.
const PATIENCE: Duration = Duration::from_secs(5);
/// And where nobody has to know.
const SHORT_PATIENCE: Duration = Duration::from_millis(200);

const IN: i64 = 1;
const WAITING: i64 = 2;
const NOISE: i64 = 3;

/// What makes a database of each version one of the next. They are never changed, only added to.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE item (
        id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, name TEXT NOT NULL, path BLOB, scene INTEGER
    );
    CREATE INDEX item_name ON item (name);
    CREATE TABLE feature (item INTEGER PRIMARY KEY, sum INTEGER NOT NULL, data BLOB NOT NULL);
    CREATE TABLE place (
        item INTEGER PRIMARY KEY, state INTEGER NOT NULL, grp INTEGER, probability REAL, said INTEGER NOT NULL,
        since INTEGER NOT NULL
    );
    CREATE INDEX place_of ON place (state, grp, item);
    CREATE TABLE grp (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, named INTEGER NOT NULL, part_of INTEGER, ended INTEGER NOT NULL,
        sealed INTEGER, parent INTEGER, holds_groups INTEGER NOT NULL
    );
    CREATE INDEX grp_name ON grp (name) WHERE part_of IS NULL AND ended = 0;
    CREATE INDEX grp_part_of ON grp (part_of) WHERE part_of IS NOT NULL;
    CREATE TABLE rejection (item INTEGER NOT NULL, grp INTEGER NOT NULL, PRIMARY KEY (item, grp)) WITHOUT ROWID;
    CREATE INDEX rejection_of ON rejection (grp, item);
    CREATE TABLE tally (
        state INTEGER NOT NULL, grp INTEGER NOT NULL, items INTEGER NOT NULL, said INTEGER NOT NULL,
        PRIMARY KEY (state, grp)
    ) WITHOUT ROWID;
    CREATE TABLE log (
        no INTEGER PRIMARY KEY, time INTEGER NOT NULL, author TEXT NOT NULL, kind TEXT NOT NULL, said TEXT NOT NULL,
        of INTEGER, undo INTEGER, redo INTEGER, items INTEGER NOT NULL, groups INTEGER NOT NULL
    );
    CREATE INDEX log_of ON log (of) WHERE of IS NOT NULL;
    CREATE TABLE log_item (
        log INTEGER NOT NULL, item INTEGER NOT NULL,
        was_state INTEGER, was_grp INTEGER, was_probability REAL, was_said INTEGER, was_since INTEGER,
        state INTEGER, grp INTEGER, probability REAL, said INTEGER, since INTEGER,
        PRIMARY KEY (log, item)
    ) WITHOUT ROWID;
    CREATE TABLE log_grp (
        log INTEGER NOT NULL, grp INTEGER NOT NULL, was TEXT, is_now TEXT, PRIMARY KEY (log, grp)
    ) WITHOUT ROWID;
    CREATE TABLE log_rejection (
        log INTEGER NOT NULL, item INTEGER NOT NULL, grp INTEGER NOT NULL, was INTEGER NOT NULL, is_now INTEGER NOT NULL,
        PRIMARY KEY (log, item, grp)
    ) WITHOUT ROWID;
    CREATE TABLE centre (grp INTEGER PRIMARY KEY, members REAL NOT NULL, agreement REAL NOT NULL, data BLOB NOT NULL);
    CREATE TABLE knowledge (id INTEGER PRIMARY KEY CHECK (id = 1), familiar REAL NOT NULL, calibration BLOB NOT NULL);
", "
    CREATE TABLE token (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, hash BLOB NOT NULL UNIQUE, made INTEGER NOT NULL,
        revoked INTEGER
    );
    CREATE TABLE reply (
        key BLOB PRIMARY KEY, request BLOB NOT NULL, time INTEGER NOT NULL, status INTEGER NOT NULL, body BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX reply_time ON reply (time);
", "
    CREATE TABLE asked (
        item INTEGER NOT NULL, grp INTEGER NOT NULL, name TEXT NOT NULL, time INTEGER NOT NULL, PRIMARY KEY (item, grp)
    ) WITHOUT ROWID;
"];

/// How sure the place of an item is: what a person said is certain, and what nothing speaks for is not at all.
const SURE: &str = "(CASE WHEN p.said THEN 1.0 WHEN p.probability IS NOT NULL THEN p.probability WHEN p.state = 1 THEN 1.0 ELSE 0.0 END)";

/// What is true of items that are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wanted {
    /// Where they are: any of these. Without any, they may be anywhere.
    pub(crate) places: Option<Vec<WantedPlace>>,
    /// Whether a person said so.
    pub(crate) said: Option<bool>,
    /// How sure that is.
    pub(crate) at_least: Option<f64>,
    pub(crate) at_most: Option<f64>,
    /// What is in their names.
    pub(crate) name: Option<String>,
    pub(crate) order: Order,
}

/// A place of items that are wanted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WantedPlace {
    In(Vec<GroupId>),
    /// With one of these as the guess; all that wait without.
    Waiting(Option<Vec<GroupId>>),
    Noise,
}

/// The order of items that are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    #[default]
    Number,
    Surest,
    LeastSure,
}

impl Wanted {
    /// As a condition with its values. Numbers of groups are our own, so they may stand in the text.
    fn condition(&self) -> (String, Vec<Value>) {
        let (mut all, mut values) = (vec!["1".to_owned()], Vec::new());
        if let Some(places) = &self.places {
            let list = |groups: &[GroupId]| groups.iter().map(GroupId::to_string).collect::<Vec<_>>().join(",");
            let places: Vec<String> = places
                .iter()
                .map(|place| match place {
                    WantedPlace::In(groups) => format!("(p.state = {IN} AND p.grp IN ({}))", list(groups)),
                    WantedPlace::Waiting(Some(groups)) => {
                        format!("(p.state = {WAITING} AND p.grp IN ({}))", list(groups))
                    }
                    WantedPlace::Waiting(None) => format!("p.state = {WAITING}"),
                    WantedPlace::Noise => format!("p.state = {NOISE}"),
                })
                .collect();
            all.push(match places.is_empty() {
                true => "0".to_owned(),
                false => format!("({})", places.join(" OR ")),
            });
        }
        if let Some(said) = self.said {
            all.push("p.said = ?".to_owned());
            values.push(Value::Integer(i64::from(said)));
        }
        for (bound, sign) in [(self.at_least, ">="), (self.at_most, "<=")] {
            if let Some(bound) = bound {
                all.push(format!("{SURE} {sign} ?"));
                values.push(Value::Real(bound));
            }
        }
        if let Some(name) = &self.name {
            all.push("instr(lower(i.name), lower(?)) > 0".to_owned());
            values.push(Value::Text(name.clone()));
        }
        (all.join(" AND "), values)
    }
}

/// An open database.
pub(crate) struct Store {
    db: Connection,
    path: PathBuf,
    writes: bool,
    /// Whether a transaction is on.
    within: Cell<bool>,
}

/// An item as it is stored, but for its features.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredItem {
    pub(crate) id: ItemId,
    pub(crate) name: String,
    pub(crate) path: Option<PathBuf>,
    pub(crate) scene: Option<i64>,
    pub(crate) place: Option<PlacedItem>,
}

/// The centre of a group as it is remembered.
pub(crate) struct StoredCentre {
    pub(crate) group: GroupId,
    pub(crate) members: f64,
    pub(crate) agreement: f64,
    pub(crate) centre: Vec<f32>,
}

/// What an item is known by: a hash of its content.
pub(crate) type Key = [u8; 16];

/// The last entry of the log, and what would be undone and redone next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) no: EntryId,
    pub(crate) undo: Option<EntryId>,
    pub(crate) redo: Option<EntryId>,
}

/// An entry before it has a number.
pub(crate) struct NewEntry<'a> {
    pub(crate) author: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) said: &'a serde_json::Value,
    pub(crate) of: Option<EntryId>,
    pub(crate) undo: Option<EntryId>,
    pub(crate) redo: Option<EntryId>,
}

/// How many items are in one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) items: i64,
    pub(crate) said: i64,
}

/// The numbers of items by state and group, which is 0 where there is none.
pub(crate) type Tallies = BTreeMap<(i64, i64), Tally>;

/// Which items are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which<'a> {
    All,
    /// Those whose place is one of these groups.
    In(&'a [GroupId]),
    /// Those that wait with one of these groups as the guess.
    Guessed(&'a [GroupId]),
    Waiting,
    Noise,
}

type Result<T> = std::result::Result<T, Error>;

/// Fails for a link in the place of the database, which may lead anywhere. SQLite itself follows none of the files beside it.
fn refuse_link(path: &Path) -> Result<()> {
    match std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        true => Err(Error::Database {
            path: path.to_owned(),
            problem: "it is a link, which is not followed here".to_owned(),
        }),
        false => Ok(()),
    }
}

impl Store {
    /// Makes the database of a new collection, in a folder that is there. One in which nothing has happened is taken as it is, so
    /// that making it can be gone on with where it was interrupted.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        refuse_link(&path)?;
        let exists = || Error::Exists {
            path: folder.to_owned(),
        };
        if std::fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(exists());
        }
        let was_there = path.exists();
        let store = Self::connect(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
            true,
        )?;
        let version = match was_there {
            true => store.version_of_empty().ok().flatten().ok_or_else(exists)?,
            false => 0,
        };
        store.run(&format!(
            "PRAGMA page_size = {PAGE}; PRAGMA application_id = {APPLICATION}"
        ))?;
        store.prepare_to_write()?;
        store.migrate(version)?;
        Ok(store)
    }

    /// The version of a database of ours in which nothing has happened; `None` for any other.
    fn version_of_empty(&self) -> Result<Option<i64>> {
        let (application, version) = self.version()?;
        let count = |text: &str| self.sql(self.db.query_row(text, [], |row| row.get::<_, i64>(0)));
        let is_empty = match (application, version) {
            (0 | APPLICATION, 0) => count("SELECT count(*) FROM sqlite_master")? == 0,
            // Making one may have been interrupted between its versions.
            (APPLICATION, 1) => count("SELECT count(*) FROM log")? == 0,
            (APPLICATION, VERSION) => count("SELECT (SELECT count(*) FROM log) + (SELECT count(*) FROM token)")? == 0,
            _ => false,
        };
        Ok(is_empty.then_some(version))
    }

    /// Opens a database; one that is only read may be on a medium that cannot be written.
    pub(crate) fn open(folder: &Path, writes: bool) -> Result<Self> {
        let path = folder.join(FILE);
        refuse_link(&path)?;
        if !path.is_file() {
            return Err(Error::NoCollection {
                path: folder.to_owned(),
            });
        }
        let flags = match writes {
            true => OpenFlags::SQLITE_OPEN_READ_WRITE,
            // To read it, too, files beside it are written, which readers and writers find each other by.
            false => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        let store = match Self::connect(path.clone(), flags, writes) {
            Ok(store) => store,
            Err(_) if !writes => Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, false)?,
            Err(error) => return Err(error),
        };
        let store = match store.version() {
            Err(Error::Database { .. } | Error::ReadOnly { .. }) if !writes => store.lying_still()?,
            Err(error) => return Err(error),
            Ok(_) => store,
        };
        let (application, version) = store.version()?;
        if application != APPLICATION || version == 0 {
            return Err(Error::NoCollection {
                path: folder.to_owned(),
            });
        }
        if version > VERSION {
            return Err(Error::Newer {
                path: store.path,
                found: version,
                known: VERSION,
            });
        }
        if writes {
            store.prepare_to_write()?;
            store.migrate(version)?;
        } else if version == VERSION {
            store.run("PRAGMA query_only = ON")?;
        }
        Ok(store)
    }

    /// The same database on a medium where nothing can be written beside it. Nobody can be writing it there.
    fn lying_still(self) -> Result<Self> {
        let mut uri = String::from("file:");
        for byte in self.path.as_os_str().as_encoded_bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                    uri.push(char::from(*byte))
                }
                byte => uri += &format!("%{byte:02X}"),
            }
        }
        uri += "?immutable=1";
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(&uri, flags).map_err(|e| Error::database(&self.path, e))?;
        Ok(Self { db, ..self })
    }

    fn connect(path: PathBuf, flags: OpenFlags, writes: bool) -> Result<Self> {
        let db = Connection::open_with_flags(&path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(|e| Error::database(&path, e))?;
        let store = Self {
            db,
            path,
            writes,
            within: Cell::new(false),
        };
        store.sql(store.db.busy_timeout(PATIENCE))?;
        store.db.set_prepared_statement_cache_capacity(64);
        // Nothing in a file from elsewhere is a program.
        store.run("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")?;
        Ok(store)
    }

    fn version(&self) -> Result<(i64, i64)> {
        let pragma = |name: &str| {
            let text = format!("PRAGMA {name}");
            self.sql(self.db.query_row(&text, [], |row| row.get(0)))
        };
        Ok((pragma("application_id")?, pragma("user_version")?))
    }

    fn prepare_to_write(&self) -> Result<()> {
        // Readers are not blocked, and what was committed is on the disk. Keys are as good as random, so the pages of a million are
        // needed all the time.
        self.run(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -262144",
        )
    }

    fn migrate(&self, version: i64) -> Result<()> {
        for (at, migration) in (version + 1..).zip(&MIGRATIONS[version as usize..]) {
            self.transaction(|store| {
                store.run(migration)?;
                store.run(&format!("PRAGMA user_version = {at}"))
            })?;
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn sql<T>(&self, result: rusqlite::Result<T>) -> Result<T> {
        result.map_err(|e| Error::database(&self.path, e))
    }

    fn run(&self, statements: &str) -> Result<()> {
        self.sql(self.db.execute_batch(statements))
    }

    /// Everything that `work` does happens, or nothing does.
    pub(crate) fn transaction<T>(&self, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        if !self.writes {
            return Err(Error::ReadOnly {
                path: self.path.clone(),
            });
        }
        if self.within.get() {
            return work(self);
        }
        self.run("BEGIN IMMEDIATE")?;
        self.within.set(true);
        let done = work(self).and_then(|done| self.run("COMMIT").map(|()| done));
        self.within.set(false);
        if done.is_err() {
            // Some errors have ended the transaction already.
            let _ = self.db.execute_batch("ROLLBACK");
        }
        done
    }

    /// Begins what ends with [`Self::end`]: transactions in between are parts of it.
    pub(crate) fn begin(&self) -> Result<()> {
        if !self.writes {
            return Err(Error::ReadOnly {
                path: self.path.clone(),
            });
        }
        self.run("BEGIN IMMEDIATE")?;
        self.within.set(true);
        Ok(())
    }

    /// Writes all that was done since it began, or nothing when it failed.
    pub(crate) fn end<T>(&self, done: Result<T>) -> Result<T> {
        let done = done.and_then(|done| self.run("COMMIT").map(|()| done));
        self.within.set(false);
        if done.is_err() {
            let _ = self.db.execute_batch("ROLLBACK");
        }
        done
    }

    /// Everything that `work` reads is of one moment.
    pub(crate) fn snapshot<T>(&self, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        if self.within.get() {
            return work(self);
        }
        self.run("BEGIN")?;
        self.within.set(true);
        let done = work(self);
        self.within.set(false);
        let _ = self.db.execute_batch("ROLLBACK");
        done
    }

    fn rows<T>(
        &self,
        text: &str,
        params: impl rusqlite::Params,
        read: impl FnMut(&Row) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.sql(self.db.prepare_cached(text))?;
        let rows = self.sql(statement.query_map(params, read))?;
        self.sql(rows.collect())
    }

    fn first<T>(
        &self,
        text: &str,
        params: impl rusqlite::Params,
        read: impl FnOnce(&Row) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let mut statement = self.sql(self.db.prepare_cached(text))?;
        self.sql(statement.query_row(params, read).optional())
    }

    fn write(&self, text: &str, params: impl rusqlite::Params) -> Result<()> {
        let mut statement = self.sql(self.db.prepare_cached(text))?;
        self.sql(statement.execute(params)).map(drop)
    }

    fn damaged(&self, problem: impl Into<String>) -> Error {
        Error::Damaged {
            path: self.path.clone(),
            problem: problem.into(),
        }
    }

    /// Something about the collection as a whole.
    pub(crate) fn meta(&self, key: &str) -> Result<Option<String>> {
        self.first("SELECT value FROM meta WHERE key = ?", [key], |row| row.get(0))
    }

    /// Keeps how the encoder is found again. A path that is not Unicode cannot be kept; the fingerprint then finds the encoder.
    pub(crate) fn set_encoder(&self, record: &EncoderRecord) -> Result<()> {
        match serde_json::to_string(record) {
            Ok(text) => self.set_meta("images", &text),
            Err(_) => Ok(()),
        }
    }

    pub(crate) fn set_meta(&self, key: &str, value: &str) -> Result<()> {
        self.write("INSERT OR REPLACE INTO meta VALUES (?, ?)", [key, value])
    }

    fn number(&self, key: &str) -> Result<i64> {
        let text = self.meta(key)?;
        let number = text.as_deref().map_or(Ok(1), str::parse);
        number.map_err(|_| self.damaged(format!("{key} is no number")))
    }

    /// The numbers of the next new group.
    pub(crate) fn next(&self) -> Result<Next> {
        Ok(Next {
            group: self.number("next_group")?,
            name: self.number("next_name")?,
        })
    }
}

// The log, and what it adds up to.
impl Store {
    pub(crate) fn head(&self) -> Result<Head> {
        let head = self.first("SELECT no, undo, redo FROM log ORDER BY no DESC LIMIT 1", [], head_of)?;
        Ok(head.unwrap_or_default())
    }

    /// The head when an entry had been written.
    pub(crate) fn head_at(&self, no: EntryId) -> Result<Head> {
        let head = self.first("SELECT no, undo, redo FROM log WHERE no = ?", [no.0], head_of)?;
        Ok(head.unwrap_or_default())
    }

    /// The last entry that undid another.
    pub(crate) fn undone_by(&self, no: EntryId) -> Result<Option<EntryId>> {
        self.first(
            "SELECT no FROM log WHERE of = ? AND kind = 'undo' ORDER BY no DESC LIMIT 1",
            [no.0],
            |row| row.get(0).map(EntryId),
        )
    }

    /// Writes an entry with what it changes, and changes it.
    pub(crate) fn append(&self, no: EntryId, entry: &NewEntry, changes: &Changes, next: Next) -> Result<Entry> {
        let time = now();
        let (items, groups) = (changes.items.len() as i64, changes.groups.len() as i64);
        self.write(
            "INSERT INTO log (no, time, author, kind, said, of, undo, redo, items, groups) VALUES (?,?,?,?,?,?,?,?,?,?)",
            params![
                no.0,
                time,
                entry.author,
                entry.kind,
                entry.said.to_string(),
                entry.of.map(|of| of.0),
                entry.undo.map(|undo| undo.0),
                entry.redo.map(|redo| redo.0),
                items,
                groups
            ],
        )?;
        self.log_changes(no, changes)?;
        self.apply(changes)?;
        self.set_meta("next_group", &next.group.to_string())?;
        self.set_meta("next_name", &next.name.to_string())?;
        Ok(Entry {
            no,
            time,
            author: entry.author.to_owned(),
            kind: entry.kind.to_owned(),
            said: entry.said.clone(),
            of: entry.of,
            items: items as u64,
            groups: groups as u64,
        })
    }

    fn log_changes(&self, no: EntryId, changes: &Changes) -> Result<()> {
        for (item, change) in &changes.items {
            let [was, now] = [change.before, change.after].map(Cells::of);
            self.write(
                "INSERT INTO log_item VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
                params![
                    no.0,
                    item.0,
                    was.state,
                    was.grp,
                    was.probability,
                    was.said,
                    was.since,
                    now.state,
                    now.grp,
                    now.probability,
                    now.said,
                    now.since
                ],
            )?;
        }
        let json = |group: &Option<Group>| {
            group
                .as_ref()
                .map(|group| serde_json::to_string(group).expect("names and numbers are JSON"))
        };
        for (grp, change) in &changes.groups {
            self.write(
                "INSERT INTO log_grp VALUES (?,?,?,?)",
                params![no.0, grp.0, json(&change.before), json(&change.after)],
            )?;
        }
        for ((item, grp), change) in &changes.rejections {
            self.write(
                "INSERT INTO log_rejection VALUES (?,?,?,?,?)",
                params![no.0, item.0, grp.0, change.before, change.after],
            )?;
        }
        Ok(())
    }

    /// What an entry changed.
    pub(crate) fn changes_of(&self, no: EntryId) -> Result<Changes> {
        let mut changes = Changes::default();
        let items = self.rows(
            "SELECT item, was_state, was_grp, was_probability, was_said, was_since, state, grp, probability, said, since
             FROM log_item WHERE log = ?",
            [no.0],
            |row| Ok((ItemId(row.get(0)?), Cells::read(row, 1)?, Cells::read(row, 6)?)),
        )?;
        for (item, was, now) in items {
            let place = |cells: Cells| {
                cells
                    .placed()
                    .ok_or_else(|| self.damaged(format!("a place in log entry {no}")))
            };
            let change = Change {
                before: place(was)?,
                after: place(now)?,
            };
            changes.items.insert(item, change);
        }
        let groups = self.rows("SELECT grp, was, is_now FROM log_grp WHERE log = ?", [no.0], |row| {
            Ok((
                GroupId(row.get(0)?),
                row.get::<_, Option<String>>(1)?,
                row.get::<_, Option<String>>(2)?,
            ))
        })?;
        for (grp, was, now) in groups {
            let group = |text: Option<String>| {
                text.map(|text| serde_json::from_str(&text))
                    .transpose()
                    .map_err(|e| self.damaged(format!("a group in log entry {no}: {e}")))
            };
            let change = Change {
                before: group(was)?,
                after: group(now)?,
            };
            changes.groups.insert(grp, change);
        }
        let rejections = self.rows(
            "SELECT item, grp, was, is_now FROM log_rejection WHERE log = ?",
            [no.0],
            |row| {
                let pair = (ItemId(row.get(0)?), GroupId(row.get(1)?));
                let (before, after) = (row.get(2)?, row.get(3)?);
                Ok((pair, Change { before, after }))
            },
        )?;
        changes.rejections.extend(rejections);
        Ok(changes)
    }

    /// Changes the state.
    fn apply(&self, changes: &Changes) -> Result<()> {
        let mut tallies = Tallies::new();
        for (item, change) in &changes.items {
            let [was, now] = [change.before, change.after].map(Cells::of);
            for (cells, sign) in [(&was, -1), (&now, 1)] {
                if let Some(state) = cells.state {
                    let tally = tallies.entry((state, cells.grp.unwrap_or(0))).or_default();
                    tally.items += sign;
                    tally.said += sign * cells.said.unwrap_or(0);
                }
            }
            match now.state {
                None => self.write("DELETE FROM place WHERE item = ?", [item.0])?,
                Some(state) => self.write(
                    "INSERT INTO place VALUES (?1,?2,?3,?4,?5,?6) ON CONFLICT (item) DO UPDATE
                     SET state = ?2, grp = ?3, probability = ?4, said = ?5, since = ?6",
                    params![item.0, state, now.grp, now.probability, now.said, now.since],
                )?,
            }
        }
        for ((state, grp), tally) in tallies {
            self.write(
                "INSERT INTO tally VALUES (?1,?2,?3,?4) ON CONFLICT (state, grp) DO UPDATE
                 SET items = items + ?3, said = said + ?4",
                params![state, grp, tally.items, tally.said],
            )?;
        }
        for (id, change) in &changes.groups {
            match &change.after {
                None => self.write("DELETE FROM grp WHERE id = ?", [id.0])?,
                Some(group) => self.write(
                    "INSERT OR REPLACE INTO grp VALUES (?,?,?,?,?,?,?,?)",
                    params![
                        id.0,
                        group.name,
                        group.named,
                        group.into.map(|into| into.0),
                        group.ended,
                        group.sealed.map(|entry| entry.0),
                        group.parent.map(|parent| parent.0),
                        group.holds_groups
                    ],
                )?,
            }
        }
        for ((item, grp), change) in &changes.rejections {
            self.write(
                match change.after {
                    true => "INSERT OR REPLACE INTO rejection VALUES (?, ?)",
                    false => "DELETE FROM rejection WHERE item = ? AND grp = ?",
                },
                [item.0, grp.0],
            )?;
        }
        Ok(())
    }

    /// Entries of the log, the last first, from before one of them.
    pub(crate) fn entries(&self, before: Option<EntryId>, most: usize) -> Result<Vec<Entry>> {
        self.read_entries(
            "SELECT no, time, author, kind, said, of, items, groups FROM log WHERE no < ? ORDER BY no DESC LIMIT ?",
            [before.map_or(i64::MAX, |no| no.0), most as i64],
        )
    }

    /// Entries of the log after one of them, in their order.
    pub(crate) fn entries_after(&self, no: EntryId, most: usize) -> Result<Vec<Entry>> {
        self.read_entries(
            "SELECT no, time, author, kind, said, of, items, groups FROM log WHERE no > ? ORDER BY no LIMIT ?",
            [no.0, most as i64],
        )
    }

    fn read_entries(&self, text: &str, params: [i64; 2]) -> Result<Vec<Entry>> {
        self.rows(text, params, |row| {
            let said: String = row.get(4)?;
            Ok(Entry {
                no: EntryId(row.get(0)?),
                time: row.get(1)?,
                author: row.get(2)?,
                kind: row.get(3)?,
                said: serde_json::from_str(&said).unwrap_or(serde_json::Value::Null),
                of: row.get::<_, Option<i64>>(5)?.map(EntryId),
                items: row.get::<_, i64>(6)? as u64,
                groups: row.get::<_, i64>(7)? as u64,
            })
        })
    }

    /// Where all items are, in the order of their numbers.
    pub(crate) fn places(&self) -> Result<Vec<(ItemId, PlacedItem)>> {
        let rows = self.rows(
            "SELECT item, state, grp, probability, said, since FROM place ORDER BY item",
            [],
            |row| Ok((ItemId(row.get(0)?), Cells::read(row, 1)?)),
        )?;
        let placed = rows.into_iter().map(|(item, cells)| match cells.placed() {
            Some(Some(placed)) => Ok((item, placed)),
            _ => Err(self.damaged(format!("the place of item #{item}"))),
        });
        placed.collect()
    }

    /// The items of some groups that are surest of their place.
    pub(crate) fn surest(&self, groups: &[GroupId], most: usize) -> Result<Vec<ItemId>> {
        let mut found: Vec<(f32, ItemId)> = Vec::new();
        for group in groups {
            found.extend(self.rows(
                "SELECT coalesce(probability, 1.0) AS sure, item FROM place WHERE state = ? AND grp = ?
                 ORDER BY sure DESC, item LIMIT ?",
                [IN, group.0, most as i64],
                |row| Ok((row.get(0)?, ItemId(row.get(1)?))),
            )?);
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Ok(found.into_iter().take(most).map(|(_, item)| item).collect())
    }

    /// How many items of every group are less likely to belong there, where nobody has said so.
    pub(crate) fn doubts(&self, below: f64) -> Result<Vec<(GroupId, u64)>> {
        self.rows(
            "SELECT p.grp, count(*) FROM place p JOIN grp g ON g.id = p.grp
             WHERE p.state = ? AND NOT p.said AND p.probability < ? AND (g.sealed IS NULL OR p.since > g.sealed) GROUP BY p.grp",
            rusqlite::params![IN, below],
            |row| Ok((GroupId(row.get(0)?), row.get::<_, i64>(1)? as u64)),
        )
    }

    /// The items that were said not to be of some group.
    pub(crate) fn all_rejected(&self) -> Result<BTreeSet<ItemId>> {
        let rows = self.rows("SELECT DISTINCT item FROM rejection", [], |row| row.get(0).map(ItemId))?;
        Ok(rows.into_iter().collect())
    }

    pub(crate) fn tallies(&self) -> Result<Tallies> {
        let rows = self.rows("SELECT state, grp, items, said FROM tally", [], |row| {
            let tally = Tally {
                items: row.get(2)?,
                said: row.get(3)?,
            };
            Ok(((row.get(0)?, row.get(1)?), tally))
        })?;
        Ok(rows
            .into_iter()
            .filter(|(_, tally)| *tally != Tally::default())
            .collect())
    }

    /// All groups that ever were.
    pub(crate) fn groups(&self) -> Result<BTreeMap<GroupId, Group>> {
        let groups = self.rows(
            "SELECT id, name, named, part_of, ended, sealed, parent, holds_groups FROM grp",
            [],
            |row| Ok((GroupId(row.get(0)?), group_of(row, 1)?)),
        )?;
        Ok(groups.into_iter().collect())
    }

    /// The state as the log alone has it, held against the tables; what differs, in words.
    pub(crate) fn refold(&self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let mut say = |problem: String| {
            if problems.len() < 20 {
                problems.push(problem);
            }
        };
        // The last word on every item, group and rejection is what is true of it.
        let places = self.rows(
            "SELECT item, state, grp, probability, said, since, p_state, p_grp, p_probability, p_said, p_since FROM (
                SELECT l.item, l.state, l.grp, l.probability, l.said, l.since, p.state AS p_state, p.grp AS p_grp,
                       p.probability AS p_probability, p.said AS p_said, p.since AS p_since, max(l.log)
                FROM log_item l LEFT JOIN place p ON p.item = l.item GROUP BY l.item
             ) WHERE NOT (state IS p_state AND grp IS p_grp AND probability IS p_probability AND said IS p_said AND since IS p_since)
             LIMIT 20",
            [],
            |row| row.get::<_, i64>(0),
        )?;
        places
            .iter()
            .for_each(|item| say(format!("item #{item} is not where the log has it")));
        let strangers = self.rows(
            "SELECT item FROM place WHERE item NOT IN (SELECT item FROM log_item) LIMIT 20",
            [],
            |row| row.get::<_, i64>(0),
        )?;
        strangers
            .iter()
            .for_each(|item| say(format!("item #{item} is in a place that the log does not know of")));
        let mut groups = BTreeMap::new();
        let told = self.rows("SELECT grp, is_now, max(log) FROM log_grp GROUP BY grp", [], |row| {
            Ok((GroupId(row.get(0)?), row.get::<_, Option<String>>(1)?))
        })?;
        for (id, text) in told {
            if let Some(group) = text.and_then(|text| serde_json::from_str::<Group>(&text).ok()) {
                groups.insert(id, group);
            }
        }
        let found = self.groups()?;
        for id in groups.keys().chain(found.keys()) {
            if groups.get(id) != found.get(id) {
                say(format!("group {id} is not what the log made of it"));
            }
        }
        let rejections = self.rows(
            "SELECT item, grp FROM (SELECT item, grp, is_now, max(log) FROM log_rejection GROUP BY item, grp) WHERE is_now
             EXCEPT SELECT item, grp FROM rejection",
            [],
            |row| row.get::<_, i64>(0),
        )?;
        let unsaid = self.rows(
            "SELECT item, grp FROM rejection EXCEPT
             SELECT item, grp FROM (SELECT item, grp, is_now, max(log) FROM log_rejection GROUP BY item, grp) WHERE is_now",
            [],
            |row| row.get::<_, i64>(0),
        )?;
        rejections.iter().chain(&unsaid).for_each(|item| {
            say(format!("what item #{item} was said not to be is not what the log has"));
        });
        let counted = self.rows(
            "SELECT state, coalesce(grp, 0), count(*), sum(said) FROM place GROUP BY 1, 2",
            [],
            |row| {
                let (items, said) = (row.get(2)?, row.get(3)?);
                Ok(((row.get(0)?, row.get(1)?), Tally { items, said }))
            },
        )?;
        if self.tallies()? != counted.into_iter().collect::<Tallies>() {
            say("the numbers of items are not those that there are".to_owned());
        }
        let next = self.next()?;
        if found.keys().next_back().is_some_and(|last| last.0 >= next.group) {
            say("the number of the next group is taken".to_owned());
        }
        let gaps = self.first("SELECT count(*), max(no) FROM log", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        if let Some((count, last)) = gaps
            && last.unwrap_or(0) != count
        {
            say(format!(
                "the log has {count} entries, and the last is number {}",
                last.unwrap_or(0)
            ));
        }
        Ok(problems)
    }
}

/// Milliseconds since 1970, as the clock has it.
fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_millis() as i64)
}

fn head_of(row: &Row) -> rusqlite::Result<Head> {
    let entry = |at: usize| row.get::<_, Option<i64>>(at).map(|no| no.map(EntryId));
    Ok(Head {
        no: EntryId(row.get(0)?),
        undo: entry(1)?,
        redo: entry(2)?,
    })
}

fn group_of(row: &Row, first: usize) -> rusqlite::Result<Group> {
    let number = |at: usize| row.get::<_, Option<i64>>(first + at);
    Ok(Group {
        name: row.get(first)?,
        named: row.get(first + 1)?,
        into: number(2)?.map(GroupId),
        ended: row.get(first + 3)?,
        sealed: number(4)?.map(EntryId),
        parent: number(5)?.map(GroupId),
        holds_groups: row.get(first + 6)?,
    })
}

/// A place as columns.
#[derive(Clone, Copy, Debug, Default)]
struct Cells {
    state: Option<i64>,
    grp: Option<i64>,
    probability: Option<f32>,
    said: Option<i64>,
    since: Option<i64>,
}

impl Cells {
    fn of(placed: Option<PlacedItem>) -> Self {
        let Some(PlacedItem { place, since }) = placed else {
            return Self::default();
        };
        let (state, grp) = match place {
            Place::In { group, .. } => (IN, Some(group)),
            Place::Waiting { guess, .. } => (WAITING, guess),
            Place::Noise => (NOISE, None),
        };
        Self {
            state: Some(state),
            grp: grp.map(|grp| grp.0),
            probability: place.probability(),
            said: Some(i64::from(place.said())),
            since: Some(since.0),
        }
    }

    fn read(row: &Row, first: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            state: row.get(first)?,
            grp: row.get(first + 1)?,
            probability: row.get(first + 2)?,
            said: row.get(first + 3)?,
            since: row.get(first + 4)?,
        })
    }

    /// The place; nothing when it makes no sense.
    fn placed(self) -> Option<Option<PlacedItem>> {
        let Some(state) = self.state else { return Some(None) };
        let probability = self.probability;
        let place = match (state, self.grp.map(GroupId)) {
            (IN, Some(group)) => Place::In {
                group,
                probability,
                said: self.said? != 0,
            },
            (WAITING, guess) => Place::Waiting { guess, probability },
            (NOISE, _) => Place::Noise,
            _ => return None,
        };
        let since = EntryId(self.since?);
        Some(Some(PlacedItem { place, since }))
    }
}

impl View for Store {
    type Error = Error;

    fn group(&self, id: GroupId) -> Result<Option<Group>> {
        self.first(
            "SELECT name, named, part_of, ended, sealed, parent, holds_groups FROM grp WHERE id = ?",
            [id.0],
            |row| group_of(row, 0),
        )
    }

    fn merged_into(&self, id: GroupId) -> Result<Vec<GroupId>> {
        self.rows("SELECT id FROM grp WHERE part_of = ? ORDER BY id", [id.0], |row| {
            row.get(0).map(GroupId)
        })
    }

    fn called(&self, name: &str) -> Result<Option<GroupId>> {
        self.first(
            "SELECT id FROM grp WHERE name = ? AND part_of IS NULL AND ended = 0 ORDER BY id LIMIT 1",
            [name],
            |row| row.get(0).map(GroupId),
        )
    }

    fn place(&self, item: ItemId) -> Result<Option<PlacedItem>> {
        let cells = self.first(
            "SELECT state, grp, probability, said, since FROM place WHERE item = ?",
            [item.0],
            |row| Cells::read(row, 0),
        )?;
        let wrong = || self.damaged(format!("the place of item #{item}"));
        cells.map_or(Ok(None), |cells| cells.placed().ok_or_else(wrong))
    }

    fn members(&self, group: GroupId) -> Result<Vec<ItemId>> {
        self.rows(
            "SELECT item FROM place WHERE state = ? AND grp = ? ORDER BY item",
            [IN, group.0],
            |row| row.get(0).map(ItemId),
        )
    }

    fn rejections(&self, item: ItemId) -> Result<Vec<GroupId>> {
        self.rows(
            "SELECT grp FROM rejection WHERE item = ? ORDER BY grp",
            [item.0],
            |row| row.get(0).map(GroupId),
        )
    }

    fn rejected_from(&self, group: GroupId) -> Result<Vec<ItemId>> {
        self.rows(
            "SELECT item FROM rejection WHERE grp = ? ORDER BY item",
            [group.0],
            |row| row.get(0).map(ItemId),
        )
    }
}

// Items and their features.
impl Store {
    /// Adds an item that is in no place yet.
    pub(crate) fn insert_item(
        &self,
        key: &Key,
        name: &str,
        path: Option<&Path>,
        scene: Option<i64>,
        features: &[f16],
    ) -> Result<ItemId> {
        self.write(
            "INSERT INTO item (key, name, path, scene) VALUES (?,?,?,?)",
            params![&key[..], name, path.map(path_bytes), scene],
        )?;
        let id = ItemId(self.db.last_insert_rowid());
        let data = to_bytes(features);
        self.write(
            "INSERT INTO feature VALUES (?,?,?)",
            params![id.0, checksum(id, &data), data],
        )?;
        Ok(id)
    }

    /// The item of a key, be it in a place or not.
    pub(crate) fn item_of_key(&self, key: &Key) -> Result<Option<ItemId>> {
        self.first("SELECT id FROM item WHERE key = ?", [&key[..]], |row| {
            row.get(0).map(ItemId)
        })
    }

    /// Notes where the file of an item is now.
    pub(crate) fn set_path(&self, item: ItemId, path: &Path) -> Result<()> {
        self.write(
            "UPDATE item SET path = ? WHERE id = ?",
            params![path_bytes(path), item.0],
        )
    }

    pub(crate) fn set_scene(&self, item: ItemId, scene: Option<i64>) -> Result<()> {
        self.write("UPDATE item SET scene = ? WHERE id = ?", params![scene, item.0])
    }

    /// The items of a name that are somewhere.
    pub(crate) fn items_called(&self, name: &str) -> Result<Vec<ItemId>> {
        self.rows(
            "SELECT id FROM item JOIN place ON item = id WHERE name = ? ORDER BY id",
            [name],
            |row| row.get(0).map(ItemId),
        )
    }

    /// The names that several items have.
    pub(crate) fn shared_names(&self) -> Result<BTreeSet<String>> {
        let names = self.rows("SELECT name FROM item GROUP BY name HAVING count(*) > 1", [], |row| {
            row.get(0)
        })?;
        Ok(names.into_iter().collect())
    }

    pub(crate) fn item(&self, id: ItemId) -> Result<Option<StoredItem>> {
        let sql = format!("{ITEM} LEFT JOIN place p ON p.item = i.id WHERE i.id = ?");
        let found = self.first(&sql, [id.0], stored_item)?;
        found.map(|item| self.sound(item)).transpose()
    }

    fn sound(&self, (mut item, cells): (StoredItem, Cells)) -> Result<StoredItem> {
        let wrong = || self.damaged(format!("the place of item #{}", item.id));
        item.place = cells.placed().ok_or_else(wrong)?;
        Ok(item)
    }

    /// Items after one of them, in the order of their numbers.
    pub(crate) fn items(&self, which: Which, after: ItemId, most: usize) -> Result<Vec<StoredItem>> {
        let (place, limit) = (" JOIN place p ON p.item = i.id", " ORDER BY i.id LIMIT ?");
        let found = match which {
            Which::All => self.rows(
                &format!("{ITEM}{place} WHERE i.id > ?{limit}"),
                [after.0, most as i64],
                stored_item,
            )?,
            Which::In(groups) | Which::Guessed(groups) => {
                let state = if matches!(which, Which::In(_)) { IN } else { WAITING };
                let mut found = Vec::new();
                for group in groups {
                    found.extend(self.rows(
                        &format!("{ITEM}{place} WHERE p.state = ? AND p.grp = ? AND i.id > ?{limit}"),
                        [state, group.0, after.0, most as i64],
                        stored_item,
                    )?);
                }
                found.sort_by_key(|(item, _)| item.id);
                found.truncate(most);
                found
            }
            Which::Waiting | Which::Noise => {
                let state = if which == Which::Waiting { WAITING } else { NOISE };
                self.rows(
                    &format!("{ITEM}{place} WHERE p.state = ? AND i.id > ?{limit}"),
                    [state, after.0, most as i64],
                    stored_item,
                )?
            }
        };
        found.into_iter().map(|item| self.sound(item)).collect()
    }

    /// The numbers of the items that have waited least, at most so many.
    pub(crate) fn newest_waiting(&self, most: usize) -> Result<Vec<ItemId>> {
        self.rows(
            "SELECT item FROM place WHERE state = ? ORDER BY item DESC LIMIT ?",
            [WAITING, most as i64],
            |row| row.get(0).map(ItemId),
        )
    }

    /// Items of which something is true, in an order, after one of them; each with what it is sorted by.
    pub(crate) fn select(
        &self,
        wanted: &Wanted,
        after: Option<(f64, ItemId)>,
        most: usize,
    ) -> Result<Vec<(f64, StoredItem)>> {
        let (sign, order) = match wanted.order {
            Order::Number => (None, "i.id"),
            Order::Surest => (Some("<"), "sure DESC, i.id"),
            Order::LeastSure => (Some(">"), "sure, i.id"),
        };
        let (condition, mut values) = wanted.condition();
        let mut text = format!(
            "SELECT i.id, i.name, i.path, i.scene, p.state, p.grp, p.probability, p.said, p.since, {SURE} AS sure
             FROM place p JOIN item i ON i.id = p.item WHERE {condition}"
        );
        if let Some((sure, id)) = after {
            match sign {
                None => text += " AND i.id > ?",
                Some(sign) => {
                    text += &format!(" AND ({SURE} {sign} ? OR ({SURE} = ? AND i.id > ?))");
                    values.extend([Value::Real(sure), Value::Real(sure)]);
                }
            }
            values.push(Value::Integer(id.0));
        }
        text += &format!(" ORDER BY {order} LIMIT ?");
        values.push(Value::Integer(most as i64));
        let mut statement = self.sql(self.db.prepare(&text))?;
        let found = self.sql(statement.query_map(rusqlite::params_from_iter(values), |row| {
            Ok((row.get::<_, f64>(9)?, stored_item(row)?))
        }))?;
        let found = self.sql(found.collect::<rusqlite::Result<Vec<_>>>())?;
        found
            .into_iter()
            .map(|(sure, item)| Ok((sure, self.sound(item)?)))
            .collect()
    }

    /// The numbers of all items of which something is true.
    pub(crate) fn select_numbers(&self, wanted: &Wanted) -> Result<Vec<ItemId>> {
        let (condition, values) = wanted.condition();
        let text = format!("SELECT p.item FROM place p JOIN item i ON i.id = p.item WHERE {condition} ORDER BY p.item");
        let mut statement = self.sql(self.db.prepare(&text))?;
        let found = self.sql(statement.query_map(rusqlite::params_from_iter(values), |row| row.get(0).map(ItemId)))?;
        self.sql(found.collect())
    }

    /// How many items there are of which something is true.
    pub(crate) fn count(&self, wanted: &Wanted) -> Result<u64> {
        let (condition, values) = wanted.condition();
        let item = match wanted.name.is_some() {
            true => "JOIN item i ON i.id = p.item",
            false => "",
        };
        let text = format!("SELECT count(*) FROM place p {item} WHERE {condition}");
        let count = self
            .db
            .query_row(&text, rusqlite::params_from_iter(values), |row| row.get::<_, i64>(0));
        Ok(self.sql(count)? as u64)
    }

    /// The features of some items, in their order.
    pub(crate) fn features(&self, items: &[ItemId], dim: usize) -> Result<Features> {
        let mut values = Vec::with_capacity(items.len() * dim);
        let mut statement = self.sql(self.db.prepare_cached("SELECT data FROM feature WHERE item = ?"))?;
        for item in items {
            let mut rows = self.sql(statement.query([item.0]))?;
            let row = self.sql(rows.next())?;
            let missing = || self.damaged(format!("item #{item} has no features"));
            let cell = self.sql(row.ok_or_else(missing)?.get_ref(0))?;
            let data = cell
                .as_blob()
                .map_err(|e| self.damaged(format!("the features of item #{item}: {e}")))?;
            self.read_row(*item, data, dim, &mut values)?;
        }
        Ok(Features::new(dim, values)?)
    }

    fn read_row(&self, item: ItemId, data: &[u8], dim: usize, values: &mut Vec<f32>) -> Result<()> {
        if data.len() != 2 * dim {
            return Err(self.damaged(format!(
                "the features of item #{item} are {} and not {dim}",
                data.len() / 2
            )));
        }
        let bits: Vec<u16> = data
            .as_chunks()
            .0
            .iter()
            .map(|&pair| u16::from_le_bytes(pair))
            .collect();
        let from = values.len();
        values.resize(from + dim, 0.0);
        bits.reinterpret_cast::<f16>().convert_to_f32_slice(&mut values[from..]);
        match values[from..].iter().all(|value| value.is_finite()) {
            true => Ok(()),
            false => Err(self.damaged(format!("the features of item #{item} are no numbers"))),
        }
    }

    /// Hands every item whose features are not those that were written to `say`.
    pub(crate) fn check_features(&self, dim: usize, mut say: impl FnMut(ItemId, String)) -> Result<u64> {
        let mut statement = self.sql(self.db.prepare("SELECT item, sum, data FROM feature ORDER BY item"))?;
        let mut rows = self.sql(statement.query([]))?;
        let mut count = 0;
        while let Some(row) = self.sql(rows.next())? {
            count += 1;
            let read =
                |row: &Row| -> rusqlite::Result<(i64, i64, Vec<u8>)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
            let (item, sum, data) = self.sql(read(row))?;
            let item = ItemId(item);
            if data.len() != 2 * dim {
                say(item, format!("has {} features and not {dim}", data.len() / 2));
            } else if checksum(item, &data) != sum {
                say(item, "has features that are not those that were written".to_owned());
            }
        }
        Ok(count)
    }

    /// Items without features, and features without an item.
    pub(crate) fn check_pairs(&self) -> Result<Vec<String>> {
        let without = self.rows(
            "SELECT id FROM item WHERE id NOT IN (SELECT item FROM feature) LIMIT 20",
            [],
            |row| row.get::<_, i64>(0).map(|item| format!("item #{item} has no features")),
        )?;
        let lost = self.rows(
            "SELECT item FROM place WHERE item NOT IN (SELECT id FROM item) LIMIT 20",
            [],
            |row| {
                row.get::<_, i64>(0)
                    .map(|item| format!("item #{item} is in a place and is not there"))
            },
        )?;
        Ok(without.into_iter().chain(lost).collect())
    }

    /// What the database itself finds wrong with its file.
    pub(crate) fn check_integrity(&self) -> Result<Vec<String>> {
        let found = self.rows("PRAGMA integrity_check(20)", [], |row| row.get::<_, String>(0))?;
        Ok(found.into_iter().filter(|line| line != "ok").collect())
    }

    /// Gives back what is no longer used.
    pub(crate) fn vacuum(&self) -> Result<()> {
        self.run("VACUUM")?;
        self.checkpoint()
    }

    /// Moves all that was committed into the one file.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        let checkpoint = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        self.sql(checkpoint)
    }

    /// Removes items that are in no place, but for the last, so that no number is used again.
    pub(crate) fn forget_absent(&self) -> Result<u64> {
        const ABSENT: &str = "NOT IN (SELECT item FROM place)";
        const LAST: &str = "(SELECT max(id) FROM item)";
        self.write(
            &format!("DELETE FROM feature WHERE item {ABSENT} AND item < {LAST}"),
            [],
        )?;
        self.write(&format!("DELETE FROM item WHERE id {ABSENT} AND id < {LAST}"), [])?;
        Ok(self.db.changes())
    }
}

// What is remembered.
impl Store {
    pub(crate) fn centres(&self) -> Result<Vec<StoredCentre>> {
        self.rows("SELECT grp, members, agreement, data FROM centre", [], |row| {
            let data: Vec<u8> = row.get(3)?;
            let values = data
                .as_chunks()
                .0
                .iter()
                .map(|&bytes| f32::from_le_bytes(bytes))
                .collect();
            Ok(StoredCentre {
                group: GroupId(row.get(0)?),
                members: row.get(1)?,
                agreement: row.get(2)?,
                centre: values,
            })
        })
    }

    pub(crate) fn set_centre(&self, group: GroupId, members: f64, agreement: f64, centre: &[f32]) -> Result<()> {
        let data: Vec<u8> = centre.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.write(
            "INSERT OR REPLACE INTO centre VALUES (?,?,?,?)",
            params![group.0, members, agreement, data],
        )
    }

    /// Forgets the centre of a group whose items have changed.
    pub(crate) fn forget_centre(&self, group: GroupId) -> Result<()> {
        self.write("DELETE FROM centre WHERE grp = ?", [group.0])
    }

    pub(crate) fn forget_centres(&self) -> Result<()> {
        self.write("DELETE FROM centre", [])
    }

    pub(crate) fn knowledge(&self) -> Result<Option<(f64, Vec<u8>)>> {
        self.first("SELECT familiar, calibration FROM knowledge", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    }

    pub(crate) fn set_familiar(&self, familiar: f64) -> Result<()> {
        self.write("UPDATE knowledge SET familiar = ?", [familiar])
    }

    pub(crate) fn set_knowledge(&self, familiar: f64, calibration: &[u8]) -> Result<()> {
        self.write(
            "INSERT OR REPLACE INTO knowledge VALUES (1,?,?)",
            params![familiar, calibration],
        )
    }
}

// Who may, and what was answered.
impl Store {
    pub(crate) fn tokens(&self) -> Result<Vec<StoredToken>> {
        self.rows(
            "SELECT id, name, role, hash, made, revoked FROM token ORDER BY id",
            [],
            |row| {
                Ok(StoredToken {
                    id: row.get(0)?,
                    name: row.get(1)?,
                    role: row.get(2)?,
                    hash: row.get(3)?,
                    made: row.get(4)?,
                    revoked: row.get(5)?,
                })
            },
        )
    }

    pub(crate) fn insert_token(&self, name: &str, role: &str, hash: &[u8]) -> Result<()> {
        self.write(
            "INSERT INTO token (name, role, hash, made) VALUES (?,?,?,?)",
            params![name, role, hash, now()],
        )
    }

    pub(crate) fn revoke_token(&self, id: i64) -> Result<()> {
        self.write("UPDATE token SET revoked = ? WHERE id = ?", [now(), id])
    }

    pub(crate) fn reply(&self, key: &[u8]) -> Result<Option<Reply>> {
        let text = "SELECT request, status, body FROM reply WHERE key = ?";
        self.first(text, [key], |row| {
            Ok(Reply {
                request: row.get(0)?,
                status: row.get(1)?,
                body: row.get(2)?,
            })
        })
    }

    /// Notes what was answered, and forgets what is older than some milliseconds.
    pub(crate) fn keep_reply(&self, key: &[u8], request: &[u8], status: u16, body: &[u8], kept: i64) -> Result<()> {
        let time = now();
        self.write("DELETE FROM reply WHERE time < ?", [time - kept])?;
        self.write(
            "INSERT OR REPLACE INTO reply VALUES (?,?,?,?,?)",
            params![key, request, time, status, body],
        )
    }

    /// Notes questions, of a group or an item each, with what that is called; those that were asked before are asked again.
    pub(crate) fn note_asked(&self, questions: &[(Option<ItemId>, Option<GroupId>, &str)]) -> Result<()> {
        // Whoever asks does not want to wait for who writes.
        self.sql(self.db.busy_timeout(SHORT_PATIENCE))?;
        let time = now();
        self.transaction(|store| {
            questions.iter().try_for_each(|(item, group, name)| {
                let numbers = (item.map_or(0, |item| item.0), group.map_or(0, |group| group.0));
                store.write(
                    "INSERT OR REPLACE INTO asked VALUES (?,?,?,?)",
                    params![numbers.0, numbers.1, name, time],
                )
            })
        })
    }

    /// What was asked, the last first, at most so many: when, about which item or group, and what that was called.
    pub(crate) fn asked(&self, most: usize) -> Result<Vec<StoredQuestion>> {
        // A database of an earlier version that is only read knows of none.
        let there = self.rows("SELECT 1 FROM sqlite_master WHERE name = 'asked'", [], |_| Ok(()))?;
        if there.is_empty() {
            return Ok(Vec::new());
        }
        self.rows(
            "SELECT item, grp, name, time FROM asked ORDER BY time DESC, grp, item LIMIT ?",
            [most as i64],
            |row| {
                let number = |at: usize| row.get::<_, i64>(at).map(|number| (number != 0).then_some(number));
                Ok(StoredQuestion {
                    item: number(0)?.map(ItemId),
                    group: number(1)?.map(GroupId),
                    name: row.get(2)?,
                    time: row.get(3)?,
                })
            },
        )
    }
}

/// A question as it is stored.
pub(crate) struct StoredQuestion {
    pub(crate) item: Option<ItemId>,
    pub(crate) group: Option<GroupId>,
    pub(crate) name: String,
    pub(crate) time: i64,
}

/// A token as it is stored.
pub(crate) struct StoredToken {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) hash: Vec<u8>,
    pub(crate) made: i64,
    pub(crate) revoked: Option<i64>,
}

/// The columns of an item.
const ITEM: &str = "SELECT i.id, i.name, i.path, i.scene, p.state, p.grp, p.probability, p.said, p.since FROM item i";

fn stored_item(row: &Row) -> rusqlite::Result<(StoredItem, Cells)> {
    let item = StoredItem {
        id: ItemId(row.get(0)?),
        name: row.get(1)?,
        path: row.get::<_, Option<Vec<u8>>>(2)?.map(path_of),
        scene: row.get(3)?,
        place: None,
    };
    Ok((item, Cells::read(row, 4)?))
}

fn to_bytes(features: &[f16]) -> Vec<u8> {
    features.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Of the features of an item, so that bits that fell over are found.
fn checksum(item: ItemId, data: &[u8]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&item.0.to_le_bytes());
    hasher.update(data);
    let bytes = hasher.finalize();
    i64::from(u32::from_le_bytes(*bytes.as_bytes().first_chunk().expect("32 bytes")))
}

/// A path as bytes: on Unix it need not be text.
fn path_bytes(path: &Path) -> Vec<u8> {
    #[cfg(unix)]
    return std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec();
    #[cfg(not(unix))]
    return path.to_string_lossy().into_owned().into_bytes();
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    #[cfg(unix)]
    return PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes));
    #[cfg(not(unix))]
    return PathBuf::from(String::from_utf8_lossy(&bytes).into_owned());
}

/// Reads what can still be read of a damaged database, table by table, row by row: `each` gets the item and, where they are
/// there, the names of its group.
pub(crate) fn salvage(store: &Store) -> (Vec<SalvagedItem>, u64) {
    let mut lost = 0;
    let most = [
        "SELECT max(id) FROM item",
        "SELECT max(item) FROM place",
        "SELECT max(item) FROM feature",
    ]
    .into_iter()
    .filter_map(|text| {
        store
            .db
            .query_row(text, [], |row| row.get::<_, Option<i64>>(0))
            .ok()
            .flatten()
    })
    .max()
    .unwrap_or(0);
    let text = |value: Value| match value {
        Value::Text(text) => Some(text),
        Value::Blob(bytes) => String::from_utf8(bytes).ok(),
        _ => None,
    };
    let mut found = Vec::new();
    for id in 1..=most {
        let cell = |sql: &str| {
            store
                .db
                .prepare_cached(sql)
                .and_then(|mut s| s.query_row([id], |row| row.get::<_, Value>(0)))
        };
        let name = cell("SELECT name FROM item WHERE id = ?");
        let path = cell("SELECT path FROM item WHERE id = ?").ok();
        let grp = cell("SELECT grp FROM place WHERE item = ?");
        let state = cell("SELECT state FROM place WHERE item = ?");
        let data = cell("SELECT data FROM feature WHERE item = ?").ok();
        match (&name, &state) {
            (Err(rusqlite::Error::QueryReturnedNoRows), Err(rusqlite::Error::QueryReturnedNoRows)) => continue,
            // Undone: in no place.
            (Ok(_), Err(rusqlite::Error::QueryReturnedNoRows)) => continue,
            (Err(_), _) | (_, Err(_)) => lost += 1,
            _ => {}
        }
        let (grp, state) = (integer(grp), integer(state));
        found.push(SalvagedItem {
            id: ItemId(id),
            name: name.ok().and_then(text),
            path: path.and_then(|value| match value {
                Value::Blob(bytes) => Some(path_of(bytes)),
                _ => None,
            }),
            state,
            group: grp.map(GroupId),
            features: data.and_then(|value| match value {
                Value::Blob(bytes) => Some(
                    bytes
                        .as_chunks()
                        .0
                        .iter()
                        .map(|&pair| f16::from_le_bytes(pair))
                        .collect(),
                ),
                _ => None,
            }),
        });
    }
    (found, lost)
}

fn integer(value: rusqlite::Result<Value>) -> Option<i64> {
    match value {
        Ok(Value::Integer(value)) => Some(value),
        _ => None,
    }
}

/// What is left of an item.
pub(crate) struct SalvagedItem {
    pub(crate) id: ItemId,
    pub(crate) name: Option<String>,
    pub(crate) path: Option<PathBuf>,
    state: Option<i64>,
    pub(crate) group: Option<GroupId>,
    pub(crate) features: Option<Vec<f16>>,
}

impl SalvagedItem {
    /// Whether it is known to be in its group, and not only guessed.
    pub(crate) fn is_in_group(&self) -> bool {
        self.state == Some(IN)
    }

    pub(crate) fn is_noise(&self) -> bool {
        self.state == Some(NOISE)
    }
}

/// The tally of all that wait, of noise, and of a group's own items.
pub(crate) fn tally_of(tallies: &Tallies, which: Which) -> Tally {
    let sum = |state: i64, groups: &[GroupId]| {
        let mut sum = Tally::default();
        for group in groups {
            let tally = tallies.get(&(state, group.0)).copied().unwrap_or_default();
            sum.items += tally.items;
            sum.said += tally.said;
        }
        sum
    };
    let all = |wanted: Option<i64>| {
        let mut sum = Tally::default();
        for ((state, _), tally) in tallies {
            if wanted.is_none_or(|wanted| wanted == *state) {
                sum.items += tally.items;
                sum.said += tally.said;
            }
        }
        sum
    };
    match which {
        Which::All => all(None),
        Which::In(groups) => sum(IN, groups),
        Which::Guessed(groups) => sum(WAITING, groups),
        Which::Waiting => all(Some(WAITING)),
        Which::Noise => all(Some(NOISE)),
    }
}
