//! Why a bulk job cannot go on.

use std::io;

use genus_data::DataError;
use genus_files::FileError;
use thiserror::Error;

/// Why a bulk job cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BulkError {
    /// The pipeline cannot do its part.
    #[error(transparent)]
    Pipeline(Box<genus::Error>),
    /// A file cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Something cannot be read from where it is.
    #[error("cannot read {name}: {source}")]
    Read {
        /// What it is called.
        name: String,
        /// What the system or the store said.
        source: io::Error,
    },
    /// Something cannot be written where it should be.
    #[error("cannot write {name}: {source}")]
    Write {
        /// What it is called.
        name: String,
        /// What the system or the store said.
        source: io::Error,
    },
    /// Nothing fits a pattern.
    #[error("there is no file \"{pattern}\"")]
    NoInputs {
        /// The pattern.
        pattern: String,
    },
    /// A pattern that makes no sense.
    #[error("\"{pattern}\" is no pattern of names: {problem}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no job in this place.
    #[error("there is no job in {place}: no manifest.json")]
    NoJob {
        /// The place.
        place: String,
    },
    /// A file of a job that does not hold what it should.
    #[error("{name}: {problem}")]
    Malformed {
        /// The file.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The output place has another job.
    #[error("{place} has a job of another plan; every plan has an output place of its own")]
    Taken {
        /// The place.
        place: String,
    },
    /// An input is not what it was when the job was planned.
    #[error("shard {shard} is refused: {input} has changed since the plan ({problem})")]
    Changed {
        /// The shard.
        shard: usize,
        /// The input.
        input: String,
        /// What has changed.
        problem: String,
    },
    /// A shard that the job does not have.
    #[error("there is no shard {shard}; the job has the shards 0 to {last}")]
    NoShard {
        /// Which.
        shard: usize,
        /// The last that there is.
        last: usize,
    },
    /// Shards are missing where all are needed.
    #[error("{} of {shards} shards of the round {round} are not done: {}", missing.len(), ranges(missing))]
    Missing {
        /// The round.
        round: String,
        /// The shards that are not done, in ascending order.
        missing: Vec<usize>,
        /// How many there are.
        shards: usize,
    },
    /// A round that cannot begin as the one before is not reduced.
    #[error("the round {round} cannot begin: the round before is not reduced")]
    NotBegun {
        /// The round.
        round: String,
    },
    /// Features of another length than the job is for.
    #[error("{input} has {found} features an item, and the job is for {expected}")]
    Width {
        /// The input.
        input: String,
        /// Those of the job.
        expected: usize,
        /// Those of the input.
        found: usize,
    },
    /// Examples that are no table.
    #[error("the examples must be a feature file, and {name} is none; `genus embed` makes one of images")]
    Examples {
        /// What was named.
        name: String,
    },
    /// A place in an object store, which this build knows nothing of.
    #[error("{name} is in an object store, and this program was built without the feature `object-store`")]
    NoObjectStore {
        /// What was named.
        name: String,
    },
    /// An object store that is not to be reached as named.
    #[error("{name}: {problem}")]
    Store {
        /// What was named.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

impl From<genus::Error> for BulkError {
    fn from(error: genus::Error) -> Self {
        BulkError::Pipeline(Box::new(error))
    }
}

/// Numbers in ascending order as ranges: `0-3, 7`.
pub(crate) fn ranges(numbers: &[usize]) -> String {
    /// More than this many ranges are too many for a message.
    const LISTED: usize = 20;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let text = |&(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let listed: Vec<String> = runs.iter().take(LISTED).map(text).collect();
    match runs.len() > LISTED {
        true => format!("{}, …", listed.join(", ")),
        false => listed.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn numbers_are_said_as_ranges() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
        let odd: Vec<usize> = (0..100).map(|at| 2 * at + 1).collect();
        assert!(ranges(&odd).ends_with("37, 39, …"), "{}", ranges(&odd));
    }
}
