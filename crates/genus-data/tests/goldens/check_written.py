"""Reads with the real NumPy, PyArrow and safetensors what FeatureWriter wrote; tests/writer.rs runs it.

Usage: python3 check_written.py FOLDER, where FOLDER has written.npz, written.safetensors and written.parquet with the rows below.
Exits with 77 when one of the libraries is not installed.
"""

import json
import pathlib
import sys

try:
    import numpy as np
    import pyarrow.parquet as pq
    from safetensors import safe_open
except ImportError:
    sys.exit(77)

X = np.array(
    [[1.0, -2.0, 0.5], [0.0, 0.25, 3.0], [-0.125, 8.0, 1.5], [2.0, 2.0, -4.0], [0.75, -1.0, 16.0]], dtype=np.float32
)
IDS = ["a", "b c", "d,e", "grüße", "日本"]
LABELS = ["cat", "dog", None, "éléphant", "cat"]
MARK = "clip vit-b/32 größe=224"
folder = pathlib.Path(sys.argv[1])


def same(x):
    assert x.dtype == np.float32 and x.shape == X.shape and (x == X).all(), x


with np.load(folder / "written.npz") as npz:
    assert sorted(npz.files) == ["encoder", "ids", "x", "y"], npz.files
    same(npz["x"])
    assert npz["ids"].tolist() == IDS
    assert [label or None for label in npz["y"].tolist()] == LABELS
    assert npz["encoder"].shape == () and npz["encoder"].item() == MARK

with safe_open(folder / "written.safetensors", framework="np") as file:
    same(file.get_tensor("x"))
    metadata = file.metadata()
    assert json.loads(metadata["ids"]) == IDS
    classes = json.loads(metadata["classes"])
    assert [None if y < 0 else classes[y] for y in file.get_tensor("y").tolist()] == LABELS
    assert metadata["encoder"] == MARK

table = pq.read_table(folder / "written.parquet")
assert table.column_names == ["id", "label", "embedding"]
same(np.array(table["embedding"].to_pylist(), dtype=np.float32))
assert str(table.schema.field("embedding").type).startswith("fixed_size_list<item: float"), table.schema
assert table["id"].to_pylist() == IDS
assert table["label"].to_pylist() == LABELS
assert table.schema.metadata[b"genus.encoder"].decode() == MARK
assert pq.read_metadata(folder / "written.parquet").metadata[b"genus.encoder"].decode() == MARK
