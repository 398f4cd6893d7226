"""Writes the golden files with the real NumPy, pandas, PyArrow and safetensors, so that the readers are tested on what people have.

Run in this directory: python3 make_goldens.py

Every file holds the same five rows of three features, which are exact in 16 bits; the names say what is special about it.
"""

import csv
import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
from safetensors.numpy import save

X = np.array(
    [[1.0, -2.0, 0.5], [0.0, 0.25, 3.0], [-0.125, 8.0, 1.5], [2.0, 2.0, -4.0], [0.75, -1.0, 16.0]], dtype=np.float32
)
IDS = ["a", "b c", "d,e", "grüße", "日本"]
CLASSES = ["cat", "dog", "éléphant"]
INDICES = [0, 1, -1, 2, 0]
LABELS = ["cat", "dog", "", "éléphant", "cat"]
NULLABLE = [label or None for label in LABELS]


def write(name, data):
    with open(name, "wb") as file:
        file.write(data)


def npy(name, array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    write(name, file.getvalue())


def npz(name, compressed=False, **arrays):
    (np.savez_compressed if compressed else np.savez)(name, **arrays)


def tensors(name, arrays, metadata=None):
    """safetensors' own bytes, but with the metadata in the order of the keys, which it leaves to chance."""
    data = save(arrays, metadata=metadata)
    length = int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8 : 8 + length]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)
    write(name, len(header).to_bytes(8, "little") + header + data[8 + length :])


for dtype in ["f2", "f4", "f8"]:
    npy(f"{dtype}.npy", X.astype("<" + dtype))
    npy(f"{dtype}_big.npy", X.astype(">" + dtype))
npy("fortran.npy", np.asfortranarray(X))
npy("fortran_big_f8.npy", np.asfortranarray(X.astype(">f8")))
npy("version2.npy", X, version=(2, 0))
npy("version3.npy", X, version=(3, 0))
npy("integers_i2.npy", (X * 8).astype("<i2"))
npy("integers_u2.npy", np.abs(X * 8).astype("<u2"))
npy("integers_i8_big.npy", (X * 8).astype(">i8"))

TEXTS = {"ids": np.array(IDS), "y": np.array(LABELS)}
INTEGERS = {"ids": np.array(IDS), "y": np.array(INDICES), "classes": np.array(CLASSES)}
npz("texts.npz", x=X, **TEXTS)
npz("texts_compressed.npz", compressed=True, x=X, **TEXTS)
npz("classes.npz", x=X.astype("f8"), **INTEGERS)
npz("classes_compressed.npz", compressed=True, x=X.astype("f2"), **INTEGERS)
npz("fortran.npz", x=np.asfortranarray(X), **TEXTS)
npz("fortran_compressed.npz", compressed=True, x=np.asfortranarray(X), **TEXTS)
npz("big_endian.npz", x=X.astype(">f4"), ids=np.array(IDS).astype(">U5"), y=np.array(LABELS).astype(">U8"))
npz("bytes.npz", x=X, ids=np.array([t.encode() for t in IDS]), y=np.array([t.encode() for t in LABELS]))
npz("aliases.npz", embeddings=X, labels=np.array(LABELS), ids=np.array(IDS))
npz("integers.npz", x=X, y=np.array(INDICES, dtype="i1"), ids=np.arange(10, 15, dtype="u8"))
npz("only_x.npz", x=X)

METADATA = {"ids": json.dumps(IDS), "classes": json.dumps(CLASSES)}
for dtype in ["f2", "f4", "f8"]:
    tensors(f"{dtype}.safetensors", {"x": X.astype(dtype), "y": np.array(INDICES, dtype="i8")}, METADATA)
