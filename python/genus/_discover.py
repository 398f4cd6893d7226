"""Piles of photographs and tables, sorted as the command line does it."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Any

import numpy as np

from genus import _genus
from genus._estimator import read_calibration
from genus._frames import frame
from genus._images import Pathlike, image_options
from genus._labels import Labels
from genus._matrix import checked
from genus._progress import listener


def given(items: Any, labels: Any = None) -> Any:
    """Items as the extension takes them: a path, or features with ids and labels."""
    if isinstance(items, (str, os.PathLike)):
        if labels is not None:
            raise ValueError("labels go with features in memory: a folder or a table has its own")
        return os.fspath(items)
    if isinstance(items, tuple) and len(items) == 2:
        items, labels = items
    features = checked(items)
    index = getattr(items, "index", None)
    # The rows of a DataFrame have names; those of a list have none.
    named = index is not None and hasattr(index, "tolist") and index.is_unique
    ids = [str(name) for name in index] if named and index is not None else None
    found = Labels.of(labels, len(features))
    names = found.names
    of_rows = [names[code] if code >= 0 else None for code in found.codes.tolist()]
    return features, ids or [str(row) for row in range(len(features))], of_rows


def discover(
    query: Any,
    support: Any = None,
    *,
    mixed: bool | None = None,
    method: str = "calibrated",
    calibration: _genus.Calibration | Pathlike | None = None,
    seed: int = 0,
    subset: int | None = None,
    refine: int = 0,
    encoder: Pathlike | None = None,
    weights: Pathlike | None = None,
    precision: str | None = None,
    cache: Pathlike | bool = True,
    strict: bool = False,
    truth: str | None = None,
    text: str | None = None,
    progress: bool | None = None,
) -> Discovery:
    """Sorts a pile into the classes of some examples and into new categories.

    ``query`` is a folder of photographs, a table of features, or features in memory; ``support`` has the labelled examples: a folder
    with one folder a class, a table with labels, or ``(X, y)``. With ``mixed`` the items of ``query`` that have a label are the
    examples (``query`` may be ``(X, y)``, for which that is the default). Without examples everything is new.

    Everything else is as on the command line: the same options and seed give the same files, byte for byte.
    """
    if mixed is None:
        mixed = support is None and isinstance(query, tuple)
    if mixed and support is not None:
        raise ValueError("with mixed the examples are among the items, and there is no support")
    found = _genus.discover(
        given(query),
        None if support is None else given(support),
        mixed,
        image_options(encoder, weights, precision, cache, strict),
        method,
        read_calibration(calibration),
        seed,
        subset,
        refine,
        truth,
        text,
        listener(progress),
    )
    return Discovery(found)


class Discovery:
    """What was found in a pile."""

    def __init__(self, found: _genus.Outcome) -> None:
        self._found = found

    def columns(self) -> dict[str, Any]:
        """Where every item went: the columns of ``assignments.csv``."""
        return self._found.assignments()

    @property
    def frame(self) -> Any:
        """Where every item went, as a DataFrame."""
        return frame(self.columns())

    @property
    def categories(self) -> Any:
        """The categories, as a DataFrame."""
        return frame(self._found.categories())

    @property
    def n_new(self) -> int:
        """How many new categories there are."""
        return self._found.categories()["kind"].count("new")

    @property
    def how(self) -> str:
        """The method and how it came to its end, in words."""
        return self._found.how

    @property
    def skipped(self) -> list[tuple[Path, str]]:
        """Images that could not be read, and why."""
        return self._found.skipped

    def report(self, path: Pathlike | None = None, *, progress: bool | None = None) -> Report:
        """The page that shows it. Jupyter shows it in the notebook; with a path it is written there too."""
        report = Report(self._found.html(listener(progress)))
        if path is not None:
            report.save(path)
        return report

    def map(self, *, progress: bool | None = None) -> Any:
        """Where the items are on a map: a DataFrame of id, category, x and y."""
        return frame(self._found.map(listener(progress)))

    def save(
        self, folder: Pathlike, *, format: str = "csv", report: bool = True, progress: bool | None = None
    ) -> Path | None:
        """Writes what the command line writes into a folder; with the page, its path."""
        return self._found.write(os.fspath(folder), format, report, listener(progress))

    def __len__(self) -> int:
        return len(self.columns()["id"])

    def __repr__(self) -> str:
        found = self._found.categories()
        known = found["kind"].count("known")
        return f"<genus.Discovery: {len(self)} items in {known} known and {self.n_new} new categories; {self.how}>"

    def _repr_html_(self) -> str:
        rows = zip(*(list(column) for column in self._found.categories().values()), strict=True)
        cells = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
        )
        head = "<tr><th>category</th><th>kind</th><th>items</th><th>unsure</th></tr>"
        return f"<p>{html.escape(self.how)}</p><table>{head}{cells}</table>"


class Report:
    """A page that stands alone."""

    def __init__(self, page: str) -> None:
        self.html = page

    def save(self, path: Pathlike) -> Path:
        """Writes it to a file, or into a folder as ``report.html``."""
        path = Path(path)
        if path.is_dir():
            path /= "report.html"
        path.write_text(self.html, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        page = html.escape(self.html, quote=True)
        return (
            f'<iframe srcdoc="{page}" style="width: 100%; height: 40rem; border: 1px solid #8884" '
            'sandbox="allow-scripts allow-popups" title="Genus report"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<genus.Report of {len(self.html):,} characters>"


def calibrate(
    items: Any,
    y: Any = None,
    *,
    seed: int = 0,
    encoder: Pathlike | None = None,
    weights: Pathlike | None = None,
    precision: str | None = None,
    cache: Pathlike | bool = True,
    progress: bool | None = None,
) -> _genus.Calibration:
    """Learns from many labelled items of other classes how far items of one class lie apart.

    ``items`` is a folder with one folder a class, a table with labels, or features, of which ``y`` has the labels.
    """
    if y is not None and isinstance(items, (str, os.PathLike)):
        raise ValueError("y goes with features in memory: a folder or a table has its own labels")
    source = given(items, None if y is None else np.asarray(y))
    options = image_options(encoder, weights, precision, cache)
    return _genus.calibrate(source, options, seed, listener(progress))
