//! Images in: `embed`, and images wherever features are taken. The encoder is a tiny transformer of made-up weights, which
//! tells colours apart; that is all that is asked of it here.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Stdio;

use genus_vision::{Isa, Precision};
use safetensors::tensor::{Dtype, TensorView};

use super::support::Folder;

const DIM: usize = 16;
pub(crate) const ENCODER: &str = "--encoder vit:heads=2,size=32 --weights tiny.safetensors";

/// Numbers that depend on a name and a place only.
fn made_up(name: &str, count: usize) -> Vec<f32> {
    let seed = name
        .bytes()
        .fold(7u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// The weights of a vision transformer of one block for patches of 16 pixels.
fn tiny_vit(patches: usize) -> Vec<u8> {
    let mut tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)> = BTreeMap::new();
    let mut add = |name: &str, shape: &[usize], scale: f32| {
        let values = made_up(name, shape.iter().product())
            .into_iter()
            .map(|v| v * scale)
            .collect();
        tensors.insert(name.to_owned(), (shape.to_vec(), values));
    };
    add("cls_token", &[1, 1, DIM], 1.0);
    add("pos_embed", &[1, patches + 1, DIM], 0.1);
    add("patch_embed.proj.weight", &[DIM, 3, 16, 16], 0.1);
    add("patch_embed.proj.bias", &[DIM], 0.1);
    for norm in ["blocks.0.norm1", "blocks.0.norm2", "norm"] {
        add(&format!("{norm}.weight"), &[DIM], 1.0);
        add(&format!("{norm}.bias"), &[DIM], 0.1);
    }
    for (name, inputs, outputs) in [
        ("attn.qkv", DIM, 3 * DIM),
        ("attn.proj", DIM, DIM),
        ("mlp.fc1", DIM, 2 * DIM),
        ("mlp.fc2", 2 * DIM, DIM),
    ] {
        add(&format!("blocks.0.{name}.weight"), &[outputs, inputs], 0.7);
        add(&format!("blocks.0.{name}.bias"), &[outputs], 0.1);
    }
    let bytes: BTreeMap<String, (Vec<usize>, Vec<u8>)> = tensors
        .into_iter()
        .map(|(name, (shape, values))| (name, (shape, values.iter().flat_map(|v| v.to_le_bytes()).collect())))
        .collect();
    let views = bytes.iter().map(|(name, (shape, bytes))| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap();
        (name.clone(), view)
    });
    safetensors::serialize(views, None).unwrap()
}

/// A BMP file of 40 × 40 pixels of about one colour.
pub(crate) fn bmp(colour: [u8; 3], seed: usize) -> Vec<u8> {
    const SIDE: u32 = 40;
    let mut file = b"BM".to_vec();
    let size = 54 + SIDE * SIDE * 3;
    for value in [size, 0, 54, 40, SIDE, SIDE] {
        file.extend(value.to_le_bytes());
    }
    file.extend(1u16.to_le_bytes());
    file.extend(24u16.to_le_bytes());
    file.extend([0; 24]);
    let noise = made_up(&format!("noise {seed}"), (SIDE * SIDE * 3) as usize);
    for (at, noise) in noise.into_iter().enumerate() {
        let level = f32::from(colour[2 - at % 3]) + 20.0 * noise;
        file.push(level.clamp(0.0, 255.0) as u8);
    }
    file
}

const COLOURS: [(&str, [u8; 3]); 4] = [
    ("red", [220, 30, 30]),
    ("green", [30, 200, 40]),
    ("blue", [30, 40, 220]),
    ("grey", [128, 128, 128]),
];

/// A folder with the weights, examples of red and green, and photos of red, green, blue and grey.
pub(crate) fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("tiny.safetensors", tiny_vit(4));
    for (number, (name, colour)) in COLOURS.into_iter().enumerate() {
        for at in 0..6 {
            if number < 2 && at < 3 {
                folder.write(&format!("labelled/{name}/{at}.bmp"), bmp(colour, 100 * number + at));
            }
            folder.write(
                &format!("photos/{name}-{at}.bmp"),
                bmp(colour, 1000 + 100 * number + at),
            );
        }
    }
    folder
}

