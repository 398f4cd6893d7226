//! Colours that stay apart, also for those who see fewer of them.

/// The colours of Okabe and Ito that stand out on white; their yellow and black are left out.
const FIRST: [[u8; 3]; 6] = [
    [0x00, 0x72, 0xb2],
    [0xd5, 0x5e, 0x00],
    [0x00, 0x9e, 0x73],
    [0xcc, 0x79, 0xa7],
    [0xe6, 0x9f, 0x00],
    [0x56, 0xb4, 0xe9],
];

/// After so many colours the next ones could not be told from the first and they begin again.
const MOST: usize = 96;

/// So many colours, each as a hexadecimal number. More colours begin with the same ones as fewer.
///
/// After the first six, every further colour is the one of a fixed set that lies farthest from all before, where the
/// distance of two colours is the smallest among normal sight, red blindness and green blindness.
pub fn colours(count: usize) -> Vec<String> {
    let mut chosen: Vec<[u8; 3]> = FIRST.to_vec();
    let candidates = candidates();
    let views: Vec<_> = candidates.iter().map(|&colour| seen(colour)).collect();
    let mut gaps: Vec<f64> = views
        .iter()
        .map(|view| FIRST.iter().map(|&c| gap(view, &seen(c))).fold(f64::MAX, f64::min))
        .collect();
    while chosen.len() < count.min(MOST) {
        let best = (0..gaps.len()).fold(0, |best, at| if gaps[at] > gaps[best] { at } else { best });
        chosen.push(candidates[best]);
        let view = views[best];
        gaps.iter_mut()
            .zip(&views)
            .for_each(|(nearest, other)| *nearest = nearest.min(gap(&view, other)));
    }
    (0..count).map(|at| hex(chosen[at % chosen.len()])).collect()
}

/// A darker tone of a colour, in which text is readable on white.
pub fn for_text(colour: &str) -> String {
    let part = |at: usize| {
        colour
            .get(at..at + 2)
            .and_then(|part| u8::from_str_radix(part, 16).ok())
            .unwrap_or(0)
    };
    let mut rgb = [part(1), part(3), part(5)];
    // The contrast with white is 4.5 where the luminance is 0.18.
    while luminance(rgb) > 0.18 {
        rgb = rgb.map(|part| (f64::from(part) * 0.96) as u8);
    }
    hex(rgb)
}

/// The shade of a share from 0 to 1: from almost white to dark blue.
pub fn shade(share: f64) -> String {
    const STOPS: [[f64; 3]; 5] = [
        [236.0, 242.0, 249.0],
        [181.0, 210.0, 235.0],
        [99.0, 165.0, 212.0],
        [31.0, 106.0, 171.0],
        [8.0, 45.0, 96.0],
    ];
    let at = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let below = (at as usize).min(STOPS.len() - 2);
    let part = at - below as f64;
    hex(std::array::from_fn(|i| {
        (STOPS[below][i] + part * (STOPS[below + 1][i] - STOPS[below][i])).round() as u8
    }))
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Colours of even steps in hue at several degrees of lightness and strength, in OKLCH; those a screen cannot show are
/// left out.
fn candidates() -> Vec<[u8; 3]> {
    let mut all = Vec::new();
    // Pale and weak together would hardly be seen on white.
    for (lightness, chromas) in [
        (0.38, [0.12, 0.07]),
        (0.50, [0.16, 0.08]),
        (0.60, [0.17, 0.10]),
        (0.70, [0.17, 0.12]),
        (0.78, [0.15, 0.11]),
    ] {
        for chroma in chromas {
            for step in 0..24 {
                let hue = f64::from(step) * std::f64::consts::TAU / 24.0;
                all.extend(from_oklab([lightness, chroma * hue.cos(), chroma * hue.sin()]));
            }
        }
    }
    all
}

/// A colour in OKLab as those with normal sight, without red cones and without green cones see it.
fn seen(colour: [u8; 3]) -> [[f64; 3]; 3] {
    // The matrices of Machado, Oliveira and Fernandes (2009) for complete red and green blindness.
    const RED_BLIND: [[f64; 3]; 3] = [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ];
    const GREEN_BLIND: [[f64; 3]; 3] = [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ];
    let linear = colour.map(to_linear);
    [linear, times(&RED_BLIND, linear), times(&GREEN_BLIND, linear)].map(to_oklab)
}

fn gap(a: &[[f64; 3]; 3], b: &[[f64; 3]; 3]) -> f64 {
    let squared = |a: &[f64; 3], b: &[f64; 3]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    a.iter().zip(b).map(|(a, b)| squared(a, b)).fold(f64::MAX, f64::min)
}

fn luminance(colour: [u8; 3]) -> f64 {
    let [red, green, blue] = colour.map(to_linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn to_linear(part: u8) -> f64 {
    let part = f64::from(part) / 255.0;
    if part <= 0.04045 {
        part / 12.92
    } else {
        ((part + 0.055) / 1.055).powf(2.4)
    }
}

fn times(matrix: &[[f64; 3]; 3], [x, y, z]: [f64; 3]) -> [f64; 3] {
    matrix.map(|[a, b, c]| a * x + b * y + c * z)
}

fn to_oklab(linear: [f64; 3]) -> [f64; 3] {
    let cones = times(
        &[
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ],
        linear,
    );
    times(
        &[
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ],
        cones.map(f64::cbrt),
    )
}

fn from_oklab(lab: [f64; 3]) -> Option<[u8; 3]> {
    let cones = times(
        &[
            [1.0, 0.3963377774, 0.2158037573],
            [1.0, -0.1055613458, -0.0638541728],
            [1.0, -0.0894841775, -1.2914855480],
        ],
        lab,
    );
    let linear = times(
        &[
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ],
        cones.map(|cone| cone * cone * cone),
    );
    let shown = linear.iter().all(|part| (-0.001..=1.001).contains(part));
    shown.then(|| {
        linear.map(|part| {
            let part = part.clamp(0.0, 1.0);
            let curved = if part <= 0.0031308 {
                12.92 * part
            } else {
                1.055 * part.powf(1.0 / 2.4) - 0.055
            };
            (255.0 * curved).round() as u8
        })
    })
}
