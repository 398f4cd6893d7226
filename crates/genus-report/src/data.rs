//! The data of the page, as JSON inside it.

use std::collections::HashSet;
use std::fmt::Write;

use genus_core::{Kind, MergeTree, Score};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{NeighbourTies, Report, Slot, Truth, palette};

/// Bars of a histogram.
const BARS: usize = 40;
/// Places on the map are whole numbers up to this.
const MAP: f32 = 10_000.0;
/// Neighbours of a category that are named.
const NEAREST: usize = 4;
/// Pairs that are named.
const PAIRS: usize = 12;
/// Pairs of linked categories that are named, and neighbours of an item.
const LINKS: usize = 20;
const TIED: usize = 3;

/// The blocks of data: one with everything but the pictures, and one a category with its pictures, so that the page reads
/// these only when they are looked at.
pub(crate) fn blocks(report: &Report) -> String {
    let sheets = report.sheets();
    let mut blocks = String::new();
    block(&mut blocks, "data", &overview(report, &sheets));
    let mut first = 0;
    for (category, sheet) in sheets.iter().enumerate() {
        let items = sheet.iter().enumerate().filter_map(|(at, &item)| {
            let picture = report.items[item].picture.as_deref()?;
            Some((format!("i{}", first + at), uri(picture)?))
        });
        let of_class = report.examples.iter().enumerate().filter(|(_, e)| e.class == category);
        let examples = of_class.filter_map(|(at, example)| {
            let picture = example.picture.as_deref()?;
            Some((format!("e{at}"), uri(picture)?))
        });
        let pictures: serde_json::Map<String, Value> = items.chain(examples).map(|(k, v)| (k, v.into())).collect();
        if !pictures.is_empty() {
            block(&mut blocks, &format!("pictures-{category}"), &pictures);
        }
        first += sheet.len();
    }
    blocks
}

fn block(blocks: &mut String, id: &str, value: &impl Serialize) {
    let json = serde_json::to_string(value).expect("strings, numbers and lists have a JSON form");
    let _ = writeln!(
        blocks,
        "<script type=\"application/json\" id=\"{id}\">{}</script>",
        within_script(&json)
    );
}

/// JSON that cannot end the script it is in, whatever its strings say.
///
/// The characters occur within strings only, where the escapes mean the same.
pub(crate) fn within_script(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            other => text.push(other),
        }
    }
    text
}

fn overview(report: &Report, sheets: &[Vec<usize>]) -> Value {
    let order: Vec<usize> = sheets.concat();
    let items: Vec<_> = order.iter().map(|&at| &report.items[at]).collect();
    let scores = |of: fn(&Score) -> f32| -> Vec<Value> { items.iter().map(|item| rounded(of(&item.score))).collect() };
    let flags = |is: &dyn Fn(&crate::Item) -> bool| -> Vec<usize> {
        let flagged = items.iter().enumerate().filter(|(_, item)| is(item));
        flagged.map(|(at, _)| at).collect()
    };
    let probable = items.iter().any(|item| item.score.probability.is_some());
    let colours = palette::colours(report.categories.len());
    let places = Places::of(report);
    let column = |wanted: bool, values: &mut dyn Iterator<Item = Value>| -> Value {
        if wanted { values.collect() } else { Value::Null }
    };
    let texts = items.iter().any(|item| item.text.is_some());
    let ties = items.iter().any(|item| item.tied.is_some());
    // Where the page has every item; one without a sheet is nowhere.
    let mut on_page = vec![None; report.items.len()];
    order
        .iter()
        .enumerate()
        .for_each(|(at, &item)| on_page[item] = Some(at));
    json!({
        "title": report.title,
        "things": report.things,
        "made": {
            "method": report.made.method,
            "how": report.made.how,
            "encoder": report.made.encoder,
            "seed": report.made.seed.to_string(),
            "seconds": (report.made.seconds * 10.0).round() / 10.0,
            "version": report.made.version,
        },
        "categories": report.categories.iter().zip(colours).map(|(category, colour)| json!({
            "name": category.name,
            "known": category.kind == Kind::Known,
            "items": category.items,
            "unsure": category.unsure,
            "colour": colour,
        })).collect::<Value>(),
        "parents": column(
            report.categories.iter().any(|category| category.parent.is_some()),
            &mut report.categories.iter().map(|category| json!(category.parent)),
        ),
        "sheets": sheets.iter().map(Vec::len).collect::<Value>(),
        "items": {
            "id": items.iter().map(|item| item.id.as_str()).collect::<Value>(),
            "score": scores(|score| score.similarity),
            "margin": scores(|score| score.margin),
            "probability": column(probable, &mut items.iter().map(|item| item.score.probability.map_or(Value::Null, rounded))),
            "rival": items.iter().map(|item| json!(item.rival)).collect::<Value>(),
            "text": column(texts, &mut items.iter().map(|item| json!(item.text))),
            "truth": column(report.truth.is_some(), &mut items.iter().map(|item| json!(item.truth))),
            "scene": column(have_scenes(&items), &mut items.iter().map(|item| json!(item.scene))),
            "tied": column(ties, &mut items.iter().map(|item| item.tied.as_ref().map_or(Value::Null, |tied| tied_to(tied, &on_page)))),
            "unsure": flags(&|item| item.score.unsure),
            "mistakes": flags(&|item| report.is_mistake(item)),
            "places": column(places.is_some(), &mut items.iter().map(|item| places.value(item.place))),
        },
        "examples": report.examples.iter().map(|example| json!({
            "id": example.id,
            "class": example.class,
            "text": example.text,
            "place": places.value(example.place),
        })).collect::<Value>(),
        "projection": report.projection,
        "why": why(report),
        "truth": report.truth.as_ref().map(truth),
        "history": report.history.iter().map(|entry| json!([entry.when, entry.who, entry.what])).collect::<Value>(),
        "asked": report.asked.iter().map(|asked| json!([asked.when, asked.question, asked.answer])).collect::<Value>(),
    })
}

