"""Genus beside what people sort piles with: the same features, the same draws, in one run.

Part of compare.py: `python3 bench/compare.py piles --features FILE` (pip install umap-learn leidenalg finch-clust).

A pile is drawn by its number: classes, known ones among them, items. Genus reads a feature file in which only the examples
have labels. A peer sees examples and pile as one matrix, centred and with rows of length one; a known class is the
cluster that most of its examples lie in. All is the share of the pile that is right by the paper's metric, K counts the
categories. What HDBSCAN calls noise joins the cluster of its nearest item that is none. Peers are timed in memory after
a first run on a small matrix, Genus from file to assignments.
"""
import csv
import io
import json
import os
import time

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import silhouette_score
from sklearn.neighbors import NearestNeighbors

# Items of a silhouette, which looks at all pairs.
SAMPLE = 2000


def unit(x):
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)


def accuracy(home, clusters, truth):
    """All by the paper's metric. `home` is the cluster of every known class; they are the first classes of the truth."""
    known = len(home)
    right = 0
    # A cluster that several known classes claim belongs to the one that has most items in it.
    for cluster in set(home):
        inside = truth[clusters == cluster]
        right += max(np.sum(inside == c) for c in range(known) if home[c] == cluster)
    new = (truth >= known) & ~np.isin(clusters, home) & (clusters >= 0)
    if new.any():
        found, classes = (np.unique(labels[new], return_inverse=True) for labels in (clusters, truth))
        counts = np.zeros((len(found[0]), len(classes[0])))
        np.add.at(counts, (found[1], classes[1]), 1)
        right += counts[linear_sum_assignment(-counts)].sum()
    return right / len(truth)


def homes(clusters, labels, known):
    """The cluster that most examples of a class lie in. A class whose examples are all noise has none."""
    home = []
    for c in range(known):
        found, counts = np.unique(clusters[(labels == c) & (clusters >= 0)], return_counts=True)
        home.append(found[counts.argmax()] if len(found) else -2 - c)
    return home


def umap_hdbscan(x):
    import umap

    low = umap.UMAP(n_neighbors=15, n_components=10, min_dist=0.0, metric="cosine", random_state=0).fit_transform(x)
    labels = HDBSCAN(min_cluster_size=10, min_samples=5, copy=True).fit_predict(low)
    noise = labels < 0
    if noise.any() and not noise.all():
        nearest = NearestNeighbors(n_neighbors=1).fit(low[~noise]).kneighbors(low[noise], return_distance=False)
        labels[noise] = labels[~noise][nearest[:, 0]]
    return labels


