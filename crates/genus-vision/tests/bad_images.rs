//! Files that are not what they should be.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::images;
use genus_vision::{ImageError, Limits, decode, read_file, with_decoded};

fn golden(name: &str) -> Vec<u8> {
    let found = images().into_iter().find(|(other, _)| other == name);
    found.expect("a golden image of that name").1
}

fn failure(bytes: &[u8]) -> ImageError {
    decode(bytes, &Limits::default()).expect_err("it cannot be decoded")
}

#[test]
fn what_is_cut_off_is_damaged() {
    for name in [
        "baseline_420_q90.jpg",
        "progressive_444.jpg",
        "rgb.png",
        "interlaced.png",
        "lossless.webp",
        "rgb.tif",
    ] {
        let bytes = golden(name);
        for keep in [bytes.len() / 3, bytes.len() / 2, bytes.len() - 40] {
            let error = failure(&bytes[..keep]);
            assert!(matches!(error, ImageError::Damaged { .. }), "{name} {keep}: {error}");
        }
    }
    let jpeg = golden("baseline_420_q90.jpg");
    let message = failure(&jpeg[..jpeg.len() / 2]).to_string();
    assert_eq!(message, "damaged JPEG: the file ends before the image does");
    // Even the last marker alone.
    assert!(matches!(failure(&jpeg[..jpeg.len() - 2]), ImageError::Damaged { .. }));
}

#[test]
fn what_is_no_image_says_so() {
    assert!(matches!(failure(b""), ImageError::Empty));
    let error = failure(b"This is a text, whatever it is called.");
    assert!(matches!(error, ImageError::UnknownFormat));
    assert_eq!(
        error.to_string(),
        "not an image in a known format (JPEG, PNG, WebP, GIF, BMP, TIFF or PPM)"
    );
    for start in [
        &b"\xFF\xD8\xFF"[..],
        b"\x89PNG\r\n\x1a\n",
        b"GIF89a",
        b"BM",
        b"II*\0",
        b"MM\0*",
        b"RIFF\0\0\0\0WEBP",
    ] {
        assert!(
            matches!(failure(start), ImageError::Damaged { .. }),
            "{start:?}: {}",
            failure(start)
        );
    }
}

#[test]
fn a_header_of_too_many_pixels_is_enough_to_refuse() {
    let mut png = golden("rgb.png");
    png[16..24].copy_from_slice(&[0, 0, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF]);
    // The checksum of the changed header, from zlib.
    png[29..33].copy_from_slice(&0x3967_4E07_u32.to_be_bytes());
    let error = failure(&png);
    let message = "the image has 65535 × 65535 pixels, more than the limit of 100000000";
    assert_eq!(error.to_string(), message);

    let mut jpeg = golden("baseline_420_q90.jpg");
    let frame = jpeg
        .windows(2)
        .position(|marker| marker == [0xFF, 0xC0])
        .expect("a frame");
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xFF; 4]);
    assert_eq!(failure(&jpeg).to_string(), message);

    let mut gif = golden("still.gif");
    gif[6..10].copy_from_slice(&[0xFF; 4]);
    assert_eq!(failure(&gif).to_string(), message);

    let mut bmp = golden("rgb.bmp");
    bmp[18..26].copy_from_slice(&[0xFF, 0xFF, 0, 0, 0xFF, 0xFF, 0, 0]);
    assert_eq!(failure(&bmp).to_string(), message);
}

#[test]
fn a_frame_larger_than_its_canvas_is_refused_by_its_header() {
    // Animations name the size of each frame a second time.
    for (name, chunk, size) in [
        ("lossy.webp", b"VP8 ", 14),
        ("lossless.webp", b"VP8L", 9),
        ("animated.webp", b"VP8L", 9),
    ] {
        let mut webp = golden(name);
        let start = webp.windows(4).position(|name| name == chunk).expect("a frame");
        webp[start + size..start + size + 4].copy_from_slice(&[0xFF, 0x3F, 0xFF, 0x0F][..]);
        let limits = Limits {
            pixels: 1 << 20,
            ..Limits::default()
        };
        let error = decode(&webp, &limits).expect_err("too large");
        assert!(matches!(error, ImageError::TooManyPixels { .. }), "{name}: {error}");
    }
}

#[test]
fn every_format_keeps_to_the_limit_of_pixels() {
    for (name, bytes) in images() {
        let image = decode(&bytes, &Limits::default()).expect("a golden image");
        let pixels = (image.width() * image.height()) as u64;
        let limits = |pixels| Limits {
            pixels,
            ..Limits::default()
        };
        assert!(decode(&bytes, &limits(pixels)).is_ok(), "{name}");
        let error = decode(&bytes, &limits(pixels - 1)).expect_err("one too many");
        assert!(matches!(error, ImageError::TooManyPixels { .. }), "{name}: {error}");
    }
}

