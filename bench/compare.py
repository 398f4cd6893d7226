#!/usr/bin/env python3
"""Genus beside numpy, scipy and scikit-learn, on the same arrays, in one run.

Machines differ and are noisy: what counts is the ratio. Peer and Genus take turns, and the median of each is compared.

    pip install numpy scipy scikit-learn
    python3 bench/compare.py                    # episodes and assign, one minute
    python3 bench/compare.py large              # 20,000 points at once: scipy needs minutes and 4 GB
    python3 bench/compare.py vision             # encoders beside PyTorch (pip install torch timm torchvision pillow safetensors)
    python3 bench/compare.py engine             # the CPU engine beside PyTorch and ONNX Runtime (and onnx onnxscript onnxruntime)
    python3 bench/compare.py train              # a step of training beside PyTorch (pip install torch timm), many minutes
    python3 bench/compare.py train --batch 8    # the same with few images
    python3 bench/compare.py piles --features tiny.npz  # piles beside UMAP + HDBSCAN, Leiden, k-means and FINCH
                                                # (pip install umap-learn leidenalg finch-clust), many minutes
    python3 bench/compare.py growth --rows 1e7  # how cost grows with the pile, up to so many rows (31 GB of disk)
"""
import argparse
import csv
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
GENUS = os.path.join(TARGET, "release", "genus")
TIMINGS = os.path.join(TARGET, "release", "examples", "timings")
VISION_TIMINGS = os.path.join(TARGET, "release", "examples", "vision_timings")
TRAINING_TIMINGS = os.path.join(TARGET, "release", "examples", "training_timings")
KNOWN = 5


def build():
    # All at once: asked for one by one, packages would be built again with fewer features.
    examples = [word for name in ("timings", "vision_timings", "training_timings") for word in ("--example", name)]
    command = ["cargo", "build", "--release", "--quiet", "--workspace", "--bin", "genus", *examples]
    subprocess.run(command, cwd=ROOT, check=True)


def timings(*args):
    return json.loads(subprocess.run([TIMINGS, *map(str, args)], capture_output=True, text=True, check=True).stdout)


def clusters(rng, sizes, dim, spread):
    """Rows around random directions, and the number of the direction of each."""
    means = rng.standard_normal((len(sizes), dim))
    y = np.repeat(np.arange(len(sizes)), sizes)
    return (means[y] + spread * rng.standard_normal((len(y), dim))).astype(np.float32), y


def episode(rng, dim=768, shot=5, query=15):
    """A 5-way 5-shot 5-new episode: unit points, prototypes first, and a file with the raw rows for Genus."""
    x, y = clusters(rng, [shot + query] * KNOWN + [query] * 5, dim, 1.5)
    labels = np.full(len(y), -1)
    for c in range(KNOWN):
        labels[np.where(y == c)[0][:shot]] = c
    prototypes = np.stack([x[labels == c].mean(0) for c in range(KNOWN)])
    points = np.vstack([prototypes, x[labels < 0]])
    return points / np.linalg.norm(points, axis=1, keepdims=True), x, labels


def cut(z, n, known):
    """Replays the merges until two prototypes would meet: the cut of the dendrogram that SHC makes."""
    parent = np.arange(2 * n - 1)
    holds = np.arange(2 * n - 1) < known
    for k, (a, b) in enumerate(z[:, :2].astype(int)):
        if holds[a] and holds[b]:
            break
        parent[a] = parent[b] = n + k
        holds[n + k] = holds[a] or holds[b]
    labels = np.empty(n, int)
    for i in range(n):
        root = i
        while parent[root] != root:
            root = parent[root]
        labels[i] = root
    return labels


def scipy_shc(points, known=KNOWN):
    return cut(linkage(pdist(points, "cosine"), "average"), len(points), known)


def sklearn_ukc(points, alpha=1.4):
    """UKC on scikit-learn's KMeans: 20 starts, split what holds two prototypes or is too large, go on from there."""

    def count(labels):
        k = labels.max() + 1
        return np.bincount(labels[KNOWN:], minlength=k), np.bincount(labels[:KNOWN], minlength=k)

    def limit(q, s):
        r = q // np.maximum(s, 1)
        return alpha * r[r > 0].mean() if (r > 0).any() else np.inf

    labels = KMeans(KNOWN, n_init=20, random_state=0).fit(points).labels_
    q, s = count(labels)
    t = limit(q, s)
    for _ in range(len(points)):
        centres = []
        for j in range(labels.max() + 1):
            members = points[labels == j]
            parts = s[j] if s[j] > 1 else 2 if q[j] >= t else 1
            if parts == 1:
                centres.append(members.mean(0, keepdims=True))
            else:
                centres.append(KMeans(parts, n_init=20, random_state=0).fit(members).cluster_centers_)
        centres = np.vstack(centres)
        labels = KMeans(len(centres), init=centres, n_init=1).fit(points).labels_
        labels = np.unique(labels, return_inverse=True)[1]
        q, s = count(labels)
        t = limit(q, s)
        if s.max() <= 1 and q.max() < t:
            break
    return labels


