//! The contract of shards: any split of a pile is one `assign`, whoever runs which shard how often.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use flate2::Compression;
use flate2::write::GzEncoder;
use genus::{AssignOptions, Destination, DiscoverOptions, Inputs, Output, OutputOptions, Silent};
use genus_bulk::{BulkError, Check, Job, PlanOptions, Reduced, Runner, Summary, Target, plan};
use genus_data::Format;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;

const DIM: usize = 8;

/// An item of one of four kinds.
fn features(at: usize) -> Vec<f32> {
    let noise = |column: usize| ((at * 7919 + column * 104_729) % 1009) as f32 / 1009.0 - 0.5;
    let value = |column: usize| 0.35 * noise(column) + f32::from(u8::from(column == at % 4));
    (0..DIM).map(value).collect()
}

fn parquet(path: &Path, rows: std::ops::Range<usize>, group: usize, with_ids: bool) {
    let mut ids = StringBuilder::new();
    let mut lists = FixedSizeListBuilder::new(Float32Builder::new(), DIM as i32);
    for at in rows {
        ids.append_value(format!("item {at}"));
        lists.values().append_slice(&features(at));
        lists.append(true);
    }
    let mut columns: Vec<(&str, ArrayRef)> = vec![("embedding", Arc::new(lists.finish()))];
    if with_ids {
        columns.insert(0, ("id", Arc::new(ids.finish())));
    }
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn csv(rows: std::ops::Range<usize>) -> String {
    let header: Vec<String> = (0..DIM).map(|column| format!("f{column}")).collect();
    let mut text = format!("id,{}\n", header.join(","));
    for at in rows {
        let cells: Vec<String> = features(at).iter().map(f32::to_string).collect();
        text += &format!("item {at},{}\n", cells.join(","));
    }
    text
}

fn jsonl_gz(path: &Path, rows: std::ops::Range<usize>) {
    let mut out = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    for at in rows {
        writeln!(out, "{{\"id\": \"item {at}\", \"embedding\": {:?}}}", features(at)).unwrap();
    }
    out.finish().unwrap();
}

/// A taxonomy of the four kinds.
fn taxonomy(folder: &Path) -> PathBuf {
    let pile = folder.join("first.csv");
    fs::write(&pile, csv(0..120)).unwrap();
    let to = folder.join("taxonomy");
    let outcome = genus::discover(Inputs::without_examples(&pile), &DiscoverOptions::default(), &Silent).unwrap();
    outcome
        .write(Destination::Folder(to.clone()), OutputOptions::default(), None, &Silent)
        .unwrap();
    to
}

fn options(folder: &Path, input: &str, out: &str) -> PlanOptions {
    let target = Target::Taxonomy {
        folder: folder.join("taxonomy"),
        calibration: None,
    };
    PlanOptions {
        format: Format::Csv,
        ..PlanOptions::new(
            vec![folder.join(input).display().to_string()],
            folder.join(out).display().to_string(),
            target,
        )
    }
}

/// Runs everything that is left of a job with so many workers.
fn run_all(job: &Job, workers: usize) -> Summary {
    loop {
        let runner = Runner::new(job, None).unwrap();
        let missing = job.missing(runner.round()).unwrap();
        let ran = runner.run(&missing, workers, &Silent);
        assert!(ran.failed.is_empty(), "{:?}", ran.failed);
        if let Reduced::Done(summary) = job.reduce(&Silent).unwrap() {
            return summary;
        }
    }
}

/// The rows of a job in the order of its shards, without the headers.
fn rows(job: &Job, summary: &Summary) -> String {
    let part = |file: &str| fs::read_to_string(job.place().full(file)).unwrap();
    let body = |text: String| text.split_once('\n').unwrap().1.to_owned();
    summary.parts.iter().map(|shard| body(part(&shard.file))).collect()
}

/// What `genus assign` says of a file, without the header.
fn assigned(folder: &Path, input: &Path) -> String {
    let to = folder.join("assigned");
    let mut output = Output::open(Destination::Folder(to.clone()), OutputOptions::default(), input).unwrap();
    let options = AssignOptions::default();
    let outcome = genus::assign_into(&folder.join("taxonomy"), input, &options, &mut output, &Silent).unwrap();
    outcome.save(output, None, &Silent).unwrap();
    let text = fs::read_to_string(to.join("assignments.csv")).unwrap();
    text.split_once('\n').unwrap().1.to_owned()
}

/// Everything that a job has written, but for what says who is at work.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            match path.is_dir() {
                true if name.ends_with("running") => assert!(fs::read_dir(&path).unwrap().next().is_none()),
                true => walk(root, &path, files),
                false => drop(files.insert(name, fs::read(&path).unwrap())),
            }
        }
    }
    let mut files = BTreeMap::new();
    walk(folder, folder, &mut files);
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_split_is_one_assign(
        count in 1usize..400, group in 1usize..90, shard_rows in 1u64..200, workers in 1usize..4, with_ids in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        taxonomy(folder);
        let input = folder.join("pile.parquet");
        parquet(&input, 0..count, group, with_ids);
        let options = PlanOptions { shard_rows, ..options(folder, "pile.parquet", "out") };
        let job = plan(&options).unwrap();
        prop_assert_eq!(job.manifest().rows(), Some(count as u64));
        let summary = run_all(&job, workers);
        prop_assert_eq!(summary.rows, count as u64);
        prop_assert_eq!(rows(&job, &summary), assigned(folder, &input));
        let verdict = job.verify().unwrap();
        prop_assert!(verdict.is_clean(), "{:?}", verdict);
    }
}

