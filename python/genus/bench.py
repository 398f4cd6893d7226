"""The paper's experiments for methods of your own: the same episodes, the same metrics, beside all methods of Genus.

>>> import numpy as np
>>> from genus import bench
>>> rng = np.random.default_rng(0)
>>> y = np.arange(400) % 10
>>> X = np.eye(10, 32)[y] + rng.normal(scale=0.2, size=(400, 32))
>>> data = bench.Dataset(X, y, name="directions")
>>> def nearest(support, classes, queries):
...     means = np.stack([support[classes == c].mean(axis=0) for c in np.unique(classes)])
...     return (queries @ means.T).argmax(axis=1)
>>> results = bench.compare(data, ["shc", "calibrated"], {"nearest mean": nearest}, episodes=5)
>>> results.frame["method"].tolist()
['shc', 'calibrated', 'nearest mean']

A method gets the features of the examples, the classes of these (numbers from 0), and the features of the queries. It says for every
query the number of a known class, or any other number, the same for queries of one new category.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from genus import _genus
from genus._frames import frame
from genus._images import Pathlike
from genus._labels import Labels
from genus._matrix import checked
from genus._progress import listener

__all__ = ["Dataset", "Episode", "Episodes", "Results", "compare", "episodes", "methods", "metrics", "run", "score"]

#: A method: features of the examples, their classes, features of the queries → a number a query.
Method = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]


def methods() -> dict[str, str]:
    """The methods and baselines by name, with what they do. Parameters go behind the name, as in ``"ukc:alpha=1.3"``."""
    return dict(_genus.method_table())


class Dataset:
    """Labelled features, and the classes that episodes are drawn from.

    ``novel`` names the classes that episodes are drawn from; then all others are base classes, which methods may learn from.
    """

    def __init__(self, X: Any, y: Any, *, name: str = "the features", novel: Iterable[Any] | None = None) -> None:
        self.X = checked(X)
        labels = Labels.of(y, len(self.X))
        of_rows = [labels.names[code] if code >= 0 else None for code in labels.codes.tolist()]
        chosen = None if novel is None else [str(label) for label in novel]
        missing = [label for label in chosen or [] if label not in set(labels.names)]
        if missing:
            raise ValueError(f"novel has the class {missing[0]!r}, and no row of y does")
        self._data = _genus.Dataset(self.X, of_rows, name, chosen)

    @classmethod
    def read(cls, path: Pathlike, *, split: Pathlike | None = None) -> Dataset:
        """Reads a feature file as ``genus bench --features`` does; with a split episodes are drawn from its novel classes."""
        data = cls.__new__(cls)
        data._data = _genus.Dataset.read(os.fspath(path), None if split is None else os.fspath(split))
        data.X = data._data.features
        return data

    @property
    def name(self) -> str:
        """What it is called."""
        return self._data.name

    @property
    def classes(self) -> list[str]:
        """The classes that episodes are drawn from."""
        return self._data.classes

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"<genus.bench.Dataset {self.name!r}: {rows} × {features}, {len(self.classes)} classes>"


@dataclass(frozen=True)
class Episode:
    """One trial: numbers of rows, and their classes, of which the known ones have the first numbers."""

    number: int
    classes: list[str]
    known: int
    support: np.ndarray = field(repr=False)
    support_classes: np.ndarray = field(repr=False)
    queries: np.ndarray = field(repr=False)
    truth: np.ndarray = field(repr=False)
    outliers: int = 0

    def score(self, predictions: Any) -> dict[str, Any]:
        """How right predictions for the queries are, by all metrics."""
        scored = len(self.queries) - self.outliers
        return metrics(self.truth[:scored], np.asarray(predictions)[:scored], known=self.known)


class Episodes(Sequence[Episode]):
    """Episodes, which are the same everywhere: by the same seed and shape the command line draws the same rows."""

    def __init__(self, drawn: _genus.Episodes) -> None:
        self._drawn = drawn

    @classmethod
    def read(cls, path: Pathlike) -> Episodes:
        """Reads a file of ``genus bench … --export-episodes``."""
        return cls(_genus.Episodes.read(os.fspath(path)))

    def write(self, path: Pathlike) -> None:
        """Writes the file that ``genus bench score --episodes`` takes."""
        self._drawn.write(os.fspath(path))

    def __len__(self) -> int:
        return len(self._drawn)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(f"there is no episode {at}: there are {len(self)}")
        return Episode(**self._drawn.episode(at % len(self)))

    def __iter__(self) -> Iterator[Episode]:
        return (self[number] for number in range(len(self)))


def _shaped(
    way: int, shot: int, new: int, query: int, episodes: int, seed: int, tail: Any, outliers: int, skip: bool
) -> dict[str, Any]:
    return {
        "way": way,
        "shot": shot,
        "new": new,
        "query": query,
        "episodes": episodes,
        "seed": seed,
        "tail": tail,
        "outliers": outliers,
        "skip_short_classes": skip,
    }


def episodes(
    data: Dataset,
    *,
    way: int = 5,
    shot: int = 5,
    new: int = 5,
    query: int = 15,
    episodes: int = 500,
    seed: int = 0,
    tail: tuple[int, int] | None = None,
    outliers: int = 0,
    skip_short_classes: bool = False,
) -> Episodes:
    """Draws episodes, as ``genus bench main`` does."""
    shaped = _shaped(way, shot, new, query, episodes, seed, tail, outliers, skip_short_classes)
    return Episodes(_genus.episodes(data._data, shaped))


def metrics(truth: Any, predictions: Any, *, known: int) -> dict[str, Any]:
    """All metrics of predictions: classes and predictions below ``known`` are known classes, others new.

    Gives ``paper``, ``authors-v2``, ``gcd-v1`` and ``gcd-v2``, each with ``all``, ``old`` and ``new``, and ``nmi``, ``ari`` and ``k``.
    """
    clusters = _clusters(predictions, known)
    return _genus.metrics(np.arange(known, dtype=np.int64), clusters, np.asarray(truth, dtype=np.int64))


def _clusters(predictions: Any, known: int) -> np.ndarray:
    """Predictions as numbers, those of new categories from the number of known classes on."""
    values = np.asarray(predictions)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise TypeError(
            "predictions are one whole number a query: below the number of known classes a known one, any other a new category"
        )
    new = (values < 0) | (values >= known)
    clusters = values.astype(np.int64)
    if new.any():
        _, first, at = np.unique(values[new], return_index=True, return_inverse=True)
        # Numbered as they come.
        order = np.empty(len(first), dtype=np.int64)
        order[np.argsort(first)] = np.arange(len(first))
        clusters[new] = known + order[at.reshape(-1)]
    return clusters


class Results:
    """How right methods are: ``frame``, ``latex()``, ``json()``, ``markdown()`` and ``csv()``."""

    def __init__(self, report: _genus.BenchReport) -> None:
        self._report = report

    def json(self) -> str:
        """Everything, as the command line's ``--json`` writes it."""
        return self._report.json()

    def latex(self) -> str:
        """The table for LaTeX, with the rules of booktabs."""
        return self._report.latex()

    def markdown(self) -> str:
        """The tables as Markdown."""
        return self._report.markdown()

    def csv(self) -> str:
        """The table as CSV."""
        return self._report.csv()

    @property
    def frame(self) -> Any:
        """A row a method, in percent with 95 % intervals, as a DataFrame."""
        rows = []
        for run in json.loads(self.json())["runs"]:
            parameters = "".join(f":{name}={value}" for name, value in run.get("parameters", {}).items())
            row: dict[str, Any] = {"method": run["method"] + parameters}
            for side in ("all", "old", "new"):
                row[side] = _percent(run[side]["mean"])
                row[f"{side}_ci95"] = _percent(run[side]["ci95"])
            row["k"] = run["k"]["mean"] if run.get("k") else None
            for name, value in run["metrics"].items():
                if "mean" in value:
                    row[name] = value["mean"]
                else:
                    row.update({f"{name} {side}": _percent(value[side]["mean"]) for side in ("all", "old", "new")})
            rows.append(row)
        return frame({name: [row[name] for row in rows] for name in rows[0]})

    def episodes(self, method: str) -> Any:
        """The episodes of a method one by one, as a DataFrame."""
        runs = [run for run in json.loads(self.json())["runs"] if run["method"] == method]
        if not runs:
            raise ValueError(f"there is no method {method!r} among the results")
        found = runs[0]["episodes"]
        return frame({name: [episode[name] for episode in found] for name in found[0]})

    def __add__(self, other: Results) -> Results:
        return Results(self._report.with_runs_of(other._report))

    def _repr_html_(self) -> str:
        return self.frame[["method", "all", "old", "new", "k", "nmi", "ari"]].round(2).to_html(index=False)


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


