//! Why the program ends without success.

use std::borrow::Cow;
use std::fmt;
use std::io;

use anstyle::{AnsiColor, Style};
use genus_core::methods::MethodError;
use genus_core::{DiscoverError, TaskError};
use genus_data::{DataError, ExportError, SortError};
use genus_lab::training::TrainingError;
use genus_lab::{BASELINES, LabError};
use genus_vision::{EncodeError, HubError, IsaError, LoadError, SpecError};

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

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        match &error {
            DataError::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => Failure::ReaderLeft,
            _ => Failure::failed(error.to_string()),
        }
    }
}

impl From<SortError> for Failure {
    fn from(error: SortError) -> Self {
        Failure::failed(error.to_string())
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        Failure::failed(error.to_string())
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

impl From<HubError> for Failure {
    fn from(error: HubError) -> Self {
        Failure::failed(error.to_string())
    }
}

impl From<EncodeError> for Failure {
    fn from(error: EncodeError) -> Self {
        Failure::failed(error.to_string())
    }
}

impl From<TrainingError> for Failure {
    fn from(error: TrainingError) -> Self {
        match error {
            TrainingError::Spec(error) => error.into(),
            TrainingError::Setting { .. } => Failure::Usage(error.to_string()),
            other => Failure::failed(other.to_string()),
        }
    }
}

impl From<DiscoverError> for Failure {
    fn from(error: DiscoverError) -> Self {
        Failure::failed(format!("{error}{}", way_out(&error)))
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

impl From<TaskError> for Failure {
    fn from(error: TaskError) -> Self {
        Failure::failed(error.to_string())
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Method(MethodError::Unknown { .. }) => {
                let names: Vec<_> = BASELINES.iter().map(|baseline| baseline.name).collect();
                Failure::Usage(format!(
                    "{error}, and in a bench {}; `genus methods` shows all of them",
                    names.join(", ")
                ))
            }
            LabError::Method(error) => error.into(),
            LabError::Pile { .. } => Failure::Usage(error.to_string()),
            LabError::Discover { ref source, .. } => Failure::failed(format!("{error}{}", way_out(source))),
            other => Failure::failed(other.to_string()),
        }
    }
}
