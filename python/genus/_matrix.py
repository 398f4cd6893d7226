"""Features as people have them, as one matrix of 32-bit floats, row after row."""

from __future__ import annotations

from typing import Any

import numpy as np


def arrow_columns(X: Any) -> bool:
    """Whether something hands out its columns by Arrow's capsules, and NumPy would have to go through each of them."""
    if isinstance(X, np.ndarray) or type(X).__module__.partition(".")[0] == "pandas":
        return False
    return hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")


def plain(X: Any) -> Any:
    """The same, where it takes a word to have it as an array."""
    if arrow_columns(X):
        from genus._genus import matrix_of_arrow

        return matrix_of_arrow(X)
    # A tensor that learns, or is elsewhere.
    if hasattr(X, "detach") and hasattr(X, "cpu"):
        X = X.detach().cpu()
    kind = getattr(getattr(X, "dtype", None), "kind", None)
    if kind in ("U", "S"):
        raise ValueError(_STRINGS)
    return X


_STRINGS = (
    "X holds strings, and features are numbers: make features of texts with an encoder of sentences, of images with "
    "genus.embed"
)


def checked(X: Any, *, estimator: Any = None, reset: bool = True) -> np.ndarray:
    """A matrix as the library takes it. One that is so already is not copied."""
    from sklearn.utils.validation import check_array, validate_data

    array = plain(X)
    settings: dict[str, Any] = {"dtype": np.float32, "order": "C", "copy": False}
    try:
        if estimator is None:
            found = check_array(array, input_name="X", **settings)
        elif array is X:
            found = validate_data(estimator, X, reset=reset, **settings)
        else:
            found = check_array(array, input_name="X", estimator=estimator, **settings)
            same = getattr(X, "shape", None) == found.shape
            validate_data(estimator, X if same else found, reset=reset, skip_check_array=True)
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(_STRINGS) from error
        raise
    if found.shape[1] == 1:
        raise ValueError(
            "n_features = 1: items are compared by their direction, and numbers of one sign all have the same; use two "
            "features or more"
        )
    return np.asarray(found)
