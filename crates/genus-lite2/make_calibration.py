#!/usr/bin/env python3
"""The calibration that ships with the encoder: base classes of four kinds of images, learnt from by `genus calibrate`.

usage: python3 make_calibration.py DATA WORK [--without SET]      (pip install numpy; `genus` on the path, or in GENUS)

DATA has cub200_small.tar, cifar100_small.tar, omniglot_28.tar.gz with omniglot_evaluation_alphabets.txt, and in features/ the splits and
tinyimagenet_large_lite2.npz. WORK gets a feature file of the base and one of the novel classes of each, and calibration.safetensors, or
without-SET.safetensors, which has not seen that set at all.

Base classes: those of the SSB split of CUB-200, the first fifty of CIFAR-100, every other class of Tiny-ImageNet in the order of their
names, and 150 characters of Omniglot's background alphabets; 150 of its evaluation alphabets are the novel ones. Tiny-ImageNet is there as
features of the unrounded network, which differ from those of the rounded one by a cosine of 0.9965 on average.
"""
import json
import os
import random
import subprocess
import sys
import tarfile

import numpy as np

GENUS = os.environ.get("GENUS", "genus")


def unpack(archive, work):
    folder = os.path.join(work, "images", os.path.basename(archive).split(".")[0])
    if not os.path.isdir(folder):
        with tarfile.open(archive) as tar:
            tar.extractall(folder + ".part", filter="data")
        os.rename(folder + ".part", folder)
    return folder


def embed(name, classes, work):
    """A feature file of some classes; `classes` has the folder of each by its name."""
    out = os.path.join(work, f"{name}.npz")
    if not os.path.exists(out):
        manifest = os.path.join(work, f"{name}.jsonl")
        with open(manifest, "w") as file:
            for label, folder in sorted(classes.items()):
                for image in sorted(os.listdir(folder)):
                    file.write(json.dumps({"path": os.path.join(folder, image), "label": label}) + "\n")
        subprocess.run([GENUS, "embed", manifest, "-o", out], check=True)
    return out


def of_split(name, folder, split, work):
    """Feature files of the base and the novel classes."""
    split = json.load(open(split))
    return [embed(f"{name}-{part}", {c: os.path.join(folder, c) for c in split[part]}, work) for part in ("base", "novel")]


def omniglot(data, work):
    folder = os.path.join(unpack(os.path.join(data, "omniglot_28.tar.gz"), work), "omniglot_resized")
    evaluation = set(open(os.path.join(data, "omniglot_evaluation_alphabets.txt")).read().split())
    rng = random.Random(0)
    files = []
    for part in ("base", "novel"):
        alphabets = [a for a in sorted(os.listdir(folder)) if (a in evaluation) == (part == "novel")]
        all_of_them = [(a, c) for a in alphabets for c in sorted(os.listdir(os.path.join(folder, a)))]
        chosen = rng.sample(all_of_them, 150)
        files.append(embed(f"omniglot-{part}", {f"{a} {c}": os.path.join(folder, a, c) for a, c in chosen}, work))
    return files


def tiny(data, work):
    table = np.load(os.path.join(data, "features", "tinyimagenet_large_lite2.npz"))
    labels = table["classes"][table["y"]]
    names = sorted(set(labels))
    files = []
    for part, first in (("base", 0), ("novel", 1)):
        rows = np.isin(labels, names[first::2])
        files.append(os.path.join(work, f"tiny-{part}.npz"))
        np.savez(files[-1], x=table["x"][rows].astype(np.float32), y=labels[rows])
    return files


def main():
    data, work = sys.argv[1:3]
    without = sys.argv[4] if sys.argv[3:4] == ["--without"] else None
    os.makedirs(os.path.join(work, "images"), exist_ok=True)
    features = os.path.join(data, "features")
    cub = os.path.join(unpack(os.path.join(data, "cub200_small.tar"), work), "cub200")
    cifar = os.path.join(unpack(os.path.join(data, "cifar100_small.tar"), work), "cifar100", "train")
    sets = {
        "cub": of_split("cub", cub, os.path.join(features, "cub200_lite2.split.json"), work),
        "cifar": of_split("cifar", cifar, os.path.join(features, "cifar100_lite2.split.json"), work),
        "tiny": tiny(data, work),
        "omniglot": omniglot(data, work),
    }
    if without is not None and without not in sets:
        sys.exit(f"there is no set {without}; there are {', '.join(sets)}")
    base = [os.path.basename(files[0]) for name, files in sets.items() if name != without]
    name = f"without-{without}" if without else "calibration"
    # From within, so that no path of this machine is in the file.
    subprocess.run([GENUS, "calibrate", *base, "-o", f"{name}.safetensors"], cwd=work, check=True)


if __name__ == "__main__":
    main()
