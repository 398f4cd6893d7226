//! What the tests share: running the program, making features, comparing what is left on the disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder that the program runs in and that goes with the test.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
    /// Where the program keeps what it remembers; beside the folder, whose content tests compare.
    caches: tempfile::TempDir,
}

/// What a run of the program gave.
pub(crate) struct Outcome {
    /// The command line.
    pub(crate) line: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            caches: tempfile::tempdir().unwrap(),
        }
    }

    /// A folder with the files `support.csv` and `pile.csv` of the animals.
    pub(crate) fn with_animals() -> Self {
        let folder = Self::new();
        let (support, pile) = animals();
        folder.write("support.csv", csv(&support));
        folder.write("pile.csv", csv(&unlabelled(&pile)));
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The program with arguments that are separated by spaces, its surroundings the same everywhere.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_genus"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            // The width of help comes from whatever terminal there is.
            .stdin(Stdio::null())
            .env("GENUS_CACHE", self.caches.path().join("genus"))
            // Tests never ask the network.
            .env("HF_HOME", self.caches.path().join("hub"))
            .env("HF_HUB_OFFLINE", "1")
            .env_remove("HF_HUB_CACHE")
            .env_remove("HF_ENDPOINT")
            .env_remove("COLUMNS")
            .env_remove("LINES")
            .env_remove("CLICOLOR")
            .env_remove("CLICOLOR_FORCE")
            .env_remove("NO_COLOR")
            .env_remove("RAYON_NUM_THREADS")
            .env_remove("GENUS_ISA")
            .env_remove("RUST_BACKTRACE");
        command
    }

    /// Runs the program.
    pub(crate) fn genus(&self, arguments: &str) -> Outcome {
        self.outcome(self.command(arguments), arguments)
    }

    /// Runs the program with GENUS_ISA.
    pub(crate) fn genus_on(&self, isa: &str, arguments: &str) -> Outcome {
        let mut command = self.command(arguments);
        command.env("GENUS_ISA", isa);
        self.outcome(command, arguments)
    }

    pub(crate) fn outcome(&self, mut command: Command, arguments: &str) -> Outcome {
        let output = command.output().unwrap();
        let outcome = Outcome {
            line: format!("genus {arguments}").trim_end().to_owned(),
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        assert!(
            !outcome.stderr.contains("panicked"),
            "{}\n{}",
            outcome.line,
            outcome.stderr
        );
        outcome
    }

    /// Every file below the folder with its content; folders have none.
    pub(crate) fn contents(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(self.folder.path()).unwrap();
                let name = name.to_str().unwrap().to_owned();
                if path.is_dir() {
                    found.insert(name, None);
                    folders.push(path);
                } else {
                    found.insert(name, Some(fs::read(path).unwrap()));
                }
            }
        }
        found
    }

    /// The names of all files below a folder.
    pub(crate) fn names(&self, below: &str) -> Vec<String> {
        let prefix = format!("{below}/");
        let contents = self.contents();
        contents
            .keys()
            .filter_map(|name| name.strip_prefix(&prefix).map(str::to_owned))
            .collect()
    }

    /// Runs a command that must fail with code 1, print nothing to standard output, mention all the words, and leave
    /// the disk as it was.
    #[track_caller]
    pub(crate) fn fails(&self, arguments: &str, mentions: &[&str]) -> String {
        let before = self.contents();
        let outcome = self.genus(arguments);
        let Outcome { line, code, stderr, .. } = &outcome;
        assert_eq!(*code, Some(1), "{line}\n{stderr}{}", outcome.text());
        assert_eq!(outcome.text(), "", "{line} printed results and failed\n{stderr}");
        // Something may be said before, when the work has begun.
        assert!(
            stderr.starts_with("error: ") || stderr.contains("\nerror: "),
            "{line}\n{stderr}"
        );
        for word in mentions {
            assert!(stderr.contains(word), "{line}\ndoes not mention {word:?}:\n{stderr}");
        }
        assert!(
            self.contents() == before,
            "{line} failed and left something else on the disk:\n{:?}\nbefore:\n{:?}",
            self.contents().keys(),
            before.keys()
        );
        stderr.clone()
    }

    /// The same for a discovery, which must also leave no trace of a new folder and not touch an older result.
    #[track_caller]
    pub(crate) fn discover_fails(&self, arguments: &str, mentions: &[&str]) -> String {
        let message = self.fails(&format!("discover {arguments}"), mentions);
        self.fails(&format!("discover {arguments} --out fresh"), mentions);
        self.write("older/assignments.csv", "an older result\n");
        self.write("older/taxonomy.toml", "an older taxonomy\n");
        self.write("older/centres.safetensors", "older centres\n");
        self.fails(&format!("discover {arguments} --out older"), mentions);
        message
    }
}