#[test]
fn files_of_every_kind_are_one_pile() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    taxonomy(folder);
    let pile = folder.join("pile");
    fs::create_dir_all(pile.join("more")).unwrap();
    fs::write(pile.join("a.csv"), csv(0..40)).unwrap();
    jsonl_gz(&pile.join("b.jsonl.gz"), 40..70);
    parquet(&pile.join("more/c.parquet"), 70..130, 20, true);
    fs::write(pile.join("notes.txt"), "not a table").unwrap();
    let job = plan(&PlanOptions {
        shard_rows: 25,
        ..options(folder, "pile", "out")
    })
    .unwrap();
    let summary = run_all(&job, 2);
    let files = ["a.csv", "b.jsonl.gz", "more/c.parquet"].map(|name| assigned(folder, &pile.join(name)));
    assert_eq!(rows(&job, &summary), files.concat());
    assert!(job.verify().unwrap().is_clean());
    // The result is a taxonomy with counts.
    let (found, _) = genus_data::read_taxonomy(folder.join("out/taxonomy")).unwrap();
    let counted: u64 = found.entries().iter().map(|entry| entry.items).sum();
    assert_eq!(counted, 130);
}

#[test]
fn rows_without_ids_have_the_name_of_their_file_where_there_are_several() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    taxonomy(folder);
    fs::create_dir(folder.join("pile")).unwrap();
    parquet(&folder.join("pile/a.parquet"), 0..3, 2, false);
    parquet(&folder.join("pile/b.parquet"), 3..5, 2, false);
    let job = plan(&PlanOptions {
        shard_rows: 1,
        ..options(folder, "pile/*.parquet", "out")
    })
    .unwrap();
    let summary = run_all(&job, 1);
    let text = rows(&job, &summary);
    let ids: Vec<&str> = text.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(
        ids,
        [
            "a.parquet#0",
            "a.parquet#1",
            "a.parquet#2",
            "b.parquet#0",
            "b.parquet#1"
        ]
    );
}

#[test]
fn whoever_runs_a_shard_how_often_it_is_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    taxonomy(folder);
    parquet(&folder.join("pile.parquet"), 0..300, 20, true);
    let plan_into = |out: &str| {
        plan(&PlanOptions {
            shard_rows: 20,
            ..options(folder, "pile.parquet", out)
        })
        .unwrap()
    };
    run_all(&plan_into("quiet"), 1);
    let job = plan_into("busy");
    let shards: Vec<usize> = (0..job.manifest().shards.len()).collect();
    assert_eq!(shards.len(), 15);
    let backwards: Vec<usize> = shards.iter().rev().copied().collect();
    std::thread::scope(|scope| {
        for order in [&shards, &backwards, &shards, &backwards] {
            scope.spawn(|| {
                let job = Job::open(&job.place().full("manifest.json")).unwrap();
                let ran = Runner::new(&job, None).unwrap().run(order, 2, &Silent);
                assert!(ran.failed.is_empty());
                assert_eq!(ran.done.len() + ran.before, 15);
            });
        }
    });
    let (first, second) = (job.reduce(&Silent).unwrap(), job.reduce(&Silent).unwrap());
    assert!(matches!((first, second), (Reduced::Done(a), Reduced::Done(b)) if a == b));
    assert_eq!(tree(&folder.join("busy")), tree(&folder.join("quiet")));
}

