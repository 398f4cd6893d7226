//! The figures of the evaluation, as SVG files that stand alone.
//!
//! [`CurveChart`] draws accuracies along a setting, [`MapGrid`] episodes in the plane, [`Confusion`] what became of every
//! class. A drawing brings its own light background, so it is readable on
//! a light page and on a dark one, and uses the fonts of the reader's system. The same data gives the same bytes.
//!
//! The writer of SVG is our own: a few hundred lines give full control of the look, ship no fonts and draw nothing that is
//! not used here.
//!
//! ```
//! use genus_lab::figures::{Curve, CurveChart, CurvePoint};
//!
//! let chart = CurveChart {
//!     title: "Accuracy and the number of queries".into(),
//!     subtitle: "5-way 5-shot 5-new".into(),
//!     x: "Queries per class".into(),
//!     y: "All, %".into(),
//!     curves: vec![Curve {
//!         name: "SHC".into(),
//!         points: vec![
//!             CurvePoint { x: 5.0, mean: 70.1, half: 0.8 },
//!             CurvePoint { x: 10.0, mean: 73.4, half: 0.7 },
//!         ],
//!         paper: vec![],
//!         at: None,
//!     }],
//!     ..CurveChart::default()
//! };
//! assert!(chart.svg().starts_with("<svg "));
//! ```

mod confusion;
mod curves;
mod map;
mod svg;

pub use confusion::Confusion;
pub use curves::{AxisStop, Curve, CurveChart, CurvePoint};
pub use map::{MapGrid, MapPanel, MapRow};
