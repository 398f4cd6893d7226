"""`CategoryDiscovery` beside what scikit-learn has, on one pile: time, memory beyond the pile, and how right.

    python bench/beside_sklearn.py [--rows 10000] [--features 768] [--classes 50]

Every method runs in a process of its own. Methods that must be told the number of categories are told
the truth (marked *). Of HDBSCAN's answer the clusters are taken as they are, and its noise as one more.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

METHODS = {
    "CategoryDiscovery": "genus.CategoryDiscovery().fit(X, y).labels_",
    "CategoryDiscovery(shc)": "genus.CategoryDiscovery('shc').fit(X, y).labels_",
    "CategoryDiscovery(ukc)": "genus.CategoryDiscovery('ukc').fit(X, y).labels_",
    "AgglomerativeClustering *": "AgglomerativeClustering(K, metric='cosine', linkage='average').fit(X).labels_",
    "KMeans *": "KMeans(K, n_init=3, random_state=0).fit(unit(X)).labels_",
    "SelfTrainingClassifier": "SelfTrainingClassifier(KNeighborsClassifier(5)).fit(unit(X), y).predict(unit(X))",
    "HDBSCAN": "HDBSCAN(min_cluster_size=15, copy=False).fit(unit(X)).labels_",
}
IMPORTS = {
    "genus": "import genus; genus.CategoryDiscovery",
    "Agglomerative": "from sklearn.cluster import AgglomerativeClustering",
    "KMeans": "from sklearn.cluster import KMeans",
    "SelfTraining": "from sklearn.neighbors import KNeighborsClassifier\n"
    "from sklearn.semi_supervised import SelfTrainingClassifier",
    "HDBSCAN": "from sklearn.cluster import HDBSCAN",
}


def pile(rows, features, classes):
    """Classes around directions of their own, some near each other, of different sizes and widths; half of them known by ten items."""
    rng = np.random.default_rng(0)
    parents = rng.normal(size=(classes // 5, features))
    centres = parents[rng.integers(len(parents), size=classes)] + 0.9 * rng.normal(size=(classes, features))
    shares = rng.uniform(0.3, 1.7, classes)
    kind = rng.choice(classes, size=rows, p=shares / shares.sum())
    width = rng.uniform(1.5, 3.0, classes)
    X = (centres[kind] + width[kind, None] * rng.normal(size=(rows, features)) + 2.0).astype(np.float32)
    y = np.full(rows, -1)
    for known in range(classes // 2):
        y[np.flatnonzero(kind == known)[:10]] = known
    return X, y, kind


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def peak():
    """The most memory that this process had, in MB."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes / 1024 if sys.platform != "darwin" else kilobytes / 2**20


def measure(method, size):
    X, y, kind = pile(*size)
    K = size[2]
    names = {"np": np, "X": X, "y": y, "K": K, "unit": unit}
    code = METHODS[method]
    for word, line in IMPORTS.items():
        if word in code:
            exec(line, names)
    before, start = peak(), time.perf_counter()
    labels = eval(code, names)
    seconds, memory = time.perf_counter() - start, peak() - before
    from genus import bench

    # Whoever gives numbers of its own to the known classes is asked for the examples.
    known = size[2] // 2
    found = np.unique(labels, return_inverse=True)[1].reshape(-1)
    of_known = np.array([np.bincount(found[y == k]).argmax() for k in range(known)])
    order = np.full(found.max() + 1, -1)
    for k, cluster in enumerate(of_known):
        if order[cluster] < 0:
            order[cluster] = k
    order[order < 0] = known + np.arange((order < 0).sum())
    asked = y < 0
    judged = bench.metrics(kind[asked], order[found[asked]], known=known)
    print(json.dumps({"seconds": seconds, "memory": memory, "K": int(found.max()) + 1, **judged["paper"]}))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=10_000)
    arguments.add_argument("--features", type=int, default=768)
    arguments.add_argument("--classes", type=int, default=50)
    arguments.add_argument("--method", choices=METHODS)
    given = arguments.parse_args()
    size = (given.rows, given.features, given.classes)
    if given.method:
        return measure(given.method, size)
    print("| method | time | memory | K | All | Old | New |\n|---|---|---|---|---|---|---|")
    for method in METHODS:
        flags = [f"--rows={size[0]}", f"--features={size[1]}", f"--classes={size[2]}", f"--method={method}"]
        done = subprocess.run([sys.executable, __file__, *flags], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        shares = " | ".join(f"{100 * found[side]:.1f}" for side in ("all", "old", "new"))
        print(
            f"| {method} | {found['seconds']:.1f} s | {found['memory']:.0f} MB | {found['K']} | {shares} |", flush=True
        )


if __name__ == "__main__":
    main()