tensors("aliases.safetensors", {"features": X, "labels": np.array(INDICES, dtype="i1")}, METADATA)
tensors("integers.safetensors", {"x": X, "y": np.array(INDICES, dtype="i4")})
# NumPy has no bfloat16: the upper halves of the 32 bits are one, as X is exact in it.
header = {"x": {"dtype": "BF16", "shape": [5, 3], "data_offsets": [0, 30]}, "__metadata__": {"ids": json.dumps(IDS)}}
header = json.dumps(header).encode()
bf16 = (X.view("<u4") >> 16).astype("<u2").tobytes()
write("bf16.safetensors", len(header).to_bytes(8, "little") + header + bf16)


def parquet(name, embedding, ids=pa.array(IDS), labels=pa.array(NULLABLE), **options):
    pq.write_table(pa.table({"note": ["x"] * 5, "embedding": embedding, "label": labels, "id": ids}), name, **options)


ROWS = [[float(v) for v in row] for row in X]
for name, value in [("f2", pa.float16()), ("f4", pa.float32()), ("f8", pa.float64())]:
    values = pa.array(X.reshape(-1).astype(name), type=value)
    offsets = np.arange(0, 16, 3)
    parquet(f"list_{name}.parquet", pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values))
    parquet(f"large_list_{name}.parquet", pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values))
    parquet(f"fixed_{name}.parquet", pa.FixedSizeListArray.from_arrays(values, 3))
lists = pa.array(ROWS, pa.list_(pa.float32()))
parquet("dictionary.parquet", lists, labels=pa.array(NULLABLE).dictionary_encode())
parquet("integers.parquet", lists, ids=pa.array(range(10, 15), pa.uint64()), labels=pa.array([0, 1, None, 2, -1]))
parquet("large_texts.parquet", lists, ids=pa.array(IDS, pa.large_string()), labels=pa.array(NULLABLE, pa.large_string()))
parquet("text_views.parquet", lists, ids=pa.array(IDS, pa.string_view()), labels=pa.array(NULLABLE, pa.string_view()))
# As DuckDB, Spark and others write: no Arrow schema, children called "element" or "item", pages of version 2, several row groups.
parquet("element.parquet", lists, store_schema=False, use_compliant_nested_type=True, compression="zstd")
parquet("item.parquet", lists, store_schema=False, use_compliant_nested_type=False, compression="gzip")
parquet("pages_v2.parquet", lists, data_page_version="2.0", version="2.6", compression="lz4")
parquet("row_groups.parquet", lists, row_group_size=2, use_dictionary=False, compression="none")
required = pa.array(ROWS, pa.list_(pa.field("item", pa.float32(), nullable=False)))
schema = pa.schema([pa.field("embedding", required.type, nullable=False), pa.field("id", pa.string(), nullable=False)])
pq.write_table(pa.table([required, pa.array(IDS)], schema=schema), "required.parquet", use_dictionary=False)
fixed = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), type=pa.list_(pa.field("item", pa.float32(), nullable=False), 3))
schema = pa.schema([pa.field("embedding", fixed.type, nullable=False), pa.field("id", pa.string(), nullable=False)])
pq.write_table(pa.table([fixed, pa.array(IDS)], schema=schema), "required_fixed.parquet", data_page_version="2.0")

