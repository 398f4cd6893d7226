"""Writes metrics.json: what scipy and scikit-learn answer where Genus must give the same answers.

Run it with Python 3 with numpy, scipy and scikit-learn; the result does not depend on when or where it runs:

    python3 make_goldens.py

Accuracies are written here once more from their definitions, in the plainest way, so that they check the Rust code
independently: matrices over all numbers up to the largest, and all permutations instead of a matching for the paper's.
"""

import itertools
import json
import math
import pathlib
import random

import numpy as np
from scipy.optimize import linear_sum_assignment, minimize_scalar
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score

# Python's own generator: its integers are the same in every version, numpy's need not be.
RANDOM = random.Random(20250508)


def number(value):
    """JSON has no NaN."""
    return None if math.isnan(value) else value


def assignment_case(weights):
    rows, columns = weights.shape
    matched = [None] * rows
    for row, column in zip(*linear_sum_assignment(weights.max() - weights)):
        matched[row] = int(column)
    return {"rows": rows, "columns": columns, "weights": weights.ravel().tolist(), "columns_of_rows": matched}


def assignment_cases():
    cases = []
    square = [(3, 3, 30), (5, 5, 40), (8, 8, 40)]
    rectangular = [(4, 7, 30), (7, 4, 30), (2, 9, 15), (9, 2, 15), (1, 4, 5), (4, 1, 5)]
    for rows, columns, how_many in square + rectangular:
        for case in range(how_many):
            largest = [1, 2, 3, 6][case % 4]
            # Mostly zeros in every second case, as counts are.
            zeros = 0.7 if case % 2 else 0.0
            weights = [0 if RANDOM.random() < zeros else RANDOM.randint(0, largest) for _ in range(rows * columns)]
            cases.append(np.array(weights).reshape(rows, columns))
    for side in (12, 20, 30):
        for largest in (1, 2, 50):
            cases.append(np.array([[RANDOM.randint(0, largest) for _ in range(side)] for _ in range(side)]))
    for rows, columns in ((6, 6), (3, 5), (5, 3)):
        cases.append(np.zeros((rows, columns), dtype=int))
    return [assignment_case(weights) for weights in cases]


def shares(n, truth, right):
    """All, Old and New from what is right of each query."""
    def share(of):
        return number(sum(of) / len(of) if of else math.nan)
    old = [r for t, r in zip(truth, right) if t < n]
    new = [r for t, r in zip(truth, right) if t >= n]
    return [share(right), share(old), share(new)]


def authors_v2(known, clusters, truth):
    n = len(known)
    if not clusters:
        return [None] * 3
    labels = list(range(n)) + truth
    places = known + clusters
    d = 1 + max(labels + places)
    w = np.zeros((d, d), dtype=int)
    for cluster, label in zip(clusters, truth):
        if cluster not in known:
            w[cluster, label] += 1
    partner = {int(label): int(cluster) for cluster, label in zip(*linear_sum_assignment(w.max() - w))}
    for k in range(n):
        owner = next(label for label, cluster in partner.items() if cluster == known[k])
        partner[owner] = partner[k]
        partner[k] = known[k]
    return shares(n, truth, [partner[label] == cluster for cluster, label in zip(clusters, truth)])


def hungarian(clusters, truth):
    """What the one-to-one matching over all numbers makes right of each query."""
    if not clusters:
        return []
    d = 1 + max(clusters + truth)
    w = np.zeros((d, d), dtype=int)
    for cluster, label in zip(clusters, truth):
        w[cluster, label] += 1
    partner = {int(label): int(cluster) for cluster, label in zip(*linear_sum_assignment(w.max() - w))}
    return [partner[label] == cluster for cluster, label in zip(clusters, truth)]


def gcd_v1(known, clusters, truth):
    n = len(known)
    right = [False] * len(truth)
    for side in (True, False):
        which = [i for i, label in enumerate(truth) if (label < n) == side]
        for i, is_right in zip(which, hungarian([clusters[i] for i in which], [truth[i] for i in which])):
            right[i] = is_right
    return shares(n, truth, right)


def gcd_v2(known, clusters, truth):
    return shares(len(known), truth, hungarian(clusters, truth))


def paper(known, clusters, truth):
    n = len(known)
    own = [sum(c == known[k] and t == k for c, t in zip(clusters, truth)) for k in range(n)]
    owner = {}
    for k in range(n):
        if known[k] not in owner or own[k] > own[owner[known[k]]]:
            owner[known[k]] = k
    new_classes = sorted({t for t in truth if t >= n})
    free = sorted(set(clusters) - set(known))
    best, best_map = -1, {}
    for chosen in itertools.permutations(free + [None] * len(new_classes), len(new_classes)):
        matched = dict(zip(new_classes, chosen))
        total = sum(matched[t] == c for c, t in zip(clusters, truth) if t >= n)
        if total > best:
            best, best_map = total, matched
    right = [owner.get(c) == t if t < n else best_map[t] == c for c, t in zip(clusters, truth)]
    return shares(n, truth, right)


def judged_case(index):
    n = RANDOM.randint(0, 4) if index % 10 == 0 else RANDOM.randint(1, 4)
    m = RANDOM.randint(0, 3)
    m += n + m == 0
    queries = RANDOM.randint(0, 6) if index % 15 == 0 else RANDOM.randint(5, 36)
    # Clusters bear numbers with gaps in every third case.
    names = list(range(7)) if index % 3 else sorted(RANDOM.sample(range(13), 7))
    if index % 2:
        RANDOM.shuffle(names)
    home = [RANDOM.randrange(7) if index % 5 == 0 else k for k in range(n + m)]
    noise = [0.1, 0.4, 0.8][index % 3]
    gap = 2 if index % 7 == 0 else 0
    truth, clusters = [], []
    for _ in range(queries):
        label = RANDOM.randrange(n + m)
        place = RANDOM.randrange(7) if RANDOM.random() < noise else home[label]
        truth.append(label if label < n else label + gap)
        clusters.append(names[place])
    known = [names[home[k]] for k in range(n)]
    return known, clusters, truth


