//! Any bytes are an image or an error: no panic, no endless loop, no more memory than the limits allow.
#![cfg_attr(fuzzing, no_main)]

use genus_fuzz::fuzz_target;
use genus_vision::{Filter, Limits, Transform, decode};

const LIMITS: Limits = Limits {
    file_bytes: 1 << 20,
    pixels: 1 << 16,
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(image) = decode(bytes, &LIMITS) else { return };
    assert_eq!(image.data().len(), 3 * image.width() * image.height());
    assert!(image.width() * image.height() <= 1 << 16);
    let transform = Transform {
        resize: 9,
        filter: Filter::Bicubic,
        crop: 8,
        mean: [0.5; 3],
        std: [0.25; 3],
    };
    assert!(transform.apply(&image).iter().all(|value| value.is_finite()));
});
