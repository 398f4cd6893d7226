"""What is given, in every form, and what is wrong with it."""

import numpy as np
import pytest
from conftest import kinds

from genus import CategoryDiscovery
from genus._matrix import checked

X, KIND = kinds(noise=0.05)
Y = np.where(np.arange(len(X)) % 30 < 5, KIND, -1)
Y[KIND > 2] = -1
FOUND = CategoryDiscovery().fit(X, Y)


def forms():
    yield "float64", X.astype(np.float64)
    yield "not contiguous", np.repeat(X, 2, axis=1)[:, ::2]
    yield "Fortran", np.asfortranarray(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    yield "read-only", read_only
    yield "lists", X.tolist()
    yield "objects that are numbers", X.astype(object)
    yield "float16", X.astype(np.float16)
    yield "big-endian", X.astype(">f8")


@pytest.mark.parametrize(("name", "given"), list(forms()), ids=lambda v: v if isinstance(v, str) else "")
def test_arrays_in_every_form_give_the_same(name, given):
    found = CategoryDiscovery().fit(given, Y)
    assert (found.labels_ == FOUND.labels_).all()
    assert (FOUND.predict(given) == FOUND.predict(X)).all()


def test_a_matrix_that_is_as_it_should_be_is_not_copied():
    assert np.shares_memory(checked(X), X)
    assert np.shares_memory(checked(X[10:50]), X)
    read_only = X.view()
    read_only.flags.writeable = False
    assert np.shares_memory(checked(read_only), X)
    before = X.copy()
    CategoryDiscovery().fit(X, Y).predict(X)
    assert (before == X).all()


def test_pandas_and_polars_and_arrow():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    names = [f"f{i}" for i in range(X.shape[1])]
    columns = {name: X[:, i] for i, name in enumerate(names)}
    lists = arrow.FixedSizeListArray.from_arrays(arrow.array(X.ravel()), X.shape[1])
    series = pandas.Series(Y).astype("Int64").where(Y >= 0)
    tables = [
        (pandas.DataFrame(columns), series, names),
        (polars.DataFrame(columns), polars.Series(Y), names),
        (polars.DataFrame({name: X[:, i].astype(np.float64) for i, name in enumerate(names)}), Y, names),
        (arrow.table(columns), arrow.array(Y), names),
        # A batch is no data frame to scikit-learn, which then knows no names.
        (arrow.table(columns).to_batches()[0], arrow.chunked_array([Y[:50], Y[50:]]), None),
        (arrow.table({"embedding": lists}), Y, None),
        (polars.DataFrame({"embedding": X.tolist()}), Y, None),
    ]
    for table, labels, named in tables:
        found = CategoryDiscovery().fit(table, labels)
        assert (found.labels_ == FOUND.labels_).all(), type(table)
        assert getattr(found, "feature_names_in_", np.array(None)).tolist() == named
        assert (found.predict(table) == FOUND.predict(X)).all()
    strings = ["", "gull", "tern"]
    of_text = [strings[code] for code in np.where(Y == 0, 1, np.where(Y == 1, 2, 0))]
    expected = CategoryDiscovery().fit(X, of_text).labels_
    category = pandas.Series([text or None for text in of_text], dtype="category")
    for labels in (category, category.astype("string"), polars.Series([text or None for text in of_text])):
        assert (CategoryDiscovery().fit(X, labels).labels_ == expected).all()


def test_torch():
    torch = pytest.importorskip("torch")
    for tensor in (torch.from_numpy(X), torch.from_numpy(X).requires_grad_()):
        assert (CategoryDiscovery().fit(tensor, torch.from_numpy(Y)).labels_ == FOUND.labels_).all()


def test_what_has_only_an_array_protocol():
    class Tensor:
        """As a tensor of a library that is not here."""

        def __init__(self, values):
            self.values, self.shape, self.ndim = values, values.shape, values.ndim

        def __array__(self, dtype=None, copy=None):
            return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

        def __len__(self):
            return len(self.values)

    assert (CategoryDiscovery().fit(Tensor(X), Tensor(Y)).labels_ == FOUND.labels_).all()


def with_value(value, at=(3, 2), dtype=np.float32):
    wrong = X.astype(dtype)
    wrong[at] = value
    return wrong


WRONG_X = {
    "one dimension": (X[0], "1D array|2D array"),
    "three dimensions": (X[None], "dim 3|2"),
    "NaN": (with_value(np.nan), "NaN"),
    "infinity": (with_value(np.inf), "infinity"),
    "too large for float32": (with_value(1e300, dtype=np.float64), "too large|infinity"),
    "strings": (X.astype(str), "genus.embed"),
    "objects of strings": (with_value("swan", dtype=object), "genus.embed"),
    "objects of None": (with_value(None, dtype=object), "NaN|number|float"),
    "complex": (X.astype(complex), "[Cc]omplex"),
    "no rows": (X[:0], "0 sample"),
    "no columns": (X[:, :0], "0 feature"),
    "one column": (X[:, :1], "n_features = 1|1 features"),
    "a text": ("features.npy", "strings"),
    "nothing": (None, "array|2D|None"),
    "dictionaries": ([{"a": 1}] * len(X), "number|dict|array"),
    "ragged": ([[1.0, 2.0], [3.0]], "inhomogeneous|sequence|number"),
}


@pytest.mark.parametrize("wrong", WRONG_X)
def test_wrong_features_say_what_is_wrong(wrong):
    given, message = WRONG_X[wrong]
    with pytest.raises((ValueError, TypeError), match=message):
        CategoryDiscovery().fit(given, Y)
    with pytest.raises((ValueError, TypeError), match=message):
        FOUND.predict(given)


WRONG_Y = {
    "longer than X": (np.append(Y, 0), "180 rows and y has 181 labels"),
    "shorter than X": (Y[:-1], "180 rows and y has 179 labels"),
    "two columns": (np.stack([Y, Y], axis=1), "1d array"),
    "fractions": (Y + 0.5, "continuous"),
    "infinity": (np.where(Y == 0, np.inf, -1), "infinity"),
    "bools": (Y == 0, "bools"),
    "ids that leave no room": (np.where(Y == 0, 2**63 - 1, -1), "no 64-bit integer"),
    "ids beyond 64 bits": (np.where(Y == 0, 2**64 - 1, 0).astype(np.uint64), "no 64-bit integer"),
    "ids beyond any bits": ([2**70 if label == 0 else None for label in Y], "no 64-bit integer"),
    "strings and numbers": ([("swan", 3, None)[row % 3] for row in range(len(X))], "int, str"),
    "dates": (np.full(len(X), np.datetime64("2020-01-01")), "datetime64"),
    "a text": ("label", "one label a row"),
    "a number": (3, "one label a row"),
}


@pytest.mark.parametrize("wrong", WRONG_Y)
def test_wrong_labels_say_what_is_wrong(wrong):
    given, message = WRONG_Y[wrong]
    with pytest.raises((ValueError, TypeError), match=message):
        CategoryDiscovery().fit(X, given)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "shk"}, "shc"),
        ({"method": "ukc:alpha=swan"}, "alpha"),
        ({"method": 3}, "method is 3"),
        ({"random_state": -1}, "random_state is -1"),
        ({"random_state": 2**64}, "seed"),
        ({"subset": 0}, "subset is 0"),
        ({"subset": 1.5}, "whole number"),
        ({"refine": -1}, "at least 0"),
        ({"calibration": "swan.safetensors"}, "swan.safetensors"),
        ({"calibration": "embedded"}, "features"),
    ],
)
def test_wrong_settings_say_what_is_wrong(settings, message):
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        CategoryDiscovery(**settings).fit(X, Y)


def test_tables_say_which_column_is_wrong():
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, None, 2.0], "c": ["x", "y", "z"]})
    with pytest.raises(ValueError, match='column "c" of X holds'):
        CategoryDiscovery().fit(table.drop("b"))
    with pytest.raises(ValueError, match='column "b" has no value in row 1'):
        CategoryDiscovery().fit(table.drop("c"))
    with pytest.raises(ValueError, match="features in row 1"):
        CategoryDiscovery().fit(polars.DataFrame({"e": [[1.0, 2.0], [1.0]]}))


def test_a_label_that_reads_like_none_is_told():
    y = np.where(Y == 0, "nan", np.where(Y == 1, "gull", ""))
    with pytest.warns(UserWarning, match="reads as if"):
        CategoryDiscovery().fit(X, y)


def test_the_same_examples_of_two_classes():
    with pytest.raises(ValueError, match="nothing can tell them apart"):
        CategoryDiscovery().fit(np.vstack([X[:1], X[:1], X]), np.concatenate([["a", "b"], [""] * len(X)]))
