"""Writes ward.json: small sets of points and the merges that SciPy's Ward linkage makes of them.

Run it with Python 3 with numpy and scipy; the result does not depend on when or where it runs:

    python3 make_ward_goldens.py

SciPy's height of a merge is the root of twice the rise of the sum of squared distances. It has no weights: points of a whole
weight are that many copies, whose merges cost nothing and come first; the heights of the others are those of the weighted
points.
"""

import json
import pathlib
import random

import numpy as np
from scipy.cluster.hierarchy import linkage

# Python's own generator: its numbers are the same in every version, numpy's need not be.
RANDOM = random.Random(1963)


def blobs(classes, each, dim, spread):
    """Rounded so that the file is short and every value is the same in f32 as written."""
    centres = [[RANDOM.gauss(0, 1) for _ in range(dim)] for _ in range(classes)]
    points = [[c + RANDOM.gauss(0, spread) for c in centre] for centre in centres for _ in range(each)]
    return np.round(points, 3)


def case(points, largest_weight):
    weights = [RANDOM.randint(1, largest_weight) for _ in points]
    # The values as f32, which is what Genus takes.
    copies = np.repeat(points.astype(np.float32).astype(np.float64), weights, axis=0)
    merges = linkage(copies, method="ward")[len(copies) - len(points):]
    costs = merges[:, 2] ** 2 / 2
    gaps = np.diff(costs, prepend=0) / costs
    assert gaps.min() > 1e-4, "too near a tie for the order to be sure"
    result = {
        "points": [[round(float(v), 3) for v in row] for row in points],
        "weights": weights,
        "costs": [float(f"{cost:.9g}") for cost in costs],
    }
    if largest_weight == 1:
        result["nodes"] = [sorted((int(a), int(b))) for a, b in merges[:, :2]]
    return result


cases = [
    case(blobs(4, 10, 3, 0.1), 1),
    case(blobs(5, 8, 8, 0.5), 1),
    case(blobs(1, 12, 1, 1.0), 1),
    case(blobs(3, 10, 2, 0.4), 5),
    case(blobs(4, 8, 6, 0.6), 9),
]
path = pathlib.Path(__file__).with_name("ward.json")
path.write_text("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")