#[test]
fn folders_of_images_are_sorted() {
    let folder = folder();
    let command = format!("discover --method shc --support labelled --query photos {ENCODER}");
    let rows = folder.genus(&command).rows();
    assert_eq!(rows.len(), 24);
    for row in &rows {
        let colour = row.id.split('-').next().unwrap();
        match colour {
            "red" | "green" => assert_eq!((row.category.as_str(), row.kind.as_str()), (colour, "known"), "{row:?}"),
            _ => assert_eq!(row.kind, "new", "{row:?}"),
        }
    }
    // The same from a table of all of them, from the taxonomy, and from feature files.
    let all = folder
        .genus(&format!(
            "discover --method shc --support labelled --query photos {ENCODER} --out result"
        ))
        .success();
    assert!(all.stderr.contains("24 images embedded"), "{}", all.stderr);
    let again = folder
        .genus(&format!("assign --taxonomy result --query photos {ENCODER}"))
        .rows();
    assert!(again.iter().zip(&rows).all(|(a, b)| a.category == b.category));
    folder.genus(&format!("embed labelled {ENCODER} -o s.npz")).success();
    folder.genus(&format!("embed photos {ENCODER} -o q.parquet")).success();
    let files = "discover --method shc --support s.npz --query q.parquet";
    assert_eq!(folder.genus(files).rows(), rows);
}

