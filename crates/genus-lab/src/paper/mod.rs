//! The figures of the paper's tables.
//!
//! `cells.csv` has every cell of *Few-shot Novel Category Discovery* (IJCAI 2025, arXiv 2505.08260). The row of SHC in the
//! real-time table is the authors' code with its factor 1.1, `shc:boost=1.1` here: without it SHC and UKC would be equal. The
//! table of backbones names its columns CUB-200 and ImageNet-100, but its figures of the ViT are those of CIFAR-100 and CUB-200
//! in the main table, and that is how it is read here.

use genus_core::episode::Shape;
use serde::{Deserialize, Serialize};

const CELLS: &str = include_str!("cells.csv");

/// A cell of the paper's tables, in %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperCell {
    /// Accuracy over all queries.
    pub all: f64,
    /// Over queries of known classes.
    pub old: f64,
    /// Over queries of new classes; ProtoNet has none.
    pub new: Option<f64>,
    /// Why it cannot be trusted, if there is a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// What a cell stands for.
#[derive(Clone, Copy, Debug)]
pub struct CellPlace<'a> {
    /// The experiment: `main`, `realtime` and so on.
    pub table: &'a str,
    /// The shape of the episodes; there are 15 queries per class in all tables.
    pub shape: Shape,
    /// The encoder in the table of backbones, the data set trained on in that of transfer, nothing elsewhere.
    pub subject: &'a str,
    /// The method, as on the command line.
    pub method: &'a str,
    /// The name of the data set.
    pub set: &'a str,
}

/// The queries per class in all of the paper's tables.
const QUERIES: usize = 15;

/// By how much All may differ from the mean of Old and New when all three are rounded.
const ROUNDING: f64 = 0.11;

/// The paper's figures for a place of its tables, if it has any.
pub fn paper_cell(place: CellPlace) -> Option<PaperCell> {
    let CellPlace { shape, .. } = place;
    // A large task takes all items of its classes.
    if shape.query != QUERIES && place.table != "large" {
        return None;
    }
    let shape_name = shape.to_string();
    let wanted = [place.table, &shape_name, place.subject, place.method, place.set];
    let mut fields = CELLS
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>())
        .find(|fields| fields.starts_with(&wanted))?
        .into_iter()
        .skip(wanted.len());
    let mut next = || fields.next().unwrap_or_default();
    let (all, old): (f64, f64) = (next().parse().ok()?, next().parse().ok()?);
    let (new, doubt): (Option<f64>, &str) = (next().parse().ok(), next());
    let shares = [(old, shape.way), (new.unwrap_or(0.0), shape.new)];
    let mean = shares
        .iter()
        .map(|&(share, classes)| share * classes as f64)
        .sum::<f64>()
        / (shape.way + shape.new) as f64;
    let doubt = if !doubt.is_empty() {
        Some(doubt.to_owned())
    } else if (all - mean).abs() > ROUNDING {
        Some(format!("All is not the mean of Old and New, {mean:.1}"))
    } else {
        None
    };
    Some(PaperCell { all, old, new, doubt })
}

/// How many classes and images the paper says a data set has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaperCounts {
    /// Base classes; there are as many novel ones.
    pub classes: usize,
    /// Images of base classes, as printed.
    pub base: &'static str,
    /// Images of novel classes, as printed.
    pub novel: &'static str,
}

/// The paper's table of data sets.
pub fn paper_counts(set: &str) -> Option<PaperCounts> {
    let (classes, base, novel) = match set {
        "cifar100" => (50, "25k", "25k"),
        "imagenet100" => (50, "65k", "65k"),
        "cub200" => (100, "3k", "3k"),
        "cars" => (98, "6.5k", "8.1k"),
        "aircraft" => (50, "4.4k", "4.4k"),
        _ => return None,
    };
    Some(PaperCounts { classes, base, novel })
}
