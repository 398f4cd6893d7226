//! Times of single steps as JSON, for `bench/compare.py`, which runs its peers on the same arrays in the same run.
//!
//! `timings episode FILE REPEATS` reads a feature file whose rows without a label are the queries; `timings assign ROWS
//! CENTRES DIM` makes up its own arrays and also measures what the matrix product alone can do; `timings rows ROWS DIM FILE`
//! writes a Parquet file of random rows; `timings map FILE ROWS` lays labelled features out in the plane, as many rows as
//! asked for.

// The reference rate calls the matrix product as the library does.
#![allow(unsafe_code)]

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, RecordBatch};
use arrow_schema::{DataType, Field};
use genus_core::methods::{Shc, Ukc};
use genus_core::projection::Projection;
use genus_core::rng::Rng;
use genus_core::{Discover, Features, Kind, RealTime, Rule, Support, Task, Taxonomy, TaxonomyEntry};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use rayon::prelude::*;

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let figures = match args.as_slice() {
        ["episode", file, repeats] => episode(file, repeats.parse()?)?,
        ["assign", rows, centres, dim] => assign(rows.parse()?, centres.parse()?, dim.parse()?)?,
        ["rows", rows, dim, file] => rows_file(rows.parse()?, dim.parse()?, file)?,
        ["map", file, rows] => map(file, rows.parse()?)?,
        _ => {
            let usage =
                "usage: timings episode FILE REPEATS | assign ROWS CENTRES DIM | rows ROWS DIM FILE | map FILE ROWS";
            return Err(usage.into());
        }
    };
    println!(
        "{}",
        serde_json::to_string(&figures.into_iter().collect::<serde_json::Map<_, _>>())?
    );
    Ok(())
}

type Figures = Vec<(String, serde_json::Value)>;

/// The median of several timings, in seconds.
fn median(repeats: usize, mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..repeats.max(1))
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn episode(file: &str, repeats: usize) -> Result<Figures, Box<dyn Error>> {
    let table = genus_data::read_table(file)?.table;
    let (labelled, queries): (Vec<usize>, Vec<usize>) = (0..table.len()).partition(|&row| table.labels[row].is_some());
    let labels: Vec<String> = labelled.iter().filter_map(|&row| table.labels[row].clone()).collect();
    let support = Support::new(table.features.select(&labelled), &labels)?;
    let queries = table.features.select(&queries);
    let task = || Task::new(&support, queries.clone());
    // A method on a new task pays for the task, its matrix product and itself: what a user waits for.
    let whole = |method: &dyn Discover| {
        median(repeats, || {
            let found = task().map(|task| method.discover(&task));
            black_box(found).ok();
        })
    };
    let prepared = task()?;
    let shared = |method: &dyn Discover| {
        median(repeats, || {
            black_box(method.discover(&prepared)).ok();
        })
    };
    let (shc, ukc) = (Shc::default(), Ukc::default());
    let prepare = median(repeats, || {
        black_box(task()).ok();
    });
    let rule = Rule::Nearest {
        boost: 1.0,
        block: genus_core::methods::BoostBlock::Way,
        min_similarity: None,
    };
    let real_time = RealTime::new(&prepared, rule)?;
    let query = queries.row(0);
    let judge = median(repeats, || {
        for _ in 0..100 {
            black_box(real_time.judge(black_box(query))).ok();
        }
    });
    Ok(vec![
        ("task".into(), prepare.into()),
        ("shc".into(), whole(&shc).into()),
        ("ukc".into(), whole(&ukc).into()),
        ("shc_shared".into(), shared(&shc).into()),
        ("ukc_shared".into(), shared(&ukc).into()),
        ("real_time".into(), (judge / 100.0).into()),
    ])
}

fn assign(rows: usize, centres: usize, dim: usize) -> Result<Figures, Box<dyn Error>> {
    let items = Features::new(dim, noise(rows * dim, 1))?;
    let entries = (0..centres)
        .map(|number| TaxonomyEntry {
            name: format!("category {number}"),
            kind: Kind::Known,
            items: 0,
        })
        .collect();
    let taxonomy = Taxonomy::from_parts(entries, Features::new(dim, noise(centres * dim, 2))?)?;
    let seconds = median(5, || {
        black_box(taxonomy.assign(&items)).ok();
    });
    let flops = 2.0 * rows as f64 * centres as f64 * dim as f64;
    Ok(vec![
        ("seconds".into(), seconds.into()),
        ("gflops".into(), (flops / seconds / 1e9).into()),
        ("gemm_gflops".into(), gemm_rate().into()),
    ])
}

