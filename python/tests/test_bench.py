import json

import numpy as np
import pytest
from conftest import kinds
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from genus import bench

SHAPE = {"way": 3, "shot": 2, "new": 3, "query": 5, "episodes": 4, "seed": 1}


@pytest.fixture
def data():
    X, kind = kinds(classes=10)
    return bench.Dataset(X, [f"c{k}" for k in kind], name="made")


def test_episodes_are_rows_of_the_right_classes(data):
    _, kind = kinds(classes=10)
    drawn = bench.episodes(data, **SHAPE)
    assert len(drawn) == 4
    for episode in drawn:
        assert len(episode.classes) == 6
        assert episode.known == 3
        assert len(episode.support) == 6
        assert len(episode.queries) == 30
        assert not set(episode.support) & set(episode.queries)
        for rows, classes in ((episode.support, episode.support_classes), (episode.queries, episode.truth)):
            assert [f"c{k}" for k in kind[rows]] == [episode.classes[c] for c in classes]
    assert drawn[0].queries.tolist() == bench.episodes(data, **SHAPE)[0].queries.tolist()
    assert drawn[0].queries.tolist() != drawn[1].queries.tolist()
    assert [episode.number for episode in drawn[1:3]] == [1, 2]
    with pytest.raises(IndexError):
        drawn[4]


def test_metrics_agree_with_their_definitions():
    rng = np.random.default_rng(0)
    truth, found = rng.integers(0, 6, 200), rng.integers(0, 7, 200)
    judged = bench.metrics(truth, found, known=2)
    assert judged["ari"] == pytest.approx(adjusted_rand_score(truth, found))
    assert judged["nmi"] == pytest.approx(normalized_mutual_info_score(truth, found))
    assert judged["paper"]["old"] == pytest.approx((found == truth)[truth < 2].mean())
    assert judged["k"] == 7
    perfect = bench.metrics(truth, np.where(truth < 2, truth, 90 - truth), known=2)
    for convention in ("paper", "authors-v2", "gcd-v1", "gcd-v2"):
        assert perfect[convention] == {"all": 1.0, "old": 1.0, "new": 1.0}


def test_a_method_of_ones_own_stands_beside_all_others(data):
    def nearest(support, classes, queries):
        means = np.stack([support[classes == c].mean(axis=0) for c in np.unique(classes)])
        return (queries @ means.T).argmax(axis=1)

    results = bench.compare(data, ["proto", "shc"], {"mine": nearest}, **SHAPE)
    assert results.frame["method"].tolist() == ["proto", "shc", "mine"]
    proto, _, mine = json.loads(results.json())["runs"]
    # Old queries are the same question to both.
    assert mine["old"]["mean"] == pytest.approx(proto["old"]["mean"], abs=0.1)
    assert mine["new"]["mean"] == 0
    assert "mine" in results.latex()
    assert "toprule" in results.latex()
    assert "mine" in results.markdown()
    assert "mine" in results.csv()
    assert len(results.episodes("mine")) == 4
    assert "mine" in results._repr_html_()


def test_what_the_methods_here_find_is_judged_as_they_are(data):
    """A method written in Python that calls ours has the figures that ours has."""
    from genus import CategoryDiscovery

    def ours(support, classes, queries):
        y = np.concatenate([classes, np.full(len(queries), -1)])
        return CategoryDiscovery("ukc", random_state=1).fit(np.vstack([support, queries]), y).labels_[len(support) :]

    results = bench.compare(data, ["ukc"], {"ours": ours}, **SHAPE)
    theirs, mine = json.loads(results.json())["runs"]
    for name in ("all", "old", "new", "k", "metrics", "episodes"):
        assert mine[name] == theirs[name], name


def test_episodes_go_through_files(data, tmp_path):
    drawn = bench.episodes(data, **SHAPE)
    drawn.write(tmp_path / "episodes.jsonl")
    read = bench.Episodes.read(tmp_path / "episodes.jsonl")
    assert [e.queries.tolist() for e in read] == [e.queries.tolist() for e in drawn]
    lines = [{"episode": e.number, "predictions": [e.classes[c] for c in e.truth]} for e in drawn]
    (tmp_path / "predictions.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    scored = bench.score(read, tmp_path / "predictions.jsonl", method="truth")
    assert scored.frame["all"].tolist() == [100.0]


def test_what_is_wrong_is_said(data, tmp_path):
    drawn = bench.episodes(data, **SHAPE)
    with pytest.raises(ValueError, match="30 queries"):
        bench.score(drawn, [[0]] * 4)
    with pytest.raises(TypeError, match="whole number"):
        bench.score(drawn, [[0.5] * 30] * 4)
    with pytest.raises(ValueError, match="10"):
        bench.episodes(data, **{**SHAPE, "way": 9})
    with pytest.raises(ValueError, match="swan"):
        bench.run(data, ["swan"], **SHAPE)
    with pytest.raises(ValueError, match="novel has the class"):
        bench.Dataset(data.X, [0] * len(data.X), novel=[3])
    (tmp_path / "no.jsonl").write_text("{}\n")
    with pytest.raises(ValueError, match="line 1"):
        bench.Episodes.read(tmp_path / "no.jsonl")
    with pytest.raises(FileNotFoundError):
        bench.Episodes.read(tmp_path / "nothing.jsonl")


def test_methods_are_listed():
    assert {"shc", "ukc", "calibrated", "ocd", "simgcd"} <= set(bench.methods())
