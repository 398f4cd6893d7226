"""The same numbers, options and seed give the same bytes here and on the command line."""

import csv
import json

import numpy as np
import pytest

import genus
from genus import CategoryDiscovery, bench


@pytest.fixture
def table(pile, tmp_path):
    X, y, _ = pile
    path = tmp_path / "items.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", *(f"f{i}" for i in range(X.shape[1]))])
        for row, (label, values) in enumerate(zip(y, X, strict=True)):
            writer.writerow([row, label or "", *(repr(float(value)) for value in values)])
    return path


@pytest.mark.parametrize(
    ("method", "seed", "more"), [("calibrated", 0, []), ("ukc", 5, []), ("shc", 0, ["--subset", "90"])]
)
def test_assignments_are_the_same_bytes(command, table, pile, tmp_path, method, seed, more):
    X, y, _ = pile
    command("discover", table, "--out", tmp_path / "cli", "-m", method, "--seed", seed, *more)
    subset = int(more[1]) if more else None
    found = genus.discover(table, mixed=True, method=method, seed=seed, subset=subset)
    found.save(tmp_path / "here")
    expected = (tmp_path / "cli" / "assignments.csv").read_bytes()
    assert (tmp_path / "here" / "assignments.csv").read_bytes() == expected
    assert (tmp_path / "here" / "centres.safetensors").read_bytes() == (
        tmp_path / "cli" / "centres.safetensors"
    ).read_bytes()

    estimator = CategoryDiscovery(method, random_state=seed, subset=subset).fit(X, y)
    rows = list(csv.DictReader((tmp_path / "cli" / "assignments.csv").open()))
    assert [estimator.labels_[int(row["id"])] for row in rows] == [row["category"] for row in rows]
    if method == "calibrated":
        said = np.array([float(row["probability"]) for row in rows])
        assert np.abs(estimator.probabilities_[[int(row["id"]) for row in rows]] - said).max() < 1e-6
    here = genus.discover((X, y), method=method, seed=seed, subset=subset)
    assert here.columns()["category"] == [row["category"] for row in rows]


def test_predict_is_assign(command, table, pile, tmp_path):
    X, y, _ = pile
    command("discover", table, "--out", tmp_path / "cli")
    np.save(tmp_path / "more.npy", X * 2)
    command("assign", "--taxonomy", tmp_path / "cli", "--query", tmp_path / "more.npy", "--out", tmp_path / "assigned")
    rows = list(csv.DictReader((tmp_path / "assigned" / "assignments.csv").open()))
    assert [row["category"] for row in rows] == CategoryDiscovery().fit(X, y).predict(X * 2).tolist()


def test_episodes_are_those_of_the_command_line(command, tmp_path):
    if "--export-episodes" not in command("bench", "main", "--help").stdout:
        pytest.skip("this command line exports no episodes")
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 25)
    X = (np.eye(12, 32)[y] + rng.normal(scale=0.2, size=(300, 32))).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=X, y=np.array([f"c{k:02}" for k in y]))
    shape = {"way": 3, "shot": 2, "new": 4, "query": 6, "episodes": 5, "seed": 7}
    arguments = [f"--{name}={value}" for name, value in shape.items()]
    exported, results = tmp_path / "episodes.jsonl", tmp_path / "results.json"
    command(
        "bench", "main", "--features", tmp_path / "data.npz", *arguments, "--methods", "shc,ukc",
        "--export-episodes", exported, "--json", results,
    )  # fmt: skip
    data = bench.Dataset.read(tmp_path / "data.npz")
    drawn, read = bench.episodes(data, **shape), bench.Episodes.read(exported)
    assert len(drawn) == len(read) == 5
    for here, there in zip(drawn, read, strict=True):
        assert here.classes == there.classes
        assert (here.support == there.support).all()
        assert (here.queries == there.queries).all()
        assert (here.truth == there.truth).all()
    here, there = json.loads(bench.run(data, ["shc", "ukc"], **shape).json()), json.loads(results.read_text())
    assert here["runs"] == there["runs"]

    # What a method of one's own says goes through a file as well.
    predictions = tmp_path / "predictions.jsonl"
    guessed = [episode.truth % 5 for episode in drawn]
    with predictions.open("w") as file:
        for number, labels in enumerate(guessed):
            file.write(json.dumps({"episode": number, "predictions": labels.tolist()}) + "\n")
    scored = tmp_path / "scored.json"
    command("bench", "score", "--episodes", exported, "--predictions", predictions, "--json", scored)
    assert (
        json.loads(scored.read_text())["runs"][0]["metrics"]
        == json.loads(bench.score(drawn, guessed).json())["runs"][0]["metrics"]
    )
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"episode": 0, "predictions": [1]}\n')
    failed = command("bench", "score", "--episodes", exported, "--predictions", wrong, ok=False)
    assert failed.returncode == 1
    assert "1 predictions, and 42 queries" in failed.stderr
