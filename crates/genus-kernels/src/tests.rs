//! Every kernel beside its definition, on all that this processor has and on plain numbers.
//!
//! Under Miri only the latter run: it knows no vector instructions, but sees every access. Tiles of AMX are emulated where the
//! processor has none.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod emulator;

use proptest::prelude::*;

use super::*;

const CASES: u32 = if cfg!(miri) { 4 } else { 300 };

fn available() -> impl Iterator<Item = Isa> {
    let ours = |isa: &Isa| {
        if cfg!(miri) {
            *isa == Isa::Portable
        } else {
            isa.is_available()
        }
    };
    Isa::ALL.into_iter().filter(ours)
}

/// Has instructions for tiles answered by software from now on; whether that can be done here.
#[cfg(target_arch = "x86_64")]
pub(super) fn emulate_tiles() -> bool {
    #[cfg(target_os = "linux")]
    return emulator::install();
    #[cfg(not(target_os = "linux"))]
    return false;
}

#[test]
fn tiles_are_tested() {
    if cfg!(miri) || !Isa::Avx512Bf16.is_available() || !cfg!(target_os = "linux") {
        println!("skipped: tiles are emulated only on Linux and where there are instructions of bf16");
        return;
    }
    assert!(available().any(|isa| isa == Isa::Amx));
}

/// Made-up numbers from −1 to 1; `whole` ones have so few digits that bf16 keeps them as they are.
fn numbers(seed: u64, count: usize, whole: bool) -> Vec<f32> {
    let numbers = (0..count as u64).map(|at| {
        let mut z = seed.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z >> 40) as f64 / f64::from(1 << 23) - 1.0) as f32
    });
    numbers
        .map(|number| if whole { (number * 64.0).round() / 64.0 } else { number })
        .collect()
}

/// Puts rows of terms down as rows of words, `stride` apart and in pieces.
fn as_words(isa: Isa, rows: &[f32], [pieces, len]: [usize; 2], gap: usize, stride: usize) -> Buffer {
    let mut out = Buffer::zeros(rows.len() / (pieces * len) * stride + gap * pieces);
    let words = isa.words(len);
    for (row, terms) in rows.chunks(pieces * len).enumerate() {
        for (piece, terms) in terms.chunks(len).enumerate() {
            let to = &mut out[row * stride + piece * (words + gap)..][..words];
            isa.fill_words(terms.iter().copied(), to);
        }
    }
    out
}

/// A number of a row of words.
fn number(isa: Isa, words: &[f32], at: usize) -> f32 {
    match isa.precision() {
        Precision::F32 => words[at],
        Precision::Bf16 => f32::from_bits((words[at / 2].to_bits() >> (16 * (at % 2))) << 16),
    }
}

