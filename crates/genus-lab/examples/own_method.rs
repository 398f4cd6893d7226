//! A method of your own in the bench: on the same episodes as the others, in the same tables.
//!
//! ```sh
//! cargo run --release -p genus-lab --example own_method
//! ```

use genus_core::episode::Shape;
use genus_core::methods::{Context, MethodEntry, MethodSpec, Parameter, Values};
use genus_core::{Discover, DiscoverError, Discovery, Features, ParameterError, Stop, Task};
use genus_lab::{Bench, BenchMethod, Dataset, Experiment, Silent};

/// Leader clustering: a query joins the first cluster whose first point is similar enough, and else begins a cluster.
struct Leader {
    similarity: f32,
}

impl Discover for Leader {
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        let points = task.points();
        // The prototypes of the known classes come first, and each leads a cluster of its own.
        let mut leaders: Vec<usize> = (0..task.known()).collect();
        let mut clusters = leaders.clone();
        for query in task.known()..points.rows() {
            // Rows have length one, so this is the cosine.
            let similarity = |&leader: &usize| -> f32 {
                let pairs = points.row(leader).iter().zip(points.row(query));
                pairs.map(|(a, b)| a * b).sum()
            };
            let found = leaders.iter().position(|leader| similarity(leader) >= self.similarity);
            clusters.push(found.unwrap_or_else(|| {
                leaders.push(query);
                leaders.len() - 1
            }));
        }
        Ok(Discovery::from_clusters(task, clusters, Stop::Direct))
    }
}

/// What it is called and what can be set, as in `leader:similarity=0.8`.
static OWN: &[MethodEntry] = &[MethodEntry::own(
    "leader",
    "Leader clustering: joins the first cluster that is similar enough",
    &[Parameter::new(
        "similarity",
        "0.7",
        "the least cosine of an item and its leader",
    )],
    build,
)];

fn build(values: &Values, _: &Context) -> Result<Box<dyn Discover + Send>, ParameterError> {
    let similarity = values.get("similarity", 0.7)?;
    Ok(Box::new(Leader { similarity }))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Twelve made-up classes of ten items; `Dataset` reads feature files too.
    let rows = (0..120).map(|item| {
        let mut row = [0.0f32; 16];
        row[item % 12] = 1.0;
        row[12 + item / 12 % 4] = 0.4 + 0.05 * (item / 12) as f32;
        row
    });
    let labels: Vec<Option<String>> = (0..120).map(|item| Some(format!("class {}", item % 12))).collect();
    let data = Dataset::new("made up", Features::from_rows(rows)?, &labels, None)?;

    let mut methods = BenchMethod::list(["proto", "shc"])?;
    for text in ["leader", "leader:similarity=0.9"] {
        methods.push(MethodSpec::parse(text, &[OWN])?.into());
    }
    let bench = Bench {
        shape: Shape {
            way: 3,
            shot: 3,
            new: 3,
            query: 5,
        },
        episodes: 50,
        methods,
        ..Bench::default()
    };
    println!("{}", bench.run(&data, &Experiment::Main, &Silent)?.markdown());
    Ok(())
}
