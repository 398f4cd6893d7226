#!/usr/bin/env python3
"""Features of every architecture under every project's names, as PyTorch computes them: features.json.

usage: python3 make_features.py      (pip install torch torchvision timm transformers efficientnet-lite-pytorch numpy)
       python3 make_features.py --dinov3      only those of DINOv3, into the features.json that is there
       python3 make_features.py --real DIR    features of the real weights in DIR: real_features.json

No weights are stored. Every value of every tensor is a hash of its name and place, scaled; the tests make the same values.
"""
import json
import os
import sys

import numpy as np
import torch

from made_up import uniform

HERE = os.path.dirname(os.path.abspath(__file__))


def scales(name, shape):
    """Offset and scale that keep activations of order one."""
    if name.endswith("running_var"):
        return 1.0, 0.5
    if len(shape) == 1 and name.endswith(("weight", "gamma", "lambda1")):
        return 1.0, 0.25
    if len(shape) <= 1 or "token" in name or "pos" in name:
        return 0.0, 0.25
    fan_in = int(np.prod(shape[1:]))
    return 0.0, float(np.float32((4.0 / fan_in) ** 0.5))


def fill(model):
    """Gives every tensor of a model its made-up values; the list of what a test needs to do the same."""
    state, table = model.state_dict(), []
    for name, tensor in state.items():
        if not tensor.is_floating_point():
            continue
        offset, scale = scales(name, tuple(tensor.shape))
        values = np.float32(offset) + np.float32(scale) * uniform(name, tensor.numel())
        tensor.copy_(torch.from_numpy(values.reshape(tuple(tensor.shape))))
        table.append([name, list(tensor.shape), offset, scale])
    model.load_state_dict(state)
    return table


def pixels(side, images=2):
    return torch.from_numpy(1.5 * uniform("pixels", images * 3 * side * side).reshape(images, 3, side, side))


def case(name, architecture, model, side, forward, rename=None):
    with torch.inference_mode():
        table = fill(model.eval())
        features = forward(model, pixels(side)).float().reshape(2, -1).numpy()
    if rename:
        table = [[rename(n), s, o, c, n] for n, s, o, c in table]
    print(name, features.shape, float(features.std()))
    return {
        "name": name,
        "architecture": architecture,
        "side": side,
        "tensors": table,
        "features": rounded(features),
    }


def dino_positions(net, x):
    """A forward pass with the original DINO's positions: the scale is that of a square larger by a tenth of a patch."""
    patch = net.patch_embed.proj.kernel_size[0]
    tokens = net.patch_embed.proj(x).flatten(2).transpose(1, 2)
    to = x.shape[2] // patch
    count, dim = net.pos_embed.shape[1] - 1, net.pos_embed.shape[2]
    side = int(count**0.5)
    grid = net.pos_embed[:, 1:].reshape(1, side, side, dim).permute(0, 3, 1, 2)
    grid = torch.nn.functional.interpolate(grid, scale_factor=((to + 0.1) / side,) * 2, mode="bicubic")
    assert grid.shape[2:] == (to, to)
    positions = torch.cat([net.pos_embed[:, :1], grid.permute(0, 2, 3, 1).reshape(1, to * to, dim)], 1)
    tokens = torch.cat([net.cls_token.expand(len(x), -1, -1), tokens], 1) + positions
    for block in net.blocks:
        tokens = block(tokens)
    return net.norm(tokens)[:, 0]


