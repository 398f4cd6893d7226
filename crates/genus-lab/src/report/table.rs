//! Tables, before they are Markdown or part of a page.

use std::fmt;

use super::Interval;

/// What stands in one cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableCell {
    pub(crate) text: String,
    /// What it is sorted by, where that is a number.
    pub(crate) value: Option<f64>,
    /// A share and half of its interval, where it is one.
    pub(crate) share: Option<(f64, f64)>,
    /// What the paper has in its place, as a share.
    pub(crate) paper: Option<f64>,
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl TableCell {
    /// A number.
    pub(crate) fn number(text: String, value: f64) -> Self {
        Self {
            text,
            value: value.is_finite().then_some(value),
            ..Self::default()
        }
    }

    /// Nothing to say.
    pub(crate) fn none() -> Self {
        Self::from("–".to_owned())
    }

    /// A share in %, with half the width of its interval.
    pub(crate) fn percent(interval: Interval) -> Self {
        let Interval { mean, ci95 } = interval;
        if mean.is_nan() {
            return Self::none();
        }
        Self {
            text: format!("{:.1} ± {:.1}", 100.0 * mean, 100.0 * ci95),
            value: Some(mean),
            share: Some((mean, ci95)),
            paper: None,
        }
    }

    /// A share in %.
    pub(crate) fn short(interval: Interval) -> Self {
        match interval.mean.is_nan() {
            true => Self::none(),
            false => Self::number(format!("{:.1}", 100.0 * interval.mean), interval.mean),
        }
    }

    /// The same with what the paper has in its place, in %.
    pub(crate) fn beside(mut self, paper: Option<f64>) -> Self {
        self.paper = paper.map(|percent| percent / 100.0);
        self
    }
}

/// A table. As text it is Markdown whose columns line up as plain text too.
#[derive(Clone, Debug)]
pub(crate) struct MarkdownTable {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<TableCell>>,
    /// How many columns are text; the others are numbers.
    pub(crate) texts: usize,
}

impl MarkdownTable {
    pub(crate) fn new(header: Vec<String>, texts: usize) -> Self {
        Self {
            header,
            rows: Vec::new(),
            texts,
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<TableCell>) {
        self.rows.push(cells);
    }
}

impl MarkdownTable {
    /// The table as CSV: shares in % with half of their interval in a column of its own, other numbers as they are.
    pub(crate) fn csv(&self) -> String {
        let with_interval = |column: usize| self.rows.iter().any(|row| row[column].share.is_some());
        let mut text = String::new();
        let mut line = |cells: Vec<String>| {
            text += &cells.join(",");
            text.push('\n');
        };
        let header = self.header.iter().enumerate().flat_map(|(column, name)| {
            let interval = with_interval(column).then(|| csv_cell(&format!("{name} ±")));
            std::iter::once(csv_cell(name)).chain(interval)
        });
        line(header.collect());
        for row in &self.rows {
            let cells = row.iter().enumerate().flat_map(|(column, cell)| {
                let value = match (cell.share, cell.value) {
                    (Some((mean, _)), _) => format!("{:.3}", 100.0 * mean),
                    (None, Some(value)) if value.fract() == 0.0 => value.to_string(),
                    (None, Some(value)) => format!("{value:.3}"),
                    (None, None) if column >= self.texts => String::new(),
                    (None, None) => csv_cell(&cell.text),
                };
                let half = cell
                    .share
                    .map_or(String::new(), |(_, half)| format!("{:.3}", 100.0 * half));
                std::iter::once(value).chain(with_interval(column).then_some(half))
            });
            line(cells.collect());
        }
        text
    }

    /// The table for LaTeX, with the rules of the package booktabs.
    pub(crate) fn latex(&self) -> String {
        let columns: String = (0..self.header.len())
            .map(|column| if column < self.texts { 'l' } else { 'r' })
            .collect();
        let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
        let header = line(self.header.iter().map(|name| latex_text(name)).collect());
        let rows = self.rows.iter();
        let rows: String = rows
            .map(|row| line(row.iter().map(|cell| latex_text(&cell.text)).collect()))
            .collect();
        format!("\\begin{{tabular}}{{{columns}}}\n\\toprule\n{header}\\midrule\n{rows}\\bottomrule\n\\end{{tabular}}\n")
    }
}

fn csv_cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// A text as LaTeX prints it.
fn latex_text(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            '\\' => escaped += "\\textbackslash{}",
            '~' => escaped += "\\textasciitilde{}",
            '^' => escaped += "\\textasciicircum{}",
            '±' => escaped += "$\\pm$",
            '–' => escaped += "--",
            '×' => escaped += "$\\times$",
            'α' => escaped += "$\\alpha$",
            other => escaped.push(other),
        }
    }
    escaped
}

impl fmt::Display for MarkdownTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A name may hold what ends a cell.
        let of = |row: &Vec<TableCell>| row.iter().map(|cell| cell.text.replace('|', "\\|")).collect();
        let rows: Vec<Vec<String>> = std::iter::once(self.header.clone())
            .chain(self.rows.iter().map(of))
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let numbers = |column: usize| column >= self.texts;
        for (at, row) in rows.iter().enumerate() {
            for (column, cell) in row.iter().enumerate() {
                let fill = " ".repeat(widths[column] - cell.chars().count());
                match numbers(column) {
                    true => write!(f, "| {fill}{cell} ")?,
                    false => write!(f, "| {cell}{fill} ")?,
                }
            }
            writeln!(f, "|")?;
            if at == 0 {
                for (column, &width) in widths.iter().enumerate() {
                    match numbers(column) {
                        true => write!(f, "|-{}:", "-".repeat(width))?,
                        false => write!(f, "|-{}-", "-".repeat(width))?,
                    }
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}
