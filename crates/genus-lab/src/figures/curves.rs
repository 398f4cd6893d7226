//! Lines with their intervals: what an accuracy does when a setting changes.

use super::svg::{AXIS, GRID, INK, MARGIN, Mark, Num, SOFT, Svg, decimals, fit, shape, text_width};
use genus_report::escape;
use genus_report::palette::{colours, for_text};

/// Values along one setting, one line for every method.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CurveChart {
    /// What the chart says.
    pub title: String,
    /// What was run to draw it.
    pub subtitle: String,
    /// What the horizontal axis measures, with its unit.
    pub x: String,
    /// What the vertical axis measures, with its unit.
    pub y: String,
    /// The lines, in the order of their colours.
    pub curves: Vec<Curve>,
    /// What the places 0, 1, … of the horizontal axis are, where it has names instead of numbers.
    pub stops: Vec<AxisStop>,
    /// Whether the vertical axis has as much room from 10 to 20 as from 20 to 40. Values must be above 0 then.
    pub logarithmic: bool,
}

/// A place on the horizontal axis that has a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AxisStop {
    /// The name.
    pub name: String,
    /// Whether lines go on to here from the place before.
    pub joined: bool,
}

/// One line of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// What the line is called.
    pub name: String,
    /// The measured values, in any order.
    pub points: Vec<CurvePoint>,
    /// The figures of the paper, drawn hollow and dashed without a band.
    pub paper: Vec<(f64, f64)>,
    /// The one place where something stands that could stand anywhere on the line. The line then has no other mark.
    pub at: Option<(f64, f64)>,
}

/// One measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Where the setting stood.
    pub x: f64,
    /// The mean over the episodes, in the unit of the axis.
    pub mean: f64,
    /// Half the width of the 95 % interval.
    pub half: f64,
}

const WIDTH: f64 = 760.0;
const PLOT_HEIGHT: f64 = 280.0;
const LABEL: f64 = 13.0;
const SMALL: f64 = 12.0;
/// The widest name beside a line.
const NAME: f64 = 150.0;
/// The least distance between the baselines of two names beside their lines.
const LEADING: f64 = 17.0;
/// How far a name may be moved from the end of its line before a legend is clearer.
const ASIDE: f64 = 26.0;
/// The radius of a figure of the paper: around a measured one at the same place a ring is left to see.
const PAPER: f64 = 5.4;
/// Values beyond this are a mistake, and nothing else would be seen beside them.
const ABSURD: f64 = 1e12;

impl CurveChart {
    /// The chart as an SVG file. Values that are not finite are left out.
    pub fn svg(&self) -> String {
        Self::stacked(std::slice::from_ref(self))
    }

