//! Why the program ends without success.

use std::borrow::Cow;
use std::fmt;
use std::io;

use anstyle::{AnsiColor, Style};
use genus::training::TrainingError;
use genus::{Error, Export, Link, Purpose};
use genus_core::episode::EpisodeError;
use genus_core::methods::MethodError;
use genus_core::{CalibrationError, DiscoverError, TaskError};
use genus_data::{DataError, ExportError, SortError};
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
    /// The user stopped it, and it is in good order: exit code 130.
    Interrupted(String),
    /// Whoever read the output has gone; that is no failure.
    ReaderLeft,
}

impl Failure {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Failure::Failed(message.into())
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Failed(_) => 1,
            Failure::Interrupted(_) => 130,
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

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        match &error {
            DataError::Encoders { .. } => Failure::failed(format!(
                "{error}; embed one of them again with the encoder (and the --precision) of the other"
            )),
            DataError::NoTaxonomy { .. } => Failure::failed(format!(
                "{error}; `genus discover … --out DIR` makes the folder that belongs here"
            )),
            _ => match error {
                DataError::File(error) => error.into(),
                error => Failure::failed(error.to_string()),
            },
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderLeft,
            _ => Failure::failed(format!("cannot write to the standard output: {error}")),
        }
    }
}

impl From<MethodError> for Failure {
    fn from(error: MethodError) -> Self {
        Failure::Usage(format!("{error}; `genus methods` shows all of them"))
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        Failure::Usage(format!("{error}; `genus encoders list` shows all of them"))
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
            Error::NoEffect { .. } => Failure::Usage(format!("{error}; leave it out: only `genus bench` learns so")),
            Error::CentreNorm { method } => Failure::Usage(format!(
                "--centre-norm authors-columns is not for the method {method}, which judges by cosines; choose another as in \
                 --method shc"
            )),
            Error::NoUseForCalibration { method } => Failure::Usage(format!(
                "the method {method} has no use for --calibration; leave it out, or use --method calibrated"
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
            Error::UnlabelledExample { items, id } => Failure::failed(format!(
                "{}: item \"{id}\" has no label, and every row of --support needs one; if the file also holds the pile, run \
                 `genus discover {0}`; {WITHOUT_EXAMPLES}",
                items.display()
            )),
            Error::Unreadable { .. } => mended(" (--strict)"),
            Error::NoWeights { .. } => Failure::Usage(format!("{error}; name a file with --weights")),
            Error::WeightsGone { .. } => mended("; put it back, or say where it is with --weights or --encoder"),
            Error::UnknownEncoder { .. } => {
                mended("; name it with --encoder, and the file of its weights with --weights")
            }
            Error::NoCacheFolder => mended(", or use --no-cache"),
            Error::Folder { purpose, .. } => mended(match purpose {
                Purpose::Results => "; name another with --out",
                Purpose::Growth => "; name another with --grow",
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
                    link: Some(Link::Sym), ..
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
const ANOTHER_FOLDER: &str = "; name another folder with --sort-into";
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
                    "{error}; go on with it: genus train --resume {}",
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
