//! The windowed resize beside a plain one that makes the whole image and crops afterwards.

use genus_vision::{Filter, Rgb, Transform};
use proptest::prelude::*;

fn kernel(filter: Filter, x: f64) -> f64 {
    let x = x.abs();
    match filter {
        Filter::Bilinear if x < 1.0 => 1.0 - x,
        Filter::Bicubic if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
        Filter::Bicubic if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5,
        _ => 0.0,
    }
}

/// One channel of one row or column, resized.
fn line(filter: Filter, samples: &[u8], to: usize) -> Vec<u8> {
    let scale = samples.len() as f64 / to as f64;
    let stretch = scale.max(1.0);
    let support = stretch * if filter == Filter::Bilinear { 1.0 } else { 2.0 };
    let resized = (0..to).map(|at| {
        let centre = (at as f64 + 0.5) * scale;
        let first = ((centre - support + 0.5) as i64).max(0) as usize;
        let last = ((centre + support + 0.5) as i64).min(samples.len() as i64) as usize;
        let weights: Vec<f64> = (first..last)
            .map(|x| kernel(filter, (x as f64 - centre + 0.5) * (1.0 / stretch)))
            .collect();
        let total: f64 = weights.iter().sum();
        let mut sum = 1i64 << 21;
        for (weight, &sample) in weights.iter().zip(&samples[first..last]) {
            let fixed = weight / total * 4_194_304.0;
            let fixed = (fixed + if fixed < 0.0 { -0.5 } else { 0.5 }) as i64;
            sum += fixed * i64::from(sample);
        }
        (sum >> 22).clamp(0, 255) as u8
    });
    resized.collect()
}

/// The whole image resized, sideways first.
fn resized(image: &Rgb, filter: Filter, width: usize, height: usize) -> Vec<u8> {
    let mut wide = vec![0; width * image.height() * 3];
    for y in 0..image.height() {
        for channel in 0..3 {
            let row: Vec<u8> = (0..image.width())
                .map(|x| image.data()[(y * image.width() + x) * 3 + channel])
                .collect();
            let row = if width == image.width() {
                row
            } else {
                line(filter, &row, width)
            };
            for (x, &sample) in row.iter().enumerate() {
                wide[(y * width + x) * 3 + channel] = sample;
            }
        }
    }
    let mut out = vec![0; width * height * 3];
    for x in 0..width {
        for channel in 0..3 {
            let column: Vec<u8> = (0..image.height())
                .map(|y| wide[(y * width + x) * 3 + channel])
                .collect();
            let column = if height == image.height() {
                column
            } else {
                line(filter, &column, height)
            };
            for (y, &sample) in column.iter().enumerate() {
                out[(y * width + x) * 3 + channel] = sample;
            }
        }
    }
    out
}

/// Python's `round(value / 2)`.
fn half(value: i64) -> i64 {
    (value as f64 / 2.0).round_ties_even() as i64
}

fn naive(transform: &Transform, image: &Rgb) -> Vec<u8> {
    let (width, height) = (image.width(), image.height());
    let (short, long) = (width.min(height), width.max(height));
    let longer = (transform.resize as f64 * long as f64 / short as f64) as usize;
    let (new_width, new_height) = if width <= height {
        (transform.resize, longer)
    } else {
        (longer, transform.resize)
    };
    let whole = resized(image, transform.filter, new_width, new_height);
    let crop = transform.crop as i64;
    let start = |length: usize| match length as i64 {
        length if length < crop => -((crop - length) / 2),
        length => half(length - crop),
    };
    let mut out = Vec::new();
    for y in start(new_height)..start(new_height) + crop {
        for x in start(new_width)..start(new_width) + crop {
            let inside = (0..new_width as i64).contains(&x) && (0..new_height as i64).contains(&y);
            for channel in 0..3 {
                let at = (y * new_width as i64 + x) * 3 + channel;
                out.push(if inside { whole[at as usize] } else { 0 });
            }
        }
    }
    out
}

fn transform(resize: usize, crop: usize, filter: Filter) -> Transform {
    Transform {
        resize,
        filter,
        crop,
        mean: [0.0; 3],
        std: [1.0; 3],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_window_is_the_middle_of_the_whole(
        (width, height, data) in (1usize..60, 1usize..60).prop_flat_map(|(width, height)| {
            let extremes = prop_oneof![Just(0u8), Just(255u8), any::<u8>()];
            (Just(width), Just(height), proptest::collection::vec(extremes, width * height * 3))
        }),
        resize in 1usize..50,
        crop in 1usize..50,
        cubic: bool,
    ) {
        let image = Rgb::new(width, height, data).expect("as many samples as pixels");
        let transform = transform(resize, crop, if cubic { Filter::Bicubic } else { Filter::Bilinear });
        prop_assert_eq!(transform.pixels(&image), naive(&transform, &image));
    }
}

#[test]
fn a_long_thin_image_costs_no_more_than_its_middle() {
    // Whole, the larger of these would be 100 gigabytes.
    for (width, height) in [(1, 20_000), (20_000, 1), (1, 500_000)] {
        let data = (0..width * height)
            .flat_map(|at| [(at % 251) as u8, (at / 7) as u8, 90])
            .collect();
        let image = Rgb::new(width, height, data).expect("as many samples as pixels");
        for filter in [Filter::Bilinear, Filter::Bicubic] {
            let pixels = transform(256, 224, filter).pixels(&image);
            assert_eq!(pixels.len(), 224 * 224 * 3);
            assert!(pixels.iter().skip(2).step_by(3).all(|&blue| blue == 90));
        }
    }
}

#[test]
fn impossible_sizes_give_black() {
    let image = Rgb::new(2, 1, vec![200; 6]).expect("two pixels");
    assert_eq!(transform(0, 3, Filter::Bicubic).pixels(&image), vec![0; 27]);
    assert_eq!(transform(3, 0, Filter::Bicubic).pixels(&image), Vec::<u8>::new());
}
