//! Every command that writes, under injected faults: killed, out of disk, out of file handles or interrupted at the n-th
//! system call of a kind. Whatever happens, the same command again must end with the bytes of an undisturbed run, and leave
//! nothing else behind.
//!
//! `strace` injects the faults; where it is not there, or not allowed, a line says so and the test passes. A few faults are
//! tried by default, and as many as `GENUS_FAULTS` says: see CONTRIBUTING.md.

#![cfg(target_os = "linux")]

#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "these tests need little of it")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use support::{Folder, animals, csv, labelled, unlabelled};

/// Faults that are tried unless another number is asked for.
const FAULTS: usize = 80;

/// A command that writes.
struct Case {
    name: &'static str,
    /// Makes what it needs.
    prepare: fn(&Folder),
    command: &'static str,
    /// What is run after a fault.
    again: fn(&Folder) -> &'static str,
}

/// Files for TensorBoard are full of moments, their names included, and one is begun whenever a run goes on.
const WITH_TIMES: &str = "events.out.tfevents";
/// What else is not the same twice: how long something took. Words before it, and what it ends before.
const VARYING: [(&str, &[char]); 4] = [
    ("\"seconds\":", &[',', '}']),
    ("\"images_per_second\":", &[',', '}']),
    ("\"time\":", &[',', '}']),
    ("\"made\":", &[',', '}']),
];
/// What a collection is in.
const DATABASE: &str = "collection.db";

/// What goes wrong, and at which system calls.
struct Fault {
    name: &'static str,
    /// As `strace` calls it.
    injected: &'static str,
    calls: &'static str,
}

const WRITES: &str =
    "openat,write,pwrite64,ftruncate,fsync,fdatasync,rename,renameat,renameat2,link,linkat,symlink,unlink,mkdir,rmdir";

const KINDS: [Fault; 5] = [
    Fault {
        name: "killed",
        injected: "signal=KILL",
        calls: WRITES,
    },
    Fault {
        name: "terminated",
        injected: "signal=TERM",
        calls: WRITES,
    },
    Fault {
        name: "out of disk",
        injected: "error=ENOSPC",
        calls: "write,pwrite64,ftruncate,fsync,rename,renameat2,linkat,mkdir",
    },
    Fault {
        name: "out of file handles",
        injected: "error=EMFILE",
        calls: "openat",
    },
    Fault {
        name: "interrupted",
        injected: "error=EINTR",
        calls: "read,write,pread64,pwrite64,openat",
    },
];

fn features(folder: &Folder) {
    let (support, pile) = animals();
    folder.write("support.csv", csv(&support));
    folder.write("pile.csv", csv(&unlabelled(&pile)));
    let mut more = unlabelled(&pile);
    for (at, item) in more.iter_mut().enumerate() {
        item.id = format!("later {at}");
        // Some are like what was seen, and some like nothing.
        item.row[at % 8] += if at % 3 == 0 { 5.0 } else { 0.05 };
    }
    folder.write("more.csv", csv(&more));
    folder.write("base.csv", csv(&labelled(12, 8)));
}

fn taxonomy(folder: &Folder) {
    features(folder);
    folder
        .genus("discover --support support.csv --query pile.csv --out result --no-report")
        .success();
}

fn files(folder: &Folder) {
    features(folder);
    let (_, pile) = animals();
    pile.iter().for_each(|item| folder.write(&item.id, item.id.as_bytes()));
}

