"""A loopback Spark cluster whose parts are killed while it runs bulk jobs: a test that is a program, as it installs and starts a lot.

    pip install 'pyspark[connect]>=4' pyarrow
    python python/tests/spark_cluster.py --genus target/release/genus

A master and two workers are started on 127.0.0.1. For every scenario a job is planned and run through ``genus.spark.run``, something is ended
with SIGKILL in the middle, and the same call is made again until it succeeds. Afterwards ``genus bulk verify`` must be clean and all files
must have the bytes of a run without Spark and without trouble. Only processes that this program started, or that these started, are
ended, by their numbers.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]

DRIVER = """
import importlib.util, sys
from pyspark.sql import SparkSession
path, master, job, command = sys.argv[1:5]
spec = importlib.util.spec_from_file_location("genus_spark", path)
genus_spark = importlib.util.module_from_spec(spec)
spec.loader.exec_module(genus_spark)
builder = SparkSession.builder.appName("genus")
if master.startswith("sc://"):
    spark = builder.remote(master).getOrCreate()
else:
    builder = builder.master(master).config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.ui.enabled", "false").config("spark.executor.memory", "512m").config("spark.cores.max", "2").getOrCreate()
if len(sys.argv) > 5:
    pile, taxonomy = sys.argv[5:7]
    df = spark.read.parquet(pile)
    rows = genus_spark.assign(df, taxonomy, command=command).select("id", "category", "kind", "score").collect()
    print(len(rows), *(f"{row.id},{row.category},{row.kind},{row.score:.6f}" for row in sorted(rows, key=lambda row: row.id)), sep="\\n")
else:
    print(genus_spark.run(spark, job, command=command)["rows"])
