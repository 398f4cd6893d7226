//! Any bytes are weights or an error: no panic, no endless loop, no more memory than a small multiple of the bytes.
#![cfg_attr(fuzzing, no_main)]

use std::io::Cursor;

use genus_fuzz::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(weights) = genus_vision::read_weights_from(Cursor::new(bytes), "fuzz") {
        // What was read is whole: as many values as the shape says, all of them numbers.
        for (name, tensor) in &weights.tensors {
            let count: usize = tensor.shape.iter().product();
            assert_eq!(tensor.values.len(), count, "{name}");
            assert!(tensor.values.iter().all(|v| v.is_finite()), "{name}");
        }
        weights.hash();
    }
});
