#!/usr/bin/env python3
"""A step of training beside PyTorch: the same networks, head, loss and batch, the same number of threads, in one run.

Part of compare.py: `python3 bench/compare.py train` (pip install torch timm). One case of PyTorch alone, in a process of its own:

    python3 bench/train.py vit-b16 --batch 8 --threads 2 --steps 1    # {"seconds_per_step": …, "peak_mb": …, "loss": …}

Weights are random and nothing is read: a step costs the same with any weights."""
import argparse
import json
import os
import resource
import statistics
import sys
import time

# Images of the warm-up: enough to make every buffer that outlives a step.
WARM_UP = 8
HEAD = (2048, 2048, 256, 65536)
# Name, title, batch, whether part of the network is frozen and can be kept.
CASES = [
    ("vit-b16", "ViT-B/16, 224 px, last 2 blocks", 175, True),
    ("resnet18", "ResNet-18, 32 px, all", 175, False),
    ("efficientnet-lite2", "EfficientNet-Lite2, 260 px, last 3 blocks", 64, True),
]
BUILD = "cargo build --release -p genus-vision --example training_timings"


def vit_b16():
    """Side, width of the features, what is frozen, what is trained, and the way from the trained part to features."""
    import timm

    net = timm.create_model("vit_base_patch16_224", num_classes=0, dynamic_img_size=False)

    def trunk(x):
        x = net.norm_pre(net.patch_drop(net._pos_embed(net.patch_embed(x))))
        return net.blocks[:-2](x)

    # The last norm is frozen: it takes part in the step and does not change.
    return 224, 768, net, trunk, net.blocks[-2:], lambda x: net.norm(net.blocks[-2:](x))[:, 0]


def resnet18():
    import timm

    net = timm.create_model("resnet18", num_classes=0)
    return 32, 512, net, lambda x: x, [net], net


def efficientnet_lite2():
    from torch import nn

    import timm

    net = timm.create_model("tf_efficientnet_lite2", num_classes=0)
    blocks = [block for stage in net.blocks for block in stage]
    first = nn.Sequential(net.conv_stem, net.bn1, *blocks[:-3])
    last = nn.Sequential(*blocks[-3:], net.conv_head, net.bn2)
    return 260, net.num_features, net, first, last, lambda x: net.global_pool(last(x))


NETWORKS = {"vit-b16": vit_b16, "resnet18": resnet18, "efficientnet-lite2": efficientnet_lite2}


def dino_head(features):
    from torch import nn
    from torch.nn.utils.parametrizations import weight_norm

    first, second, embedding, width = HEAD
    mlp = nn.Sequential(
        nn.Linear(features, first), nn.GELU(), nn.Linear(first, second), nn.GELU(), nn.Linear(second, embedding))
    last = weight_norm(nn.Linear(embedding, width, bias=False))
    last.parametrizations.weight.original0.data.fill_(1)
    last.parametrizations.weight.original0.requires_grad = False
    return mlp, last


def supcon(z, labels, temperature=0.07):
    import torch

    own = torch.eye(len(z), dtype=torch.bool)
    positive = ((labels[:, None] == labels) & ~own).float()
    similarity = (z @ z.T / temperature).masked_fill(own, float("-inf"))
    log_share = (similarity - similarity.logsumexp(1, keepdim=True)).masked_fill(own, 0)
    count = positive.sum(1)
    return -((positive * log_share).sum(1)[count > 0] / count[count > 0]).mean()


def measure(case, batch, threads, steps, cached):
    """The median seconds of a step, the peak memory of this process and the last loss."""
    import numpy as np
    import torch
    from torch.nn.functional import normalize

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    side, features, net, trunk, trained, rest = NETWORKS[case]()
    net.eval().requires_grad_(False)
    for module in trained:
        module.train().requires_grad_(True)
    mlp, last = dino_head(features)
    parameters = [p for module in (net, mlp, last) for p in module.parameters() if p.requires_grad]
    optimiser = torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=5e-5)
    values = (np.arange(batch * 3 * side * side) % 255).astype(np.float32) / np.float32(127) - np.float32(1)
    pixels = torch.from_numpy(values.reshape(batch, 3, side, side))
    # Seven images of a class.
    labels = torch.arange(batch) % max(2, batch // 7)

    def frozen(x):
        with torch.no_grad():
            return trunk(x)

    def step(x, y):
        optimiser.zero_grad()
        z = normalize(mlp(rest(x if cached else frozen(x))))
        loss = supcon(normalize(last(z)), y)
        loss.backward()
        optimiser.step()
        return loss.item()

    if cached:
        # In small batches, as a cache is filled.
        pixels = torch.cat([frozen(x) for x in pixels.split(WARM_UP)])
    step(pixels[:WARM_UP], labels[:WARM_UP])
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        loss = step(pixels, labels)
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds_per_step": statistics.median(times), "peak_mb": peak, "loss": loss}


def compare_train(timings, run_measured, batch=None, steps=1, rounds=1):
    """PyTorch and Genus take turns, every run in a process of its own; the median of each is compared."""
    threads = os.cpu_count()
    built = os.path.exists(timings)
    print(f"\n{threads} threads, f32, {steps} timed step{'s' * (steps > 1)} after one of {WARM_UP} images")
    if not built:
        print(f"Genus is left out: build it with `{BUILD}`.")
    print("\n| one step | batch | PyTorch | Genus | Genus / PyTorch | PyTorch peak | Genus peak | Genus / PyTorch |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name, title, images, frozen in CASES:
        images = batch or images
        for cached in [False, True] if frozen else [False]:
            options = [name, "--batch", str(images), "--steps", str(steps), *["--cached"] * cached]
            peer = [sys.executable, os.path.abspath(__file__), *options, "--threads", str(threads)]
            theirs, ours = [], []
            for _ in range(rounds):
                theirs.append(figures(peer, run_measured))
                if built:
                    ours.append(figures([timings, *options], run_measured))
            (a, b), (c, d) = median(theirs), median(ours)
            print(f"| {title}{', trunk cached' * cached} | {images} | {cell(a, 's', 2)} | {cell(c, 's', 2)} | {ratio(c, a)} "
                  f"| {cell(b, 'MB', 0)} | {cell(d, 'MB', 0)} | {ratio(d, b)} |", flush=True)


def figures(command, run_measured):
    """Seconds of a step as the command says, and its peak memory as measured from outside."""
    _, memory, out = run_measured(command)
    return json.loads(out)["seconds_per_step"], memory


def median(runs):
    return [statistics.median(column) for column in zip(*runs)] or [None, None]


def cell(value, unit, digits):
    return "–" if value is None else f"{value:,.{digits}f} {unit}"


def ratio(ours, theirs):
    return "–" if ours is None else f"**{ours / theirs:.2f}**"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=NETWORKS)
    parser.add_argument("--batch", type=int, help="images of a step; by default those of the comparison")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--steps", type=int, default=1, help="timed steps")
    parser.add_argument("--cached", action="store_true", help="the frozen part is computed once, before the clock starts")
    args = parser.parse_args()
    batch = args.batch or next(images for name, _, images, _ in CASES if name == args.case)
    print(json.dumps(measure(args.case, batch, args.threads, args.steps, args.cached)))


if __name__ == "__main__":
    main()
