//! From features to places in the plane.

mod pca;
mod tsne;

use std::fmt;
use std::str::FromStr;

use crate::Features;

/// How points are laid out in the plane.
///
/// ```
/// use genus_core::{Features, projection::Projection};
///
/// let rows = Features::from_rows([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [3.0, 3.0, 2.0]])?;
/// // Three points have no neighbours to keep: what is asked for as t-SNE is their principal components.
/// assert_eq!(Projection::Tsne.for_count(rows.rows()), Projection::Pca);
/// assert_eq!(Projection::Tsne.points(&rows, 7), Projection::Pca.points(&rows, 7));
/// # Ok::<(), genus_core::FeatureError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Projection {
    /// t-SNE: points that were close stay close. The distances between groups mean little.
    #[default]
    Tsne,
    /// The two principal components: distances are true as far as two directions can show them.
    Pca,
}

impl Projection {
    /// Every way.
    pub const ALL: &[Self] = &[Self::Tsne, Self::Pca];

    /// The way that [`Self::points`] takes with so many points: t-SNE is for 5 up to 30,000 of them, and with fewer or
    /// more it is PCA.
    pub fn for_count(self, points: usize) -> Self {
        match self {
            Self::Tsne if (tsne::FEWEST..=tsne::MOST).contains(&points) => Self::Tsne,
            _ => Self::Pca,
        }
    }

    /// The place of every row. The same rows and seed give the same bits at any number of threads.
    ///
    /// Rows are compared by Euclidean distance; where the cosine is meant, scale them to length one before. PCA does not
    /// use the seed.
    pub fn points(self, rows: &Features, seed: u64) -> Vec<[f32; 2]> {
        let principal = pca::points(rows);
        match self.for_count(rows.rows()) {
            Self::Tsne => tsne::points(rows, &principal, seed).unwrap_or(principal),
            Self::Pca => principal,
        }
    }
}

impl fmt::Display for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tsne => "tsne",
            Self::Pca => "pca",
        })
    }
}

impl FromStr for Projection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "tsne" => Ok(Self::Tsne),
            "pca" => Ok(Self::Pca),
            _ => Err("one of tsne, pca".into()),
        }
    }
}
