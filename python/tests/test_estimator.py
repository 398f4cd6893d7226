import pickle
import warnings

import joblib
import numpy as np
import pytest
from conftest import kinds
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from genus import CategoryDiscovery


def test_known_kinds_keep_their_names_and_others_are_new(pile):
    X, y, kind = pile
    found = CategoryDiscovery().fit(X, y)
    assert found.classes_.tolist() == ["kind 0", "kind 1", "kind 2", "new-1", "new-2", "new-3"]
    assert found.n_new_ == 3
    assert found.new_.tolist() == [False] * 3 + [True] * 3
    assert adjusted_rand_score(kind, found.labels_) == 1.0
    labelled = [label is not None for label in y]
    assert (found.labels_[labelled] == y[labelled]).all()
    assert (found.probabilities_[labelled] == 1).all()
    assert ((found.probabilities_ >= 0) & (found.probabilities_ <= 1)).all()
    assert found.unsure_.dtype == bool
    assert not found.unsure_[labelled].any()


@pytest.mark.parametrize("method", ["calibrated", "proto", "shc", "ukc", "gcd", "rankstat"])
def test_every_method_fits_and_predicts(pile, method):
    X, y, _ = pile
    found = CategoryDiscovery(method).fit(X, y)
    assert set(found.predict(X)) <= set(found.classes_)
    shares = found.predict_proba(X)
    assert np.allclose(shares.sum(axis=1), 1)
    assert (found.classes_[shares.argmax(axis=1)] == found.predict(X)).all()
    assert found.is_unsure(X).shape == (len(X),)
    assert np.isnan(found.probabilities_[[label is None for label in y]]).all() == (method != "calibrated")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (lambda kind: np.where(kind < 3, kind, -1), [0, 1, 2, 3, 4, 5]),
        (lambda kind: np.where(kind < 3, kind + 7, -1).astype(np.int8), [7, 8, 9, 10, 11, 12]),
        (lambda kind: np.where(kind < 3, kind, np.nan), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        (lambda kind: np.where(kind < 3, "ab", ""), ["ab", "new-1", "new-2", "new-3"]),
        (
            lambda kind: [f"k{k}" if k < 3 else float("nan") for k in kind],
            ["k0", "k1", "k2", "new-1", "new-2", "new-3"],
        ),
        (lambda kind: [f"k{k}" if k < 3 else None for k in kind], ["k0", "k1", "k2", "new-1", "new-2", "new-3"]),
        (lambda kind: [int(k) if k < 3 else None for k in kind], [0, 1, 2, 3, 4, 5]),
        (lambda kind: ["new-2" if k < 1 else "" for k in kind], ["new-2", "new-1", "new-3", "new-4", "new-5", "new-6"]),
    ],
)
def test_labels_are_what_people_have(labels, classes):
    X, kind = kinds(noise=0.05)
    y = labels(kind)
    # Some of every known kind belong to the pile.
    for row in range(6, len(X)):
        if row % 30 >= 6:
            y[row] = {str: "", np.str_: "", float: np.nan, np.float64: np.nan}.get(type(y[row]), -1)
    found = CategoryDiscovery().fit(X, y)
    assert found.classes_.tolist() == classes
    assert found.labels_.dtype == found.classes_.dtype


def test_without_labels_everything_is_new():
    X, kind = kinds()
    found = CategoryDiscovery().fit(X)
    assert found.classes_[0] == "new-1"
    assert adjusted_rand_score(kind, found.labels_) > 0.95
    for y in ([None] * len(X), [""] * len(X), np.full(len(X), -1), np.full(len(X), np.nan)):
        with pytest.raises(ValueError, match="leave it out"):
            CategoryDiscovery().fit(X, y)


def test_rows_of_zeros_are_unsure(pile):
    X, y, _ = pile
    X = X.copy()
    X[[7, 40]] = 0
    with pytest.warns(UserWarning, match="row 7, 40"):
        found = CategoryDiscovery().fit(X, y)
    assert found.unsure_[[7, 40]].all()
    with pytest.warns(UserWarning, match="row 1"):
        assert found.is_unsure(X[[0, 7]])[1]


def test_one_class_is_enough(pile):
    X, y, _ = pile
    y = np.where(y == "kind 0", y, None)
    found = CategoryDiscovery().fit(X, y)
    assert found.classes_[0] == "kind 0"
    assert found.n_new_ == 5