#[test]
fn a_shard_whose_input_has_changed_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    taxonomy(folder);
    fs::create_dir(folder.join("pile")).unwrap();
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        fs::write(folder.join(format!("pile/{name}.csv")), csv(40 * at..40 * (at + 1))).unwrap();
    }
    let shard_bytes = fs::metadata(folder.join("pile/a.csv")).unwrap().len();
    for check in [Check::Sampled, Check::Content] {
        let out = format!("out-{check:?}");
        let options = PlanOptions {
            shard_bytes,
            check,
            ..options(folder, "pile", &out)
        };
        let job = plan(&options).unwrap();
        assert_eq!(job.manifest().shards.len(), 3);
        let path = folder.join("pile/b.csv");
        let before = fs::read_to_string(&path).unwrap();
        // As long as it was.
        fs::write(&path, before.replacen("item 41", "item 49", 1)).unwrap();
        let ran = Runner::new(&job, None).unwrap().run(&[0, 1, 2], 2, &Silent);
        let [(1, error @ BulkError::Changed { .. })] = &ran.failed[..] else {
            panic!("{:?}", ran.failed)
        };
        let said = error.to_string();
        assert!(said.contains("shard 1") && said.contains("b.csv"), "{said}");
        assert_eq!(ran.done.len(), 2);
        let verdict = job.verify().unwrap();
        assert_eq!(verdict.missing, [1]);
        assert!(
            verdict.problems.iter().any(|problem| problem.contains("b.csv")),
            "{verdict:?}"
        );
        assert!(matches!(job.reduce(&Silent), Err(BulkError::Missing { missing, .. }) if missing == [1]));
        // Brought back, in whatever minute, it is what it was.
        fs::write(&path, before).unwrap();
        assert_eq!(run_all(&job, 1).rows, 120);
        assert!(job.verify().unwrap().is_clean());
    }
}

#[test]
fn a_place_has_one_job() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    taxonomy(folder);
    parquet(&folder.join("pile.parquet"), 0..50, 20, true);
    let first = options(folder, "pile.parquet", "out");
    run_all(&plan(&first).unwrap(), 1);
    let before = tree(&folder.join("out"));
    // The same plan again is no other job.
    plan(&first).unwrap();
    let other = PlanOptions { shard_rows: 7, ..first };
    assert!(matches!(plan(&other), Err(BulkError::Taken { .. })));
    assert_eq!(tree(&folder.join("out")), before);
}

#[test]
fn rows_that_cannot_be_used_are_counted_and_written_down_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    taxonomy(folder);
    fs::create_dir(folder.join("pile")).unwrap();
    let good = |at: usize| features(at).iter().map(f32::to_string).collect::<Vec<_>>().join(",");
    let zeros = ["0"; DIM].join(",");
    let text = csv(0..1)
        + &format!(
            "short,1,2\nzeros,{zeros}\nword,x{}\n,{}\nitem 1,{}\n",
            &good(1)[1..],
            good(2),
            good(1)
        )
        + &format!("huge,1e99{}\n", &zeros[1..]);
    fs::write(folder.join("pile/a.csv"), text).unwrap();
    let line = |id: &str, list: &str| format!("{{\"id\": \"{id}\", \"embedding\": {list}}}\n");
    let list = |at: usize| format!("{:?}", features(at));
    let text = "not json\n".to_owned()
        + &line("good", &list(2))
        + &line("short", "[1, 2]")
        + "{\"id\": 3}\n"
        + &line("last", &list(3));
    fs::write(folder.join("pile/b.jsonl"), text).unwrap();
    // Lists of other lengths, null, and with a null in them.
    let mut ids = StringBuilder::new();
    let mut lists = ListBuilder::new(Float32Builder::new());
    for at in 0..6 {
        ids.append_option((at != 5).then(|| format!("p{at}")));
        lists.values().append_slice(&features(at)[..DIM - 1]);
        match at {
            1 => {}
            3 => lists.values().append_null(),
            4 => lists.values().append_value(f32::NAN),
            _ => lists.values().append_value(1.0),
        }
        lists.append(at != 2);
    }
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(ids.finish()) as ArrayRef, true),
        ("embedding", Arc::new(lists.finish()) as ArrayRef, true),
    ])
    .unwrap();
    let mut writer = ArrowWriter::try_new(
        File::create(folder.join("pile/c.parquet")).unwrap(),
        batch.schema(),
        None,
    )
    .unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();

    let job = plan(&PlanOptions {
        shard_bytes: 1,
        ..options(folder, "pile", "out")
    })
    .unwrap();
    let summary = run_all(&job, 1);
    let text = rows(&job, &summary);
    let ids: Vec<&str> = text.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(ids, ["item 0", "item 1", "good", "last", "p0"]);
    let mut said = String::new();
    for (_, file) in tree(&folder.join("out/assignments/rejected")) {
        for line in String::from_utf8(file).unwrap().lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let name = row["input"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            let place = if row["line"].is_null() {
                &row["row"]
            } else {
                &row["line"]
            };
            said += &format!("{name} {place} {} {}\n", row["id"], row["reason"].as_str().unwrap());
        }
    }
    assert_eq!(summary.rejected as usize, said.lines().count());
    assert!(job.verify().unwrap().is_clean(), "{:?}", job.verify());
    let expected = [
        "a.csv 3 null 3 cells where the header has 9 columns",
        "a.csv 4 \"zeros\" all features are zero",
        "a.csv 5 null column \"f0\" holds",
        "a.csv 6 null the id is empty",
        "a.csv 8 \"huge\" column \"f0\" is inf",
        "b.jsonl 1 null expected",
        "b.jsonl 3 null 2 features where 8 are needed",
        "b.jsonl 4 null no \"embedding\" with features",
        "c.parquet 2 \"p1\" 7 features where 8 are needed",
        "c.parquet 3 \"p2\" \"embedding\" is null",
        "c.parquet 4 \"p3\" feature 8 of \"embedding\" is null",
        "c.parquet 5 \"p4\" feature 8 is NaN",
        "c.parquet 6 null the id is empty",
    ];
    assert_eq!(said.lines().count(), expected.len(), "{said}");
    for (line, expected) in said.lines().zip(expected) {
        assert!(line.starts_with(expected), "{line}\nwhere {expected} was to be");
    }
}

