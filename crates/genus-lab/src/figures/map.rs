//! Episodes in the plane: one row an episode, one column a view of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use genus_core::{Category, Kind};

use super::svg::{INK, MARGIN, Mark, SOFT, Svg, fit, shape, text_width};
use genus_report::palette::colours;

/// Maps of episodes: a row an episode, a column a view of it (the truth, one method, another).
#[derive(Clone, Debug, PartialEq)]
pub struct MapGrid {
    /// What the maps show.
    pub title: String,
    /// What was run to draw them.
    pub subtitle: String,
    /// The names of the views.
    pub columns: Vec<String>,
    /// Whether the first view is the truth: points that another view puts elsewhere then get a dark edge.
    pub truth: bool,
    /// The episodes.
    pub rows: Vec<MapRow>,
}

/// One episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapRow {
    /// What the episode is called; may be empty.
    pub name: String,
    /// Where the points lie: the prototypes, then the queries.
    pub points: Vec<[f32; 2]>,
    /// How many of the points are prototypes of known classes.
    pub known: usize,
    /// The views, in the order of the columns.
    pub panels: Vec<MapPanel>,
}

/// One view of an episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapPanel {
    /// The category of every point. Along a row a category has one colour, so groups should be numbered as the true classes
    /// they were matched with. A point without a category is grey.
    pub categories: Vec<Category>,
    /// What stands below, such as an accuracy; may be empty.
    pub caption: String,
}

const WIDTH: f64 = 920.0;
const GAP: f64 = 14.0;
/// The least space between a point and the edge of its panel.
const INSET: f64 = 16.0;