# What must be refused.
np.save("object.npy", np.array([[1.0, None]], dtype=object), allow_pickle=True)
np.savez("object_labels.npz", x=X, y=np.array(LABELS, dtype=object))
npy("fields.npy", np.zeros(2, dtype=[("a", "f4"), ("b", "f4")]))
npy("one_dimension.npy", X.reshape(-1))
npy("three_dimensions.npy", X.reshape(5, 3, 1))
npy("complex.npy", X.astype("c8"))
npy("no_rows.npy", X[:0])
npy("no_columns.npy", X[:, :0])
npz("float_labels.npz", x=X, y=np.array(INDICES, dtype="f4"))
npz("label_outside.npz", x=X, y=np.array([0, 1, -1, 3, 0]), classes=np.array(CLASSES))
npz("short_labels.npz", x=X, y=np.array(INDICES[:4]))
npz("short_ids.npz", x=X, ids=np.array(IDS[:4]))
npz("duplicate_ids.npz", x=X, ids=np.array(["a", "b", "c", "b", "e"]))
npz("no_x.npz", vectors=X, y=np.array(INDICES))
npz("not_finite.npz", x=np.where(X == 8, 1e300, X.astype("f8")), ids=np.array(IDS))
tensors("short_ids.safetensors", {"x": X}, {"ids": json.dumps(IDS[:4])})
tensors("label_outside.safetensors", {"x": X, "y": np.array([0, 1, -1, 3, 0])}, METADATA)
tensors("no_x.safetensors", {"vectors": X})
tensors("float_labels.safetensors", {"x": X, "y": np.zeros(5, dtype="f4")})
tensors("bad_ids.safetensors", {"x": X}, {"ids": "a,b,c"})
bad = [list(row) for row in ROWS]
parquet("ragged.parquet", pa.array(bad[:3] + [[1.0, 2.0]] + bad[4:], pa.list_(pa.float32())))
parquet("null_list.parquet", pa.array(bad[:3] + [None] + bad[4:], pa.list_(pa.float32())))
parquet("null_fixed.parquet", pa.array(bad[:3] + [None] + bad[4:], pa.list_(pa.float32(), 3)))
parquet("null_value.parquet", pa.array(bad[:3] + [[1.0, None, 2.0]] + bad[4:], pa.list_(pa.float32())))
parquet("nan.parquet", pa.array(bad[:3] + [[1.0, float("nan"), 2.0]] + bad[4:], pa.list_(pa.float32())))
parquet("zero.parquet", pa.array(bad[:3] + [[0.0, -0.0, 0.0]] + bad[4:], pa.list_(pa.float32())))
parquet("empty_lists.parquet", pa.array([[]] * 5, pa.list_(pa.float32())))
parquet("null_id.parquet", lists, ids=pa.array(["a", "b", None, "d", "e"]))
parquet("duplicate_ids.parquet", lists, ids=pa.array(["a", "b", "c", "b", "e"]))
parquet("not_a_list.parquet", pa.array(range(5)))
parquet("list_of_texts.parquet", pa.array([["a"]] * 5))
parquet("float_label.parquet", lists, labels=pa.array([0.5] * 5))
pq.write_table(pa.table({"vector": lists}), "no_embedding.parquet")
pq.write_table(pa.table({"embedding": lists.slice(0, 0)}), "no_rows.parquet")

# Text formats, as Python's own modules write them.
with open("rows.csv", "w", newline="", encoding="utf-8-sig") as file:
    table = csv.writer(file)
    table.writerow(["f0", "id", "f1", "label", "f2"])
    table.writerows([x[0], id, x[1], label, x[2]] for x, id, label in zip(ROWS, IDS, LABELS))
with open("list.csv", "w", newline="", encoding="utf-8") as file:
    table = csv.writer(file, lineterminator="\n")
    table.writerow(["id", "note", "embedding", "label"])
    table.writerows([id, "x", x, label] for x, id, label in zip(ROWS, IDS, LABELS))
with open("rows.jsonl", "w", encoding="utf-8") as file:
    for x, id, label in zip(ROWS, IDS, NULLABLE):
        file.write(json.dumps({"id": id, "label": label, "note": {"n": [1]}, "embedding": x}, ensure_ascii=id != "日本") + "\n")

# Files that say which encoder made their features, and a list of images.
MARK = "clip vit-b/32 größe=224"
npz("encoder.npz", x=X, encoder=np.array(MARK))
npz("encoder_list.npz", x=X, encoder=np.array([MARK]))
npz("encoders.npz", x=X, encoder=np.array(["one", "two"]))
tensors("encoder.safetensors", {"x": X}, {"encoder": MARK})
table = pa.table({"embedding": lists}).replace_schema_metadata({"genus.encoder": MARK})
pq.write_table(table, "encoder.parquet")
pq.write_table(pa.table({"embedding": lists, "encoder": [MARK] * 5}), "encoder_column.parquet")
pq.write_table(pa.table({"embedding": lists, "encoder": ["one"] * 3 + ["two"] * 2}), "encoders.parquet")
with open("encoder.csv", "w", newline="", encoding="utf-8") as file:
    table = csv.writer(file)
    table.writerow(["f0", "encoder", "f1", "f2"])
    table.writerows([x[0], MARK, x[1], x[2]] for x in ROWS)
