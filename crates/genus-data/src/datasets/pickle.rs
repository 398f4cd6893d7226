//! The pickles of CIFAR: a dictionary of lists, texts and one array of pixels, which stays in the file.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use genus_files::pickle::{self, Value, seek_past};

use crate::error::DataError;
use crate::table::source::FileOrigin;

const RESAVE: &str = "use the binary version of CIFAR-100 (cifar-100-binary), or load the file with Python 3 \
                      (`pickle.load(file, encoding=\"bytes\")`) and save it with `protocol=4`";

/// A dictionary out of a file.
pub(super) struct PickleDict {
    origin: FileOrigin,
    pickle: pickle::Pickle,
}

/// A two-dimensional array of bytes that lies in the file as it is, row after row.
pub(super) struct ByteArray {
    pub(super) offset: u64,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl PickleDict {
    /// Reads a file that holds a dictionary.
    pub(super) fn read(path: &Path) -> Result<Self, DataError> {
        let origin = FileOrigin::new(path);
        let mut reader = BufReader::new(File::open(path).map_err(|e| origin.io(e))?);
        // Names are never looked up, so any will do.
        let pickle = pickle::Pickle::read(&mut reader, seek_past, |_, _| true)
            .map_err(|e| origin.format(e, |problem| format!("{problem}; {RESAVE}")))?;
        match pickle.root() {
            Value::Dict(_) => Ok(Self { origin, pickle }),
            _ => Err(origin.malformed(format!("the pickle holds no dictionary; {RESAVE}"))),
        }
    }

    /// A list of integers.
    pub(super) fn numbers(&self, key: &str) -> Result<Vec<i64>, DataError> {
        let number = |&value: &Value| match value {
            Value::Int(n) => Some(n),
            _ => None,
        };
        let numbers: Option<Vec<i64>> = self.list(key)?.iter().map(number).collect();
        numbers.ok_or_else(|| self.wrong(key, "a list of integers"))
    }

    /// A list of texts, which Python 2 wrote as bytes.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, DataError> {
        let text = |&value: &Value| self.pickle.text(value).map(str::to_owned);
        let texts: Option<Vec<String>> = self.list(key)?.iter().map(text).collect();
        texts.ok_or_else(|| self.wrong(key, "a list of short texts in UTF-8"))
    }

    /// An array of bytes of NumPy.
    pub(super) fn bytes(&self, key: &str) -> Result<ByteArray, DataError> {
        let Some(call) = self.pickle.call(self.get(key)?) else {
            return Err(self.wrong(key, "an array of NumPy"));
        };
        // NumPy renamed its `core` to `_core`.
        let function = self.name(call.function).replace("._core.", ".core.");
        let (dtype, shape, in_columns, content) = match &*function {
            "numpy.core.multiarray._reconstruct" => match self.pickle.items(call.state) {
                Some(&[_, shape, dtype, in_columns, content]) => {
                    (dtype, shape, in_columns == Value::Bool(true), content)
                }
                _ => return Err(self.wrong(key, "a whole array of NumPy")),
            },
            "numpy.core.numeric._frombuffer" => match self.pickle.items(call.arguments) {
                Some(&[content, dtype, shape, order]) => (dtype, shape, self.pickle.text(order) != Some("C"), content),
                _ => return Err(self.wrong(key, "a whole array of NumPy")),
            },
            _ => return Err(self.wrong(key, "an array of NumPy")),
        };
        let size = |&value: &Value| match value {
            Value::Int(n) => usize::try_from(n).ok(),
            _ => None,
        };
        let shape: Option<Vec<usize>> = self.pickle.items(shape).unwrap_or_default().iter().map(size).collect();
        let Some(&[rows, columns]) = shape.as_deref() else {
            return Err(self.wrong(key, "an array of rows and columns"));
        };
        if in_columns {
            return Err(self.wrong(key, "an array stored row after row (C order)"));
        }
        if !self.is_byte(dtype) {
            return Err(self.wrong(key, "an array of bytes (uint8)"));
        }
        // Python 3 writes bytes as a text in protocols 0 to 2.
        if self.pickle.call(content).is_some() {
            return Err(self.origin.malformed(format!(
                "the pixels are stored as a text and not as bytes, as Python 3 does with protocol 2 or less; {RESAVE}"
            )));
        }
        let Some(bytes) = self.pickle.bytes(content) else {
            return Err(self.wrong(key, "an array with its bytes"));
        };
        if rows.checked_mul(columns).map(|n| n as u64) != Some(bytes.length) {
            let found = bytes.length;
            return Err(self.wrong(key, &format!("an array of {rows} x {columns} bytes, not of {found}")));
        }
        Ok(ByteArray {
            offset: bytes.start,
            rows,
            columns,
        })
    }

    fn get(&self, key: &str) -> Result<Value, DataError> {
        let entries = self.pickle.entries(self.pickle.root()).unwrap_or_default();
        // The last one counts, as in Python.
        let found = entries
            .iter()
            .rev()
            .find(|&&(name, _)| self.pickle.text(name) == Some(key));
        found.map(|&(_, value)| value).ok_or_else(|| {
            self.origin
                .malformed(format!("no \"{key}\" in it; is it a file of CIFAR-100?"))
        })
    }

    fn list(&self, key: &str) -> Result<&[Value], DataError> {
        let items = self.pickle.items(self.get(key)?);
        items.ok_or_else(|| self.wrong(key, "a list"))
    }

    /// The full name of a function or class; nothing of anything else.
    fn name(&self, value: Value) -> String {
        let global = self.pickle.global(value);
        global.map_or_else(String::new, |global| format!("{}.{}", global.module, global.name))
    }

    /// Whether a type of NumPy is an unsigned byte.
    fn is_byte(&self, dtype: Value) -> bool {
        let Some(call) = self.pickle.call(dtype) else {
            return false;
        };
        let arguments = self.pickle.items(call.arguments).unwrap_or_default();
        let name = arguments.first().and_then(|&name| self.pickle.text(name));
        self.name(call.function) == "numpy.dtype" && name.is_some_and(|name| ["u1", "|u1", "uint8"].contains(&name))
    }

    fn wrong(&self, key: &str, needed: &str) -> DataError {
        self.origin
            .malformed(format!("\"{key}\" is not {needed}, as CIFAR-100 has it; {RESAVE}"))
    }
}
