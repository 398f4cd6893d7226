//! A pile of pictures to try things on: Noto emoji by kind.

use std::io::{Cursor, Read};

use zip::ZipArchive;

/// A PNG file a picture; `assets/make_emoji.py` writes it.
static ASSET: &[u8] = include_bytes!("../assets/emoji.zip");

/// An emoji.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emoji {
    /// The category that Unicode has it in, such as `birds`.
    pub kind: String,
    /// What it is called, such as `owl`.
    pub name: String,
    /// The same as a text: 🦉.
    pub text: String,
    /// A PNG file of 64 × 64 pixels.
    pub png: Vec<u8>,
}

/// 362 pictures of 14 kinds from Google's [Noto Emoji](https://github.com/googlefonts/noto-emoji), Apache-2.0.
pub fn emoji() -> Vec<Emoji> {
    let mut archive = ZipArchive::new(Cursor::new(ASSET)).expect("the asset is compiled in, and a test reads it");
    let count = archive.len();
    let read = |at| {
        let mut file = archive.by_index(at).expect("a test reads all of them");
        let path = file.name().expect("names are text").trim_end_matches(".png").to_owned();
        let (kind, rest) = path.split_once('/').expect("a folder a kind");
        let (codes, name) = rest.split_once(' ').expect("code points and a name");
        let code = |hex: &str| u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
        let mut png = Vec::new();
        file.read_to_end(&mut png).expect("a test reads all of them");
        Emoji {
            kind: kind.to_owned(),
            name: name.to_owned(),
            text: codes.split('-').filter_map(code).collect(),
            png,
        }
    };
    (0..count).map(read).collect()
}