def judged_cases():
    cases = [judged_case(index) for index in range(240)]
    cases += [
        # One cluster for everything, and one each.
        ([0], [0] * 6, [0, 0, 0, 1, 1, 2]),
        ([3], [0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 1, 2]),
        # A tie between an old class and a new one that only the numbering decides.
        ([2], [0] * 4, [0, 0, 1, 1]),
        ([2], [1] * 4, [0, 0, 1, 1]),
        # More known classes than any label says.
        ([0, 0, 0, 1], [0, 0, 1], [0, 0, 0]),
    ]
    return [
        {
            "known": known,
            "clusters": clusters,
            "truth": truth,
            "paper": paper(known, clusters, truth),
            "authors-v2": authors_v2(known, clusters, truth),
            "gcd-v1": gcd_v1(known, clusters, truth),
            "gcd-v2": gcd_v2(known, clusters, truth),
            "nmi": normalized_mutual_info_score(truth, clusters),
            "ari": adjusted_rand_score(truth, clusters),
        }
        for known, clusters, truth in cases
    ]


def silhouette_cases():
    cases = []
    while len(cases) < 24:
        count, clusters, dim = RANDOM.randint(5, 25), RANDOM.randint(2, 6), RANDOM.randint(1, 4)
        labels = [RANDOM.randrange(clusters) * 3 for _ in range(count)]
        if not 2 <= len(set(labels)) < count:
            continue
        spread = RANDOM.choice([0, 1, 4, 20])
        points = [[label % 5 * 4 + RANDOM.randint(-spread, spread) for _ in range(dim)] for label in labels]
        score = silhouette_score(np.array(points, dtype=float), labels)
        cases.append({"points": points, "labels": labels, "silhouette": float(score)})
    return cases


# Only operations that every machine rounds alike, because parabolas magnify rounding.
FUNCTIONS = {
    "parabola": lambda x: (x - 2.0) * (x - 2.0),
    "quartic": lambda x: x * x * x * x - 3.0 * x * x + x,
    "absolute": lambda x: abs(x - 1.25),
    "witch": lambda x: -1.0 / (1.0 + (x - 7.0) * (x - 7.0)),
    "line": lambda x: 3.0 - x,
    "constant": lambda x: 1.0,
    "step": lambda x: -min(float(int(x)), 12.0),
    "stairs": lambda x: abs(int(x) - 17.0),
    "plateau": lambda x: -0.8 if int(x) < 9 or int(x) > 14 else -1.0,
    "saw": lambda x: x - int(x) - 0.05 * int(x),
}


def brent_cases():
    cases = []
    for name, lower, upper, xatol, limit in [
        ("parabola", 0.0, 5.0, 1e-5, 500),
        ("parabola", 3.0, 9.0, 1e-5, 500),
        ("parabola", -4.0, 4.0, 1e-8, 500),
        ("parabola", 0.0, 1000.0, 1e-5, 7),
        ("quartic", -2.0, 2.0, 1e-5, 500),
        ("quartic", 0.0, 2.0, 1e-5, 500),
        ("absolute", -3.0, 6.0, 1e-5, 500),
        ("witch", 0.0, 10.0, 1e-5, 500),
        ("witch", -50.0, 20.0, 1e-5, 500),
        ("line", 0.0, 4.0, 1e-5, 500),
        ("constant", 5.0, 25.0, 1e-5, 500),
        ("constant", 2.0, 2.0, 1e-5, 500),
        ("step", 5.0, 25.0, 1e-5, 500),
        ("step", 5.0, 1000.0, 1e-5, 500),
        ("stairs", 5.0, 25.0, 1e-5, 500),
        ("stairs", 10.0, 500.0, 1e-5, 500),
        ("stairs", 5.0, 25.0, 1e-5, 2),
        ("plateau", 5.0, 25.0, 1e-5, 500),
        ("plateau", 5.0, 105.0, 1e-5, 500),
        ("saw", 0.0, 30.0, 1e-5, 500),
    ]:
        visited = []

        def traced(x):
            visited.append(float(x))
            return FUNCTIONS[name](float(x))

        options = {"xatol": xatol, "maxiter": limit}
        found = minimize_scalar(traced, bounds=(lower, upper), method="bounded", options=options)
        case = {"function": name, "lower": lower, "upper": upper, "xatol": xatol, "max_evaluations": limit}
        cases.append(case | {"visited": visited, "x": float(found.x), "value": float(found.fun)})
    return cases


def summary_cases():
    cases = []
    for count in (2, 3, 10, 60):
        values = [RANDOM.randint(0, 150) / 150 for _ in range(count)]
        ci95 = 1.96 * np.std(values, ddof=1) / np.sqrt(count)
        cases.append({"values": values, "mean": float(np.mean(values)), "ci95": float(ci95)})
    return cases


def main():
    goldens = {
        "assignment": assignment_cases(),
        "judged": judged_cases(),
        "silhouette": silhouette_cases(),
        "brent": brent_cases(),
        "summary": summary_cases(),
    }
    # One case a line: small, and a change shows as the case it concerns.
    sections = []
    for name, cases in goldens.items():
        lines = ",\n".join(json.dumps(case, separators=(",", ":"), allow_nan=False) for case in cases)
        sections.append(f'"{name}":[\n{lines}\n]')
    text = "{\n" + ",\n".join(sections) + "\n}\n"
    pathlib.Path(__file__).with_name("metrics.json").write_text(text)


if __name__ == "__main__":
    main()
