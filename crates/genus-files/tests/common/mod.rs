//! What several tests share.

/// Fails unless a text has all parts in it.
pub(crate) fn assert_mentions(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} does not mention {part:?}");
    }
}
