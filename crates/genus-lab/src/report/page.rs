//! Reports as one self-contained page: it asks the network for nothing and opens from disk in any browser.
//!
//! Whatever others have named, a file, a class, a method, is escaped on its way into the page.

use std::fmt::Write;

use super::contents::Contents;
use super::markdown::OTHERS;
use super::table::{MarkdownTable, TableCell};
use super::{BenchReport, Settings, examples_in_words, in_words};
use crate::charts::Figure;
use crate::experiment::ExperimentKind;
use crate::machine::Machine;
use genus_report::{Document, escape};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What the columns of the tables mean.
const COLUMNS: [(&str, &str); 15] = [
    (
        "All",
        "The share of all queries that were put right, once every group that was found stands for the class it fits best",
    ),
    ("Old", "The same of the queries of known classes"),
    ("New", "The same of the queries of classes that nobody named"),
    ("K", "How many categories were found on average, of how many there are"),
    ("K error", "How far that was from the truth, on average"),
    ("AUROC", "How often a known query has a higher score than a new one"),
    (
        "Waiting",
        "The share of the items that fit no category yet and wait for others that agree with them",
    ),
    (
        "ECE",
        "Expected calibration error: by how much the probability of an item differs from the share of such items that is \
         right, on average",
    ),
    (
        "Errors found",
        "The share of the errors that are among the least sure tenth of the items",
    ),
    (
        "Outliers found",
        "The share of the outliers that are less sure than nine tenths of the other items",
    ),
    ("Outliers unsure", "The share of the outliers that were called unsure"),
    (
        "Others unsure",
        "The share of the other queries that were called unsure",
    ),
    ("Paper", "What the paper has in its place: All / Old / New"),
    ("NMI", "Normalised mutual information of what was found and the truth"),
    ("ARI", "Adjusted Rand index of what was found and the truth"),
];

/// A page and what is on it.
pub(crate) struct ReportPage {
    /// What it is about.
    pub(crate) title: String,
    /// The same in a sentence or two.
    pub(crate) lead: String,
    /// The command that made it.
    pub(crate) command: String,
    /// What it was made with.
    pub(crate) machine: Machine,
}

/// A part of a section.
pub(crate) enum SectionBlock {
    Paragraph(String),
    Heading(String),
    List(Vec<String>),
    Table(MarkdownTable),
    Figure(Figure),
    /// A report and, where there are others beside it, what it is called.
    Report(Option<String>, Box<BenchReport>),
}

impl BenchReport {
    /// The report as a page: what was run in plain words, the tables, the chart and the command that made them.
    pub fn page(&self, command: &str) -> String {
        let settings = &self.settings;
        let mut page = PageWriter::default();
        page.report(self);
        ReportPage {
            title: format!("{}: {}", settings.experiment, file_names(&settings.features)),
            lead: settings.in_plain_words(),
            command: command.to_owned(),
            machine: settings.machine.clone(),
        }
        .around(page)
    }
}

/// Data without the folders that it lies in; the command has them.
fn file_names(features: &str) -> String {
    let name = |path: &str| path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned();
    features.split(", ").map(name).collect::<Vec<_>>().join(", ")
}

/// Drawings as a page, with the command that made them.
pub fn figures_page(title: &str, lead: &str, command: &str, figures: &[Figure], machine: Machine) -> String {
    let mut page = PageWriter::default();
    figures.iter().for_each(|figure| page.figure(figure));
    ReportPage {
        title: title.to_owned(),
        lead: lead.to_owned(),
        command: command.to_owned(),
        machine,
    }
    .around(page)
}

impl ReportPage {
    /// The page with titled sections, and a list of them at its beginning.
    pub(crate) fn html(&self, sections: &[(&str, Vec<&SectionBlock>)]) -> String {
        let mut body = PageWriter::default();
        let mut list = String::from("<nav aria-label=\"Contents\"><ol>\n");
        for (number, (title, blocks)) in sections.iter().enumerate() {
            let _ = write!(list, "<li><a href=\"#s{number}\">{}</a>", escape(title));
            body.push(&format!("<section id=\"s{number}\">\n<h2>{}</h2>\n", escape(title)));
            let mut parts = String::new();
            for (part, block) in blocks.iter().enumerate() {
                match block {
                    SectionBlock::Paragraph(text) => body.paragraph(text),
                    SectionBlock::Heading(text) => body.push(&format!("<h3>{}</h3>\n", escape(text))),
                    SectionBlock::List(items) => body.list(items),
                    SectionBlock::Table(table) => body.table(table),
                    SectionBlock::Figure(figure) => body.figure(figure),
                    SectionBlock::Report(name, report) => {
                        if let Some(name) = name {
                            let name = escape(name);
                            let _ = write!(parts, "<li><a href=\"#s{number}-{part}\">{name}</a></li>");
                            body.push(&format!("<h3 id=\"s{number}-{part}\">{name}</h3>\n"));
                        }
                        body.paragraph(&report.settings.in_plain_words());
                        body.report(report);
                    }
                }
            }
            body.push("</section>\n");
            match parts.is_empty() {
                true => list += "</li>\n",
                false => {
                    let _ = writeln!(list, "<ol>{parts}</ol></li>");
                }
            }
        }
        list += "</ol></nav>\n";
        let mut with_list = PageWriter { html: list };
        with_list.push(&body.html);
        self.around(with_list)
    }

