//! The pickles of CIFAR: a dictionary of lists, texts and one array of pixels.
//!
//! Nothing is called and nothing imported: what a pickle would call stands in the result as a name and arguments. Long
//! texts and arrays are not read but located, so that a file of 150 MB costs no more than its lists, and the pixels stay
//! in the file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use crate::error::DataError;
use crate::table::source::Origin;

/// The most objects in a pickle; CIFAR-100 has 200,000.
const MAX_OBJECTS: usize = 1 << 20;
/// The most steps of a pickle.
const MAX_STEPS: usize = 1 << 22;
/// Texts up to here are read, longer ones are only located.
const MAX_TEXT: u64 = 1 << 8;

const RESAVE: &str = "use the binary version of CIFAR-100 (cifar-100-binary), or load the file with Python 3 \
                      (`pickle.load(file, encoding=\"bytes\")`) and save it with `protocol=4`";

/// A dictionary out of a file.
pub(super) struct Pickle {
    origin: Origin,
    objects: Vec<Object>,
    entries: Vec<(Id, Id)>,
}

/// A two-dimensional array of bytes that lies in the file as it is, row after row.
pub(super) struct ByteArray {
    pub(super) offset: u64,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// An object by its place; lists are filled after they were remembered, and may even hold themselves.
type Id = usize;

enum Object {
    None,
    Bool(bool),
    Int(i64),
    /// Bytes, with where they are; the content only when it is short.
    Bytes {
        place: Range<u64>,
        content: Option<Vec<u8>>,
    },
    /// A text; the content only when it is short.
    Text(Option<String>),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// A function or a class by its full name.
    Global(String),
    /// What calling a function with arguments would give, and what would then be set in it.
    Call {
        function: Id,
        arguments: Id,
        state: Option<Id>,
    },
    /// A number with a fraction or a very large one; CIFAR has none.
    Other,
}

impl Pickle {
    /// Reads a file that holds a dictionary.
    pub(super) fn read(path: &Path) -> Result<Self, DataError> {
        let origin = Origin::new(path);
        let file = File::open(path).map_err(|e| origin.io(e))?;
        let length = file.metadata().map_err(|e| origin.io(e))?.len();
        let machine = Machine {
            source: Source {
                reader: BufReader::new(file),
                position: 0,
                length,
            },
            objects: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        };
        let (objects, result) = machine.run().map_err(|problem| origin.malformed(problem))?;
        match objects.get(result) {
            Some(Object::Dict(entries)) => Ok(Self {
                entries: entries.clone(),
                origin,
                objects,
            }),
            _ => Err(origin.malformed(format!("the pickle holds no dictionary; {RESAVE}"))),
        }
    }

    /// A list of whole numbers.
    pub(super) fn numbers(&self, key: &str) -> Result<Vec<i64>, DataError> {
        let number = |&id: &Id| match self.object(id) {
            Object::Int(n) => Some(*n),
            _ => None,
        };
        let numbers: Option<Vec<i64>> = self.list(key)?.iter().map(number).collect();
        numbers.ok_or_else(|| self.wrong(key, "a list of whole numbers"))
    }

    /// A list of texts, which Python 2 wrote as bytes.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, DataError> {
        let texts: Option<Vec<String>> = self.list(key)?.iter().map(|&id| self.text(id)).collect();
        texts.ok_or_else(|| self.wrong(key, "a list of short texts in UTF-8"))
    }

