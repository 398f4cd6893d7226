//! Tables, before they are Markdown or part of a page.

use std::fmt;

use super::Interval;

/// What stands in one cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// What it is sorted by, where that is a number.
    pub(crate) value: Option<f64>,
    /// A share and half of its interval, where it is one.
    pub(crate) share: Option<(f64, f64)>,
    /// What the paper has in its place, as a share.
    pub(crate) paper: Option<f64>,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl Cell {
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
pub(crate) struct Table {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// How many columns are text; the others are numbers.
    pub(crate) texts: usize,
}

impl Table {
    pub(crate) fn new(header: Vec<String>, texts: usize) -> Self {
        Self {
            header,
            rows: Vec::new(),
            texts,
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A name may hold what ends a cell.
        let of = |row: &Vec<Cell>| row.iter().map(|cell| cell.text.replace('|', "\\|")).collect();
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