#[test]
fn whatever_is_wrong_with_the_result_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    taxonomy(folder);
    parquet(&folder.join("pile.parquet"), 0..90, 30, true);
    let job = plan(&PlanOptions {
        shard_rows: 30,
        ..options(folder, "pile.parquet", "out")
    })
    .unwrap();
    let summary = run_all(&job, 1);
    let file = folder.join("out").join(&summary.parts[1].file);
    let (text, receipt) = (
        fs::read(&file).unwrap(),
        folder.join("out/assignments/done/000001.json"),
    );
    let receipt_text = fs::read(&receipt).unwrap();
    let problems = |what: &str| {
        let verdict = job.verify().unwrap();
        assert!(!verdict.is_clean(), "{what}");
        (verdict.missing, verdict.problems.join("\n"))
    };
    fs::write(&file, &text[..text.len() - 1]).unwrap();
    assert!(problems("cut off").1.contains("damaged"));
    fs::remove_file(&file).unwrap();
    assert!(problems("gone").1.contains("is missing"));
    fs::write(&file, &text).unwrap();
    fs::remove_file(&receipt).unwrap();
    assert_eq!(problems("no receipt").0, [1]);
    fs::write(&receipt, &receipt_text).unwrap();
    let strange = folder.join("out/assignments/parts/000001-0123456789abcdef.csv");
    fs::write(&strange, &text).unwrap();
    assert!(problems("two parts").1.contains("belongs to no shard"));
    // Such a part of another machine goes when the job is reduced.
    job.reduce(&Silent).unwrap();
    assert!(!strange.exists());
    assert!(job.verify().unwrap().is_clean());
    // A row of the manifest that says less than there is.
    let manifest = folder.join("out/manifest.json");
    let said = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, said.replacen("\"rows\": 30", "\"rows\": 31", 1)).unwrap();
    let job = Job::open(&manifest.display().to_string()).unwrap();
    assert!(!job.verify().unwrap().is_clean());
}

#[test]
fn a_job_that_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    taxonomy(folder);
    let said = |result: Result<Job, BulkError>| result.map(|_| ()).unwrap_err().to_string();
    assert!(said(plan(&options(folder, "none/*.parquet", "out"))).contains("there is no file"));
    fs::write(folder.join("narrow.csv"), "id,f0,f1\na,1,2\n").unwrap();
    let narrow = said(plan(&options(folder, "narrow.csv", "out")));
    assert!(narrow.contains("2 features") && narrow.contains("8"), "{narrow}");
    assert!(said(Job::open(&folder.join("out").display().to_string())).contains("no manifest.json"));
    parquet(&folder.join("pile.parquet"), 0..9, 3, true);
    let job = plan(&options(folder, "pile.parquet", "out")).unwrap();
    let ran = Runner::new(&job, None).unwrap().run(&[5], 1, &Silent);
    assert!(matches!(
        ran.failed[..],
        [(5, BulkError::NoShard { shard: 5, last: 0 })]
    ));
    fs::write(folder.join("out/manifest.json"), "{\"format\": \"genus bulk 9\"}").unwrap();
    assert!(matches!(
        Job::open(&folder.join("out").display().to_string()),
        Err(BulkError::Malformed { .. })
    ));
}