with open("encoder.jsonl", "w", encoding="utf-8") as file:
    file.writelines(json.dumps({"embedding": x, "encoder": MARK}) + "\n" for x in ROWS)
paths = pa.array(["images/1.jpg", "images/2.jpg", "images/3.jpg"])
pq.write_table(pa.table({"image": paths, "id": pa.array([11, 12, 13]), "label": ["cat", None, "dog"]}), "manifest.parquet")

# Tables as pandas writes them: a column a feature, in another order, among others that are none.
LETTERS = {"label": NULLABLE, "f2": X[:, 2], "f0": X[:, 0], "note": ["x"] * 5, "f1": X[:, 1], "id": IDS}
WIDE = pd.DataFrame(LETTERS)
GZIP = {"method": "gzip", "mtime": 1}
WIDE.to_csv("wide.tsv", sep="\t", index=False)
WIDE.to_csv("wide.tsv.gz", sep="\t", index=False, compression=GZIP)
WIDE.to_csv("semicolons.csv", sep=";", decimal=",", index=False)
WIDE.to_csv("tabs.csv", sep="\t", index=False)
WIDE.to_csv("wide.csv.gz", index=False, compression=GZIP)
WIDE.to_csv("with_index.csv")
WIDE.rename(columns={"label": "Class", "id": "ID"}).to_csv("capitals.csv", index=False)
WIDE.to_json("wide.jsonl", orient="records", lines=True, force_ascii=False)
WIDE.to_json("wide.jsonl.gz", orient="records", lines=True, compression=GZIP)
pd.DataFrame(X).to_csv("only_numbers.csv", index=False)
WIDE.to_parquet("wide.parquet", index=False)
WIDE.assign(f0=WIDE.f0.astype("f8"), f1=(WIDE.f1 * 8).astype("i8") / 8, f2=WIDE.f2.astype("f2")).to_parquet("wide_types.parquet")
pq.write_table(pa.Table.from_pandas(WIDE, preserve_index=False), "wide_groups.parquet", row_group_size=2, use_dictionary=False)
for compression in ["lz4", "zstd", "uncompressed"]:
    WIDE.to_feather(f"{compression}.feather", compression=compression)
WIDE.assign(label=WIDE.label.astype("category")).to_feather("category.feather")
arrow = pa.table({"embedding": lists, "label": pa.array(NULLABLE), "id": pa.array(IDS), "note": ["x"] * 5})
feather.write_feather(arrow, "list.feather", chunksize=2)
feather.write_feather(arrow.set_column(0, "vectors", fixed), "fixed.arrow")
with pa.ipc.new_stream("stream.arrow", arrow.schema) as stream:
    stream.write_table(arrow, max_chunksize=2)
marked = pa.table({"embedding": lists}).replace_schema_metadata({"genus.encoder": MARK})
feather.write_feather(marked, "encoder.feather")
feather.write_feather(pa.table({"embedding": lists, "encoder": ["one"] * 3 + ["two"] * 2}), "encoders.feather")
write("version1.feather", b"FEA1\0\0\0\0FEA1")
feather.write_feather(arrow.slice(0, 0), "no_rows.feather")
null = WIDE.astype({"f1": "Float32"})
null.loc[3, "f1"] = pd.NA
null.to_feather("null.feather")
null.to_parquet("null_wide.parquet")
feather.write_feather(pa.table({"id": [11, 12], "image": ["a.jpg", "b.jpg"], "class": ["cat", None]}), "manifest.feather")
