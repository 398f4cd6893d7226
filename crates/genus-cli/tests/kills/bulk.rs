//! `kill -9` at random moments while shards run: whatever was killed how often, the same shell loop ends with the bytes of an
//! undisturbed run.
//!
//! `GENUS_BULK_KILLS=500 cargo test --test kills bulk -- --nocapture` is the long run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Random, genus, number, run, table};

/// How often something is killed in a short run.
const KILLS: u64 = 8;

/// Everything that a job has written, but for what says who is at work and what nobody has given its name.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            let hidden = path.file_name().unwrap().to_string_lossy().starts_with('.');
            match path.is_dir() {
                _ if hidden || name.ends_with("running") => {}
                true => folders.push(path),
                false => drop(files.insert(name, fs::read(&path).unwrap())),
            }
        }
    }
    files
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// What `verify` says.
fn verdict(folder: &Path, job: &str) -> Value {
    let output = genus(folder, &words(&format!("bulk verify {job} --json")))
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn bulk_ends_as_undisturbed_whatever_is_killed() {
    let kills = number("GENUS_BULK_KILLS", KILLS);
    let mut random = Random(number("GENUS_SEED", 11));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("pile")).unwrap();
    for file in 0..8 {
        fs::write(folder.join(format!("pile/{file}.csv")), table(1500 * file, 1500)).unwrap();
    }
    fs::write(folder.join("first.csv"), table(0, 120)).unwrap();
    run(folder, "discover first.csv --out taxonomy --no-report");
    let plans = [
        "bulk plan pile --taxonomy taxonomy --shard-mb 0 --no-estimate",
        "bulk plan pile --discover --sample 300 --shard-mb 0 --no-estimate --format csv",
    ];
    let (mut killed, mut rounds) = (0, 0);
    while killed < kills {
        for (at, plan) in plans.iter().enumerate() {
            let quiet = format!("quiet{at}");
            if rounds == 0 {
                run(folder, &format!("{plan} --out {quiet}"));
                let start = Instant::now();
                run(folder, &format!("bulk run {quiet} --all"));
                fs::write(
                    folder.join(format!("{quiet}.time")),
                    start.elapsed().as_millis().to_string(),
                )
                .unwrap();
            }
            let usual: u64 = fs::read_to_string(folder.join(format!("{quiet}.time")))
                .unwrap()
                .parse()
                .unwrap();
            let job = format!("job{rounds}-{at}");
            let mut done = false;
            // Killed so often that a run in a row of them gets to its end now and then.
            while !done {
                let line = match random.below(3) {
                    0 => format!("{plan} --out {job}"),
                    _ => format!("bulk run {job} --all"),
                };
                // Two at once, of which one may be killed.
                let mut children: Vec<_> = (0..1 + random.below(2))
                    .map(|_| {
                        let mut command = genus(folder, &words(&line));
                        command.stdout(Stdio::null()).stderr(Stdio::null());
                        command.spawn().unwrap()
                    })
                    .collect();
                sleep(Duration::from_millis(random.below(usual + usual / 2)));
                if killed < kills {
                    children[0].kill().unwrap();
                }
                for mut child in children {
                    killed += u64::from(child.wait().unwrap().code().is_none());
                }
                if !folder.join(&job).join("manifest.json").is_file() {
                    continue;
                }
                let verdict = verdict(folder, &job);
                let problems = verdict["problems"].as_array().unwrap();
                // What was killed between the manifest and the beginning of the first round is mended by the same plan again.
                let begun = problems
                    .iter()
                    .all(|problem| problem.as_str().unwrap().contains("cannot begin"));
                assert!(begun, "{verdict}");
                done = folder.join(&job).join("summary.json").is_file();
            }
            run(folder, &format!("bulk verify {job}"));
            let (job, quiet) = (tree(&folder.join(&job)), tree(&folder.join(&quiet)));
            assert_eq!(job.keys().collect::<Vec<_>>(), quiet.keys().collect::<Vec<_>>());
            assert!(job == quiet, "other bytes than those of an undisturbed run");
        }
        rounds += 1;
    }
    println!("{killed} processes were killed over {rounds} rounds of two jobs");
}
