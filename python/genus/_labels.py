"""Labels as people have them, and as numbers."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

_UNLABELLED = 'mark what is unlabelled with None, NaN, "" or -1'


class Labels:
    """The class of every row, as the number of one of ``classes``; -1 where it has none."""

    def __init__(self, codes: np.ndarray, classes: np.ndarray, kind: Literal["int", "float", "str"]) -> None:
        self.codes = codes
        self.classes = classes
        self.kind = kind

    @property
    def names(self) -> list[str]:
        """What the library calls the classes."""
        return names(self.classes)

    @classmethod
    def of(cls, y: Any, rows: int) -> Labels:
        """The labels of so many rows."""
        if y is None:
            return cls(np.full(rows, -1, dtype=np.int64), np.empty(0, dtype=object), "str")
        values = _flat(y)
        if len(values) != rows:
            raise ValueError(
                f"X has {rows} rows and y has {len(values)} labels: give y one label a row, and {_UNLABELLED}"
            )
        values, kind = _plain(values)
        known = _labelled(values, kind)
        classes, codes = np.unique(values[known], return_inverse=True)
        of_rows = np.full(rows, -1, dtype=np.int64)
        of_rows[known] = codes.reshape(-1)
        if kind == "str":
            classes = classes.astype(object) if values.dtype == object else classes
        return cls(of_rows, classes, kind)


def names(classes: np.ndarray) -> list[str]:
    """What the library calls classes."""
    return [str(label) if isinstance(label, str) else str(int(label)) for label in classes.tolist()]


def with_new(classes: np.ndarray, kind: str, new: Sequence[str]) -> np.ndarray:
    """The classes with the labels of new categories behind them: numbers go on, names are the library's."""
    if kind == "str":
        if classes.dtype == object or not len(classes):
            return np.array([*classes, *new], dtype=object)
        return np.array([*classes, *new], dtype=str)
    if not new:
        return classes
    first = max(int(classes.max()), -1) + 1 if len(classes) else 0
    last = first + len(new) - 1
    if kind == "float":
        if last > 2**53:
            raise ValueError(_no_room(first - 1))
        return np.concatenate([classes, np.arange(first, last + 1, dtype=classes.dtype)])
    dtype = classes.dtype
    if last > np.iinfo(dtype).max:
        dtype = np.dtype(np.int64)
        if last > np.iinfo(dtype).max:
            raise ValueError(_no_room(first - 1))
    return np.array([*(int(label) for label in classes), *range(first, last + 1)], dtype=dtype)


def _no_room(largest: int) -> str:
    return (
        f"y has the class {largest}, and new categories are numbered on from there, which no 64-bit integer can be: "
        "number the classes from 0, or name them by strings"
    )


def _flat(y: Any) -> np.ndarray:
    """The labels as an array of one dimension."""
    if hasattr(y, "detach"):
        y = y.detach().cpu()
    if hasattr(y, "to_numpy") and not isinstance(y, np.ndarray):
        try:
            y = y.to_numpy()
        except Exception:
            y = y.to_numpy(zero_copy_only=False)
    if isinstance(y, (str, bytes)):
        raise TypeError(f"y is a {type(y).__name__}, and an array with one label a row is needed")
    if not isinstance(y, np.ndarray) and not hasattr(y, "__array__") and not hasattr(y, "__array_interface__"):
        try:
            items = list(y)
        except TypeError:
            raise TypeError(f"y is a {type(y).__name__}, and an array with one label a row is needed") from None
        # NumPy makes "nan" of the NaN beside a text.
        values = (
            np.asarray(items) if not any(isinstance(item, str) for item in items) else np.array(items, dtype=object)
        )
    else:
        values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
            "(n_samples,), for example using ravel().",
            DataConversionWarning,
            stacklevel=2,
        )
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {values.shape} instead: give it one label a row, "
            "not one column a class"
        )
    return values


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, numbers.Real):
        return math.isnan(value)
    # pandas' NA and NaT are equal to nothing, not even to themselves.
    return type(value).__name__ in ("NAType", "NaTType")


def _plain(values: np.ndarray) -> tuple[np.ndarray, Literal["int", "float", "str"]]:
    """The labels as an array of one kind."""
    kind = values.dtype.kind
    if kind in "iu":
        if kind == "u" and len(values) and int(values.max()) > np.iinfo(np.int64).max:
            raise ValueError(_no_room(int(values.max())))
        return values, "int"
    if kind == "f":
        return _whole(values), "float"
    if kind == "U":
        return values, "str"
    if kind == "S":
        return np.char.decode(values, "utf-8"), "str"
    if kind == "b":
        raise TypeError(
            "y is an array of bools, which have no room for new categories: use integers or strings, and " + _UNLABELLED
        )
    if kind != "O":
        raise TypeError(f"y is an array of {values.dtype}, and labels are integers or strings; {_UNLABELLED}")
    given = [value for value in values if not (_is_missing(value) or _is_none_by_value(value))]
    if all(isinstance(value, str) for value in given):
        plain = np.array(["" if _is_missing(v) or _is_none_by_value(v) else v for v in values], dtype=object)
        # Nothing but -1 and None was meant as numbers.
        if not given and any(isinstance(v, numbers.Integral) for v in values):
            return np.full(len(values), -1, dtype=np.int64), "int"
        return plain, "str"
    if all(isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_)) for value in given):
        if any(not -(2**63) <= int(value) < 2**63 for value in given):
            raise ValueError(_no_room(max(int(value) for value in given)))
        return np.array([-1 if _is_missing(v) or v == "" else int(v) for v in values], dtype=np.int64), "int"
    if all(isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) for value in given):
        return _whole(np.array([np.nan if _is_missing(v) or v == "" else float(v) for v in values])), "float"
    kinds = sorted({type(value).__name__ for value in given})
    raise TypeError(
        f"Unknown label type: y holds values of type {', '.join(kinds)}; labels are all strings or all integers, and "
        + _UNLABELLED
    )


def _is_none_by_value(value: Any) -> bool:
    if isinstance(value, str):
        return value == ""
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_)) and int(value) == -1


def _whole(values: np.ndarray) -> np.ndarray:
    """Floats that are whole numbers or NaN, as pandas makes them of integers with gaps."""
    if np.isinf(values).any():
        raise ValueError(
            f"Input y contains infinity or a value too large for dtype('{values.dtype}'). Mark what is unlabelled with "
            "NaN or -1"
        )
    given = values[~np.isnan(values)]
    if (given != np.floor(given)).any():
        raise ValueError(
            "Unknown label type: continuous. y holds fractions, and labels are classes: integers or strings. Maybe you "
            "are trying to fit a classifier on a regression target"
        )
    return values


def _labelled(values: np.ndarray, kind: str) -> np.ndarray:
    if kind == "int":
        return np.asarray(values != -1)
    if kind == "float":
        return np.asarray(~np.isnan(values) & (values != -1))
    return np.asarray(values != "", dtype=bool)
