//! The inverse cosine transform, to the bit as libjpeg's "islow" computes it.
//!
//! It is the factorisation of Loeffler, Ligtenberg and Moschytz in integers of 13 fractional bits, columns first. The
//! rotations are written out as sums of two products of 16-bit numbers, which gives the same integers and is what a
//! processor multiplies eight at a time.

/// 13 fractional bits of a constant.
const fn fix(value: f64) -> i32 {
    (value * 8192.0 + 0.5) as i32
}

/// Eight numbers of the same place of eight columns.
type Row = [i16; 8];

/// Turns eight columns at once, `SHIFT` bits less precise afterwards.
#[inline(always)]
fn columns<const SHIFT: u32>(rows: &[Row; 8]) -> [Row; 8] {
    let mut out = [[0; 8]; 8];
    for column in 0..8 {
        let at = |row: usize| i32::from(rows[row][column]);
        // Even places.
        let low = (at(0).wrapping_add(at(4))) << 13;
        let high = (at(0).wrapping_sub(at(4))) << 13;
        let (c2, c6) = (at(2), at(6));
        let even2 = c2 * fix(0.541196100) + c6 * (fix(0.541196100) - fix(1.847759065));
        let even3 = c2 * (fix(0.541196100) + fix(0.765366865)) + c6 * fix(0.541196100);
        let even = [
            low.wrapping_add(even3),
            high.wrapping_add(even2),
            high.wrapping_sub(even2),
            low.wrapping_sub(even3),
        ];
        // Odd places.
        let (c1, c3, c5, c7) = (at(1), at(3), at(5), at(7));
        let sum37 = i32::from(rows[3][column].wrapping_add(rows[7][column]));
        let sum15 = i32::from(rows[1][column].wrapping_add(rows[5][column]));
        let z3 = sum37 * (fix(1.175875602) - fix(1.961570560)) + sum15 * fix(1.175875602);
        let z4 = sum37 * fix(1.175875602) + sum15 * (fix(1.175875602) - fix(0.390180644));
        let odd = [
            (c1 * (fix(1.501321110) - fix(0.899976223)) - c7 * fix(0.899976223)).wrapping_add(z4),
            (c3 * (fix(3.072711026) - fix(2.562915447)) - c5 * fix(2.562915447)).wrapping_add(z3),
            (c5 * (fix(2.053119869) - fix(2.562915447)) - c3 * fix(2.562915447)).wrapping_add(z4),
            (c7 * (fix(0.298631336) - fix(0.899976223)) - c1 * fix(0.899976223)).wrapping_add(z3),
        ];
        for place in 0..4 {
            let round = |value: i32| (value.wrapping_add(1 << (SHIFT - 1)) >> SHIFT).clamp(-32768, 32767) as i16;
            out[place][column] = round(even[place].wrapping_add(odd[place]));
            out[7 - place][column] = round(even[place].wrapping_sub(odd[place]));
        }
    }
    out
}

fn transpose(rows: &[Row; 8]) -> [Row; 8] {
    let mut out = [[0; 8]; 8];
    for (row, values) in rows.iter().enumerate() {
        for (column, &value) in values.iter().enumerate() {
            out[column][row] = value;
        }
    }
    out
}

/// Writes the samples of a block of coefficients to the plane that starts at its corner.
pub(super) fn block(coefficients: &[i16; 64], quantization: &[i16; 64], plane: &mut [u8], stride: usize) {
    let mut rows = [[0; 8]; 8];
    for (row, values) in rows.iter_mut().enumerate() {
        for (column, value) in values.iter_mut().enumerate() {
            *value = coefficients[row * 8 + column].wrapping_mul(quantization[row * 8 + column]);
        }
    }
    let half = transpose(&columns::<11>(&rows));
    let samples = transpose(&columns::<18>(&half));
    for (row, samples) in samples.iter().enumerate() {
        for (out, &sample) in plane[row * stride..][..8].iter_mut().zip(samples) {
            *out = (sample.clamp(-128, 127) + 128) as u8;
        }
    }
}

/// Does what [`block`] does when all coefficients but the first are zero.
pub(super) fn flat(coefficient: i16, quantization: i16, plane: &mut [u8], stride: usize) {
    let value = i32::from(coefficient.wrapping_mul(quantization)) << 2;
    let sample = (((value.clamp(-32768, 32767) + 16) >> 5).clamp(-128, 127) + 128) as u8;
    for row in 0..8 {
        plane[row * stride..][..8].fill(sample);
    }
}
