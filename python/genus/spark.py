"""Bulk jobs on Apache Spark, and items that are in a DataFrame already.

``run`` lets Spark run the shards of a job that ``genus bulk plan`` has planned. Only the numbers of the shards go through Spark: a worker starts
the program ``genus``, whose own readers open the files and whose parts are published as they are anywhere else, so that a worker, a
driver or a cluster may be lost at any time and what was published stays.

``assign`` is for features in a DataFrame: it adds where every item goes.

Both use nothing but ``mapInArrow``, and so they work on Spark Connect too. Workers need pyarrow and the program ``genus``, on their path
or sent with ``spark.archives``.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ShardError", "assign", "run", "shard_runner", "shards"]

#: What ``run`` says of a shard.
RECEIPT = "shard bigint, rows bigint, rejected bigint, was_done boolean, problem string"
#: What ``assign`` adds to every item.
ASSIGNMENT = "category string, kind string, score float, margin float, probability float"


class ShardError(RuntimeError):
    """Shards that could not be run; the others are done."""


def shards(job: str, *, command: str = "genus") -> tuple[str, int]:
    """The round that a job is in, and how many shards it has."""
    status = _genus(command, "bulk", "status", job, "--json")
    return status["round"], status["shards"]


def run(
    spark: SparkSession,
    job: str,
    *,
    command: str = "genus",
    threads: int = 1,
    reduce: bool = True,
    progress: Callable[[str, int], object] | None = None,
) -> dict[str, Any]:
    """Run all shards of a job on Spark, round by round, and reduce them.

    Args:
        spark: The session, of a cluster or of Spark Connect.
        job: The output place of the job, which every worker and this process must reach.
        command: The program ``genus`` where the workers are, such as ``./genus/bin/genus`` from ``spark.archives``.
        threads: Threads of a shard; as many as ``spark.task.cpus``.
        reduce: Whether the rounds are reduced, by this process; otherwise one round is run.
        progress: Hears the name and the number of shards of every round that begins.

    Returns:
        What came of the job (its summary), or of the round.

    Raises:
        ShardError: Shards failed for a reason of theirs, such as an input that has changed. The same call tries them again.
    """
    while True:
        name, count = shards(job, command=command)
        if progress is not None:
            progress(name, count)
        _describe(spark, f"genus {job}: {name}, {count} shards")
        numbers = spark.range(0, count, 1, numPartitions=count)
        receipts = numbers.mapInArrow(shard_runner(job, command, threads), RECEIPT).collect()
        failed = sorted((row.shard, row.problem) for row in receipts if row.problem is not None)
        if failed:
            lines = "\n".join(f"shard {shard}: {problem}" for shard, problem in failed)
            raise ShardError(f"{len(failed)} of {count} shards of {job} failed; the others are done\n{lines}")
        if not reduce:
            rows, rejected = (sum(row[at] for row in receipts) for at in ("rows", "rejected"))
            return {"round": name, "shards": count, "rows": rows, "rejected": rejected}
        reduced: dict[str, Any] = _genus(command, "bulk", "reduce", job, "--json")
        if "next" not in reduced:
            return reduced


def assign(
    df: DataFrame,
    taxonomy: str,
    *,
    features: str = "embedding",
    command: str = "genus",
    threads: int = 1,
) -> DataFrame:
    """Add where every item goes: category, kind, score, margin and probability.

    Args:
        df: Items, with their features in a column of arrays of floats; all other columns are kept.
        taxonomy: A folder of ``genus discover --out`` that every worker reaches.
        features: The column.
        command: The program ``genus`` where the workers are.
        threads: Threads of a task.
    """
    added = [field.split(" ")[0] for field in ASSIGNMENT.split(", ")]
    taken = [column for column in df.columns if column in added]
    if taken:
        raise ValueError(f"the DataFrame has columns {taken} already; rename them first")
    if features not in df.columns:
        raise ValueError(f'there is no column "{features}"; the DataFrame has {df.columns}')
    schema = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in df.schema.fields)
    return df.mapInArrow(_assigner(taxonomy, features, command, threads), f"{schema}, {ASSIGNMENT}")


def _genus(command: str, *arguments: str) -> dict[str, Any]:
    """What the program prints as JSON."""
    done = subprocess.run([command, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"{command} {' '.join(arguments)} ended with {done.returncode}")
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def _describe(spark: SparkSession, text: str) -> None:
    """Names the tasks on Spark's own page, where there is a way to say it; Spark Connect has tags instead."""
    try:
        spark.sparkContext.setJobDescription(text)
    except Exception:
        spark.addTag("genus")