/// The probability that a normal number is below `x`, by Simpson's rule.
fn below(x: f64) -> f64 {
    const STEPS: usize = 2000;
    let bell = |t: f64| (-t * t / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let step = x / STEPS as f64;
    let inner: f64 = (1..STEPS)
        .map(|at| bell(step * at as f64) * if at % 2 == 1 { 4.0 } else { 2.0 })
        .sum();
    0.5 + step / 3.0 * (bell(0.0) + inner + bell(x))
}

#[derive(Clone, Debug)]
struct ProductCase {
    lines: usize,
    per_line: usize,
    pieces: usize,
    len: usize,
    columns: usize,
    gap: usize,
    added: usize,
    activation: Activation,
    seed: u64,
}

fn cases() -> impl Strategy<Value = ProductCase> {
    let activations = [Activation::None, Activation::Relu, Activation::Relu6];
    let size: usize = if cfg!(miri) { 9 } else { 90 };
    // A single row or term often enough.
    let few = move || prop_oneof![Just(1usize), 1..size];
    (
        (1usize..4, few(), 1usize..4, few(), few()),
        (0usize..3, 0usize..3, 0usize..3, any::<u64>()),
    )
        .prop_map(
            move |((lines, per_line, pieces, len, columns), (gap, added, activation, seed))| ProductCase {
                lines,
                per_line,
                pieces,
                len,
                columns,
                gap,
                added,
                activation: activations[activation],
                seed,
            },
        )
}

/// What a product must be, in f64, and the sum of the sizes of its terms.
fn expected(case: &ProductCase, left: &[f32], right: &[f32], bias: &[f32], add: &[f32]) -> Vec<(f64, f64)> {
    let depth = case.pieces * case.len;
    let mut out = Vec::new();
    for row in 0..case.lines * case.per_line {
        for column in 0..case.columns {
            let add = if case.added > 0 {
                add[row * case.columns + column]
            } else {
                0.0
            };
            let mut sum = f64::from(bias[column]) + f64::from(add);
            let mut size = sum.abs();
            for k in 0..depth {
                let term = f64::from(left[row * depth + k]) * f64::from(right[k * case.columns + column]);
                sum += term;
                size += term.abs();
            }
            let sum = match case.activation {
                Activation::Relu => sum.max(0.0),
                Activation::Relu6 => sum.clamp(0.0, 6.0),
                _ => sum,
            };
            out.push((sum, size));
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn products_are_sums_of_products(case in cases()) {
        let ProductCase { lines, per_line, pieces, len, columns, gap, added, activation, seed } = case;
        let (rows, depth) = (lines * per_line, pieces * len);
        let left = numbers(seed, rows * depth, true);
        let right = numbers(seed ^ 1, depth * columns, true);
        let bias = numbers(seed ^ 2, columns, false);
        let add = numbers(seed ^ 3, rows * columns, false);
        let expected = expected(&case, &left, &right, &bias, &add);
        for isa in available() {
            let words = isa.words(len);
            let stride = pieces * (words + gap);
            let values = as_words(isa, &left, [pieces, len], gap, stride);
            let packed = Packed::new(isa, [pieces, len], &bias, |k, column| right[k * columns + column]);
            let offsets: Vec<usize> = (0..pieces).map(|piece| piece * (words + gap)).collect();
            // A row and a line further apart than they need to be.
            let wide = columns.next_multiple_of(LINE) + LINE * gap;
            let place = RowLayout { start: LINE * gap, line: per_line * wide + LINE, row: wide };
            let at = |row: usize, column: usize| place.start + row / per_line * place.line + row % per_line * wide + column;
            let mut start = Buffer::zeros(at(rows - 1, 0) + wide + 7);
            start.fill(77.0);
            let mut added_values = Buffer::zeros(start.len());
            for row in 0..rows {
                for column in 0..columns {
                    added_values[at(row, column)] = add[row * columns + column];
                    if added == 1 {
                        start[at(row, column)] = add[row * columns + column];
                    }
                }
            }
            let operand = Operand {
                values: &values,
                place: RowLayout { start: 0, line: per_line * stride, row: stride },
                len: words,
                offsets: &offsets,
            };
            let how = match added {
                0 => Addend::Nothing,
                1 => Addend::Out,
                _ => Addend::From(&added_values, place),
            };
            let run = |threads: usize| {
                let mut out = Buffer::from(&start[..]);
                let run = |out: &mut Buffer| product([lines, per_line], operand, &packed, how, activation, out, place);
                if cfg!(miri) {
                    run(&mut out);
                } else {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| run(&mut out));
                }
                out
            };
            let out = run(1);
            for row in 0..rows {
                for column in 0..columns {
                    let (value, size) = expected[row * columns + column];
                    let found = f64::from(out[at(row, column)]);
                    prop_assert!((found - value).abs() <= 1e-6 * size + 1e-7, "{isa}: {found} instead of {value}");
                }
            }
            // Nothing is written beside the rows.
            let touched = |index: usize| (0..rows).any(|row| {
                (at(row, 0)..at(row, columns.next_multiple_of(isa.lanes()))).contains(&index)
            });
            for (index, &value) in out.iter().enumerate().take(start.len()) {
                prop_assert!(value == 77.0 || touched(index), "{isa}: {index} was written");
            }
            let bits = |out: &Buffer| out.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            if seed % 16 == 0 {
                prop_assert_eq!(bits(&out), bits(&run(3)));
            }
            // A row by itself is the same to the last bit.
            let row = seed as usize % per_line;
            let mut alone = Buffer::from(&start[..]);
            let shifted = |place: RowLayout| RowLayout { start: place.start + row * place.row, ..place };
            let one = Operand { place: shifted(operand.place), ..operand };
            let how = match added {
                2 => Addend::From(&added_values, shifted(place)),
                _ => how,
            };
            product([1, 1], one, &packed, how, activation, &mut alone, shifted(place));
            for column in 0..columns {
                prop_assert_eq!(alone[at(row, column)].to_bits(), out[at(row, column)].to_bits());
            }
        }
    }

    #[test]
    fn attention_is_a_weighted_mean(
        tokens in 1usize..if cfg!(miri) { 7 } else { 70 },
        width in 1usize..if cfg!(miri) { 6 } else { 70 },
        heads in 1usize..3,
        seed in any::<u64>(),
    ) {
        let dim = heads * width;
        let stride = 3 * dim + 5;
        let values = numbers(seed, tokens * stride, false);
        let wanted = 1 + seed as usize % tokens;
        for isa in available() {
            // What leaves is words, whose bf16 keep three digits.
            let (words, near) = (isa.words(width), if isa.precision() == Precision::F32 { 2e-6 } else { 4e-3 });
            for head in 0..heads {
                let part = |token: usize, which: usize| &values[token * stride + which * dim + head * width..][..width];
                let mut out = vec![7.0; wanted * words + 3];
                let of_head = AttentionHead {
                    values: &values,
                    stride,
                    tokens,
                    width,
                    query: head * width,
                    key: dim + head * width,
                    value: 2 * dim + head * width,
                };
                attend(isa, of_head, wanted, &mut Workspace::default(), &mut out);
                for token in 0..wanted {
                    let scores: Vec<f64> = (0..tokens)
                        .map(|other| {
                            let pairs = part(token, 0).iter().zip(part(other, 1));
                            pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>().exp()
                        })
                        .collect();
                    let total: f64 = scores.iter().sum();
                    for at in 0..width {
                        let mean: f64 = (0..tokens).map(|other| scores[other] * f64::from(part(other, 2)[at])).sum();
                        let found = f64::from(number(isa, &out[token * words..], at));
                        prop_assert!((found - mean / total).abs() < near, "{isa}: {found} instead of {}", mean / total);
                    }
                }
                prop_assert_eq!(&out[wanted * words..], &[7.0; 3]);
            }
        }
    }

    #[test]
    fn norms_have_mean_and_variance(dim in 1usize..150, seed in any::<u64>()) {
        let x = numbers(seed, dim, false);
        let norm = LayerNorm {
            gamma: numbers(seed ^ 1, dim, false),
            beta: numbers(seed ^ 2, dim, false),
            epsilon: 1e-3,
        };
        let mean = x.iter().map(|&v| f64::from(v)).sum::<f64>() / dim as f64;
        let variance = x.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / dim as f64;
        for isa in available() {
            let mut out = vec![0.0; row_stride(dim)];
            norm.row(isa, &x, &mut out);
            for (at, &x) in x.iter().enumerate() {
                let normed = (f64::from(x) - mean) / (variance + f64::from(norm.epsilon)).sqrt();
                let value = normed * f64::from(norm.gamma[at]) + f64::from(norm.beta[at]);
                let (found, near) = (number(isa, &out, at), if isa.precision() == Precision::F32 { 1e-5 } else { 2e-2 });
                prop_assert!((f64::from(found) - value).abs() < near * (1.0 + value.abs()), "{isa}: {found} for {value}");
            }
        }
    }

    #[test]
    fn gates_are_silu(dim in 1usize..150, seed in any::<u64>()) {
        let gates: Vec<f32> = numbers(seed, dim, false).iter().map(|v| 30.0 * v).collect();
        let values = numbers(seed ^ 1, dim, false);
        for isa in available() {
            let mut out = vec![0.0; row_stride(dim)];
            gate(isa, &gates, &values, &mut out);
            for (at, (&x, &value)) in gates.iter().zip(&values).enumerate() {
                let expected = f64::from(x) / (1.0 + (-f64::from(x)).exp()) * f64::from(value);
                let (found, near) = (number(isa, &out, at), if isa.precision() == Precision::F32 { 1e-6 } else { 1e-2 });
                prop_assert!((f64::from(found) - expected).abs() <= near * (1.0 + expected.abs()), "{isa}: {found} for {expected}");
            }
        }
    }

    #[test]
    fn depthwise_convolutions_are_sums_over_neighbours(
        side in 1usize..if cfg!(miri) { 5 } else { 14 },
        channels in 1usize..40,
        kernel in prop_oneof![Just(1usize), Just(3), Just(5)],
        stride in 1usize..3,
        before in 0usize..3,
        seed in any::<u64>(),
    ) {
        let before = before.min(kernel - 1);
        let from = MapLayout { side, channels: channels.next_multiple_of(LINE) + LINE };
        let to = MapLayout { side: side.div_ceil(stride), channels: channels.next_multiple_of(LINE) };
        let input = numbers(seed, side * side * from.channels, false);
        let weights = numbers(seed ^ 1, channels * kernel * kernel, false);
        let bias = numbers(seed ^ 2, channels, false);
        for isa in available().filter(|isa| isa.words(2) == 2) {
            let kernels = Depthwise::new(isa, kernel, stride, &weights, &bias, Activation::Relu6);
            let mut out = vec![7.0; to.side * to.side * to.channels];
            kernels.run(&input, from, before, &mut out, to);
            for (y, x, channel) in (0..to.side * to.side * channels)
                .map(|at| (at / channels / to.side, at / channels % to.side, at % channels))
            {
                let mut sum = f64::from(bias[channel]);
                for tap in 0..kernel * kernel {
                    let (py, px) = (y * stride + tap / kernel, x * stride + tap % kernel);
                    if (before..before + side).contains(&py) && (before..before + side).contains(&px) {
                        let at = ((py - before) * side + px - before) * from.channels + channel;
                        sum += f64::from(input[at]) * f64::from(weights[channel * kernel * kernel + tap]);
                    }
                }
                let found = f64::from(out[(y * to.side + x) * to.channels + channel]);
                prop_assert!((found - sum.clamp(0.0, 6.0)).abs() < 1e-5, "{isa}: {found} instead of {sum}");
            }
        }
    }
}

#[test]
fn gelu_is_a_number_times_its_probability() {
    let count = if cfg!(miri) { 3 } else { 2001 };
    let xs: Vec<f32> = (0..count)
        .map(|at| (at as f32 / (count - 1) as f32 - 0.5) * 24.0)
        .collect();
    for isa in available() {
        let packed = Packed::new(isa, [1, 1], &[0.0], |_, _| 1.0);
        let words = isa.words(1);
        let values = as_words(isa, &xs, [1, 1], 0, words);
        let operand = Operand {
            values: &values,
            place: RowLayout::rows(words),
            len: words,
            offsets: &[0],
        };
        let mut out = Buffer::zeros(count * LINE);
        product(
            [1, count],
            operand,
            &packed,
            Addend::Nothing,
            Activation::Gelu,
            &mut out,
            RowLayout::rows(LINE),
        );
        for (&x, row) in xs.iter().zip(out.chunks(LINE)) {
            let (x, found) = match isa.words(2) {
                2 => (f64::from(x), row[0]),
                _ => (half::bf16::from_f32(x).to_f64(), f32::from_bits(row[0].to_bits() << 16)),
            };
            let near = if isa.words(2) == 2 { 1e-6 } else { 8e-3 };
            let value = x * below(x);
            assert!(
                (f64::from(found) - value).abs() <= near * (x.abs() + 0.01),
                "{isa}: {found} for {x}: {value}"
            );
        }
    }
}

#[test]
fn what_is_no_number_stays_so() {
    for isa in available() {
        for activation in [Activation::Relu, Activation::Relu6, Activation::None] {
            let packed = Packed::new(isa, [1, 2], &[0.0; 3], |_, _| 1.0);
            let values = as_words(isa, &[f32::NAN, 1.0], [1, 2], 0, 16);
            let operand = Operand {
                values: &values,
                place: RowLayout::rows(16),
                len: isa.words(2),
                offsets: &[0],
            };
            let mut out = Buffer::zeros(LINE);
            product(
                [1, 1],
                operand,
                &packed,
                Addend::Nothing,
                activation,
                &mut out,
                RowLayout::rows(LINE),
            );
            assert!(out[..3].iter().all(|value| value.is_nan()), "{isa} {activation:?}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let isa = Isa::Portable;
    let packed = Packed::new(isa, [1, 4], &[0.0; 4], |_, _| 1.0);
    let values = [1.0; 8];
    let refused = |rows: usize, len: usize, room: usize, row: usize| {
        std::panic::catch_unwind(|| {
            let operand = Operand {
                values: &values,
                place: RowLayout::rows(4),
                len,
                offsets: &[0],
            };
            let mut out = vec![0.0; room];
            let place = RowLayout::rows(row);
            product(
                [1, rows],
                operand,
                &packed,
                Addend::Nothing,
                Activation::None,
                &mut out,
                place,
            );
        })
        .is_err()
    };
    assert!(!refused(2, 4, 8, 4));
    assert!(refused(3, 4, 12, 4), "rows that are not there");
    assert!(refused(2, 3, 8, 4), "other terms than the right side has");
    assert!(refused(2, 4, 7, 4), "a result that is too short");
    assert!(refused(2, 4, 8, 3), "rows that overlap");
}

/// Whether something panics.
fn refused(work: impl FnOnce()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err()
}

// Sums and products of these wrap to something small in a release build: what looks as if it fitted would be read or written
// far outside the slices.

#[test]
fn places_that_wrap_are_refused() {
    let packed = Packed::new(Isa::Portable, [1, 4], &[0.0; 4], |_, _| 1.0);
    let whole = RowLayout::rows(4);
    let run = |left: RowLayout, len: usize, offsets: &[usize], add: Option<RowLayout>, out_place: RowLayout| {
        let (values, added, mut out) = ([1.0; 8], [1.0; 8], [0.0; 8]);
        let left = Operand {
            values: &values,
            place: left,
            len,
            offsets,
        };
        let add = add.map_or(Addend::Nothing, |place| Addend::From(&added, place));
        refused(|| product([2, 1], left, &packed, add, Activation::None, &mut out, out_place))
    };
    let lines = RowLayout {
        start: 0,
        line: 4,
        row: 4,
    };
    assert!(!run(lines, 4, &[0], Some(lines), lines));
    for wrapping in [
        RowLayout {
            start: usize::MAX - 3,
            ..lines
        },
        RowLayout {
            start: usize::MAX - 7,
            ..lines
        },
        RowLayout {
            line: usize::MAX - 3,
            ..lines
        },
        RowLayout {
            start: 8,
            line: usize::MAX - 7,
            row: 4,
        },
    ] {
        assert!(run(wrapping, 4, &[0], None, lines), "left {wrapping:?}");
        assert!(run(lines, 4, &[0], Some(wrapping), lines), "added {wrapping:?}");
        assert!(run(lines, 4, &[0], None, wrapping), "result {wrapping:?}");
    }
    assert!(run(lines, 4, &[usize::MAX - 3], None, lines), "an offset");
    // 4 · (2⁶² + 1) is 4.
    assert!(
        run(lines, (1 << 62) + 1, &[0, 0, 0, 0], None, lines),
        "the length of a piece"
    );
    let rows = |row: usize| {
        let (values, mut out) = ([1.0; 8], [0.0; 8]);
        let left = Operand::whole(&values, RowLayout { row, ..whole }, 4);
        refused(|| {
            product(
                [1, 3],
                left,
                &packed,
                Addend::Nothing,
                Activation::None,
                &mut out,
                whole,
            )
        })
    };
    assert!(rows(1 << 63), "2 · 2⁶³ is 0");
    assert!(refused(|| drop(Packed::new(
        Isa::Portable,
        [1 << 32, 1 << 32],
        &[0.0; 4],
        |_, _| 1.0
    ))));
}

#[test]
fn tokens_that_wrap_are_refused() {
    let values = [1.0; 24];
    let fits = AttentionHead {
        values: &values,
        stride: 12,
        tokens: 2,
        width: 4,
        query: 0,
        key: 4,
        value: 8,
    };
    let run =
        |head: AttentionHead| refused(|| attend(Isa::Portable, head, 1, &mut Workspace::default(), &mut [0.0; 8]));
    assert!(!run(fits));
    assert!(
        run(AttentionHead {
            query: usize::MAX - 3,
            ..fits
        }),
        "the query"
    );
    assert!(
        run(AttentionHead {
            query: usize::MAX - 15,
            ..fits
        }),
        "the query and a token"
    );
    assert!(
        run(AttentionHead {
            key: usize::MAX - 3,
            ..fits
        }),
        "the key"
    );
    assert!(
        run(AttentionHead {
            stride: usize::MAX - 11,
            ..fits
        }),
        "the distance of tokens"
    );
    assert!(
        run(AttentionHead {
            tokens: (1 << 62) + 1,
            ..fits
        }),
        "the number of tokens"
    );
    assert!(run(AttentionHead { tokens: 0, ..fits }), "no token");
    assert!(
        run(AttentionHead {
            width: usize::MAX - 7,
            ..fits
        }),
        "the width"
    );
}

#[test]
fn maps_that_wrap_are_refused() {
    let kernels = |stride: usize| Depthwise::new(Isa::Portable, 1, stride, &[1.0; 4], &[0.0; 4], Activation::None);
    let map = MapLayout { side: 4, channels: 4 };
    let run = |stride: usize, from: MapLayout, before: usize, to: MapLayout| {
        let (input, mut out) = ([1.0; 64], [0.0; 64]);
        refused(|| kernels(stride).run(&input, from, before, &mut out, to))
    };
    assert!(!run(1, map, 0, map));
    let wide = MapLayout { side: 1 << 32, ..map };
    let deep = MapLayout {
        side: 4,
        channels: 1 << 60,
    };
    for wrapping in [wide, deep, MapLayout { side: 0, ..map }] {
        assert!(run(1, map, 0, wrapping), "result {wrapping:?}");
    }
    assert!(run(1, wide, 0, map) && run(1, deep, 0, map), "the map");
    assert!(run(1, map, usize::MAX, map) && run(1, map, 1 << 63, map), "the margin");
    // Three strides are 2 again, so that the first and the last of four pixels are on the map and the others far away.
    assert!(run(usize::MAX / 3 + 1, map, 0, map), "the stride");
    let made = |kernel: usize| {
        refused(|| {
            drop(Depthwise::new(
                Isa::Portable,
                kernel,
                1,
                &[1.0; 4],
                &[0.0; 4],
                Activation::None,
            ))
        })
    };
    assert!(made(1 << 32) && made(2) && !made(1), "the kernel");
}