    fn around(&self, body: PageWriter) -> String {
        let Machine {
            system,
            architecture,
            processor,
            threads,
        } = &self.machine;
        let machine = format!(
            "Genus {} on {system} {architecture}, {}, {threads} threads",
            env!("CARGO_PKG_VERSION"),
            processor.as_deref().unwrap_or("unknown processor")
        );
        let (title, lead, command) = (escape(&self.title), escape(&self.lead), escape(&self.command));
        let mut columns = String::new();
        for (column, meaning) in COLUMNS.iter().filter(|(column, _)| body.has_column(column)) {
            let _ = writeln!(columns, "<dt>{}</dt><dd>{}.</dd>", escape(column), escape(meaning));
        }
        if body.html.contains("class=\"bar\"") {
            columns += "<dt>Bars</dt><dd>The share, the 95 % interval of its mean as a band and, where there is one, the \
                        paper's figure as a mark.</dd>\n";
        }
        let reading = match columns.is_empty() {
            true => String::new(),
            false => format!(
                "<details class=\"reading\"><summary>How to read the tables</summary><dl>\n{columns}</dl></details>\n"
            ),
        };
        let body = format!(
            "<header>\n<h1>{title}</h1>\n<p class=\"lead\">{lead}</p>\n\
             <pre class=\"command\" tabindex=\"0\"><code>{command}</code></pre>\n{reading}</header>\n<main>\n{}</main>\n\
             <footer>{}</footer>\n",
            body.html,
            escape(&machine)
        );
        let document = Document {
            title: &self.title,
            style: STYLE,
            body: &body,
            script: SCRIPT,
        };
        document.html()
    }
}

/// The inside a page.
#[derive(Default)]
struct PageWriter {
    html: String,
}

impl PageWriter {
    /// Writes markup of our own; what others have named goes through [`escape`].
    fn push(&mut self, markup: &str) {
        self.html += markup;
    }

    fn paragraph(&mut self, text: &str) {
        // The marks of code are for Markdown.
        self.push(&format!("<p>{}</p>\n", escape(&text.replace('`', ""))));
    }

    fn list(&mut self, items: &[String]) {
        if !items.is_empty() {
            self.push("<ul>\n");
            for item in items {
                self.push(&format!("<li>{}</li>\n", escape(item)));
            }
            self.push("</ul>\n");
        }
    }

    /// A drawing. Its text is escaped already, and it has no names that another could share.
    fn figure(&mut self, figure: &Figure) {
        self.push(&format!("<figure>\n{}</figure>\n", figure.svg));
    }

    fn report(&mut self, report: &BenchReport) {
        let Contents {
            what,
            how,
            main,
            doubts,
            other,
        } = report.contents();
        self.push(&format!("<p class=\"what\">{}.</p>\n", escape(&what)));
        // Where there is a curve it says more at a glance than its table.
        if let Some(figure) = report.chart() {
            self.figure(&figure);
        }
        self.table(&main);
        self.push(&format!("<p class=\"note\">{}</p>\n", escape(&how)));
        for (number, doubt) in doubts.iter().enumerate() {
            let doubt = format!("[{}] In the paper: {doubt}.", number + 1);
            self.push(&format!("<p class=\"note\">{}</p>\n", escape(&doubt)));
        }
        for note in &report.notes {
            self.push(&format!("<p class=\"note\"><b>Note:</b> {}.</p>\n", escape(note)));
        }
        self.push(&format!("<details><summary>{}</summary>\n", escape(OTHERS)));
        self.table(&other);
        self.push("</details>\n");
    }

    fn table(&mut self, table: &MarkdownTable) {
        self.push("<div class=\"scroll\"><table>\n<thead><tr>");
        for (column, title) in table.header.iter().enumerate() {
            let class = if column < table.texts { "" } else { " class=\"n\"" };
            let meaning = COLUMNS.iter().find(|(name, _)| name == title);
            let hint = meaning.map_or(String::new(), |(_, meaning)| format!(" title=\"{}\"", escape(meaning)));
            self.push(&format!(
                "<th scope=\"col\"{class}><button{hint}>{}</button></th>",
                escape(title)
            ));
        }
        self.push("</tr></thead>\n<tbody>\n");
        let best = best(table);
        for (at, row) in table.rows.iter().enumerate() {
            self.push("<tr>");
            for (column, cell) in row.iter().enumerate() {
                self.cell(cell, column >= table.texts, best.contains(&(at, column)));
            }
            self.push("</tr>\n");
        }
        self.push("</tbody>\n</table></div>\n");
    }

