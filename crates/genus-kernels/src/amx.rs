//! Products on the tile registers of AMX: sixteen rows of sixteen words each.
//!
//! They are written as assembly, for which stable Rust has no other names. A processor that says it has them is not believed
//! at once: the system must allow their use, and one product must come out right. (What the processor says about the sizes of
//! tiles is not asked at all: hypervisors hide it. All sizes here are those of palette 1, which every such processor has.)

use std::arch::asm;
use std::cell::Cell;
use std::sync::OnceLock;

use super::simd::{Avx512, Simd, TILES};
use super::tile::{Epilogue, LeftRows, Tile};

/// The rows of a tile register, and the words of a row.
pub(super) const SIDE: usize = 16;
/// The most rows of a product's tile: two registers.
pub(super) const ROWS: usize = 2 * SIDE;
/// The numbers of a row of sums: two registers.
const WIDE: usize = 2 * SIDE;
/// The bytes of a row of a register.
const ROW_BYTES: u16 = 64;

/// Whether tiles work here.
pub(super) fn is_available() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| (is_there() && is_allowed() || is_emulated()) && works())
}

/// Whether the processor says that it has tiles and products of bf16, and the system that it keeps them.
fn is_there() -> bool {
    use std::arch::x86_64::__cpuid_count;

    /// AMX-BF16 and AMX-TILE, in the fourth register of the seventh leaf.
    const FEATURES: u32 = 1 << 22 | 1 << 24;
    /// The two parts of the state of tiles.
    const STATE: u32 = 1 << 17 | 1 << 18;
    if !has_registers() || __cpuid_count(7, 0).edx & FEATURES != FEATURES {
        return false;
    }
    let kept: u32;
    // SAFETY: where the system has turned AVX-512 on, this instruction may be used; it reads a register of the system.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") kept, out("edx") _, options(nomem, nostack, preserves_flags));
    }
    kept & STATE == STATE
}

/// Whether the processor has what is used beside tiles.
fn has_registers() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16")
}

/// Asks the system to let this process use tiles.
#[cfg(target_os = "linux")]
fn is_allowed() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const REQUEST: i64 = 0x1023;
    const TILE_DATA: i64 = 18;
    let mut result = ARCH_PRCTL;
    // SAFETY: the call takes two numbers and touches no memory of this process; what the instruction overwrites is named.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") result,
            in("rdi") REQUEST,
            in("rsi") TILE_DATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result == 0
}

#[cfg(not(target_os = "linux"))]
fn is_allowed() -> bool {
    false
}

#[cfg(not(test))]
fn is_emulated() -> bool {
    false
}

/// In tests, tiles that the processor does not have are emulated.
#[cfg(test)]
fn is_emulated() -> bool {
    has_registers() && super::tests::emulate_tiles()
}

/// Whether a product comes out right: of small numbers, whose sums are exact.
fn works() -> bool {
    const STEPS: usize = 2;
    let number = |at: usize| (at * 7 % 13) as f32 - 6.0;
    let word = |at: usize| {
        let half = |at: usize| u32::from(half::bf16::from_f32(number(at)).to_bits());
        f32::from_bits(half(2 * at) | half(2 * at + 1) << 16)
    };
    let left: Vec<f32> = (0..ROWS * STEPS * SIDE).map(word).collect();
    let right: Vec<f32> = (0..STEPS * SIDE * WIDE).map(|at| word(at + 5)).collect();
    let bias: [f32; WIDE] = std::array::from_fn(number);
    let mut out = [0.0; ROWS * WIDE];
    let finish = Epilogue {
        bias: bias.as_ptr(),
        add: std::ptr::null(),
        add_stride: 0,
        limits: (f32::NEG_INFINITY, f32::INFINITY),
    };
    let of = Tile {
        rows: ROWS,
        registers: 2,
        left: LeftRows {
            at: left.as_ptr(),
            stride: STEPS * SIDE,
            offsets: &[0],
            len: STEPS * SIDE,
        },
        right: right.as_ptr(),
        finish,
        out: out.as_mut_ptr(),
        out_stride: WIDE,
    };
    let tiles = TileGuard;
    // SAFETY: the processor has AVX-512 and tiles, which the caller asked. The left side has all rows of two steps, the right side
    // the rows of two steps, the bias two registers and the result all rows of two registers.
    unsafe { tile(of) };
    drop(tiles);
    (0..ROWS * WIDE).all(|at| {
        let (row, column) = (at / WIDE, at % WIDE);
        let terms = (0..2 * STEPS * SIDE).map(|k| {
            let (k, part) = (k / 2, k % 2);
            number(2 * (row * STEPS * SIDE + k) + part) * number(2 * (k * WIDE + column + 5) + part)
        });
        out[at] == bias[column] + terms.sum::<f32>()
    })
}

