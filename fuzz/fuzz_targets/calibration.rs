//! Any bytes are a calibration or an error: no panic, no endless loop, and what is read can be written and read again.
#![cfg_attr(fuzzing, no_main)]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use genus_data::{read_calibration, write_calibration};
use genus_fuzz::{chosen, folder, fuzz_target, mark, write};
use safetensors::SafeTensors;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| folder("calibration"));

/// The same file with a mark that is right.
fn marked(bytes: &[u8]) -> Option<Vec<u8>> {
    let (_, header) = SafeTensors::read_metadata(bytes).ok()?;
    let text = header.metadata().as_ref()?.get("genus")?;
    let text = &text[..text.rfind("fingerprint = ").unwrap_or(text.len())];
    let tensors = SafeTensors::deserialize(bytes).ok()?;
    let data = |name| tensors.tensor(name).map(|tensor| tensor.data()).unwrap_or_default();
    let parts = text
        .as_bytes()
        .iter()
        .chain(data("mean"))
        .chain(data("directions"))
        .chain(data("factors"));
    let text = format!("{text}fingerprint = \"{}\"\n", mark(parts));
    safetensors::serialize(tensors.tensors(), Some(HashMap::from([("genus".to_owned(), text)]))).ok()
}

fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = chosen(bytes, 2) else { return };
    let path = FOLDER.join("calibration.safetensors");
    match which {
        0 => write(&path, rest),
        _ => match marked(rest) {
            Some(marked) => write(&path, &marked),
            None => return,
        },
    }
    if let Ok((calibration, made)) = read_calibration(&path) {
        let again = FOLDER.join("again.safetensors");
        write_calibration(&again, &calibration, &made).unwrap();
        assert_eq!(read_calibration(&again).unwrap().0.to_parts(), calibration.to_parts());
    }
});