/// A bitmap of one colour with a line across, eight pixels wide.
fn bmp(colour: [u8; 3], line: usize) -> Vec<u8> {
    let mut bytes = b"BM".to_vec();
    bytes.extend((54u32 + 192).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(54u32.to_le_bytes());
    bytes.extend(40u32.to_le_bytes());
    bytes.extend(8i32.to_le_bytes());
    bytes.extend(8i32.to_le_bytes());
    bytes.extend(1u16.to_le_bytes());
    bytes.extend(24u16.to_le_bytes());
    bytes.extend([0; 24]);
    for pixel in 0..64 {
        bytes.extend(if pixel / 8 == line % 8 { [255; 3] } else { colour });
    }
    bytes
}

fn images(folder: &Folder) {
    for class in 0..6u8 {
        for at in 0..4 {
            let colour = [30 + 35 * class, 250 - 35 * class, 60 * (class % 4)];
            folder.write(
                &format!("base/class {class}/{at}.bmp"),
                bmp(colour, at + usize::from(class)),
            );
        }
    }
}

const TRAIN: &str = "train base --encoder conv4:size=16,width=4 --from-scratch --way 2 --shot 1 --new 1 --query 2 \
                     --head-hidden 8 --head-width 16 --validation-classes 3 --validation-episodes 5 --validate-every 1 \
                     --epochs 2 --episodes 2 --out run";

fn encoder(folder: &Folder) {
    images(folder);
    folder.genus(TRAIN).success();
}

const EXPORT: &str = "discover --support support.csv --query pile.csv --out result --no-report --export label-studio \
                      --export fiftyone";

/// A collection with three groups that have names and two that have none.
fn collection(folder: &Folder) {
    features(folder);
    folder.genus("init birds --support support.csv").success();
    folder.genus("add birds pile.csv").success();
    // Two items of the first group belong into the second.
    let mut corrections = String::from("id,category\n");
    for item in json(folder, "show birds #1 --json")["items"]
        .as_array()
        .unwrap()
        .iter()
        .take(2)
    {
        // Some of the pile have names that examples have too.
        corrections += &format!("#{} {},bee\n", item["id"], item["name"].as_str().unwrap());
    }
    folder.write("corrections.csv", corrections);
}

const CASES: [Case; 20] = [
    Case {
        name: "discover",
        prepare: features,
        command: "discover --support support.csv --query pile.csv --out result",
        again: |_| "discover --support support.csv --query pile.csv --out result",
    },
    Case {
        name: "export",
        prepare: files,
        command: EXPORT,
        again: |_| EXPORT,
    },
    Case {
        name: "grow",
        prepare: taxonomy,
        command: "assign --taxonomy result --query more.csv --grow result --out sorted",
        again: |_| "assign --taxonomy result --query more.csv --grow result --out sorted",
    },
    Case {
        name: "sort",
        prepare: files,
        command: "discover --support support.csv --query pile.csv --sort-into sorted --link copy",
        again: |_| "discover --support support.csv --query pile.csv --sort-into sorted --link copy",
    },
    Case {
        name: "calibrate",
        prepare: features,
        command: "calibrate base.csv -o base.safetensors",
        again: |_| "calibrate base.csv -o base.safetensors",
    },
    Case {
        name: "bench",
        prepare: features,
        command: "bench main --features base.csv --way 2 --new 1 --shot 1 --query 2 --episodes 3 --methods shc --json out.json",
        again: |_| "bench main --features base.csv --way 2 --new 1 --shot 1 --query 2 --episodes 3 --methods shc --json out.json",
    },
    Case {
        name: "train",
        prepare: images,
        command: TRAIN,
        again: |folder| match folder.path("run/config.toml").exists() {
            true => "train --resume run",
            false => TRAIN,
        },
    },
    Case {
        name: "embed",
        prepare: encoder,
        command: "embed base --encoder run -o features.npz",
        again: |_| "embed base --encoder run -o features.npz",
    },
    // The report reads the images once more.
    Case {
        name: "images",
        prepare: encoder,
        command: "discover --support base --query base --encoder run --no-cache --out result",
        again: |_| "discover --support base --query base --encoder run --no-cache --out result",
    },
    Case {
        name: "init",
        prepare: features,
        command: "init birds --support support.csv",
        // One that has its examples is whole; whoever changes it next takes the lock's file away.
        again: |folder| match has_items(folder) {
            true => "compact birds",
            false => "init birds --support support.csv",
        },
    },
    Case {
        name: "take over",
        prepare: taxonomy,
        command: "init birds --from result",
        again: |folder| match json(folder, "status birds --json")["named_groups"].as_u64() {
            Some(1..) => "compact birds",
            _ => "init birds --from result",
        },
    },
    Case {
        name: "add",
        prepare: collection,
        command: "add birds more.csv",
        again: |_| "add birds more.csv",
    },
    Case {
        name: "name",
        prepare: collection,
        command: "name birds #4 owl",
        again: |_| "name birds #4 owl",
    },
    Case {
        name: "apply",
        prepare: collection,
        command: "apply birds corrections.csv",
        again: |_| "apply birds corrections.csv",
    },
    Case {
        name: "refresh",
        prepare: |folder| {
            collection(folder);
            folder.genus("apply birds corrections.csv").success();
            folder.genus("name birds #4 owl").success();
            folder.genus("add birds more.csv").success();
        },
        command: "refresh birds",
        again: |folder| match json(folder, "log birds -n 1 --json")[0]["kind"] == "refresh" {
            true => "compact birds",
            false => "refresh birds",
        },
    },
    Case {
        name: "export of a collection",
        prepare: |folder| {
            collection(folder);
            let (_, pile) = animals();
            pile.iter().for_each(|item| folder.write(&item.id, item.id.as_bytes()));
        },
        command: EXPORT_COLLECTION,
        again: |_| EXPORT_COLLECTION,
    },
    Case {
        name: "report of a collection",
        prepare: collection,
        command: "report birds",
        again: |_| "report birds",
    },
    Case {
        name: "compact",
        prepare: collection,
        command: "compact birds",
        again: |_| "compact birds",
    },
    Case {
        name: "token",
        prepare: collection,
        command: "token create birds --name Anna",
        // Whoever was not told the secret revokes it; here it is enough that it is there.
        again: |folder| match json(folder, "token list birds --json")
            .as_array()
            .is_some_and(Vec::is_empty)
        {
            true => "token create birds --name Anna",
            false => "compact birds",
        },
    },
    Case {
        name: "man",
        prepare: |_| {},
        command: "man pages",
        again: |_| "man pages",
    },
];

const EXPORT_COLLECTION: &str =
    "export birds -o result --with-features --sort-into sorted --link copy --export label-studio";

/// What a command prints as JSON, or nothing where it fails.
fn json(folder: &Folder, arguments: &str) -> serde_json::Value {
    serde_json::from_slice(&folder.genus(arguments).stdout).unwrap_or_default()
}

/// Whether a collection is there and has items.
fn has_items(folder: &Folder) -> bool {
    json(folder, "status birds --json")["items"]
        .as_u64()
        .is_some_and(|items| items > 0)
}

/// Every file with its content; folders have none.
type Contents = BTreeMap<String, Option<Vec<u8>>>;

/// The files of a folder, without what is not the same twice, the folder's own name included.
fn contents(folder: &Folder) -> Contents {
    let mut all = folder.contents();
    all.retain(|name, _| !name.contains(WITH_TIMES));
    // Of a database counts what is in it: its pages are full of moments.
    if all.keys().any(|name| name.contains(DATABASE)) {
        all.retain(|name, _| !name.contains(DATABASE));
        for told in ["status", "groups", "log -n 1000", "check", "token list"] {
            let (command, options) = told
                .split_once(" -")
                .map_or((told, String::new()), |(c, o)| (c, format!(" -{o}")));
            let said = folder.genus(&format!("{command} birds{options} --json"));
            all.insert(format!("birds: {told}"), Some(said.stdout));
        }
        // Where every item is, to the last of them.
        let export = folder.genus("export birds -o .told --with-features");
        all.insert("birds: export".to_owned(), export.code.map(|code| vec![code as u8]));
        for (name, bytes) in folder
            .contents()
            .into_iter()
            .filter(|(name, _)| name.starts_with(".told/"))
        {
            all.insert(name, bytes);
        }
        let _ = fs::remove_dir_all(folder.path(".told"));
    }
    let place = folder.path(".").canonicalize().unwrap();
    let place = place.file_name().unwrap().to_str().unwrap();
    for bytes in all.values_mut().flatten() {
        if let Ok(text) = str::from_utf8(bytes) {
            let text = text.replace(place, "");
            let cut = |text: String, &(words, ends): &(&str, &[char])| without(&text, words, ends);
            *bytes = VARYING.iter().fold(text, cut).into_bytes();
        }
    }
    all
}

/// A text without what stands between some words and an end.
fn without(text: &str, words: &str, ends: &[char]) -> String {
    let mut parts = text.split(words);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + words + part.find(ends).map_or("", |end| &part[end..])
    })
}