    fn cell(&mut self, cell: &TableCell, is_number: bool, is_best: bool) {
        let class = match (is_number, is_best) {
            (true, true) => " class=\"n best\"",
            (true, false) => " class=\"n\"",
            (false, _) => "",
        };
        let value = cell.value.map_or(String::new(), |value| format!(" data-v=\"{value}\""));
        self.push(&format!("<td{class}{value}>"));
        match (cell.share, cell.text.split_once(" ± ")) {
            (Some(share), Some((mean, half))) => {
                self.push(&format!("{} <small>± {}</small>", escape(mean), escape(half)));
                self.bar(share, cell.paper);
            }
            _ => self.push(&escape(&cell.text)),
        }
        self.push("</td>");
    }

    /// A share as a bar, with its interval and the paper's figure.
    fn bar(&mut self, (mean, half): (f64, f64), paper: Option<f64>) {
        let at = |share: f64| format!("{:.1}", 100.0 * share.clamp(0.0, 1.0));
        let half = if half.is_finite() { half } else { 0.0 };
        let (low, high) = ((mean - half).clamp(0.0, 1.0), (mean + half).clamp(0.0, 1.0));
        self.push("<svg class=\"bar\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
        self.push(&format!(
            "<rect class=\"t\" width=\"100\" height=\"6\"/><rect class=\"m\" width=\"{}\" height=\"6\"/>\
             <rect class=\"i\" x=\"{}\" width=\"{}\" height=\"6\"/>",
            at(mean),
            at(low),
            at(high - low)
        ));
        if let Some(paper) = paper.filter(|paper| paper.is_finite()) {
            let x = at(paper);
            self.push(&format!("<line class=\"p\" x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"6\"/>"));
        }
        self.push("</svg>");
    }

    fn has_column(&self, name: &str) -> bool {
        self.html.contains(&format!(">{}</button>", escape(name)))
    }
}

/// The largest share of every column, among the rows that differ in the method alone.
fn best(table: &MarkdownTable) -> Vec<(usize, usize)> {
    let group = |row: &[TableCell]| -> Vec<String> {
        let apart_from_method = table.texts.saturating_sub(1);
        row[..apart_from_method].iter().map(|cell| cell.text.clone()).collect()
    };
    let mut best = Vec::new();
    for column in table.texts..table.header.len() {
        for (at, row) in table.rows.iter().enumerate() {
            let Some((mean, _)) = row[column].share else { continue };
            let rivals = table.rows.iter().filter(|other| group(other) == group(row));
            let mut shares = rivals.clone().filter_map(|other| other[column].share);
            if rivals.count() > 1 && shares.all(|(other, _)| other <= mean) {
                best.push((at, column));
            }
        }
    }
    best
}

impl Settings {
    /// What was run, for someone who has never heard of it.
    pub(crate) fn in_plain_words(&self) -> String {
        let Self { way, shot, new, .. } = *self;
        let many = |count: usize, one: &str| match count {
            1 => format!("1 {one}"),
            more => format!("{more} {one}s"),
        };
        let examples = examples_in_words(shot);
        let classes = format!(
            "{} that are known from {examples} and {} that nobody named",
            many(way, "class").replace("classs", "classes"),
            new
        );
        let queries = in_words(self.query, self.pile());
        let task = format!(
            "A method has to say which unlabelled queries belong to the known classes and to sort the rest into new groups, \
             without being told how many there are. Every episode draws {classes}, with {queries}."
        );
        match self.experiment {
            ExperimentKind::RealTime => format!(
                "Queries are judged one by one as they arrive: each belongs to a known class or is new. Every episode draws \
                 {classes}, with {queries}."
            ),
            ExperimentKind::Large => format!(
                "A pile that is too large to be clustered as a whole: a part of it is clustered and the rest joins the \
                 nearest category. Every task draws {classes}."
            ),
            ExperimentKind::Queries => format!("How much it helps to see more of the pile at once. {task}")
                .replace(&format!(", with {queries}"), ", with more and more queries a class"),
            ExperimentKind::Piles => format!(
                "Piles as people have them, which differ in one thing at a time: the items of a class, a long tail, bursts \
                 of frames of one scene, the examples of a known class, items that belong nowhere. Every pile draws \
                 {classes}."
            ),
            ExperimentKind::Stream => format!(
                "A pile that comes item by item: each joins a category or waits until others agree with it, and what was \
                 decided stays. The order matters, so there are several. After some of the items it is looked at, beside \
                 what methods make of as many of them at once. Every pile draws {classes}, with {queries}."
            ),
            ExperimentKind::Tasks => {
                "How hard it is with more and with fewer classes: the same methods with other numbers of known and new \
                        classes, examples and queries."
                    .to_owned()
            }
            ExperimentKind::Alpha => {
                format!("UKC with other values of α, which says how large a cluster may be before it is split. {task}")
            }
            ExperimentKind::Threshold => {
                format!("SHC with other values of t: clusters of more than t items are kept as they are. {task}")
            }
            ExperimentKind::Ablation => format!("The method calibrated without one of its parts at a time. {task}"),
            ExperimentKind::Backbones => format!("The same methods on the features of several encoders. {task}"),
            ExperimentKind::Transfer => format!("Encoders that were trained on one data set, tested on others. {task}"),
            ExperimentKind::Main => task,
        }
    }
}