impl Outcome {
    /// The standard output.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// The outcome of a run that must have succeeded.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        assert_eq!(self.code, Some(0), "{}\n{}", self.line, self.stderr);
        self
    }

    /// The outcome of a run that must have succeeded but for files that it skipped.
    #[track_caller]
    pub(crate) fn skipped(self) -> Self {
        assert_eq!(self.code, Some(3), "{}\n{}", self.line, self.stderr);
        self
    }

    /// The rows of the CSV on standard output.
    #[track_caller]
    pub(crate) fn rows(&self) -> Vec<Row> {
        assert_eq!(self.code, Some(0), "{}\n{}", self.line, self.stderr);
        parse_csv(self.text())
    }

    /// The whole run as one text: the command, what it printed where, and how it ended.
    pub(crate) fn transcript(&self) -> String {
        let mut text = format!("$ {}\n", self.line);
        for (name, content) in [("stdout", self.text()), ("stderr", &self.stderr)] {
            if !content.is_empty() {
                text.push_str(&format!("──── {name}\n{}\n", content.trim_end_matches('\n')));
            }
        }
        text.push_str(&format!("──── exit code {}\n", self.code.unwrap_or(-1)));
        text
    }
}

/// One assignment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) category: String,
    pub(crate) kind: String,
    pub(crate) score: String,
    pub(crate) margin: String,
    /// Empty where the method says nothing.
    pub(crate) probability: String,
    /// Empty where scenes were not looked for.
    pub(crate) scene: String,
}

impl Row {
    pub(crate) fn score(&self) -> f64 {
        self.score.parse().unwrap()
    }

    pub(crate) fn margin(&self) -> f64 {
        self.margin.parse().unwrap()
    }

    pub(crate) fn probability(&self) -> Option<f64> {
        (!self.probability.is_empty()).then(|| self.probability.parse().unwrap())
    }
}

/// Reads assignments as RFC 4180 says, independently of the writer.
pub(crate) fn parse_csv(text: &str) -> Vec<Row> {
    let (mut records, mut record, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                record.push(std::mem::take(&mut cell));
                records.push(std::mem::take(&mut record));
            }
            other => cell.push(other),
        }
    }
    assert!(
        !quoted && cell.is_empty() && record.is_empty(),
        "the last line has no end"
    );
    let header = ["id", "category", "kind", "score", "margin", "probability", "scene"];
    assert_eq!(records.remove(0), header);
    let rows = records.into_iter().map(|record| {
        let [id, category, kind, score, margin, probability, scene] = record.try_into().unwrap();
        Row {
            id,
            category,
            kind,
            score,
            margin,
            probability,
            scene,
        }
    });
    rows.collect()
}

/// One item of a feature file.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) row: Vec<f32>,
}

/// Numbers between -1 and 1 in a fixed order: SplitMix64.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

/// Items around the named directions, a class after the other in turn.
fn around(directions: &[(&str, Vec<f32>)], each: usize, spread: f32, seed: u64) -> Vec<Item> {
    let mut noise = Noise(seed);
    let mut items = Vec::new();
    for number in 0..each {
        for (class, direction) in directions {
            items.push(Item {
                id: format!("{class}-{number}"),
                label: (*class).to_owned(),
                // Three decimals, so that every format holds the same numbers.
                row: direction
                    .iter()
                    .map(|v| ((v + spread * noise.next()) * 1000.0).round() / 1000.0)
                    .collect(),
            });
        }
    }
    items
}

/// Three examples of each of three known animals, and a pile of four of each of five. The known ones have something in
/// common, the new ones do not, so that every method that looks for new ones can find them.
pub(crate) fn animals() -> (Vec<Item>, Vec<Item>) {
    let direction = |at: usize, shared: f32| -> Vec<f32> {
        (0..8)
            .map(|column| match column {
                7 => shared,
                _ if column == at => 1.0,
                _ => 0.0,
            })
            .collect()
    };
    let known = [("ant", 0), ("bee", 1), ("cow", 2)].map(|(class, at)| (class, direction(at, 0.7)));
    let new = [("owl", 3), ("yak", 4)].map(|(class, at)| (class, direction(at, 0.0)));
    let support = around(&known, 3, 0.1, 1);
    let pile = around(&[known.as_slice(), new.as_slice()].concat(), 4, 0.1, 2);
    (support, pile)
}