/// How many neighbours of an item are in its category, followed by the nearest: items by their places on the page, and examples
/// as -1, -2 and so on.
fn tied_to(tied: &NeighbourTies, on_page: &[Option<usize>]) -> Value {
    let number = |slot: &Slot| match *slot {
        Slot::Item(item) => on_page.get(item).copied().flatten().map(|at| json!(at)),
        Slot::Example(at) => Some(json!(-1 - at as i64)),
    };
    let nearest = tied.nearest.iter().take(TIED).filter_map(number);
    std::iter::once(json!(tied.own)).chain(nearest).collect()
}

/// Whether any two items are of one scene: where none are, there is nothing to say.
fn have_scenes(items: &[&crate::Item]) -> bool {
    let mut seen = HashSet::new();
    let mut scenes = items.iter().filter_map(|item| item.scene);
    scenes.any(|scene| !seen.insert(scene))
}

/// How places become whole numbers.
struct Places {
    low: [f32; 2],
    scale: f32,
    any: bool,
}

impl Places {
    fn of(report: &Report) -> Self {
        let items = report.items.iter().filter_map(|item| item.place);
        let all: Vec<[f32; 2]> = items.chain(report.examples.iter().filter_map(|e| e.place)).collect();
        let finite = || all.iter().filter(|place| place.iter().all(|v| v.is_finite()));
        let low = [0, 1].map(|axis| finite().map(|p| p[axis]).fold(f32::INFINITY, f32::min));
        let high = [0, 1].map(|axis| finite().map(|p| p[axis]).fold(f32::NEG_INFINITY, f32::max));
        let widest = (high[0] - low[0]).max(high[1] - low[1]);
        Self {
            low,
            scale: if widest > 0.0 { MAP / widest } else { 1.0 },
            any: finite().next().is_some(),
        }
    }

    fn is_some(&self) -> bool {
        self.any
    }

    fn value(&self, place: Option<[f32; 2]>) -> Value {
        match place.filter(|place| place.iter().all(|v| v.is_finite())) {
            Some(place) => {
                let [x, y] = [0, 1].map(|axis| ((place[axis] - self.low[axis]) * self.scale).round() as i64);
                json!([x, y])
            }
            None => Value::Null,
        }
    }
}

