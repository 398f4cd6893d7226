//! Huffman codes and the bits they are read from.

use super::{JpegError, ZIGZAG};

/// How many bits are looked up at once; nearly all codes of real images are shorter.
const LOOK: u32 = 10;

/// A Huffman table as it is decoded from.
#[derive(Clone)]
pub(super) struct Huffman {
    /// By the next bits: the length of their code and its symbol; a length of zero is a longer code.
    look: Box<[(u8, u8); 1 << LOOK]>,
    /// By the next bits: value of a coefficient, zeros before it, and the length of both; zero when they do not fit.
    fast: Box<[(i16, u8, u8); 1 << LOOK]>,
    /// By length: the first code that is longer, left-aligned to 16 bits, and what added to a code gives its symbol.
    ends: [u32; 17],
    offsets: [i32; 17],
    symbols: Vec<u8>,
}

impl Huffman {
    /// Builds a table from the numbers of codes of 1 to 16 bits and the symbols in the order of their codes.
    pub(super) fn new(counts: &[u8; 16], symbols: &[u8]) -> Result<Self, JpegError> {
        let mut look = Box::new([(0, 0); 1 << LOOK]);
        let mut fast = Box::new([(0, 0, 0); 1 << LOOK]);
        let (mut ends, mut offsets) = ([0; 17], [0; 17]);
        let (mut code, mut index) = (0u32, 0usize);
        for length in 1..=16u32 {
            offsets[length as usize] = index as i32 - code as i32;
            for _ in 0..counts[length as usize - 1] {
                if code >> length != 0 {
                    return Err(JpegError::Damaged("a Huffman table has more codes than there are"));
                }
                let symbol = symbols[index];
                if length <= LOOK {
                    let shift = LOOK - length;
                    for rest in 0..1u32 << shift {
                        let at = (code << shift | rest) as usize;
                        look[at] = (length as u8, symbol);
                        let size = u32::from(symbol & 15);
                        if size > 0 && length + size <= LOOK {
                            let bits = rest >> (shift - size);
                            fast[at] = (extend(bits, size) as i16, symbol >> 4, (length + size) as u8);
                        }
                    }
                }
                code += 1;
                index += 1;
            }
            ends[length as usize] = code << (16 - length);
            code <<= 1;
        }
        Ok(Self {
            look,
            fast,
            ends,
            offsets,
            symbols: symbols.to_vec(),
        })
    }

    /// Reads a symbol; the caller has refilled.
    #[inline(always)]
    fn symbol(&self, bits: &mut Bits<'_>) -> Result<u8, JpegError> {
        let (length, symbol) = self.look[bits.peek(LOOK) as usize];
        if length != 0 {
            bits.skip(length.into());
            return Ok(symbol);
        }
        self.long_symbol(bits)
    }

    #[cold]
    fn long_symbol(&self, bits: &mut Bits<'_>) -> Result<u8, JpegError> {
        let next = bits.peek(16);
        for length in LOOK + 1..=16 {
            if next < self.ends[length as usize] {
                bits.skip(length);
                let index = (next >> (16 - length)) as i32 + self.offsets[length as usize];
                let symbol = usize::try_from(index).ok().and_then(|index| self.symbols.get(index));
                return symbol
                    .copied()
                    .ok_or(JpegError::Damaged("a Huffman code without a meaning"));
            }
        }
        Err(JpegError::Damaged("a Huffman code without a meaning"))
    }
}

