//! JSON Lines: an object a line. [`Columns`] says which of its names mean what; labels may be missing where they are not known.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::batch::Cell;
use super::columns::{self, ColumnKind, ColumnRole, Columns, FeatureColumns, TableOptions};
use super::encoder;
use super::label;
use super::limits::MAX_ROW_BYTES;
use super::lines::Lines;
use super::rows::{Row, RowBlocks, RowReader};
use super::source::{BadRows, FileOrigin, TableSource};
use super::text::{self, Text, has_line};
use crate::error::{DataError, FilePosition};

/// Opens a `.jsonl` file.
pub(super) fn open(
    origin: FileOrigin,
    options: &TableOptions,
    bad: BadRows,
) -> Result<Box<dyn TableSource>, DataError> {
    let mut lines = Lines::new(origin.clone(), text::open(&origin)?, b'\n', MAX_ROW_BYTES);
    let mut refused = VecDeque::new();
    let names = loop {
        if !lines.read_filled()? {
            return Err(refused.pop_front().unwrap_or(DataError::NoRows { path: origin.path }));
        }
        match ObjectNames::of(&origin, &lines, options) {
            Ok(names) => break names,
            Err(error) if bad.go_on(&error) => refused.push_back(error),
            Err(error) => return Err(error),
        }
    };
    RowBlocks::open(
        origin.clone(),
        JsonRows {
            origin,
            lines,
            is_first: true,
            names,
            refused,
        },
        bad,
    )
}

const EXAMPLE: &str = r#"{"id": "a", "label": "cat", "embedding": [0.1, 0.2]}"#;

/// An object of a line.
pub(crate) type Object = serde_json::Map<String, Value>;

/// What stands under a name.
pub(crate) fn kind(value: &Value) -> ColumnKind {
    match value {
        Value::Number(_) => ColumnKind::Number,
        Value::Array(values) if values.iter().all(Value::is_number) => ColumnKind::List,
        Value::String(_) => ColumnKind::Text,
        _ => ColumnKind::Other,
    }
}

/// A value as the cell of a table.
pub(super) fn cell(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::String(text) => Cell::Text(text.clone()),
        Value::Number(number) => match number.as_i128() {
            Some(integer) => Cell::Integer(integer),
            None => Cell::Text(number.to_string()),
        },
        other => Cell::Text(other.to_string()),
    }
}

/// What is wrong with a line that is no such object as the example.
pub(crate) fn problem(error: &serde_json::Error, example: &str) -> String {
    let text = error.to_string();
    // The place that serde names is within the line.
    let text = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(problem, _)| problem);
    format!(
        "{text} (at character {}); a line must be an object like {example}",
        error.column()
    )
}

/// What stands for an item or a class.
#[derive(Deserialize)]
#[serde(untagged, expecting = "an id or a label must be a text or an integer")]
pub(crate) enum Key {
    // `i128` is not among the integers that untagged enums can hold.
    Negative(i64),
    Natural(u64),
    Text(String),
}

impl Key {
    pub(crate) fn into_text(self) -> String {
        match self {
            Key::Text(text) => text,
            Key::Negative(integer) => integer.to_string(),
            Key::Natural(integer) => integer.to_string(),
        }
    }

    pub(crate) fn into_label(self) -> Option<String> {
        match self {
            Key::Text(text) => label::from_text(text),
            Key::Negative(integer) => label::from_integer(integer.into()),
            Key::Natural(integer) => label::from_integer(integer.into()),
        }
    }
}

/// What the names of the objects mean.
struct ObjectNames {
    options: TableOptions,
    /// What stood under each of them when it was met first.
    kinds: BTreeMap<String, ColumnKind>,
    meanings: HashMap<String, FieldRole>,
    /// How many names have a feature each; `None` when there is one with a list.
    wide: Option<usize>,
    /// The names of these features.
    features: Vec<String>,
    left_out: Vec<String>,
    /// Whether labels are looked for.
    needs_label: bool,
    /// Whether a row had the label that somebody named.
    label_found: bool,
}