def test_with_all_labelled_nothing_is_discovered_and_it_says_so(pile):
    X, _, kind = pile
    with pytest.warns(UserWarning, match="nothing to discover"):
        found = CategoryDiscovery().fit(X, kind)
    assert found.n_new_ == 0
    assert (found.predict(X) == kind).mean() > 0.98


def test_predict_never_depends_on_the_batch(pile):
    X, y, _ = pile
    more, _ = kinds(seed=9, items=100)
    for method in ("calibrated", "shc"):
        found = CategoryDiscovery(method).fit(X, y)
        whole, shares, cosines = found.predict(more), found.predict_proba(more), found.transform(more)
        rng = np.random.default_rng(0)
        for size in (1, 3, 255, 257):
            rows = rng.choice(len(more), size, replace=False)
            assert (found.predict(more[rows]) == whole[rows]).all()
            assert (found.predict_proba(more[rows]) == shares[rows]).all()
            assert (found.transform(more[rows]) == cosines[rows]).all()


def test_the_same_seed_gives_the_same_and_the_order_of_rows_does_not_matter(pile):
    X, y, _ = pile
    first, second = (CategoryDiscovery(random_state=3).fit(X, y) for _ in range(2))
    assert (first.labels_ == second.labels_).all()
    assert first.probabilities_.tobytes() == second.probabilities_.tobytes()
    order = np.random.default_rng(1).permutation(len(X))
    other = CategoryDiscovery(random_state=3).fit(X[order], y[order])
    # Groups of one size are numbered as they come.
    assert adjusted_rand_score(other.labels_, first.labels_[order]) == 1.0


def test_large_piles_go_in_two_steps(pile):
    X, y, kind = pile
    found = CategoryDiscovery(subset=60).fit(X, y)
    assert len(found.labels_) == len(X)
    assert adjusted_rand_score(kind, found.labels_) > 0.9


def test_rename_and_merge(pile):
    X, y, _ = pile
    found = CategoryDiscovery().fit(X, y)
    before = found.labels_.copy()
    cosines = found.transform(X)
    found.rename("new-1", "gull")
    assert "gull" in found.classes_
    assert (found.labels_[before == "new-1"] == "gull").all()
    assert (found.transform(X) == cosines).all()
    found.merge("gull", "new-2")
    assert found.classes_.tolist() == ["kind 0", "kind 1", "kind 2", "gull", "new-3"]
    assert found.n_new_ == 2
    assert (found.labels_[(before == "new-1") | (before == "new-2")] == "gull").all()
    assert (found.labels_[before == "new-3"] == "new-3").all()
    assert (found.predict(X)[before == "new-3"] == "new-3").all()
    # A new one that a known one turns out to be.
    found.merge("kind 2", "new-3")
    assert found.classes_.tolist() == ["kind 0", "kind 1", "kind 2", "gull"]
    assert (found.labels_[before == "new-3"] == "kind 2").all()
    found.merge("gull", "kind 0")
    assert found.classes_.tolist() == ["gull", "kind 1", "kind 2"]
    assert found.n_new_ == 0
    with pytest.raises(ValueError, match="no category 'swan'"):
        found.rename("swan", "goose")
    with pytest.raises(ValueError, match="merge"):
        found.rename("gull", "kind 1")
    with pytest.raises(TypeError, match="strings"):
        found.rename("gull", 3)
    with pytest.raises(ValueError, match="itself"):
        found.merge("gull", "gull")


def test_rename_and_merge_numbers():
    X, kind = kinds()
    y = np.where(np.arange(len(X)) % 30 < 5, kind, -1)
    y[kind > 2] = -1
    found = CategoryDiscovery().fit(X, y)
    found.rename(3, 30).merge(0, 4)
    assert found.classes_.tolist() == [0, 1, 2, 30, 5]
    with pytest.raises(TypeError, match="integers"):
        found.rename(0, "gull")