#[test]
fn files_are_refused_before_they_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = Limits {
        file_bytes: 100,
        ..Limits::default()
    };
    let path = folder.path().join("a.jpg");
    std::fs::write(&path, [7; 100]).expect("it can be written");
    assert_eq!(read_file(&path, &limits).expect("small enough"), [7; 100]);
    // A terabyte without a byte on disk.
    let file = std::fs::File::create(&path).expect("it can be written");
    file.set_len(1 << 40).expect("a sparse file");
    let error = read_file(&path, &limits).expect_err("too large");
    assert_eq!(
        error.to_string(),
        "the file has 1099511627776 bytes, more than the limit of 100"
    );
    assert!(matches!(
        decode(&[0; 101], &limits),
        Err(ImageError::FileTooLarge { .. })
    ));

    assert!(matches!(read_file(folder.path(), &limits), Err(ImageError::NotAFile)));
    let missing = read_file(folder.path().join("missing.jpg"), &limits);
    assert!(matches!(missing, Err(ImageError::Unreadable(_))));
    #[cfg(unix)]
    assert!(matches!(read_file("/dev/zero", &limits), Err(ImageError::NotAFile)));
}

/// A small generator: the test needs bytes that are the same everywhere, not good ones.
struct Noise(u64);

impl Noise {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

#[test]
fn damage_is_never_a_panic() {
    let limits = Limits {
        pixels: 100_000,
        ..Limits::default()
    };
    let mut noise = Noise(20_250_511);
    let mut outcomes = [0; 2];
    for (name, bytes) in images() {
        for round in 0..300 {
            let mut damaged = bytes.clone();
            // Headers are short: half of the damage is done there.
            let end = if round % 2 == 0 {
                damaged.len()
            } else {
                damaged.len().min(200)
            };
            for _ in 0..=noise.below(4) {
                let at = noise.below(end);
                match noise.below(4) {
                    0 => damaged[at] ^= 1 << noise.below(8),
                    1 => damaged[at] = [0, 1, 0x7F, 0x80, 0xFF][noise.below(5)],
                    2 => damaged[at] = noise.below(256) as u8,
                    _ => drop(damaged.splice(at..at, [noise.below(256) as u8])),
                }
            }
            if round % 5 == 0 {
                damaged.truncate(noise.below(damaged.len()) + 1);
            }
            let decoded = std::panic::catch_unwind(|| decode(&damaged, &limits));
            let Ok(decoded) = decoded else {
                panic!("{name}, round {round}: a panic");
            };
            if let Ok(image) = &decoded {
                assert!(
                    (image.width() * image.height()) as u64 <= limits.pixels,
                    "{name}, round {round}"
                );
            }
            outcomes[usize::from(decoded.is_ok())] += 1;
        }
    }
    // A few of the largest images allowed, whatever the headers ask for.
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        assert!(peak.is_none_or(|kilobytes: u64| kilobytes < 200_000), "{peak:?} kB");
    }
    // Some damage does not show, most does.
    assert!(outcomes.iter().all(|&count| count > 1000), "{outcomes:?}");
}

/// However many threads decode, there is one large image at a time, and nothing else is different.
#[test]
fn large_images_are_decoded_one_at_a_time() {
    let image = |width: usize, height: usize| {
        let mut bytes = format!("P6\n{width} {height}\n255\n").into_bytes();
        bytes.resize(bytes.len() + 3 * width * height, 7);
        bytes
    };
    let limits = Limits::default();
    let (large, small) = (image(4001, 4000), image(30, 20));
    let (at_once, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let seen = with_decoded(&large, &limits, |image| {
                    most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(std::time::Duration::from_millis(30));
                    at_once.fetch_sub(1, Ordering::SeqCst);
                    (image.width(), image.height())
                });
                assert_eq!(seen.unwrap(), (4001, 4000));
                // Small ones need not wait.
                let seen = with_decoded(&small, &limits, |image| image.width());
                assert_eq!(seen.unwrap(), 30);
            });
        }
    });
    assert_eq!(most.into_inner(), 1);
    // The limit that was set is the limit.
    let low = Limits { pixels: 1000, ..limits };
    let refused = with_decoded(&large, &low, drop).unwrap_err().to_string();
    assert!(refused.contains("more than the limit of 1000"), "{refused}");
    let refused = with_decoded(&large[..99], &limits, drop).unwrap_err().to_string();
    assert_eq!(refused, decode(&large[..99], &limits).unwrap_err().to_string());
}
