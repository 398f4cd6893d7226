//! The page: what is written by hand in `assets/`, with the data behind it.

use crate::document::Document;
use crate::{Report, data, modules};

const BODY: &str = include_str!("../assets/page.html");
const STYLE: [&str; 2] = [modules::BASE_CSS, include_str!("../assets/page.css")];
/// The parts of the script, in their order.
const SCRIPTS: [&str; 11] = [
    modules::SHARED_JS,
    modules::PLANE_JS,
    include_str!("../assets/base.js"),
    include_str!("../assets/overview.js"),
    include_str!("../assets/sheets.js"),
    include_str!("../assets/lightbox.js"),
    include_str!("../assets/unsure.js"),
    include_str!("../assets/map.js"),
    include_str!("../assets/why.js"),
    include_str!("../assets/truth.js"),
    include_str!("../assets/history.js"),
];

pub(crate) fn html(report: &Report) -> String {
    // One scope for all parts, so that nothing of the page is a global name.
    let script = format!(
        "\"use strict\";\n(() => {{\n{}\n}})();\n",
        SCRIPTS.map(inlined).join("\n")
    );
    let document = Document {
        title: &format!("{} · Genus", report.title),
        style: &STYLE.concat(),
        body: &format!("{BODY}{}", data::blocks(report)),
        script: &script,
    };
    document.html()
}

/// A module as a part of a longer script: what it exports is there already, and so is what it imports.
fn inlined(module: &str) -> String {
    let lines = module.lines().filter(|line| !line.starts_with("import "));
    lines
        .map(|line| line.strip_prefix("export ").unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}