/// Three examples of each of five classes, and a pile of bursts of these and of five more: three frames of everything, one after
/// the other. Classes as clear as bursts would be taken for scenes, so they are not.
pub(crate) fn bursts() -> (Vec<Item>, Vec<Item>) {
    let mut noise = Noise(6);
    let (support, pile): (Vec<Item>, Vec<Item>) = spread_out(10, 8, 0.7).into_iter().partition(|item| {
        let (class, number) = item.id.rsplit_once('-').unwrap();
        class < "class 05" && number.parse::<usize>().unwrap() < 3
    });
    let mut frame = |item: &Item, number: usize| Item {
        id: format!("{}, frame {number}", item.id),
        label: String::new(),
        row: item
            .row
            .iter()
            .map(|v| v + (3.0 * noise.next()).round() / 1000.0)
            .collect(),
    };
    let frames = pile.iter().flat_map(|item| [1, 2, 3].map(|number| frame(item, number)));
    let frames = frames.collect();
    (support, frames)
}

/// Labelled features for the bench: some classes with some items each, well apart.
pub(crate) fn labelled(classes: usize, each: usize) -> Vec<Item> {
    spread_out(classes, each, 0.25)
}

/// The same with items that lie more or less far from each other.
fn spread_out(classes: usize, each: usize, spread: f32) -> Vec<Item> {
    let mut noise = Noise(3);
    let names: Vec<String> = (0..classes).map(|class| format!("class {class:02}")).collect();
    let directions: Vec<(&str, Vec<f32>)> = names
        .iter()
        .map(|name| (name.as_str(), (0..16).map(|_| noise.next() + 0.3).collect()))
        .collect();
    around(&directions, each, spread, 4)
}

/// The same items without their labels.
pub(crate) fn unlabelled(items: &[Item]) -> Vec<Item> {
    let bare = |item: &Item| Item {
        label: String::new(),
        ..item.clone()
    };
    items.iter().map(bare).collect()
}

fn quoted(cell: &str) -> String {
    format!("\"{}\"", cell.replace('"', "\"\""))
}

/// A CSV file of the items, with their ids and labels.
pub(crate) fn csv(items: &[Item]) -> String {
    let columns: Vec<String> = (0..items[0].row.len()).map(|column| format!("f{column}")).collect();
    let mut text = format!("id,label,{}\n", columns.join(","));
    for item in items {
        let row: Vec<String> = item.row.iter().map(f32::to_string).collect();
        text.push_str(&format!(
            "{},{},{}\n",
            quoted(&item.id),
            quoted(&item.label),
            row.join(",")
        ));
    }
    text
}

/// A JSONL file of the items; an empty label is left out.
pub(crate) fn jsonl(items: &[Item]) -> String {
    let line = |item: &Item| {
        let mut object = serde_json::json!({"id": item.id, "embedding": item.row});
        if !item.label.is_empty() {
            object["label"] = item.label.clone().into();
        }
        format!("{object}\n")
    };
    items.iter().map(line).collect()
}

/// A `.npy` file of the items, which has neither ids nor labels.
pub(crate) fn npy(items: &[Item]) -> Vec<u8> {
    let shape = format!("({}, {})", items.len(), items[0].row.len());
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(items.iter().flat_map(|item| &item.row).flat_map(|v| v.to_le_bytes()));
    bytes
}

/// A file that NumPy, PyArrow or safetensors wrote: five rows of three features, some of them labelled.
pub(crate) fn golden(name: &str) -> Vec<u8> {
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../genus-data/tests/goldens");
    fs::read(goldens.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Two known classes of the width of the golden files.
pub(crate) const NARROW_SUPPORT: &str = "label,f0,f1,f2\nred,1,0.1,0\nred,1,0,0.1\nblue,0,1,0.2\nblue,0.1,1,0.2\n";

/// The text with every time, such as `0.1 s` or `  12 ms`, put out of sight, and the blanks before it as one.
pub(crate) fn without_times(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        for at in 1..words.len() {
            let unit = words[at].trim_end_matches([')', '.', ',']);
            let number = words[at - 1].trim_start_matches('(');
            if matches!(unit, "s" | "ms") && number.parse::<f64>().is_ok() {
                words[at - 1] = words[at - 1].replace(number, "[time]");
                // A longer number has fewer blanks before it.
                let mut before = at - 1;
                while before > 0 && words[before - 1].is_empty() {
                    before -= 1;
                    words[before] = "\0".to_owned();
                }
            }
        }
        words.retain(|word| word != "\0");
        lines.push(words.join(" "));
    }
    let mut text = lines.join("\n");
    text.push('\n');
    text
}
