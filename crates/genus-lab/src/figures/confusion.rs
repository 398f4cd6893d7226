//! What became of every class: a confusion matrix.

use super::svg::{INK, MARGIN, Num, SOFT, Svg, decimals, fit, text_width};
use genus_report::escape;
use genus_report::palette::shade;

/// A confusion matrix: how many items of every true class went to every category.
#[derive(Clone, Debug, PartialEq)]
pub struct Confusion {
    /// What was sorted, and by whom.
    pub title: String,
    /// What was run.
    pub subtitle: String,
    /// The true classes.
    pub rows: Vec<String>,
    /// The categories that were found.
    pub columns: Vec<String>,
    /// For every row, how many of its items went to every column; what is missing is zero.
    pub counts: Vec<Vec<u64>>,
    /// Rows before this one are known classes.
    pub known_rows: usize,
    /// Columns before this one are known classes.
    pub known_columns: usize,
}

/// The widest name of a row or column.
const NAME: f64 = 170.0;
/// Smaller cells show no number.
const NUMBERED: f64 = 21.0;

impl Confusion {
    /// The matrix as an SVG file: the shade of a cell is its share of the row.
    pub fn svg(&self) -> String {
        let longest = self.counts.iter().map(Vec::len).max().unwrap_or(0);
        let (rows, columns) = (self.rows.len().max(self.counts.len()), self.columns.len().max(longest));
        let grid = Grid::of(self, rows, columns);
        let mut svg = Svg::new();
        let top = svg.header(&self.title, &self.subtitle, grid.width);
        if rows == 0 || columns == 0 {
            let middle = format_args!(r#"font-size="14" fill="{SOFT}" text-anchor="middle""#);
            svg.text([grid.width / 2.0, top + 60.0], "no data", middle);
            return svg.finish(grid.width, top + 100.0, &self.title, "An empty confusion matrix.");
        }
        let origin = [grid.left, top + 26.0 + grid.above];
        self.names(&mut svg, &grid, origin);
        self.cells(&mut svg, &grid, origin);
        self.dividers(&mut svg, &grid, origin);
        let bottom = origin[1] + rows as f64 * grid.cell;
        ramp(&mut svg, [grid.left, bottom + 38.0]);
        svg.finish(
            grid.width,
            bottom + 56.0 + MARGIN / 2.0,
            &self.title,
            &self.description(rows, columns),
        )
    }

    fn count(&self, row: usize, column: usize) -> u64 {
        self.counts
            .get(row)
            .and_then(|row| row.get(column))
            .copied()
            .unwrap_or(0)
    }

    /// How many items per class has; a sum beyond 64 bits stays at the largest number.
    fn total(&self, row: usize) -> u64 {
        self.counts
            .get(row)
            .map_or(0, |row| row.iter().fold(0, |sum, &count| sum.saturating_add(count)))
    }

    fn names(&self, svg: &mut Svg, grid: &Grid, [x, y]: [f64; 2]) {
        let size = grid.font;
        svg.open(format_args!(
            r#"font-size="{}" fill="{INK}" text-anchor="end""#,
            Num(size)
        ));
        for row in (0..grid.rows).step_by(grid.every) {
            let name = fit(self.rows.get(row).map_or("", String::as_str), size, NAME);
            svg.text(
                [x - 8.0, y + (row as f64 + 0.5) * grid.cell + 0.35 * size],
                &name,
                format_args!(""),
            );
        }
        svg.close();
        // Names of columns lie along the slope that leaves each of them its own line.
        svg.open(format_args!(r#"font-size="{}" fill="{INK}""#, Num(size)));
        for column in (0..grid.columns).step_by(grid.every) {
            let name = fit(self.columns.get(column).map_or("", String::as_str), size, NAME);
            let middle = x + (column as f64 + 0.5) * grid.cell;
            let at = [middle + 0.35 * size * grid.slope.to_radians().sin(), y - 7.0];
            svg.text(
                at,
                &name,
                format_args!(
                    r#"transform="rotate({} {} {})""#,
                    Num(-grid.slope),
                    Num(at[0]),
                    Num(at[1])
                ),
            );
        }
        svg.close();
        if grid.numbered {
            svg.open(format_args!(r#"font-size="11" fill="{SOFT}""#));
            let right = x + grid.columns as f64 * grid.cell + 9.0;
            svg.text([right, y - 7.0], "items", format_args!(""));
            for row in 0..grid.rows {
                let middle = y + (row as f64 + 0.5) * grid.cell + 4.0;
                svg.text([right, middle], &self.total(row).to_string(), format_args!(""));
            }
            svg.close();
        }
    }

    fn cells(&self, svg: &mut Svg, grid: &Grid, [x, y]: [f64; 2]) {
        let gap = if grid.cell >= 14.0 { 1.5 } else { 0.6 };
        let size = [grid.columns as f64 * grid.cell, grid.rows as f64 * grid.cell];
        svg.rect(
            [x - 1.0, y - 1.0],
            [size[0] + 2.0, size[1] + 2.0],
            format_args!(r##"rx="4" fill="#f4f6f8""##),
        );
        svg.open(format_args!(
            r#"font-size="{}" text-anchor="middle""#,
            Num((0.36 * grid.cell).clamp(9.0, 13.0))
        ));
        for row in 0..grid.rows {
            let total = self.total(row);
            for column in 0..grid.columns {
                let count = self.count(row, column);
                if count == 0 {
                    continue;
                }
                let share = count as f64 / total as f64;
                let at = [x + column as f64 * grid.cell, y + row as f64 * grid.cell];
                let inner = grid.cell - gap;
                let name = |names: &[String], at: usize| escape(names.get(at).map_or("", String::as_str));
                svg.push(format_args!(
                    r#"<rect x="{}" y="{}" width="{}" height="{}" rx="{}" fill="{}"><title>{} → {}: {count} of {total}</title></rect>"#,
                    Num(at[0] + gap / 2.0),
                    Num(at[1] + gap / 2.0),
                    Num(inner),
                    Num(inner),
                    Num((grid.cell / 12.0).min(3.0)),
                    shade(share),
                    name(&self.rows, row),
                    name(&self.columns, column)
                ));
                if grid.numbered {
                    let ink = if share > 0.45 { "#ffffff" } else { INK };
                    let middle = [at[0] + grid.cell / 2.0, at[1] + grid.cell / 2.0 + 4.2];
                    svg.text(middle, &count.to_string(), format_args!(r#"fill="{ink}""#));
                }
            }
        }
        svg.close();
    }

    /// The lines between what was known and what is new, with the two words beside them.
    fn dividers(&self, svg: &mut Svg, grid: &Grid, [x, y]: [f64; 2]) {
        let size = [grid.columns as f64 * grid.cell, grid.rows as f64 * grid.cell];
        let style = format_args!(r#"stroke="{INK}" stroke-width="1.6" stroke-linecap="round""#);
        let split = |known: usize, count: usize| (known > 0 && known < count).then_some(known as f64 * grid.cell);
        if let Some(down) = split(self.known_rows, grid.rows) {
            svg.line([x - 6.0, y + down], [x + size[0] + 1.0, y + down], style);
        }
        if let Some(right) = split(self.known_columns, grid.columns) {
            svg.line([x + right, y - 6.0], [x + right, y + size[1] + 1.0], style);
        }
        let words = |known: usize, count: usize| {
            let known = known.min(count);
            let middle = |from: usize, to: usize| (from + to) as f64 / 2.0 * grid.cell;
            [
                (known > 0).then(|| ("known", middle(0, known))),
                (known < count).then(|| ("new", middle(known, count))),
            ]
        };
        svg.open(format_args!(
            r#"font-size="11" font-weight="600" fill="{SOFT}" text-anchor="middle" letter-spacing="0.4""#
        ));
        for (word, middle) in words(self.known_rows, grid.rows).into_iter().flatten() {
            let at = [MARGIN + 5.0, y + middle];
            svg.text(
                at,
                word,
                format_args!(r#"transform="rotate(-90 {} {})""#, Num(at[0]), Num(at[1])),
            );
        }
        for (word, middle) in words(self.known_columns, grid.columns).into_iter().flatten() {
            // Below the cells: above them the names lean over the divider.
            svg.text([x + middle, y + size[1] + 18.0], word, format_args!(""));
        }
        svg.close();
    }

    fn description(&self, rows: usize, columns: usize) -> String {
        let mut text = format!("{rows} true classes against {columns} found categories.");
        for row in 0..rows {
            let best = (0..columns).fold(0, |best, at| {
                if self.count(row, at) > self.count(row, best) {
                    at
                } else {
                    best
                }
            });
            let (total, name) = (self.total(row), |names: &[String], at: usize| {
                names.get(at).cloned().unwrap_or_default()
            });
            if total > 0 {
                let share = decimals(100.0 * self.count(row, best) as f64 / total as f64, 0);
                text += &format!(
                    " {}: {share} % in {}.",
                    name(&self.rows, row),
                    name(&self.columns, best)
                );
            }
        }
        text
    }
}

/// Where rows and columns lie.
struct Grid {
    rows: usize,
    columns: usize,
    cell: f64,
    /// The size of the names.
    font: f64,
    /// Only every so-manieth row and column has room for its name.
    every: usize,
    /// The angle of the names of the columns, in degrees.
    slope: f64,
    left: f64,
    /// The height of the names of the columns.
    above: f64,
    width: f64,
    numbered: bool,
}

impl Grid {
    fn of(matrix: &Confusion, rows: usize, columns: usize) -> Self {
        let cell = (700.0 / rows.max(columns).max(1) as f64).clamp(3.0, 34.0);
        let digits = matrix
            .counts
            .iter()
            .flatten()
            .max()
            .map_or(1, |most| most.to_string().len());
        let numbered = cell >= NUMBERED && text_width(&"0".repeat(digits), 0.36 * cell) <= cell - 4.0;
        let font = (0.8 * cell).clamp(8.0, 12.0);
        let every = (font / 0.95 / cell).ceil().max(1.0) as usize;
        let longest = |names: &[String]| {
            names
                .iter()
                .map(|name| text_width(&fit(name, font, NAME), font))
                .fold(0.0, f64::max)
        };
        let long = longest(&matrix.columns);
        let slope = match () {
            _ if long <= cell - 3.0 => 0.0,
            _ if cell >= 19.0 => 45.0,
            _ => 90.0,
        };
        let reach = f64::to_radians(slope);
        let left = MARGIN + 18.0 + longest(&matrix.rows) + 8.0;
        // A leaning name of the last column reaches out to the right.
        let right = (long * reach.cos() - cell / 2.0).max(if numbered { 46.0 } else { 4.0 });
        let above = if slope == 0.0 {
            font
        } else {
            long * reach.sin() + 0.6 * font
        };
        let width = (left + columns as f64 * cell + right + MARGIN).max(420.0);
        Self {
            rows,
            columns,
            cell,
            font,
            every,
            slope,
            left,
            above,
            width,
            numbered,
        }
    }
}

/// What the shades mean.
fn ramp(svg: &mut Svg, [x, y]: [f64; 2]) {
    const STEPS: usize = 24;
    const LONG: f64 = 132.0;
    svg.open(format_args!(r#"font-size="11" fill="{SOFT}""#));
    svg.text([x, y + 9.0], "share of the row", format_args!(""));
    let from = x + text_width("share of the row", 11.0) + 10.0;
    svg.text([from, y + 9.0], "0", format_args!(""));
    for step in 0..STEPS {
        let at = from + 12.0 + LONG * step as f64 / STEPS as f64;
        let colour = shade((step as f64 + 0.5) / STEPS as f64);
        svg.rect(
            [at, y],
            [LONG / STEPS as f64 + 0.3, 10.0],
            format_args!(r#"fill="{colour}""#),
        );
    }
    svg.text([from + LONG + 18.0, y + 9.0], "100 %", format_args!(""));
    svg.close();
}