spark.stop()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def descendants(pid: int) -> list[tuple[int, str]]:
    """The processes below one, with their command lines."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            try:
                found.append((child, (Path("/proc") / str(child) / "cmdline").read_text().replace("\0", " ")))
            except OSError:
                continue
            waiting.append(child)
    return found


def tree(folder: Path) -> dict[str, str]:
    """The hash of every file of a job, but for what says who is at work."""
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and "running" not in name.parts and not path.name.startswith("."):
            files[str(name)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return files


class Cluster:
    """A master and two workers."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self.home = Path(pyspark.__file__).parent
        self.folder = folder
        self.port = free_port()
        self.master = self.start_master()
        self.workers = [self.start_worker(at) for at in range(2)]

    @property
    def address(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{name}.log").open("ab")
        environment = {
            **os.environ,
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
        }
        environment["PYSPARK_PYTHON"] = sys.executable
        return subprocess.Popen([self.home / "bin/spark-class", *words], stdout=log, stderr=log, env=environment)

    def start_master(self) -> subprocess.Popen[bytes]:
        words = ("--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0")
        return self.start("master", "org.apache.spark.deploy.master.Master", *words)

    def start_worker(self, at: int) -> subprocess.Popen[bytes]:
        words = (
            "--host",
            "127.0.0.1",
            "--cores",
            "1",
            "--memory",
            "1g",
            "--webui-port",
            "0",
            "--work-dir",
            str(self.folder / f"work{at}"),
        )
        return self.start(f"worker{at}", "org.apache.spark.deploy.worker.Worker", *words, self.address)

    def kill_worker(self) -> str:
        at = random.randrange(2)
        worker = self.workers[at]
        victims = [
            worker.pid,
            *(pid for pid, line in descendants(worker.pid) if "CoarseGrainedExecutorBackend" in line),
        ]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        worker.wait()
        self.workers[at] = self.start_worker(at)
        return f"worker {at} and its executors ({victims})"

    def kill_master(self) -> str:
        pid = self.master.pid
        self.master.kill()
        self.master.wait()
        self.master = self.start_master()
        return f"the master ({pid})"

    def kill_python(self) -> str:
        pids = [
            pid
            for worker in self.workers
            for pid, line in descendants(worker.pid)
            if "pyspark.daemon" in line or "pyspark/daemon" in line
        ]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return f"Python workers {pids}"

    def stop(self) -> None:
        for process in (*self.workers, self.master):
            process.terminate()
        for process in (*self.workers, self.master):
            process.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genus", default=shutil.which("genus"), required=shutil.which("genus") is None)
    parser.add_argument("--shards", type=int, default=24)
    parser.add_argument("--rows", type=int, default=2000, help="of a shard")
    parser.add_argument("--scenarios", default="none,worker,master,python,driver,dataframe,connect")
    args = parser.parse_args()
    genus = str(Path(args.genus).resolve())
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(tempfile.mkdtemp(prefix="genus-spark-test-"))
    draw = random.Random(5)
    (folder / "pile").mkdir()
    for shard in range(args.shards):
        lists = [[0.4 * draw.random() + float(column == row % 6) for column in range(16)] for row in range(args.rows)]
        ids = [f"{shard}-{row}" for row in range(args.rows)]
        table = pa.table({"id": ids, "embedding": pa.array(lists, pa.list_(pa.float32()))})
        pq.write_table(table, folder / f"pile/{shard:03}.parquet")

    def run(*words: str) -> str:
        return subprocess.run([genus, *words], check=True, capture_output=True, text=True, cwd=folder).stdout

    run("discover", "pile/000.parquet", "--out", "taxonomy", "--no-report")
    plan = ("bulk", "plan", str(folder / "pile"), "--taxonomy", "taxonomy", "--shard-mb", "0", "--no-estimate")
    run(*plan, "--out", "quiet")
    run("bulk", "run", "quiet", "--all")
    quiet = tree(folder / "quiet")
    driver = folder / "driver.py"
    driver.write_text(DRIVER)
    cluster = Cluster(folder)

    def drive(job: str, *more: str, master: str | None = None) -> subprocess.Popen[str]:
        words = [sys.executable, driver, PACKAGE / "genus/spark.py", master or cluster.address, job, genus, *more]
        log = (folder / "driver.log").open("a")
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        return subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, start_new_session=True
        )

    def check(job: str) -> None:
        run("bulk", "verify", job)
        found = tree(folder / job)
        assert found == quiet, f"{job}: other files or bytes than those of an undisturbed run"

    try:
        time.sleep(5)
        for scenario in args.scenarios.split(","):
            job = f"job-{scenario}"
            start, tries, said = time.time(), 0, []
            if scenario in ("dataframe", "connect"):
                expected = run("assign", "--taxonomy", "taxonomy", "--query", "pile/001.parquet")
                rows = sorted(line.split(",") for line in expected.splitlines()[1:])
                server, master = None, None
                if scenario == "connect":
                    run(*plan, "--out", job)
                    port = free_port()
                    words = [
                        "--master",
                        cluster.address,
                        "--conf",
                        f"spark.connect.grpc.binding.port={port}",
                        "--conf",
                        "spark.driver.host=127.0.0.1",
                    ]
                    words += [
                        "--conf",
                        "spark.executor.memory=512m",
                        "--conf",
                        "spark.cores.max=2",
                        "--conf",
                        "spark.ui.enabled=false",
                    ]
                    words += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
                    server = cluster.start("connect", "org.apache.spark.deploy.SparkSubmit", *words)
                    master = f"sc://127.0.0.1:{port}"
                    time.sleep(20)
                process = drive(
                    str(folder / job), str(folder / "pile/001.parquet"), str(folder / "taxonomy"), master=master
                )
                lines = process.communicate(timeout=600)[0].splitlines()
                assert process.returncode == 0, (folder / "driver.log").read_text()[-3000:]
                assert lines[0] == str(len(rows))
                assert lines[1:] == [",".join(row[:4]) for row in rows]
                if server is not None:
                    process = drive(str(folder / job), master=master)
                    process.communicate(timeout=600)
                    assert process.returncode == 0, (folder / "driver.log").read_text()[-3000:]
                    check(job)
                    server.terminate()
                    server.wait(60)
                print(
                    f"{scenario}: {lines[0]} rows as `genus assign` has them, {time.time() - start:.0f} s", flush=True
                )
                continue
            run(*plan, "--out", job)
            done = folder / job / "assignments/done"
            while True:
                tries += 1
                process = drive(str(folder / job))
                # Now and then between the first shard and the last.
                goal = random.randrange(1, args.shards - 2)
                while process.poll() is None:
                    count = len(list(done.glob("*.json"))) if done.is_dir() else 0
                    if scenario != "none" and not said and count >= goal:
                        if scenario == "driver":
                            # The driver's JVM is below the driver.
                            victims = [process.pid, *(pid for pid, _ in descendants(process.pid))]
                            for pid in victims:
                                os.kill(pid, signal.SIGKILL)
                            said.append(f"the driver ({victims}) at {count} shards")
                        else:
                            said.append(f"{getattr(cluster, f'kill_{scenario}')()} at {count} shards")
                    time.sleep(0.05)
                if process.returncode == 0:
                    break
                assert tries < 5, (folder / "driver.log").read_text()[-3000:]
            assert scenario == "none" or said, "nothing was killed: the run was too short"
            check(job)
            print(
                f"{scenario}: {' '.join(said) or 'undisturbed'}, {tries} calls, {time.time() - start:.0f} s", flush=True
            )
    finally:
        cluster.stop()
    shutil.rmtree(folder)
    print("all files have the bytes of an undisturbed run")


if __name__ == "__main__":
    main()
