"""Writes kmeans.json: small sets of points and the inertia of the clusterings that scikit-learn finds.

Run it with Python 3 with numpy and scikit-learn; the result does not depend on when or where it runs:

    python3 make_kmeans_goldens.py
"""

import json
import pathlib
import random

import numpy as np
from sklearn.cluster import KMeans

# Python's own generator: its numbers are the same in every version, numpy's need not be.
RANDOM = random.Random(1350)


def blobs(classes, each, dim, spread, unit):
    """Rounded so that the file is short and every value is the same in f32 as written."""
    centres = [[RANDOM.gauss(0, 1) for _ in range(dim)] for _ in range(classes)]
    points = np.array([[c + RANDOM.gauss(0, spread) for c in centre] for centre in centres for _ in range(each)])
    if unit:
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    return np.round(points, 3).astype(np.float32)


def case(points, k):
    wide = points.astype(np.float64)
    # One start a run: how good a single run is on average says more than the best of many.
    single = [KMeans(n_clusters=k, n_init=1, random_state=seed).fit(wide).inertia_ for seed in range(400)]
    twenty = KMeans(n_clusters=k, n_init=20, random_state=0).fit(wide).inertia_
    return {
        "points": [[round(float(v), 3) for v in row] for row in points],
        "k": k,
        "best_of_20": round(float(twenty), 9),
        "best": round(float(min(single)), 9),
        "mean": round(float(np.mean(single)), 6),
        "deviation": round(float(np.std(single)), 6),
    }


cases = [
    case(blobs(4, 12, 3, 0.1, False), 4),
    case(blobs(5, 10, 8, 0.3, True), 5),
    case(blobs(5, 10, 8, 0.3, True), 3),
    case(blobs(3, 15, 2, 0.4, False), 7),
    case(blobs(6, 8, 5, 0.5, True), 6),
    case(blobs(1, 30, 4, 1.0, False), 2),
]
path = pathlib.Path(__file__).with_name("kmeans.json")
path.write_text("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")
