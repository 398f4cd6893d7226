//! Nothing is lost: what was asked to be saved is saved, once, whoever leaves, kills or does the same at the same time.

use std::collections::BTreeMap;
use std::fs;
use std::io::pipe;
use std::process::{Command, Stdio};

use super::calibrate::with_more;
use super::support::{Folder, animals, npy};

const GROW: &str = "assign --taxonomy result --query more.csv --grow result";

/// The files of a folder, by name; a page without the time that it took.
fn files(folder: &Folder, of: &str) -> BTreeMap<String, Option<Vec<u8>>> {
    let prefix = format!("{of}/");
    let all = folder.contents().into_iter();
    all.filter_map(|(name, bytes)| Some((name.strip_prefix(&prefix)?.to_owned(), bytes)))
        .map(|(name, bytes)| match name.as_str() {
            "report.html" => {
                let page = String::from_utf8(bytes.unwrap()).unwrap();
                let (before, after) = page.split_once("\"seconds\":").unwrap();
                let after = after.trim_start_matches(|c: char| c.is_ascii_digit() || ".e-".contains(c));
                (name, Some(format!("{before}\"seconds\":0{after}").into_bytes()))
            }
            _ => (name, bytes),
        })
        .collect()
}

/// Brings a folder back to what it was.
fn put_back(folder: &Folder, of: &str, files: &BTreeMap<String, Option<Vec<u8>>>) {
    fs::remove_dir_all(folder.path(of)).unwrap();
    for (name, bytes) in files {
        folder.write(&format!("{of}/{name}"), bytes.as_ref().unwrap());
    }
}

#[test]
fn the_same_items_again_change_nothing() {
    let folder = with_more();
    let first = folder.genus(GROW).success();
    let grown = files(&folder, "result");
    let again = folder.genus(GROW).success();
    assert!(files(&folder, "result") == grown);
    assert_eq!(again.text(), first.text());
    let count = first.rows().len();
    let words = format!("{count} items were there before");
    assert!(again.stderr.contains(&words), "{}", again.stderr);
    assert!(!first.stderr.contains("there before"), "{}", first.stderr);
    // Elsewhere it is another taxonomy, and the same one as in its place.
    folder
        .genus("assign --taxonomy result --query more.csv --grow copy")
        .success();
    let copied = files(&folder, "copy");
    for name in ["centres.safetensors", "items.safetensors", "waiting.npz"] {
        assert!(copied.get(name) == grown.get(name), "{name}");
    }
}

#[test]
fn an_item_of_other_content_is_another() {
    let folder = with_more();
    let more = folder.read("more.csv");
    let (header, lines) = more.split_once('\n').unwrap();
    let lines: Vec<&str> = lines.lines().take(10).collect();
    folder.write("few.csv", format!("{header}\n{}\n", lines.join("\n")));
    let few = GROW.replace("more.csv", "few.csv");
    folder.genus(&few).success();
    // One has another content, and one another id.
    let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    changed[3] = format!("{}9", changed[3]);
    changed[4] = changed[4].replacen("item", "thing", 1);
    folder.write("few.csv", format!("{header}\n{}\n", changed.join("\n")));
    let again = folder.genus(&few).success();
    let known = 10 - usize::from(changed[3] != lines[3]) - usize::from(changed[4] != lines[4]);
    assert!(known < 10, "{changed:?}");
    assert!(
        again.stderr.contains(&format!("{known} items were there before")),
        "{}",
        again.stderr
    );
    assert_eq!(again.rows().len(), 10);
}

#[test]
fn a_reader_who_leaves_takes_nothing_with_them() {
    let folder = with_more();
    let before = files(&folder, "result");
    folder.genus(GROW).success();
    let grown = files(&folder, "result");
    for format in ["csv", "jsonl", "parquet"] {
        put_back(&folder, "result", &before);
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let ended = folder
            .command(&format!("{GROW} --format {format} --quiet"))
            .stdout(writer)
            .output()
            .unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!((ended.status.code(), &*said), (Some(0), ""), "{format}");
        assert!(files(&folder, "result") == grown, "{format}");
    }
}