impl MapGrid {
    /// The maps as an SVG file. Points that are not finite are left out.
    pub fn svg(&self) -> String {
        let count = self
            .columns
            .len()
            .max(self.rows.iter().map(|row| row.panels.len()).max().unwrap_or(0))
            .max(1);
        let side = ((WIDTH - 2.0 * MARGIN + GAP) / count as f64 - GAP).clamp(130.0, 440.0);
        let width = (2.0 * MARGIN + count as f64 * (side + GAP) - GAP).max(460.0);
        let left = (width - count as f64 * (side + GAP) + GAP) / 2.0;
        let column = |at: usize| left + at as f64 * (side + GAP);

        let mut svg = Svg::new();
        let mut y = svg.header(&self.title, &self.subtitle, width);
        if self.columns.iter().any(|name| !name.is_empty()) {
            y += 30.0;
            for (at, name) in self.columns.iter().enumerate() {
                let style = format_args!(r#"font-size="13.5" font-weight="600" fill="{INK}" text-anchor="middle""#);
                svg.text([column(at) + side / 2.0, y], &fit(name, 13.5, side), style);
            }
        }
        for row in &self.rows {
            if !row.name.is_empty() {
                y += 24.0;
                let style = format_args!(r#"font-size="12" fill="{SOFT}""#);
                svg.text([left, y], &fit(&row.name, 12.0, width - 2.0 * MARGIN), style);
            }
            y += 9.0;
            let layout = Layout::of(row, side);
            for (at, panel) in row.panels.iter().enumerate() {
                let truth = row.panels.first().filter(|_| self.truth && at > 0);
                layout.draw(&mut svg, [column(at), y], panel, truth);
                let style = format_args!(r#"font-size="12.5" fill="{INK}" text-anchor="middle""#);
                svg.text(
                    [column(at) + side / 2.0, y + layout.size[1] + 19.0],
                    &fit(&panel.caption, 12.5, side),
                    style,
                );
            }
            y += layout.size[1]
                + if row.panels.iter().any(|panel| !panel.caption.is_empty()) {
                    26.0
                } else {
                    6.0
                };
        }
        if self.rows.is_empty() {
            y += 60.0;
            svg.text(
                [width / 2.0, y],
                "no data",
                format_args!(r#"font-size="14" fill="{SOFT}" text-anchor="middle""#),
            );
        }
        y = self.legend(&mut svg, y + 24.0, width);
        svg.finish(width, y + MARGIN - 4.0, &self.title, &self.description())
    }

    /// What the marks mean.
    fn legend(&self, svg: &mut Svg, mut y: f64, width: f64) -> f64 {
        let queries = |row: &MapRow| -> BTreeSet<Kind> {
            let all = row
                .panels
                .iter()
                .flat_map(|panel| panel.categories.iter().skip(row.known));
            all.map(|category| category.kind()).collect()
        };
        let kinds: BTreeSet<Kind> = self.rows.iter().flat_map(queries).collect();
        let mut entries: Vec<(&[Mark], String)> = Vec::new();
        if self.rows.iter().any(|row| row.known > 0) {
            entries.push((&[Mark::Star], "prototype of a known class".into()));
        }
        if kinds.contains(&Kind::Known) {
            entries.push((&[Mark::Circle], "in a known class".into()));
        }
        if kinds.contains(&Kind::Novel) {
            entries.push((&[Mark::Triangle, Mark::Diamond], "in a new category".into()));
        }
        if self.truth && self.columns.len() > 1 {
            entries.push((
                &[],
                format!("elsewhere than in “{}”", fit(&self.columns[0], 12.0, 120.0)),
            ));
        }
        let mut x = MARGIN;
        for (marks, text) in entries {
            let drawn = 15.0 * marks.len().max(1) as f64;
            let whole = drawn + 6.0 + text_width(&text, 12.0);
            if x > MARGIN && x + whole > width - MARGIN {
                (x, y) = (MARGIN, y + 21.0);
            }
            for (at, &mark) in marks.iter().enumerate() {
                let at = [x + 7.0 + 15.0 * at as f64, y];
                let (size, edge) = if mark == Mark::Star {
                    (5.2, INK)
                } else {
                    (4.4, "#ffffff")
                };
                svg.path(
                    &shape(mark, at, size),
                    format_args!(r#"fill="{SOFT}" stroke="{edge}" stroke-width="0.9""#),
                );
            }
            if marks.is_empty() {
                let d = shape(Mark::Circle, [x + 7.0, y], 4.4);
                svg.path(&d, format_args!(r##"fill="#c8ced5" {ELSEWHERE}"##));
            }
            svg.text(
                [x + drawn + 5.0, y + 4.2],
                &text,
                format_args!(r#"font-size="12" fill="{SOFT}""#),
            );
            x += whole + 18.0;
        }
        y
    }

    fn description(&self) -> String {
        let mut text = String::from("Points in the plane, coloured by category.");
        for row in &self.rows {
            for (at, panel) in row.panels.iter().enumerate() {
                let kinds: BTreeSet<_> = panel.categories.iter().collect();
                let known = kinds
                    .iter()
                    .filter(|category| matches!(category, Category::Known(_)))
                    .count();
                let name = self.columns.get(at).map_or("", String::as_str);
                // Writing to a string cannot fail.
                let _ = write!(
                    text,
                    " {}, {name}: {known} known, {} new",
                    row.name,
                    kinds.len() - known
                );
                let _ = if panel.caption.is_empty() {
                    write!(text, ".")
                } else {
                    write!(text, "; {}.", panel.caption)
                };
            }
        }
        text
    }
}

/// The edge of a point that is where the truth has it …
const RIGHT: &str = r##"stroke="#ffffff" stroke-width="0.7""##;
/// … and of one that is elsewhere.
const ELSEWHERE: &str = r##"stroke="#1f2328" stroke-width="1.15""##;

/// What the panels of a row share: places, sizes and colours.
struct Layout<'a> {
    row: &'a MapRow,
    size: [f64; 2],
    /// The place of every point in a panel, where it has one.
    places: Vec<Option<[f64; 2]>>,
    radius: f64,
    colours: BTreeMap<Category, String>,
}

impl<'a> Layout<'a> {
    fn of(row: &'a MapRow, side: f64) -> Self {
        let finite = |point: &&[f32; 2]| point.iter().all(|value| value.is_finite());
        let mut low = [f64::MAX; 2];
        let mut high = [f64::MIN; 2];
        for point in row.points.iter().filter(finite) {
            for axis in 0..2 {
                low[axis] = low[axis].min(f64::from(point[axis]));
                high[axis] = high[axis].max(f64::from(point[axis]));
            }
        }
        // One scale for both directions: distances are what a map is about. Flat maps get flat panels.
        let (wide, tall) = ((high[0] - low[0]).max(0.0), (high[1] - low[1]).max(0.0));
        let room = side - 2.0 * INSET;
        let scale = if wide.max(tall) > 0.0 {
            room / wide.max(tall)
        } else {
            0.0
        };
        let size = [side, (tall * scale).max(0.5 * room) + 2.0 * INSET];
        let place = |point: &[f32; 2]| {
            finite(&point).then(|| {
                let along = |axis: usize| (f64::from(point[axis]) - (low[axis] + high[axis]) / 2.0) * scale;
                [size[0] / 2.0 + along(0), size[1] / 2.0 - along(1)]
            })
        };
        let categories: BTreeSet<Category> = row
            .panels
            .iter()
            .flat_map(|panel| panel.categories.iter().copied())
            .collect();
        let count = categories.len();
        Self {
            row,
            size,
            places: row.points.iter().map(place).collect(),
            radius: (0.2 * side / (row.points.len().max(1) as f64).sqrt()).clamp(1.6, 4.6),
            colours: categories.into_iter().zip(colours(count)).collect(),
        }
    }

    /// One panel: its queries, then those that are elsewhere in the truth, and the prototypes on top.
    fn draw(&self, svg: &mut Svg, [x, y]: [f64; 2], panel: &MapPanel, truth: Option<&MapPanel>) {
        svg.rect(
            [x, y],
            self.size,
            format_args!(r##"rx="8" fill="#ffffff" stroke="#d8dee4""##),
        );
        let mut layers: [BTreeMap<Option<Category>, Vec<String>>; 3] = Default::default();
        for (at, place) in self.places.iter().enumerate() {
            let Some(place) = place.map(|[right, down]| [x + right, y + down]) else {
                continue;
            };
            let category = panel.categories.get(at).copied();
            let elsewhere = truth.is_some_and(|truth| truth.categories.get(at).copied() != category);
            let (layer, mark, radius) = match category {
                _ if at < self.row.known => (2, Mark::Star, 1.6 * self.radius),
                Some(Category::Novel(group)) if group % 2 == 0 => (usize::from(elsewhere), Mark::Triangle, self.radius),
                Some(Category::Novel(_)) => (usize::from(elsewhere), Mark::Diamond, self.radius),
                _ => (usize::from(elsewhere), Mark::Circle, self.radius),
            };
            layers[layer]
                .entry(category)
                .or_default()
                .push(shape(mark, place, radius));
        }
        for (layer, edge) in layers.iter().zip([RIGHT, ELSEWHERE, ELSEWHERE]) {
            for (category, marks) in layer {
                let colour = category.and_then(|category| self.colours.get(&category));
                let colour = colour.map_or("#b3bac2", String::as_str);
                svg.open(format_args!(r#"fill="{colour}" {edge} stroke-linejoin="round""#));
                marks.iter().for_each(|d| svg.path(d, format_args!("")));
                svg.close();
            }
        }
    }
}
