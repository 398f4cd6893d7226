//! The shell of every page: one policy, one way to escape.

use sha2::{Digest, Sha256};

use crate::data::base64;

/// An HTML document that stands alone: nothing in it but its own style and script runs, and nothing is fetched.
///
/// ```
/// let page = genus_report::Document { title: "A & B", style: "", body: "<p>Hello</p>\n", script: "" }.html();
/// assert!(page.contains("<title>A &amp; B</title>") && page.contains("default-src 'none'"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// What it is called, as plain text.
    pub title: &'a str,
    /// The only style sheet.
    pub style: &'a str,
    /// Markup of our own; what others have named has gone through [`escape`].
    pub body: &'a str,
    /// The only script.
    pub script: &'a str,
}

impl Document<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let Self {
            title,
            style,
            body,
            script,
        } = self;
        // Style and script are allowed by their hashes: whatever the data says, no other script runs.
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
            hash(style),
            hash(script)
        );
        let title = escape(title);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\" />\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n\
             <meta name=\"color-scheme\" content=\"light dark\" />\n<link rel=\"icon\" href=\"data:,\" />\n\
             <title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}<script>{script}</script>\n\
             </body>\n</html>\n"
        )
    }
}

fn hash(text: &str) -> String {
    base64(&Sha256::digest(text.as_bytes()))
}

/// Text as it may stand between tags and in quotes.
///
/// Line breaks and tabs become spaces, other controls the replacement character (XML forbids most of them even when
/// escaped). Marks that turn the direction of writing are dropped: they would reorder what stands beside them.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => out.push(' '),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
