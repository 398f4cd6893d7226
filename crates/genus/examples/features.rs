//! Features in memory: sorts embeddings that a program has already, without touching a file.
//!
//! ```sh
//! cargo run --release -p genus --example features
//! ```

use genus::{DiscoverOptions, Features, Inputs, Silent, Table};

/// Made-up embeddings: items of a class share a direction, and each strays from it a little.
fn embedding(class: usize, item: usize) -> [f32; 8] {
    let mut row = [0.0; 8];
    row[class] = 1.0;
    row[4 + item % 4] = 0.2 + 0.01 * (item % 7) as f32;
    row
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Five examples of each of two classes …
    let examples = Table {
        ids: (0..10).map(|item| format!("example {item}")).collect(),
        labels: (0..10).map(|item| Some(["cat", "dog"][item / 5].to_owned())).collect(),
        features: Features::from_rows((0..10).map(|item| embedding(item / 5, item)))?,
    };
    // … and sixty items, of which half are neither.
    let pile = Table {
        ids: (0..60).map(|item| format!("item {item}")).collect(),
        labels: vec![None; 60],
        features: Features::from_rows((0..60).map(|item| embedding(item / 15, item)))?,
    };

    let outcome = genus::discover(Inputs::new(examples, pile), &DiscoverOptions::default(), &Silent)?;
    for entry in outcome.taxonomy.entries() {
        println!("{}: {} items", entry.name, entry.items);
    }
    let first = &outcome.assignments[0];
    let probability = first.score.probability.unwrap_or_default();
    println!("{} is a {} with probability {probability:.2}", first.id, first.category);
    Ok(())
}
