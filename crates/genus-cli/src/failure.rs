//! Why the program ends without success.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use genus::training::TrainingError;
use genus::{Error, Export, LinkKind, Purpose};
use genus_core::episode::EpisodeError;
use genus_core::methods::MethodError;
use genus_core::{CalibrationError, DiscoverError, TaskError};
use genus_data::{ColumnProblem, ColumnRole, DataError, ExportError, SortError};
use genus_files::FileError;
use genus_lab::LabError;
use genus_vision::{HubError, IsaError, LoadError, SpecError};

/// Why the program ends without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command was not meant like this: exit code 2.
    Usage(String),
    /// The work could not be done: exit code 1.
    Failed(String),
    /// The user stopped it, and it is in good order: exit code 130, or 143 for SIGTERM.
    Interrupted(String),
    /// Whoever read the output has gone; that is no failure.
    ReaderLeft,
}

impl Failure {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Failure::Failed(message.into())
    }

    /// What is wrong, for a program.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Failure::Usage(message) | Failure::Failed(message) | Failure::Interrupted(message) => Some(message),
            Failure::ReaderLeft => None,
        }
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Failed(_) => 1,
            Failure::Interrupted(_) => crate::signals::code(),
            Failure::ReaderLeft => 0,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let red = Style::new().fg_color(Some(AnsiColor::Red.into())).bold();
        match self {
            Failure::Usage(message) | Failure::Failed(message) => {
                write!(f, "{red}error:{red:#} {}", printable(&shortened(message)))
            }
            Failure::Interrupted(message) => f.write_str(&printable(message)),
            Failure::ReaderLeft => Ok(()),
        }
    }
}

/// The most characters of a message: a file may hold any number of names that it lists.
const MOST_SAID: usize = 4000;

/// A message without its middle where it is too long to be read: what is wrong comes first, the way out last.
fn shortened(message: &str) -> Cow<'_, str> {
    let length = message.chars().count();
    if length <= MOST_SAID {
        return message.into();
    }
    let start: String = message.chars().take(MOST_SAID / 2).collect();
    let end: String = message.chars().skip(length - MOST_SAID / 2).collect();
    format!("{start} … {end}").into()
}

/// A text for the terminal, which obeys control characters: names come from files.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && c != '\n';
    match text.contains(obeyed) {
        false => text.into(),
        true => text
            .chars()
            .map(|c| if obeyed(c) { char::REPLACEMENT_CHARACTER } else { c })
            .collect(),
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        match &error {
            FileError::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => Failure::ReaderLeft,
            _ => Failure::failed(error.to_string()),
        }
    }
}

/// Where a taxonomy comes from.
const MAKES_TAXONOMY: &str = "`genus discover … --out DIR` makes the folder that belongs here";

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        match &error {
            DataError::Columns { path, problem } => of_columns(&error, path, problem),
            DataError::Read { path, source } if source.kind() == io::ErrorKind::NotFound => not_found(path),
            DataError::UnknownFormat { path } => Failure::failed(format!("{error}{}", other_format(path))),
            DataError::Encoders { .. } => Failure::failed(format!(
                "{error}; embed one of them again with the encoder (and the --precision) of the other"
            )),
            DataError::NoTaxonomy { path } if path.parent().is_some_and(|folder| !folder.exists()) => {
                match not_found(path.parent().unwrap_or(path)) {
                    Failure::Failed(message) if !message.ends_with('?') => {
                        Failure::failed(format!("{message}; {MAKES_TAXONOMY}"))
                    }
                    suggestion => suggestion,
                }
            }
            DataError::NoTaxonomy { .. } => Failure::failed(format!("{error}; {MAKES_TAXONOMY}")),
            _ => match error {
                DataError::File(error) => error.into(),
                error => Failure::failed(error.to_string()),
            },
        }
    }
}

