//! What the targets share: a folder for the files that readers want by their path, and marks that are right again.

use std::fs;
use std::path::{Path, PathBuf};

/// What is done with any bytes. A fuzzer finds bytes to do it with; without one, the files that are named on the command line are taken.
#[macro_export]
macro_rules! fuzz_target {
    ($(init: $init:expr,)? |$bytes:ident: &[u8]| $body:block) => {
        fn target($bytes: &[u8]) $body

        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!($(init: $init,)? |bytes: &[u8]| target(bytes));

        #[cfg(not(fuzzing))]
        fn main() {
            $($init;)?
            for path in std::env::args_os().skip(1) {
                target(&std::fs::read(path).unwrap());
            }
        }
    };
}

#[cfg(fuzzing)]
#[doc(hidden)]
pub use libfuzzer_sys;

/// A folder of this process, in the system's temporary one; `TMPDIR=/dev/shm` keeps it in memory.
pub fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir()
        .join(format!("genus-fuzz-{}", std::process::id()))
        .join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Writes a file, with the folders above it.
pub fn write(path: &Path, bytes: &[u8]) {
    if fs::write(path, bytes).is_err() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// The first byte as a choice out of so many, and the other bytes.
pub fn chosen(bytes: &[u8], of: usize) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    Some((usize::from(*first) % of, rest))
}

/// The mark that files of ours know each other by: FNV-1a. With it a search gets past the comparison of marks.
pub fn mark<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> String {
    let hash = bytes.into_iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Lets panics of the Parquet decoder pass, which the reader catches and calls an error; all others end the search.
pub fn pass_panics_of_parquet() {
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let caught = |file: &str| {
            ["/parquet-", "/arrow-", "/flatbuffers-", "/lz4_flex-"]
                .iter()
                .any(|of| file.contains(of))
        };
        if !panic.location().is_some_and(|place| caught(place.file())) {
            end(panic);
        }
    }));
}