def cases():
    import timm
    import torchvision
    import transformers
    from timm.models.vision_transformer import VisionTransformer

    small = dict(embed_dim=48, depth=3, num_heads=4, mlp_ratio=3, num_classes=0)
    vit = {"kind": "vit", "heads": 4, "positions": "dino"}
    cls = lambda m, x: m.forward_features(x)[:, 0]
    # eps 1e-6 is what DINO, DINOv2 and timm use.
    yield case("timm, patch 16", vit, VisionTransformer(img_size=64, patch_size=16, **small), 64, cls)
    yield case("timm, patch 8", vit, VisionTransformer(img_size=32, patch_size=8, **small), 32, cls)
    reg = VisionTransformer(img_size=70, patch_size=14, init_values=1.0, reg_tokens=4, no_embed_class=True, **small)
    yield case("timm, patch 14, layer scale, registers", vit, reg, 70, cls)
    other = dict(dynamic_img_size=True, **small)
    net = VisionTransformer(img_size=112, patch_size=14, init_values=1.0, **other)
    yield case("timm, positions of 8 patches for 5", {**vit, "positions": "smoothed"}, net, 70, cls)
    net = VisionTransformer(img_size=42, patch_size=14, **other)
    yield case("timm, positions of 3 patches for 7", {**vit, "positions": "smoothed"}, net, 98, cls)
    net = VisionTransformer(img_size=112, patch_size=14, init_values=1.0, **small)
    yield case("DINOv2, positions of 8 patches for 5", vit, net, 70, dino_positions)
    net = VisionTransformer(img_size=32, patch_size=8, **small)
    yield case("DINO, positions of 4 patches for 7", vit, net, 56, dino_positions)
    chunked = VisionTransformer(img_size=64, patch_size=16, init_values=1.0, **small)
    chunk = lambda n: "blocks.0." + n[len("blocks."):] if n.startswith("blocks.") else n
    yield case("DINOv2 in chunks", vit, chunked, 64, cls, chunk)

    hidden = dict(hidden_size=48, num_hidden_layers=3, num_attention_heads=4)
    config = transformers.ViTConfig(intermediate_size=144, image_size=64, patch_size=16, layer_norm_eps=1e-6, **hidden)
    model = transformers.ViTModel(config, add_pooling_layer=True)
    last = lambda m, x: m(pixel_values=x).last_hidden_state[:, 0]
    yield case("transformers, ViT", vit, model, 64, last, lambda n: hub_name(n, vit=True))
    yield case("transformers 5, ViT", vit, model, 64, last)
    yield case("transformers, ViT with a classifier", vit, model, 64, last, lambda n: "vit." + hub_name(n, vit=True))
    config = transformers.Dinov2Config(mlp_ratio=3, image_size=70, patch_size=14, layer_norm_eps=1e-6, **hidden)
    model = transformers.Dinov2Model(config)
    yield case("transformers, DINOv2", vit, model, 70, last, hub_name)
    yield case("transformers 5, DINOv2", vit, model, 70, last)
    config = transformers.Dinov2Config(mlp_ratio=3, image_size=112, patch_size=14, layer_norm_eps=1e-6, **hidden)
    yield case("transformers, positions of 8 patches for 5", {**vit, "positions": "plain"},
               transformers.Dinov2Model(config), 70, last, hub_name)
    config = transformers.Dinov2WithRegistersConfig(
        mlp_ratio=3, image_size=70, patch_size=14, num_register_tokens=4, layer_norm_eps=1e-6, **hidden)
    yield case("transformers, DINOv2 with registers", vit, transformers.Dinov2WithRegistersModel(config), 70, last, hub_name)

    yield from dinov3_cases()

    def pooled(m, x):
        for layer in [m.conv1, m.bn1, m.relu, m.maxpool, m.layer1, m.layer2, m.layer3, m.layer4, m.avgpool]:
            x = layer(x)
        return x

    yield case("torchvision, ResNet-18", {"kind": "resnet18"}, torchvision.models.resnet18(), 96, pooled)
    yield case("torchvision, ResNet-50", {"kind": "resnet50"}, torchvision.models.resnet50(), 64, pooled)
    model = timm.create_model("resnet18", num_classes=10)
    yield case("timm, ResNet-18", {"kind": "resnet18"}, model, 65, lambda m, x: m.forward_head(m.forward_features(x), pre_logits=True))
    kind = dict(depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic")
    model = transformers.ResNetModel(transformers.ResNetConfig(**kind))
    yield case("transformers, ResNet-18", {"kind": "resnet18"}, model, 64, lambda m, x: m(x).pooler_output)
    model = transformers.ResNetModel(transformers.ResNetConfig(downsample_in_bottleneck=False))
    yield case("transformers, ResNet-50", {"kind": "resnet50"}, model, 64, lambda m, x: m(x).pooler_output)

    head = lambda m, x: m.forward_head(m.forward_features(x), pre_logits=True)
    for number, side in [(0, 64), (2, 75)]:
        kind = {"kind": f"lite{number}"}
        yield case(f"timm, Lite{number}", kind, timm.create_model(f"tf_efficientnet_lite{number}"), side, head)
    from efficientnet_lite_pytorch import EfficientNet

    model = EfficientNet.from_name("efficientnet-lite0")
    yield case("efficientnet-lite-pytorch, Lite0", {"kind": "lite0"}, model, 96,
               lambda m, x: m.extract_features(x).mean((2, 3)))


def hub_name(name, vit=False):
    """Files on the hub were written by older versions of transformers, whose names differ."""
    older = [("attention.q_proj.", "attention.attention.query."), ("attention.k_proj.", "attention.attention.key."),
             ("attention.v_proj.", "attention.attention.value."), ("attention.o_proj.", "attention.output.dense.")]
    if vit:
        older += [("layers.", "encoder.layer."), ("mlp.fc1.", "intermediate.dense."), ("mlp.fc2.", "output.dense.")]
    for new, old in older:
        name = name.replace(new, old)
    return name


def dinov3_cases():
    """Rotary positions, with or without a gate, under all names that projects have for the parts."""
    from functools import partial

    import transformers
    from timm.models.eva import Eva

    kind = {"kind": "vit", "heads": 4, "positions": "rotary"}
    plain = dict(
        patch_size=16, dynamic_img_size=True, embed_dim=48, depth=3, num_heads=4, mlp_ratio=3, num_classes=0, init_values=1.0,
        rope_type="dinov3", rope_temperature=100, rope_rotate_half=True, use_rot_pos_emb=True, use_abs_pos_emb=False,
        num_reg_tokens=4, use_fc_norm=False, norm_layer=partial(torch.nn.LayerNorm, eps=1e-5))
    gated = dict(swiglu_mlp=True, swiglu_align_to=8, **plain)
    cls = lambda m, x: m.forward_features(x)[:, 0]
    last = lambda m, x: m(pixel_values=x).last_hidden_state[:, 0]
    yield case("timm, DINOv3", kind, Eva(img_size=80, qkv_bias=False, **plain), 80, cls)
    yield case("timm, DINOv3 with biases", kind, Eva(img_size=64, qkv_bias=True, **plain), 64, cls)
    yield case("timm, DINOv3 with a gate", kind, Eva(img_size=64, qkv_bias=False, **gated), 64, cls)
    for gate, eva in [("", plain), (", gated", gated)]:
        config = transformers.DINOv3ViTConfig(
            hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=144, num_register_tokens=4,
            use_gated_mlp=bool(gate), hidden_act="silu" if gate else "gelu")
        model = transformers.DINOv3ViTModel(config)
        yield case(f"transformers, DINOv3{gate}", kind, model, 80, last, lambda n: n.replace("model.layer.", "layer."))
        yield case(f"transformers 5, DINOv3{gate}", kind, model, 80, last)
        own = [("reg_token", "storage_tokens"), ("gamma_1", "ls1.gamma"), ("gamma_2", "ls2.gamma"),
               ("mlp.fc1_g.", "mlp.w1."), ("mlp.fc1_x.", "mlp.w2.")] + [("mlp.fc2.", "mlp.w3.")] * bool(gate)
        model = Eva(img_size=64, qkv_bias=False, **eva)
        yield case(f"DINOv3's own names{gate}", kind, model, 64, cls, lambda n: replaced(n, own))


def replaced(name, pairs):
    for old, new in pairs:
        name = name.replace(old, new)
    return name


def entry(file, side, features):
    return {"file": file, "side": side, "features": rounded(features.numpy())}


def rounded(features):
    return [[float(f"{v:.7g}") for v in row] for row in features]


def real(folder):
    """Features of the real weights on made-up pixels."""
    import timm
    from efficientnet_lite_pytorch import EfficientNet
    from safetensors.torch import load_file

    out = {}
    with torch.inference_mode():
        for number, side in [(0, 224), (2, 260)]:
            path = os.path.join(folder, f"efficientnet_lite{number}.pth")
            model = EfficientNet.from_name(f"efficientnet-lite{number}").eval()
            model.load_state_dict(torch.load(path))
            features = model.extract_features(pixels(side)).mean((2, 3))
            out[f"efficientnet_lite{number}"] = entry(os.path.basename(path), side, features)
        model = timm.create_model("vit_small_patch14_dinov2", num_classes=0, dynamic_img_size=True).eval()
        model.load_state_dict(load_file(os.path.join(folder, "vit_s14_saliency.safetensors")))
        for side in (518, 224):
            features = model.forward_features(pixels(side))[:, 0]
            out[f"vit_s14 {side}"] = entry("vit_s14_saliency.safetensors", side, features)
    json.dump(out, open(os.path.join(HERE, "real_features.json"), "w"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--real"]:
        real(sys.argv[2])
    else:
        path = os.path.join(HERE, "features.json")
        if sys.argv[1:2] == ["--dinov3"]:
            made = list(dinov3_cases())
            names = {case["name"] for case in made}
            made = [case for case in json.load(open(path)) if case["name"] not in names] + made
        else:
            made = list(cases())
        json.dump(made, open(path, "w"))
