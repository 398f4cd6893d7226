//! What the pickles of `torch.save` mean.
//!
//! A name is looked up in a list: what builds a tensor is understood, what is harmless in a training checkpoint becomes a value
//! without content, and any other name ends the reading.

use std::io::Read;
use std::rc::Rc;

use genus_files::pickle::{Pickle, Value, read_past};

use super::problem::Problem;
use super::storage::{Dtype, TensorEntry, TensorView};

/// The longest pickle; those of the largest networks stay below a tenth.
pub(super) const MAX_BYTES: u64 = 1 << 28;
/// The most dimensions of a tensor.
const MAX_DIMS: usize = 16;
/// The longest key of a storage; they are numbers.
const MAX_KEY: usize = 64;
/// How deep a tensor or a dictionary may be wrapped in calls.
const MAX_WRAPS: usize = 8;

/// What a global name stands for.
#[derive(Clone, Copy, Debug)]
enum GlobalClass {
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

/// A pickle of `torch.save`.
#[derive(Debug)]
pub(super) struct Checkpoint(Pickle);

impl Checkpoint {
    /// Reads a pickle up to its end, leaving the reader behind it.
    pub(super) fn read(reader: &mut impl Read) -> Result<Self, Problem> {
        let accept = |module: &str, name: &str| class(module, name).is_some();
        Ok(Self(Pickle::read(&mut reader.take(MAX_BYTES), read_past, accept)?))
    }

    pub(super) fn root(&self) -> Value {
        self.0.root()
    }

    pub(super) fn text(&self, value: Value) -> Option<&str> {
        self.0.text(value)
    }

    pub(super) fn list(&self, value: Value) -> Option<&[Value]> {
        self.0.items(value).filter(|_| matches!(value, Value::List(_)))
    }

    /// The keys and values of a dictionary of any kind; nothing of what is none.
    pub(super) fn entries(&self, value: Value) -> Result<Option<Vec<(Value, Value)>>, Problem> {
        self.entries_within(value, MAX_WRAPS)
    }

    fn entries_within(&self, value: Value, wraps: usize) -> Result<Option<Vec<(Value, Value)>>, Problem> {
        if let Some(entries) = self.0.entries(value) {
            return Ok(Some(entries.to_vec()));
        }
        let Some(call) = self.0.call(value) else {
            return Ok(None);
        };
        if !matches!(self.class(call.function), Some(GlobalClass::Dict)) || wraps == 0 {
            return Ok(None);
        }
        let mut entries = match self.argument(call.arguments, 0) {
            // A dictionary that is written as a list of pairs, as Python 2 did.
            Some(list @ Value::List(_)) => {
                let pair = |&pair: &Value| match self.0.items(pair) {
                    Some(&[key, value]) => Ok((key, value)),
                    _ => Err(malformed("an entry that is no pair")),
                };
                let pairs = self.0.items(list).unwrap_or_default();
                pairs.iter().map(pair).collect::<Result<_, _>>()?
            }
            Some(dict) => self.entries_within(dict, wraps - 1)?.unwrap_or_default(),
            None => Vec::new(),
        };
        entries.extend(self.0.entries(call.items).unwrap_or_default());
        Ok(Some(entries))
    }

    /// The value under a text key; as in Python the last one counts.
    pub(super) fn item(&self, dict: Value, key: &str) -> Result<Option<Value>, Problem> {
        let entries = self.entries(dict)?.unwrap_or_default();
        let found = entries.iter().rev().find(|&&(k, _)| self.0.text(k) == Some(key));
        Ok(found.map(|&(_, value)| value))
    }

    /// A tensor of floats, or one that cannot be used; nothing where a value is not a tensor or one of integers.
    pub(super) fn leaf(&self, value: Value) -> Result<Option<TensorEntry>, Problem> {
        match self.0.call(value) {
            Some(call) => self.built(call.function, call.arguments, MAX_WRAPS),
            None => Ok(None),
        }
    }

