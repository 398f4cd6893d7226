"""Bulk jobs beside the commands that do the same on one machine.

    pip install numpy scipy pyarrow
    python3 bench/bulk.py rate --genus target/release/genus             # `bulk run --all` beside `assign`, in turns
    python3 bench/bulk.py growth --genus target/release/genus --rows 1e7 # constant memory
    python3 bench/bulk.py discovery --genus target/release/genus --features ../shared/data/features/tinyimagenet_large_lite2.npz
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DIM = 768


def write_parquet(path, values, ids):
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    table = pa.table({"id": ids, "embedding": lists})
    pq.write_table(table, path, row_group_size=10_000, compression="none", use_dictionary=False)


def made_up(rows, seed, categories=100):
    """Rows around so many directions."""
    draw = np.random.default_rng(seed)
    directions = np.random.default_rng(0).standard_normal((categories, DIM), dtype=np.float32)
    return directions[draw.integers(categories, size=rows)] + 0.7 * draw.standard_normal((rows, DIM), dtype=np.float32)


# Between this program and the measured one: what a child is said to have used at most includes what its parent had when it was started.
MEASURE = """
import json, os, subprocess, sys, time
start = time.time()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
said = process.stderr.read().decode()
_, status, usage = os.wait4(process.pid, 0)
assert status == 0, said
print(json.dumps([time.time() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
"""


def measured(*words, cwd):
    """Seconds by the clock, seconds of processors, and the most memory in MB."""
    command = [sys.executable, "-S", "-c", MEASURE, *(str(word) for word in words)]
    return json.loads(subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, check=True).stdout)


def taxonomy(genus, folder):
    first = folder / "first.parquet"
    write_parquet(first, made_up(2000, 1), [str(at) for at in range(2000)])
    measured(genus, "discover", first, "--out", folder / "taxonomy", "--no-report", "--method", "calibrated", cwd=folder)
    first.unlink()


def rate(args, folder):
    rows, files = int(float(args.rows)), 8
    taxonomy(args.genus, folder)
    (folder / "pile").mkdir()
    for at in range(files):
        ids = [f"{at}-{row}" for row in range(rows // files)]
        write_parquet(folder / f"pile/{at}.parquet", made_up(rows // files, at), ids)
    # `assign` takes one file: all of them, one after the other.
    tables = [pq.read_table(folder / f"pile/{at}.parquet") for at in range(files)]
    pq.write_table(pa.concat_tables(tables), folder / "all.parquet", row_group_size=10_000, compression="none", use_dictionary=False)
    del tables
    for round_number in range(args.rounds):
        for form in ("parquet", "csv"):
            out = folder / f"assigned-{form}-{round_number}"
            words = ["--taxonomy", folder / "taxonomy", "--query", folder / "all.parquet", "--out", out, "--no-report"]
            clock, work, memory = measured(args.genus, "assign", *words, "--format", form, cwd=folder)
            print(f"assign {form}: {rows / clock:,.0f} rows/s, {rows / work:,.0f} a second of processor, {memory:.0f} MB")
            job = folder / f"job-{form}-{round_number}"
            plan = ["--taxonomy", folder / "taxonomy", "--out", job, "--no-estimate", "--format", form, "--shard-mb", "64"]
            measured(args.genus, "bulk", "plan", folder / "pile", *plan, cwd=folder)
            clock, work, memory = measured(args.genus, "bulk", "run", job, "--all", cwd=folder)
            print(f"bulk run --all {form}: {rows / clock:,.0f} rows/s, {rows / work:,.0f} a second of processor, {memory:.0f} MB")


def growth(args, folder):
    """A job of so many rows that take the room of one file: all inputs are one file by many names."""
    rows, each = int(float(args.rows)), 100_000
    taxonomy(args.genus, folder)
    (folder / "pile").mkdir()
    count = rows // each
    template = folder / "template.parquet"
    write_parquet(template, made_up(each, 1), [str(at) for at in range(each)])
    for at in range(count):
        os.link(template, folder / f"pile/{at:06}.parquet")
    plan = ["--taxonomy", folder / "taxonomy", "--out", folder / "job", "--no-estimate"]
    measured(args.genus, "bulk", "plan", folder / "pile", *plan, cwd=folder)
    size = template.stat().st_size
    clock, work, most = measured(args.genus, "bulk", "run", folder / "job", "--all", cwd=folder)
    summary = json.loads((folder / "job/summary.json").read_text())
    assert summary["rows"] == count * each
    measured(args.genus, "bulk", "verify", folder / "job", cwd=folder)
    print(f"{count * each:,} rows, {count * size / 1e9:.1f} GB read: {clock:.1f} s, {count * each / clock:,.0f} rows/s, {most:.0f} MB")


def accuracy(truth, found):
    """The share of items that are right when every category may be one class."""
    from scipy.optimize import linear_sum_assignment

    classes, categories = np.unique(truth, return_inverse=True)[1], np.unique(found, return_inverse=True)[1]
    table = np.zeros((classes.max() + 1, categories.max() + 1), int)
    np.add.at(table, (classes, categories), 1)
    rows, columns = linear_sum_assignment(-table)
    return table[rows, columns].sum() / len(truth), categories.max() + 1


def discovery(args, folder):
    data = np.load(args.features)
    x, y = data["x"].astype(np.float32), data["y"]
    ids = np.array([f"item-{at}" for at in range(len(x))])
    order = np.random.default_rng(7).permutation(len(x))
    if args.items:
        order = order[: args.items]
    (folder / "pile").mkdir()
    for at, part in enumerate(np.array_split(order, 12)):
        write_parquet(folder / f"pile/{at:02}.parquet", x[part], list(ids[part]))
    write_parquet(folder / "all.parquet", x[order], list(ids[order]))
    truth = dict(zip(ids, y, strict=True))

    def said(files):
        table = pa.concat_tables(pq.read_table(file) for file in files).to_pydict()
        share, count = accuracy(np.array([truth[name] for name in table["id"]]), np.array(table["category"]))
        return f"{100 * share:.1f} % of {len(table['id']):,} items, {count} categories"

    clock, _, memory = measured(
        args.genus, "discover", folder / "all.parquet", "--out", folder / "one", "--no-report", "--format", "parquet", cwd=folder
    )
    print(f"discover on one machine: {said([folder / 'one/assignments.parquet'])}, {clock:.0f} s, {memory:.0f} MB", flush=True)
    for sample in args.samples:
        job = folder / f"job-{sample}"
        plan = ["--discover", "--sample", sample, "--out", job, "--shard-mb", "0", "--no-estimate"]
        measured(args.genus, "bulk", "plan", folder / "pile", *plan, cwd=folder)
        clock, _, memory = measured(args.genus, "bulk", "run", job, "--all", cwd=folder)
        print(f"bulk, sample of {sample}: {said(sorted((job / 'assignments/parts').iterdir()))}, {clock:.0f} s, {memory:.0f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rate", "growth", "discovery"])
    parser.add_argument("--genus", required=True, type=Path)
    parser.add_argument("--rows", default="4e5")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--features", type=Path)
    parser.add_argument("--items", type=int, help="only so many of the features")
    parser.add_argument("--samples", type=int, nargs="+", default=[20_000, 5_000])
    args = parser.parse_args()
    args.genus = args.genus.resolve()
    folder = Path(tempfile.mkdtemp(prefix="genus-bulk-"))
    try:
        {"rate": rate, "growth": growth, "discovery": discovery}[args.what](args, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
