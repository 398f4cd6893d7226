//! The pictures of the demonstration.

use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_emoji_has_a_kind_a_name_and_a_picture() {
    let emoji = genus_data::emoji();
    assert_eq!(emoji.len(), 362);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    emoji
        .iter()
        .for_each(|emoji| *kinds.entry(&emoji.kind).or_default() += 1);
    assert_eq!(kinds.len(), 14);
    assert!(kinds.values().all(|&count| (13..=30).contains(&count)), "{kinds:?}");
    // A pile is one folder.
    let names: BTreeSet<&str> = emoji.iter().map(|emoji| &*emoji.name).collect();
    assert_eq!(names.len(), emoji.len());
    assert!(emoji.iter().all(|emoji| emoji.png.starts_with(b"\x89PNG")));
    let owl = emoji.iter().find(|emoji| emoji.name == "owl").unwrap();
    assert_eq!((&*owl.kind, &*owl.text), ("birds", "🦉"));
}
