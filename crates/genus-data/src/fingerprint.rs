//! A short mark of some bytes.

/// FNV-1a: enough to see that two files were not written together, or that one of them was damaged.
pub(crate) fn fingerprint<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> String {
    let hash = bytes.into_iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}
