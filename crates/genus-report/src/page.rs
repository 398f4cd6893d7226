//! The page: what is written by hand in `assets/`, with the data in between.

use sha2::{Digest, Sha256};

use crate::{Report, data};

const HTML: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/page.css");
/// The parts of the script, in their order.
const SCRIPTS: [&str; 7] = [
    include_str!("../assets/base.js"),
    include_str!("../assets/overview.js"),
    include_str!("../assets/sheets.js"),
    include_str!("../assets/lightbox.js"),
    include_str!("../assets/map.js"),
    include_str!("../assets/why.js"),
    include_str!("../assets/truth.js"),
];

pub(crate) fn html(report: &Report) -> String {
    // One scope for all parts, so that nothing of the page is a global name.
    let script = format!("\"use strict\";\n(() => {{\n{}\n}})();\n", SCRIPTS.join("\n"));
    // Nothing but this style, this script and pictures within the page: whatever the data says, no other script runs and
    // nothing is fetched.
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(&script)
    );
    let blocks = data::blocks(report);
    let mut page = String::with_capacity(HTML.len() + STYLE.len() + script.len() + blocks.len() + 1024);
    let mut rest = HTML;
    // The marks are found in the template alone: what is put in is never looked at again.
    while let Some((before, (mark, after))) = rest
        .split_once("{{")
        .and_then(|(before, at)| Some((before, at.split_once("}}")?)))
    {
        page.push_str(before);
        match mark {
            "policy" => page.push_str(&policy),
            "title" => page.push_str(&escaped(&report.title)),
            "style" => page.push_str(STYLE),
            "data" => page.push_str(&blocks),
            "script" => page.push_str(&script),
            other => page.push_str(other),
        }
        rest = after;
    }
    page.push_str(rest);
    page
}

fn hash(text: &str) -> String {
    data::base64(&Sha256::digest(text.as_bytes()))
}

/// Text as it stands in HTML.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    html
}
