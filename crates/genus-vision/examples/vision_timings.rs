//! Times of encoders as JSON, for `bench/compare.py`, which runs PyTorch with the same weights in the same run.
//!
//! `vision_timings ENCODER WEIGHTS REPEATS BATCH…` gives the seconds of an image for every size of batch, the median and the
//! best, and the least that the processor was at work for (which others on the machine do not change much); `vision_timings peak`
//! the multiply-adds that all threads do in a second, as floating-point operations. GENUS_ISA chooses what runs.

use std::error::Error;
use std::time::Instant;

use genus_vision::{Encoder, EncoderSpec, Isa};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let isa = Isa::from_env(None)?;
    if args == ["peak"] {
        println!("{}", serde_json::json!({ "isa": isa.name(), "flops": peak(isa) }));
        return Ok(());
    }
    let [encoder, weights, repeats, batches @ ..] = &args[..] else {
        return Err("usage: vision_timings ENCODER WEIGHTS REPEATS BATCH…, or vision_timings peak".into());
    };
    let repeats: usize = repeats.parse()?;
    let encoder = EncoderSpec::parse(encoder)?.load(weights, isa)?;
    let mut figures = serde_json::Map::new();
    for batch in batches {
        let images: usize = batch.parse()?;
        let pixels: Vec<f32> = (0..images * encoder.transform().values())
            .map(|i| (i % 255) as f32 / 127.0 - 1.0)
            .collect();
        encoder.encode(&pixels)?;
        let (mut times, mut work) = (Vec::new(), f64::INFINITY);
        for _ in 0..repeats.max(1) {
            let (start, before) = (Instant::now(), at_work());
            encoder.encode(&pixels)?;
            times.push(start.elapsed().as_secs_f64() / images as f64);
            work = work.min((at_work() - before) / images as f64);
        }
        times.sort_by(f64::total_cmp);
        let figure = serde_json::json!({ "median": times[times.len() / 2], "best": times[0], "work": work });
        figures.insert(batch.clone(), figure);
    }
    println!("{}", serde_json::Value::Object(figures));
    Ok(())
}

/// The seconds that all threads of this process have been at work, where the system tells.
fn at_work() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of_thread = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    threads.filter_map(|thread| of_thread(thread.path())).sum::<f64>() / 1e9
}

/// Chains of multiply-adds that stay in registers, on all threads at once; the best of many rounds, as a processor that was idle
/// takes a while to wake.
#[allow(unsafe_code)]
fn peak(isa: Isa) -> f64 {
    const STEPS: usize = 10_000_000;
    const ROUNDS: usize = 100;
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;

        macro_rules! each {
            ($at:ident => $do:expr) => {
                each!(@ $at, $do, 0 1 2 3 4 5 6 7 8 9 10 11)
            };
            (@ $at:ident, $do:expr, $($number:literal)*) => {
                $({
                    let $at = $number;
                    $do;
                })*
            };
        }
        macro_rules! chains {
            ($name:ident, $features:literal, $splat:expr, $term:ident, $lanes:literal) => {
                #[target_feature(enable = $features)]
                fn $name() -> f64 {
                    let (factor, mut sums) = ($splat(0.999), [$splat(1.0); 12]);
                    for _ in 0..STEPS / 12 {
                        // Written out: only sums that are named one by one stay in registers.
                        each!(at => sums[at] = $term(sums[at], factor, factor));
                    }
                    std::hint::black_box(sums);
                    2.0 * $lanes * (STEPS / 12 * 12) as f64
                }
            };
        }
        chains!(wide, "avx512f", _mm512_set1_ps, _mm512_fmadd_ps, 16.0);
        chains!(half, "avx2,fma", _mm256_set1_ps, _mm256_fmadd_ps, 8.0);
        #[target_feature(enable = "avx512f,avx512bf16")]
        fn bf16() -> f64 {
            // SAFETY: both are 64 bytes, and any bytes are bf16 numbers.
            let factor = unsafe { std::mem::transmute::<__m512, __m512bh>(_mm512_set1_ps(1.0)) };
            let mut sums = [_mm512_set1_ps(1.0); 12];
            for _ in 0..STEPS / 12 {
                each!(at => sums[at] = _mm512_dpbf16_ps(sums[at], factor, factor));
            }
            std::hint::black_box(sums);
            64.0 * (STEPS / 12 * 12) as f64
        }
        /// Products of tiles that are never read or written; sums, as in a product, in four of them.
        ///
        /// # Safety
        /// The processor has tiles, and the system allows them.
        unsafe fn tiles() -> f64 {
            let mut division = [0u8; 64];
            division[0] = 1;
            for register in 0..8 {
                division[16 + 2 * register] = 64;
                division[48 + register] = 16;
            }
            // SAFETY: the caller says that the instructions are there; they touch no memory but the division.
            unsafe {
                std::arch::asm!(
                    "ldtilecfg [{division}]",
                    "2:",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tdpbf16ps tmm3, tmm5, tmm7",
                    "dec {steps}",
                    "jnz 2b",
                    "tilerelease",
                    division = in(reg) &division,
                    steps = inout(reg) STEPS / 40 => _,
                    options(nostack),
                );
            }
            (4 * (STEPS / 40)) as f64 * 2.0 * 16.0 * 16.0 * 32.0
        }
        let run = || match isa {
            // SAFETY: `Isa::from_env` gives what this processor has.
            Isa::Amx => unsafe { tiles() },
            // SAFETY: the same.
            Isa::Avx512Bf16 => unsafe { bf16() },
            // SAFETY: the same.
            Isa::Avx512 => unsafe { wide() },
            // SAFETY: the same.
            Isa::Avx2 => unsafe { half() },
            Isa::Portable => 0.0,
        };
        let rounds = (0..ROUNDS).map(|_| {
            let start = Instant::now();
            let all = rayon::broadcast(|_| run());
            all.iter().sum::<f64>() / start.elapsed().as_secs_f64()
        });
        rounds.fold(0.0, f64::max)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = isa;
        0.0
    }
}