def seconds(work, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def row(what, peer, genus, note=""):
    print(f"| {what} | {1e3 * peer:.2f} ms | {1e3 * genus:.3f} ms | **{peer / genus:.0f}×** | {note} |", flush=True)


def episodes(folder):
    rng = np.random.default_rng(0)
    points, x, labels = episode(rng)
    path = os.path.join(folder, "episode.npz")
    np.savez(path, x=x, y=labels)
    scipy_times, sklearn_times, ours = [], [], []
    for _ in range(5):
        scipy_times.append(seconds(lambda: scipy_shc(points), 20))
        sklearn_times.append(seconds(lambda: sklearn_ukc(points), 2))
        ours.append(timings("episode", path, 300))
    of = lambda key: statistics.median(o[key] for o in ours)
    print("\n| one episode, 155 × 768 | peer | Genus | ratio | |\n|---|---|---|---|---|")
    row("SHC, scipy `pdist` + `linkage` + cut", statistics.median(scipy_times), of("shc"), "unit rows, product, merges, centres and scores included")
    row("SHC, product shared with other methods", statistics.median(scipy_times), of("shc_shared"), "as in a bench of several methods")
    row("UKC, scikit-learn `KMeans(n_init=20)`", statistics.median(sklearn_times), of("ukc"), "all included")
    row("UKC, product shared with other methods", statistics.median(sklearn_times), of("ukc_shared"))
    print(f"\nOne query in real time: {1e6 * of('real_time'):.1f} µs against {KNOWN} known classes.")


def assign():
    print("\n| assign, 1,000,000 × 768, 100 centres | numpy | Genus | ratio | Genus of the `gemm` rate |\n|---|---|---|---|---|")
    rng = np.random.default_rng(1)
    x = rng.standard_normal((100_000, 768), dtype=np.float32)
    c = rng.standard_normal((100, 768), dtype=np.float32)

    def numpy_assign():
        s = (x / np.linalg.norm(x, axis=1, keepdims=True)) @ c.T
        return s.argmax(1), np.partition(s, -2, axis=1)[:, -2:]

    # A tenth of the rows: numpy's intermediate matrices of all of them take several gigabytes.
    peer = 10 * seconds(numpy_assign, 3)
    ours = timings("assign", 1_000_000, 100, 768)
    share = ours["gflops"] / ours["gemm_gflops"]
    print(f"| nearest centre, score and margin | {peer:.2f} s | {ours['seconds']:.2f} s | **{peer / ours['seconds']:.1f}×** "
          f"| {ours['gflops']:.0f} of {ours['gemm_gflops']:.0f} GFLOP/s, {100 * share:.0f} % |", flush=True)


# Runs a command from a small process: one that is forked from a large process is billed for the memory of its parent.
MEASURE = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
out = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
seconds = time.perf_counter() - start
open(sys.argv[1], "wb").write(out)
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024]))
"""


def run_measured(command):
    """Wall time in seconds, peak memory in MB and output of a command."""
    with tempfile.NamedTemporaryFile() as out:
        figures = subprocess.run([sys.executable, "-c", MEASURE, out.name, *command], capture_output=True, check=True)
        return *json.loads(figures.stdout), out.read()


def pile(folder, n, dim=768):
    """Fifty classes, ten known from five examples each."""
    rng = np.random.default_rng(2)
    x, y = clusters(rng, [n // 50] * 50, dim, 1.2)
    order = rng.permutation(len(y))
    x, y = x[order], y[order]
    labels = np.full(len(y), -1)
    for c in range(10):
        labels[np.where(y == c)[0][:5]] = c
    path = os.path.join(folder, f"pile{n}.npz")
    np.savez(path, x=x, y=labels)
    return path, x, labels


def large(folder):
    path, x, labels = pile(folder, 20_000)
    elapsed, memory, out = run_measured([GENUS, "discover", path, "--method", "shc", "--quiet"])
    prototypes = np.stack([x[labels == c].mean(0) for c in range(10)])
    points = np.vstack([prototypes, x[labels < 0]])
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    start = time.perf_counter()
    theirs = scipy_shc(points, 10)
    peer = time.perf_counter() - start
    again, _, _ = run_measured([GENUS, "discover", path, "--method", "shc", "--quiet"])
    ours = min(elapsed, again)
    categories = [r["category"] for r in csv.DictReader(io.StringIO(out.decode()))]
    # Genus also attaches clusters of one or two; compare where scipy's cut left larger ones.
    sizes = np.bincount(theirs, minlength=2 * len(points))
    kept = [i for i in range(10, len(points)) if sizes[theirs[i]] > 2 or (theirs[:10] == theirs[i]).any()]
    pairs = {(theirs[i], categories[i - 10]) for i in kept}
    same = len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    print("\n| SHC, 20,000 × 768 at once | scipy | Genus | ratio | Genus peak memory |\n|---|---|---|---|---|")
    print(f"| file to assignments | {peer:.0f} s | {ours:.1f} s | **{peer / ours:.0f}×** | {memory:.0f} MB |")
    print(f"\nThe same clusters: {'yes' if same else 'NO'}.", flush=True)


def growth(folder, rows):
    print("\n| `genus discover`, 768 features | SHC | | UKC | |\n|---|---|---|---|---|\n| points | time | peak memory | time | peak memory |")
    for n in (1_000, 5_000, 20_000):
        path, _, _ = pile(folder, n)
        cells = []
        for method in ("shc", "ukc"):
            elapsed, memory, _ = min(run_measured([GENUS, "discover", path, "--method", method, "--quiet"]) for _ in range(3))
            cells.append(f"{elapsed:.2f} s | {memory:.0f} MB")
        print(f"| {n:,} | {' | '.join(cells)} |", flush=True)
        if n == 5_000:
            result = os.path.join(folder, "result")
            run_measured([GENUS, "discover", path, "--out", result, "--quiet"])
    print("\n| `genus assign`, Parquet, 768 × f32 | file | time | rows/s | peak memory |\n|---|---|---|---|---|")
    n = 10_000
    while n <= rows:
        path = os.path.join(folder, "rows.parquet")
        size = timings("rows", n, 768, path)["bytes"]
        out = os.path.join(folder, "assigned")
        elapsed, memory, _ = run_measured([GENUS, "assign", "--taxonomy", result, "--query", path, "--out", out, "--quiet"])
        print(f"| {n:,} | {size / 1e9:.2f} GB | {elapsed:.2f} s | {n / elapsed:,.0f} | {memory:.0f} MB |", flush=True)
        n *= 10


def vision(folder):
    # PyTorch is large: only this part asks for it.
    import vision as beside_pytorch

    beside_pytorch.vision(folder, GENUS, VISION_TIMINGS, run_measured)


def engine(folder, rounds, threads):
    import engine as beside_others

    beside_others.engine(folder, GENUS, VISION_TIMINGS, run_measured, rounds, threads)


def train(batch, steps, rounds):
    import train as beside_pytorch

    beside_pytorch.compare_train(TRAINING_TIMINGS, run_measured, batch, steps, rounds)


def piles(folder, args):
    if not args.features:
        raise SystemExit("piles are drawn from a feature file with labels; name it with --features")
    import piles as beside_others

    kinds, methods = args.piles.split(","), args.methods.split(",")
    beside_others.piles(folder, GENUS, run_measured, args.features, args.split, kinds, methods, args.draws, args.shot)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="any of episodes, assign, large, growth, piles, vision, engine, train; by default the first two")
    parser.add_argument("--rows", type=float, default=1e6, help="the largest pile of growth")
    parser.add_argument("--batch", type=int, help="images of a step of train; by default what each case is trained with")
    parser.add_argument("--steps", type=int, default=1, help="timed steps of a run of train")
    parser.add_argument("--rounds", type=int, default=1, help="runs of train and rounds of engine, in turns")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of engine")
    parser.add_argument("--features", help="the feature file that piles are drawn from, an .npz with x and y")
    parser.add_argument("--split", help="a class split; piles are then drawn from its novel classes")
    parser.add_argument("--piles", default="24:20:8,24:200:8,24:6-200:8", help="piles as CLASSES:ITEMS:KNOWN, where items may be a ladder")
    parser.add_argument("--methods", default="calibrated", help="methods of Genus on piles")
    parser.add_argument("--draws", type=int, default=3, help="draws of a pile")
    parser.add_argument("--shot", type=int, default=5, help="examples of a known class of a pile")
    parser.add_argument("--folder", help="where large files go; a temporary folder by default")
    args = parser.parse_args()
    build()
    print(f"{os.cpu_count()} cores; Python {sys.version.split()[0]}, numpy {np.__version__}")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        parts = {
            "episodes": lambda: episodes(folder),
            "assign": assign,
            "large": lambda: large(folder),
            "growth": lambda: growth(folder, int(args.rows)),
            "piles": lambda: piles(folder, args),
            "vision": lambda: vision(folder),
            "engine": lambda: engine(folder, args.rounds, args.threads),
            "train": lambda: train(args.batch, args.steps, args.rounds),
        }
        for name in args.what or ["episodes", "assign"]:
            if name not in parts:
                raise SystemExit(f"there is no part {name}; the parts are {', '.join(parts)}")
            parts[name]()


if __name__ == "__main__":
    main()