#[test]
fn features_are_the_same_in_every_format_and_at_any_number_of_threads() {
    let folder = folder();
    folder.write("list.txt", "photos/red-0.bmp\n# a comment\nphotos/blue-3.bmp\n");
    folder.write(
        "table.csv",
        "path,id,label\nphotos/red-0.bmp,a,red\nphotos/blue-3.bmp,b,\n",
    );
    let features = |name: &str| {
        let text = folder.read(name);
        let rows = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').skip(2).map(str::to_owned).collect::<Vec<_>>());
        rows.collect::<Vec<_>>()
    };
    folder
        .genus(&format!("embed list.txt {ENCODER} -o list.csv --no-cache --threads 1"))
        .success();
    folder
        .genus(&format!(
            "embed table.csv {ENCODER} -o table.out.csv --no-cache --threads 3"
        ))
        .success();
    assert_eq!(features("list.csv").len(), 2);
    assert_eq!(
        folder
            .read("table.out.csv")
            .lines()
            .nth(1)
            .unwrap()
            .split(',')
            .take(2)
            .collect::<Vec<_>>(),
        ["a", "red"]
    );
    let last = |rows: Vec<Vec<String>>| {
        rows.into_iter()
            .map(|row| row[row.len() - DIM..].to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(last(features("list.csv")), last(features("table.out.csv")));
    for format in ["parquet", "npz", "safetensors", "jsonl"] {
        folder.genus(&format!("embed photos {ENCODER} -o f.{format}")).success();
        folder
            .genus(&format!("embed labelled {ENCODER} -o s.{format}"))
            .success();
        let rows = folder
            .genus(&format!("discover --support s.{format} --query f.{format}"))
            .rows();
        assert_eq!(rows[0].id, "blue-0.bmp", "{format}");
    }
    folder.fails(&format!("embed photos {ENCODER} -o f.npy"), &["f.npy", ".npz"]);
}

#[test]
fn an_image_is_embedded_once() {
    let folder = folder();
    let none = folder.genus("cache info").success();
    assert!(none.text().contains("the cache is empty"), "{}", none.text());
    folder.genus(&format!("embed photos {ENCODER} -o a.csv")).success();
    let info = folder.genus("cache info").success();
    assert!(info.text().contains("24 images"), "{}", info.text());
    // The same content under another name needs no network: the features come back bit for bit.
    fs::copy(folder.path("photos/red-0.bmp"), folder.path("copy.bmp")).unwrap();
    folder.write("one.txt", "copy.bmp\n");
    let outcome = folder.genus(&format!("embed one.txt {ENCODER} -o b.csv")).success();
    assert!(outcome.stderr.contains("all from the cache"), "{}", outcome.stderr);
    let row = |name: &str, start: &str| {
        let text = folder.read(name);
        let line = text.lines().find(|line| line.starts_with(start)).unwrap();
        let cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        cells[cells.len() - DIM..].to_vec()
    };
    assert_eq!(row("a.csv", "red-0"), row("b.csv", "copy"));
    assert!(folder.genus("cache info").text().contains("24 images"));
    folder
        .genus(&format!("embed photos {ENCODER} -o c.csv --no-cache"))
        .success();
    assert_eq!(folder.read("a.csv"), folder.read("c.csv"));
    folder.genus("cache clear").success();
    assert!(folder.genus("cache info").text().contains("the cache is empty"));
}

#[test]
fn two_processes_share_a_cache() {
    let folder = folder();
    // More than are held back before the first are written.
    let names: Vec<String> = (0..80).map(|at| format!("photos/more-{at:02}.bmp")).collect();
    for (at, name) in names.iter().enumerate() {
        folder.write(name, bmp(COLOURS[at % 4].1, 5000 + at));
    }
    // Both wait for the list at their standard input, so that they begin together, however long a start takes.
    let mut processes = ["a.csv", "b.csv"].map(|out| {
        let mut command = folder.command(&format!("embed - {ENCODER} -o {out} --threads 1"));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    });
    for process in &mut processes {
        process
            .stdin
            .as_mut()
            .unwrap()
            .write_all(names.join("\n").as_bytes())
            .unwrap();
    }
    for process in &mut processes {
        drop(process.stdin.take());
    }
    for process in processes {
        let output = process.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("80 images embedded"), "{said}");
    }
    folder.write("list.txt", names.join("\n"));
    let third = folder.genus(&format!("embed list.txt {ENCODER} -o c.csv")).success();
    assert!(third.stderr.contains("all from the cache"), "{}", third.stderr);
    folder
        .genus(&format!("embed list.txt {ENCODER} -o alone.csv --no-cache"))
        .success();
    for shared in ["a.csv", "b.csv", "c.csv"] {
        assert!(folder.read(shared) == folder.read("alone.csv"), "{shared}");
    }
}

#[test]
fn base_classes_may_be_images() {
    let folder = folder();
    for class in 0..9 {
        let level = |channel: usize| [30, 120, 220][(class / [1, 3, 2][channel]) % 3];
        for at in 0..4 {
            folder.write(
                &format!("base/shade {class}/{at}.bmp"),
                bmp([level(0), level(1), level(2)], 5000 + 100 * class + at),
            );
        }
    }
    let outcome = folder
        .genus(&format!("calibrate base {ENCODER} -o base.safetensors"))
        .success();
    assert!(outcome.stderr.contains("36 images embedded"), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("Calibrated on 9 classes of 36 items"),
        "{}",
        outcome.stderr
    );
    let show = folder.genus("calibrate --show base.safetensors").success();
    assert!(show.text().contains("encoder      vit"), "{}", show.text());
    let discover = "discover --support labelled --query photos --calibration base.safetensors";
    let outcome = folder.genus(&format!("{discover} {ENCODER}")).success();
    assert!(
        outcome.stderr.contains("calibrated on 9 base classes"),
        "{}",
        outcome.stderr
    );
    // The calibration knows which encoder it is of.
    let other = ENCODER.replace("heads=2", "heads=4");
    folder.fails(
        &format!("{discover} {other}"),
        &["base.safetensors", "labelled", "genus calibrate"],
    );
    // Every class is needed by name, and a split is looked at before anything is embedded.
    folder.write("base/stray.bmp", bmp([0, 0, 0], 1));
    folder.fails(
        &format!("calibrate base {ENCODER} -o b.safetensors"),
        &["stray.bmp", "has no label"],
    );
    folder.write("split.json", "{\"novel\": [\"owl\"]}");
    let split = folder.fails(
        &format!("calibrate base {ENCODER} --split split.json -o b.safetensors"),
        &["split.json", "\"owl\""],
    );
    assert!(!split.contains("embedded"), "{split}");
}

#[test]
fn features_of_different_encoders_do_not_mix() {
    let folder = folder();
    folder.genus(&format!("embed labelled {ENCODER} -o s.npz")).success();
    folder
        .genus("embed photos --encoder vit:heads=4,size=32 --weights tiny.safetensors -o q.npz")
        .success();
    folder.discover_fails(
        "--support s.npz --query q.npz",
        &["s.npz", "q.npz", "2 heads", "4 heads", "embed"],
    );
    folder
        .genus(&format!(
            "discover --support s.npz --query photos {ENCODER} --out result"
        ))
        .success();
    folder.fails("assign --taxonomy result --query q.npz", &["result", "q.npz", "heads"]);
}

#[test]
fn what_cannot_be_read_is_skipped_and_said() {
    let folder = folder();
    let good = bmp([220, 30, 30], 5);
    folder.write("photos/aa-text.jpg", "this is no picture");
    folder.write("photos/ab-empty.png", "");
    folder.write("photos/ac-cut.bmp", &good[..good.len() / 2]);
    let outcome = folder.genus(&format!("embed photos {ENCODER} -o f.csv")).skipped();
    for name in ["aa-text.jpg", "ab-empty.png", "ac-cut.bmp"] {
        assert!(
            outcome.stderr.contains(&format!("skipped photos/{name}: ")),
            "{}",
            outcome.stderr
        );
    }
    assert_eq!(folder.read("f.csv").lines().count(), 25);
    folder.fails(
        &format!("embed photos {ENCODER} -o g.csv --strict"),
        &["photos/aa-text.jpg", "--strict"],
    );
    // What is too large is named with its limit.
    let outcome = folder.genus(&format!(
        "embed photos {ENCODER} -o f.csv --max-megapixels 0 --no-cache"
    ));
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("skipped 27 files in all"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("not one image"), "{}", outcome.stderr);
}

#[cfg(unix)]
#[test]
fn a_name_that_is_not_utf8_is_written_with_the_numbers_of_its_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    let folder = folder();
    let latin = OsStr::from_bytes(b"caf\xe9.bmp");
    if fs::write(folder.path("photos").join(latin), bmp([220, 30, 30], 5)).is_err() {
        eprintln!("skipped: this file system has only Unicode names");
        return;
    }
    fs::write(folder.path("photos").join(OsStr::from_bytes(b"cut\xff.bmp")), "BM").unwrap();
    let outcome = folder.genus(&format!("embed photos {ENCODER} -o f.csv")).skipped();
    assert!(outcome.stderr.contains("25 images embedded"), "{}", outcome.stderr);
    // What is left out is said as well as a terminal can show it.
    assert!(
        outcome.stderr.contains("skipped photos/cut\u{fffd}.bmp: "),
        "{}",
        outcome.stderr
    );
    let ids = |name: &str| {
        let text = folder.read(name);
        let ids = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').next().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert!(ids("f.csv").contains(&"caf%E9.bmp".to_owned()), "{:?}", ids("f.csv"));
    // So it is when it is named by itself.
    let output = folder
        .command(&format!("embed {ENCODER} -o one.csv"))
        .arg(Path::new("photos").join(latin))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(ids("one.csv"), ["photos/caf%E9.bmp"]);
}

#[test]
fn mistakes_with_images_are_explained() {
    let folder = folder();
    folder.write("none/readme.txt", "nothing here");
    folder.write("broken.safetensors", "nonsense");
    folder.write("other.safetensors", tiny_vit(6));
    folder.fails(
        &format!("embed none {ENCODER} -o f.csv"),
        &["none", "no images", "texts"],
    );
    // Before anything is embedded.
    let missing = folder.genus(&format!("discover --support labelled --query fotos {ENCODER}"));
    assert_eq!(
        missing.stderr,
        "error: there is no folder fotos; did you mean photos?\n"
    );
    folder.write("one.HEIC", "no picture");
    for command in ["embed one.HEIC -o f.csv", "discover --query one.HEIC"] {
        folder.fails(&format!("{command} {ENCODER}"), &["one.HEIC", "convert it to .jpg"]);
    }
    folder.write("empty/readme", "nothing here");
    folder.fails(
        &format!("embed empty {ENCODER} -o f.csv"),
        &["empty", "no images", ".jpg"],
    );
    folder.fails(&format!("embed nowhere {ENCODER} -o f.csv"), &["nowhere"]);
    folder.fails(
        "embed photos --encoder vit --weights broken.safetensors -o f.csv",
        &["broken.safetensors"],
    );
    folder.fails(
        "embed photos --encoder vit:size=32 --weights other.safetensors -o f.csv",
        &["position"],
    );
    folder.fails(
        "embed photos --encoder vit:size=33,heads=2 --weights tiny.safetensors -o f.csv",
        &["33", "16"],
    );
    let message = folder.fails(
        "embed photos --encoder resnet18 --weights tiny.safetensors -o f.csv",
        &["tiny.safetensors"],
    );
    assert!(message.contains("missing") && message.contains("surplus"), "{message}");
    folder.fails(
        "embed photos --encoder dino-vitb16 -o f.csv",
        &["facebook/dino-vitb16", "pytorch_model.bin", "--weights"],
    );
    folder.fails(
        &format!("discover --support photos --query photos {ENCODER}"),
        &["photos", "label", "folder"],
    );
    for (arguments, word) in [
        ("embed photos --encoder dinosaur -o f.csv", "genus encoders list"),
        ("embed photos --encoder vit -o f.csv", "--weights"),
        ("embed photos --encoder vit:heads=none -o f.csv", "heads"),
        ("embed photos --encoder resnet18:heads=3 -o f.csv", "size"),
        ("bench main", "--features"),
    ] {
        let outcome = folder.genus(arguments);
        assert_eq!(outcome.code, Some(2), "{arguments}\n{}", outcome.stderr);
        assert!(outcome.stderr.contains(word), "{arguments}\n{}", outcome.stderr);
    }
}

#[test]
fn a_bench_runs_on_images() {
    let folder = folder();
    for (number, (name, colour)) in COLOURS.into_iter().enumerate() {
        for at in 0..6 {
            folder.write(&format!("data/{name}/{at}.bmp"), bmp(colour, 7000 + 100 * number + at));
        }
    }
    let shape = "--way 2 --new 2 --shot 2 --query 3 --episodes 5 --methods shc";
    let images = folder
        .genus(&format!("bench main --images data {ENCODER} {shape}"))
        .success();
    folder.genus(&format!("embed data {ENCODER} -o data.npz")).success();
    let features = folder
        .genus(&format!("bench main --features data.npz {shape}"))
        .success();
    let table = |text: &str| {
        text.lines()
            .filter(|line| line.starts_with('|'))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert!(table(images.text()).len() > 2);
    assert!(images.text().starts_with("**main**, data: "), "{}", images.text());
    assert_eq!(table(images.text()), table(features.text()));
}

#[test]
fn encoders_are_listed_and_explained() {
    let folder = folder();
    insta::assert_snapshot!("encoders_list", folder.genus("encoders list").success().text());
    insta::assert_snapshot!(
        "encoders_info",
        folder.genus("encoders info dinov2-small").success().text()
    );
    let info = folder
        .genus_on(
            "portable",
            "encoders info vit:heads=2,size=32 --weights tiny.safetensors",
        )
        .success();
    insta::assert_snapshot!("encoders_info_weights", info.text());
}

#[test]
fn the_speed_of_encoders_is_measured_once_asked_for_and_remembered() {
    let folder = folder();
    let listed = |command: &str| -> Vec<serde_json::Value> {
        let outcome = folder.genus(command).success();
        serde_json::from_str(outcome.text()).unwrap()
    };
    let before = listed("encoders list --json");
    assert!(before.iter().all(|encoder| encoder["images_per_second"].is_null()));
    let at_hand: Vec<&serde_json::Value> = before.iter().filter(|encoder| encoder["at_hand"] == true).collect();
    assert_eq!(at_hand.len(), 1, "{at_hand:?}");
    assert_eq!(at_hand[0]["name"], "efficientnet-lite2-int8");
    assert_eq!(
        (&at_hand[0]["default"], &at_hand[0]["features"]),
        (&true.into(), &1280.into())
    );
    assert!(at_hand[0]["download_bytes"].is_null());
    let table = folder.genus("encoders list --measure").success();
    let after = listed("encoders list --json");
    let speed = after[0]["images_per_second"].as_f64().unwrap();
    assert!(speed > 0.0);
    assert!(table.text().contains(&format!(" {speed:.1} ")), "{}", table.text());
    assert!(!table.text().contains("--measure"), "{}", table.text());
    assert!(after[1..].iter().all(|encoder| encoder["images_per_second"].is_null()));
}

#[test]
fn what_networks_run_on_can_be_chosen_and_is_said() {
    let folder = folder();
    let embed = format!("embed photos {ENCODER} --no-cache -o");
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let outcome = folder.genus_on(isa.name(), &format!("{embed} {isa}.npz")).success();
        assert!(outcome.stderr.contains(&format!(" on {isa} in ")), "{}", outcome.stderr);
        let info = format!("encoders info {}", ENCODER.replace("--encoder ", ""));
        let info = folder.genus_on(isa.name(), &info).success();
        let line = format!("runs on       {isa}, {}\n", isa.precision());
        assert!(info.text().contains(&line), "{}", info.text());
    }
    // Features do not depend on the machine where nothing is said: bf16 is never chosen by itself.
    let best = Isa::best(Precision::F32).unwrap();
    let outcome = folder.genus(&format!("{embed} f.npz")).success();
    assert!(
        outcome.stderr.contains(&format!(" on {best} in ")),
        "{}",
        outcome.stderr
    );
    for (isa, precision, mention) in [
        ("sse9", "", "amx, avx512bf16, avx512, avx2 or portable"),
        ("portable", "--precision bf16", "does not compute in bf16"),
        ("portable", "--precision f16", "f32 or bf16"),
    ] {
        let outcome = folder.genus_on(isa, &format!("{embed} wrong.npz {precision}"));
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(mention), "{}", outcome.stderr);
    }
    assert!(!folder.path("wrong.npz").exists());
    if Isa::best(Precision::Bf16).is_err() {
        let outcome = folder.genus(&format!("{embed} b.npz --precision bf16"));
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("AVX512-BF16"), "{}", outcome.stderr);
        return;
    }
    // Features of bf16 are others: no cache and no comparison takes them for those of f32.
    for precision in ["f32", "bf16", "f32", "bf16"] {
        let embed = format!("embed photos {ENCODER} --precision {precision} -o {precision}.npz");
        folder.genus(&embed).success();
    }
    assert_ne!(folder.contents()["f32.npz"], folder.contents()["bf16.npz"]);
    let embed = format!("embed labelled {ENCODER} --precision f32 -o s.npz");
    folder.genus(&embed).success();
    folder.discover_fails(
        "--support s.npz --query bf16.npz",
        &["s.npz", "bf16.npz", "in bf16", "--precision"],
    );
    let same = folder.contents()[&format!("{}.npz", best.precision())] == folder.contents()["f.npz"];
    assert!(same, "what came from the cache is not what was computed");
}

