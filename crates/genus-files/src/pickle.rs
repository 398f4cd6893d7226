//! Python pickles of protocol 2 and later, read without running anything.
//!
//! Python's own reader imports and calls whatever a file names. Here a call stands in the result as a function's name and its
//! arguments, for the caller to make sense of. Long strings are located and not read, so that an array of 150 MB costs nothing.
//! Values are small and point into lists, so that nothing is copied or dropped in depth, and a file that refers to itself
//! costs no more than its length.

use std::io::{self, Read, Seek};

use crate::FormatError;

/// The most instructions of a pickle: each costs about a hundred bytes of memory at most.
const MAX_STEPS: usize = 1 << 23;
/// The longest name of a module or class.
const MAX_LINE: usize = 512;
/// Strings up to here are read, longer ones are only located.
pub const MAX_STRING: u64 = 1 << 10;

/// A value; numbers of it are places in the lists of the [`Pickle`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer of up to eight bytes.
    Int(i64),
    /// A text, or bytes, which Python 2 wrote its texts as.
    String(u32),
    /// A tuple.
    Tuple(u32),
    /// A list.
    List(u32),
    /// A dictionary.
    Dict(u32),
    /// A function or a class by its name.
    Global(u32),
    /// What a call would give.
    Call(u32),
    /// An object that is stored outside the pickle.
    Persistent(u32),
    /// Anything else: floats, sets, very large integers.
    Opaque,
}

/// Text or bytes.
#[derive(Clone, Debug)]
pub struct Bytes {
    /// Where it begins, counted from the start of the pickle.
    pub start: u64,
    /// How many bytes it has.
    pub length: u64,
    /// What it is, if it is at most [`MAX_STRING`] bytes long.
    pub content: Option<Box<[u8]>>,
}

/// A function or a class.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its module.
    pub module: Box<str>,
    /// Its name there.
    pub name: Box<str>,
}

/// What calling a function with arguments would give, and what would then be set in it.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The function or class.
    pub function: Value,
    /// Its arguments.
    pub arguments: Value,
    /// What its attributes would be set from.
    pub state: Value,
    /// The dictionary of the items that would be set in it, if there are any.
    pub items: Value,
}

/// Everything that a pickle builds.
#[derive(Debug)]
pub struct Pickle {
    strings: Vec<Bytes>,
    /// Tuples and lists.
    sequences: Vec<Vec<Value>>,
    dicts: Vec<Vec<(Value, Value)>>,
    globals: Vec<Global>,
    calls: Vec<Call>,
    persistent: Vec<Value>,
    root: Value,
}

impl Pickle {
    /// Reads a pickle up to its end, leaving the reader behind it. A name that is not accepted ends the reading.
    ///
    /// `skip` moves the reader forward: [`read_past`], or [`seek_past`] where that is possible.
    pub fn read<R: Read>(
        reader: &mut R,
        skip: fn(&mut R, u64) -> io::Result<()>,
        accept: impl Fn(&str, &str) -> bool,
    ) -> Result<Self, FormatError> {
        let machine = PickleMachine {
            reader,
            position: 0,
            skip,
            accept,
            pickle: Self {
                strings: Vec::new(),
                sequences: Vec::new(),
                dicts: Vec::new(),
                globals: Vec::new(),
                calls: Vec::new(),
                persistent: Vec::new(),
                root: Value::None,
            },
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
        };
        machine.run()
    }

    /// What the pickle is of.
    pub fn root(&self) -> Value {
        self.root
    }

    /// A text or bytes.
    pub fn bytes(&self, value: Value) -> Option<&Bytes> {
        match value {
            Value::String(index) => self.strings.get(index as usize),
            _ => None,
        }
    }

    /// A short text, or short bytes that are one.
    pub fn text(&self, value: Value) -> Option<&str> {
        str::from_utf8(self.bytes(value)?.content.as_deref()?).ok()
    }

    /// The items of a list or tuple.
    pub fn items(&self, value: Value) -> Option<&[Value]> {
        match value {
            Value::Tuple(index) | Value::List(index) => self.sequences.get(index as usize).map(Vec::as_slice),
            _ => None,
        }
    }

    /// The keys and values of a dictionary.
    pub fn entries(&self, value: Value) -> Option<&[(Value, Value)]> {
        match value {
            Value::Dict(index) => self.dicts.get(index as usize).map(Vec::as_slice),
            _ => None,
        }
    }