    /// What a function builds of its arguments.
    fn built(&self, function: Value, arguments: Value, wraps: usize) -> Result<Option<TensorEntry>, Problem> {
        let argument = |i: usize| self.argument(arguments, i);
        let Some(class) = self.class(function) else {
            return Err(malformed("a call of what is no function"));
        };
        let view = match class {
            GlobalClass::Tensor => self.view(arguments, None)?,
            GlobalClass::TypedTensor => match argument(6).and_then(|dtype| self.class(dtype)) {
                Some(GlobalClass::Dtype(dtype)) => self.view(arguments, Some(dtype))?,
                _ => return Err(malformed("a tensor without a type")),
            },
            GlobalClass::Parameter | GlobalClass::FromType if wraps == 0 => {
                return Err(malformed("a tensor in too many wrappers"));
            }
            GlobalClass::Parameter => match argument(0).and_then(|tensor| self.0.call(tensor)) {
                Some(tensor) => return self.built(tensor.function, tensor.arguments, wraps - 1),
                None => return Err(malformed("a parameter without a tensor")),
            },
            GlobalClass::FromType => match (argument(0), argument(2)) {
                (Some(function), Some(arguments)) => return self.built(function, arguments, wraps - 1),
                _ => return Err(malformed("a tensor without a function that builds it")),
            },
            GlobalClass::Unsupported(kind) => return Ok(Some(TensorEntry::Unsupported(kind))),
            GlobalClass::Size
            | GlobalClass::Dict
            | GlobalClass::Storage(_)
            | GlobalClass::Dtype(_)
            | GlobalClass::Data => return Ok(None),
        };
        Ok(TensorEntry::of(view))
    }

    /// The view of the arguments of a function that builds a tensor.
    fn view(&self, arguments: Value, dtype: Option<Dtype>) -> Result<TensorView, Problem> {
        let argument = |i: usize| self.argument(arguments, i);
        let (Some(id), Some(Value::Int(offset)), Some(shape), Some(strides)) = (
            argument(0).and_then(|storage| self.0.persistent_id(storage)),
            argument(1),
            argument(2),
            argument(3),
        ) else {
            return Err(malformed("a tensor without a storage or shape"));
        };
        let storage = self.storage(id)?;
        let (dtype, length) = match (storage.dtype, dtype) {
            (Some(own), None) => (own, storage.length),
            (Some(own), Some(dtype)) if own == dtype => (own, storage.length),
            (None, Some(dtype)) => (dtype, storage.length / dtype.size()),
            _ => return Err(malformed("a tensor without a type")),
        };
        let outside = || malformed("a tensor with a negative offset, length or stride, or with too many dimensions");
        let numbers = |value: Value| -> Result<Vec<u64>, Problem> {
            // The size of a tensor may be wrapped in a class of its own.
            let value = match self.0.call(value) {
                Some(call) if matches!(self.class(call.function), Some(GlobalClass::Size)) => {
                    self.argument(call.arguments, 0).unwrap_or(call.arguments)
                }
                _ => value,
            };
            let number = |&item: &Value| match item {
                Value::Int(int) => u64::try_from(int).map_err(|_| outside()),
                _ => Err(outside()),
            };
            match self.0.items(value) {
                Some(items) if items.len() <= MAX_DIMS => items.iter().map(number).collect(),
                _ => Err(outside()),
            }
        };
        let offset = u64::try_from(offset)
            .ok()
            .and_then(|offset| offset.checked_add(storage.start));
        Ok(TensorView {
            key: storage.key,
            dtype,
            length,
            offset: offset.ok_or_else(outside)?,
            shape: numbers(shape)?,
            strides: numbers(strides)?,
        })
    }

    /// All storages that are mentioned.
    pub(super) fn storages(&self) -> Result<Vec<Storage>, Problem> {
        self.0.persistent_ids().iter().map(|&id| self.storage(id)).collect()
    }

    /// The storage of a persistent id: `("storage", type, key, location, length)`, and in old files a sixth item where
    /// it is a part of another.
    fn storage(&self, id: Value) -> Result<Storage, Problem> {
        let wrong = || malformed("a storage that is not described");
        let items = self.0.items(id).ok_or_else(wrong)?;
        let (&[kind, class, key, _, Value::Int(length)], rest) = items.split_first_chunk::<5>().ok_or_else(wrong)?
        else {
            return Err(wrong());
        };
        let (Some("storage"), Some(GlobalClass::Storage(dtype)), Some(key)) =
            (self.0.text(kind), self.class(class), self.0.text(key))
        else {
            return Err(wrong());
        };
        let start = match *rest {
            [] | [Value::None] => 0,
            [part] => match self.0.items(part) {
                Some(&[_, Value::Int(start), Value::Int(_)]) => u64::try_from(start).map_err(|_| wrong())?,
                _ => return Err(wrong()),
            },
            _ => return Err(wrong()),
        };
        // Copied for every mention, so a long one would grow.
        if key.len() > MAX_KEY {
            return Err(wrong());
        }
        Ok(Storage {
            key: key.into(),
            dtype,
            length: u64::try_from(length).map_err(|_| wrong())?,
            start,
        })
    }

