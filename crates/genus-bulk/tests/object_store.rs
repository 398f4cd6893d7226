//! A job whose inputs and results are in an object store that answers 500 and 503, cuts connections and lists late.
//!
//! `pip install 'moto[server]' && moto_server -H 127.0.0.1 -p 5555`, and then
//! `GENUS_S3=127.0.0.1:5555 cargo test --features genus-bulk/object-store --test object_store -- --ignored`.
#![cfg(feature = "object-store")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use genus::{Destination, DiscoverOptions, Inputs, OutputOptions, Silent};
use genus_bulk::{Job, PlanOptions, Reduced, Runner, Target, plan};
use genus_data::FeatureWriter;

const DIM: usize = 8;

fn features(at: usize) -> Vec<f32> {
    let noise = |column: usize| ((at * 7919 + column * 104_729) % 1009) as f32 / 1009.0 - 0.5;
    let value = |column: usize| 0.35 * noise(column) + f32::from(u8::from(column == at % 4));
    (0..DIM).map(value).collect()
}

fn write(path: &std::path::Path, rows: std::ops::Range<usize>) {
    let mut writer = FeatureWriter::create(path, DIM, None, false).unwrap();
    for at in rows {
        writer.write(&[format!("item {at}")], &[None], &features(at)).unwrap();
    }
    writer.finish().unwrap();
}

/// A request and its answer, of which the head ends with an empty line.
fn ask(server: &str, method: &str, path: &str, body: &[u8]) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(server).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {server}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let body = answer.split_off(end + 4);
    (String::from_utf8_lossy(&answer).into_owned(), body)
}

fn length_of(head: &str) -> usize {
    let line = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().unwrap())
    });
    line.unwrap_or(0)
}

/// What goes wrong between a client and the store.
#[derive(Default)]
struct Faults {
    asked: AtomicU64,
    failed: AtomicU64,
    /// Whether listings know nothing of what a job has written.
    is_late: AtomicBool,
}

impl Faults {
    fn answer(&self, mut client: TcpStream, server: &str) -> std::io::Result<()> {
        let mut request = Vec::new();
        let mut buffer = [0; 1 << 16];
        let end = loop {
            if let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            match client.read(&mut buffer)? {
                0 => return Ok(()),
                count => request.extend_from_slice(&buffer[..count]),
            }
        };
        let head = String::from_utf8_lossy(&request[..end]).into_owned();
        while request.len() < end + length_of(&head) {
            match client.read(&mut buffer)? {
                0 => return Ok(()),
                count => request.extend_from_slice(&buffer[..count]),
            }
        }
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut say = |status: &str, body: &str| {
            let length = body.len();
            client.write_all(
                format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").as_bytes(),
            )
        };
        let first = head.lines().next().unwrap_or_default();
        if first.contains("list-type=2") && first.contains("job") && self.is_late.load(Ordering::Relaxed) {
            return say(
                "200 OK",
                "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
            );
        }
        match number % 13 {
            3 => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                return say("500 Internal Server Error", "");
            }
            7 => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                return say("503 Slow Down", "");
            }
            _ => {}
        }
        let mut upstream = TcpStream::connect(server)?;
        let close = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        upstream.write_all(close.as_bytes())?;
        upstream.write_all(&request[end..])?;
        let mut answer = Vec::new();
        upstream.read_to_end(&mut answer)?;
        if number % 13 == 11 {
            // What was asked has been done; whoever asked does not hear of it.
            self.failed.fetch_add(1, Ordering::Relaxed);
            return client.write_all(&answer[..answer.len() / 2]);
        }
        client.write_all(&answer)
    }
}