    /// An array of bytes of NumPy.
    pub(super) fn bytes(&self, key: &str) -> Result<ByteArray, DataError> {
        let id = self.get(key)?;
        let Object::Call {
            function,
            arguments,
            state,
        } = self.object(id)
        else {
            return Err(self.wrong(key, "an array of NumPy"));
        };
        let (function, arguments) = (self.global(*function), self.tuple(*arguments));
        // NumPy renamed its `core` to `_core`.
        let (dtype, shape, in_columns, content) =
            match function.map(|name| name.replace("._core.", ".core.")).as_deref() {
                Some("numpy.core.multiarray._reconstruct") => match state.map(|state| self.tuple(state)) {
                    Some(&[_, shape, dtype, in_columns, content]) => (
                        dtype,
                        shape,
                        matches!(self.object(in_columns), Object::Bool(true)),
                        content,
                    ),
                    _ => return Err(self.wrong(key, "a whole array of NumPy")),
                },
                Some("numpy.core.numeric._frombuffer") => match arguments {
                    &[content, dtype, shape, order] => {
                        (dtype, shape, self.text(order).is_none_or(|order| order != "C"), content)
                    }
                    _ => return Err(self.wrong(key, "a whole array of NumPy")),
                },
                _ => return Err(self.wrong(key, "an array of NumPy")),
            };
        let size = |&id: &Id| match self.object(id) {
            Object::Int(n) => usize::try_from(*n).ok(),
            _ => None,
        };
        let shape: Option<Vec<usize>> = self.tuple(shape).iter().map(size).collect();
        let Some(&[rows, columns]) = shape.as_deref() else {
            return Err(self.wrong(key, "an array of rows and columns"));
        };
        if in_columns {
            return Err(self.wrong(key, "an array stored row after row (C order)"));
        }
        if !self.is_byte(dtype) {
            return Err(self.wrong(key, "an array of bytes (uint8)"));
        }
        match self.object(content) {
            Object::Bytes { place, .. } => {
                let length = rows.checked_mul(columns).map(|n| n as u64);
                if length != Some(place.end - place.start) {
                    let found = place.end - place.start;
                    return Err(self.wrong(key, &format!("an array of {rows} x {columns} bytes, not of {found}")));
                }
                Ok(ByteArray {
                    offset: place.start,
                    rows,
                    columns,
                })
            }
            // Python 3 writes bytes as a text in protocols 0 to 2.
            Object::Call { .. } => Err(self.origin.malformed(format!(
                "the pixels are stored as a text and not as bytes, as Python 3 does with protocol 2 or less; {RESAVE}"
            ))),
            _ => Err(self.wrong(key, "an array with its bytes")),
        }
    }

    fn get(&self, key: &str) -> Result<Id, DataError> {
        // The last one counts, as in Python.
        let found = self
            .entries
            .iter()
            .rev()
            .find(|entry| self.text(entry.0).as_deref() == Some(key));
        found.map(|entry| entry.1).ok_or_else(|| {
            self.origin
                .malformed(format!("no \"{key}\" in it; is it a file of CIFAR-100?"))
        })
    }

    fn list(&self, key: &str) -> Result<&[Id], DataError> {
        match self.object(self.get(key)?) {
            Object::List(items) | Object::Tuple(items) => Ok(items),
            _ => Err(self.wrong(key, "a list")),
        }
    }

    fn object(&self, id: Id) -> &Object {
        self.objects.get(id).unwrap_or(&Object::None)
    }

    fn tuple(&self, id: Id) -> &[Id] {
        match self.object(id) {
            Object::Tuple(items) => items,
            _ => &[],
        }
    }

    fn global(&self, id: Id) -> Option<&str> {
        match self.object(id) {
            Object::Global(name) => Some(name),
            _ => None,
        }
    }

    fn text(&self, id: Id) -> Option<String> {
        match self.object(id) {
            Object::Text(text) => text.clone(),
            Object::Bytes { content, .. } => String::from_utf8(content.clone()?).ok(),
            _ => None,
        }
    }

    /// Whether a type of NumPy is an unsigned byte.
    fn is_byte(&self, id: Id) -> bool {
        let Object::Call {
            function, arguments, ..
        } = self.object(id)
        else {
            return false;
        };
        let name = self.tuple(*arguments).first().and_then(|&name| self.text(name));
        self.global(*function) == Some("numpy.dtype")
            && name.is_some_and(|name| ["u1", "|u1", "uint8"].contains(&&*name))
    }

    fn wrong(&self, key: &str, needed: &str) -> DataError {
        self.origin
            .malformed(format!("\"{key}\" is not {needed}, as CIFAR-100 has it; {RESAVE}"))
    }
}

/// The bytes of a file, with the place in it.
struct Source {
    reader: BufReader<File>,
    position: u64,
    length: u64,
}

impl Source {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).map_err(|_| self.ends())?;
        self.position += N as u64;
        Ok(bytes)
    }

    /// So many bytes: where they are and, when they are few, what they are.
    fn bytes(&mut self, length: u64) -> Result<(Range<u64>, Option<Vec<u8>>), String> {
        let start = self.position;
        let end = start
            .checked_add(length)
            .filter(|&end| end <= self.length)
            .ok_or_else(|| self.ends())?;
        let content = if length <= MAX_TEXT {
            let mut content = vec![0; length as usize];
            self.reader.read_exact(&mut content).map_err(|_| self.ends())?;
            Some(content)
        } else {
            self.reader.seek(SeekFrom::Start(end)).map_err(|e| e.to_string())?;
            None
        };
        self.position = end;
        Ok((start..end, content))
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = Vec::new();
        loop {
            match self.array::<1>()? {
                [b'\n'] => return String::from_utf8(line).map_err(|_| "a name in the pickle is not UTF-8".to_owned()),
                [_] if line.len() as u64 >= MAX_TEXT => return Err("a name in the pickle is too long".to_owned()),
                [byte] => line.push(byte),
            }
        }
    }

    fn ends(&self) -> String {
        format!(
            "the pickle ends too early, after {} bytes; copy or unpack it again",
            self.length
        )
    }
}