def leiden(x, resolution=1.4):
    """Communities of the graph of shared neighbours that Genus looks at: edges weigh the Jaccard index of two neighbourhoods."""
    import igraph
    import leidenalg

    k = min(15, max(5, len(x) // 15))
    near = np.empty((len(x), k), int)
    for begin in range(0, len(x), 2048):
        s = x[begin : begin + 2048] @ x.T
        s[np.arange(len(s)), begin + np.arange(len(s))] = -2
        near[begin : begin + 2048] = np.argpartition(-s, k, axis=1)[:, :k]
    sets = [set(row) for row in near.tolist()]
    edges = {}
    for i, row in enumerate(near.tolist()):
        for j in row:
            common = len(sets[i] & sets[j])
            if common:
                edges[min(i, j), max(i, j)] = common / (2 * k - common)
    graph = igraph.Graph(n=len(x), edges=list(edges))
    part = leidenalg.find_partition(
        graph, leidenalg.RBConfigurationVertexPartition, weights=list(edges.values()), resolution_parameter=resolution, seed=0
    )
    return np.array(part.membership)


def silhouette(x, labels):
    if not 1 < len(np.unique(labels)) < len(x):
        return -1.0
    try:
        return silhouette_score(x, labels, sample_size=min(SAMPLE, len(x)), random_state=0)
    except ValueError:  # The sample may have one cluster only.
        return -1.0


def kmeans(x):
    """k-means with the number of clusters, of a dozen from 4 to 128, that has the best silhouette."""
    tried = sorted({int(k) for k in np.geomspace(4, min(128, len(x) // 2), 12)})
    return max((KMeans(k, n_init=1, random_state=0).fit(x).labels_ for k in tried), key=lambda labels: silhouette(x, labels))


def finch(x):
    """The partition of FINCH's hierarchy that has the best silhouette."""
    from finch import FINCH

    partitions = FINCH(x, distance="cosine", verbose=False)[0]
    return max((partitions[:, i] for i in range(partitions.shape[1])), key=lambda labels: silhouette(x, labels))


PEERS = {
    "UMAP + HDBSCAN (10)": umap_hdbscan,
    "Leiden, shared neighbours (1.4)": leiden,
    "k-means, best silhouette": kmeans,
    "FINCH, best silhouette": finch,
}


def ladder(text, classes, rng):
    """The items of every class: one number, or two for a geometric ladder in a random order."""
    low, _, high = text.partition("-")
    sizes = np.geomspace(int(low), int(high or low), classes).round().astype(int)
    return rng.permutation(sizes)


def draw(x, y, classes, known, shot, items, seed):
    """Rows of a pile with the label of every example, -1 elsewhere, and the truth. Known classes are the first ones."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(np.unique(y))[:classes]
    rows, labels, truth = [], [], []
    for c, (name, size) in enumerate(zip(chosen, ladder(items, classes, rng))):
        shots = shot if c < known else 0
        of_class = rng.permutation(np.flatnonzero(y == name))
        if len(of_class) < shots + size:
            raise SystemExit(f"class {name} has {len(of_class)} items, and a pile of {items} needs {shots + size}; ask for fewer (--piles)")
        rows.append(of_class[: shots + size])
        labels += [c] * shots + [-1] * size
        truth += [c] * (shots + size)
    order = rng.permutation(len(truth))
    return x[np.concatenate(rows)][order], np.array(labels)[order], np.array(truth)[order]


def genus_clusters(genus, folder, method, x, labels, run_measured):
    path = os.path.join(folder, "pile.npz")
    np.savez(path, x=x, y=labels)
    elapsed, _, out = run_measured([genus, "discover", path, "--method", method, "--quiet"])
    names = [row["category"] for row in csv.DictReader(io.StringIO(out.decode()))]
    known = {str(c): c for c in range(labels.max() + 1)}
    numbers = dict(known)
    return elapsed, np.array([numbers.setdefault(name, len(numbers)) for name in names]), list(known.values())


def piles(folder, genus, run_measured, features, split, kinds, methods, draws, shot):
    data = np.load(features)
    x, y = data["x"].astype(np.float32), data["y"]
    if split:
        with open(split) as file:
            novel = json.load(file)["novel"]
        names = [str(name) for name in data["classes"]] if "classes" in data else None
        numbers = [names.index(str(c)) if names else c for c in novel]
        x, y = x[np.isin(y, numbers)], y[np.isin(y, numbers)]
    rng = np.random.default_rng(0)
    small = unit(rng.standard_normal((300, x.shape[1])).astype(np.float32))
    for peer in PEERS.values():
        peer(small)
    print(f"\n{os.path.basename(features)}; draws of a pile: {draws}, examples of a known class: {shot}")
    print("\n| pile | method | All, % | K | time |\n|---|---|---|---|---|")
    for kind in kinds:
        classes, items, known = (part.strip() for part in kind.split(":"))
        results = {}
        for seed in range(draws):
            rows, labels, truth = draw(x, y, int(classes), int(known), shot, items, seed)
            in_pile = labels < 0
            for method in methods:
                elapsed, clusters, home = genus_clusters(genus, folder, method, rows, labels, run_measured)
                # Known classes are categories with and without items.
                k = len(set(clusters) | set(home))
                results.setdefault(f"Genus, {method}", []).append((accuracy(home, clusters, truth[in_pile]), k, elapsed))
            points = unit(rows)
            points = unit(points - points.mean(0))
            for name, peer in PEERS.items():
                start = time.perf_counter()
                clusters = peer(points)
                elapsed = time.perf_counter() - start
                home = homes(clusters, labels, int(known))
                k = len(np.unique(clusters[clusters >= 0]))
                results.setdefault(name, []).append((accuracy(home, clusters[in_pile], truth[in_pile]), k, elapsed))
        for name, of_draws in results.items():
            right, k, elapsed = np.mean(of_draws, axis=0)
            print(f"| {classes} × {items.replace('-', '–')}, {known} known | {name} | {100 * right:.1f} | {k:.1f} | {elapsed:.2f} s |", flush=True)
