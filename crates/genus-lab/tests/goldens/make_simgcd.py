#!/usr/bin/env python3
"""SimGCD on frozen features, as PyTorch trains it in float64: simgcd.json.

usage: python3 make_simgcd.py      (pip install torch numpy)

A weight-normalised linear layer is trained with autograd and SGD on small random episodes. Of a case: `support` and `queries`
have a matrix a view, `first` is where the heads begin, `losses` are those at the beginning of each epoch, `weights` the
heads after the last, `predictions` the heads nearest to the queries of the first view. Every run is repeated in float32,
which must agree: a golden that float32 cannot reach would test nothing.
"""
import json
import math
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
AGREEMENT = 1e-3


def cross_entropy(teacher, student):
    return -(teacher * student.log_softmax(1)).sum(1).mean()


def train(case, dtype):
    tensor = lambda rows: torch.tensor(rows, dtype=dtype)
    views = [F.normalize(torch.cat([tensor(s), tensor(q)])) for s, q in zip(case["support"], case["queries"])]
    # A single view is both.
    views = (views * 2)[:2]
    labels = torch.tensor(case["labels"])
    first = tensor(case["first"])
    heads, dim = first.shape
    layer = nn.utils.weight_norm(nn.Linear(dim, heads, bias=False).to(dtype))
    layer.weight_v.data.copy_(first)
    layer.weight_g.data.fill_(1)
    layer.weight_g.requires_grad = False
    optimiser = torch.optim.SGD([layer.weight_v], lr=case["rate"], momentum=case["momentum"],
                                weight_decay=case["weight_decay"])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, case["epochs"], eta_min=case["rate"] * 1e-3)
    begin, end = case["teacher"]
    temperatures = np.append(np.linspace(begin, end, case["warm_up"]), np.full(case["epochs"], end))
    losses = []
    for epoch in range(case["epochs"]):
        logits = [layer(view) for view in views]
        student = [z / case["student"] for z in logits]
        teacher = [(z.detach() / temperatures[epoch]).softmax(1) for z in logits]
        supervised = F.cross_entropy(torch.cat([z[:len(labels)] for z in student]), labels.repeat(2))
        distilled = (cross_entropy(teacher[0], student[1]) + cross_entropy(teacher[1], student[0])) / 2
        mean = torch.cat(student).softmax(1).mean(0)
        even = math.log(heads) + (mean * mean.log()).sum()
        loss = (1 - case["supervised"]) * (distilled + case["entropy"] * even) + case["supervised"] * supervised
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        cosines = layer(views[0][len(labels):])
    return losses, layer.weight_v.detach().double().numpy(), cosines.double().numpy()


def case(name, rng, *, views, classes, known, shots, queries, dim, epochs, spread, entropy, weight_decay, supervised=0.35):
    centres = rng.normal(size=(classes, dim))
    # Views differ less than items do. Values are those that float32 keeps.
    single = lambda x: x.astype(np.float32).astype(float)
    items = lambda labels: centres[labels] + spread * rng.normal(size=(len(labels), dim))
    looks = lambda items: [single(items + 0.3 * spread * rng.normal(size=items.shape)).tolist() for _ in range(views)]
    labels = [label for label in range(known) for _ in range(shots)]
    made = {
        "name": name,
        "labels": labels,
        "support": looks(items(labels)),
        "queries": looks(items([label for label in range(classes) for _ in range(queries)])),
        "first": single(rng.uniform(-1, 1, size=(classes, dim)) / math.sqrt(dim)).tolist(),
        "epochs": epochs,
        "rate": 0.1,
        "momentum": 0.9,
        "weight_decay": weight_decay,
        "supervised": supervised,
        "entropy": entropy,
        "student": 0.1,
        "teacher": [0.07, 0.04],
        "warm_up": 30,
    }
    losses, weights, cosines = train(made, torch.float64)
    single_losses, single_weights, _ = train(made, torch.float32)
    off = [np.abs(np.subtract(a, b)).max() / np.abs(b).max() for a, b in [(single_losses, losses), (single_weights, weights)]]
    ordered = np.sort(cosines, 1)
    lead = (ordered[:, -1] - ordered[:, -2]).min()
    print(f"{name}: loss {losses[0]:.4f} to {losses[-1]:.4f}, float32 off by {off[0]:.1e} and {off[1]:.1e}, least lead {lead:.1e}")
    assert max(off) < AGREEMENT, "float32 does not follow"
    assert lead > AGREEMENT, "a prediction is a matter of rounding"
    return made | {"losses": losses, "weights": weights.tolist(), "predictions": cosines.argmax(1).tolist()}


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    cases = [
        case("two views", rng, views=2, classes=6, known=3, shots=3, queries=5, dim=19, epochs=50, spread=0.5, entropy=2.0,
             weight_decay=5e-5),
        case("one view, fewer epochs than warm up", rng, views=1, classes=4, known=2, shots=1, queries=4, dim=5, epochs=12,
             spread=0.5, entropy=4.0, weight_decay=5e-5),
        case("two views, all known, strong decay", rng, views=2, classes=3, known=3, shots=2, queries=3, dim=33, epochs=40,
             spread=1.0, entropy=1.0, weight_decay=0.05, supervised=0.6),
    ]
    json.dump({"cases": cases}, open(os.path.join(HERE, "simgcd.json"), "w"))
