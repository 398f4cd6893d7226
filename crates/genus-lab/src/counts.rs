//! How many images data sets have, beside what the paper says.

use std::fmt;

use genus_data::datasets::{ImageSet, Images};

use crate::paper::paper_counts;
use crate::report::{MarkdownTable, TableCell};

/// How many classes and images data sets have, by which of their images are taken. As text it is a Markdown table.
pub struct DatasetCounts {
    pub(crate) table: MarkdownTable,
    pub(crate) notes: Vec<String>,
}

impl fmt::Display for DatasetCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.table)?;
        for note in &self.notes {
            write!(f, "\n- {note}")?;
        }
        writeln!(f)
    }
}

impl DatasetCounts {
    /// Counts the classes and images of data sets.
    pub fn of(sets: &[(Images, ImageSet)]) -> Self {
        let header = [
            "Data set",
            "Images",
            "Base classes",
            "Base images",
            "Novel classes",
            "Novel images",
            "Paper: classes",
            "Paper: base",
            "Paper: novel",
        ];
        let mut table = MarkdownTable::new(header.map(str::to_owned).to_vec(), 2);
        for (images, set) in sets {
            let paper = paper_counts(&set.name);
            let of_paper = |text: Option<String>| text.map_or_else(TableCell::none, TableCell::from);
            let number = |count: usize| TableCell::number(count.to_string(), count as f64);
            table.row(vec![
                set.title.clone().into(),
                images.to_string().into(),
                number(set.base.len()),
                number(set.images_of(&set.base)),
                number(set.novel.len()),
                number(set.images_of(&set.novel)),
                of_paper(paper.map(|paper| format!("{} / {}", paper.classes, paper.classes))),
                of_paper(paper.map(|paper| paper.base.to_owned())),
                of_paper(paper.map(|paper| paper.novel.to_owned())),
            ]);
        }
        let mut notes: Vec<String> = Vec::new();
        for (images, set) in sets {
            // That a half lacks the classes of the other goes without saying.
            let worth_saying = matches!(images, Images::All | Images::Paper);
            for note in set.notes.iter().filter(|_| worth_saying) {
                let note = format!("{}: {note}", set.title);
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        Self { table, notes }
    }
}