def test_a_stream_finds_new_categories_and_can_be_pickled_anywhere(pile):
    _, y, _ = pile
    X, kind = kinds(noise=0.05)
    order = np.random.default_rng(0).permutation(len(X))
    X, y, kind = X[order], y[order], kind[order]
    first = [label is not None for label in y]
    examples = np.flatnonzero(first)
    rest = np.flatnonzero(~np.array(first))
    stream = CategoryDiscovery().partial_fit(X[examples], y[examples])
    assert stream.n_new_ == 0
    pieces = clone(stream).partial_fit(X[examples], y[examples])
    stream.partial_fit(X[rest])
    for piece in np.array_split(rest, 7):
        pieces = pickle.loads(pickle.dumps(pieces)).partial_fit(X[piece])
    assert stream.n_new_ >= 2
    assert (stream.labels_ == pieces.labels_).all()
    assert stream.probabilities_.tobytes() == pieces.probabilities_.tobytes()
    assert (stream.unsure_ == pieces.unsure_).all()
    assert len(stream.labels_) == len(X)
    seen = np.concatenate([examples, rest])
    sure = ~stream.unsure_
    assert adjusted_rand_score(kind[seen][sure], stream.labels_[sure]) > 0.9
    # What a person says goes on as well.
    stream.rename("new-1", "gull")
    gull = X[seen][stream.labels_ == "gull"][:3]
    stream.partial_fit(gull, ["gull"] * 3)
    assert (stream.labels_[-3:] == "gull").all()
    assert not stream.unsure_[-3:].any()
    stream.merge("gull", "new-2")
    stream.partial_fit(gull)
    assert (stream.labels_[-3:] == "gull").all()


def test_a_stream_goes_on_from_a_fit(pile):
    X, y, _ = pile
    found = CategoryDiscovery().fit(X, y)
    more, of = kinds(seed=0, items=40)
    found.partial_fit(more)
    assert len(found.labels_) == len(X) + len(more)
    assert adjusted_rand_score(of, found.labels_[len(X) :]) > 0.9
    with pytest.raises(ValueError, match="calibration"):
        CategoryDiscovery("shc").fit(X, y).partial_fit(more)
    with pytest.raises(ValueError, match="no category so far"):
        found.partial_fit(more[:1], ["swan"])
    with pytest.raises(ValueError, match="labelled rows"):
        CategoryDiscovery().partial_fit(more)


def test_pickle_clone_joblib(pile, tmp_path):
    X, y, _ = pile
    for method in ("calibrated", "ukc"):
        found = CategoryDiscovery(method).fit(X, y)
        joblib.dump(found, tmp_path / "found.joblib")
        for again in (pickle.loads(pickle.dumps(found)), joblib.load(tmp_path / "found.joblib")):
            assert (again.predict(X) == found.predict(X)).all()
            assert again.predict_proba(X).tobytes() == found.predict_proba(X).tobytes()
        with pytest.raises(NotFittedError):
            clone(found).predict(X)
    with joblib.parallel_config(n_jobs=2):
        labels = joblib.Parallel()(joblib.delayed(CategoryDiscovery(random_state=s).fit_predict)(X, y) for s in (0, 1))
    assert (labels[0] == CategoryDiscovery().fit_predict(X, y)).all()


def test_pipelines_grids_and_set_output(pile):
    pandas = pytest.importorskip("pandas")
    X, y, _ = pile
    pipeline = make_pipeline(Normalizer(), CategoryDiscovery())
    assert set(pipeline.fit(X, y).predict(X)) >= {"kind 0", "new-1"}
    _, _, kind = pile
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grid = GridSearchCV(CategoryDiscovery(), {"method": ["shc", "calibrated"]}, cv=2, n_jobs=2).fit(X, kind)
    assert grid.best_score_ > 0.9
    table = pandas.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    found = CategoryDiscovery().set_output(transform="pandas").fit(table, y)
    assert found.feature_names_in_.tolist() == list(table.columns)
    cosines = found.transform(table)
    assert cosines.columns.tolist() == [f"category_{name}" for name in found.classes_]
    assert (cosines.to_numpy().argmax(axis=1) == found.predict_proba(table).argmax(axis=1)).mean() > 0.95


def test_a_calibration_of_other_classes(pile, tmp_path):
    import genus

    X, y, _ = pile
    others, of = kinds(classes=12, seed=5)
    calibration = genus.calibrate(others, of)
    assert calibration.n_classes == 12
    assert calibration.n_features == X.shape[1]
    calibration.write(tmp_path / "calibration.safetensors")
    found = CategoryDiscovery(calibration=calibration).fit(X, y)
    again = CategoryDiscovery(calibration=tmp_path / "calibration.safetensors").fit(X, y)
    assert (found.labels_ == again.labels_).all()
    assert pickle.loads(pickle.dumps(found)).predict(X).tolist() == found.predict(X).tolist()
    with pytest.raises(ValueError, match="24 features"):
        CategoryDiscovery(calibration=calibration).fit(X[:, :5], y)
    with pytest.raises(ValueError, match="does not use a calibration"):
        CategoryDiscovery("shc", calibration=calibration).fit(X, y)
    with pytest.raises(TypeError, match="calibration is 3"):
        CategoryDiscovery(calibration=3).fit(X, y)