/// How a file of another kind becomes one of these.
fn other_format(path: &Path) -> String {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "json" => format!(
            "; a list in .json becomes lines with jq -c '.[]' {0} > {0}l",
            path.display()
        ),
        "xls" | "xlsx" | "ods" => "; save the sheet as .csv".to_owned(),
        "pkl" | "pickle" | "pt" | "pth" | "h5" | "hdf5" | "rds" | "mat" => {
            "; save it as .parquet or .npz from the program that made it".to_owned()
        }
        _ => "; --input FORMAT says which it is, whatever its name".to_owned(),
    }
}

/// What errors call standard input.
const STANDARD_INPUT: &str = "the standard input";

/// Which flag says which columns are what.
fn of_columns(error: &DataError, path: &Path, problem: &ColumnProblem) -> Failure {
    let flag = |role: &ColumnRole| match role {
        ColumnRole::Id => "--id COLUMN",
        ColumnRole::Label => "--label COLUMN",
        ColumnRole::Features => "--features A,B,…, or --features 'f*' for all columns that begin so",
    };
    Failure::failed(match problem {
        ColumnProblem::Missing { role, .. } | ColumnProblem::Ambiguous { role, .. } => {
            format!("{error} ({})", flag(role))
        }
        ColumnProblem::NoFeatures { .. } => format!("{error} ({})", flag(&ColumnRole::Features)),
        ColumnProblem::Rows => format!("{error}; say which format they have, as in --input csv"),
        ColumnProblem::Texts { .. } if path == Path::new(STANDARD_INPUT) => {
            format!("{error}; if they are a table, say its format, as in --input jsonl")
        }
        ColumnProblem::Texts { column } => format!(
            "{error}. For example, after pip install sentence-transformers pandas pyarrow:\n\n{}",
            embedding(path, column.as_deref())
        ),
        _ => error.to_string(),
    })
}

/// What stands between the names in the first line of a file.
fn delimiter(path: &Path) -> char {
    /// Bytes that are looked at.
    const START: u64 = 1 << 16;
    let mut start = Vec::new();
    // What cannot be read has commas.
    let _ = fs::File::open(path).and_then(|file| file.take(START).read_to_end(&mut start));
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let count = |delimiter: char| line.iter().filter(|&&byte| char::from(byte) == delimiter).count();
    // Of equal counts the last.
    [';', '\t', ',']
        .into_iter()
        .max_by_key(|&delimiter| count(delimiter))
        .unwrap_or(',')
}

/// The lines of Python that make embeddings of texts.
fn embedding(path: &Path, column: Option<&str>) -> String {
    let ending = |path: &Path| {
        path.extension()
            .unwrap_or_default()
            .to_string_lossy()
            .to_ascii_lowercase()
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    // pandas unpacks by itself.
    let format = match ending(path) {
        packed if packed == "gz" => ending(Path::new(&*name)),
        format => format,
    };
    let table = path.with_file_name(format!("{}.parquet", name.split('.').next().unwrap_or_default()));
    let text = column.unwrap_or("text");
    let read = match (column, format.as_str()) {
        (Some(_), "jsonl" | "ndjson") => format!("pd.read_json({path:?}, lines=True)"),
        (Some(_), "parquet") => format!("pd.read_parquet({path:?})"),
        (Some(_), "feather" | "arrow") => format!("pd.read_feather({path:?})"),
        (Some(_), "tsv") => format!("pd.read_csv({path:?}, sep=\"\\t\")"),
        (Some(_), _) => match delimiter(path) {
            ',' => format!("pd.read_csv({path:?})"),
            other => format!("pd.read_csv({path:?}, sep={other:?})"),
        },
        (None, _) if path.is_dir() => format!(
            "pd.DataFrame([(str(f), f.read_text()) for f in pathlib.Path({path:?}).rglob(\"*.txt\")], columns=[\"id\", \"text\"])"
        ),
        (None, _) => format!("pd.DataFrame({{\"text\": open({path:?}).read().splitlines()}})"),
    };
    let import = if path.is_dir() { "import pathlib, " } else { "import " };
    format!(
        "  {import}pandas as pd; from sentence_transformers import SentenceTransformer\n  \
         table = {read}\n  \
         table.assign(embedding=list(SentenceTransformer(\"all-MiniLM-L6-v2\").encode(table[{text:?}].tolist()))).to_parquet({table:?})\n\n\
         Then sort {}, and show its texts with --text {text}",
        table.display()
    )
}

/// A path that is not there, with the nearest that is.
fn not_found(path: &Path) -> Failure {
    // The first folder on the way that is missing.
    let mut missing = path;
    while let Some(above) = missing.parent().filter(|above| !above.as_os_str().is_empty())
        && !above.exists()
    {
        missing = above;
    }
    let nearest = nearest_to(missing);
    let is_folder = missing != path || nearest.as_deref().is_some_and(Path::is_dir) || path.extension().is_none();
    let what = if is_folder { "folder" } else { "file" };
    let nearest = nearest.map_or(String::new(), |nearest| {
        let below = path.strip_prefix(missing).unwrap_or(Path::new(""));
        // Joining nothing would add a slash.
        let meant = if missing == path { nearest } else { nearest.join(below) };
        format!("; did you mean {}?", meant.display())
    });
    Failure::failed(format!("there is no {what} {}{nearest}", missing.display()))
}

/// The file or folder beside a missing one that is called most like it.
fn nearest_to(missing: &Path) -> Option<PathBuf> {
    let name = missing.file_name()?.to_str()?;
    let folder = missing.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?.flatten();
    let names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let nearest = genus_data::nearest(name, names.iter().map(String::as_str))?;
    Some(missing.with_file_name(nearest))
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderLeft,
            _ => Failure::failed(format!("cannot write to the standard output: {error}")),
        }
    }
}

