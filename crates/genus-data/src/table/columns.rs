//! Which columns of a table are what: by what they are called, or by what somebody says.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::format::TableFormat;
use super::source::FileOrigin;
use crate::error::DataError;

/// What the user says about a table whose names do not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// The column of ids.
    pub id: Option<String>,
    /// The column of labels.
    pub label: Option<String>,
    /// The columns of features, in this order, or one column of lists; a name with `*` stands for all that fit it, in the
    /// order of their numbers.
    pub features: Vec<String>,
    /// Labels that mean "no label".
    pub unlabelled: Vec<String>,
    /// The format, where the name of the file does not say it.
    pub format: Option<TableFormat>,
    /// What errors call the file, where it is a copy of something else.
    pub called: Option<PathBuf>,
    /// A column that may be missing although it was named.
    pub may_lack: Option<ColumnRole>,
}

impl TableOptions {
    /// The same for a table whose labels nobody needs.
    pub fn for_pile(&self) -> Self {
        Self {
            may_lack: Some(ColumnRole::Label),
            ..self.clone()
        }
    }

    /// The same for a table whose ids nobody needs.
    pub fn for_examples(&self) -> Self {
        Self {
            may_lack: Some(ColumnRole::Id),
            ..self.clone()
        }
    }

    /// The label, unless it is a word for "no label".
    pub(crate) fn labelled(&self, label: Option<String>) -> Option<String> {
        label.filter(|label| !self.unlabelled.iter().any(|word| word == label.trim()))
    }
}

/// What a column is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnRole {
    /// It names the items.
    Id,
    /// It names their classes.
    Label,
    /// It has features.
    Features,
}

impl fmt::Display for ColumnRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ColumnRole::Id => "ids",
            ColumnRole::Label => "labels",
            ColumnRole::Features => "features",
        })
    }
}

/// Why it is not clear which columns of a table are what.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnProblem {
    /// A column that was named is not there.
    Missing {
        /// What it was to be.
        role: ColumnRole,
        /// Its name.
        name: String,
        /// The name that is most like it.
        nearest: Option<String>,
        /// All names.
        present: Vec<String>,
    },
    /// Two columns could be the same thing.
    Ambiguous {
        /// What they could be.
        role: ColumnRole,
        /// Their names.
        columns: [String; 2],
    },
    /// No column is known to be a feature.
    NoFeatures {
        /// Columns of numbers or lists, which could be features.
        numbers: Vec<String>,
        /// All names.
        present: Vec<String>,
    },
    /// There are rows of a table where paths of images are looked for.
    Rows,
    /// There are texts and no features.
    Texts {
        /// The column of texts; a list without columns has none.
        column: Option<String>,
    },
}

/// How many names a message lists.
const LISTED: usize = 12;

/// Names for a message.
pub(crate) fn listed(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().take(LISTED).map(|name| format!("\"{name}\"")).collect();
    match names.len().checked_sub(LISTED) {
        None | Some(0) => quoted.join(", "),
        Some(more) => format!("{} and {more} more", quoted.join(", ")),
    }
}

impl fmt::Display for ColumnProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnProblem::Missing {
                name, nearest, present, ..
            } => {
                write!(f, "there is no column \"{name}\"")?;
                if let Some(nearest) = nearest {
                    write!(f, " (there is \"{nearest}\")")?;
                }
                write!(f, "; the file has {}", listed(present))
            }
            ColumnProblem::Ambiguous {
                role,
                columns: [first, second],
            } => write!(f, "both \"{first}\" and \"{second}\" could be the {role}; say which"),
            ColumnProblem::NoFeatures { numbers, present } => {
                write!(
                    f,
                    "no column is known to hold features, which are numbered columns such as f0, f1, f2 or one column of \
                     lists called embedding; "
                )?;
                match numbers.is_empty() {
                    true => write!(f, "the file has {}", listed(present)),
                    false => write!(
                        f,
                        "say so if {} {}",
                        listed(numbers),
                        if numbers.len() == 1 { "is one" } else { "are some" }
                    ),
                }
            }
            ColumnProblem::Rows => f.write_str("there are rows of a table, and no paths of images"),
            ColumnProblem::Texts { column: Some(column) } => {
                write!(
                    f,
                    "there are texts in \"{column}\" but no features; texts become features by an embedding model"
                )
            }
            ColumnProblem::Texts { column: None } => {
                f.write_str("there are texts, and no images; texts become features by an embedding model")
            }
        }
    }
}

