//! Any text is a method, an encoder, a tail or an error, and what it is can be said and read again.
#![cfg_attr(fuzzing, no_main)]

use genus_core::episode::Tail;
use genus_core::methods::Method;
use genus_fuzz::{chosen, fuzz_target};
use genus_vision::EncoderSpec;

fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = chosen(bytes, 3) else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match which {
        0 => drop(Method::parse(text, 0)),
        1 => {
            if let Ok(spec) = EncoderSpec::parse(text) {
                assert!(EncoderSpec::parse(&spec.to_string()).is_ok(), "{spec}");
            }
        }
        _ => drop(text.parse::<Tail>()),
    }
});