/// A closed pipe is the same for all formats, however much there is to say.
#[test]
fn readers_leave_early_from_long_outputs() {
    let folder = Folder::with_animals();
    folder
        .genus("discover --support support.csv --query pile.csv --out result")
        .success();
    let (_, pile) = animals();
    let many: Vec<_> = pile.iter().cycle().take(20_000).cloned().collect();
    folder.write("many.npy", npy(&many));
    for format in ["csv", "jsonl", "parquet"] {
        let command = format!("assign --taxonomy result --query many.npy --format {format} --quiet");
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let ended = folder.command(&command).stdout(writer).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!((ended.status.code(), &*said), (Some(0), ""), "{format}");
    }
}

#[cfg(unix)]
#[test]
fn files_are_sorted_before_rows_go_out() {
    let folder = Folder::with_animals();
    let (_, pile) = animals();
    pile.iter().for_each(|item| folder.write(&item.id, "a file"));
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let ended = folder
        .command("discover --support support.csv --query pile.csv --sort-into sorted --quiet")
        .stdout(writer)
        .output()
        .unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), &*said), (Some(0), ""));
    let links = folder.names("sorted");
    assert!(links.len() >= pile.len(), "{links:?}");
}

#[test]
fn two_that_grow_the_same_wait_for_each_other() {
    let folder = with_more();
    let before = files(&folder, "result");
    let more = folder.read("more.csv");
    let lines: Vec<&str> = more.lines().collect();
    for (name, odd) in [("odd.csv", 1), ("even.csv", 0)] {
        let own = lines[1..].iter().enumerate().filter(|(at, _)| at % 2 == odd);
        let own: Vec<&str> = own.map(|(_, line)| *line).collect();
        folder.write(name, format!("{}\n{}\n", lines[0], own.join("\n")));
    }
    let grow = |query: &str| format!("assign --taxonomy result --query {query} --grow result --quiet");
    let in_order = |order: [&str; 2]| {
        put_back(&folder, "result", &before);
        order
            .iter()
            .for_each(|query| drop(folder.genus(&grow(query)).success()));
        files(&folder, "result")
    };
    let expected = [in_order(["odd.csv", "even.csv"]), in_order(["even.csv", "odd.csv"])];
    assert!(expected[0] != expected[1]);
    put_back(&folder, "result", &before);
    let children = ["odd.csv", "even.csv"].map(|query| {
        let mut command = folder.command(&grow(query));
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for child in children {
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    assert!(expected.contains(&files(&folder, "result")));
}

#[cfg(unix)]
#[test]
fn who_holds_a_folder_is_said() {
    let folder = with_more();
    let lock = fs::File::create(folder.path("result/.genus.lock")).unwrap();
    lock.lock().unwrap();
    fs::write(folder.path("result/.genus.lock"), "process 7 (genus assign …)").unwrap();
    folder.fails(GROW, &["result", "in use by process 7 (genus assign", "wait"]);
    folder.fails(
        "discover --support support.csv --query first.csv --out result",
        &["result", "in use by process 7"],
    );
    // Whoever only reads need not wait.
    folder.genus("assign --taxonomy result --query more.csv").success();
}

/// Killed at any moment, the same command again gives what an undisturbed one does.
#[cfg(unix)]
#[test]
fn a_killed_run_can_be_repeated() {
    let folder = with_more();
    let before = files(&folder, "result");
    let start = std::time::Instant::now();
    let undisturbed = folder.genus(GROW).success();
    let takes = start.elapsed();
    let grown = files(&folder, "result");
    let moments = 12;
    for (at, signal) in (1..=moments).flat_map(|at| [(at, "-KILL"), (at, "-TERM"), (at, "-INT")]) {
        put_back(&folder, "result", &before);
        let mut child = folder
            .command(&format!("{GROW} --quiet"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The last part of a run is where it writes.
        std::thread::sleep(takes.mul_f64(0.4 + 0.6 * f64::from(at) / f64::from(moments)));
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.is_ok());
        child.wait().unwrap();
        let again = folder.genus(GROW).success();
        assert_eq!(again.text(), undisturbed.text(), "{signal} at {at}");
        assert!(files(&folder, "result") == grown, "{signal} at {at}");
    }
}

/// What is left of a run that was killed goes with the next one.
#[cfg(unix)]
#[test]
fn what_is_left_is_collected() {
    let folder = Folder::with_animals();
    folder.write("result/.assignments.csv.a1B2c3.genus.tmp", "half");
    folder.write("result/.notes.tmp", "somebody's");
    folder
        .genus("discover --support support.csv --query pile.csv --out result --no-report")
        .success();
    let names = folder.names("result");
    assert!(!names.iter().any(|name| name.contains("genus.tmp")), "{names:?}");
    assert!(names.contains(&".notes.tmp".to_owned()), "{names:?}");
}

/// A limit on the size of files is an error like a full disk, and nothing is left behind.
#[cfg(unix)]
#[test]
fn a_file_that_may_not_grow_is_an_error() {
    let folder = with_more();
    let before = folder.contents();
    let program = folder.command("").get_program().to_owned();
    let ended = Command::new("sh")
        .args(["-c", &format!("ulimit -f 2; exec \"$0\" {GROW} --quiet")])
        .arg(program)
        .current_dir(folder.path("."))
        .output()
        .unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write") && said.contains("result"), "{said}");
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), "");
    assert!(folder.contents() == before);
}

/// A table may come through a pipe, which has every byte once; what has no end is refused.
#[cfg(unix)]
#[test]
fn pipes_are_read_once_and_devices_not_at_all() {
    let folder = Folder::with_animals();
    let discover = "discover --support support.csv --method shc --query";
    let expected = folder.genus(&format!("{discover} pile.csv")).success();
    let made = Command::new("mkfifo").arg(folder.path("pipe.csv")).status().unwrap();
    assert!(made.success());
    let (from, to) = (folder.path("pile.csv"), folder.path("pipe.csv"));
    let writer = std::thread::spawn(move || fs::copy(from, to).map(drop));
    let found = folder.genus(&format!("{discover} pipe.csv")).success();
    // Copying to a pipe may fail when it comes to permissions, after all bytes are through.
    let _ = writer.join().unwrap();
    assert_eq!(found.text(), expected.text());
    fs::remove_file(folder.path("pipe.csv")).unwrap();
    folder.genus(&format!("{discover} pile.csv --out result")).success();
    for (name, command) in [
        ("zero.csv", "discover --support support.csv --query zero.csv"),
        ("zero.txt", "discover --support support.csv --query zero.txt"),
        ("zero.jsonl", "assign --taxonomy result --query zero.jsonl"),
        ("result/taxonomy.toml", "assign --taxonomy result --query pile.csv"),
    ] {
        fs::remove_file(folder.path(name)).ok();
        std::os::unix::fs::symlink("/dev/zero", folder.path(name)).unwrap();
        let outcome = folder.genus(command);
        assert_eq!(outcome.code, Some(1), "{command}\n{}", outcome.stderr);
        assert!(
            outcome.stderr.contains("it is a device"),
            "{command}\n{}",
            outcome.stderr
        );
    }
    // In a folder of results a pipe may never have a writer.
    fs::remove_file(folder.path("result/taxonomy.toml")).unwrap();
    let made = Command::new("mkfifo").arg(folder.path("result/taxonomy.toml")).status();
    assert!(made.unwrap().success());
    let outcome = folder.genus("assign --taxonomy result --query pile.csv");
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("it is a pipe"), "{}", outcome.stderr);
}

/// Small files that would become large ones are refused by a limit that is named.
#[test]
fn rows_have_a_limit() {
    let folder = Folder::with_animals();
    folder.write("commas.csv", ",".repeat(20 << 20));
    folder.fails(
        "discover --support support.csv --query commas.csv",
        &["commas.csv", "16 MiB"],
    );
    folder.write("many.csv", format!("a{}\n", ",a".repeat((1 << 20) + 1)));
    folder.fails(
        "discover --support support.csv --query many.csv",
        &["many.csv", "at most 1048576 features"],
    );
}