#[test]
#[ignore = "wants an S3 server: GENUS_S3=127.0.0.1:5555"]
fn a_job_in_a_store_that_fails_now_and_then() {
    let server = std::env::var("GENUS_S3").expect("the address of an S3 server");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("pile")).unwrap();
    let bucket = format!("/genus-{}", std::process::id());
    assert!(ask(&server, "PUT", &bucket, b"").0.contains(" 200 "));
    for (name, rows) in [("a.parquet", 0..300), ("b.csv", 300..420), ("c.parquet", 420..700)] {
        let path = folder.join("pile").join(name);
        write(&path, rows);
        let put = ask(
            &server,
            "PUT",
            &format!("{bucket}/pile/{name}"),
            &fs::read(&path).unwrap(),
        );
        assert!(put.0.contains(" 200 "), "{}", put.0);
    }
    let first = folder.join("pile/a.parquet");
    let outcome = genus::discover(Inputs::without_examples(&first), &DiscoverOptions::default(), &Silent).unwrap();
    let to = Destination::Folder(folder.join("taxonomy"));
    outcome.write(to, OutputOptions::default(), None, &Silent).unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = listener.local_addr().unwrap();
    let faults = Arc::new(Faults::default());
    faults.is_late.store(true, Ordering::Relaxed);
    let (between, upstream) = (faults.clone(), server.clone());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (between, upstream) = (between.clone(), upstream.clone());
            std::thread::spawn(move || between.answer(client, &upstream));
        }
    });
    // Two jobs at one place at once, each a process of its own.
    let children: Vec<_> = (0..2)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--ignored", "--exact", "one_process_of_it", "--nocapture"])
                .env("GENUS_S3_JOB", format!("s3:/{bucket}"))
                .env("GENUS_S3_FOLDER", folder)
                .env("AWS_ENDPOINT", format!("http://{proxy}"))
                .env("AWS_ALLOW_HTTP", "true")
                .env("AWS_ACCESS_KEY_ID", "test")
                .env("AWS_SECRET_ACCESS_KEY", "test")
                .env("AWS_REGION", "us-east-1")
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let (asked, failed) = (
        faults.asked.load(Ordering::Relaxed),
        faults.failed.load(Ordering::Relaxed),
    );
    println!("{failed} of {asked} requests failed");
    assert!(failed > 10);

    // The same on this machine.
    let quiet = plan(&options(
        folder,
        folder.join("pile").display().to_string(),
        folder.join("quiet").display().to_string(),
    ));
    let quiet = quiet.unwrap();
    let shards: Vec<usize> = (0..quiet.manifest().shards.len()).collect();
    Runner::new(&quiet, None).unwrap().run(&shards, 1, &Silent);
    let Reduced::Done(summary) = quiet.reduce(&Silent).unwrap() else {
        panic!("one round")
    };
    assert_eq!(summary.rows, 700);
    let mut same = BTreeMap::new();
    for part in &summary.parts {
        let there = ask(&server, "GET", &format!("{bucket}/job/{}", part.file), b"");
        let here = fs::read(folder.join("quiet").join(&part.file)).unwrap();
        same.insert(&part.file, there.0.contains(" 200 ") && there.1 == here);
    }
    assert!(same.values().all(|same| *same), "{same:?}");
}

fn options(folder: &std::path::Path, input: String, out: String) -> PlanOptions {
    let target = Target::Taxonomy {
        folder: folder.join("taxonomy"),
        calibration: None,
    };
    PlanOptions {
        shard_bytes: 6000,
        ..PlanOptions::new(vec![input], out, target)
    }
}

#[test]
#[ignore = "is a process of the other test"]
fn one_process_of_it() {
    let (Ok(bucket), Ok(folder)) = (std::env::var("GENUS_S3_JOB"), std::env::var("GENUS_S3_FOLDER")) else {
        return;
    };
    let options = options(folder.as_ref(), format!("{bucket}/pile/"), format!("{bucket}/job"));
    let job = plan(&options).unwrap();
    assert_eq!(job.manifest().inputs.len(), 3);
    let shards: Vec<usize> = (0..job.manifest().shards.len()).collect();
    let ran = Runner::new(&job, None).unwrap().run(&shards, 2, &Silent);
    assert!(ran.failed.is_empty(), "{:?}", ran.failed);
    let Reduced::Done(summary) = job.reduce(&Silent).unwrap() else {
        panic!("one round")
    };
    assert_eq!(summary.rows, 700);
    let verdict = Job::open(&format!("{bucket}/job/manifest.json"))
        .unwrap()
        .verify()
        .unwrap();
    assert!(verdict.is_clean(), "{verdict:?}");
}
