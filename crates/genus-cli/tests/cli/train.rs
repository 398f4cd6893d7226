//! Training: from images of known classes to an encoder that every other command takes.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::images::bmp;
use super::support::Folder;

const ENCODER: &str = "--encoder conv4:size=16,width=4 --from-scratch";
/// Small episodes of a small network.
const SMALL: &str = "--way 2 --shot 1 --new 1 --query 2 --head-hidden 8 --head-width 16 --validation-episodes 10";

/// Nine classes, each of a colour of its own.
fn folder() -> Folder {
    let folder = Folder::new();
    for class in 0..9u8 {
        for at in 0..5 {
            let colour = [30 + 25 * class, 250 - 25 * class, 60 * (class % 4)];
            folder.write(
                &format!("base/class {class}/{at}.bmp"),
                bmp(colour, 10 * usize::from(class) + at),
            );
        }
    }
    folder
}

#[test]
fn an_encoder_is_trained_and_used() {
    let folder = folder();
    let done = folder
        .genus(&format!(
            "train base {ENCODER} {SMALL} --epochs 4 --episodes 3 --validate-every 2 --out run"
        ))
        .success();
    for part in [
        "Training all blocks of conv4:size=16,width=4",
        "on 6 classes, 3 held out, 45 images",
        "epoch   4",
        "held-out classes: All",
        "--encoder run",
    ] {
        assert!(done.stderr.contains(part), "{}", done.stderr);
    }
    assert_eq!(done.text(), "");
    let info = folder.genus("encoders info run").success();
    assert!(info.text().contains("conv4 × 4"), "{}", info.text());
    folder.genus("embed base --encoder run -o base.npz").success();
    let rows = folder
        .genus("discover --support base.npz --query base.npz --encoder run")
        .rows();
    assert_eq!(rows.len(), 45);
    // What was trained can be trained on.
    folder
        .genus(&format!(
            "train base --encoder run {SMALL} --blocks 1 --cache-trunk 2 --epochs 1 --episodes 2 --out more"
        ))
        .success();
    assert!(folder.path("more/trunk.bin").exists());
    folder.genus("encoders info more").success();
}

#[test]
fn codes_are_learnt() {
    let folder = folder();
    let small = "--way 2 --shot 1 --new 1 --query 2 --head-hidden 8 --validation-episodes 10";
    let train = format!("train base {ENCODER} {small} --objective ocd");
    // Two passes over the 30 images of the classes that are not held out, two batches each.
    let done = folder
        .genus(&format!("{train} --batch 12 --bits 6 --epochs 2 --out run"))
        .success();
    for part in [
        "and a head of 6 bits (",
        "on 6 classes, 3 held out, 45 images",
        "--encoder run",
    ] {
        assert!(done.stderr.contains(part), "{}", done.stderr);
    }
    let config = folder.read("run/config.toml");
    for part in [
        "objective = \"hash\"",
        "batch = 12",
        "bits = 6",
        "views = 2",
        "epochs = 2",
    ] {
        assert!(config.contains(part), "{config}");
    }
    assert_eq!(folder.read("run/metrics.jsonl").matches("\"loss\"").count(), 4);
    assert!(folder.path("run/hash.safetensors").exists());
    folder.genus("embed base --encoder run -o base.npz").success();
    // The usual settings are those of the authors.
    folder.fails(
        &format!("{train} --out usual"),
        &["takes 128 images", "there are 30", "--batch"],
    );
    // On episodes, if they are asked for.
    folder
        .genus(&format!("{train} --episodes 3 --epochs 1 --out episodes"))
        .success();
    assert!(!folder.read("episodes/config.toml").contains("batch"));
    for (arguments, part) in [
        (format!("{train} --batch 12 --episodes 3 --out other"), "--episodes"),
        (format!("{train} --bits 0 --out other"), "0 bits"),
        ("train --resume run --objective ocd".to_owned(), "--resume"),
        (format!("{train} --objective smile --out other"), "contrast"),
    ] {
        let outcome = folder.genus(&arguments);
        assert_eq!(outcome.code, Some(2), "{arguments}\n{}", outcome.stderr);
        assert!(outcome.stderr.contains(part), "{arguments}\n{}", outcome.stderr);
    }
}

#[test]
fn runs_are_the_same_at_any_number_of_threads() {
    let folder = folder();
    for (threads, out) in [(1, "one"), (3, "three")] {
        let command = format!("train base {ENCODER} {SMALL} --epochs 2 --episodes 3 --threads {threads} --out {out}");
        folder.genus(&command).success();
    }
    let bytes = |run: &str| fs::read(folder.path(run).join("checkpoint.safetensors")).unwrap();
    assert!(bytes("one") == bytes("three"));
}

