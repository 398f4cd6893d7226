//! A report as Markdown, CSV and LaTeX.

use std::fmt::Write;

use super::BenchReport;
use super::contents::Contents;

/// What stands above the second table.
pub(super) const OTHERS: &str = "Other conventions (All / Old / New in %) and indices";

impl BenchReport {
    /// The table of the paper's metric as CSV.
    pub fn csv(&self) -> String {
        self.contents().main.csv()
    }

    /// The table of the paper's metric for LaTeX, under a comment that says what it is.
    pub fn latex(&self) -> String {
        let Contents { what, main, .. } = self.contents();
        let settings = &self.settings;
        let head = format!("{}, {}: {what}", settings.experiment, settings.features);
        format!(
            "% {}\n% \\usepackage{{booktabs}}\n{}",
            head.replace('\n', " "),
            main.latex()
        )
    }

    /// The report as two Markdown tables: the paper's metric, then the other conventions.
    pub fn markdown(&self) -> String {
        let Contents {
            what,
            how,
            main,
            doubts,
            other,
        } = self.contents();
        let settings = &self.settings;
        let mut text = format!(
            "**{}**, {}: {what}.\n{how}\n\n{main}\n",
            settings.experiment, settings.features
        );
        // Writing to a string cannot fail.
        for (number, doubt) in doubts.iter().enumerate() {
            let _ = writeln!(text, "[{}] In the paper: {doubt}.\n", number + 1);
        }
        let _ = write!(text, "{OTHERS}:\n\n{other}");
        for note in &self.notes {
            let _ = writeln!(text, "\nNote: {note}.");
        }
        text
    }
}
