"""Writes pca.json: matrices and their first two principal components by scikit-learn.

The sign of a component is the one that makes its largest loading positive, as in scikit-learn from 1.5 on.

    python crates/genus-core/tests/goldens/make_pca_goldens.py
"""

import json
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

random = np.random.default_rng(20)


def noise(rows, columns):
    return random.normal(size=(rows, columns))


def stretched(rows, columns):
    return noise(rows, columns) * np.linspace(3, 0.2, columns) + np.linspace(-5, 5, columns)


wide = noise(9, 3) @ noise(3, 24) + 0.1 * noise(9, 24)
tall = stretched(40, 6)
tall[:, 2] = 7.5
cases = {
    "more columns than rows": wide,
    "more rows than columns, one of them constant": tall,
    "as many rows as columns": stretched(7, 7),
    "one direction": np.outer(np.linspace(-1, 2, 8), [1, -3, 2]) + [4, 4, 4],
    "two points": np.array([[1.0, 2, 3, 4], [3, 2, 1, 0]]),
    "one column": np.array([[1.0], [4], [2], [9]]),
    "large numbers": 1e20 * stretched(6, 5),
    "small numbers beside a large mean": np.round(noise(12, 4), 3) + 1000,
}
out = []
for name, rows in cases.items():
    rows = rows.astype("float32").astype("float64")
    places = np.zeros((len(rows), 2))
    count = min(2, *rows.shape)
    found = PCA(count, svd_solver="full").fit_transform(rows)
    # Beyond the rank of the matrix a component is rounding, and Genus says zero.
    found[:, np.abs(found).max(axis=0) < 1e-9 * np.abs(found).max()] = 0
    places[:, :count] = found
    out.append({"name": name, "rows": rows.tolist(), "points": places.tolist()})
Path(__file__).with_name("pca.json").write_text(json.dumps(out) + "\n")
