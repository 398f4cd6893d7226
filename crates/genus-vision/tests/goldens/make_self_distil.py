#!/usr/bin/env python3
"""Some steps of training of SimGCD's objective, as PyTorch takes them in float64: self_distil.json.

usage: python3 make_self_distil.py      (pip install torch timm numpy)

A classifier and a projection head learn from one batch of two views, the same at every step: from made-up features by
themselves, or with the last block of a network from made-up pixels. Weights are made as in make_features.py and not stored.
Every run is repeated in float32, which must agree.

Of a case: `labels` are those of the images, -1 for none; `teachers` are the teacher's temperatures and `losses` the losses
before each step. `gradients` are those of the first step, of the features and, by length, of every tensor; `trained` has the
length of the change of each tensor over all steps, `features` those of the two images of make_features.py in the end.
"""
import copy
import json
import math
import os

import numpy as np
import torch
from make_features import HERE, fill, pixels, rounded, uniform
from make_training import MOMENTUM, difference, supcon
from torch import nn
from torch.nn import functional as F

# Strong, so that it shows which tensors it spares.
WEIGHT_DECAY = 0.05
SUPERVISED = 0.35
ENTROPY = 2.0
STUDENT = 0.1
AGREEMENT = 1e-3


class Classifier(nn.Module):
    """Cosines with one direction a category."""

    def __init__(self, features, heads):
        super().__init__()
        self.weight_v = nn.Parameter(torch.empty(heads, features))

    def forward(self, x):
        return F.normalize(x) @ F.normalize(self.weight_v).T


class Head(nn.Module):
    def __init__(self, features, hidden, embedding, heads):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, embedding))
        self.classifier = Classifier(features, heads)


def loss_of(head, x, labels, temperature):
    """The loss of two views, one after the other, term by term as the paper has it."""
    images = len(x) // 2
    labels = torch.tensor(labels)
    known = (labels >= 0).nonzero()[:, 0]
    both = torch.cat([known, known + images])
    z = F.normalize(head.mlp(x))
    of_views = supcon(z, list(range(images)) * 2, 1.0)
    of_classes = supcon(z[both], labels[known].tolist() * 2, 0.07)

    logits = head.classifier(x)
    supervised = F.cross_entropy(logits[both] / STUDENT, labels[known].repeat(2))
    teachers = (logits.detach() / temperature).softmax(1).split(images)
    students = (logits / STUDENT).log_softmax(1).split(images)
    distilled = -((teachers[0] * students[1]).sum(1).mean() + (teachers[1] * students[0]).sum(1).mean()) / 2
    mean = (logits / STUDENT).softmax(1).mean(0)
    even = math.log(len(mean)) + (mean * mean.log()).sum()
    return (1 - SUPERVISED) * (distilled + ENTROPY * even + of_views) + SUPERVISED * (supervised + of_classes)


def run(model, forward, trained, head, x, labels, used, lrs, teachers, dtype):
    """What comes of training copies in a precision."""
    model, head = copy.deepcopy(model).to(dtype), copy.deepcopy(head).to(dtype)
    before = {n: t.clone() for n, t in [*model.state_dict().items(), *head.state_dict().items()]}
    model.eval().requires_grad_(False)
    for module in trained(model):
        module.requires_grad_(True)
    names = {**dict(model.named_parameters()), **dict(head.named_parameters())}
    tensors = {n: p for n, p in names.items() if p.requires_grad}
    # As in SimGCD: biases and norms are not drawn to zero.
    groups = [
        {"params": [p for p in tensors.values() if p.ndim > 1], "weight_decay": WEIGHT_DECAY},
        {"params": [p for p in tensors.values() if p.ndim == 1], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.SGD(groups, lr=lrs[0], momentum=MOMENTUM)
    losses, gradients, slope = [], {}, None
    for lr, temperature in zip(lrs, teachers):
        for group in optimiser.param_groups:
            group["lr"] = lr
        optimiser.zero_grad()
        features = forward(model, x.to(dtype)).flatten(1)
        features = features if features.requires_grad else features.requires_grad_()
        features.retain_grad()
        loss = loss_of(head["head"], features, labels, temperature)
        loss.backward()
        losses.append(loss.item())
        if slope is None:
            slope = features.grad.double().numpy().copy()
            gradients = {n: p.grad.norm().item() for n, p in tensors.items()}
        optimiser.step()
    with torch.inference_mode():
        features = forward(model, used.to(dtype)).flatten(1).double().numpy()
    after = {**model.state_dict(), **head.state_dict()}
    moved = {n: (after[n] - before[n]).norm().item() for n in tensors}
    return losses, slope, gradients, moved, features


def case(name, about, model, forward, trained, dim, shape, x, labels, used, lrs, teachers):
    table = fill(model)
    head = nn.ModuleDict({"head": Head(dim, *shape)})
    head_table = fill(head)
    losses, slope, gradients, moved, features = run(
        model, forward, trained, head, x, labels, used, lrs, teachers, torch.float64)
    single = run(model, forward, trained, head, x, labels, used, lrs, teachers, torch.float32)
    off = difference(single[0], losses), difference(single[1], slope), difference(single[4], features)
    print(f"{name}: losses {' '.join(f'{v:.4f}' for v in losses)}; float32 off by {off[0]:.1e}, {off[1]:.1e}, {off[2]:.1e}")
    assert max(off) < AGREEMENT, "float32 does not follow"
    short = lambda v: float(f"{v:.7g}")
    return {
        "name": name,
        **about,
        "tensors": table,
        "head": {"inputs": dim, **dict(zip(["hidden", "embedding", "heads"], shape)), "tensors": head_table},
        "labels": labels,
        "lrs": lrs,
        "teachers": teachers,
        "losses": losses,
        "gradients": {"features": [[short(v) for v in row] for row in slope], **{n: short(v) for n, v in gradients.items()}},
        "trained": [[n, short(moved[n])] for n in moved],
        "features": rounded(features),
    }


def cases():
    from timm.models.vision_transformer import VisionTransformer

    labels = [0, 1, 2, 0, 1, -1, -1, -1, -1]
    dim, shape = 10, (24, 16, 5)
    features = torch.from_numpy(uniform("self-distil features", 2 * len(labels) * dim).reshape(-1, dim))
    yield case("by themselves", {}, nn.Identity(), lambda m, x: x.clone(), lambda m: [], dim, shape, features, labels,
               features[:2], [0.02, 0.02, 0.01], [0.07, 0.05, 0.04])

    side, images = 32, len(labels)
    batch = torch.from_numpy(1.5 * uniform("training pixels", 2 * images * 3 * side * side).reshape(-1, 3, side, side))
    vit = VisionTransformer(img_size=side, patch_size=8, embed_dim=48, depth=3, num_heads=4, mlp_ratio=3, num_classes=0)
    about = {"architecture": {"kind": "vit", "heads": 4, "positions": "dino"}, "side": side, "blocks": 1}
    yield case("ViT, the last block", about, vit, lambda m, x: m.forward_features(x)[:, 0], lambda m: m.blocks[-1:], 48,
               shape, batch, labels, pixels(side), [0.005, 0.005, 0.003], [0.07, 0.05, 0.04])


if __name__ == "__main__":
    torch.manual_seed(0)
    out = {
        "momentum": MOMENTUM,
        "weight_decay": WEIGHT_DECAY,
        "supervised": SUPERVISED,
        "entropy": ENTROPY,
        "student": STUDENT,
        "cases": list(cases()),
    }
    json.dump(out, open(os.path.join(HERE, "self_distil.json"), "w"))
