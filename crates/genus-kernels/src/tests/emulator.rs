//! The tile registers of AMX for processors without them.
//!
//! To such a processor their instructions are illegal, and it says so with a signal. The handler here decodes the instruction, does
//! what the processor's manual says that it does, and goes on after it. So the very code that runs on real tiles is tested
//! anywhere: what it reads and writes, and how it divides registers, is held against the manual's rules.

use std::cell::RefCell;
use std::sync::Once;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use libc::{c_int, c_void, siginfo_t, ucontext_t};

/// The rows of a register, and the words of a row.
const SIDE: usize = 16;

/// The registers of a thread, and their rows and words; none when they are free.
struct Tiles {
    shapes: Option<[(usize, usize); 8]>,
    registers: [[[u32; SIDE]; SIDE]; 8],
}

thread_local! {
    static TILES: RefCell<Tiles> = const {
        RefCell::new(Tiles { shapes: None, registers: [[[0; SIDE]; SIDE]; 8] })
    };
}

/// Answers illegal instructions from now on.
pub(super) fn install() -> bool {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all zeros are an action without a handler; the handler that is put in has the shape that the flag asks for.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_illegal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            assert_eq!(libc::sigaction(libc::SIGILL, &action, std::ptr::null_mut()), 0);
        }
    });
    true
}

extern "C" fn on_illegal(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the system hands the state of the thread over, of which nobody else knows; the instruction was about to be run, so
    // it can be read, and no instruction is longer than fifteen bytes (a page of code does not end so near: every test binary
    // goes on after it).
    unsafe {
        let state = &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs;
        let at = state[libc::REG_RIP as usize] as u64;
        let code = std::slice::from_raw_parts(at as *const u8, 15);
        let instruction = Decoder::with_ip(64, code, at, DecoderOptions::NONE).decode();
        let done = TILES.with_borrow_mut(|tiles| tiles.run(&instruction, state));
        if !done {
            let what = instruction.mnemonic();
            eprintln!("an illegal instruction, or one that breaks the rules of tiles: {what:?}");
            libc::abort();
        }
        state[libc::REG_RIP as usize] = instruction.next_ip() as i64;
    }
}

/// Where a general register is in the state of a thread.
fn place(register: Register) -> usize {
    let place = match register {
        Register::RAX => libc::REG_RAX,
        Register::RBX => libc::REG_RBX,
        Register::RCX => libc::REG_RCX,
        Register::RDX => libc::REG_RDX,
        Register::RSI => libc::REG_RSI,
        Register::RDI => libc::REG_RDI,
        Register::RBP => libc::REG_RBP,
        Register::RSP => libc::REG_RSP,
        Register::R8 => libc::REG_R8,
        Register::R9 => libc::REG_R9,
        Register::R10 => libc::REG_R10,
        Register::R11 => libc::REG_R11,
        Register::R12 => libc::REG_R12,
        Register::R13 => libc::REG_R13,
        Register::R14 => libc::REG_R14,
        Register::R15 => libc::REG_R15,
        other => panic!("{other:?} in an address"),
    };
    place as usize
}

impl Tiles {
    /// Runs an instruction, or says that it may not be run.
    ///
    /// # Safety
    /// Its memory may be read or written.
    unsafe fn run(&mut self, instruction: &Instruction, state: &[i64]) -> bool {
        let value = |register: Register| match register {
            Register::None => 0,
            register => state[place(register)] as usize,
        };
        let base = value(instruction.memory_base()).wrapping_add(instruction.memory_displacement64() as usize);
        let stride = value(instruction.memory_index()) << instruction.memory_index_scale().trailing_zeros();
        let number = |operand: u32| instruction.op_register(operand) as usize - Register::TMM0 as usize;
        match instruction.mnemonic() {
            Mnemonic::Ldtilecfg => {
                // SAFETY: as the caller says.
                let bytes = unsafe { *(base as *const [u8; 64]) };
                let shape = |register: usize| {
                    let columns = u16::from_le_bytes([bytes[16 + 2 * register], bytes[17 + 2 * register]]);
                    (usize::from(bytes[48 + register]), usize::from(columns))
                };
                let fits = |(rows, bytes): (usize, usize)| {
                    rows <= SIDE && bytes <= 4 * SIDE && bytes.is_multiple_of(4) && (rows == 0) == (bytes == 0)
                };
                let free = (2..16).chain(32..48).chain(56..64).all(|at| bytes[at] == 0);
                let shapes: [_; 8] = std::array::from_fn(shape);
                if bytes[0] != 1 || bytes[1] != 0 || !free || !shapes.into_iter().all(fits) {
                    return false;
                }
                self.shapes = Some(shapes.map(|(rows, bytes)| (rows, bytes / 4)));
                self.registers = [[[0; SIDE]; SIDE]; 8];
                true
            }
            Mnemonic::Tilerelease => {
                self.shapes = None;
                true
            }
            _ => {
                let Some(shapes) = self.shapes else { return false };
                match instruction.mnemonic() {
                    Mnemonic::Tileloadd => {
                        let to = number(0);
                        let (rows, words) = shapes[to];
                        self.registers[to] = [[0; SIDE]; SIDE];
                        for (row, register) in self.registers[to].iter_mut().take(rows).enumerate() {
                            let from = base.wrapping_add(row.wrapping_mul(stride)) as *const u32;
                            for (at, word) in register.iter_mut().take(words).enumerate() {
                                // SAFETY: as the caller says.
                                *word = unsafe { from.add(at).read_unaligned() };
                            }
                        }
                        rows > 0
                    }
                    Mnemonic::Tilestored => {
                        let from = number(1);
                        let (rows, words) = shapes[from];
                        for (row, register) in self.registers[from].iter().take(rows).enumerate() {
                            let to = base.wrapping_add(row.wrapping_mul(stride)) as *mut u32;
                            for (at, word) in register.iter().take(words).enumerate() {
                                // SAFETY: as the caller says.
                                unsafe { to.add(at).write_unaligned(*word) };
                            }
                        }
                        rows > 0
                    }
                    Mnemonic::Tdpbf16ps => {
                        let [sums, left, right] = [0, 1, 2].map(number);
                        let ((rows, columns), (left_rows, depth), (right_rows, wide)) =
                            (shapes[sums], shapes[left], shapes[right]);
                        let fit = rows == left_rows && depth == right_rows && columns == wide && rows > 0;
                        if !fit || sums == left || sums == right || left == right {
                            return false;
                        }
                        let part = |word: u32, which: u32| flushed(f32::from_bits(word >> (16 * which) << 16));
                        for row in 0..rows {
                            for column in 0..columns {
                                // Even and odd terms by themselves, then both together, then to what was there.
                                let mut both = [0.0f32; 2];
                                for k in 0..depth {
                                    let words = [self.registers[left][row][k], self.registers[right][k][column]];
                                    for (which, sum) in both.iter_mut().enumerate() {
                                        let [a, b] = words.map(|word| part(word, which as u32));
                                        *sum = flushed(a.mul_add(b, *sum));
                                    }
                                }
                                let sum = &mut self.registers[sums][row][column];
                                let added = flushed(f32::from_bits(*sum)) + flushed(both[0] + both[1]);
                                *sum = flushed(added).to_bits();
                            }
                        }
                        true
                    }
                    _ => false,
                }
            }
        }
    }
}

/// Numbers too small to be normal are zeros to these instructions.
fn flushed(number: f32) -> f32 {
    if number.is_subnormal() {
        0.0f32.copysign(number)
    } else {
        number
    }
}
