//! A machine for the pickles of `torch.save` that runs nothing.
//!
//! Python's own would import and call whatever a file names. Here a name is looked up in a list: what builds a tensor
//! is understood, what is harmless in a training checkpoint becomes a value without content, and any other name ends
//! the reading. Values are small and point into lists, so that nothing is copied or dropped in depth, and a file that
//! refers to itself costs no more than its length.

use std::io::{BufRead, Read};
use std::rc::Rc;

use super::problem::Problem;
use super::storage::{Dtype, View};

/// The longest pickle; those of the largest networks stay below a tenth.
pub(super) const MAX_BYTES: u64 = 1 << 28;
/// The most instructions of a pickle: each costs a few dozen bytes of memory at most.
const MAX_STEPS: usize = 1 << 23;
/// The most dimensions of a tensor.
const MAX_DIMS: usize = 16;
/// The longest name of a module or class.
const MAX_LINE: u64 = 512;
/// The longest key of a storage; they are numbers.
const MAX_KEY: usize = 64;
/// How deep a tensor may be wrapped in rebuilding functions.
const MAX_WRAPS: usize = 8;

/// A value; numbers are places in the lists of the [`Program`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Text(u32),
    Tuple(u32),
    List(u32),
    Dict(u32),
    Class(Class),
    Storage(u32),
    Tensor(u32),
    /// A tensor that has no plain values, and what it is instead.
    Unsupported(&'static str),
    /// Anything that weights are not made of: floats, bytes, sets, settings.
    Opaque,
}

/// What a global name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Class {
    /// `_rebuild_tensor` and `_rebuild_tensor_v2`, which begin with the same arguments.
    Tensor,
    /// `_rebuild_tensor_v3`, which has the type of the elements among its arguments.
    TypedTensor,
    /// A function whose first argument is the tensor.
    Parameter,
    /// A function whose arguments are another function, a type, and the arguments of the other.
    FromType,
    Unsupported(&'static str),
    /// The type of a storage's elements; none where the storage is one of bytes.
    Storage(Option<Dtype>),
    Dtype(Dtype),
    Dict,
    Size,
    Data,
}

/// A storage as a persistent id names it.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    pub(super) key: Rc<str>,
    /// None in a storage of bytes.
    pub(super) dtype: Option<Dtype>,
    /// The elements of the storage, or its bytes.
    pub(super) length: u64,
    /// Where in it the elements begin, in old files whose storages share memory.
    start: u64,
}

/// Everything that a pickle built.
#[derive(Debug)]
pub(super) struct Program {
    texts: Vec<String>,
    /// Tuples and lists.
    sequences: Vec<Vec<Value>>,
    dicts: Vec<Vec<(Value, Value)>>,
    storages: Vec<Storage>,
    views: Vec<View>,
    pub(super) root: Value,
}

impl Program {
    /// Reads a pickle up to its end, leaving the reader behind it.
    pub(super) fn read(reader: &mut impl BufRead) -> Result<Self, Problem> {
        let program = Self {
            texts: Vec::new(),
            sequences: Vec::new(),
            dicts: Vec::new(),
            storages: Vec::new(),
            views: Vec::new(),
            root: Value::None,
        };
        let machine = Machine {
            reader: reader.take(MAX_BYTES),
            program,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
        };
        machine.run()
    }

    pub(super) fn text(&self, index: u32) -> &str {
        self.texts.get(index as usize).map_or("", String::as_str)
    }

    pub(super) fn sequence(&self, index: u32) -> &[Value] {
        self.sequences.get(index as usize).map_or(&[], Vec::as_slice)
    }

    pub(super) fn dict(&self, index: u32) -> &[(Value, Value)] {
        self.dicts.get(index as usize).map_or(&[], Vec::as_slice)
    }

    /// The value under a text key; as in Python the last one counts.
    pub(super) fn item(&self, dict: u32, key: &str) -> Option<Value> {
        let is_key = |value: &Value| matches!(*value, Value::Text(text) if self.text(text) == key);
        self.dict(dict)
            .iter()
            .rev()
            .find(|(k, _)| is_key(k))
            .map(|&(_, value)| value)
    }