/// What is wrong, and what helps; a question needs no further mark.
fn joined(problem: &str, way_out: &str) -> String {
    match problem.ends_with('?') {
        true => format!("{problem} {way_out}"),
        false => format!("{problem}; {way_out}"),
    }
}

impl From<MethodError> for Failure {
    fn from(error: MethodError) -> Self {
        Failure::Usage(joined(&error.to_string(), "`genus methods` shows all of them"))
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        Failure::Usage(joined(&error.to_string(), "`genus encoders list` shows all of them"))
    }
}

impl From<IsaError> for Failure {
    fn from(error: IsaError) -> Self {
        Failure::Usage(error.to_string())
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Failure::failed(error.to_string())
    }
}

/// A collection says what is wrong; here it is said which command mends it.
impl From<genus_collection::Error> for Failure {
    fn from(error: genus_collection::Error) -> Self {
        use genus_collection::{Error, Refusal};
        let mended = |way_out: &str| Failure::failed(format!("{error}{way_out}"));
        match error {
            Error::Genus(error) => (*error).into(),
            Error::Data(error) => (*error).into(),
            Error::File(error) => error.into(),
            Error::NoCollection { .. } => mended("; `genus init` makes one"),
            Error::Exists { .. } => mended("; `genus add` adds items to it"),
            Error::FileOutside { .. } => mended(". Allow such files with --allow-outside"),
            Error::Damaged { ref path, .. } => {
                let folder = path.parent().unwrap_or(path);
                let way_out = format!(
                    "; `genus export {} --salvage -o DIR` saves what can be saved",
                    folder.display()
                );
                mended(&way_out)
            }
            Error::Refused(Refusal::TwoNames { .. }) => mended(" with --into"),
            _ => mended(""),
        }
    }
}

