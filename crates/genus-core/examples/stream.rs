//! A stream: items come one by one, and each is known, of a group found before, or waits until others agree with it.
//!
//! ```sh
//! cargo run --release -p genus-core --example stream
//! ```

use genus_core::{Features, Knowledge, Stream, StreamPlace, Support, Task};

/// Made-up embeddings: items of a class share a direction, and each strays from it a little.
fn embedding(class: usize, item: usize) -> [f32; 8] {
    let mut row = [0.0; 8];
    row[class] = 1.0;
    row[4 + item % 4] = 0.2 + 0.01 * (item % 7) as f32;
    row
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let examples = Features::from_rows((0..10).map(|item| embedding(item / 5, item)))?;
    let labels: Vec<&str> = (0..10).map(|item| ["cat", "dog"][item / 5]).collect();
    let support = Support::new(examples, &labels)?;
    let task = Task::new(&support, Features::from_rows([embedding(0, 0)])?)?;
    let mut stream = Stream::of_examples(&task, &Knowledge::Examples)?;

    for item in 0..40 {
        let seen = stream.observe(&embedding(item % 4, item))?;
        let name = |category: usize| stream.entries()[category].name.clone();
        match seen.place {
            StreamPlace::Joined(found) => println!("item {item}: {}", name(found.category)),
            StreamPlace::Waiting(_) => println!("item {item} waits"),
        }
        for (waited, found) in &seen.settled {
            println!("  item {waited}, which waited: {}", name(found.category));
        }
    }
    println!(
        "{} categories, {} items wait",
        stream.entries().len(),
        stream.waiting().len()
    );
    Ok(())
}
