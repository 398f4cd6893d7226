#!/usr/bin/env python3
"""Some steps of training of OCD's hash head, as PyTorch takes them in float64: hash.json.

usage: python3 make_hash.py      (pip install torch torchvision timm numpy)

The head learns from one batch, the same at every step: from made-up features by itself, or with the last blocks of a
network from made-up pixels. Weights are made as in make_features.py and not stored. Every run is repeated in float32,
which must agree.

Of a case: `losses` are those before each step, `trained` has the length of the change of each tensor over all steps and
`statistics` that of running means and variances. `hashes` are the values of h after the last step with running
statistics: of the features, or of the two images of make_features.py.
"""
import copy
import json
import os

import numpy as np
import torch
from make_features import HERE, fill, pixels, rounded, uniform
from make_training import IMAGES, LABELS, MOMENTUM, TEMPERATURE, WEIGHT_DECAY, difference, supcon
from torch import nn
from torch.nn import functional as F

SIGN_WEIGHT = 3.0
AGREEMENT = 1e-3


class HashHead(nn.Module):
    """Signs and magnitudes, from the definition in the paper; names as in its authors' files."""

    def __init__(self, features, hidden, embedding, bits):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
            nn.Linear(hidden, embedding), nn.BatchNorm1d(embedding), nn.GELU())
        self.hash = nn.Linear(embedding, bits, bias=False)
        self.variance = nn.Linear(embedding, bits, bias=False)
        self.bn_h = nn.BatchNorm1d(bits)
        self.bn_v = nn.BatchNorm1d(bits)

    def forward(self, x):
        x = self.mlp(x)
        h = torch.tanh(self.bn_h(self.hash(x)))
        b = self.bn_v(self.variance(x))
        return h, b / torch.tanh(b)


def loss_of(head, x, labels):
    h, v = head(x)
    return supcon(F.normalize(h * v), labels, TEMPERATURE) + SIGN_WEIGHT * (1 - h.abs()).mean()


def run(model, forward, trained, head, x, labels, used, lrs, dtype):
    """What comes of training copies in a precision."""
    model, head = copy.deepcopy(model).to(dtype), copy.deepcopy(head).to(dtype)
    before = {n: t.clone() for n, t in [*model.state_dict().items(), *head.state_dict().items()]}
    model.eval().requires_grad_(False)
    for module in trained(model):
        module.train().requires_grad_(True)
    head.train()
    names = {**dict(model.named_parameters()), **dict(head.named_parameters())}
    tensors = {n: p for n, p in names.items() if p.requires_grad and not n.startswith("fc.")}
    optimiser = torch.optim.SGD(tensors.values(), lr=lrs[0], momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    losses = []
    for lr in lrs:
        optimiser.param_groups[0]["lr"] = lr
        optimiser.zero_grad()
        loss = loss_of(head["head"], forward(model, x.to(dtype)).flatten(1), labels)
        loss.backward()
        losses.append(loss.item())
        optimiser.step()
    model.eval()
    head.eval()
    with torch.inference_mode():
        hashes = head["head"](forward(model, used.to(dtype)).flatten(1))[0].double().numpy()
    after = {**model.state_dict(), **head.state_dict()}
    moved = {n: (t - before[n]).norm().item() for n, t in after.items() if t.is_floating_point()}
    return losses, [n for n in tensors], moved, hashes


def case(name, about, model, forward, trained, dim, shape, x, labels, used, lrs):
    table = fill(model)
    head = nn.ModuleDict({"head": HashHead(dim, *shape)})
    head_table = fill(head)
    losses, tensors, moved, hashes = run(model, forward, trained, head, x, labels, used, lrs, torch.float64)
    single = run(model, forward, trained, head, x, labels, used, lrs, torch.float32)
    off = difference(single[0], losses), difference(single[3], hashes)
    print(f"{name}: losses {' '.join(f'{v:.4f}' for v in losses)}; hashes {hashes.shape}, mean |h| {np.abs(hashes).mean():.2f}; "
          f"float32 off by {off[0]:.1e} and {off[1]:.1e}")
    assert max(off) < AGREEMENT, "float32 does not follow"
    assert all(a > b for a, b in zip(losses, losses[1:])), "the loss does not go down"
    short = lambda v: float(f"{v:.7g}")
    return {
        "name": name,
        **about,
        "tensors": table,
        "head": {"inputs": dim, **dict(zip(["hidden", "embedding", "bits"], shape)), "tensors": head_table},
        "labels": labels,
        "lrs": lrs,
        "losses": losses,
        "trained": [[n, short(moved[n])] for n in tensors if moved[n] > 0],
        "statistics": [[n, short(m)] for n, m in moved.items() if m > 0 and n not in tensors],
        "hashes": rounded(hashes),
    }


def cases():
    import torchvision
    from timm.models.vision_transformer import VisionTransformer

    rows, dim = 20, 10
    features = torch.from_numpy(uniform("hash features", rows * dim).reshape(rows, dim))
    views = [0, 1, 2, 3, 2, 1, 0, 3, 4, 0]
    yield case("head alone", {"rows": rows}, nn.Identity(), lambda m, x: x, lambda m: [], dim, (24, 16, 6), features,
               views + views, features, [0.02, 0.02, 0.01, 0.01])

    batch = lambda side: torch.from_numpy(
        1.5 * uniform("training pixels", IMAGES * 3 * side * side).reshape(IMAGES, 3, side, side))
    vit = VisionTransformer(img_size=32, patch_size=8, embed_dim=48, depth=3, num_heads=4, mlp_ratio=3, num_classes=0)
    about = {"architecture": {"kind": "vit", "heads": 4, "positions": "dino"}, "side": 32, "blocks": 1, "images": IMAGES}
    yield case("ViT, the last block", about, vit, lambda m, x: m.forward_features(x)[:, 0], lambda m: m.blocks[-1:], 48,
               (24, 16, 6), batch(32), LABELS, pixels(32), [0.003, 0.003, 0.002])

    def pooled(m, x):
        for layer in [m.conv1, m.bn1, m.relu, m.maxpool, m.layer1, m.layer2, m.layer3, m.layer4, m.avgpool]:
            x = layer(x)
        return x

    about = {"architecture": {"kind": "resnet18"}, "side": 64, "blocks": 2, "images": IMAGES}
    yield case("ResNet-18, the last two blocks", about, torchvision.models.resnet18(), pooled, lambda m: m.layer4, 512,
               (24, 16, 6), batch(64), LABELS, pixels(64), [3e-4, 3e-4, 2e-4])


if __name__ == "__main__":
    torch.manual_seed(0)
    out = {
        "momentum": MOMENTUM,
        "weight_decay": WEIGHT_DECAY,
        "temperature": TEMPERATURE,
        "sign_weight": SIGN_WEIGHT,
        "cases": list(cases()),
    }
    json.dump(out, open(os.path.join(HERE, "hash.json"), "w"))
