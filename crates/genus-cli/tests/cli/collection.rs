//! A collection as a person meets it: made, added to, corrected, undone; and two at once.

use std::process::Command;

use serde_json::Value;

use super::support::{Folder, Outcome};

/// A collection with the examples and the pile of the animals.
fn animals() -> Folder {
    let folder = Folder::with_animals();
    folder.genus("init zoo --support support.csv --author ann").success();
    folder.genus("add zoo pile.csv --author ann").success();
    folder
}

/// What a command says with `--json`.
#[track_caller]
fn json(folder: &Folder, arguments: &str) -> Value {
    let outcome = folder.genus(&format!("{arguments} --json")).success();
    serde_json::from_str(outcome.text()).unwrap_or_else(|e| panic!("{arguments}: {e}\n{}", outcome.text()))
}

/// A command whose arguments have blanks.
fn run(folder: &Folder, arguments: &[&str]) -> Outcome {
    let mut command: Command = folder.command("");
    command.args(arguments);
    folder.outcome(command, &arguments.join(" "))
}

fn names(folder: &Folder) -> Vec<String> {
    let groups = json(folder, "groups zoo");
    let groups = groups.as_array().unwrap().iter();
    groups.map(|group| group["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn items_come_in_and_are_sorted() {
    let folder = animals();
    let status = json(&folder, "status zoo");
    assert_eq!(status["items"], 9 + 20);
    assert_eq!(status["named_groups"], 3);
    assert_eq!(status["new_groups"], 2, "{status:#}");
    assert_eq!(status["confirmed"], 9);
    assert_eq!(names(&folder), ["ant", "bee", "cow", "new-1", "new-2"]);
    let owls = json(&folder, "show zoo new-1");
    assert_eq!(owls["group"]["items"], 4);
    let text = folder.genus("groups zoo").success();
    assert!(
        text.text().contains("ant") && text.text().contains("3 confirmed"),
        "{}",
        text.text()
    );
}

#[test]
fn the_same_again_adds_nothing() {
    let folder = animals();
    let before = json(&folder, "status zoo");
    let added = json(&folder, "add zoo pile.csv");
    assert_eq!((&added["new"], &added["known"]), (&0.into(), &20.into()));
    assert_eq!(json(&folder, "status zoo"), before);
    folder.fails("init zoo", &["is already a collection", "genus add"]);
}

#[test]
fn names_merges_and_moves_are_done_undone_and_redone() {
    let folder = animals();
    run(&folder, &["name", "zoo", "new-1", "Herring gull"]).success();
    assert_eq!(names(&folder)[3], "Herring gull");
    let taken = run(&folder, &["name", "zoo", "new-2", "Herring gull"]);
    assert_eq!(taken.code, Some(1));
    assert!(taken.stderr.contains("--merge"), "{}", taken.stderr);
    run(&folder, &["name", "zoo", "new-2", "Herring gull", "--merge"]).success();
    let gulls = json(&folder, "groups zoo")[0].clone();
    assert_eq!(
        (&gulls["name"], &gulls["items"]),
        (&"Herring gull".into(), &8.into()),
        "{gulls:#}"
    );
    // What was merged is found by its old name.
    let shown = json(&folder, "show zoo new-2");
    assert_eq!(shown["group"]["name"], "Herring gull");
    let item = shown["items"][0]["name"].as_str().unwrap().to_owned();
    run(&folder, &["move", "zoo", &item, "--to", "ant"]).success();
    assert_eq!(json(&folder, &format!("show zoo {item}"))["group_name"], "ant");
    for _ in 0..3 {
        folder.genus("undo zoo").success();
    }
    assert_eq!(names(&folder), ["ant", "bee", "cow", "new-1", "new-2"]);
    for _ in 0..3 {
        folder.genus("redo zoo").success();
    }
    assert_eq!(json(&folder, &format!("show zoo {item}"))["group_name"], "ant");
    folder.fails("redo zoo", &["nothing to redo"]);
    let log = json(&folder, "log zoo");
    assert_eq!(log[0]["kind"], "redo");
    assert_eq!(log.as_array().unwrap().last().unwrap()["author"], "ann");
    let checked = folder.genus("check zoo").success();
    assert!(checked.text().contains("In order"), "{}", checked.text());
}

#[test]
fn what_was_said_holds_when_everything_is_sorted_anew() {
    let folder = animals();
    let owl = json(&folder, "show zoo new-1")["items"][0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let yak = json(&folder, "show zoo new-2")["items"][0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    folder.genus(&format!("reject zoo {owl}")).success();
    folder.genus(&format!("noise zoo {yak}")).success();
    folder.genus("split zoo cow --into 2").success();
    folder.genus("confirm zoo --group new-2").success();
    let refreshed = json(&folder, "refresh zoo");
    assert!(refreshed["fixed"].as_u64().unwrap() >= 9 + 7, "{refreshed:#}");
    assert_ne!(json(&folder, &format!("show zoo {owl}"))["group_name"], "new-1");
    assert_eq!(json(&folder, &format!("show zoo {yak}"))["state"], "noise");
    let cows = json(&folder, "show zoo cow")["group"]["items"].as_u64().unwrap();
    let calves = json(&folder, "show zoo new-3")["group"]["items"].as_u64().unwrap();
    assert_eq!(cows + calves, 7);
    assert_eq!(json(&folder, "show zoo new-2")["group"]["confirmed"], 3);
    folder.genus("check zoo").success();
}

#[test]
fn who_is_wrong_is_told_the_way_out() {
    let folder = animals();
    folder.fails("status nowhere", &["is no collection", "genus init"]);
    folder.fails("show zoo new-11", &["no group \"new-11\"", "did you mean \"new-1\"?"]);
    folder.fails("move zoo nobody --to ant", &["no item \"nobody\""]);
    folder.fails("merge zoo ant bee", &["both have names", "--into"]);
    folder.fails("merge zoo ant", &["it takes two groups"]);
    folder.fails("undo nowhere", &["is no collection"]);
    folder.write("broken.csv", "id,f0\na,1\n");
    folder.fails("add zoo broken.csv", &["1 features", "has 8"]);
    folder.fails("init fresh --support nowhere/", &["nowhere"]);
    let nameless = run(&folder, &["name", "zoo", "new-1", " \u{a0}\n"]);
    assert!(
        nameless.stderr.contains("needs at least one letter"),
        "{}",
        nameless.stderr
    );
}

#[test]
fn a_collection_of_a_later_release_is_left_alone() {
    let folder = animals();
    // The version is a number in the header of the file.
    let path = folder.path("zoo/collection.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[60..64].copy_from_slice(&99u32.to_be_bytes());
    std::fs::write(&path, &bytes).unwrap();
    for command in ["status zoo", "name zoo new-1 x", "undo zoo", "check zoo"] {
        let outcome = folder.genus(command);
        assert_eq!(outcome.code, Some(1));
        assert!(outcome.stderr.contains("newer release"), "{}", outcome.stderr);
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn who_holds_a_collection_is_said() {
    let folder = animals();
    // Nobody leaves a lock behind but who is killed, and that one is given up by the system.
    let lock = genus_files::FolderLock::take(folder.path("zoo")).unwrap();
    let outcome = folder.genus("name zoo new-1 x");
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.stderr.contains(&format!("process {}", std::process::id())),
        "{}",
        outcome.stderr
    );
    // Readers do not wait.
    folder.genus("groups zoo").success();
    drop(lock);
    folder.genus("name zoo new-1 x").success();
}

#[test]
fn corrections_come_back_from_a_spreadsheet() {
    let folder = animals();
    folder.genus("export zoo -o out").success();
    let table = folder.read("out/assignments.csv");
    assert_eq!(table.lines().count(), 1 + 29);
    assert!(folder.read("out/groups.csv").contains("new-1"));
    // What nobody touched says nothing.
    let untouched = json(&folder, "apply zoo out/assignments.csv --dry-run");
    assert_eq!(
        untouched["corrections"]["actions"],
        Value::Array(Vec::new()),
        "{untouched:#}"
    );
    // One group gets a name, one item moves, one goes into a new group, one out; and semicolons and a mark, as they come.
    let mut rows: Vec<Vec<String>> = table
        .lines()
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect();
    let mut others = rows
        .iter_mut()
        .skip(1)
        .filter(|row| row[1] != "new-1" && row[2] != "unsure");
    let moved = others.next().unwrap();
    let (moved_id, to) = (moved[0].clone(), if moved[1] == "ant" { "bee" } else { "ant" });
    moved[1] = to.to_owned();
    others.next().unwrap()[1] = "zebra".to_owned();
    others.next().unwrap()[1] = String::new();
    others.next().unwrap()[1] = "noise".to_owned();
    rows.iter_mut()
        .filter(|row| row[1] == "new-1")
        .for_each(|row| row[1] = "owl".to_owned());
    let text: Vec<String> = rows.iter().map(|row| row.join(";")).collect();
    folder.write("edited.csv", format!("\u{feff}{}\r\n", text.join("\r\n")));
    let before = json(&folder, "groups zoo");
    let preview = folder.genus("apply zoo edited.csv --dry-run").success();
    assert!(
        preview.text().contains("new-1 would be called owl"),
        "{}",
        preview.text()
    );
    assert!(preview.text().contains("new group zebra"), "{}", preview.text());
    folder.genus("apply zoo edited.csv").success();
    // The same once more says nothing new, but for who has no group any longer.
    let again = json(&folder, "apply zoo edited.csv --dry-run");
    assert_eq!(again["corrections"]["actions"], Value::Array(Vec::new()), "{again:#}");
    let names = names(&folder);
    assert!(
        names.contains(&"owl".to_owned()) && names.contains(&"zebra".to_owned()),
        "{names:?}"
    );
    let shown = run(&folder, &["show", "zoo", &moved_id, "--json"]).success();
    let moved: Value = serde_json::from_str(shown.text()).unwrap();
    assert_eq!(
        (&moved["group_name"], &moved["confirmed"]),
        (&to.into(), &true.into()),
        "{moved:#}"
    );
    assert_eq!(json(&folder, "status zoo")["noise"], 1);
    // All of it is one thing to undo.
    folder.genus("undo zoo").success();
    assert_eq!(json(&folder, "groups zoo"), before);
    folder.write("strange.csv", "id,category\nnobody,x\n");
    folder.fails("apply zoo strange.csv", &["none of its items", "nobody"]);
    folder.write("wrong.csv", "a,b\n1,2\n");
    folder.fails("apply zoo wrong.csv", &["no column id"]);
}

#[test]
fn a_result_is_taken_over_and_an_export_is_a_taxonomy() {
    let folder = Folder::with_animals();
    folder
        .genus("discover --support support.csv --query pile.csv --out result")
        .success();
    folder.genus("init zoo --from result").success();
    assert_eq!(json(&folder, "status zoo")["items"], 0);
    let added = json(&folder, "add zoo pile.csv");
    assert_eq!(added["new"], 20);
    let groups = names(&folder);
    for name in ["ant", "bee", "cow", "new-1", "new-2"] {
        assert!(groups.contains(&name.to_owned()), "{groups:?}");
    }
    folder.genus("export zoo -o out").success();
    let rows = folder.genus("assign --taxonomy out --query pile.csv").rows();
    assert_eq!(rows.len(), 20);
}

#[test]
fn what_can_be_read_of_a_damaged_collection_is_saved() {
    let folder = animals();
    let path = folder.path("zoo/collection.db");
    let bytes = std::fs::read(&path).unwrap();
    // A page in the middle.
    let pages = bytes.len() / 16_384;
    let found = (3..pages).find_map(|page| {
        let mut damaged = bytes.clone();
        damaged[page * 16_384..][..16_384].fill(0x5a);
        std::fs::write(&path, &damaged).unwrap();
        let checked = folder.genus("check zoo");
        let saved = folder.genus("export zoo -o saved --salvage --json");
        let counts: Value = serde_json::from_str(saved.text()).ok()?;
        (checked.code == Some(1) && counts["damaged"].as_u64()? > 0).then_some((checked, counts))
    });
    let (checked, counts) = found.expect("a page whose loss is noticed");
    assert!(checked.stderr.contains("--salvage"), "{}", checked.stderr);
    assert!(folder.path("saved/items.csv").is_file());
    assert!(counts["items"].as_u64().unwrap() > 0, "{counts:#}");
}

#[test]
fn compacting_keeps_everything_that_is_there() {
    let folder = animals();
    let before = (json(&folder, "groups zoo"), json(&folder, "log zoo"));
    folder.genus("compact zoo").success();
    assert_eq!((json(&folder, "groups zoo"), json(&folder, "log zoo")), before);
    folder.genus("check zoo").success();
}

#[test]
fn questions_are_asked_and_a_page_shows_it_all() {
    let folder = animals();
    let questions = json(&folder, "ask zoo -n 3");
    assert_eq!(questions[0]["ask"], "name");
    assert_eq!(questions[0]["group"]["name"], "new-1");
    assert_eq!(questions[0]["typical"].as_array().unwrap().len(), 3);
    let text = folder.genus("ask zoo").success();
    assert!(text.text().contains("What is new-1?"), "{}", text.text());
    run(&folder, &["name", "zoo", "new-1", "snowy </script> owl"]).success();
    folder.genus("report zoo").success();
    let page = folder.read("zoo/report.html");
    assert!(page.contains("snowy \\u003c/script\\u003e owl") && !page.contains("snowy </script>"));
    assert!(page.contains("\"history\":[["), "the page has no history");
}

/// Somebody else may have made the folder: nothing is read or written through a link in it.
#[cfg(unix)]
#[test]
fn nothing_leads_out_of_the_folder() {
    use std::fs;
    use std::os::unix::fs::symlink;
    let folder = animals();
    let victim = folder.path("victim");
    fs::create_dir(folder.path("lent")).unwrap();
    fs::copy(folder.path("zoo/collection.db"), &victim).unwrap();
    symlink(&victim, folder.path("lent/collection.db")).unwrap();
    let before = fs::read(&victim).unwrap();
    for command in [
        "status lent",
        "init lent",
        "add lent pile.csv",
        "undo lent",
        "compact lent",
        "token create lent --name Anna",
        "serve lent",
    ] {
        folder.fails(
            command,
            &["lent/collection.db", "it is a link, which is not followed here"],
        );
    }
    assert!(fs::read(&victim).unwrap() == before);
    // Results replace links.
    fs::write(&victim, "kept").unwrap();
    let files = [
        "assignments.csv",
        "groups.csv",
        "taxonomy.toml",
        "features.parquet",
        "report.html",
    ];
    fs::create_dir(folder.path("out")).unwrap();
    for file in files {
        symlink(&victim, folder.path("out").join(file)).unwrap();
    }
    folder.genus("export zoo -o out --with-features").success();
    folder.genus("report zoo -o out").success();
    for file in files {
        let found = fs::symlink_metadata(folder.path("out").join(file)).unwrap();
        assert!(found.is_file(), "{file} is still a link");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
}

/// Names of items come from tables and from whoever asks the service.
#[test]
fn names_of_items_lead_nowhere_else() {
    let folder = Folder::with_animals();
    let secret = tempfile::tempdir().unwrap();
    let secret = secret.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    folder.write(
        "evil.csv",
        format!("id,label,f0,f1,f2\n{},cat,1,2,3\n", secret.display()),
    );
    folder.genus("init zoo --support evil.csv").success();
    let command = "export zoo -o out --sort-into sorted --link copy";
    folder.fails(command, &["secret", "not below the current folder", "--allow-outside"]);
    assert!(!folder.path("sorted").exists() && !folder.path("out/assignments.csv").exists());
    folder.genus("export zoo -o out").success();
    folder.genus(&format!("{command} --allow-outside")).success();
    let copied = folder
        .contents()
        .into_iter()
        .filter(|(name, _)| name.starts_with("sorted/"));
    assert!(copied.into_iter().any(|(_, bytes)| bytes.as_deref() == Some(b"secret")));
}

/// Corrections are read once and up to a limit, wherever they come from.
#[cfg(unix)]
#[test]
fn corrections_may_come_through_a_pipe() {
    let folder = animals();
    folder.fails("apply zoo /dev/zero", &["/dev/zero", "it is a device, not a file"]);
    // Names as tables have them: an item of the same name in the examples is told apart.
    folder.genus("export zoo -o out").success();
    let table = folder.read("out/assignments.csv");
    let mut ids = table
        .lines()
        .filter_map(|line| line.split_once(",ant,"))
        .map(|(id, _)| id);
    let item = ids.next().unwrap().to_owned();
    let bees = |folder: &Folder| json(folder, "show zoo bee")["group"]["items"].as_u64().unwrap();
    let before = bees(&folder);
    let made = Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap();
    assert!(made.success());
    for (options, moved) in [(" --dry-run", 0), ("", 1)] {
        let (pipe, rows) = (folder.path("pipe"), format!("id,category\n{item},bee\n"));
        let writer = std::thread::spawn(move || std::fs::write(pipe, rows).unwrap());
        folder.genus(&format!("apply zoo pipe{options}")).success();
        writer.join().unwrap();
        assert_eq!(bees(&folder), before + moved);
    }
}

/// Making a collection goes on where it was interrupted, and never touches one in which something happened.
#[test]
fn an_empty_collection_may_be_made_again() {
    let folder = Folder::with_animals();
    folder.genus("init zoo").success();
    folder.genus("init zoo").success();
    // Wrong examples are no reason to remove what was there.
    let outcome = folder.genus("init zoo --support nothing.csv");
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("nothing.csv"), "{}", outcome.stderr);
    assert_eq!(json(&folder, "status zoo")["items"], 0);
    folder.genus("init zoo --support support.csv").success();
    assert_eq!(json(&folder, "status zoo")["items"], 9);
    folder.fails(
        "init zoo --support support.csv",
        &["zoo is already a collection", "`genus add`"],
    );
    // What was begun and has no tables yet, and what is something else.
    for (name, content, code) in [("begun", "", Some(0)), ("other", "something else", Some(1))] {
        folder.write(&format!("{name}/collection.db"), content);
        let outcome = folder.genus(&format!("init {name} --support support.csv"));
        assert_eq!(outcome.code, code, "{}", outcome.stderr);
    }
    assert_eq!(folder.read("other/collection.db"), "something else");
    folder.genus("init keys").success();
    folder.genus("token create keys --name Anna").success();
    folder.fails("init keys", &["keys is already a collection"]);
}

#[test]
fn numbers_have_a_range() {
    let folder = animals();
    for command in [
        "show zoo ant -n 18446744073709551615",
        "groups zoo -n 18446744073709551615",
        "log zoo -n 4294967296",
        "ask zoo -n 4294967296",
        "split zoo ant --into 4294967296",
        "serve zoo --rate 4294967295",
        "serve zoo --rate 0",
    ] {
        let outcome = folder.genus(command);
        assert_eq!(outcome.code, Some(2), "{command}: {}", outcome.stderr);
    }
}

#[test]
fn photographs_that_moved_are_found_again() {
    let folder = super::images::folder();
    let encoder = super::images::ENCODER;
    folder.genus(&format!("init c {encoder}")).success();
    folder.genus(&format!("add c photos {encoder}")).success();
    let before = json(&folder, "groups c");
    std::fs::rename(folder.path("photos"), folder.path("moved")).unwrap();
    let checked = folder.genus("check c").success();
    assert!(checked.text().contains("not where"), "{}", checked.text());
    let count = json(&folder, "status c")["items"].as_u64().unwrap();
    assert_eq!(json(&folder, "check c")["missing"], count);
    let added = json(&folder, &format!("add c moved {encoder}"));
    assert_eq!((&added["new"], &added["known"]), (&0.into(), &count.into()));
    assert_eq!(json(&folder, "check c")["missing"], 0);
    assert_eq!(json(&folder, "groups c"), before);
    // One that has changed since is another item, and nothing is said of the one that it was.
    folder.write("moved/red-0.bmp", super::images::bmp([1, 2, 3], 77));
    let added = json(&folder, &format!("add c moved {encoder}"));
    assert_eq!((&added["new"], &added["known"]), (&1.into(), &(count - 1).into()));
    assert_eq!(json(&folder, "status c")["items"], count + 1);
}

#[test]
fn parents_are_told_wherever_items_and_groups_are() {
    let folder = Folder::new();
    // Pairs of groups that lie near each other, far from the others.
    let mut text = String::from("id,f0,f1,f2,f3,f4,f5,f6,f7,f8,f9\n");
    for at in 0..160 {
        let (pair, side, noise) = (at % 4, at / 4 % 2, ((at * 37) % 97) as f32 / 970.0);
        let cells = (0..10).map(|column| match column {
            _ if column == pair => 1.0,
            _ if column == 4 + pair => 0.6 * side as f32 + 0.1 * noise,
            8 => noise,
            _ => 0.02 * ((at * (column + 3)) % 11) as f32 / 11.0,
        });
        text += &format!(
            "{at},{}\n",
            cells.map(|cell| cell.to_string()).collect::<Vec<_>>().join(",")
        );
    }
    folder.write("pile.csv", text);
    folder.genus("init c").success();
    folder.genus("add c pile.csv").success();
    let groups = json(&folder, "groups c");
    let under = groups
        .as_array()
        .unwrap()
        .iter()
        .find(|group| !group["parent"].is_null());
    let group = under.unwrap_or_else(|| panic!("no group has a parent: {groups:#}"));
    let parent = group["parent_name"].as_str().unwrap();
    run(&folder, &["name", "c", parent, "gulls"]).success();
    let name = group["name"].as_str().unwrap();
    let shown = json(&folder, &format!("show c {name}"));
    assert_eq!(shown["group"]["parent_name"], "gulls");
    assert_eq!(shown["items"][0]["parent_name"], "gulls");
    for format in ["csv", "jsonl", "parquet"] {
        folder
            .genus(&format!("export c -o {format} --format {format}"))
            .success();
    }
    let table = folder.read("csv/assignments.csv");
    assert!(
        table.starts_with("id,category,kind,score,margin,probability,scene,parent\n"),
        "{table}"
    );
    let row = |line: &&str| line.split(',').nth(1) == Some(name);
    assert!(
        table.lines().filter(row).all(|line| line.ends_with(",gulls")),
        "{table}"
    );
    assert!(folder.read("jsonl/assignments.jsonl").contains("\"parent\":\"gulls\"}"));
    // The table comes back as it is.
    let untouched = json(&folder, "apply c csv/assignments.csv --dry-run");
    assert_eq!(
        untouched["corrections"]["actions"],
        Value::Array(Vec::new()),
        "{untouched:#}"
    );
    folder.genus("report c").success();
    assert!(folder.read("c/report.html").contains("\"gulls\""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_changes_nothing() {
    let folder = animals();
    let before = (json(&folder, "groups zoo"), json(&folder, "log zoo"));
    let rows: String = (0..4000)
        .map(|at| format!("m{at},1,{},0.2,0,0,0,0,0\n", at as f32 / 4000.0))
        .collect();
    folder.write("more.csv", format!("id,f0,f1,f2,f3,f4,f5,f6,f7\n{rows}"));
    let mut refused = 0;
    // No file may grow beyond this, which is what a full disk looks like from inside, at several places of the work.
    for blocks in [1, 40, 100, 300, 600] {
        for command in ["add zoo more.csv", "refresh zoo", "name zoo new-1 owl"] {
            let script = format!(
                "trap '' XFSZ; ulimit -f {blocks}; exec {} {command}",
                env!("CARGO_BIN_EXE_genus")
            );
            let mut limited = Command::new("sh");
            limited.args(["-c", &script]).current_dir(folder.path(""));
            limited.env("GENUS_CACHE", folder.path("cache"));
            let outcome = folder.outcome(limited, command);
            if outcome.code == Some(0) {
                folder.genus("undo zoo").success();
                folder.genus("check zoo").success();
                continue;
            }
            refused += 1;
            assert_eq!(outcome.code, Some(1), "{command} with {blocks}: {}", outcome.stderr);
            assert!(outcome.stderr.contains("error: "), "{}", outcome.stderr);
            folder.genus("check zoo").success();
        }
    }
    assert!(refused > 2, "nothing was ever full");
    let groups = json(&folder, "groups zoo");
    assert_eq!(groups, before.0);
    let log = json(&folder, "log zoo -n 1000");
    let (kept, own) = (log.as_array().unwrap(), before.1.as_array().unwrap());
    assert_eq!(kept[kept.len() - own.len()..], own[..]);
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_medium_that_cannot_be_written_it_is_read() {
    let folder = animals();
    let before = json(&folder, "groups zoo");
    let genus = env!("CARGO_BIN_EXE_genus");
    // A mount of its own that can only be read, which nobody else sees.
    let script =
        |command: &str| format!("mount --bind zoo zoo && mount -o remount,ro,bind zoo && exec {genus} {command}");
    let run = |command: &str| {
        let mut within = Command::new("unshare");
        within.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script(command)]);
        within.current_dir(folder.path(""));
        folder.outcome(within, command)
    };
    let read = run("groups zoo --json");
    if read.code != Some(0) && read.stderr.contains("unshare") {
        // This system lets nobody mount; the same without permissions, which do not bind root.
        return;
    }
    assert_eq!(read.code, Some(0), "{}", read.stderr);
    assert_eq!(serde_json::from_str::<Value>(read.text()).unwrap(), before);
    for command in [
        "status zoo",
        "show zoo new-1",
        "log zoo",
        "ask zoo",
        "check zoo",
        "export zoo -o elsewhere",
    ] {
        let outcome = run(command);
        assert_eq!(outcome.code, Some(0), "{command}: {}", outcome.stderr);
    }
    for command in [
        "name zoo new-1 owl",
        "refresh zoo",
        "undo zoo",
        "add zoo pile.csv",
        "compact zoo",
    ] {
        let outcome = run(command);
        assert_eq!(outcome.code, Some(1), "{command}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains("it is read-only"),
            "{command}: {}",
            outcome.stderr
        );
    }
    assert_eq!(json(&folder, "groups zoo"), before);
}
