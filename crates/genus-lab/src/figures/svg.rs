//! A small writer of SVG: shapes, text that fits, and nothing that could break the file.

use std::fmt::{self, Write};

use genus_report::escape;

/// The colour of titles and of what must be read.
pub(super) const INK: &str = "#1f2328";
/// The colour of what explains: ticks, captions, legends.
pub(super) const SOFT: &str = "#59636e";
/// The colour of axes and ticks.
pub(super) const AXIS: &str = "#8c959f";
/// The colour of grid lines.
pub(super) const GRID: &str = "#e8ebef";
/// The space between the edge of the drawing and what is drawn.
pub(super) const MARGIN: f64 = 24.0;

const TITLE: f64 = 17.0;
const SUBTITLE: f64 = 12.5;

/// A drawing that is being written.
pub(super) struct Svg {
    body: String,
}

impl Svg {
    /// An empty drawing.
    pub(super) fn new() -> Self {
        Self { body: String::new() }
    }

    /// Writes markup of our own; text of others goes through [`Self::text`] or [`escape`].
    pub(super) fn push(&mut self, markup: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(markup);
        self.body.push('\n');
    }

    /// Opens a group; its attributes hold for all that is drawn until [`Self::close`].
    pub(super) fn open(&mut self, attributes: fmt::Arguments<'_>) {
        self.push(format_args!("<g {attributes}>"));
    }

    /// Closes the group opened last.
    pub(super) fn close(&mut self) {
        self.push(format_args!("</g>"));
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: [f64; 2], to: [f64; 2], attributes: fmt::Arguments<'_>) {
        self.push(format_args!(
            r#"<line x1="{}" y1="{}" x2="{}" y2="{}" {attributes}/>"#,
            Num(from[0]),
            Num(from[1]),
            Num(to[0]),
            Num(to[1])
        ));
    }

    /// A rectangle by its upper left corner.
    pub(super) fn rect(&mut self, at: [f64; 2], size: [f64; 2], attributes: fmt::Arguments<'_>) {
        self.push(format_args!(
            r#"<rect x="{}" y="{}" width="{}" height="{}" {attributes}/>"#,
            Num(at[0]),
            Num(at[1]),
            Num(size[0]),
            Num(size[1])
        ));
    }

    /// A path; what it says in its `d` is made with [`shape`] or by hand.
    pub(super) fn path(&mut self, d: &str, attributes: fmt::Arguments<'_>) {
        if !d.is_empty() {
            let space = if attributes.as_str() == Some("") { "" } else { " " };
            self.push(format_args!(r#"<path d="{d}"{space}{attributes}/>"#));
        }
    }

    /// A line of text on the baseline `at`.
    pub(super) fn text(&mut self, at: [f64; 2], text: &str, attributes: fmt::Arguments<'_>) {
        if !text.is_empty() {
            self.push(format_args!(
                r#"<text x="{}" y="{}" {attributes}>{}</text>"#,
                Num(at[0]),
                Num(at[1]),
                escape(text)
            ));
        }
    }

    /// Writes title and subtitle into the upper left corner and says where the rest may begin.
    pub(super) fn header(&mut self, title: &str, subtitle: &str, width: f64) -> f64 {
        let mut y = MARGIN - 6.0;
        for line in wrap(title, TITLE, width - 2.0 * MARGIN, 2) {
            y += 21.0;
            let style = format_args!(r#"font-size="{TITLE}" font-weight="600" fill="{INK}""#);
            self.text([MARGIN, y], &line, style);
        }
        for line in wrap(subtitle, SUBTITLE, width - 2.0 * MARGIN, 3) {
            y += 18.0;
            self.text(
                [MARGIN, y],
                &line,
                format_args!(r#"font-size="{SUBTITLE}" fill="{SOFT}""#),
            );
        }
        y
    }

    /// The file: the drawing on its own background, with a title and a description for those who do not see it.
    pub(super) fn finish(self, width: f64, height: f64, title: &str, description: &str) -> String {
        let (width, height) = (Num(width.ceil()), Num(height.ceil()));
        let (title, description) = (escape(title), escape(description));
        let fonts = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','Noto Sans',Arial,sans-serif";
        let label = if title.is_empty() { "figure" } else { &title };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\" font-family=\"{fonts}\">\n\
             <title>{title}</title>\n<desc>{description}</desc>\n\
             <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"12\" fill=\"#fdfdfe\" stroke=\"#d8dee4\"/>\n\
             {}</svg>\n",
            Num(width.0 - 1.0),
            Num(height.0 - 1.0),
            self.body
        )
    }
}

/// A number with at most two decimals and no more digits than it needs. What is not finite would break the file: it is 0.
#[derive(Clone, Copy)]
pub(super) struct Num(pub(super) f64);

impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimals(if self.0.is_finite() { self.0 } else { 0.0 }, 2))
    }
}

