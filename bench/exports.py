"""Loads what `genus discover --export` writes with the programs that it is for.

    python -m venv venv && venv/bin/pip install datasets pillow label-studio-sdk fiftyone
    cargo build --release && venv/bin/python bench/exports.py target/release/genus

It makes images and features of its own, so it needs no data and no network. Every check prints a line; the first that
fails ends the script.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import urllib.parse
import xml.etree.ElementTree as xml
from importlib.metadata import version
from pathlib import Path

import numpy as np
from PIL import Image

# Two known classes and two that nobody named. A class called `train` must not become the training part of the data.
CLASSES = {"train": (220, 40, 40), "test: a/b": (40, 200, 40), "third": (40, 60, 220), "fourth": (210, 200, 40)}
KNOWN = 2
NAMES = ["plain", "two words", "it's \"quoted\"", "50% & more #1", "<b>é", "שלום", "🦜", "a+b?c=d"]


def make(root):
    """Images, and a table of their colours whose ids are their paths; five of each known class have a label."""
    random = np.random.default_rng(1)
    photos = root / "photos"
    rows = []
    for number, colour in enumerate(CLASSES.values()):
        # The same names in several folders.
        folder = photos / f"day {number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        for at, name in enumerate(NAMES):
            path = folder / (f"{name}.png" if number < 2 else f"{number} {name}.png")
            pixels = np.clip(np.array(colour) + random.normal(0, 12, (24, 24, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(path)
            mean = pixels.reshape(-1, 3).mean(0) / 255 - 0.5
            rows.append((str(path.relative_to(root)), "", mean))
        if number < KNOWN:
            for at in range(5):
                mean = np.array(colour) / 255 - 0.5 + random.normal(0, 0.01, 3)
                rows.append((f"example {number} {at}", list(CLASSES)[number], mean))
    with open(root / "table.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", "f0", "f1", "f2"])
        writer.writerows([name, label, *map(float, mean)] for name, label, mean in rows)


def check(what, found, expected):
    if found != expected:
        sys.exit(f"FAILED {what}: {found!r} instead of {expected!r}")
    print(f"ok  {what}")


def label_studio(root, rows):
    from label_studio_sdk.label_interface import LabelInterface

    tasks = json.loads((root / "result/label-studio.json").read_text())
    config = (root / "result/label-studio.xml").read_text()
    xml.fromstring(config)
    interface = LabelInterface(config)
    interface.validate()
    choices = set(interface.get_control("category").labels)
    check("Label Studio: the interface has every category", choices, {row["category"] for row in rows.values()})
    check("Label Studio: a task an item", len(tasks), len(rows))
    for task in tasks:
        row = rows[task["data"]["id"]]
        plain = {"data": task["data"]}
        assert interface.validate_task(plain), task
        for prediction in task["predictions"]:
            errors = interface.validate_prediction(prediction, return_errors=True)
            assert not errors, errors
            assert prediction["result"][0]["value"]["choices"] == [row["category"]]
        address = urllib.parse.urlparse(task["data"]["image"])
        assert address.path == "/data/local-files/"
        [below] = urllib.parse.parse_qs(address.query, strict_parsing=True)["d"]
        # The document root is above the folder that all images are in.
        assert (root / below).is_file(), below
    print("ok  Label Studio: every task and prediction is valid, every image is where its address says")


def fiftyone(root, rows):
    os.environ.setdefault("FIFTYONE_DO_NOT_TRACK", "true")
    import fiftyone.core.labels as labels
    import fiftyone.types as types
    from fiftyone.utils.data.importers import FiftyOneImageClassificationDatasetImporter, build_dataset_importer

    importer, _ = build_dataset_importer(
        types.FiftyOneImageClassificationDataset, labels_path=str(root / "result/fiftyone.json")
    )
    assert isinstance(importer, FiftyOneImageClassificationDatasetImporter)
    seen = {}
    with importer:
        classes = importer.get_dataset_info()["classes"]
        check("FiftyOne: the classes", set(classes), {row["category"] for row in rows.values()})
        for path, _, label in importer:
            assert isinstance(label, labels.Classification)
            assert Path(path).is_file(), path
            row = rows[label["item"]]
            assert label.label == row["category"] and label["kind"] == row["kind"]
            assert abs(label["score"] - float(row["score"])) < 1e-6
            confidence = row["probability"]
            assert label.confidence == (None if not confidence else label.confidence)
            assert not confidence or abs(label.confidence - float(confidence)) < 1e-6
            seen[label["item"]] = path
    check("FiftyOne: the importer gives every item its label", set(seen), set(rows))
    try:
        import fiftyone as fo

        data = fo.Dataset.from_dir(
            dataset_type=fo.types.FiftyOneImageClassificationDataset, labels_path=str(root / "result/fiftyone.json")
        )
        check("FiftyOne: Dataset.from_dir", len(data), len(rows))
        data.delete()
    except Exception as error:
        print(f"--  FiftyOne: Dataset.from_dir not tried to the end, its database does not start here: {type(error).__name__}")


def hugging_face(root, rows):
    os.environ["HF_HUB_OFFLINE"] = "1"
    from datasets import load_dataset, logging

    logging.disable_progress_bar()
    # What was loaded before from another folder must not be taken for this.
    cache = str(root / "hub")
    data = load_dataset(str(root / "sorted"), cache_dir=cache)
    check("datasets: one part", list(data), ["train"])
    data = data["train"]
    columns = ["category", "id", "image", "kind", "margin", "probability", "scene", "score"]
    check("datasets: the columns", sorted(data.column_names), columns)
    check("datasets: every item", set(data["id"]), set(rows))
    for found in data:
        row = rows[found["id"]]
        assert (found["category"], found["kind"]) == (row["category"], row["kind"]), (found, row)
        assert abs(found["score"] - float(row["score"])) < 1e-6
        assert not row["scene"] or found["scene"] == int(row["scene"]), (found, row)
        original = Image.open(root / found["id"]).convert("RGB")
        assert found["image"].convert("RGB").tobytes() == original.tobytes(), found["id"]
    print("ok  datasets: every image, category and score is the right one")
    # By the name of the builder, as its documentation does; a folder called train would take all for itself there.
    data = load_dataset("imagefolder", data_files={"train": str(root / "sorted/**")}, split="train", cache_dir=cache)
    check("datasets: imagefolder", set(data["id"]), set(rows))


def main():
    genus = Path(sys.argv[1] if len(sys.argv) > 1 else "target/release/genus").resolve()
    for package in ["label-studio-sdk", "fiftyone", "datasets"]:
        print(f"    {package} {version(package)}")
    for link in ["sym", "hard", "copy"]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            make(root)
            command = f"discover table.csv --out result --sort-into sorted --link {link}".split()
            for export in ["label-studio", "fiftyone", "imagefolder"]:
                command += ["--export", export]
            subprocess.run([genus, *command], cwd=root, check=True, stderr=subprocess.DEVNULL)
            with open(root / "result/assignments.csv", newline="") as file:
                rows = {row["id"]: row for row in csv.DictReader(file)}
            print(f"--- --link {link}: {len(rows)} items, {len({row['category'] for row in rows.values()})} categories")
            hugging_face(root, rows)
            if link == "sym":
                label_studio(root, rows)
                fiftyone(root, rows)


if __name__ == "__main__":
    main()