/// The bits of a scan, without the zeros that are stuffed after 0xFF; a marker ends them.
pub(super) struct Bits<'a> {
    data: &'a [u8],
    position: usize,
    /// The next bits, from the top.
    window: u64,
    /// How many bits of the window count.
    length: u32,
    /// How many of those were made up because the data had ended.
    made_up: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(data: &'a [u8], position: usize) -> Self {
        Self {
            data,
            position,
            window: 0,
            length: 0,
            made_up: 0,
        }
    }

    /// Where the data continue after the bits; whole bytes that were not used are skipped along with them.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Fails when bits were used that the data did not have.
    #[inline(always)]
    pub(super) fn check(&self) -> Result<(), JpegError> {
        if self.made_up <= self.length {
            return Ok(());
        }
        Err(match self.position >= self.data.len() {
            true => JpegError::Truncated,
            false => JpegError::Damaged("a scan ends before its last block"),
        })
    }

    /// Leaves what remains of a restart interval and reads its marker.
    pub(super) fn restart(&mut self, number: u8) -> Result<(), JpegError> {
        let marker = super::next_marker(self.data, &mut self.position)?;
        if marker != 0xD0 | number {
            return Err(JpegError::Damaged("a restart marker is missing"));
        }
        *self = Self::new(self.data, self.position);
        Ok(())
    }

    /// Makes 32 bits or more available.
    #[inline(always)]
    fn refill(&mut self) {
        if self.length >= 32 {
            return;
        }
        if let Some(next) = self.data.get(self.position..).and_then(|rest| rest.first_chunk::<8>()) {
            let word = u64::from_be_bytes(*next);
            let inverted = !word;
            // No byte is 0xFF: no byte of the inverse is zero.
            if inverted.wrapping_sub(0x0101_0101_0101_0101) & !inverted & 0x8080_8080_8080_8080 == 0 {
                // Bits below `length` may get in twice, each time the same.
                self.window |= word >> self.length;
                let bytes = (64 - self.length) / 8;
                self.position += bytes as usize;
                self.length += bytes * 8;
                return;
            }
        }
        self.refill_bytes();
    }

    fn refill_bytes(&mut self) {
        while self.length <= 56 {
            let byte = match (self.data.get(self.position), self.data.get(self.position + 1)) {
                (Some(0xFF), Some(0)) => {
                    self.position += 2;
                    0xFF
                }
                // A marker, or the end: whoever uses these zeros is told by `check`.
                (Some(0xFF), _) | (None, _) => {
                    // A last 0xFF without a companion is the end as well.
                    if self.position + 1 == self.data.len() {
                        self.position = self.data.len();
                    }
                    self.made_up += 8;
                    0
                }
                (Some(&byte), _) => {
                    self.position += 1;
                    byte
                }
            };
            self.window |= u64::from(byte) << (56 - self.length);
            self.length += 8;
        }
    }

    /// The next `count` bits, 1 to 32.
    #[inline(always)]
    fn peek(&self, count: u32) -> u32 {
        (self.window >> (64 - count)) as u32
    }

    #[inline(always)]
    fn skip(&mut self, count: u32) {
        self.window <<= count;
        self.length -= count;
    }

    #[inline(always)]
    fn take(&mut self, count: u32) -> u32 {
        if count == 0 {
            return 0;
        }
        let value = self.peek(count);
        self.skip(count);
        value
    }

    #[inline(always)]
    fn flag(&mut self) -> bool {
        self.refill();
        self.take(1) == 1
    }
}

/// The value of a coefficient from its bits: those with a leading zero are negative.
#[inline(always)]
fn extend(bits: u32, size: u32) -> i32 {
    let bits = bits as i32;
    if size > 0 && bits >> (size - 1) == 0 {
        bits - (1 << size) + 1
    } else {
        bits
    }
}

/// Reads the difference of a DC coefficient to the one before and gives the sum.
#[inline(always)]
fn direct(bits: &mut Bits<'_>, table: &Huffman, previous: &mut i32) -> Result<i32, JpegError> {
    bits.refill();
    let size = u32::from(table.symbol(bits)?);
    if size > 15 {
        return Err(JpegError::Damaged("a DC coefficient of more than 15 bits"));
    }
    let difference = extend(bits.take(size), size);
    *previous = previous.wrapping_add(difference);
    Ok(*previous)
}

/// Reads a block of a sequential image; says whether more than its first coefficient was there.
pub(super) fn sequential_block(
    bits: &mut Bits<'_>,
    dc: &Huffman,
    ac: &Huffman,
    previous: &mut i32,
    block: &mut [i16; 64],
) -> Result<bool, JpegError> {
    block[0] = direct(bits, dc, previous)? as i16;
    let mut at = 1;
    while at < 64 {
        bits.refill();
        let (value, zeros, length) = ac.fast[bits.peek(LOOK) as usize];
        let value = if length != 0 {
            bits.skip(length.into());
            at += usize::from(zeros);
            value
        } else {
            let symbol = ac.symbol(bits)?;
            let size = u32::from(symbol & 15);
            if size == 0 {
                if symbol != 0xF0 {
                    break;
                }
                at += 16;
                continue;
            }
            at += usize::from(symbol >> 4);
            extend(bits.take(size), size) as i16
        };
        let Some(&place) = ZIGZAG.get(at) else {
            return Err(JpegError::Damaged("a block of more than 64 coefficients"));
        };
        block[usize::from(place & 63)] = value;
        at += 1;
    }
    bits.check()?;
    Ok(at > 1)
}