/// What a pickle is read with: it is a program for a machine with a stack.
struct Machine {
    source: Source,
    objects: Vec<Object>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl Machine {
    fn run(mut self) -> Result<(Vec<Object>, Id), String> {
        if self.source.array::<2>()?[0] != 0x80 {
            return Err(format!("it is no pickle of protocol 2 or later; {RESAVE}"));
        }
        for _ in 0..MAX_STEPS {
            let [step] = self.source.array()?;
            if step == b'.' {
                let result = self.pop()?;
                return Ok((self.objects, result));
            }
            self.step(step)?;
            if self.objects.len() > MAX_OBJECTS {
                return Err("it holds more than a million objects, which is no file of CIFAR-100".to_owned());
            }
        }
        Err("it has more than four million steps, which is no file of CIFAR-100".to_owned())
    }

    fn step(&mut self, step: u8) -> Result<(), String> {
        match step {
            // A frame says how many bytes to read ahead, which does not matter here.
            0x95 => {
                self.source.array::<8>()?;
            }
            0x80 => {
                self.source.array::<1>()?;
            }
            b'(' => self.marks.push(self.stack.len()),
            b'0' => {
                self.pop()?;
            }
            b'1' => {
                self.since_mark()?;
            }
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
            }
            b'N' => self.push(Object::None),
            0x88 => self.push(Object::Bool(true)),
            0x89 => self.push(Object::Bool(false)),
            b'K' => {
                let [n] = self.source.array()?;
                self.push(Object::Int(n.into()));
            }
            b'M' => {
                let n = u16::from_le_bytes(self.source.array()?);
                self.push(Object::Int(n.into()));
            }
            b'J' => {
                let n = i32::from_le_bytes(self.source.array()?);
                self.push(Object::Int(n.into()));
            }
            0x8a => {
                let [length] = self.source.array()?;
                let (_, content) = self.source.bytes(length.into())?;
                self.push(long(&content.unwrap_or_default()));
            }
            b'G' => {
                self.source.array::<8>()?;
                self.push(Object::Other);
            }
            b'T' | b'B' => {
                let length = u32::from_le_bytes(self.source.array()?);
                self.bytes(length.into())?;
            }
            b'U' | b'C' => {
                let [length] = self.source.array()?;
                self.bytes(length.into())?;
            }
            0x8e | 0x96 => {
                let length = u64::from_le_bytes(self.source.array()?);
                self.bytes(length)?;
            }
            b'X' => {
                let length = u32::from_le_bytes(self.source.array()?);
                self.text(length.into())?;
            }
            0x8c => {
                let [length] = self.source.array()?;
                self.text(length.into())?;
            }
            0x8d => {
                let length = u64::from_le_bytes(self.source.array()?);
                self.text(length)?;
            }
            b']' => self.push(Object::List(Vec::new())),
            b'}' => self.push(Object::Dict(Vec::new())),
            b')' => self.push(Object::Tuple(Vec::new())),
            0x85..=0x87 => {
                let count = usize::from(step - 0x84);
                let items = self.last(count)?;
                self.push(Object::Tuple(items));
            }
            b't' => {
                let items = self.since_mark()?;
                self.push(Object::Tuple(items));
            }
            b'l' => {
                let items = self.since_mark()?;
                self.push(Object::List(items));
            }
            b'd' => {
                let items = self.since_mark()?;
                self.push(Object::Dict(pairs(&items)?));
            }
            b'a' => {
                let item = self.last(1)?;
                self.extend_list(item)?;
            }
            b'e' => {
                let items = self.since_mark()?;
                self.extend_list(items)?;
            }
            b's' => {
                let items = self.last(2)?;
                self.extend_dict(&items)?;
            }
            b'u' => {
                let items = self.since_mark()?;
                self.extend_dict(&items)?;
            }
            b'c' => {
                let name = format!("{}.{}", self.source.line()?, self.source.line()?);
                self.push(Object::Global(name));
            }
            0x93 => {
                let names = self.last(2)?;
                let text = |id: &Id| match self.objects.get(*id) {
                    Some(Object::Text(Some(text))) => Some(text.as_str()),
                    _ => None,
                };
                let names: Option<Vec<&str>> = names.iter().map(text).collect();
                let name = names.ok_or("a name in the pickle is no text")?.join(".");
                self.push(Object::Global(name));
            }
            b'R' | 0x81 => {
                let arguments = self.pop()?;
                let function = self.pop()?;
                self.push(Object::Call {
                    function,
                    arguments,
                    state: None,
                });
            }
            b'b' => {
                let new = self.pop()?;
                let target = self.top()?;
                match self.objects.get_mut(target) {
                    Some(Object::Call { state, .. }) => *state = Some(new),
                    _ => return Err("the pickle sets the state of something that has none".to_owned()),
                }
            }
            b'q' => {
                let [n] = self.source.array()?;
                self.remember(n.into())?;
            }
            b'r' => {
                let n = u32::from_le_bytes(self.source.array()?);
                self.remember(n)?;
            }
            0x94 => {
                let n = u32::try_from(self.memo.len()).map_err(|e| e.to_string())?;
                self.remember(n)?;
            }
            b'h' => {
                let [n] = self.source.array()?;
                self.recall(n.into())?;
            }
            b'j' => {
                let n = u32::from_le_bytes(self.source.array()?);
                self.recall(n)?;
            }
            other => {
                return Err(format!(
                    "the pickle has the step 0x{other:02x} at byte {}, which a file of CIFAR-100 does not need; {RESAVE}",
                    self.source.position - 1
                ));
            }
        }
        Ok(())
    }

