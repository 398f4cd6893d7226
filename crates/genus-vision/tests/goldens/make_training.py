#!/usr/bin/env python3
"""Some steps of training of every architecture, as PyTorch takes them in float64: training.json.

usage: python3 make_training.py      (pip install torch torchvision timm numpy)

A network and a DINO head learn from one batch of made-up pixels, the same at every step, with the supervised contrastive
loss and SGD. Weights are made as in make_features.py and not stored. Every run is repeated in float32, which must agree:
a golden that float32 cannot reach would test nothing.

Of a case: `blocks` is the number of last blocks that are trained, or "all"; what is not trained stays as in use, its batch
normalisation included. `losses` are those before each step. `trained` has the length of a tensor's gradient at the first
step and of its change over all steps, `statistics` that of the change of running means and variances. `features` are
those of the trained network, in use, of the two images of make_features.py.
"""
import copy
import json
import os

import numpy as np
import torch
from make_features import HERE, fill, pixels, rounded, uniform
from torch import nn
from torch.nn import functional as F

MOMENTUM = 0.9
WEIGHT_DECAY = 5e-5
TEMPERATURE = 0.07
IMAGES = 12
# The last row is the only one of its class: it has no positives and is a negative to all others.
LABELS = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 3]
# The most that float32 may differ from float64, relative to the largest value.
AGREEMENT = 1e-3


class LastLayer(nn.Module):
    """A linear layer without bias whose rows have length one."""

    def __init__(self, embedding, width):
        super().__init__()
        self.weight_v = nn.Parameter(torch.empty(width, embedding))

    def forward(self, x):
        return x @ (self.weight_v / self.weight_v.norm(dim=1, keepdim=True)).T


class Head(nn.Module):
    """DINO's head; with a width of 0 it ends at the normalised embedding."""

    def __init__(self, features, hidden, embedding, width):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, embedding))
        self.last_layer = LastLayer(embedding, width) if width else None

    def forward(self, x):
        x = F.normalize(self.mlp(x), eps=1e-12)
        return F.normalize(self.last_layer(x), eps=1e-12) if self.last_layer else x


def supcon(z, labels, temperature):
    """The supervised contrastive loss of unit rows, from its definition."""
    similarity = z @ z.T / temperature
    losses = []
    for i in range(len(z)):
        others = [a for a in range(len(z)) if a != i]
        positives = [p for p in others if labels[p] == labels[i]]
        if positives:
            losses.append(torch.logsumexp(similarity[i, others], 0) - similarity[i, positives].mean())
    return torch.stack(losses).mean()