/// What a scan of a progressive image adds: which coefficients, and which of their bits.
#[derive(Clone, Copy)]
pub(super) struct SpectralBand {
    pub(super) first: usize,
    pub(super) last: usize,
    /// Whether bits of the coefficients came before.
    pub(super) refines: bool,
    pub(super) shift: u32,
}

/// Reads what a scan of a progressive image has on the first coefficient of a block.
pub(super) fn progressive_direct(
    bits: &mut Bits<'_>,
    table: Option<&Huffman>,
    band: SpectralBand,
    previous: &mut i32,
    block: &mut [i16; 64],
) -> Result<(), JpegError> {
    match table {
        Some(table) => block[0] = direct(bits, table, previous)?.wrapping_shl(band.shift) as i16,
        None if bits.flag() => block[0] |= 1 << band.shift,
        None => {}
    }
    bits.check()
}

/// Reads what a scan of a progressive image has on the other coefficients of a block.
///
/// `ended` counts the blocks to come that have nothing new in this scan.
pub(super) fn progressive_band(
    bits: &mut Bits<'_>,
    table: &Huffman,
    band: SpectralBand,
    ended: &mut u32,
    block: &mut [i16; 64],
) -> Result<(), JpegError> {
    if band.refines {
        refine_band(bits, table, band, ended, block)?;
        return bits.check();
    }
    if *ended > 0 {
        *ended -= 1;
        return Ok(());
    }
    let mut at = band.first;
    while at <= band.last {
        bits.refill();
        let (value, zeros, length) = table.fast[bits.peek(LOOK) as usize];
        let value = if length != 0 {
            bits.skip(length.into());
            at += usize::from(zeros);
            i32::from(value)
        } else {
            let symbol = table.symbol(bits)?;
            let (zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            if size == 0 {
                if zeros < 15 {
                    *ended = (1 << zeros) - 1 + bits.take(zeros);
                    break;
                }
                at += 16;
                continue;
            }
            at += zeros as usize;
            extend(bits.take(size), size)
        };
        if at > band.last {
            return Err(JpegError::Damaged("a block of more coefficients than its scan"));
        }
        block[usize::from(ZIGZAG[at])] = value.wrapping_shl(band.shift) as i16;
        at += 1;
    }
    bits.check()
}

fn refine_band(
    bits: &mut Bits<'_>,
    table: &Huffman,
    band: SpectralBand,
    ended: &mut u32,
    block: &mut [i16; 64],
) -> Result<(), JpegError> {
    let (plus, minus) = (1i16 << band.shift, (-1i16) << band.shift);
    // Coefficients that are there already get a bit each; those that are not are counted off.
    let pass = |bits: &mut Bits<'_>, block: &mut [i16; 64], mut at: usize, mut zeros: u32| {
        while at <= band.last {
            let value = &mut block[usize::from(ZIGZAG[at])];
            if *value != 0 {
                if bits.flag() && *value & plus == 0 {
                    *value = value.wrapping_add(if *value > 0 { plus } else { minus });
                }
            } else if zeros == 0 {
                break;
            } else {
                zeros -= 1;
            }
            at += 1;
        }
        at
    };
    let mut at = band.first;
    if *ended == 0 {
        while at <= band.last {
            bits.refill();
            let symbol = table.symbol(bits)?;
            let (zeros, size) = (u32::from(symbol >> 4), symbol & 15);
            if size == 0 && zeros < 15 {
                *ended = (1 << zeros) + bits.take(zeros);
                break;
            }
            let new = match size {
                0 => 0,
                _ if bits.flag() => plus,
                _ => minus,
            };
            at = pass(bits, block, at, zeros);
            if new != 0 {
                if at > band.last {
                    return Err(JpegError::Damaged("a block of more coefficients than its scan"));
                }
                block[usize::from(ZIGZAG[at])] = new;
            }
            at += 1;
        }
    }
    if *ended > 0 {
        pass(bits, block, at, u32::MAX);
        *ended -= 1;
    }
    Ok(())
}