/// A picture of one colour with a stripe, as a file.
fn picture(at: usize) -> Vec<u8> {
    let colour = [[200, 40, 40], [40, 200, 40], [40, 40, 200]][at % 3];
    let pixels = (0..64 * 64).map(|pixel| if pixel / 64 == 8 + at { [255; 3] } else { colour });
    let mut file = format!("BM{}", "\0".repeat(8)).into_bytes();
    // The smallest header that a bitmap has, and rows of 64 pixels of three bytes.
    file.extend(54u32.to_le_bytes());
    file.extend(40u32.to_le_bytes());
    file.extend([64i32, 64].map(i32::to_le_bytes).concat());
    file.extend([1u16, 24].map(u16::to_le_bytes).concat());
    file.extend([0u8; 24]);
    file.extend(pixels.flatten());
    file
}

/// A member of a tar archive, with the header of POSIX.
fn member(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = vec![0u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
    header[156] = b'0';
    header[257..263].copy_from_slice(b"ustar\0");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let padding = vec![0; bytes.len().next_multiple_of(512) - bytes.len()];
    [header, bytes.to_vec(), padding].concat()
}

#[test]
fn images_in_folders_and_archives_are_embedded_first() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let images = folder.join("images");
    fs::create_dir_all(images.join("more")).unwrap();
    for at in 0..9 {
        let name = if at < 5 {
            format!("{at}.bmp")
        } else {
            format!("more/{at}.bmp")
        };
        fs::write(images.join(name), picture(at)).unwrap();
    }
    let options_of = |images: &Path| DiscoverOptions {
        images: genus::ImageOptions {
            cache: genus::CacheChoice::Folder(images.join("../cache")),
            ..genus::ImageOptions::default()
        },
        ..DiscoverOptions::default()
    };
    let outcome = genus::discover(Inputs::without_examples(&images), &options_of(&images), &Silent).unwrap();
    outcome
        .write(
            Destination::Folder(folder.join("taxonomy")),
            OutputOptions::default(),
            None,
            &Silent,
        )
        .unwrap();
    fs::write(images.join("broken.bmp"), "no picture").unwrap();
    let job = plan(&PlanOptions {
        shard_bytes: 40_000,
        ..options(folder, "images", "out")
    })
    .unwrap();
    assert!(job.manifest().shards.len() > 2);
    let summary = run_all(&job, 2);
    assert_eq!((summary.rows, summary.rejected), (9, 1));
    let mut found: Vec<String> = rows(&job, &summary).lines().map(str::to_owned).collect();
    found.sort_unstable();
    // What `assign` says of the same folder.
    let to = folder.join("assigned");
    let mut output = Output::open(Destination::Folder(to.clone()), OutputOptions::default(), &images).unwrap();
    let assign = AssignOptions {
        images: options_of(&images).images,
        ..AssignOptions::default()
    };
    let assigned = genus::assign_into(&folder.join("taxonomy"), &images, &assign, &mut output, &Silent).unwrap();
    assigned.save(output, None, &Silent).unwrap();
    let text = fs::read_to_string(to.join("assignments.csv")).unwrap();
    let mut expected: Vec<&str> = text.lines().skip(1).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);

    // The same pictures in an archive, with what stands beside them there.
    let mut archive = Vec::new();
    for at in 0..9 {
        archive.extend(member(&format!("{at}.json"), b"{}"));
        archive.extend(member(&format!("{at}.bmp"), &picture(at)));
    }
    archive.extend([0; 1024]);
    fs::write(folder.join("pile.tar"), &archive).unwrap();
    let job = plan(&options(folder, "pile.tar", "archived")).unwrap();
    let summary = run_all(&job, 1);
    let of_archive: Vec<String> = rows(&job, &summary).lines().map(str::to_owned).collect();
    let short = |line: &str| line.trim_start_matches("more/").to_owned();
    let mut expected: Vec<String> = expected.into_iter().map(short).collect();
    expected.sort_unstable();
    assert_eq!(of_archive, expected);
    assert!(job.verify().unwrap().is_clean());
    // Cut off in the middle it is an error, and no short pile.
    fs::write(folder.join("cut.tar"), &archive[..archive.len() / 2]).unwrap();
    let job = plan(&options(folder, "cut.tar", "cut")).unwrap();
    let ran = Runner::new(&job, None).unwrap().run(&[0], 1, &Silent);
    assert_eq!(ran.failed.len(), 1);
}