    pub(super) fn view(&self, index: u32) -> &View {
        &self.views[index as usize]
    }

    pub(super) fn storages(&self) -> &[Storage] {
        &self.storages
    }
}

/// Appends to one of the program's lists and gives the place. Fewer than `MAX_STEPS` are ever added.
fn push<T>(list: &mut Vec<T>, item: T) -> u32 {
    list.push(item);
    (list.len() - 1) as u32
}

struct Machine<R> {
    reader: R,
    program: Program,
    stack: Vec<Value>,
    /// The heights of the stack at which marks were set.
    marks: Vec<usize>,
    memo: Vec<Value>,
}

impl<R: BufRead> Machine<R> {
    fn run(mut self) -> Result<Program, Problem> {
        for _ in 0..MAX_STEPS {
            let [opcode] = self.bytes()?;
            if opcode == b'.' {
                self.program.root = self.pop()?;
                return Ok(self.program);
            }
            self.step(opcode)?;
        }
        Err(Problem::TooLarge(format!(
            "its pickle has over {MAX_STEPS} instructions"
        )))
    }

    fn step(&mut self, opcode: u8) -> Result<(), Problem> {
        let value = match opcode {
            // The protocol, and frames, which only tell how much to read at once.
            0x80 => return self.bytes::<1>().map(drop),
            0x95 => return self.bytes::<8>().map(drop),

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
            b'J' => Value::Int(i64::from(i32::from_le_bytes(self.bytes()?))),
            b'K' => Value::Int(i64::from(u8::from_le_bytes(self.bytes()?))),
            b'M' => Value::Int(i64::from(u16::from_le_bytes(self.bytes()?))),
            0x8a => {
                let length = self.length::<1>()?;
                self.long(length)?
            }
            0x8b => {
                let length = self.length::<4>()?;
                self.long(length)?
            }
            b'G' => self.bytes::<8>().map(|_| Value::Opaque)?,

            // Python 2 wrote its texts as strings.
            b'U' | 0x8c => {
                let length = self.length::<1>()?;
                self.text(length)?
            }
            b'T' | b'X' => {
                let length = self.length::<4>()?;
                self.text(length)?
            }
            0x8d => {
                let length = self.length::<8>()?;
                self.text(length)?
            }
            b'C' => {
                let length = self.length::<1>()?;
                self.skip(length)?
            }
            b'B' => {
                let length = self.length::<4>()?;
                self.skip(length)?
            }
            0x8e | 0x96 => {
                let length = self.length::<8>()?;
                self.skip(length)?
            }

            b')' => self.tuple(Vec::new()),
            0x85..=0x87 => {
                let mut items = vec![Value::None; usize::from(opcode - 0x84)];
                for item in items.iter_mut().rev() {
                    *item = self.pop()?;
                }
                self.tuple(items)
            }
            b't' => {
                let items = self.pop_mark()?;
                self.tuple(items)
            }
            b']' => Value::List(push(&mut self.program.sequences, Vec::new())),
            b'a' => {
                let item = self.pop()?;
                return self.append(&[item]);
            }
            b'e' => {
                let items = self.pop_mark()?;
                return self.append(&items);
            }
            b'}' => self.new_dict(Vec::new()),
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                return self.set_items(&[key, value]);
            }
            b'u' => {
                let items = self.pop_mark()?;
                return self.set_items(&items);
            }
            0x8f => Value::Opaque,
            0x90 => return self.pop_mark().map(drop),
            0x91 => self.pop_mark().map(|_| Value::Opaque)?,

            b'q' => {
                let [slot] = self.bytes()?;
                return self.put(u32::from(slot));
            }
            b'r' => {
                let slot = u32::from_le_bytes(self.bytes()?);
                return self.put(slot);
            }
            // There are fewer slots than steps.
            0x94 => return self.put(self.memo.len() as u32),
            b'h' => {
                let [slot] = self.bytes()?;
                self.get(u32::from(slot))?
            }
            b'j' => {
                let slot = u32::from_le_bytes(self.bytes()?);
                self.get(slot)?
            }

            b'c' => {
                let module = self.line()?;
                let name = self.line()?;
                Value::Class(class(&module, &name)?)
            }
            0x93 => match (self.pop()?, self.pop()?) {
                (Value::Text(name), Value::Text(module)) => {
                    Value::Class(class(self.program.text(module), self.program.text(name))?)
                }
                _ => return Err(malformed("a class without a name")),
            },
            b'R' | 0x81 => {
                let arguments = self.pop()?;
                let function = self.pop()?;
                self.call(function, arguments, 0)?
            }
            0x92 => {
                self.pop()?;
                let arguments = self.pop()?;
                let function = self.pop()?;
                self.call(function, arguments, 0)?
            }
            // The attributes of an object: no weights are in them.
            b'b' => return self.pop().and_then(|_| self.top()).map(drop),
            b'Q' => {
                let id = self.pop()?;
                self.storage(id)?
            }
            other => {
                return Err(Problem::Malformed(format!(
                    "its pickle has the instruction {other:#04x}, which torch.save does not write"
                )));
            }
        };
        self.stack.push(value);
        Ok(())
    }

    // Reading.

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// A length of so many bytes.
    fn length<const N: usize>(&mut self) -> Result<u64, Problem> {
        let bytes: [u8; N] = self.bytes()?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |length, &byte| (length << 8) | u64::from(byte)))
    }

    fn long(&mut self, length: u64) -> Result<Value, Problem> {
        if length > 8 {
            return self.skip(length);
        }
        let mut bytes = [0; 8];
        let bytes = &mut bytes[..length as usize];
        self.reader.read_exact(bytes)?;
        let negative = bytes.last().is_some_and(|&high| high >= 0x80);
        let start = if negative { -1 } else { 0 };
        Ok(Value::Int(
            bytes
                .iter()
                .rev()
                .fold(start, |int, &byte| (int << 8) | i64::from(byte)),
        ))
    }

    /// A text, which grows as it is read and never by what the file claims.
    fn text(&mut self, length: u64) -> Result<Value, Problem> {
        let mut bytes = Vec::new();
        (&mut self.reader).take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(malformed("a text that ends too early"));
        }
        // Python 2's strings may be in any encoding; those that matter are names and are not.
        let text = String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        Ok(Value::Text(push(&mut self.program.texts, text)))
    }

    fn skip(&mut self, length: u64) -> Result<Value, Problem> {
        let skipped = std::io::copy(&mut (&mut self.reader).take(length), &mut std::io::sink())?;
        match skipped == length {
            true => Ok(Value::Opaque),
            false => Err(malformed("bytes that end too early")),
        }
    }

    fn line(&mut self) -> Result<String, Problem> {
        let mut line = Vec::new();
        (&mut self.reader).take(MAX_LINE).read_until(b'\n', &mut line)?;
        match line.pop() {
            Some(b'\n') => String::from_utf8(line).map_err(|_| malformed("a class whose name is no text")),
            _ => Err(malformed("a class whose name does not end")),
        }
    }

    // The stack.

    fn pop(&mut self) -> Result<Value, Problem> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len() > floor {
            true => self.stack.pop().ok_or_else(|| malformed("an empty stack")),
            false => Err(malformed("an empty stack")),
        }
    }

    fn top(&mut self) -> Result<Value, Problem> {
        let value = self.pop()?;
        self.stack.push(value);
        Ok(value)
    }

    fn pop_mark(&mut self) -> Result<Vec<Value>, Problem> {
        let mark = self
            .marks
            .pop()
            .ok_or_else(|| malformed("an end without a beginning"))?;
        Ok(self.stack.split_off(mark))
    }

    fn put(&mut self, slot: u32) -> Result<(), Problem> {
        let value = self.top()?;
        // Slots are numbered as they come, from 0 or, by Python 2, from 1: so the list is never longer than the file.
        let slot = slot as usize;
        if slot > self.memo.len() + 1 {
            return Err(malformed("a slot out of order"));
        }
        self.memo.resize(self.memo.len().max(slot + 1), Value::None);
        self.memo[slot] = value;
        Ok(())
    }

    fn get(&self, slot: u32) -> Result<Value, Problem> {
        let value = self.memo.get(slot as usize).copied();
        value.ok_or_else(|| malformed("a reference to what was not stored"))
    }

    // Building.

    fn tuple(&mut self, items: Vec<Value>) -> Value {
        Value::Tuple(push(&mut self.program.sequences, items))
    }

    fn new_dict(&mut self, items: Vec<(Value, Value)>) -> Value {
        Value::Dict(push(&mut self.program.dicts, items))
    }

    fn append(&mut self, items: &[Value]) -> Result<(), Problem> {
        match self.top()? {
            Value::List(list) => self.program.sequences[list as usize].extend_from_slice(items),
            Value::Opaque => {}
            _ => return Err(malformed("items of what is no list")),
        }
        Ok(())
    }

    fn set_items(&mut self, items: &[Value]) -> Result<(), Problem> {
        let (pairs, rest) = items.as_chunks::<2>();
        match self.top()? {
            _ if !rest.is_empty() => return Err(malformed("a key without a value")),
            Value::Dict(dict) => self.program.dicts[dict as usize].extend(pairs.iter().map(|&[k, v]| (k, v))),
            Value::Opaque => {}
            _ => return Err(malformed("entries of what is no dictionary")),
        }
        Ok(())
    }

    fn call(&mut self, function: Value, arguments: Value, depth: usize) -> Result<Value, Problem> {
        let (Value::Class(class), Value::Tuple(tuple)) = (function, arguments) else {
            return Err(malformed("a call of what is no function"));
        };
        let argument = |i: usize| self.program.sequence(tuple).get(i).copied();
        Ok(match class {
            Class::Tensor | Class::TypedTensor => {
                let dtype = match (class, argument(6)) {
                    (Class::TypedTensor, Some(Value::Class(Class::Dtype(dtype)))) => Some(dtype),
                    (Class::TypedTensor, _) => return Err(malformed("a tensor without a type")),
                    _ => None,
                };
                let (Some(Value::Storage(storage)), Some(Value::Int(offset)), Some(shape), Some(strides)) =
                    (argument(0), argument(1), argument(2), argument(3))
                else {
                    return Err(malformed("a tensor without a storage or shape"));
                };
                let view = self.view(storage, dtype, offset, shape, strides)?;
                Value::Tensor(push(&mut self.program.views, view))
            }
            Class::Parameter => match argument(0) {
                Some(tensor @ (Value::Tensor(_) | Value::Unsupported(_))) => tensor,
                _ => return Err(malformed("a parameter without a tensor")),
            },
            Class::FromType => match (argument(0), argument(2)) {
                (Some(function), Some(arguments)) if depth < MAX_WRAPS => self.call(function, arguments, depth + 1)?,
                _ => return Err(malformed("a tensor without a function that builds it")),
            },
            Class::Unsupported(kind) => Value::Unsupported(kind),
            Class::Size => argument(0).unwrap_or(arguments),
            Class::Dict => match argument(0) {
                Some(Value::List(pairs)) => {
                    let items = self.pairs(pairs)?;
                    self.new_dict(items)
                }
                Some(dict @ Value::Dict(_)) => dict,
                _ => self.new_dict(Vec::new()),
            },
            Class::Storage(_) | Class::Dtype(_) | Class::Data => Value::Opaque,
        })
    }

    /// The entries of a dictionary that is written as a list of pairs, as Python 2 did.
    fn pairs(&mut self, pairs: u32) -> Result<Vec<(Value, Value)>, Problem> {
        // A list can be named again and again: taking it leaves nothing for a second time.
        let pairs = std::mem::take(&mut self.program.sequences[pairs as usize]);
        let pair = |pair: Value| match pair {
            Value::Tuple(index) | Value::List(index) => match *self.program.sequence(index) {
                [key, value] => Ok((key, value)),
                _ => Err(malformed("an entry that is no pair")),
            },
            _ => Err(malformed("an entry that is no pair")),
        };
        pairs.into_iter().map(pair).collect()
    }

    fn view(
        &self,
        storage: u32,
        dtype: Option<Dtype>,
        offset: i64,
        shape: Value,
        strides: Value,
    ) -> Result<View, Problem> {
        let storage = &self.program.storages[storage as usize];
        let (dtype, length) = match (storage.dtype, dtype) {
            (Some(own), None) => (own, storage.length),
            (Some(own), Some(dtype)) if own == dtype => (own, storage.length),
            (None, Some(dtype)) => (dtype, storage.length / dtype.size()),
            _ => return Err(malformed("a tensor without a type")),
        };
        let outside = || malformed("a tensor with a negative offset, length or stride, or with too many dimensions");
        let numbers = |value: Value| -> Result<Vec<u64>, Problem> {
            let (Value::Tuple(index) | Value::List(index)) = value else {
                return Err(outside());
            };
            let items = self.program.sequence(index);
            let number = |&item: &Value| match item {
                Value::Int(int) => u64::try_from(int).map_err(|_| outside()),
                _ => Err(outside()),
            };
            match items.len() <= MAX_DIMS {
                true => items.iter().map(number).collect(),
                false => Err(outside()),
            }
        };
        let offset = u64::try_from(offset)
            .ok()
            .and_then(|offset| offset.checked_add(storage.start));
        Ok(View {
            key: Rc::clone(&storage.key),
            dtype,
            length,
            offset: offset.ok_or_else(outside)?,
            shape: numbers(shape)?,
            strides: numbers(strides)?,
        })
    }

    /// The storage of a persistent id: `("storage", type, key, location, length)`, and in old files a sixth item where
    /// it is a part of another.
    fn storage(&mut self, id: Value) -> Result<Value, Problem> {
        let wrong = || malformed("a storage that is not described");
        let Value::Tuple(tuple) = id else {
            return Err(wrong());
        };
        let items = self.program.sequence(tuple);
        let (
            &[
                Value::Text(kind),
                Value::Class(Class::Storage(dtype)),
                Value::Text(key),
                _,
                Value::Int(length),
            ],
            rest,
        ) = items.split_first_chunk::<5>().ok_or_else(wrong)?
        else {
            return Err(wrong());
        };
        let start = match *rest {
            [] | [Value::None] => 0,
            [Value::Tuple(part)] => match *self.program.sequence(part) {
                [_, Value::Int(start), Value::Int(_)] => u64::try_from(start).map_err(|_| wrong())?,
                _ => return Err(wrong()),
            },
            _ => return Err(wrong()),
        };
        // Copied for every mention, so a long one would grow.
        if self.program.text(kind) != "storage" || self.program.text(key).len() > MAX_KEY {
            return Err(wrong());
        }
        let storage = Storage {
            key: self.program.text(key).into(),
            dtype,
            length: u64::try_from(length).map_err(|_| wrong())?,
            start,
        };
        Ok(Value::Storage(push(&mut self.program.storages, storage)))
    }
}