/// A finite number with at most so many decimals, without the zeros at its end and without a negative zero.
pub(super) fn decimals(value: f64, most: usize) -> String {
    let mut text = format!("{value:.most$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    if text == "-0" { "0".into() } else { text }
}

/// About how wide a line of text is; the reader's font is not known, so it is a little generous.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(char_width).sum::<f64>() * size * 1.04
}

fn char_width(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.28,
        'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '{' | '}' | '-' | '/' | '\\' | '"' | '*' => 0.35,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '—' | '…' => 0.88,
        'c' | 'k' | 's' | 'v' | 'x' | 'y' | 'z' => 0.5,
        'A'..='Z' | '&' | '~' | '+' | '=' | '<' | '>' | '±' | '×' => 0.68,
        ' '..='~' => 0.56,
        // Marks that stand on the letter before them, and joiners.
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{fe00}'..='\u{fe0f}' => 0.0,
        // From here on: Hangul, kana, ideographs, emoji.
        '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' => 1.0,
        '\u{fe30}'..='\u{ffef}' | '\u{10000}'.. => 1.2,
        _ => 0.62,
    }
}

/// The text, cut short with an ellipsis where it is wider than `width`.
pub(super) fn fit(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let room = width - text_width("…", size);
    let mut used = 0.0;
    let kept = text.chars().take_while(|&c| {
        used += char_width(c) * size * 1.04;
        used <= room
    });
    let kept: String = kept.collect();
    format!("{}…", kept.trim_end_matches([' ', '\u{200d}']))
}

/// The text in at most `most` lines of `width`, broken at spaces; what does not fit into the last one is cut short.
pub(super) fn wrap(text: &str, size: f64, width: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match longer {
            Some(longer) if text_width(&longer, size) <= width || lines.len() == most => {
                lines.pop();
                lines.push(longer);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| fit(line, size, width)).collect()
}

/// What stands for one point of a drawing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
    Star,
}

/// The path of a mark, about as large to the eye as a circle of this radius.
pub(super) fn shape(mark: Mark, [x, y]: [f64; 2], radius: f64) -> String {
    let corners = |count: usize, reach: &dyn Fn(usize) -> f64, turn: f64| {
        let mut d = String::new();
        for corner in 0..count {
            let angle = turn + std::f64::consts::TAU * corner as f64 / count as f64;
            let (at_x, at_y) = (x + reach(corner) * angle.cos(), y + reach(corner) * angle.sin());
            let _ = write!(d, "{}{} {}", if corner == 0 { 'M' } else { 'L' }, Num(at_x), Num(at_y));
        }
        d.push('Z');
        d
    };
    let up = -std::f64::consts::FRAC_PI_2;
    match mark {
        Mark::Circle => {
            let (r, across) = (Num(radius), Num(2.0 * radius));
            format!(
                "M{} {}a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0 -{across} 0Z",
                Num(x - radius),
                Num(y)
            )
        }
        Mark::Square => corners(4, &|_| 1.26 * radius, up / 2.0),
        Mark::Triangle => corners(3, &|_| 1.42 * radius, up),
        Mark::Diamond => corners(4, &|_| 1.32 * radius, up),
        Mark::Star => corners(10, &|corner| radius * if corner % 2 == 0 { 1.5 } else { 0.66 }, up),
    }
}