    fn class(&self, value: Value) -> Option<GlobalClass> {
        let global = self.0.global(value)?;
        class(&global.module, &global.name)
    }

    fn argument(&self, arguments: Value, index: usize) -> Option<Value> {
        self.0.items(arguments)?.get(index).copied()
    }
}

fn malformed(what: &str) -> Problem {
    Problem::Malformed(format!("its pickle has {what}"))
}

/// The list of what a pickle may name.
fn class(module: &str, name: &str) -> Option<GlobalClass> {
    Some(match (module, name) {
        ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => GlobalClass::Tensor,
        ("torch._utils", "_rebuild_tensor_v3") => GlobalClass::TypedTensor,
        ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => GlobalClass::Parameter,
        ("torch._tensor", "_rebuild_from_type" | "_rebuild_from_type_v2") => GlobalClass::FromType,
        ("torch._utils", "_rebuild_qtensor") => GlobalClass::Unsupported("quantised"),
        ("torch._utils", "_rebuild_sparse_tensor" | "_rebuild_sparse_csr_tensor") => GlobalClass::Unsupported("sparse"),
        ("torch._utils", "_rebuild_nested_tensor") => GlobalClass::Unsupported("nested"),
        ("torch._utils", "_rebuild_meta_tensor_no_storage") => {
            GlobalClass::Unsupported("without values (on the meta device)")
        }
        ("torch" | "torch.cuda", name) if storage_class(name).is_some() => GlobalClass::Storage(storage_class(name)),
        ("torch" | "torch.storage", "UntypedStorage" | "_UntypedStorage") => GlobalClass::Storage(None),
        ("torch", name) if dtype(name).is_some() => GlobalClass::Dtype(dtype(name).unwrap_or(Dtype::F32)),
        ("collections", "OrderedDict" | "defaultdict") => GlobalClass::Dict,
        ("__builtin__" | "builtins", "dict") => GlobalClass::Dict,
        ("torch", "Size") => GlobalClass::Size,

        ("torch", "device" | "Tensor" | "layout" | "strided" | "contiguous_format" | "channels_last") => {
            GlobalClass::Data
        }
        ("torch", "per_tensor_affine" | "per_channel_affine" | "per_channel_affine_float_qparams") => GlobalClass::Data,
        ("torch.nn.parameter", "Parameter" | "Buffer") => GlobalClass::Data,
        ("torch.storage", "TypedStorage" | "_TypedStorage") => GlobalClass::Data,
        ("torch.serialization", "_get_layout") => GlobalClass::Data,
        ("torch.torch_version", "TorchVersion") => GlobalClass::Data,
        ("collections", "Counter" | "deque") => GlobalClass::Data,
        (
            "__builtin__" | "builtins",
            "set" | "frozenset" | "list" | "tuple" | "int" | "long" | "float" | "complex" | "bool" | "str" | "unicode"
            | "bytes" | "bytearray" | "slice" | "range" | "object",
        ) => GlobalClass::Data,
        // How protocol 2 writes bytes and plain objects.
        ("_codecs", "encode") | ("copy_reg" | "copyreg", "_reconstructor") => GlobalClass::Data,
        ("argparse", "Namespace") | ("types", "SimpleNamespace") => GlobalClass::Data,
        ("datetime", "datetime" | "date" | "time" | "timedelta") => GlobalClass::Data,
        (
            "pathlib" | "pathlib._local",
            "Path" | "PurePath" | "PosixPath" | "PurePosixPath" | "WindowsPath" | "PureWindowsPath",
        ) => GlobalClass::Data,
        ("numpy", "dtype" | "ndarray") => GlobalClass::Data,
        ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar" | "_reconstruct") => GlobalClass::Data,
        ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => GlobalClass::Data,
        ("numpy.dtypes", name) if name.ends_with("DType") => GlobalClass::Data,
        _ => return None,
    })
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