#[track_caller]
fn assert_same(found: &Contents, expected: &Contents, what: &str) {
    let names: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    let other: Vec<&&String> = names
        .iter()
        .filter(|name| found.get(**name) != expected.get(**name))
        .collect();
    assert!(
        other.is_empty(),
        "{what}: {other:?} are not those of an undisturbed run"
    );
}

/// The program under `strace`, which injects a fault or writes down which calls there were.
fn traced(folder: &Folder, arguments: &str, options: &[String]) -> Command {
    let plain = folder.command(arguments);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq"]).args(options).arg("--");
    command.arg(plain.get_program()).args(plain.get_args());
    command.current_dir(folder.path("."));
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null());
    command
}

/// How often each of some calls is made by the thread of an undisturbed run that makes it most: `strace` counts them by thread.
fn counts(folder: &Folder, case: &Case, calls: &str, trace: &Path) -> BTreeMap<String, usize> {
    let options = [format!("-etrace={calls}"), "-o".to_owned(), trace.display().to_string()];
    let ended = traced(folder, case.command, &options).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let mut of_threads: BTreeMap<(String, String), usize> = BTreeMap::new();
    for line in fs::read_to_string(trace).unwrap().lines() {
        let mut words = line.split_whitespace();
        let (thread, call) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if let Some((name, _)) = call.split_once('(') {
            *of_threads.entry((name.to_owned(), thread.to_owned())).or_default() += 1;
        }
    }
    let mut counts = BTreeMap::new();
    for ((name, _), count) in of_threads {
        let most = counts.entry(name).or_insert(0);
        *most = count.max(*most);
    }
    counts
}