/// How registers are divided, as the instruction takes it.
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    start: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

thread_local! {
    /// The rows that this thread's registers are divided for; 0 when they are free.
    static DIVIDED: Cell<usize> = const { Cell::new(0) };
}

/// Divides this thread's registers for tiles of so many rows, unless they are already.
///
/// Sums are in registers 0 and 1, and 2 and 3 for rows from the seventeenth on; the left side is in 4 and 5, the right in 6 and 7.
///
/// # Safety
/// The processor has tiles, and `rows` is from 1 to `ROWS`.
unsafe fn divide(rows: usize) {
    if DIVIDED.get() == rows {
        return;
    }
    let (upper, lower) = (rows.min(SIDE) as u8, rows.saturating_sub(SIDE) as u8);
    let mut division = TileConfig {
        palette: 1,
        start: 0,
        reserved: [0; 14],
        row_bytes: [0; 16],
        rows: [0; 16],
    };
    let registers = [upper, upper, lower, lower, upper, lower, SIDE as u8, SIDE as u8];
    for (register, rows) in registers.into_iter().enumerate() {
        division.rows[register] = rows;
        // A register that is not used has neither rows nor columns.
        division.row_bytes[register] = if rows > 0 { ROW_BYTES } else { 0 };
    }
    // SAFETY: the caller says that the instruction is there; it reads 64 bytes.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &division, options(nostack, preserves_flags, readonly)) };
    DIVIDED.set(rows);
}

/// Frees the registers at the end, so that the system does not carry them from thread to thread.
pub(super) struct TileGuard;

impl Drop for TileGuard {
    fn drop(&mut self) {
        if DIVIDED.replace(0) > 0 {
            // SAFETY: this thread has divided its registers, so that the processor has them.
            unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) };
        }
    }
}

/// The sums of a tile, two registers a row.
#[repr(C, align(64))]
struct TileSums([f32; ROWS * WIDE]);

/// The sums of one shape of tile. What is said of the lower rows or of the second register may be left out.
macro_rules! sums {
    ($of:ident, $sums:ident, [$($load:literal)*], [$($term:literal)*], $right:literal, [$($store:literal)*]) => {
        asm!(
            // Sums begin with the bias, which is the same for every row.
            "xor {step:e}, {step:e}",
            $($load,)*
            "test {pieces}, {pieces}",
            "jz 4f",
            "test {steps}, {steps}",
            "jz 4f",
            "2:",
            "mov {up}, qword ptr [{offsets}]",
            "lea {up}, [{at} + 4 * {up}]",
            "mov {down}, {stride}",
            "shl {down}, 4",
            "add {down}, {up}",
            "mov {step}, {steps}",
            "3:",
            $($term,)*
            "add {up}, 64",
            "add {down}, 64",
            $right,
            "dec {step}",
            "jnz 3b",
            "add {offsets}, 8",
            "dec {pieces}",
            "jnz 2b",
            "4:",
            "mov {step:e}, 128",
            $($store,)*
            at = in(reg) $of.left.at,
            stride = in(reg) 4 * $of.left.stride,
            offsets = inout(reg) $of.left.offsets.as_ptr() => _,
            pieces = inout(reg) $of.left.offsets.len() => _,
            steps = in(reg) $of.left.len / SIDE,
            right = inout(reg) $of.right => _,
            width = in(reg) 4 * SIDE * $of.registers,
            sums = in(reg) $sums,
            up = inout(reg) $of.finish.bias => _,
            down = out(reg) _,
            step = out(reg) _,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        )
    };
}