#[test]
fn mistakes_are_explained() {
    let folder = folder();
    let small = format!("base {ENCODER} {SMALL}");
    folder.fails(
        &format!("train base {ENCODER} --out run"),
        &["base", "class 0", "5 items", "--short-classes skip"],
    );
    folder.fails(
        &format!("train base {ENCODER} --way 9 --shot 1 --new 1 --query 2 --out run"),
        &["needs 10 classes", "there are 9"],
    );
    folder.fails(&format!("train none {ENCODER} --out run"), &["none"]);
    folder.fails("train --resume base --quiet --threads 2", &["no training run in base"]);
    folder.fails(
        &format!("train base {SMALL} --encoder dino-vitb16 --out run"),
        &["dino-vitb16"],
    );
    for (arguments, part) in [
        (
            format!("train base {SMALL} --encoder conv4 --out run"),
            "--from-scratch",
        ),
        (format!("train {small}"), "--out"),
        (
            format!("train {small} --out run --blocks none"),
            "neither a number of blocks nor `all`",
        ),
        (format!("train {small} --out run --schedule linear"), "constant"),
        (format!("train {small} --out run --lr -1"), "learning rate is -1"),
        ("train --resume run --epochs 9".to_owned(), "--resume"),
        (format!("train {small} --out run --lr 0"), "learning rate is 0"),
        (format!("train base {SMALL} --out run --encoder resnet19"), "resnet19"),
    ] {
        let outcome = folder.genus(&arguments);
        assert_eq!(outcome.code, Some(2), "{arguments}\n{}", outcome.stderr);
        assert!(outcome.stderr.contains(part), "{arguments}\n{}", outcome.stderr);
    }
    assert!(!folder.path("run").exists());
    folder
        .genus(&format!("train {small} --epochs 1 --episodes 1 --out run"))
        .success();
    folder.fails(
        &format!("train {small} --epochs 1 --episodes 1 --out run"),
        &["genus train --resume run"],
    );
    folder.fails(
        &format!("train {small} --epochs 2 --episodes 1 --out run"),
        &["other settings", "epochs is 1 and not 2"],
    );
}

/// Ctrl-C finishes the step and saves; the run then goes on.
#[cfg(unix)]
#[test]
fn an_interrupt_saves() {
    let folder = folder();
    let mut child = folder
        .command(&format!(
            "train base {ENCODER} {SMALL} --epochs 100000 --episodes 1 --validate-every 100000 --out run"
        ))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let metrics = folder.path("run/metrics.jsonl");
    while fs::read_to_string(&metrics).map_or(0, |text| text.lines().count()) < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("resume with: genus train --resume run"), "{said}");
    let steps = fs::read_to_string(&metrics).unwrap().lines().count();
    assert!(said.contains("stopped after step "), "{said}");
    assert!(steps >= 3);
    // An encoder that is not there yet is not used.
    folder.fails(
        "embed base --encoder run -o base.npz",
        &["run", "not complete", "--resume"],
    );
}

/// A disk that fills up while a checkpoint is written leaves the one before.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_checkpoint_before() {
    let folder = folder();
    let train = format!("train base {ENCODER} {SMALL} --epochs 2 --episodes 2 --out run");
    folder.genus(&train).success();
    let whole = fs::read(folder.path("run/checkpoint.safetensors")).unwrap();
    // Back to the beginning, as far as the checkpoint goes.
    fs::remove_dir_all(folder.path("run")).unwrap();
    // No file may grow beyond 8 blocks of 512 bytes; what is written beyond is an error, as on a full disk.
    let limited = |arguments: &str| {
        let program = folder.command("").get_program().to_owned();
        let line = format!("ulimit -f 8; exec \"$0\" {arguments}");
        let output = Command::new("sh")
            .args(["-c", &line])
            .arg(program)
            .current_dir(folder.path("."))
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    // The run begins with a checkpoint, which is larger than that.
    for go_on in ["train --resume run", &train] {
        let (code, said) = limited(&train);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("checkpoint.safetensors"), "{said}");
        // Stopped before its first step, it goes on in either way.
        assert_eq!(folder.names("run"), ["config.toml"]);
        folder.genus(go_on).success();
        assert!(fs::read(folder.path("run/checkpoint.safetensors")).unwrap() == whole);
        fs::remove_dir_all(folder.path("run")).unwrap();
    }
    // A run whose disk fills up later: its first checkpoint stays.
    folder
        .genus(&format!(
            "train base {ENCODER} {SMALL} --epochs 1 --episodes 1 --out other"
        ))
        .success();
    let checkpoint = folder.path("other/checkpoint.safetensors");
    let config = folder.read("other/config.toml").replace("epochs = 1", "epochs = 3");
    folder.write("other/config.toml", config);
    let before = fs::read(&checkpoint).unwrap();
    let (code, said) = limited("train --resume other");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("checkpoint.safetensors"), "{said}");
    assert!(fs::read(&checkpoint).unwrap() == before);
    assert!(folder.names("other").iter().all(|name| !name.ends_with(".tmp")));
    // With room again it goes on.
    folder.genus("train --resume other").success();
}