    fn push(&mut self, object: Object) {
        self.stack.push(self.objects.len());
        self.objects.push(object);
    }

    fn bytes(&mut self, length: u64) -> Result<(), String> {
        let (place, content) = self.source.bytes(length)?;
        self.push(Object::Bytes { place, content });
        Ok(())
    }

    fn text(&mut self, length: u64) -> Result<(), String> {
        let (_, content) = self.source.bytes(length)?;
        let text = content.map(String::from_utf8).transpose();
        self.push(Object::Text(text.map_err(|_| "a text in the pickle is not UTF-8")?));
        Ok(())
    }

    /// Where the part of the stack begins that the current step may touch.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Result<Id, String> {
        let above = self.stack.get(self.floor()..).unwrap_or_default();
        above.last().copied().ok_or_else(empty)
    }

    fn pop(&mut self) -> Result<Id, String> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// Takes so many objects off the stack.
    fn last(&mut self, count: usize) -> Result<Vec<Id>, String> {
        let start = self
            .stack
            .len()
            .checked_sub(count)
            .filter(|&start| start >= self.floor());
        Ok(self.stack.split_off(start.ok_or_else(empty)?))
    }

    /// Takes everything since the last mark off the stack.
    fn since_mark(&mut self) -> Result<Vec<Id>, String> {
        let mark = self.marks.pop().ok_or_else(empty)?;
        if mark > self.stack.len() {
            return Err(empty());
        }
        Ok(self.stack.split_off(mark))
    }

    fn extend_list(&mut self, new: Vec<Id>) -> Result<(), String> {
        let target = self.top()?;
        match self.objects.get_mut(target) {
            Some(Object::List(items)) => items.extend(new),
            _ => return Err("the pickle appends to something that is no list".to_owned()),
        }
        Ok(())
    }

    fn extend_dict(&mut self, new: &[Id]) -> Result<(), String> {
        let new = pairs(new)?;
        let target = self.top()?;
        match self.objects.get_mut(target) {
            Some(Object::Dict(entries)) => entries.extend(new),
            _ => return Err("the pickle sets a key in something that is no dictionary".to_owned()),
        }
        Ok(())
    }

    fn remember(&mut self, n: u32) -> Result<(), String> {
        let top = self.top()?;
        if self.memo.len() > MAX_OBJECTS {
            return Err("it remembers more than a million objects, which is no file of CIFAR-100".to_owned());
        }
        self.memo.insert(n, top);
        Ok(())
    }

    fn recall(&mut self, n: u32) -> Result<(), String> {
        let id = self.memo.get(&n).copied();
        self.stack
            .push(id.ok_or("the pickle recalls what it did not remember")?);
        Ok(())
    }
}

fn empty() -> String {
    "the pickle takes more than it has put down; it is damaged".to_owned()
}

/// Keys and values that stand in turns.
fn pairs(items: &[Id]) -> Result<Vec<(Id, Id)>, String> {
    let (pairs, rest) = items.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("a key without a value in the pickle".to_owned());
    }
    Ok(pairs.iter().map(|&[key, value]| (key, value)).collect())
}

/// A whole number of any length, of which those of up to eight bytes matter.
fn long(bytes: &[u8]) -> Object {
    if bytes.len() > 8 {
        return Object::Other;
    }
    let fill = if bytes.last().is_some_and(|&b| b >= 0x80) {
        0xff
    } else {
        0
    };
    let mut number = [fill; 8];
    number[..bytes.len()].copy_from_slice(bytes);
    Object::Int(i64::from_le_bytes(number))
}
