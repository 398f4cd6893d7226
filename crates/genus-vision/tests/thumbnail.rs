//! Small pictures: what they are, and that they show the image.

use genus_vision::{Limits, Rgb, decode};

/// A red half beside a blue one.
fn halves(width: usize, height: usize) -> Rgb {
    let pixel = |at: usize| {
        if at % width < width / 2 {
            [200, 30, 40]
        } else {
            [20, 60, 210]
        }
    };
    Rgb::new(width, height, (0..width * height).flat_map(pixel).collect()).unwrap()
}

#[test]
fn large_images_become_small_jpegs_of_the_same_shape() {
    for (width, height, expected) in [
        (640, 480, (160, 120)),
        (300, 900, (53, 160)),
        (100, 60, (100, 60)),
        (5000, 33, (160, 1)),
    ] {
        let file = halves(width, height).thumbnail(160).unwrap();
        assert!(file.starts_with(&[0xFF, 0xD8, 0xFF]));
        let small = decode(&file, &Limits::default()).unwrap();
        assert_eq!((small.width(), small.height()), expected);
        // The colours are those of the image, but for what a JPEG loses.
        let at = |x: usize| {
            let row = expected.1 / 2;
            &small.data()[(row * expected.0 + x) * 3..][..3]
        };
        for (x, colour) in [(expected.0 / 8, [200, 30, 40]), (expected.0 * 7 / 8, [20, 60, 210])] {
            let off = at(x)
                .iter()
                .zip(colour)
                .map(|(&a, b)| (i32::from(a) - b).abs())
                .max()
                .unwrap();
            assert!(off < 12, "{width} × {height} at {x}: {:?}", at(x));
        }
    }
}

#[test]
fn few_pixels_stay_as_they_are() {
    let image = halves(8, 20);
    let file = image.thumbnail(160).unwrap();
    assert!(file.starts_with(b"\x89PNG"));
    assert_eq!(decode(&file, &Limits::default()).unwrap(), image);
    // A picture of nothing that is asked for is still a picture.
    assert!(halves(64, 64).thumbnail(0).is_some());
}