/// What stands in the first row of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Number,
    List,
    Text,
    /// Nothing, or what is none of these.
    Other,
}

/// A column: its name and what is in it.
pub(crate) type Named<'a> = (&'a str, ColumnKind);

/// What names a row, best name first: its id, or in a list of images the path.
pub(crate) const IDS: [&str; 5] = ["id", "path", "image", "file", "filename"];
/// What labels may be called.
pub(crate) const LABELS: [&str; 5] = ["label", "labels", "class", "target", "y"];
/// What a column of lists may be called, best name first.
const LISTS: [&str; 4] = ["embedding", "embeddings", "features", "vector"];
/// Columns that are for people, and of which nothing has to be said when they are left out.
const BESIDE: [&str; 2] = ["text", "truth"];
/// What the encoder's mark is called.
const ENCODER: &str = "encoder";

/// Which columns of a table are what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) id: Option<usize>,
    pub(crate) label: Option<usize>,
    pub(crate) encoder: Option<usize>,
    pub(crate) features: FeatureColumns,
    /// The names of columns that are nothing of this, though somebody might have meant them as features or labels.
    pub(crate) left_out: Vec<String>,
}

/// Where features are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FeatureColumns {
    /// In one column, a list a row.
    List(usize),
    /// A column each.
    Wide(Vec<usize>),
}

/// Columns by name.
struct NamedColumns<'a> {
    origin: &'a FileOrigin,
    options: &'a TableOptions,
    columns: &'a [Named<'a>],
}

impl Columns {
    /// Finds out which columns are what, or says why that is not clear.
    pub(crate) fn of(origin: &FileOrigin, columns: &[Named], options: &TableOptions) -> Result<Self, DataError> {
        let names = NamedColumns {
            origin,
            options,
            columns,
        };
        let id = names.id()?;
        let label = names.label(id)?;
        let encoder = names.find(ENCODER);
        let taken = |column: &usize| [id, label, encoder].contains(&Some(*column));
        let rest: Vec<usize> = (0..columns.len()).filter(|column| !taken(column)).collect();
        let (features, left_out) = names.features(&rest)?;
        let mut found = Self {
            id,
            label,
            encoder,
            features,
            left_out: said(columns, left_out),
        };
        if options.may_lack != Some(ColumnRole::Label) {
            found.look_for_labels(columns);
        }
        Ok(found)
    }

    /// Beside a column of lists nothing can be meant as a feature, but texts as the labels, where these are looked for and no column
    /// is known to have them.
    pub(crate) fn look_for_labels(&mut self, columns: &[Named]) {
        if let (FeatureColumns::List(list), None) = (&self.features, self.label) {
            let others = [Some(*list), self.id, self.encoder];
            let is_text = |column: &usize| columns[*column].1 == ColumnKind::Text && !others.contains(&Some(*column));
            self.left_out = said(columns, (0..columns.len()).filter(is_text));
        }
    }

    /// The column of labels alone.
    pub(crate) fn label_of(
        origin: &FileOrigin,
        columns: &[Named],
        options: &TableOptions,
    ) -> Result<Option<usize>, DataError> {
        let names = NamedColumns {
            origin,
            options,
            columns,
        };
        names.label(None)
    }

    /// Whether a table has features rather than paths of images.
    pub(crate) fn have_features(origin: &FileOrigin, columns: &[Named], options: &TableOptions) -> bool {
        !matches!(
            Self::of(origin, columns, options),
            Err(DataError::Columns {
                problem: ColumnProblem::NoFeatures { .. } | ColumnProblem::Texts { .. },
                ..
            })
        )
    }
}

