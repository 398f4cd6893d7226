//! Which instructions the engine uses.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The environment variable that chooses.
const VARIABLE: &str = "GENUS_ISA";

/// A kind of instructions that networks run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// AVX-512 with the tile registers of AMX for products of bf16.
    Amx,
    /// AVX-512 with products of bf16: half the precision of a number's weight, twice the speed.
    Avx512Bf16,
    /// AVX-512.
    Avx512,
    /// AVX2 with fused multiply-adds.
    Avx2,
    /// Nothing in particular: plain numbers here, and the tensor library where networks run.
    Portable,
}

/// How precisely a network is computed.
///
/// Features of different precisions have different fingerprints and are never compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Numbers of 32 bits throughout.
    #[default]
    F32,
    /// Factors of matrix products of 16 bits, sums of 32.
    Bf16,
}

/// Why networks cannot run as asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IsaError {
    /// A name that is none.
    #[error("{VARIABLE} is `{name}`; it may be amx, avx512bf16, avx512, avx2 or portable")]
    Unknown {
        /// The name.
        name: String,
    },
    /// Instructions that this processor does not have.
    #[error("{VARIABLE} is {isa}, which this processor does not have; unset it to use the best one available")]
    Missing {
        /// The instructions.
        isa: Isa,
    },
    /// A precision that the instructions asked for do not have.
    #[error("{VARIABLE} is {isa}, which does not compute in {precision}; use only one of the two")]
    Precision {
        /// The instructions.
        isa: Isa,
        /// The precision.
        precision: Precision,
    },
    /// A precision that this processor does not have.
    #[error("this processor has no products of bf16 (AMX or AVX512-BF16); use f32")]
    NoBf16,
}

impl Isa {
    /// All of them, the fastest first.
    pub const ALL: [Isa; 5] = [Isa::Amx, Isa::Avx512Bf16, Isa::Avx512, Isa::Avx2, Isa::Portable];

    /// The name, as in `GENUS_ISA`.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Amx => "amx",
            Isa::Avx512Bf16 => "avx512bf16",
            Isa::Avx512 => "avx512",
            Isa::Avx2 => "avx2",
            Isa::Portable => "portable",
        }
    }

    /// How precisely it computes.
    pub fn precision(self) -> Precision {
        match self {
            Isa::Amx | Isa::Avx512Bf16 => Precision::Bf16,
            Isa::Avx512 | Isa::Avx2 | Isa::Portable => Precision::F32,
        }
    }

    /// Whether this processor has it.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return match self {
            Isa::Amx => crate::amx::is_available(),
            Isa::Avx512Bf16 => is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16"),
            Isa::Avx512 => is_x86_feature_detected!("avx512f"),
            Isa::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            Isa::Portable => true,
        };
        #[cfg(not(target_arch = "x86_64"))]
        return self == Isa::Portable;
    }

    /// The fastest that this processor has and that computes so precisely.
    pub fn best(precision: Precision) -> Result<Self, IsaError> {
        let fits = |isa: &Isa| isa.precision() == precision && isa.is_available();
        Isa::ALL.into_iter().find(fits).ok_or(IsaError::NoBf16)
    }

    /// What `GENUS_ISA` names, or else the best of a precision. Where neither is given it is f32: the features of an image must
    /// not depend on the machine that computes them.
    pub fn from_env(precision: Option<Precision>) -> Result<Self, IsaError> {
        let Some(name) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) else {
            return Self::best(precision.unwrap_or_default());
        };
        let isa: Self = name.to_string_lossy().parse()?;
        if !isa.is_available() {
            return Err(IsaError::Missing { isa });
        }
        match precision {
            Some(precision) if precision != isa.precision() => Err(IsaError::Precision { isa, precision }),
            _ => Ok(isa),
        }
    }

    /// The one with the same registers that computes in f32.
    pub fn single(self) -> Self {
        match self {
            Isa::Amx | Isa::Avx512Bf16 => Isa::Avx512,
            other => other,
        }
    }

    /// Puts numbers down as words, and zeros after them.
    pub fn fill_words(self, mut numbers: impl Iterator<Item = f32>, words: &mut [f32]) {
        let mut next = || numbers.next().unwrap_or(0.0);
        match self.precision() {
            Precision::F32 => words.fill_with(next),
            Precision::Bf16 => words.fill_with(|| {
                let [low, high] = [next(), next()].map(|number| u32::from(half::bf16::from_f32(number).to_bits()));
                f32::from_bits(low | high << 16)
            }),
        }
    }

    /// How many words so many numbers take as a side of a product: on AMX whole rows of its registers.
    pub fn words(self, numbers: usize) -> usize {
        match self {
            Isa::Amx => numbers.div_ceil(32) * 16,
            Isa::Avx512Bf16 => numbers.div_ceil(2),
            Isa::Avx512 | Isa::Avx2 | Isa::Portable => numbers,
        }
    }

    /// The numbers of a register.
    pub fn lanes(self) -> usize {
        match self {
            Isa::Amx | Isa::Avx512Bf16 | Isa::Avx512 => 16,
            Isa::Avx2 => 8,
            Isa::Portable => 4,
        }
    }

    /// The most rows of a tile of a product.
    pub fn tile_rows(self) -> usize {
        match self {
            Isa::Amx => 32,
            Isa::Avx512Bf16 | Isa::Avx512 => 14,
            Isa::Avx2 => 6,
            Isa::Portable => 4,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isa {
    type Err = IsaError;

    fn from_str(name: &str) -> Result<Self, IsaError> {
        let found = Isa::ALL.into_iter().find(|isa| isa.name() == name);
        found.ok_or_else(|| IsaError::Unknown { name: name.to_owned() })
    }
}

impl FromStr for Precision {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, &'static str> {
        match name {
            "f32" => Ok(Precision::F32),
            "bf16" => Ok(Precision::Bf16),
            _ => Err("it is f32 or bf16"),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
        })
    }
}
