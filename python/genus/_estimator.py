"""The estimator: scikit-learn's contract over the library."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from genus import _genus
from genus._labels import Labels, names, with_new
from genus._matrix import checked
from genus._progress import listener


class CategoryDiscovery(TransformerMixin, ClassifierMixin, BaseEstimator):
    """Sorts items into the classes that some of them are labelled with, and into new categories.

    Which items belong together is found in :meth:`fit`, among all of them. :meth:`predict` looks at every item by itself: what it
    says of one never depends on those beside it.

    Parameters
    ----------
    method : str, default="calibrated"
        The method with its parameters, as on the command line: ``"shc"``, ``"ukc:alpha=1.3"``, …
    calibration : Calibration, path or "embedded", default=None
        What is known of the features: of :func:`genus.calibrate`, a file of ``genus calibrate``, or ``"embedded"`` for features that
        :func:`genus.embed` makes without being told an encoder. By default the labelled items say it.
    random_state : int, RandomState or None, default=0
        The seed of what is random. An integer is the ``--seed`` of the command line.
    subset : int, default=None
        Cluster so many random items and assign the others; by default 5,000 where there are more than 20,000.
    refine : int, default=0
        Passes of k-means over all items before they are assigned.
    verbose : bool, default=False
        Whether progress is shown.

    Attributes
    ----------
    classes_ : ndarray
        The labels of the categories: the known ones sorted, then the new ones, the largest first. New ones are called ``"new-1"``
        and so on beside strings, and numbered on beside integers.
    labels_ : ndarray
        The category of every row; that of a labelled row is its label.
    probabilities_ : ndarray of float32
        How likely every row belongs there; NaN where the method does not say.
    unsure_ : ndarray of bool
        The rows whose category is only the best guess.
    n_new_ : int
        How many new categories there are.
    new_ : ndarray of bool
        Which of the categories are new.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from genus import CategoryDiscovery
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(4, 16), 20, axis=0) + rng.normal(scale=0.1, size=(80, 16))
    >>> y = np.full(80, None, dtype=object)
    >>> y[:5], y[20:25] = "cat", "dog"
    >>> found = CategoryDiscovery().fit(X, y)
    >>> found.classes_.tolist()
    ['cat', 'dog', 'new-1', 'new-2']

    """

    def __init__(
        self,
        method: str = "calibrated",
        *,
        calibration: _genus.Calibration | str | os.PathLike[str] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        subset: int | None = None,
        refine: int = 0,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.calibration = calibration
        self.random_state = random_state
        self.subset = subset
        self.refine = refine
        self.verbose = verbose

    # ---- fitting

    def fit(self, X: Any, y: Any = None) -> CategoryDiscovery:
        """Finds the categories of all rows.

        ``y`` has the labels that are known, and -1, None, NaN or "" where none is. Without any everything is new.
        """
        X = checked(X, estimator=self)
        self._nowhere = _nowhere(X)
        X, zero = self._directed(X)
        labels = Labels.of(y, len(X))
        if y is not None and not (labels.codes >= 0).any():
            raise ValueError("y has no label in any row: leave it out, as in fit(X), to discover without examples")
        if len(labels.codes) and (labels.codes >= 0).all():
            warnings.warn(
                "every row of y has a label, so there is nothing to discover: mark rows as unlabelled with -1, None, "
                'NaN or ""',
                stacklevel=2,
            )
        self._stream: _genus.Stream | None = None
        self._rows = np.empty(0, dtype=np.int64)
        taxonomy, found = _genus.discover_rows(
            X,
            labels.codes,
            labels.names,
            self._method(),
            read_calibration(self.calibration),
            self._seed(),
            self._whole("subset", self.subset, least=1, optional=True),
            self._whole("refine", self.refine, least=0),
            listener(True) if self.verbose else None,
        )
        self._kind = labels.kind
        self._take(taxonomy, labels.classes)
        categories, _, _, probabilities, unsure = found
        self._put(categories, probabilities, unsure | (zero & (labels.codes < 0)))
        return self

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Finds the categories of all rows: the category of each."""
        return self.fit(X, y).labels_

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> CategoryDiscovery:
        """Sees some more rows, one after the other, as a stream brings them.

        The first call needs examples: labelled rows of every class. An unlabelled row joins a category or waits until others agree
        with it and a new one begins. A labelled one joins the category of its label. ``labels_``, ``probabilities_`` and ``unsure_``
        are of all rows so far: one that waits has its best guess, and is unsure. After :meth:`fit` the stream goes on from there.
        """
        first = not hasattr(self, "classes_")
        X = checked(X, estimator=self, reset=first)
        if first:
            self._nowhere = _nowhere(X)
        X, _ = self._directed(X)
        if first:
            self._begin(X, y, classes)
            return self
        codes = self._codes(y, len(X), classes)
        if self._stream is None:
            self._stream = _genus.Stream.of(self._taxonomy)
        self._see(X, codes, len(self._categories) + np.arange(len(X)))
        return self

    def _begin(self, X: np.ndarray, y: Any, classes: Any) -> None:
        labels = Labels.of(y, len(X))
        examples = labels.codes >= 0
        if not examples.any():
            raise ValueError(
                "the first call of partial_fit needs labelled rows: examples of every class, from which a stream begins"
            )
        if classes is not None:
            wanted = Labels.of(classes, len(classes)).classes
            missing = [str(label) for label in wanted if label not in set(labels.classes)]
            if missing:
                raise ValueError(
                    f"the first call of partial_fit has no example of class {', '.join(missing)}: give some of every class"
                )
        stream = _genus.stream_of_rows(
            X, labels.codes, labels.names, self._method(), read_calibration(self.calibration), self._seed()
        )
        self._stream, self._kind = stream, labels.kind
        self._rows = np.empty(0, dtype=np.int64)
        self._take(stream.taxonomy(), labels.classes)
        self._put(np.maximum(labels.codes, 0), np.ones(len(X), dtype=np.float32), np.zeros(len(X), dtype=bool))
        pile = np.flatnonzero(~examples)
        self._see(X[pile], np.full(len(pile), -1, dtype=np.int64), pile)

    def _see(self, X: np.ndarray, codes: np.ndarray, rows: np.ndarray) -> None:
        """Lets the stream see rows, which have these numbers among all."""
        assert self._stream is not None
        if not len(rows):
            return
        _, places, over, settled = self._stream.observe(np.ascontiguousarray(X), codes)
        self._take(self._stream.taxonomy(), self.classes_)
        self._rows = np.concatenate([self._rows, rows])
        more = max(0, int(rows.max()) + 1 - len(self._categories))
        columns = self._categories, self.probabilities_, self.unsure_
        grown = [np.concatenate([column, np.zeros(more, dtype=column.dtype)]) for column in columns]
        for at, (category, _, _, probability, doubt) in ((rows, places), (self._rows[over], settled)):
            for column, values in zip(grown, (category, probability, doubt), strict=True):
                column[at] = values
        waiting = self._rows[self._stream.waiting()]
        grown[2][rows] |= np.isin(rows, waiting)
        self._put(*grown)

    def _put(self, categories: np.ndarray, probabilities: np.ndarray, unsure: np.ndarray) -> None:
        """Says where all rows are."""
        self._categories = categories
        self.labels_ = self.classes_[categories]
        self.probabilities_ = probabilities
        self.unsure_ = unsure

    def _take(self, taxonomy: _genus.Taxonomy, classes: np.ndarray) -> None:
        """Takes categories, the first of which have these labels already."""
        all_classes = with_new(classes, self._kind, taxonomy.names[len(classes) :])
        self._taxonomy = taxonomy
        self.classes_ = all_classes
        self.new_ = ~np.array(taxonomy.known, dtype=bool)
        self.n_new_ = int(self.new_.sum())

    # ---- what was found, for other items

    def predict(self, X: Any) -> np.ndarray:
        """The category of every row by itself, known or new."""
        categories = self._assigned(X)[0]
        return self.classes_[categories]

    def predict_proba(self, X: Any) -> np.ndarray:
        """How likely every row belongs to each of ``classes_``, if it belongs to one of them.

        Whether it belongs to any is another question, which :meth:`is_unsure` answers.
        """
        check_is_fitted(self)
        return self._taxonomy.memberships(self._directed(checked(X, estimator=self, reset=False))[0])

    def is_unsure(self, X: Any) -> np.ndarray:
        """The rows whose category is only the best guess: look at those. Methods that do not say are never unsure."""
        return self._assigned(X)[4]

    def transform(self, X: Any) -> np.ndarray:
        """The cosine of every row with the centre of every category."""
        check_is_fitted(self)
        return self._taxonomy.similarities(self._directed(checked(X, estimator=self, reset=False))[0])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns of :meth:`transform`."""
        check_is_fitted(self)
        return np.array([f"category_{name}" for name in names(self.classes_)], dtype=object)

    def _assigned(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        check_is_fitted(self)
        X, zero = self._directed(checked(X, estimator=self, reset=False))
        categories, similarities, margins, probabilities, unsure = self._taxonomy.assign(X)
        return categories, similarities, margins, probabilities, unsure | zero

    def _directed(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows that have a direction, and which had none: rows of zeros are taken for what is in the middle of all."""
        zero = np.asarray(~X.any(axis=1))
        if zero.any():
            rows = ", ".join(str(row) for row in np.flatnonzero(zero)[:5])
            warnings.warn(f"rows of zeros have no direction, so nothing is sure of them: row {rows}", stacklevel=3)
            X = np.where(zero[:, None], self._nowhere, X)
        return X, zero

    # ---- what people say

    def rename(self, label: Any, to: Any) -> CategoryDiscovery:
        """Gives a category another label, of the same type."""
        at, to = self._at(label), self._like(to)
        if to in self.classes_.tolist() and to != self.classes_[at]:
            raise ValueError(f"there is a category {to!r} already: merge({to!r}, {label!r}) makes them one")
        if self._kind == "str":
            self._hold(self._held().renamed(at, to))
        classes = self.classes_.tolist()
        classes[at] = to
        self._call(classes)
        return self

    def merge(self, label: Any, *others: Any) -> CategoryDiscovery:
        """Makes categories one, which has the first label."""
        for other in others:
            first, second = self._at(label), self._at(other)
            if first == second:
                raise ValueError(f"{label!r} cannot be merged with itself")
            merged, now = self._held().merged(first, second)
            before = self.classes_.tolist()
            classes = [before[first]] * (len(before) - 1)
            for at, kept in enumerate(before):
                if at not in (first, second):
                    classes[now[at]] = kept
            self._categories = np.array(now)[self._categories]
            self._hold(merged)
            self._call(classes)
        return self

    def _held(self) -> Any:
        """What holds the categories: a stream, once there is one."""
        return self._taxonomy if self._stream is None else self._stream

    def _hold(self, changed: Any) -> None:
        if self._stream is None:
            self._taxonomy = changed
        else:
            self._stream, self._taxonomy = changed, changed.taxonomy()

    def _call(self, classes: list[Any]) -> None:
        """Lets the categories be called so."""
        self.classes_ = np.array(classes, dtype=object if self.classes_.dtype == object else None)
        self.new_ = ~np.array(self._taxonomy.known, dtype=bool)
        self.n_new_ = int(self.new_.sum())
        self.labels_ = self.classes_[self._categories]

    def _at(self, label: Any) -> int:
        check_is_fitted(self)
        found = [at for at, known in enumerate(self.classes_.tolist()) if known == label]
        if not found:
            known = ", ".join(repr(known) for known in self.classes_.tolist()[:20])
            raise ValueError(f"there is no category {label!r}; there are {known}")
        return found[0]

    def _like(self, label: Any) -> Any:
        """A label that goes with the others."""
        fits = isinstance(label, str) if self._kind == "str" else isinstance(label, (int, np.integer))
        if not fits or isinstance(label, bool):
            kind = "strings" if self._kind == "str" else "integers"
            raise TypeError(f"{label!r} does not go with the labels of y, which are {kind}")
        if label in ("", -1):
            raise ValueError(f"{label!r} says that there is no label")
        return label

    def _codes(self, y: Any, rows: int, classes: Any) -> np.ndarray:
        """The numbers of the categories that labels of further rows name."""
        labels = Labels.of(y, rows)
        known = {label: at for at, label in enumerate(self.classes_.tolist())}
        unknown = [label for label in labels.classes.tolist() if label not in known]
        if unknown:
            raise ValueError(
                f"y has the label {unknown[0]!r}, which is no category so far: partial_fit takes those of classes_, and "
                "new classes need a fit"
            )
        numbers = np.array([known[label] for label in labels.classes.tolist()] + [-1], dtype=np.int64)
        return numbers[labels.codes]

    # ---- parameters

    def _method(self) -> str:
        if not isinstance(self.method, str):
            raise TypeError(f'method is {self.method!r}, and a string such as "calibrated" or "shc" is needed')
        return self.method

    def _seed(self) -> int:
        state = self.random_state
        if isinstance(state, (int, np.integer)) and not isinstance(state, bool):
            if not 0 <= int(state) < 2**64:
                raise ValueError(f"random_state is {state}, and a seed is between 0 and 2**64 - 1")
            return int(state)
        return int(check_random_state(state).randint(np.iinfo(np.int32).max))

    @staticmethod
    def _whole(name: str, value: Any, *, least: int, optional: bool = False) -> Any:
        if value is None and optional:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} is {value!r}, and a whole number is needed")
        if value < least:
            raise ValueError(f"{name} is {value}, and must be at least {least}")
        return int(value)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Without labels everything is new.
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = []
        return tags


def _nowhere(X: np.ndarray) -> np.ndarray:
    """What stands for a row of zeros."""
    middle = X.mean(axis=0, dtype=np.float64).astype(np.float32)
    return middle if middle.any() else np.ones_like(middle)


def read_calibration(calibration: Any) -> _genus.Calibration | None:
    """A calibration, wherever it is."""
    if calibration is None or isinstance(calibration, _genus.Calibration):
        return calibration
    if isinstance(calibration, str) and calibration == "embedded":
        return _genus.Calibration.embedded()
    if isinstance(calibration, (str, os.PathLike)):
        return _genus.Calibration.read(os.fspath(calibration))
    raise TypeError(f'calibration is {calibration!r}, and a genus.Calibration, a path to one or "embedded" is needed')