/// Computes a tile.
///
/// # Safety
/// As for [`Simd::tile`], with at most `ROWS` rows, a bias, and pieces of whole rows of a register; the processor has AVX-512 and
/// tiles, and a [`TileGuard`] is alive.
#[target_feature(enable = "avx512f,avx512bf16")]
#[inline(never)]
pub(super) unsafe fn tile(of: Tile) {
    let mut sums = std::mem::MaybeUninit::<TileSums>::uninit();
    let at: *mut f32 = sums.as_mut_ptr().cast();
    // SAFETY: the caller says that tiles are there and how many rows there are. Every step reads sixteen words of each row of the
    // left side, which begin at most sixteen words before the end of a piece, and sixteen rows of the right side's panel, as
    // many as a piece has words. The bias has as many registers as the panel. Sums are written for as many rows as there are,
    // with room for `ROWS`, and the very same are read again.
    unsafe {
        divide(of.rows);
        match (of.rows > SIDE, of.registers) {
            (true, 2) => sums!(of, at,
                [
                    "tileloadd tmm0, [{up} + {step}]" "tileloadd tmm1, [{up} + {step} + 64]"
                    "tileloadd tmm2, [{up} + {step}]" "tileloadd tmm3, [{up} + {step} + 64]"
                ],
                [
                    "tileloadd tmm6, [{right} + {width}]" "tileloadd tmm4, [{up} + {stride}]" "tdpbf16ps tmm0, tmm4, tmm6"
                    "tileloadd tmm7, [{right} + {width} + 64]" "tdpbf16ps tmm1, tmm4, tmm7"
                    "tileloadd tmm5, [{down} + {stride}]" "tdpbf16ps tmm2, tmm5, tmm6" "tdpbf16ps tmm3, tmm5, tmm7"
                ],
                "add {right}, 2048",
                [
                    "tilestored [{sums} + {step}], tmm0" "tilestored [{sums} + {step} + 64], tmm1"
                    "tilestored [{sums} + {step} + 2048], tmm2" "tilestored [{sums} + {step} + 2112], tmm3"
                ]
            ),
            (true, _) => sums!(of, at,
                ["tileloadd tmm0, [{up} + {step}]" "tileloadd tmm2, [{up} + {step}]"],
                [
                    "tileloadd tmm6, [{right} + {width}]" "tileloadd tmm4, [{up} + {stride}]" "tdpbf16ps tmm0, tmm4, tmm6"
                    "tileloadd tmm5, [{down} + {stride}]" "tdpbf16ps tmm2, tmm5, tmm6"
                ],
                "add {right}, 1024",
                ["tilestored [{sums} + {step}], tmm0" "tilestored [{sums} + {step} + 2048], tmm2"]
            ),
            (false, 2) => sums!(of, at,
                ["tileloadd tmm0, [{up} + {step}]" "tileloadd tmm1, [{up} + {step} + 64]"],
                [
                    "tileloadd tmm6, [{right} + {width}]" "tileloadd tmm4, [{up} + {stride}]" "tdpbf16ps tmm0, tmm4, tmm6"
                    "tileloadd tmm7, [{right} + {width} + 64]" "tdpbf16ps tmm1, tmm4, tmm7"
                ],
                "add {right}, 2048",
                ["tilestored [{sums} + {step}], tmm0" "tilestored [{sums} + {step} + 64], tmm1"]
            ),
            (false, _) => sums!(of, at,
                ["tileloadd tmm0, [{up} + {step}]"],
                ["tileloadd tmm6, [{right} + {width}]" "tileloadd tmm4, [{up} + {stride}]" "tdpbf16ps tmm0, tmm4, tmm6"],
                "add {right}, 1024",
                ["tilestored [{sums} + {step}], tmm0"]
            ),
        }
        for row in 0..of.rows {
            for register in 0..of.registers {
                let sum = Avx512::<TILES>::load(at.add(row * WIDE + register * SIDE));
                of.finish
                    .store::<Avx512<TILES>>(sum, row, register, of.out, of.out_stride);
            }
        }
    }
}
