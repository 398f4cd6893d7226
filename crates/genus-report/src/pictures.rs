//! Which items get a picture: so many as a page can hold.

use crate::Report;

/// Pictures of one page: enough to judge every category, few enough to look through.
const MOST: usize = 4_000;
/// Bytes that all pictures of a page may take; as text they are a third longer.
const BYTES: usize = 26 << 20;
/// How many pictures are asked for at a time.
const BATCH: usize = 64;

/// What a picture is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// The labelled example of this number.
    Example(usize),
    /// The item of this number.
    Item(usize),
}

/// The pictures that a page has room for, in the order of their use.
#[derive(Clone, Debug)]
pub struct Pictures {
    order: Vec<Slot>,
}

impl Pictures {
    /// Chooses what is shown: the examples, and of every category the mistakes, the most typical and the most doubtful.
    /// Small categories are shown whole before large ones get more.
    pub fn choose(report: &Report) -> Self {
        let ranked: Vec<Vec<usize>> = report.sheets().iter().map(|sheet| by_use(report, sheet)).collect();
        let longest = ranked.iter().map(Vec::len).max().unwrap_or(0);
        let items = (0..longest).flat_map(|rank| ranked.iter().filter_map(move |sheet| sheet.get(rank)));
        let examples = (0..report.examples.len()).map(Slot::Example);
        let order = examples.chain(items.map(|&item| Slot::Item(item)));
        Self {
            order: order.take(MOST).collect(),
        }
    }

    /// How many there may be.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The longer side that a picture should have, in pixels: the fewer there are, the larger they may be.
    pub fn side(&self) -> usize {
        match self.order.len() {
            0..=400 => 320,
            401..=1500 => 224,
            _ => 144,
        }
    }

    /// Asks for the pictures, some at a time, and puts them into the report until the page is full.
    ///
    /// What has no picture is given `None`. That the page is full depends on the pictures alone, so the same pictures
    /// always make the same page.
    pub fn fill<E>(
        &self,
        report: &mut Report,
        mut make: impl FnMut(&Report, &[Slot]) -> Result<Vec<Option<Vec<u8>>>, E>,
    ) -> Result<(), E> {
        let mut left = BYTES;
        for slots in self.order.chunks(BATCH) {
            let made = make(report, slots)?;
            for (slot, picture) in slots.iter().zip(made) {
                let Some(picture) = picture else { continue };
                let Some(rest) = left.checked_sub(picture.len()) else {
                    return Ok(());
                };
                left = rest;
                match *slot {
                    Slot::Example(at) => report.examples[at].picture = Some(picture),
                    Slot::Item(at) => report.items[at].picture = Some(picture),
                }
            }
        }
        Ok(())
    }
}

/// The items of a sheet, those that say most about it first: by turns a mistake and one that belongs there, and of these
/// two typical ones for a doubtful one.
fn by_use(report: &Report, sheet: &[usize]) -> Vec<usize> {
    let mistakes = sheet
        .iter()
        .take_while(|&&item| report.is_mistake(&report.items[item]))
        .count();
    let (wrong, rest) = sheet.split_at(mistakes);
    let mut right = Vec::with_capacity(rest.len());
    let (mut front, mut back) = (0, rest.len());
    while front < back {
        for _ in 0..2 {
            if front < back {
                right.push(rest[front]);
                front += 1;
            }
        }
        if front < back {
            back -= 1;
            right.push(rest[back]);
        }
    }
    let mut order = Vec::with_capacity(sheet.len());
    let (mut wrong, mut right) = (wrong.iter().copied(), right.into_iter());
    loop {
        let pair = (wrong.next(), right.next());
        order.extend(pair.0.into_iter().chain(pair.1));
        if pair == (None, None) {
            return order;
        }
    }
}