fn malformed(what: &str) -> Problem {
    Problem::Malformed(format!("its pickle has {what}"))
}

/// The list of what a pickle may name.
fn class(module: &str, name: &str) -> Result<Class, Problem> {
    let found = match (module, name) {
        ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => Class::Tensor,
        ("torch._utils", "_rebuild_tensor_v3") => Class::TypedTensor,
        ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => Class::Parameter,
        ("torch._tensor", "_rebuild_from_type" | "_rebuild_from_type_v2") => Class::FromType,
        ("torch._utils", "_rebuild_qtensor") => Class::Unsupported("quantised"),
        ("torch._utils", "_rebuild_sparse_tensor" | "_rebuild_sparse_csr_tensor") => Class::Unsupported("sparse"),
        ("torch._utils", "_rebuild_nested_tensor") => Class::Unsupported("nested"),
        ("torch._utils", "_rebuild_meta_tensor_no_storage") => {
            Class::Unsupported("without values (on the meta device)")
        }
        ("torch" | "torch.cuda", name) if storage_class(name).is_some() => Class::Storage(storage_class(name)),
        ("torch" | "torch.storage", "UntypedStorage" | "_UntypedStorage") => Class::Storage(None),
        ("torch", name) if dtype(name).is_some() => Class::Dtype(dtype(name).unwrap_or(Dtype::F32)),
        ("collections", "OrderedDict" | "defaultdict") => Class::Dict,
        ("__builtin__" | "builtins", "dict") => Class::Dict,
        ("torch", "Size") => Class::Size,

        ("torch", "device" | "Tensor" | "layout" | "strided" | "contiguous_format" | "channels_last") => Class::Data,
        ("torch", "per_tensor_affine" | "per_channel_affine" | "per_channel_affine_float_qparams") => Class::Data,
        ("torch.nn.parameter", "Parameter" | "Buffer") => Class::Data,
        ("torch.storage", "TypedStorage" | "_TypedStorage") => Class::Data,
        ("torch.serialization", "_get_layout") => Class::Data,
        ("torch.torch_version", "TorchVersion") => Class::Data,
        ("collections", "Counter" | "deque") => Class::Data,
        (
            "__builtin__" | "builtins",
            "set" | "frozenset" | "list" | "tuple" | "int" | "long" | "float" | "complex" | "bool" | "str" | "unicode"
            | "bytes" | "bytearray" | "slice" | "range" | "object",
        ) => Class::Data,
        // How protocol 2 writes bytes and plain objects.
        ("_codecs", "encode") | ("copy_reg" | "copyreg", "_reconstructor") => Class::Data,
        ("argparse", "Namespace") | ("types", "SimpleNamespace") => Class::Data,
        ("datetime", "datetime" | "date" | "time" | "timedelta") => Class::Data,
        (
            "pathlib" | "pathlib._local",
            "Path" | "PurePath" | "PosixPath" | "PurePosixPath" | "WindowsPath" | "PureWindowsPath",
        ) => Class::Data,
        ("numpy", "dtype" | "ndarray") => Class::Data,
        ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar" | "_reconstruct") => Class::Data,
        ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => Class::Data,
        ("numpy.dtypes", name) if name.ends_with("DType") => Class::Data,
        _ => {
            let class: String = format!("{module}.{name}")
                .escape_debug()
                .take(MAX_LINE as usize)
                .collect();
            return Err(Problem::Foreign(class));
        }
    };
    Ok(found)
}