/// The pipeline says what is wrong; here it is said which flag or command mends it.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mended = |way_out: &str| Failure::failed(format!("{error}{way_out}"));
        match &error {
            Error::Spec(error) => error.clone().into(),
            Error::Isa(error) => error.clone().into(),
            Error::Method(error) => error.clone().into(),
            Error::Discover(source) => mended(way_out(source)),
            Error::Task(TaskError::ZeroPrototype { .. }) => mended("; check its examples"),
            Error::NoEffect { .. } => Failure::Usage(format!(
                "{error}; leave it out; only `genus bench` learns from base classes here"
            )),
            Error::CentreNorm { method } => Failure::Usage(format!(
                "--centre-norm authors-columns is not for the method {method}, which uses cosine similarity; choose another as in \
                 --method shc"
            )),
            Error::NoUseForCalibration { method } => Failure::Usage(format!(
                "the method {method} does not use --calibration; leave it out, or use --method calibrated"
            )),
            Error::CalibrationEncoder { .. } | Error::CalibrationDim { .. } => mended(" (`genus calibrate`)"),
            Error::CalibratedAlready { .. } => {
                mended("; leave out --calibration, or run `genus discover` again with it")
            }
            Error::CannotGrow { source } => {
                Failure::failed(format!("--grow: {source}, or give one with --calibration"))
            }
            Error::CannotCalibrate { source, .. } => mended(match source {
                CalibrationError::TooFewClasses { .. } => {
                    "; label items of more classes, or discover without a calibration: the examples then say how far items of \
                     a class lie apart"
                }
                CalibrationError::NoSpread => "; take different items of each class",
                _ => "",
            }),
            Error::NoBaseClasses { .. } => mended(", or leave out --split to learn from all labelled classes"),
            Error::NoExamples { .. } => mended(&format!("; {WITHOUT_EXAMPLES}")),
            Error::AllLabelled { odd, .. } => mended(&match odd {
                Some(word) => format!(", or say that \"{word}\" means that there is none: --unlabelled '{word}'"),
                None => ", or name words that mean that there is none with --unlabelled WORD".to_owned(),
            }),
            Error::UnlabelledExample { items, id } => Failure::failed(format!(
                "{}: item \"{id}\" has no label, and every row of --support needs one; if the file also holds the pile, run \
                 `genus discover {0}`; {WITHOUT_EXAMPLES}",
                items.display()
            )),
            Error::Unreadable { .. } => mended(" (--strict)"),
            Error::NoWeights { .. } => Failure::Usage(format!("{error}; name a file with --weights")),
            Error::WeightsGone { .. } => mended("; restore it, or give its path with --weights or --encoder"),
            Error::UnknownEncoder { .. } => mended("; name it with --encoder, and its weights with --weights"),
            Error::NoCacheFolder => mended(", or use --no-cache"),
            Error::Folder { purpose, .. } => mended(match purpose {
                Purpose::Results => "; choose another with --out",
                Purpose::Growth => "; choose another with --grow",
                Purpose::Collection => "; choose another for the collection",
            }),
            Error::ExportNeedsFolder { export } => Failure::Usage(format!(
                "--export {export} needs {}",
                match export {
                    Export::ImageFolder => "--sort-into DIR, whose images it describes",
                    _ => "--out DIR, where it is written",
                }
            )),
            Error::SortIntoPile { .. } => Failure::Usage(format!("--sort-into {error}; name a folder elsewhere")),
            Error::FileOutside { .. } => mended(". Allow such files with --allow-outside"),
            Error::NoFile { sorting, .. } => {
                let option = if *sorting { "--sort-into" } else { "--export" };
                Failure::failed(format!("{option} needs the files of the items, but {error}"))
            }
            Error::Hub(HubError::Unavailable { .. }) => mended(" or pass --weights PATH"),
            Error::Hub(HubError::Answer { .. }) => {
                mended(", or download the file in another way and pass --weights PATH")
            }
            Error::Sort(source) => mended(match source {
                SortError::Taken { .. } | SortError::Make { link: None, .. } => ANOTHER_FOLDER,
                SortError::Elsewhere { .. } => "; name a new folder with --sort-into, or remove the old one",
                SortError::Make {
                    link: Some(LinkKind::Sym),
                    ..
                } => "; use --link copy",
                SortError::Make { .. } | SortError::OtherDisk { .. } => "; use --link copy or --link sym",
                _ => "",
            }),
            Error::Export(ExportError::NotText { .. }) => {
                mended("; rename the file, or use --sort-into, whose links have names that are")
            }
            Error::Export(ExportError::Taken { .. }) => mended(ANOTHER_FOLDER),
            _ => match error {
                Error::Data(error) | Error::Export(ExportError::Data(error)) => error.into(),
                Error::File(error) => error.into(),
                Error::Load(error) => error.into(),
                Error::Training(error) => error.into(),
                other => Failure::failed(other.to_string()),
            },
        }
    }
}