#[test]
fn a_list_may_come_from_the_standard_input() {
    let folder = folder();
    let mut command = folder.command(&format!("embed - {ENCODER} -o f.csv"));
    folder.write("paths", "photos/red-0.bmp\0photos/blue-1.bmp\0");
    let output = command
        .stdin(fs::File::open(folder.path("paths")).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(folder.read("f.csv").lines().count(), 3);
    // Nothing that is not asked for goes to standard output.
    assert!(output.stdout.is_empty());
}

#[test]
fn a_taxonomy_finds_its_encoder_again() {
    let folder = folder();
    folder
        .genus(&format!(
            "discover --support labelled --query photos {ENCODER} --out result"
        ))
        .success();
    let assign = "assign --taxonomy result --query photos";
    let again = folder.genus(assign).success();
    let named = folder.genus(&format!("{assign} {ENCODER}")).success();
    assert_eq!(again.stdout, named.stdout);

    std::fs::rename(folder.path("tiny.safetensors"), folder.path("moved.safetensors")).unwrap();
    let message = folder.fails(assign, &["result", "tiny.safetensors", "--weights"]);
    assert!(message.contains("no longer exists"), "{message}");
    let moved = folder.genus(&format!("{assign} --weights moved.safetensors")).success();
    assert_eq!(again.stdout, moved.stdout);

    // Another network in the same place is not the same encoder.
    folder.write("tiny.safetensors", tiny_vit(9));
    folder.fails(assign, &["tiny.safetensors"]);

    // Features say only what they were made by, and only what is at hand can be found by that.
    std::fs::remove_file(folder.path("tiny.safetensors")).unwrap();
    let weights = "--weights moved.safetensors";
    for (from, to) in [("labelled", "l.npz"), ("photos", "p.npz")] {
        let encoder = ENCODER.split(" --weights").next().unwrap();
        folder
            .genus(&format!("embed {from} {encoder} {weights} -o {to}"))
            .success();
    }
    folder
        .genus("discover --support l.npz --query p.npz --out features")
        .success();
    folder.fails(
        "assign --taxonomy features --query photos",
        &["features", "--encoder", "fingerprint"],
    );
}

/// Folders of examples that are not meant as they are: one without a picture, and one of folders that are the classes.
#[test]
fn odd_folders_of_examples_are_named() {
    let folder = folder();
    folder.write("labelled/hawk/one.HEIC", "no picture");
    std::fs::create_dir(folder.path("labelled/wren")).unwrap();
    let outcome = folder.genus(&format!("discover --support labelled --query photos {ENCODER}"));
    let expected =
        "labelled: 2 folders have no image of a format that can be read, and are no known classes: hawk, wren\n";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    // Everything is below one folder more than was meant.
    std::fs::create_dir(folder.path("project")).unwrap();
    std::fs::remove_dir_all(folder.path("labelled/hawk")).unwrap();
    std::fs::remove_dir_all(folder.path("labelled/wren")).unwrap();
    let classes = std::fs::read_dir(folder.path("labelled")).unwrap().count();
    std::fs::rename(folder.path("labelled"), folder.path("project/labelled")).unwrap();
    let outcome = folder.genus(&format!("discover --support project --query photos {ENCODER}"));
    let expected = format!(
        "project: all examples are of one class, labelled; if the {classes} folders in it are the classes, name project/labelled\n"
    );
    assert!(outcome.stderr.contains(&expected), "{}", outcome.stderr);
}

/// What a file of ONNX is can be seen without a way to run it.
#[test]
fn a_network_of_ones_own_is_described() {
    let folder = Folder::new();
    let golden = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../genus-vision/tests/goldens/onnx/network.onnx"
    );
    let model = std::fs::read(golden).unwrap();
    folder.write("network.onnx", &model);
    let info = || folder.genus("encoders info network.onnx").success().text().to_owned();
    let said = info();
    let expected = "\
network.onnx: a network in a file of ONNX, for ONNX Runtime
parameters    135
input         pixels, n × 3 × 16 × 16
output        row, n × 5
output        map, n × 5 × 8 × 8
output        tokens, n × 64 × 5
missing       network.toml, which says what images it takes; write into it for example
  size = 16
";
    assert!(said.starts_with(expected), "{said}");
    folder.write(
        "network.toml",
        "size = 16\nmean = [0.5, 0.5, 0.5]\nstd = [0.5, 0.5, 0.5]\noutput = \"tokens\"\npooling = \"cls\"\n",
    );
    let said = info();
    assert!(
        said.contains("\ntransform     resize 16 bicubic, crop 16, mean"),
        "{said}"
    );
    assert!(
        said.contains("\ntakes         pixels gives tokens, pooling cls\n"),
        "{said}"
    );
    // Whether it runs is a matter of the build and of the machine.
    assert!(
        said.contains("\nmissing       a way to run it: ") != said.contains("\nfeatures      5\n"),
        "{said}"
    );
    folder.write("network.toml", "size = 16\nmean = [0.5]\n");
    assert!(info().contains("\nmissing       settings that can be used: network.toml: "));
    // Cut anywhere, or no such file at all.
    for length in [0, 1, 9, 100, 500, model.len() - 1] {
        folder.write("network.onnx", &model[..length]);
        folder.fails("encoders info network.onnx", &["network.onnx"]);
    }
    folder.write("network.onnx", "no network");
    folder.fails("encoders info network.onnx", &["network.onnx"]);
    folder.fails("encoders info nothing.onnx", &["nothing.onnx"]);
}