def steps(model, forward, trained, head, x, lrs, fixed):
    """Trains in place. The losses before each step and the lengths of the gradients of the first."""
    model.eval().requires_grad_(False)
    for module in trained:
        # Unless they are fixed, batch normalisation of what is trained takes the statistics of the batch and moves the
        # running ones.
        module.train(not fixed).requires_grad_(True)
    names = {**dict(model.named_parameters()), **dict(head.named_parameters())}
    # Classifiers of other projects are in the table and take no part.
    tensors = {n: p for n, p in names.items() if p.requires_grad and not n.startswith(("fc.", "classifier."))}
    optimiser = torch.optim.SGD(tensors.values(), lr=lrs[0], momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    losses, gradients = [], {}
    for lr in lrs:
        optimiser.param_groups[0]["lr"] = lr
        optimiser.zero_grad()
        loss = supcon(head["head"](forward(model, x).flatten(1)), LABELS, TEMPERATURE)
        loss.backward()
        losses.append(loss.item())
        gradients = gradients or {n: p.grad.norm().item() for n, p in tensors.items()}
        optimiser.step()
    model.eval().requires_grad_(False)
    return losses, gradients


def run(model, forward, trained, head, side, lrs, fixed, dtype):
    """What comes of training copies of a network and a head in a precision."""
    model, head = copy.deepcopy(model).to(dtype), copy.deepcopy(head).to(dtype)
    before = {n: t.clone() for n, t in [*model.state_dict().items(), *head.state_dict().items()]}
    x = torch.from_numpy(1.5 * uniform("training pixels", IMAGES * 3 * side * side).reshape(IMAGES, 3, side, side)).to(dtype)
    losses, gradients = steps(model, forward, trained(model), head, x, lrs, fixed)
    with torch.inference_mode():
        features = forward(model, pixels(side).to(dtype)).reshape(2, -1).double().numpy()
        untrained = features_untrained(model, forward, before, side, dtype)
    after = {**model.state_dict(), **head.state_dict()}
    moved = {n: (t - before[n]).norm().item() for n, t in after.items() if t.is_floating_point()}
    return losses, gradients, {n: m for n, m in moved.items() if m > 0}, features, np.abs(features - untrained).max()


def features_untrained(model, forward, before, side, dtype):
    """Features with the weights from before and the statistics from after: how much of the change the weights make."""
    other = copy.deepcopy(model)
    other.load_state_dict({n: before[n] for n, _ in other.named_parameters()}, strict=False)
    return forward(other, pixels(side).to(dtype)).reshape(2, -1).double().numpy()


def difference(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return float(np.abs(a - b).max() / np.abs(b).max())


def case(name, architecture, model, side, forward, blocks, trained, head, lrs, fixed=False):
    hidden, embedding, width = head
    table = fill(model)
    with torch.inference_mode():
        dim = forward(model.eval(), pixels(side)).reshape(2, -1).shape[1]
    head = nn.ModuleDict({"head": Head(dim, hidden, embedding, width)})
    head_table = fill(head)
    losses, gradients, moved, features, change = run(model, forward, trained, head, side, lrs, fixed, torch.float64)
    single = run(model, forward, trained, head, side, lrs, fixed, torch.float32)
    off = difference(single[0], losses), difference(single[3], features)
    print(f"{name}: losses {' '.join(f'{v:.4f}' for v in losses)}; features {features.shape} moved by {change:.2g} of "
          f"{np.abs(features).max():.2g}; float32 off by {off[0]:.1e} and {off[1]:.1e}")
    assert max(off) < AGREEMENT, "float32 does not follow"
    assert all(a > b for a, b in zip(losses, losses[1:])), "the loss does not go down"
    assert change > 20 * AGREEMENT * np.abs(features).max(), "the weights hardly change the features"
    short = lambda v: float(f"{v:.7g}")
    return {
        "name": name,
        "architecture": architecture,
        "side": side,
        "blocks": blocks,
        "fixed_statistics": fixed,
        "tensors": table,
        "head": {"hidden": hidden, "embedding": embedding, "width": width, "tensors": head_table},
        "images": IMAGES,
        "views": 1,
        "labels": LABELS,
        "lrs": lrs,
        "losses": losses,
        "trained": [[n, short(gradients[n]), short(moved[n])] for n in gradients],
        "statistics": [[n, short(moved[n])] for n in moved if n not in gradients],
        "features": rounded(features),
    }


def cases():
    import timm
    import torchvision
    from timm.models.vision_transformer import VisionTransformer

    vit = {"kind": "vit", "heads": 4, "positions": "dino"}
    small = dict(img_size=32, patch_size=8, embed_dim=48, depth=3, num_heads=4, mlp_ratio=3, num_classes=0)
    cls = lambda m, x: m.forward_features(x)[:, 0]
    last = lambda count: lambda m: m.blocks[-count:]
    yield case("ViT, the last block", vit, VisionTransformer(**small), 32, cls, 1, last(1), (24, 16, 40),
               [0.01, 0.01, 0.005])
    yield case("ViT, the last two blocks", vit, VisionTransformer(**small), 32, cls, 2, last(2), (24, 16, 0),
               [0.005, 0.005, 0.003])
    scaled = VisionTransformer(init_values=1.0, **small)
    yield case("ViT with layer scale, all", vit, scaled, 32, cls, "all", lambda m: [m], (24, 16, 40),
               [0.002, 0.002, 0.001])

    def pooled(m, x):
        for layer in [m.conv1, m.bn1, m.relu, m.maxpool, m.layer1, m.layer2, m.layer3, m.layer4, m.avgpool]:
            x = layer(x)
        return x

    # With weights that were never trained and few images, batch normalisation lets rounding grow; small rates keep it small.
    resnet, kind = torchvision.models.resnet18(), {"kind": "resnet18"}
    yield case("ResNet-18, all", kind, resnet, 64, pooled, "all", lambda m: [m], (24, 16, 40),
               [2e-4, 2e-4, 1e-4])
    yield case("ResNet-18, the last two blocks", kind, resnet, 64, pooled, 2, lambda m: m.layer4, (24, 16, 40),
               [5e-4, 5e-4, 3e-4])
    yield case("ResNet-18, the last two blocks, statistics fixed", kind, resnet, 64, pooled, 2, lambda m: m.layer4, (24, 16, 40),
               [5e-4, 5e-4, 3e-4], fixed=True)

    lite = timm.create_model("tf_efficientnet_lite0")
    pre_logits = lambda m, x: m.forward_head(m.forward_features(x), pre_logits=True)
    # Blocks are counted across stages; the last convolution goes with the blocks.
    ends = lambda m: [block for stage in m.blocks for block in stage][-3:] + [m.conv_head, m.bn2]
    yield case("Lite0, the last three blocks", {"kind": "lite0"}, lite, 64, pre_logits, 3, ends, (24, 16, 40),
               [7e-4, 7e-4, 5e-4])
    yield case("Lite0, the last three blocks, statistics fixed", {"kind": "lite0"}, lite, 64, pre_logits, 3, ends, (24, 16, 40),
               [1.5e-3, 1.5e-3, 1e-3], fixed=True)


def supcon_cases():
    """The loss of raw rows, normalised within, and its gradient with respect to them."""
    views = [0, 1, 2, 2, 1]
    for name, labels, count, temperature in [
        ("two classes", [0, 0, 1, 1, 1, 0], 1, 0.07),
        ("a class of one row", [4, 2, 4, 7, 2, 4, 2], 1, 0.1),
        ("two views", views + views, 2, 0.07),
    ]:
        rows = uniform(f"supcon, {name}", 5 * len(labels)).reshape(-1, 5)
        z = torch.from_numpy(rows).double().requires_grad_()
        loss = supcon(F.normalize(z, eps=1e-12), labels, temperature)
        loss.backward()
        yield {
            "name": name,
            "temperature": temperature,
            "views": count,
            "labels": labels,
            "embeddings": [[float(v) for v in row] for row in rows],
            "loss": loss.item(),
            "gradient": z.grad.tolist(),
        }


if __name__ == "__main__":
    torch.manual_seed(0)
    out = {
        "momentum": MOMENTUM,
        "weight_decay": WEIGHT_DECAY,
        "temperature": TEMPERATURE,
        "cases": list(cases()),
        "supcon": list(supcon_cases()),
    }
    json.dump(out, open(os.path.join(HERE, "training.json"), "w"))
