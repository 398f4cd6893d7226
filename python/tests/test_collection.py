import numpy as np
import pytest
from conftest import kinds

from genus import Collection


def test_a_collection_lives(tmp_path):
    X, kind = kinds()
    examples = np.flatnonzero(np.arange(len(X)) % 30 < 4)
    rest = np.setdiff1d(np.arange(len(X)), examples)
    with Collection(tmp_path / "things", author="me") as things:
        added = things.add(X[examples], [f"kind {k}" if k < 3 else None for k in kind[examples]])
        assert added["new"] == len(examples)
        added = things.add(X[rest])
        assert added["new"] == len(rest)
        assert things.add(X[rest])["known"] == len(rest)
        assert len(things) == len(X)
        things.refresh()
        groups = things.groups()
        assert {"kind 0", "kind 1", "kind 2"} <= set(groups["name"])
        new = groups[~groups["named"]]["name"].iloc[0]
        things.name(new, "gull")
        assert "gull" in set(things.groups()["name"])
        things.undo()
        assert new in set(things.groups()["name"])
        things.redo()
        items = things.items("gull")
        assert len(items) > 10
        things.confirm(items["id"].iloc[:2].tolist())
        things.move(int(items["id"].iloc[2]), "kind 0")
        assert items["id"].iloc[2] in set(things.items("kind 0")["id"])
        things.noise(int(items["id"].iloc[3]))
        assert len(things.items(noise=True)) == 1
        things.merge("kind 1", into="kind 0")
        things.split("kind 0", 2)
        assert things.log().iloc[0]["kind"] == "split"
        assert len(things.ask(3)) <= 3
        assert things.check()["problems"] == []
        things.export(tmp_path / "out", features=True)
        assert (tmp_path / "out" / "assignments.csv").exists()
        assert "<html" in things.report(tmp_path / "page").html
        with pytest.raises(ValueError, match="swan"):
            things.name("swan", "goose")
        with pytest.raises((ValueError, OSError)):
            Collection(tmp_path / "things", author="you")
    with pytest.raises(ValueError, match="closed"):
        things.groups()
    with Collection(tmp_path / "things", read_only=True) as things:
        assert len(things) == len(X)
        assert "items" in repr(things)
        with pytest.raises((ValueError, OSError)):
            things.name("gull", "tern")


def test_photographs_come_in(photographs, tmp_path, monkeypatch):
    monkeypatch.setenv("GENUS_CACHE", str(tmp_path / "cache"))
    with Collection(tmp_path / "pictures", author="me") as pictures:
        pictures.add(photographs / "support", labelled=True)
        added = pictures.add(photographs / "query")
        assert added["new"] == 34
        assert {"bars", "discs"} <= set(pictures.groups()["name"])