/// The way out where something is in the way of sorted files.
const ANOTHER_FOLDER: &str = "; choose another folder with --sort-into";
/// The way out where examples are no examples.
const WITHOUT_EXAMPLES: &str = "to sort without examples, leave out --support";

impl From<TrainingError> for Failure {
    fn from(error: TrainingError) -> Self {
        let way_out = match &error {
            TrainingError::Spec(error) => return error.clone().into(),
            TrainingError::Setting { .. } => return Failure::Usage(error.to_string()),
            TrainingError::Episode { .. } => {
                "; ask for smaller episodes (--way, --shot, --new, --query), or leave small classes out with --short-classes skip"
            }
            TrainingError::AfterHoldingOut { .. } => "; hold out fewer with --validation-classes",
            TrainingError::TooFewImages { .. } => "; ask for fewer with --batch",
            TrainingError::Validation { .. } => {
                "; hold out more classes with --validation-classes, or none with --validation-classes 0"
            }
            TrainingError::NotFinite { .. } => {
                ". Begin another run with a lower learning rate (--lr), or look for a broken image"
            }
            TrainingError::OtherSettings { .. } => "; choose another folder with --out",
            TrainingError::Begun { folder } => {
                return Failure::failed(format!(
                    "{error}; resume it with: genus train --resume {}",
                    folder.display()
                ));
            }
            TrainingError::Unfinished { folder } => {
                return Failure::failed(format!(
                    "{error}; finish it with: genus train --resume {}",
                    folder.display()
                ));
            }
            _ => "",
        };
        Failure::failed(format!("{error}{way_out}"))
    }
}

fn way_out(error: &DiscoverError) -> &'static str {
    match error {
        DiscoverError::TooFewClasses { .. } => {
            "; use examples of more classes, or set the limit yourself with the method shc:min-similarity=0.6"
        }
        DiscoverError::TooLarge { .. } => " with --subset 5000",
        DiscoverError::TooManyCategories { .. } => "; ask for fewer",
        DiscoverError::TooFewCategories { .. } => "; ask for more",
        _ => "",
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Method(error) => error.into(),
            LabError::Pile { .. } => Failure::Usage(error.to_string()),
            LabError::Episode { ref source, tail, .. } => {
                let way_out = match source {
                    EpisodeError::TooFewItems { .. } if tail => {
                        "; let the tail end earlier (--tail LOW-HIGH), ask for fewer examples, or leave such classes out with \
                         --short-classes skip"
                    }
                    EpisodeError::TooFewItems { .. } => {
                        "; ask for fewer queries or examples, or leave such classes out with --short-classes skip"
                    }
                    EpisodeError::TooFewClasses { .. } => "; ask for fewer known or new classes",
                    EpisodeError::TooFewForOutliers { .. } => {
                        "; ask for fewer outliers, or for fewer known or new classes"
                    }
                    _ => "",
                };
                Failure::failed(format!("{error}{way_out}"))
            }
            LabError::NoBaseClasses { .. } => {
                Failure::failed(format!("{error}; name base classes in a split (--split)"))
            }
            LabError::NoImages { .. } => Failure::failed(format!("{error}; name them with --images or --data")),
            LabError::Data(error) => error.into(),
            LabError::File(error) => error.into(),
            LabError::Pipeline(error) => (*error).into(),
            LabError::NoHead { .. } => Failure::failed(format!("{error} (`genus train --objective ocd`)")),
            LabError::Discover { ref source, .. } => Failure::failed(format!("{error}{}", way_out(source))),
            other => Failure::failed(other.to_string()),
        }
    }
}