    /// Charts as one SVG file, each below the one before. The title is that of the first.
    pub fn stacked(charts: &[Self]) -> String {
        let mut svg = Svg::new();
        let mut height = 0.0;
        let mut descriptions = Vec::new();
        for chart in charts {
            let lines = chart.lines();
            if height > 0.0 {
                svg.open(format_args!(r#"transform="translate(0 {})""#, Num(height)));
            }
            let own = chart.draw(&mut svg, &lines);
            if height > 0.0 {
                svg.close();
            }
            height += own;
            descriptions.push(chart.description(&lines));
        }
        let title = charts.first().map_or("", |chart| &chart.title);
        svg.finish(WIDTH, height, title, &descriptions.join(" "))
    }

    /// Draws the chart from the top, and says how high it is.
    fn draw(&self, svg: &mut Svg, lines: &[PlottedCurve]) -> f64 {
        let mut top = svg.header(&self.title, &self.subtitle, WIDTH);
        let x = match self.stops.is_empty() {
            true => XAxis::of(lines),
            false => XAxis::of_stops(&self.stops),
        };
        let y = match self.logarithmic {
            true => YAxis::logarithmic(lines),
            false => YAxis::of(lines),
        };
        let direct = direct_labels(lines, &y);
        top = legend(svg, lines, direct.is_none(), top);

        let right_room = match &direct {
            Some(_) => {
                lines
                    .iter()
                    .map(|line| text_width(&line.name, LABEL))
                    .fold(0.0, f64::max)
                    + 22.0
            }
            None => 8.0,
        };
        let tick_room = y
            .ticks
            .iter()
            .map(|(_, text)| text_width(text, SMALL))
            .fold(0.0, f64::max);
        let y_name = if self.y.is_empty() { 0.0 } else { 20.0 };
        let plot = Plot {
            left: MARGIN + tick_room + 10.0,
            right: WIDTH - MARGIN - right_room,
            top: top + 22.0 + y_name,
            x: (x.from, x.to),
            y: (y.from, y.to),
            logarithmic: self.logarithmic,
        };
        let y_title = fit(&self.y, SMALL, WIDTH - 2.0 * MARGIN);
        svg.text(
            [MARGIN, plot.top - 16.0],
            &y_title,
            format_args!(r#"font-size="{SMALL}" fill="{SOFT}""#),
        );
        axes(svg, &plot, &x, &y);
        let bottom = plot.top + PLOT_HEIGHT;
        let x_title = fit(&self.x, SMALL, plot.right - plot.left);
        let centred = format_args!(r#"font-size="{SMALL}" fill="{SOFT}" text-anchor="middle""#);
        svg.text([(plot.left + plot.right) / 2.0, bottom + 42.0], &x_title, centred);

        // Bands below lines, and the first method on top of the others.
        lines.iter().rev().for_each(|line| band(svg, &plot, line));
        lines.iter().rev().for_each(|line| strokes(svg, &plot, line));
        if let Some(places) = direct {
            for (line, place) in lines.iter().zip(places) {
                name_at_end(svg, &plot, line, place);
            }
        }
        if lines.iter().all(|line| line.end().is_none()) {
            let at = [(plot.left + plot.right) / 2.0, plot.top + PLOT_HEIGHT / 2.0];
            svg.text(
                at,
                "no data",
                format_args!(r#"font-size="14" fill="{SOFT}" text-anchor="middle""#),
            );
        }
        bottom + if self.x.is_empty() { 28.0 } else { 50.0 } + MARGIN / 2.0
    }

    /// The curves in drawing order of their points, with a colour and a mark each.
    fn lines(&self) -> Vec<PlottedCurve> {
        const MARKS: [Mark; 4] = [Mark::Circle, Mark::Square, Mark::Triangle, Mark::Diamond];
        let drawable = |value: f64| value > 0.0 || !self.logarithmic;
        let usable = |value: f64| value.is_finite() && value.abs() <= ABSURD;
        let stops = self.stops.iter().enumerate();
        let breaks: Vec<f64> = stops
            .filter(|(_, stop)| !stop.joined)
            .map(|(at, _)| at as f64)
            .collect();
        let colours = colours(self.curves.len());
        let lines = self
            .curves
            .iter()
            .zip(colours)
            .enumerate()
            .map(|(at, (curve, colour))| {
                let mut points: Vec<CurvePoint> = curve
                    .points
                    .iter()
                    .copied()
                    .filter(|p| usable(p.x) && usable(p.mean) && drawable(p.mean))
                    .collect();
                for point in &mut points {
                    if !usable(point.half) || point.half < 0.0 || !drawable(point.mean - point.half) {
                        point.half = 0.0;
                    }
                }
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
                let mut paper: Vec<[f64; 2]> = curve.paper.iter().map(|&(x, y)| [x, y]).collect();
                paper.retain(|&[x, y]| usable(x) && usable(y));
                paper.sort_by(|a, b| a[0].total_cmp(&b[0]));
                PlottedCurve {
                    name: fit(&curve.name, LABEL, NAME),
                    colour,
                    mark: MARKS[at % MARKS.len()],
                    points,
                    paper,
                    at: curve.at.map(|(x, y)| [x, y]).filter(|&[x, y]| usable(x) && usable(y)),
                    marked: curve.at.is_none(),
                    breaks: breaks.clone(),
                }
            });
        lines.collect()
    }

    fn description(&self, lines: &[PlottedCurve]) -> String {
        let mut text = match self.x.is_empty() {
            true => format!("{}.", self.y),
            false => format!("{} against {}.", self.y, self.x),
        };
        let place = |x: f64| match self.stops.get(x as usize) {
            Some(stop) => stop.name.clone(),
            None => decimals(x, 4),
        };
        for line in lines {
            let values: Vec<String> = line
                .marks()
                .map(|p| format!("{} at {}", decimals(p.mean, 1), place(p.x)))
                .collect();
            text += &format!(
                " {}: {}.",
                line.name,
                if values.is_empty() {
                    "no data".into()
                } else {
                    values.join(", ")
                }
            );
        }
        text
    }
}

/// A curve as it is drawn.
struct PlottedCurve {
    name: String,
    colour: String,
    mark: Mark,
    points: Vec<CurvePoint>,
    paper: Vec<[f64; 2]>,
    at: Option<[f64; 2]>,
    /// Whether its points have marks.
    marked: bool,
    /// Where it begins anew.
    breaks: Vec<f64>,
}

impl PlottedCurve {
    /// The last point, where the name goes.
    fn end(&self) -> Option<[f64; 2]> {
        let measured = self.points.last().map(|p| [p.x, p.mean]);
        measured.or(self.paper.last().copied()).or(self.at)
    }

    /// The points in pieces: a line goes through each of them, but not from one to the next.
    fn pieces(&self) -> impl Iterator<Item = &[CurvePoint]> {
        let apart = |a: &CurvePoint, b: &CurvePoint| self.breaks.iter().any(|&at| a.x < at && at <= b.x);
        self.points.chunk_by(move |a, b| !apart(a, b))
    }

    /// Where there is a mark.
    fn marks(&self) -> impl Iterator<Item = CurvePoint> {
        let points = self.points.iter().copied().filter(|_| self.marked);
        let only = self.at.map(|[x, mean]| CurvePoint { x, mean, half: 0.0 });
        points.chain(only)
    }

    /// All that is drawn of it apart from bands.
    fn places(&self) -> impl Iterator<Item = [f64; 2]> {
        let measured = self.points.iter().map(|p| [p.x, p.mean]);
        measured.chain(self.paper.iter().copied()).chain(self.at)
    }
}

/// Where the data lies on the page.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    x: (f64, f64),
    y: (f64, f64),
    logarithmic: bool,
}

impl Plot {
    fn at(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [
            self.left + part(x, self.x, false) * (self.right - self.left),
            self.top + (1.0 - part(y, self.y, self.logarithmic)) * PLOT_HEIGHT,
        ]
    }
}

/// Which part of the way between two values a third one is.
fn part(value: f64, (from, to): (f64, f64), logarithmic: bool) -> f64 {
    match logarithmic {
        true => (value / from).ln() / (to / from).ln(),
        false => (value - from) / (to - from),
    }
}

/// The horizontal axis: its range and its labelled places.
struct XAxis {
    from: f64,
    to: f64,
    ticks: Vec<(f64, String)>,
}

impl XAxis {
    /// Names at equal distances.
    fn of_stops(stops: &[AxisStop]) -> Self {
        let named = stops.iter().enumerate();
        Self {
            from: -0.4,
            to: stops.len() as f64 - 0.6,
            ticks: named.map(|(at, stop)| (at as f64, stop.name.clone())).collect(),
        }
    }

    /// Few values are labelled themselves, many by round numbers.
    fn of(lines: &[PlottedCurve]) -> Self {
        let mut values: Vec<f64> = lines.iter().flat_map(PlottedCurve::places).map(|[x, _]| x).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (first, last) = match (values.first(), values.last()) {
            (Some(&first), Some(&last)) if first < last => (first, last),
            (Some(&only), _) => (only - 1.0, only + 1.0),
            _ => (0.0, 1.0),
        };
        let pad = 0.025 * (last - first);
        let (from, to) = (first - pad, last + pad);
        let ticks = if values.len() <= 16 {
            values.iter().map(|&value| (value, decimals(value, 4))).collect()
        } else {
            round_ticks(from, to, round_step((to - from) / 8.0))
        };
        Self { from, to, ticks }
    }
}

/// The vertical axis: its range ends on round numbers.
struct YAxis {
    from: f64,
    to: f64,
    ticks: Vec<(f64, String)>,
    logarithmic: bool,
}

impl YAxis {
    fn of(lines: &[PlottedCurve]) -> Self {
        let measured = lines
            .iter()
            .flat_map(|line| line.points.iter().flat_map(|p| [p.mean - p.half, p.mean + p.half]));
        let all = measured.chain(lines.iter().flat_map(PlottedCurve::places).map(|[_, y]| y));
        let (low, high) = all.fold((f64::MAX, f64::MIN), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = match high - low {
            _ if low > high => (0.0, 100.0),
            // A flat line stands in the middle of a range, not between two numbers that differ by rounding.
            span if span <= 1e-9 * (1.0 + high.abs()) => (low - 1.0, high + 1.0),
            span => (room(low, -0.02 * span), room(high, 0.02 * span)),
        };
        let step = round_step((high - low) / 7.0);
        let (from, to) = ((low / step).floor() * step, (high / step).ceil() * step);
        Self {
            from,
            to,
            ticks: round_ticks(from, to, step),
            logarithmic: false,
        }
    }

    /// From one of 1, 2, 5 and their tens to another.
    fn logarithmic(lines: &[PlottedCurve]) -> Self {
        let measured = lines
            .iter()
            .flat_map(|line| line.points.iter().flat_map(|p| [p.mean - p.half, p.mean + p.half]));
        let (low, high) = measured.fold((f64::MAX, f64::MIN), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let steps: Vec<f64> = (-12..=12)
            .flat_map(|ten| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(ten)))
            .collect();
        let from = steps.partition_point(|&step| step <= low).saturating_sub(1);
        let to = steps
            .partition_point(|&step| step < high)
            .clamp(from + 1, steps.len() - 1);
        Self {
            from: steps[from],
            to: steps[to],
            ticks: steps[from..=to]
                .iter()
                .map(|&step| (step, decimals(step, 12)))
                .collect(),
            logarithmic: true,
        }
    }
}

/// A value with some room around it; shares in % need none beyond 0 and 100.
fn room(value: f64, by: f64) -> f64 {
    match (0.0..=100.0).contains(&value) {
        true => (value + by).clamp(0.0, 100.0),
        false => value + by,
    }
}

/// The smallest of 1, 2, 2.5, 5 and their tens that is not below `least`.
fn round_step(least: f64) -> f64 {
    let ten = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0]
        .into_iter()
        .find(|factor| factor * ten >= least * 0.999);
    factor.unwrap_or(10.0) * ten
}

/// The multiples of `step` in a range.
fn round_ticks(from: f64, to: f64, step: f64) -> Vec<(f64, String)> {
    let places = (1 - step.log10().floor() as i64).clamp(0, 12) as usize;
    let first = (from / step - 1e-6).ceil();
    let number = ((to / step + 1e-6).floor() - first).clamp(0.0, 40.0) as usize;
    (0..=number)
        .map(|i| (first + i as f64) * step)
        .map(|value| (value, decimals(value, places)))
        .collect()
}

fn axes(svg: &mut Svg, plot: &Plot, x: &XAxis, y: &YAxis) {
    svg.open(format_args!(
        r#"font-size="{SMALL}" fill="{SOFT}" text-anchor="end" stroke-width="1""#
    ));
    for (value, text) in &y.ticks {
        let [_, at] = plot.at([x.from, *value]);
        svg.line([plot.left, at], [plot.right, at], format_args!(r#"stroke="{GRID}""#));
        svg.text([plot.left - 9.0, at + 4.2], text, format_args!(""));
    }
    svg.close();
    svg.open(format_args!(
        r#"font-size="{SMALL}" fill="{SOFT}" text-anchor="middle" stroke-width="1""#
    ));
    let bottom = plot.top + PLOT_HEIGHT;
    svg.line(
        [plot.left, bottom],
        [plot.right, bottom],
        format_args!(r#"stroke="{AXIS}""#),
    );
    // The last label is always there; others where there is room for them.
    let mut free = plot.right + 2.0 * MARGIN;
    let mut labels = Vec::new();
    for (value, text) in x.ticks.iter().rev() {
        let [at, _] = plot.at([*value, y.from]);
        let half = text_width(text, SMALL) / 2.0;
        svg.line([at, bottom], [at, bottom + 5.0], format_args!(r#"stroke="{AXIS}""#));
        if at + half <= free {
            labels.push((at, text));
            free = at - half - 7.0;
        }
    }
    labels
        .into_iter()
        .rev()
        .for_each(|(at, text)| svg.text([at, bottom + 20.0], text, format_args!("")));
    svg.close();
}

/// The band of the intervals; a single value gets a bar instead.
fn band(svg: &mut Svg, plot: &Plot, line: &PlottedCurve) {
    let place = |point: &CurvePoint, sign: f64| {
        let [x, y] = plot.at([point.x, point.mean + sign * point.half]);
        format!("{} {}", Num(x), Num(y))
    };
    for piece in line.pieces() {
        match piece {
            [] => {}
            points if points.iter().all(|point| point.half == 0.0) => {}
            [only] => {
                let d = format!("M{}L{}", place(only, 1.0), place(only, -1.0));
                svg.path(
                    &d,
                    format_args!(r#"stroke="{}" stroke-width="5" stroke-opacity="0.25""#, line.colour),
                );
            }
            points => {
                let upper = points.iter().map(|point| place(point, 1.0));
                let lower = points.iter().rev().map(|point| place(point, -1.0));
                let d = format!("M{}Z", upper.chain(lower).collect::<Vec<_>>().join("L"));
                svg.path(&d, format_args!(r#"fill="{}" fill-opacity="0.16""#, line.colour));
            }
        }
    }
}

/// The lines through the points and the points themselves.
fn strokes(svg: &mut Svg, plot: &Plot, line: &PlottedCurve) {
    let through = |points: &[[f64; 2]]| {
        let places: Vec<String> = points
            .iter()
            .map(|&p| plot.at(p))
            .map(|[x, y]| format!("{} {}", Num(x), Num(y)))
            .collect();
        if places.len() < 2 {
            String::new()
        } else {
            format!("M{}", places.join("L"))
        }
    };
    let colour = &line.colour;
    svg.open(format_args!(r#"stroke-linejoin="round" stroke-linecap="round""#));
    svg.path(
        &through(&line.paper),
        format_args!(
            r#"fill="none" stroke="{colour}" stroke-width="1.6" stroke-dasharray="1.5 5" stroke-opacity="0.9""#
        ),
    );
    for &point in &line.paper {
        let d = shape(line.mark, plot.at(point), PAPER);
        let title = format!(
            "{}, paper: {} at {}",
            line.name,
            decimals(point[1], 2),
            decimals(point[0], 4)
        );
        svg.push(format_args!(
            r##"<path d="{d}" fill="#fdfdfe" stroke="{colour}" stroke-width="1.6"><title>{}</title></path>"##,
            escape(&title)
        ));
    }
    for piece in line.pieces() {
        let means: Vec<[f64; 2]> = piece.iter().map(|p| [p.x, p.mean]).collect();
        svg.path(
            &through(&means),
            format_args!(r#"fill="none" stroke="{colour}" stroke-width="2.4""#),
        );
    }
    for point in line.marks() {
        let (radius, value) = match line.marked {
            true => (
                4.4,
                format!("{} ± {}", decimals(point.mean, 2), decimals(point.half, 2)),
            ),
            // The only mark of a line can be larger.
            false => (6.0, decimals(point.mean, 2)),
        };
        let d = shape(line.mark, plot.at([point.x, point.mean]), radius);
        let title = format!("{}: {value} at {}", line.name, decimals(point.x, 4));
        svg.push(format_args!(
            r##"<path d="{d}" fill="{colour}" stroke="#fdfdfe" stroke-width="1.4"><title>{}</title></path>"##,
            escape(&title)
        ));
    }
    svg.close();
}

/// Where the names go beside the ends of the lines, as heights above the plot's foot; `None` where they would collide or
/// where a line ends early, and a legend is needed.
fn direct_labels(lines: &[PlottedCurve], y: &YAxis) -> Option<Vec<f64>> {
    // The end of a line with one mark is not what it is about.
    if lines.iter().any(|line| !line.marked) {
        return None;
    }
    let ends: Vec<[f64; 2]> = lines.iter().map(PlottedCurve::end).collect::<Option<_>>()?;
    let paper = lines.iter().filter_map(|line| line.paper.last());
    let last = ends.iter().chain(paper).map(|end| end[0]).fold(f64::MIN, f64::max);
    if ends.is_empty() || ends.iter().any(|end| end[0] < last) {
        return None;
    }
    let wanted: Vec<f64> = ends
        .iter()
        .map(|end| part(end[1], (y.from, y.to), y.logarithmic) * PLOT_HEIGHT)
        .collect();
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    // Names that are too close share the middle of what they want: blocks grow until none overlaps the one below it.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for &at in &order {
        let mut block = (wanted[at], 1);
        while let Some(&(middle, count)) = blocks.last() {
            if block.0 - middle >= LEADING * (block.1 + count) as f64 / 2.0 {
                break;
            }
            blocks.pop();
            let sum = block.0 * block.1 as f64 + middle * count as f64;
            block = (sum / (block.1 + count) as f64, block.1 + count);
        }
        blocks.push(block);
    }
    let mut places = vec![0.0; wanted.len()];
    let spread = blocks
        .iter()
        .flat_map(|&(middle, count)| (0..count).map(move |i| middle + LEADING * (i as f64 - (count - 1) as f64 / 2.0)));
    order.iter().zip(spread).for_each(|(&at, place)| places[at] = place);
    let fits = places
        .iter()
        .zip(&wanted)
        .all(|(place, wanted)| (place - wanted).abs() <= ASIDE);
    fits.then_some(places)
}

fn name_at_end(svg: &mut Svg, plot: &Plot, line: &PlottedCurve, place: f64) {
    let Some(end) = line.end() else { return };
    let from = plot.at(end);
    let to = [plot.right + 10.0, plot.top + PLOT_HEIGHT - place];
    if (from[1] - to[1]).abs() > 3.0 {
        let style = format_args!(r#"stroke="{}" stroke-width="1" stroke-opacity="0.5""#, line.colour);
        svg.line([from[0] + 6.0, from[1]], [to[0] - 2.0, to[1]], style);
    }
    let style = format_args!(
        r#"font-size="{LABEL}" font-weight="600" fill="{}""#,
        for_text(&line.colour)
    );
    svg.text([to[0] + 2.0, to[1] + 4.5], &line.name, style);
}

/// What marks and bands mean; with the names of the lines where these do not stand beside their ends.
fn legend(svg: &mut Svg, lines: &[PlottedCurve], names: bool, top: f64) -> f64 {
    let mut row = LegendRow {
        x: MARGIN,
        y: top + 24.0,
    };
    let mut any = false;
    for line in lines.iter().filter(|line| names && !line.name.is_empty()) {
        any = true;
        let [x, y] = row.take(30.0 + text_width(&line.name, LABEL));
        // What stands on the line of another has none.
        if line.marked || !line.points.is_empty() {
            svg.line(
                [x, y],
                [x + 22.0, y],
                format_args!(r#"stroke="{}" stroke-width="2.4""#, line.colour),
            );
        }
        let d = shape(line.mark, [x + 11.0, y], 4.4);
        svg.path(
            &d,
            format_args!(r##"fill="{}" stroke="#fdfdfe" stroke-width="1.4""##, line.colour),
        );
        svg.text(
            [x + 29.0, y + 4.5],
            &line.name,
            format_args!(r#"font-size="{LABEL}" fill="{INK}""#),
        );
    }
    let (band, paper) = ("mean and 95 % interval", "paper");
    let has_paper = lines.iter().any(|line| !line.paper.is_empty());
    if lines
        .iter()
        .any(|line| line.points.iter().any(|point| point.half > 0.0))
    {
        any = true;
        let [x, y] = row.take(30.0 + text_width(band, SMALL));
        svg.rect(
            [x, y - 6.0],
            [22.0, 12.0],
            format_args!(r#"rx="2" fill="{SOFT}" fill-opacity="0.2""#),
        );
        svg.line(
            [x, y],
            [x + 22.0, y],
            format_args!(r#"stroke="{SOFT}" stroke-width="2.4""#),
        );
        svg.text(
            [x + 29.0, y + 4.2],
            band,
            format_args!(r#"font-size="{SMALL}" fill="{SOFT}""#),
        );
    }
    if has_paper {
        any = true;
        let [x, y] = row.take(30.0 + text_width(paper, SMALL));
        let dots =
            format_args!(r#"stroke="{SOFT}" stroke-width="1.6" stroke-dasharray="1.5 5" stroke-linecap="round""#);
        svg.line([x, y], [x + 22.0, y], dots);
        let d = shape(Mark::Circle, [x + 11.0, y], PAPER);
        svg.path(
            &d,
            format_args!(r##"fill="#fdfdfe" stroke="{SOFT}" stroke-width="1.6""##),
        );
        svg.text(
            [x + 29.0, y + 4.2],
            paper,
            format_args!(r#"font-size="{SMALL}" fill="{SOFT}""#),
        );
    }
    if any { row.y + 4.0 } else { top }
}

/// A line of the legend that is being filled.
struct LegendRow {
    x: f64,
    y: f64,
}

impl LegendRow {
    /// A place for something so wide: in this row, or in the next one.
    fn take(&mut self, width: f64) -> [f64; 2] {
        if self.x > MARGIN && self.x + width > WIDTH - MARGIN {
            *self = Self {
                x: MARGIN,
                y: self.y + 21.0,
            };
        }
        let at = [self.x, self.y];
        self.x += width + 14.0;
        at
    }
}