#[test]
fn whatever_happens_the_same_command_again_gives_the_same() {
    let works = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    if !works.is_ok_and(|ended| ended.status.success()) {
        println!("strace is not there or not allowed: no faults were injected");
        return;
    }
    let wanted = std::env::var("GENUS_FAULTS").ok().and_then(|text| text.parse().ok());
    let only = std::env::var("GENUS_FAULTS_OF").ok();
    let cases: Vec<&Case> = CASES
        .iter()
        .filter(|case| only.as_ref().is_none_or(|only| case.name == only))
        .collect();
    let of_each = wanted.unwrap_or(FAULTS).div_ceil(cases.len() * KINDS.len());
    let scratch = tempfile::tempdir().unwrap();
    let (mut injected, mut survived) = (0, 0);
    for case in cases {
        let prepared = Folder::new();
        (case.prepare)(&prepared);
        let start = prepared.contents();
        let fresh = || {
            let folder = Folder::new();
            for (name, bytes) in &start {
                match bytes {
                    Some(bytes) => folder.write(name, bytes),
                    None => fs::create_dir_all(folder.path(name)).unwrap(),
                }
            }
            folder
        };
        let (injected_before, survived_before) = (injected, survived);
        let undisturbed = fresh();
        undisturbed.genus(case.command).success();
        let expected = contents(&undisturbed);
        for fault in &KINDS {
            let counts = counts(&fresh(), case, fault.calls, &scratch.path().join("trace"));
            let moments: Vec<(&str, usize)> = counts
                .iter()
                .flat_map(|(call, &count)| (1..=count).map(move |at| (&**call, at)))
                .collect();
            // Spread over all of them, the last included, as that is where things are renamed.
            let chosen = of_each.min(moments.len());
            for at in (0..chosen).map(|number| moments.len() - 1 - number * moments.len() / chosen) {
                let (call, number) = moments[at];
                let folder = fresh();
                let options = [
                    format!("-etrace={call}"),
                    format!("-einject={call}:{}:when={number}", fault.injected),
                    "-o".to_owned(),
                    "/dev/null".to_owned(),
                ];
                let ended = traced(&folder, case.command, &options).output().unwrap();
                let said = String::from_utf8_lossy(&ended.stderr);
                let what = format!("{}, {} at {call} {number}\n{said}", case.name, fault.name);
                assert!(!said.contains("panicked"), "{what}");
                injected += 1;
                survived += usize::from(ended.status.success());
                if ended.status.success() {
                    // Whoever says that all is well has done all.
                    assert_same(&contents(&folder), &expected, &what);
                }
                let again = folder.genus((case.again)(&folder));
                assert_eq!(again.code, Some(0), "{what}\nthen {}", again.stderr);
                assert_same(&contents(&folder), &expected, &format!("{what}then again"));
            }
        }
        println!(
            "{}: {} faults, {} without effect",
            case.name,
            injected - injected_before,
            survived - survived_before
        );
    }
    println!("{injected} faults injected, {survived} of them without effect on the result");
    // Interrupted calls are repeated; most others are the end of a run.
    assert!(
        4 * survived < 3 * injected,
        "{survived} of {injected} faults did nothing"
    );
}
