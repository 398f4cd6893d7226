//! How many images data sets have, beside what the paper says.

use genus_data::datasets::{ImageSet, Images};

use crate::paper::paper_counts;
use crate::report::Table;

/// A Markdown table of the classes and images of data sets, by which of their images are taken.
pub fn counts_table(sets: &[(Images, ImageSet)]) -> String {
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
    let mut table = Table::new(header.map(str::to_owned).to_vec(), 2);
    for (images, set) in sets {
        let paper = paper_counts(&set.name);
        let of_paper = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        table.row(vec![
            set.title.clone(),
            images.to_string(),
            set.base.len().to_string(),
            set.images_of(&set.base).to_string(),
            set.novel.len().to_string(),
            set.images_of(&set.novel).to_string(),
            of_paper(paper.map(|paper| format!("{} / {}", paper.classes, paper.classes))),
            of_paper(paper.map(|paper| paper.base.to_owned())),
            of_paper(paper.map(|paper| paper.novel.to_owned())),
        ]);
    }
    let mut text = table.to_string();
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
    for note in notes {
        text += &format!("\n- {note}");
    }
    text + "\n"
}