impl NamedColumns<'_> {
    fn problem(&self, problem: ColumnProblem) -> DataError {
        DataError::Columns {
            path: self.origin.path.clone(),
            problem,
        }
    }

    fn present(&self) -> Vec<String> {
        self.columns.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    fn find(&self, wanted: &str) -> Option<usize> {
        self.columns.iter().position(|(name, _)| *name == wanted)
    }

    fn find_any_case(&self, wanted: &str) -> Option<usize> {
        let fits = |(name, _): &Named| name.eq_ignore_ascii_case(wanted);
        self.find(wanted).or_else(|| self.columns.iter().position(fits))
    }

    /// The column that somebody named.
    fn named(&self, role: ColumnRole, name: &str) -> Result<Option<usize>, DataError> {
        match self.find(name) {
            Some(column) => Ok(Some(column)),
            None if self.options.may_lack == Some(role) => Ok(None),
            None => Err(missing(self.origin, role, name, self.present().iter())),
        }
    }

    fn id(&self) -> Result<Option<usize>, DataError> {
        match &self.options.id {
            Some(name) => self.named(ColumnRole::Id, name),
            None => Ok(IDS.iter().find_map(|name| self.find_any_case(name))),
        }
    }

    fn label(&self, id: Option<usize>) -> Result<Option<usize>, DataError> {
        if let Some(name) = &self.options.label {
            return self.named(ColumnRole::Label, name);
        }
        let is_feature = |name: &str| self.options.features.iter().any(|pattern| fits(pattern, name));
        let mut found = (0..self.columns.len()).filter(|&column| {
            let (name, kind) = self.columns[column];
            let is_called_so = LABELS.iter().any(|label| name.eq_ignore_ascii_case(label));
            // With an x beside it, a y is a place and no class.
            let is_place = name.eq_ignore_ascii_case("y") && self.find_any_case("x").is_some();
            is_called_so && !is_place && kind != ColumnKind::List && Some(column) != id && !is_feature(name)
        });
        match (found.next(), found.next()) {
            (Some(first), Some(second)) => Err(self.problem(ColumnProblem::Ambiguous {
                role: ColumnRole::Label,
                columns: [first, second].map(|column| self.columns[column].0.to_owned()),
            })),
            (found, _) => Ok(found),
        }
    }

    /// The features among some columns, and those of the columns that something should be said of.
    fn features(&self, rest: &[usize]) -> Result<(FeatureColumns, Vec<usize>), DataError> {
        if !self.options.features.is_empty() {
            return Ok((self.named_features(rest)?, Vec::new()));
        }
        let name = |column: usize| self.columns[column].0;
        let kind = |column: usize| self.columns[column].1;
        let may_be_list = |&column: &usize| kind(column) != ColumnKind::Text || name(column) == LISTS[0];
        let by_name = LISTS.iter().filter_map(|list| self.find_any_case(list));
        if let Some(list) = by_name.filter(|column| rest.contains(column)).find(may_be_list) {
            return Ok((FeatureColumns::List(list), Vec::new()));
        }
        let lists: Vec<usize> = rest
            .iter()
            .copied()
            .filter(|&column| kind(column) == ColumnKind::List)
            .collect();
        if let [list] = lists[..] {
            return Ok((FeatureColumns::List(list), Vec::new()));
        }
        let mut families = self.families(rest).into_iter();
        match (families.next(), families.next()) {
            (Some(family), None) => {
                let left_out = rest.iter().copied().filter(|column| !family.contains(column)).collect();
                Ok((FeatureColumns::Wide(family), left_out))
            }
            (Some(first), Some(second)) => Err(self.problem(ColumnProblem::Ambiguous {
                role: ColumnRole::Features,
                columns: [first, second].map(|family| name(family[0]).to_owned()),
            })),
            (None, _) => Err(self.problem(self.no_features(rest))),
        }
    }

    fn no_features(&self, rest: &[usize]) -> ColumnProblem {
        let of_kind = |wanted: fn(ColumnKind) -> bool| {
            let columns = rest.iter().filter(move |&&column| wanted(self.columns[column].1));
            columns
                .map(|&column| self.columns[column].0.to_owned())
                .collect::<Vec<_>>()
        };
        let numbers = of_kind(|kind| matches!(kind, ColumnKind::Number | ColumnKind::List));
        let texts = of_kind(|kind| kind == ColumnKind::Text);
        let text = texts.iter().find(|name| *name == BESIDE[0]).or(texts.first());
        match text {
            Some(text) if numbers.is_empty() => ColumnProblem::Texts {
                column: Some(text.clone()),
            },
            _ => ColumnProblem::NoFeatures {
                numbers,
                present: self.present(),
            },
        }
    }

    /// The features that somebody named, in the order in which they were named.
    fn named_features(&self, rest: &[usize]) -> Result<FeatureColumns, DataError> {
        let mut found = Vec::new();
        for pattern in &self.options.features {
            let mut of_pattern: Vec<usize> = match pattern.contains('*') {
                false => self.named(ColumnRole::Features, pattern)?.into_iter().collect(),
                true => rest
                    .iter()
                    .copied()
                    .filter(|&column| fits(pattern, self.columns[column].0))
                    .collect(),
            };
            if of_pattern.is_empty() {
                self.named(ColumnRole::Features, pattern)?;
            }
            of_pattern.sort_by_cached_key(|&column| natural(self.columns[column].0));
            found.extend(
                of_pattern
                    .into_iter()
                    .filter(|column| !found.contains(column))
                    .collect::<Vec<_>>(),
            );
        }
        Ok(match found[..] {
            // A number is a list of one.
            [one] => FeatureColumns::List(one),
            _ => FeatureColumns::Wide(found),
        })
    }

    /// Columns that have a name in common and are numbered from zero or one, each family in the order of its numbers.
    fn families(&self, rest: &[usize]) -> Vec<Vec<usize>> {
        let mut by_stem: BTreeMap<&str, BTreeMap<u32, Vec<usize>>> = BTreeMap::new();
        for &column in rest {
            let (name, kind) = self.columns[column];
            let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
            if let Ok(number) = name[stem.len()..].parse()
                && kind != ColumnKind::List
            {
                by_stem.entry(stem).or_default().entry(number).or_default().push(column);
            }
        }
        let families = by_stem.into_iter().filter_map(|(stem, columns)| {
            let first = *columns.keys().next()?;
            let in_turn = columns
                .keys()
                .zip(first..)
                .all(|(&number, expected)| number == expected);
            let once = columns.values().all(|columns| columns.len() == 1);
            // One column says little, but for the name that examples have.
            let enough = columns.len() > 1 || (stem, first) == ("f", 0);
            (first <= 1 && in_turn && once && enough).then(|| columns.into_values().flatten().collect())
        });
        families.collect()
    }
}