# What runs on a worker is made of closures, which are pickled by value: workers need not have this package.


def shard_runner(
    job: str, command: str = "genus", threads: int = 1
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What runs on a worker: a function from batches whose first column has numbers of shards to batches of receipts."""

    def run_shards(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import json
        import subprocess

        import pyarrow as pa

        for batch in batches:
            for shard in batch.column(0).to_pylist():
                line = [
                    command,
                    "bulk",
                    "run",
                    job,
                    "--shard",
                    str(shard),
                    "--json",
                    "--quiet",
                    "--threads",
                    str(threads),
                ]
                # A shard that is lost with its worker is left to end: it is there once, whoever runs it again.
                done = subprocess.run(line, capture_output=True, text=True, check=False)
                said = json.loads(done.stdout) if done.stdout.strip() else {"done": [], "failed": []}
                receipts, failed = said["done"], said["failed"]
                problem = None
                if failed:
                    problem = failed[0]["error"]
                elif done.returncode != 0:
                    # Not of the shard but of the machine: Spark tries the task elsewhere.
                    raise RuntimeError(done.stderr.strip() or f"genus ended with {done.returncode}")
                yield pa.RecordBatch.from_pydict(
                    {
                        "shard": pa.array([shard], pa.int64()),
                        "rows": pa.array([sum(r["rows"] for r in receipts)], pa.int64()),
                        "rejected": pa.array([sum(r["rejected"] for r in receipts)], pa.int64()),
                        "was_done": pa.array([not receipts and not failed], pa.bool_()),
                        "problem": pa.array([problem], pa.string()),
                    }
                )

    return run_shards


def _assigner(
    taxonomy: str, features: str, command: str, threads: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def assign_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import subprocess
        import tempfile

        import pyarrow as pa
        import pyarrow.parquet as pq

        types = {"score": pa.float32(), "margin": pa.float32(), "probability": pa.float32()}
        with tempfile.TemporaryDirectory(prefix="genus-spark-") as folder:
            items, out = os.path.join(folder, "items.arrow"), os.path.join(folder, "out")
            for batch in batches:
                if batch.num_rows == 0:
                    continue
                column = batch.column(batch.schema.get_field_index(features))
                if column.null_count:
                    raise ValueError(f'the column "{features}" has rows without a value; leave them out before')
                table = pa.RecordBatch.from_arrays([column.cast(pa.list_(pa.float32()))], names=["embedding"])
                with pa.OSFile(items, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                    writer.write_batch(table)
                line = [
                    command,
                    "assign",
                    "--taxonomy",
                    taxonomy,
                    "--query",
                    items,
                    "--out",
                    out,
                    "--format",
                    "parquet",
                ]
                done = subprocess.run(
                    [*line, "--no-report", "--quiet", "--threads", str(threads)],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if done.returncode != 0:
                    raise RuntimeError(done.stderr.strip())
                found = pq.read_table(os.path.join(out, "assignments.parquet"))
                arrays, names = list(batch.columns), list(batch.schema.names)
                for name in ("category", "kind", "score", "margin", "probability"):
                    of_it = found.column(name).combine_chunks()
                    arrays.append(of_it.cast(types.get(name, pa.string())))
                    names.append(name)
                yield pa.RecordBatch.from_arrays(arrays, names=names)

    return assign_batches