#[derive(Clone, Copy)]
enum FieldRole {
    Id,
    Label,
    Encoder,
    List,
    /// Which feature.
    Feature(usize),
}

impl ObjectNames {
    /// The names of the line that was read last.
    fn of(origin: &FileOrigin, lines: &Lines<Text>, options: &TableOptions) -> Result<Self, DataError> {
        let object: Object = serde_json::from_slice(&lines.text)
            .map_err(|e| origin.row(FilePosition::Line(lines.line), problem(&e, EXAMPLE)))?;
        let mut names = Self {
            // Others may have what this one has not.
            options: TableOptions {
                may_lack: options.may_lack.or(Some(ColumnRole::Label)),
                ..options.clone()
            },
            kinds: object.iter().map(|(name, value)| (name.clone(), kind(value))).collect(),
            meanings: HashMap::new(),
            wide: None,
            features: Vec::new(),
            left_out: Vec::new(),
            needs_label: options.may_lack != Some(ColumnRole::Label),
            label_found: options.label.is_none() || options.may_lack == Some(ColumnRole::Label),
        };
        names.settle(origin)?;
        Ok(names)
    }

    /// Finds out what the names mean that were met so far.
    fn settle(&mut self, origin: &FileOrigin) -> Result<(), DataError> {
        let named: Vec<_> = self.kinds.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
        let mut columns = Columns::of(origin, &named, &self.options)?;
        if self.needs_label {
            columns.look_for_labels(&named);
        }
        let features: Vec<(usize, FieldRole)> = match &columns.features {
            FeatureColumns::List(list) => vec![(*list, FieldRole::List)],
            FeatureColumns::Wide(features) => {
                let numbered = features.iter().enumerate();
                numbered
                    .map(|(number, &column)| (column, FieldRole::Feature(number)))
                    .collect()
            }
        };
        self.wide = match &columns.features {
            FeatureColumns::List(_) => None,
            FeatureColumns::Wide(features) => Some(features.len()),
        };
        self.features = features.iter().map(|&(column, _)| named[column].0.to_owned()).collect();
        let others = [
            (columns.id, FieldRole::Id),
            (columns.label, FieldRole::Label),
            (columns.encoder, FieldRole::Encoder),
        ];
        let others = others
            .into_iter()
            .filter_map(|(column, meaning)| Some((column?, meaning)));
        let meanings = features.into_iter().chain(others);
        self.meanings = meanings
            .map(|(column, meaning)| (named[column].0.to_owned(), meaning))
            .collect();
        self.left_out = columns.left_out;
        self.label_found |= columns.label.is_some();
        Ok(())
    }

    /// Whether a name that was not met before may change what the others mean.
    fn matters(&self, name: &str) -> bool {
        !self.kinds.contains_key(name) && (columns::is_special(name) || self.options.label.as_deref() == Some(name))
    }
}

/// A row as it stands in a line.
#[derive(Default)]
struct ParsedRow {
    id: Option<Key>,
    label: Option<Key>,
    encoder: Option<String>,
    /// Names that have not been met before.
    unmet: Vec<String>,
}

/// Reads an object, its features appended to `values`.
struct ObjectSeed<'a> {
    names: &'a ObjectNames,
    values: &'a mut Vec<f32>,
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_> {
    type Value = ParsedRow;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ParsedRow, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectSeed<'_> {
    type Value = ParsedRow;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ParsedRow, A::Error> {
        let Self { names, values } = self;
        let mut row = ParsedRow::default();
        let start = values.len();
        values.resize(start + names.wide.unwrap_or(0), f32::NAN);
        let mut given = vec![false; names.wide.unwrap_or(1)];
        let mut unmet = Vec::new();
        while let Some(meaning) = map.next_key_seed(NameSeed {
            names,
            unmet: &mut unmet,
        })? {
            match meaning {
                None => drop(map.next_value::<IgnoredAny>()?),
                Some(FieldRole::Id) => row.id = map.next_value()?,
                Some(FieldRole::Label) => row.label = map.next_value()?,
                Some(FieldRole::Encoder) => row.encoder = map.next_value()?,
                Some(FieldRole::List) => {
                    map.next_value_seed(NumberSeed(values))?;
                    if std::mem::replace(&mut given[0], true) {
                        return Err(A::Error::custom("the features are there twice"));
                    }
                }
                Some(FieldRole::Feature(number)) => {
                    // Wide enough for a number that no f32 holds: it becomes infinite and is then refused by its feature.
                    values[start + number] = map.next_value::<f64>()? as f32;
                    given[number] = true;
                }
            }
        }
        if let Some(missing) = given.iter().position(|&given| !given) {
            let name = names.features.get(missing).map_or("", String::as_str);
            return Err(A::Error::custom(format!("no \"{name}\" with features")));
        }
        row.unmet = unmet;
        Ok(row)
    }
}