/// The names of columns that something is to be said of.
fn said(columns: &[Named], left_out: impl IntoIterator<Item = usize>) -> Vec<String> {
    let names = left_out.into_iter().map(|column| columns[column].0);
    // The number of a row, as pandas writes it, has no name.
    let names = names.filter(|name| !name.is_empty() && !BESIDE.contains(name));
    names.map(str::to_owned).collect()
}

/// The error for a column that was named and is not there.
pub(crate) fn missing<'a>(
    origin: &FileOrigin,
    role: ColumnRole,
    name: &str,
    present: impl Iterator<Item = &'a String>,
) -> DataError {
    let present: Vec<String> = present.cloned().collect();
    DataError::Columns {
        path: origin.path.clone(),
        problem: ColumnProblem::Missing {
            role,
            name: name.to_owned(),
            nearest: nearest(name, present.iter().map(String::as_str)),
            present,
        },
    }
}

/// Whether a column of this name is something else than a feature.
pub(super) fn is_special(name: &str) -> bool {
    let is_called = |known: &&str| name.eq_ignore_ascii_case(known);
    IDS.iter().chain(&LABELS).chain(&[ENCODER]).any(is_called)
}

/// Whether a name is what a pattern says, in which `*` stands for any characters.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| fits(rest, &name[at..]))
        }),
    }
}

/// A name by which columns are in order: numbers in it count as numbers.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, number) = rest.split_at(digits);
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        key.push((text.to_owned(), number[..end].parse().unwrap_or(0)));
        rest = &number[end..];
    }
    key
}

/// The name that is most like another, if one is.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    // What a name ends with says nothing about it.
    let most = name.split('.').next().unwrap_or(name).chars().count() / 3 + 1;
    let wanted = name.to_lowercase();
    let distances = names
        .into_iter()
        .map(|other| (distance(&wanted, &other.to_lowercase()), other));
    let near = distances.filter(|&(distance, _)| distance <= most);
    near.min().map(|(_, other)| other.to_owned())
}

/// How many characters have to be changed, left out, put in or swapped with the next to make one name of another.
fn distance(a: &str, b: &str) -> usize {
    // Names beyond this length are not typed.
    const LONGEST: usize = 256;
    let [a, b] = [a, b].map(|text| text.chars().take(LONGEST).collect::<Vec<_>>());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (row, &from) in a.iter().enumerate() {
        let mut this = vec![row + 1];
        for (at, &to) in b.iter().enumerate() {
            let mut best = (last[at] + usize::from(from != to))
                .min(last[at + 1] + 1)
                .min(this[at] + 1);
            if row > 0 && at > 0 && from == b[at - 1] && a[row - 1] == to {
                best = best.min(before[at - 1] + 1);
            }
            this.push(best);
        }
        before = std::mem::replace(&mut last, this);
    }
    last[b.len()]
}