/// The rate of large square matrix products, one on every thread.
fn gemm_rate() -> f64 {
    const N: usize = 1536;
    let threads = rayon::current_num_threads();
    let (a, b) = (noise(N * N, 3), noise(N * N, 4));
    let seconds = median(5, || {
        (0..threads).into_par_iter().for_each(|_| {
            let mut c = vec![0f32; N * N];
            // SAFETY: all three are N × N and row-major, and `c` belongs to this call alone.
            unsafe {
                gemm::gemm(
                    N,
                    N,
                    N,
                    c.as_mut_ptr(),
                    1,
                    N as isize,
                    false,
                    a.as_ptr(),
                    1,
                    N as isize,
                    b.as_ptr(),
                    N as isize,
                    1,
                    0.0f32,
                    1.0f32,
                    false,
                    false,
                    false,
                    gemm::Parallelism::None,
                );
            }
            black_box(&c);
        });
    });
    (threads * 2 * N * N * N) as f64 / seconds / 1e9
}

fn rows_file(rows: usize, dim: usize, file: &str) -> Result<Figures, Box<dyn Error>> {
    const GROUP: usize = 20_000;
    let item = Arc::new(Field::new("item", DataType::Float32, false));
    let list = |values: Vec<f32>| -> Result<ArrayRef, Box<dyn Error>> {
        let values = Arc::new(Float32Array::from(values));
        Ok(Arc::new(FixedSizeListArray::try_new(
            item.clone(),
            i32::try_from(dim)?,
            values,
            None,
        )?))
    };
    let batch = |count: usize, seed: u64| -> Result<RecordBatch, Box<dyn Error>> {
        Ok(RecordBatch::try_from_iter([(
            "embedding",
            list(noise(count * dim, seed))?,
        )])?)
    };
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(GROUP));
    let first = batch(GROUP.min(rows), 0)?;
    let mut writer = ArrowWriter::try_new(File::create(file)?, first.schema(), Some(properties.build()))?;
    for (at, start) in (0..rows).step_by(GROUP).enumerate() {
        writer.write(&batch(GROUP.min(rows - start), at as u64)?)?;
    }
    writer.close()?;
    Ok(vec![("bytes".into(), std::fs::metadata(file)?.len().into())])
}

/// Numbers between −1 and 1 from a linear congruential generator.
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// Lays rows out in the plane; where more are asked for than the file has, the others are mixtures of two of one class.
fn map(file: &str, rows: usize) -> Result<Figures, Box<dyn Error>> {
    let table = genus_data::read_table(file)?.table;
    let found = table.features.into_unit()?;
    let mut of_class: std::collections::BTreeMap<&Option<String>, Vec<usize>> = std::collections::BTreeMap::new();
    for (row, label) in table.labels.iter().enumerate() {
        of_class.entry(label).or_default().push(row);
    }
    let mut rng = Rng::new(1, &[]);
    let mut labels: Vec<&Option<String>> = Vec::new();
    let mut values: Vec<f32> = Vec::new();
    for row in 0..rows {
        let one = row % found.rows();
        let class = &of_class[&table.labels[one]];
        let other = class[rng.below(class.len())];
        let share = if row < found.rows() {
            0.0
        } else {
            0.6 * rng.unit() as f32
        };
        let mixed = found.row(one).iter().zip(found.row(other));
        values.extend(mixed.map(|(a, b)| (1.0 - share) * a + share * b));
        labels.push(&table.labels[one]);
    }
    let features = Features::new(found.dim(), values)?.into_unit()?;
    let mut figures: Figures = vec![("rows".into(), rows.into()), ("dim".into(), features.dim().into())];
    for &projection in Projection::ALL {
        let start = Instant::now();
        let places = projection.points(&features, 0);
        let seconds = start.elapsed().as_secs_f64();
        // How many of the ten nearest in the plane are of the same class.
        let alike: usize = (0..rows)
            .into_par_iter()
            .map(|i| {
                let gap = |j: usize| {
                    let [x, y] = [0, 1].map(|axis| places[i][axis] - places[j][axis]);
                    x * x + y * y
                };
                let mut others: Vec<usize> = (0..rows).filter(|&j| j != i).collect();
                others.select_nth_unstable_by(10, |&a, &b| gap(a).total_cmp(&gap(b)));
                others[..10].iter().filter(|&&j| labels[j] == labels[i]).count()
            })
            .sum();
        figures.push((format!("{projection}_s"), seconds.into()));
        figures.push((
            format!("{projection}_same_class"),
            (alike as f64 / (10 * rows) as f64).into(),
        ));
    }
    Ok(figures)
}