const COMPLEX: &str = "of complex numbers";
const QUANTISED: &str = "quantised";

fn storage_class(name: &str) -> Option<Dtype> {
    Some(match name.strip_suffix("Storage")? {
        "Float" => Dtype::F32,
        "Double" => Dtype::F64,
        "Half" => Dtype::F16,
        "BFloat16" => Dtype::BF16,
        "Byte" | "Char" | "Bool" => Dtype::Integer(1),
        "Short" => Dtype::Integer(2),
        "Int" => Dtype::Integer(4),
        "Long" => Dtype::Integer(8),
        "ComplexFloat" => Dtype::Other(COMPLEX, 8),
        "ComplexDouble" => Dtype::Other(COMPLEX, 16),
        "QInt8" | "QUInt8" | "QUInt4x2" | "QUInt2x4" => Dtype::Other(QUANTISED, 1),
        "QInt32" => Dtype::Other(QUANTISED, 4),
        _ => return None,
    })
}

fn dtype(name: &str) -> Option<Dtype> {
    Some(match name {
        "float32" | "float" => Dtype::F32,
        "float64" | "double" => Dtype::F64,
        "float16" | "half" => Dtype::F16,
        "bfloat16" => Dtype::BF16,
        "uint8" | "int8" | "bool" => Dtype::Integer(1),
        "uint16" | "int16" | "short" => Dtype::Integer(2),
        "uint32" | "int32" | "int" => Dtype::Integer(4),
        "uint64" | "int64" | "long" => Dtype::Integer(8),
        "complex32" | "chalf" => Dtype::Other(COMPLEX, 4),
        "complex64" | "cfloat" => Dtype::Other(COMPLEX, 8),
        "complex128" | "cdouble" => Dtype::Other(COMPLEX, 16),
        "qint8" | "quint8" | "quint4x2" | "quint2x4" => Dtype::Other(QUANTISED, 1),
        "qint32" => Dtype::Other(QUANTISED, 4),
        name if name.starts_with("float8_") || name.starts_with("float4_") => {
            Dtype::Other("of floats of less than 16 bits", 1)
        }
        _ => return None,
    })
}