def run(
    data: Dataset,
    methods: Iterable[str] = (),
    *,
    way: int = 5,
    shot: int = 5,
    new: int = 5,
    query: int = 15,
    episodes: int = 500,
    seed: int = 0,
    tail: tuple[int, int] | None = None,
    outliers: int = 0,
    skip_short_classes: bool = False,
    progress: bool | None = None,
) -> Results:
    """Runs methods of Genus, by default those of the paper's table, on the episodes of a data set."""
    shaped = _shaped(way, shot, new, query, episodes, seed, tail, outliers, skip_short_classes)
    return Results(_genus.run_bench(data._data, list(methods), shaped, listener(progress)))


def score(drawn: Episodes, predictions: Any, *, method: str = "yours") -> Results:
    """Judges predictions: an array for every episode, in their order, or a file of predictions."""
    if isinstance(predictions, (str, os.PathLike)):
        return Results(drawn._drawn.score_file(method, os.fspath(predictions)))
    found = [
        _clusters(of_episode, episode.known).tolist() for episode, of_episode in zip(drawn, predictions, strict=True)
    ]
    return Results(drawn._drawn.score(method, found))


def compare(
    data: Dataset,
    methods: Iterable[str],
    own: Mapping[str, Method],
    *,
    progress: bool | None = None,
    **shape: Any,
) -> Results:
    """Methods of Genus beside methods of your own, on the same episodes. ``shape`` is that of :func:`episodes`."""
    chosen = list(methods)
    results = [run(data, chosen, progress=progress, **shape)] if chosen else []
    drawn = episodes(data, **shape)
    for name, method in own.items():
        found = []
        for episode in drawn:
            support, queries = data.X[episode.support], data.X[episode.queries]
            found.append(method(support, episode.support_classes, queries))
        results.append(score(drawn, found, method=name))
    if not results:
        raise ValueError("there is no method to compare: name some of genus.bench.methods(), or give your own")
    total = results[0]
    for more in results[1:]:
        total = total + more
    return total
