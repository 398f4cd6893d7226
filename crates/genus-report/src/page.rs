//! The page: what is written by hand in `assets/`, with the data behind it.

use crate::document::Document;
use crate::{Report, data};

const BODY: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/page.css");
/// The parts of the script, in their order.
const SCRIPTS: [&str; 9] = [
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
    let script = format!("\"use strict\";\n(() => {{\n{}\n}})();\n", SCRIPTS.join("\n"));
    let document = Document {
        title: &format!("{} · Genus", report.title),
        style: STYLE,
        body: &format!("{BODY}{}", data::blocks(report)),
        script: &script,
    };
    document.html()
}