fn why(report: &Report) -> Value {
    let why = &report.why;
    let kind =
        |item: &&crate::Item, wanted: Kind| report.categories.get(item.category).is_some_and(|c| c.kind == wanted);
    let histogram = |of: fn(&Score) -> Option<f32>| {
        let values = |wanted: Kind| -> Vec<f32> {
            let items = report.items.iter().filter(|item| kind(item, wanted));
            items.filter_map(|item| of(&item.score)).collect()
        };
        histogram(&values(Kind::Known), &values(Kind::Novel))
    };
    json!({
        "tree": why.tree.as_ref().map(|tree| json!({
            "ward": tree.kind == MergeTree::Ward,
            "branches": tree.branches,
            "merges": tree.merges.iter().map(|m| json!([m.left, m.right, rounded(m.level)])).collect::<Value>(),
            "within": tree.within,
        })),
        "communities": why.communities.as_ref().map(|communities| json!({
            "neighbours": communities.neighbours,
            "links": communities.links.as_ref().map(|links| links.iter().take(LINKS).map(|link| json!([
                link.first, link.second, rounded(link.from_first as f32), rounded(link.from_second as f32),
            ])).collect::<Value>()),
        })),
        "cut": why.cut.map(rounded),
        "doubt": why.doubt.map(rounded),
        "scores": histogram(|score| Some(score.similarity)),
        "margins": histogram(|score| Some(score.margin)),
        "probabilities": histogram(|score| score.probability),
        "nearest": why.nearest.iter().map(|nearest| {
            nearest.iter().take(NEAREST).map(|n| json!([n.category, rounded(n.similarity)])).collect::<Value>()
        }).collect::<Value>(),
        "confusable": why.confusable.iter().take(PAIRS).map(|pair| json!({
            "first": pair.first, "second": pair.second, "torn": pair.torn, "items": pair.items,
        })).collect::<Value>(),
    })
}

/// How many values of two kinds fall into each of some equal spans, and where these begin and end.
fn histogram(known: &[f32], new: &[f32]) -> Value {
    let finite = || known.iter().chain(new).copied().filter(|v| v.is_finite());
    let (low, high) = finite().fold((f32::INFINITY, f32::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    if finite().next().is_none() {
        return Value::Null;
    }
    // All values may be the same.
    let high = if high > low { high } else { low + 0.01 };
    let count = |values: &[f32]| {
        let mut bars = [0usize; BARS];
        for value in values.iter().filter(|v| v.is_finite()) {
            let at = ((value - low) / (high - low) * BARS as f32) as usize;
            bars[at.min(BARS - 1)] += 1;
        }
        bars.to_vec()
    };
    json!({ "low": rounded(low), "high": rounded(high), "known": count(known), "new": count(new) })
}

fn truth(truth: &Truth) -> Value {
    let accuracy = truth.accuracy();
    // A share of no items is not a number, which JSON has no word for.
    let share = |value: f64| if value.is_nan() { Value::Null } else { json!(value) };
    json!({
        "all": share(accuracy.all),
        "old": share(accuracy.old),
        "new": share(accuracy.new),
        "classes": truth.classes(),
        "known": truth.known(),
        "judged": truth.judged(),
        "classOf": truth.classes_of().iter().map(|class| json!(class)).collect::<Value>(),
        "counts": truth.counts().iter().enumerate().flat_map(|(class, row)| {
            let filled = row.iter().enumerate().filter(|(_, count)| **count > 0);
            filled.map(move |(category, count)| json!([class, category, count]))
        }).collect::<Value>(),
    })
}

/// A number to four decimals: more would only make the page larger.
fn rounded(value: f32) -> Value {
    json!((f64::from(value) * 1e4).round() / 1e4)
}

/// The address of a picture within the page; `None` when it is of no kind that a browser shows.
fn uri(picture: &[u8]) -> Option<String> {
    let kind = match picture {
        [0xFF, 0xD8, 0xFF, ..] => "jpeg",
        [0x89, b'P', b'N', b'G', ..] => "png",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "webp",
        _ => return None,
    };
    Some(format!("data:image/{kind};base64,{}", base64(picture)))
}

/// Bytes as text (RFC 4648).
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let of = |at: usize| chunk.get(at).map_or(0, |&byte| u32::from(byte));
        let bits = of(0) << 16 | of(1) << 8 | of(2);
        for digit in 0..4 {
            text.push(match digit <= chunk.len() {
                true => char::from(DIGITS[(bits >> (18 - 6 * digit)) as usize & 63]),
                false => '=',
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64, within_script};
    use proptest::prelude::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ];
        for (bytes, text) in cases {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xFB, 0xFF, 0xFE]), "+//+");
    }

    proptest! {
        #[test]
        fn text_within_a_script_reads_back_and_never_ends_it(text in r#"[<>&/!a-z"'\\\u{2028}\u{2029}\u{0}-\u{1f}\u{202e}🐦-]{0,40}"#) {
            let json = within_script(&serde_json::to_string(&text).unwrap());
            let ends = json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']);
            prop_assert!(!ends, "{}", json);
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