    /// A function or class.
    pub fn global(&self, value: Value) -> Option<&Global> {
        match value {
            Value::Global(index) => self.globals.get(index as usize),
            _ => None,
        }
    }

    /// What a call would give.
    pub fn call(&self, value: Value) -> Option<&Call> {
        match value {
            Value::Call(index) => self.calls.get(index as usize),
            _ => None,
        }
    }

    /// By which name an object outside the pickle is found.
    pub fn persistent_id(&self, value: Value) -> Option<Value> {
        match value {
            Value::Persistent(index) => self.persistent.get(index as usize).copied(),
            _ => None,
        }
    }

    /// The names of all objects outside the pickle.
    pub fn persistent_ids(&self) -> &[Value] {
        &self.persistent
    }
}

/// Moves a reader forward by reading.
pub fn read_past<R: Read>(reader: &mut R, bytes: u64) -> io::Result<()> {
    match io::copy(&mut reader.by_ref().take(bytes), &mut io::sink())? == bytes {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Moves a reader forward without reading, but not beyond its end.
pub fn seek_past<R: Read + Seek>(reader: &mut R, bytes: u64) -> io::Result<()> {
    let here = reader.stream_position()?;
    let end = reader.seek(io::SeekFrom::End(0))?;
    let there = here.checked_add(bytes).filter(|&there| there <= end);
    reader.seek(io::SeekFrom::Start(there.ok_or(io::ErrorKind::UnexpectedEof)?))?;
    Ok(())
}

/// Appends to one of the lists and gives the place. Fewer than `MAX_STEPS` are ever added.
fn push<T>(list: &mut Vec<T>, item: T) -> u32 {
    list.push(item);
    (list.len() - 1) as u32
}

/// What a pickle is a program for: a machine with a stack.
struct PickleMachine<'a, R, A> {
    reader: &'a mut R,
    position: u64,
    skip: fn(&mut R, u64) -> io::Result<()>,
    accept: A,
    pickle: Pickle,
    stack: Vec<Value>,
    /// The heights of the stack at which marks were set.
    marks: Vec<usize>,
    memo: Vec<Value>,
}

impl<R: Read, A: Fn(&str, &str) -> bool> PickleMachine<'_, R, A> {
    fn run(mut self) -> Result<Pickle, FormatError> {
        for _ in 0..MAX_STEPS {
            let [opcode] = self.array()?;
            if opcode == b'.' {
                self.pickle.root = self.pop()?;
                return Ok(self.pickle);
            }
            self.step(opcode)?;
        }
        Err(FormatError::TooLarge(format!(
            "the pickle has over {MAX_STEPS} instructions"
        )))
    }

    fn step(&mut self, opcode: u8) -> Result<(), FormatError> {
        let value = match opcode {
            // The protocol, and frames, which only tell how much to read at once.
            0x80 => return self.array::<1>().map(drop),
            0x95 => return self.array::<8>().map(drop),

            b'(' => {
                self.marks.push(self.stack.len());
                return Ok(());
            }
            b'0' => return self.pop().map(drop),
            b'1' => return self.pop_mark().map(drop),
            b'2' => self.top()?,

            b'N' => Value::None,
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            b'J' => Value::Int(i64::from(i32::from_le_bytes(self.array()?))),
            b'K' => Value::Int(i64::from(u8::from_le_bytes(self.array()?))),
            b'M' => Value::Int(i64::from(u16::from_le_bytes(self.array()?))),
            0x8a => self.long::<1>()?,
            0x8b => self.long::<4>()?,
            b'G' => self.array::<8>().map(|_| Value::Opaque)?,

            b'U' | b'C' | 0x8c => self.string::<1>()?,
            b'T' | b'B' | b'X' => self.string::<4>()?,
            0x8d | 0x8e | 0x96 => self.string::<8>()?,

            b')' => self.tuple(Vec::new()),
            0x85..=0x87 => {
                let items = self.pop_last(usize::from(opcode - 0x84))?;
                self.tuple(items)
            }
            b't' => {
                let items = self.pop_mark()?;
                self.tuple(items)
            }
            b']' => self.list(Vec::new()),
            b'l' => {
                let items = self.pop_mark()?;
                self.list(items)
            }
            b'a' => {
                let items = self.pop_last(1)?;
                return self.extend_list(&items);
            }
            b'e' => {
                let items = self.pop_mark()?;
                return self.extend_list(&items);
            }
            b'}' => self.dict(Vec::new()),
            b'd' => {
                let items = self.pop_mark()?;
                self.dict(pairs(&items)?)
            }
            b's' => {
                let items = self.pop_last(2)?;
                return self.extend_dict(&items);
            }
            b'u' => {
                let items = self.pop_mark()?;
                return self.extend_dict(&items);
            }
            // Sets.
            0x8f => Value::Opaque,
            0x90 => return self.pop_mark().map(drop),
            0x91 => self.pop_mark().map(|_| Value::Opaque)?,

            b'q' => {
                let slot = self.length::<1>()?;
                return self.put(slot);
            }
            b'r' => {
                let slot = self.length::<4>()?;
                return self.put(slot);
            }
            0x94 => return self.put(self.memo.len() as u64),
            b'h' => {
                let slot = self.length::<1>()?;
                self.get(slot)?
            }
            b'j' => {
                let slot = self.length::<4>()?;
                self.get(slot)?
            }

            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.global(module, name)?
            }
            0x93 => {
                let names = self.pop_last(2)?;
                let mut names = names.into_iter().map(|name| self.pickle.text(name).map(str::to_owned));
                match (names.next().flatten(), names.next().flatten()) {
                    (Some(module), Some(name)) => self.global(module, name)?,
                    _ => return Err(malformed("a name in the pickle is no text")),
                }
            }
            b'R' | 0x81 => {
                let arguments = self.pop()?;
                self.call(arguments)?
            }
            0x92 => {
                self.pop()?;
                let arguments = self.pop()?;
                self.call(arguments)?
            }
            b'b' => {
                let state = self.pop()?;
                if let Value::Call(call) = self.top()? {
                    self.pickle.calls[call as usize].state = state;
                }
                return Ok(());
            }
            b'Q' => {
                let id = self.pop()?;
                Value::Persistent(push(&mut self.pickle.persistent, id))
            }
            other => {
                return Err(FormatError::Malformed(format!(
                    "the pickle has the instruction {other:#04x} at byte {}, which protocols 2 to 5 do not have",
                    self.position - 1
                )));
            }
        };
        self.stack.push(value);
        Ok(())
    }

    // Reading.

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), FormatError> {
        self.reader.read_exact(bytes).map_err(early_end)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// An unsigned integer of so many bytes.
    fn length<const N: usize>(&mut self) -> Result<u64, FormatError> {
        let bytes: [u8; N] = self.array()?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |length, &byte| (length << 8) | u64::from(byte)))
    }

    fn pass(&mut self, length: u64) -> Result<(), FormatError> {
        let end = self.position.checked_add(length);
        let end = end.ok_or_else(|| early_end(io::ErrorKind::UnexpectedEof.into()))?;
        (self.skip)(self.reader, length).map_err(early_end)?;
        self.position = end;
        Ok(())
    }

    /// A signed integer after its length.
    fn long<const N: usize>(&mut self) -> Result<Value, FormatError> {
        let length = self.length::<N>()?;
        if length > 8 {
            self.pass(length)?;
            return Ok(Value::Opaque);
        }
        let mut bytes = [0; 8];
        let bytes = &mut bytes[..length as usize];
        self.fill(bytes)?;
        let sign = if bytes.last().is_some_and(|&high| high >= 0x80) {
            -1
        } else {
            0
        };
        let int = bytes.iter().rev().fold(sign, |int, &byte| (int << 8) | i64::from(byte));
        Ok(Value::Int(int))
    }

    /// Text or bytes after their length.
    fn string<const N: usize>(&mut self) -> Result<Value, FormatError> {
        let length = self.length::<N>()?;
        let start = self.position;
        let content = if length <= MAX_STRING {
            let mut content = vec![0; length as usize];
            self.fill(&mut content)?;
            Some(content.into())
        } else {
            self.pass(length)?;
            None
        };
        let string = Bytes { start, length, content };
        Ok(Value::String(push(&mut self.pickle.strings, string)))
    }

    fn line(&mut self) -> Result<String, FormatError> {
        let mut line = Vec::new();
        loop {
            match self.array()? {
                [b'\n'] => return String::from_utf8(line).map_err(|_| malformed("a name in the pickle is not UTF-8")),
                [_] if line.len() == MAX_LINE => return Err(malformed("a name in the pickle is too long")),
                [byte] => line.push(byte),
            }
        }
    }

    // The stack.

    /// Takes so many values off the stack, those below the last mark excepted.
    fn pop_last(&mut self, count: usize) -> Result<Vec<Value>, FormatError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let start = self.stack.len().checked_sub(count).filter(|&start| start >= floor);
        Ok(self.stack.split_off(start.ok_or_else(empty)?))
    }

    fn pop(&mut self) -> Result<Value, FormatError> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn top(&self) -> Result<Value, FormatError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let above = self.stack.get(floor..).unwrap_or_default();
        above.last().copied().ok_or_else(empty)
    }

    /// Takes everything since the last mark off the stack.
    fn pop_mark(&mut self) -> Result<Vec<Value>, FormatError> {
        let mark = self.marks.pop().ok_or_else(empty)?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn put(&mut self, slot: u64) -> Result<(), FormatError> {
        let value = self.top()?;
        // Slots are numbered as they come, from 0 or, by Python 2, from 1: so the list is never longer than the file.
        if slot > self.memo.len() as u64 + 1 {
            return Err(malformed("the pickle remembers out of order"));
        }
        let slot = slot as usize;
        self.memo.resize(self.memo.len().max(slot + 1), Value::None);
        self.memo[slot] = value;
        Ok(())
    }

    fn get(&self, slot: u64) -> Result<Value, FormatError> {
        let value = self.memo.get(slot as usize).copied();
        value.ok_or_else(|| malformed("the pickle recalls what it did not remember"))
    }

    // Building.

    fn tuple(&mut self, items: Vec<Value>) -> Value {
        Value::Tuple(push(&mut self.pickle.sequences, items))
    }

    fn list(&mut self, items: Vec<Value>) -> Value {
        Value::List(push(&mut self.pickle.sequences, items))
    }

    fn dict(&mut self, entries: Vec<(Value, Value)>) -> Value {
        Value::Dict(push(&mut self.pickle.dicts, entries))
    }

    fn global(&mut self, module: String, name: String) -> Result<Value, FormatError> {
        if !(self.accept)(&module, &name) {
            let full = format!("{module}.{name}");
            return Err(FormatError::Foreign(full.escape_debug().take(MAX_LINE).collect()));
        }
        let global = Global {
            module: module.into(),
            name: name.into(),
        };
        Ok(Value::Global(push(&mut self.pickle.globals, global)))
    }

    /// A call of what is on the stack.
    fn call(&mut self, arguments: Value) -> Result<Value, FormatError> {
        let call = Call {
            function: self.pop()?,
            arguments,
            state: Value::None,
            items: Value::None,
        };
        Ok(Value::Call(push(&mut self.pickle.calls, call)))
    }

    fn extend_list(&mut self, items: &[Value]) -> Result<(), FormatError> {
        match self.top()? {
            Value::List(list) => self.pickle.sequences[list as usize].extend_from_slice(items),
            // Queues and the like, of which nothing is needed.
            Value::Call(_) | Value::Opaque => {}
            _ => return Err(malformed("the pickle appends to what is no list")),
        }
        Ok(())
    }

    fn extend_dict(&mut self, items: &[Value]) -> Result<(), FormatError> {
        let pairs = pairs(items)?;
        let dict = match self.top()? {
            Value::Dict(dict) => dict,
            Value::Call(call) => match self.pickle.calls[call as usize].items {
                Value::Dict(dict) => dict,
                _ => {
                    let dict = push(&mut self.pickle.dicts, Vec::new());
                    self.pickle.calls[call as usize].items = Value::Dict(dict);
                    dict
                }
            },
            Value::Opaque => return Ok(()),
            _ => return Err(malformed("the pickle sets a key in what is no dictionary")),
        };
        self.pickle.dicts[dict as usize].extend(pairs);
        Ok(())
    }
}

fn malformed(problem: &str) -> FormatError {
    FormatError::Malformed(problem.to_owned())
}

fn empty() -> FormatError {
    malformed("the pickle takes more than it has put down")
}

fn early_end(error: io::Error) -> FormatError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => malformed("the pickle ends too early"),
        _ => error.into(),
    }
}

/// Keys and values that stand in turns.
fn pairs(items: &[Value]) -> Result<Vec<(Value, Value)>, FormatError> {
    let (pairs, rest) = items.as_chunks::<2>();
    match rest.is_empty() {
        true => Ok(pairs.iter().map(|&[key, value]| (key, value)).collect()),
        false => Err(malformed("a key without a value in the pickle")),
    }
}
