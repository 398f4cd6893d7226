import numpy as np
import pytest

import genus
from genus import CategoryDiscovery


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENUS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def test_a_folder_of_photographs(photographs, tmp_path):
    found = genus.discover(photographs / "query", photographs / "support")
    assert len(found) == 34
    table = found.frame
    assert table.columns[:6].tolist() == ["id", "category", "kind", "score", "margin", "probability"]
    assert set(table["kind"]) <= {"known", "new", "unsure"}
    assert found.categories["category"].tolist()[:2] == ["bars", "discs"]
    assert found.n_new >= 1
    rings = table[table["id"].str.startswith("rings")]
    assert (rings["category"].str.startswith("new-")).mean() > 0.9
    page = found.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page.html
    assert page._repr_html_().startswith("<iframe srcdoc=")
    assert "<script" in page.html
    places = found.map()
    assert places.columns.tolist() == ["id", "category", "x", "y"]
    assert len(places) == 34
    assert "known" in repr(found)
    assert "<table>" in found._repr_html_()
    assert found.save(tmp_path / "result").name == "report.html"
    assert (tmp_path / "result" / "taxonomy.toml").exists()
    assert found.skipped == []


def test_images_become_features_whatever_they_are(photographs):
    pil = pytest.importorskip("PIL.Image")
    listed = genus.list_images(photographs / "query")
    assert len(listed) == 34
    assert listed[0].id == "bars-10.png"
    X = genus.embed(photographs / "query")
    assert X.shape[0] == 34
    assert X.dtype == np.float32
    some = listed[:3]
    assert (genus.embed(some) == X[:3]).all()
    assert (genus.embed([str(image.path) for image in reversed(some)], cache=False) == X[2::-1]).all()
    pictures = [pil.open(image.path) for image in some]
    assert (genus.embed(pictures) == X[:3]).all()
    assert (genus.embed(np.asarray(picture) for picture in pictures) == X[:3]).all()
    assert (genus.embed([picture.convert("RGBA") for picture in pictures]) == X[:3]).all()
    grey = genus.embed([np.asarray(pictures[0].convert("L"))])
    assert (grey == genus.embed([pictures[0].convert("L")])).all()


def test_features_of_images_go_into_the_estimator(photographs):
    support, query = (genus.list_images(photographs / part) for part in ("support", "query"))
    X = genus.embed([*support, *query])
    y = [image.label for image in support] + [None] * len(query)
    found = CategoryDiscovery(calibration="embedded").fit(X, y)
    table = genus.discover(photographs / "query", photographs / "support").columns()
    assert found.labels_[len(support) :].tolist() == table["category"]


def test_wrong_images_say_what_is_wrong(photographs, tmp_path):
    (tmp_path / "torn.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"torn\.png"):
        genus.embed([tmp_path / "torn.png"])
    with pytest.raises((FileNotFoundError, ValueError), match=r"nothing\.png"):
        genus.embed([tmp_path / "nothing.png"])
    with pytest.raises(ValueError, match="no images"):
        genus.embed([])
    with pytest.raises(TypeError, match="float64"):
        genus.embed([np.zeros((4, 4, 3))])
    with pytest.raises(ValueError, match=r"\(4, 4, 2\)"):
        genus.embed([np.zeros((4, 4, 2), dtype=np.uint8)])
    with pytest.raises(ValueError, match="one array"):
        genus.embed(np.zeros((4, 4, 3), dtype=np.uint8))
    with pytest.raises(TypeError, match="either paths or pictures"):
        genus.embed([tmp_path / "torn.png", np.zeros((4, 4, 3), dtype=np.uint8)])
    with pytest.raises(ValueError, match="swan"):
        genus.embed([np.zeros((4, 4, 3), dtype=np.uint8)], encoder="swan")
    with pytest.raises(FileNotFoundError):
        genus.discover(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no support"):
        genus.discover(photographs / "query", photographs / "support", mixed=True)


def test_features_in_memory(pile):
    X, y, _ = pile
    found = genus.discover((X, y))
    assert found.columns()["category"] == CategoryDiscovery().fit(X, y).labels_[[label is None for label in y]].tolist()
    known = np.array([label is not None for label in y])
    separate = genus.discover(X[~known], (X[known], y[known]))
    assert separate.columns()["category"] == found.columns()["category"]
    with pytest.raises(ValueError, match="every item has a label"):
        genus.discover((X[known], y[known]))
    assert genus.discover(X).n_new >= 6


def test_the_pictures_of_the_demo(tmp_path):
    labelled, pile, truth = genus.demo_pictures(tmp_path)
    assert len(genus.list_images(labelled)) == 25
    assert len(truth.read_text().splitlines()) == len(genus.list_images(pile)) + 1