/// Looks a name up.
struct NameSeed<'a> {
    names: &'a ObjectNames,
    unmet: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for NameSeed<'_> {
    type Value = Option<FieldRole>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed<'_> {
    type Value = Option<FieldRole>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let meaning = self.names.meanings.get(name).copied();
        if meaning.is_none() && self.names.matters(name) {
            self.unmet.push(name.to_owned());
        }
        Ok(meaning)
    }
}

/// Appends a list of numbers, or one number.
struct NumberSeed<'a>(&'a mut Vec<f32>);

impl<'de> DeserializeSeed<'de> for NumberSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NumberSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(number) = list.next_element::<f64>()? {
            self.0.push(number as f32);
        }
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.0.push(number as f32);
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        self.visit_f64(number as f64)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<(), E> {
        self.visit_f64(number as f64)
    }
}

struct JsonRows {
    origin: FileOrigin,
    lines: Lines<Text>,
    /// Whether the line that was read to learn the names is still to be given.
    is_first: bool,
    names: ObjectNames,
    /// What is wrong with the lines before that one.
    refused: VecDeque<DataError>,
}

impl JsonRows {
    fn parse(&self, values: &mut Vec<f32>) -> Result<ParsedRow, DataError> {
        let mut deserializer = serde_json::Deserializer::from_slice(&self.lines.text);
        let seed = ObjectSeed {
            names: &self.names,
            values,
        };
        let parsed = seed.deserialize(&mut deserializer);
        let parsed = parsed.and_then(|row| deserializer.end().map(|()| row));
        parsed.map_err(|e| {
            self.origin
                .row(FilePosition::Line(self.lines.line), problem(&e, EXAMPLE))
        })
    }
}

impl RowReader for JsonRows {
    fn next_row(&mut self, values: &mut Vec<f32>) -> Result<Option<Row>, DataError> {
        if let Some(error) = self.refused.pop_front() {
            return Err(error);
        }
        if !std::mem::take(&mut self.is_first) && !self.lines.read_filled()? {
            if let Some(label) = self.names.options.label.as_deref().filter(|_| !self.names.label_found) {
                return Err(columns::missing(
                    &self.origin,
                    ColumnRole::Label,
                    label,
                    self.names.kinds.keys(),
                ));
            }
            return Ok(None);
        }
        let start = values.len();
        let mut row = self.parse(values)?;
        if !row.unmet.is_empty() {
            let unmet = row.unmet.into_iter().map(|name| (name, ColumnKind::Other));
            self.names.kinds.extend(unmet);
            self.names.settle(&self.origin)?;
            values.truncate(start);
            row = self.parse(values)?;
        }
        Ok(Some(Row {
            line: self.lines.line,
            id: row.id.map(Key::into_text),
            label: row.label.and_then(Key::into_label),
            encoder: row.encoder.and_then(encoder::from_text),
        }))
    }

    fn column_name(&self, feature: usize) -> Option<&str> {
        self.names.wide?;
        self.names.features.get(feature).map(String::as_str)
    }

    fn left_out(&self) -> &[String] {
        &self.names.left_out
    }

    fn is_ready(&self) -> bool {
        has_line(self.lines.reader())
    }
}
