"""Writes weights/*: small files of every form that is read, and weights/expected.json, what PyTorch finds in them.

    pip install torch numpy safetensors
    python make_weights.py

Files that must be refused are in weights/refused/, with the reason in expected.json.
"""

import argparse
import builtins
import collections
import io
import json
import os
import pathlib
import pickle
import shutil
import zipfile

import numpy as np
import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent / "weights"
REFUSED = HERE / "refused"
expected = {"read": {}, "refused": {}}


def numbers(*shape, start=0):
    """Values that all floating-point types hold exactly."""
    n = int(np.prod(shape))
    return ((torch.arange(start, start + n) * 7 % 61 - 30) / 8).reshape(shape)


def network():
    return collections.OrderedDict(
        [
            ("encoder.conv.weight", numbers(4, 3, 2, 2)),
            ("encoder.bn.weight", numbers(4, start=5)),
            ("encoder.bn.num_batches_tracked", torch.tensor(7)),
            ("norm.bias", numbers(6, start=9)),
        ]
    )


def expect(name, tensors, part=None):
    found = {}
    for key, tensor in tensors.items():
        if tensor.is_floating_point():
            tensor = tensor.detach().float()
            found[key] = {"shape": list(tensor.shape), "values": tensor.flatten().tolist()}
    expected["read"][name] = {"part": part, "tensors": found}


def save(name, value, tensors=None, part=None, **options):
    torch.save(value, HERE / name, **options)
    expect(name, value if tensors is None else tensors, part)


def refuse(name, reason):
    expected["refused"][name] = reason
    return REFUSED / name


def rezip(source, target, top, change=lambda name, data: data, method=zipfile.ZIP_STORED, add=()):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", method) as new:
        for entry in old.namelist():
            name = entry.split("/", 1)[1]
            new.writestr(top + name, change(name, old.read(entry)))
        for name in add:
            new.writestr(top + name, b"")


class Runs:
    """An object whose pickle calls a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def plain():
    for name, options in {
        "plain.pth": {},
        "plain_legacy.pth": {"_use_new_zipfile_serialization": False},
        "protocol4.pth": {"pickle_protocol": 4},
        "protocol5.pth": {"pickle_protocol": 5},
        "protocol5_legacy.pth": {"pickle_protocol": 5, "_use_new_zipfile_serialization": False},
    }.items():
        save(name, network(), **options)
    save_file(network(), HERE / "plain.safetensors")
    expect("plain.safetensors", network())
    rezip(HERE / "plain.pth", HERE / "deflated.pth", "any name/", method=zipfile.ZIP_DEFLATED)
    expect("deflated.pth", network())

    swapped = {str(i): t.element_size() for i, t in enumerate(network().values())}

    def swap(name, data):
        if name == "byteorder":
            return b"big"
        if name.startswith("data/"):
            size = swapped[name.removeprefix("data/")]
            return np.frombuffer(data, f"V{size}").view("u1").reshape(-1, size)[:, ::-1].tobytes()
        return data

    rezip(HERE / "plain.pth", HERE / "big_endian.pth", "big/", swap)
    expect("big_endian.pth", network())


def types():
    tensors = {
        "half": numbers(3, 700).half(),
        "bfloat": numbers(5, 3).bfloat16(),
        "double": numbers(5, 3, start=2).double(),
        "single": numbers(2),
        "byte": torch.zeros(2, dtype=torch.uint8),
        "word": torch.zeros(2, dtype=torch.uint16),
        "bool": torch.ones(2, dtype=torch.bool),
    }
    save("types.pth", tensors)
    save("types_legacy.pth", tensors, _use_new_zipfile_serialization=False)
    save_file(tensors, HERE / "types.safetensors")
    expect("types.safetensors", tensors)


def views():
    base = numbers(6, 5)
    tensors = {
        "base": base,
        "transposed": base.t(),
        "sliced": base[1:4, 1::2],
        "row": base[3],
        "permuted": numbers(2, 3, 4).permute(2, 0, 1),
        "scalar": torch.tensor(1.5),
        "element": base[2, 2],
        "empty": torch.zeros(0),
        "empty_matrix": torch.zeros(3, 0, 2),
        "expanded": numbers(3, 1, start=3).expand(3, 4),
        "tail": numbers(40)[30:],
    }
    flat = numbers(30, start=11)
    tensors |= {"first": flat[2:8].view(2, 3), "second": flat[10:30].view(4, 5)}
    save("views.pth", tensors)
    save("views_legacy.pth", tensors, _use_new_zipfile_serialization=False)


def wrappers():
    parameter = torch.nn.Parameter(numbers(2, 3))
    marked = torch.nn.Parameter(numbers(3))
    marked.note = "an attribute"
    attributed = numbers(4)
    attributed.note = "an attribute"
    tensors = {"p": parameter, "marked": marked, "attributed": attributed, "buffer": torch.nn.Buffer(numbers(2))}
    save("parameters.pth", tensors)
    linear = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    save("module_state.pth", linear.state_dict())
    wrapped = {f"_orig_mod.module.backbone.{k}": v for k, v in network().items()}
    save("wrapped.pth", wrapped, network())
    save_file(wrapped, HERE / "wrapped.safetensors")
    expect("wrapped.safetensors", network())
    nested = {"stem": {"conv": {"weight": numbers(2, 2)}, 3: numbers(1)}, "version": 2, "list": [numbers(1)]}
    save("nested.pth", nested, {"stem.conv.weight": numbers(2, 2), "stem.3": numbers(1)})
    partly = {"module.a": numbers(2), "b": numbers(3)}
    save("partly_wrapped.pth", partly)


def checkpoints():
    model = torch.nn.Linear(3, 2)
    with torch.no_grad():
        model.weight.copy_(numbers(2, 3))
        model.bias.copy_(numbers(2))
    optimizer = torch.optim.AdamW(model.parameters())
    model(numbers(4, 3)).sum().backward()
    optimizer.step()
    around = {
        "optimizer": optimizer.state_dict(),
        "epoch": 12,
        "args": argparse.Namespace(arch="vit_small", lr=0.1, out=pathlib.PosixPath("out"), sizes=[1, 2], none=None),
        "best": np.float64(0.5),
        "count": np.int64(3),
        "random": {"numpy": np.arange(5), "torch": torch.get_rng_state()[:16]},
        "history": collections.defaultdict(list, loss=[0.5, 0.25]),
        "classes": {"a", "b"},
        "bytes": b"\x00\xff",
        "size": torch.Size([1, 2]),
        "device": torch.device("cpu"),
        "dtype": torch.float16,
        "complex": 1j,
        "large": 1 << 80,
        "negative": -5,
    }
    for name, options in {
        "training.pth": {},
        "training_legacy.pth": {"_use_new_zipfile_serialization": False},
        "training5.pth": {"pickle_protocol": 5},
    }.items():
        save(name, {"model": model.state_dict(), **around}, model.state_dict(), "model", **options)
    save("top_level.pth", {"net": model.state_dict(), **around}, {
        "net.weight": model.weight,
        "net.bias": model.bias,
    })
    backbone = {"patch_embed.weight": numbers(2, 3), "blocks.0.bias": numbers(4)}
    student = {f"module.backbone.{k}": v + 1 for k, v in backbone.items()} | {"module.head.mlp.weight": numbers(3)}
    teacher = {f"backbone.{k}": v for k, v in backbone.items()} | {"head.last_layer.weight_v": numbers(2)}
    loss = {"center": numbers(1, 5)}
    save("dino.pth", {"student": student, "teacher": teacher, "dino_loss": loss, **around}, backbone, "teacher")
    parallel = {f"module.{k}": v for k, v in teacher.items()}
    save("dino_parallel.pth", {"student": student, "teacher": parallel, "epoch": 1}, backbone, "teacher")
    second = {f"backbone.{k}": v for k, v in backbone.items()} | {
        "dino_head.mlp.weight": numbers(3),
        "ibot_head.mlp.weight": numbers(3),
    }
    save("dino_v2.pth", {"teacher": second}, backbone, "teacher")
    save("student.pth", {"student": student}, {k: v + 1 for k, v in backbone.items()}, "student")
    save("segmentation.pth", {"state_dict": teacher}, teacher, "state_dict")
    save("lightning.pth", {"state_dict": {f"model.{k}": v for k, v in backbone.items()}, "epoch": 1}, {
        f"model.{k}": v for k, v in backbone.items()
    }, "state_dict")


def refused():
    torch.save({"a": torch.tensor([1.0, float("nan")])}, refuse("nan.pth", 'tensor "a" holds NaN'))
    bent = torch.tensor([[1.0, float("inf")], [0.0, 2.0]]).t()
    torch.save({"b": bent}, refuse("infinite.pth", 'tensor "b" holds NaN or infinity'))
    huge = torch.tensor([1e300], dtype=torch.float64)
    torch.save({"c": huge}, refuse("large.pth", 'tensor "c" holds NaN or infinity'))
    save_file({"d": torch.tensor([float("inf")])}, refuse("infinite.safetensors", 'tensor "d" holds'))
    torch.save({"e": torch.eye(2).to_sparse()}, refuse("sparse.pth", 'tensor "e" is sparse'))
    torch.save({"e": torch.eye(2).to_sparse_csr()}, refuse("sparse_csr.pth", 'tensor "e" is sparse'))
    torch.save({"f": torch.ones(2, dtype=torch.complex64)}, refuse("complex.pth", 'tensor "f" is of complex numbers'))
    eighth = torch.ones(2, dtype=torch.float8_e4m3fn)
    torch.save({"g": eighth}, refuse("eighth.pth", 'tensor "g" is of floats of less than 16 bits'))
    save_file({"g": eighth}, refuse("eighth.safetensors", 'tensor "g" is of floats of less than 16 bits'))
    quantised = torch.quantize_per_tensor(numbers(4), 0.1, 0, torch.qint8)
    torch.save({"h": quantised}, refuse("quantised.pth", 'tensor "h" is quantised'))
    torch.save({"i": torch.ones(2, dtype=torch.int64)}, refuse("integers.pth", "no floating-point tensors"))
    torch.save([numbers(2)], refuse("list.pth", "no floating-point tensors"))

    foreign = "wants to run foreign code ({})"
    torch.save(torch.nn.Linear(1, 1), refuse("module.pth", foreign.format("torch.nn.modules.linear.Linear")))
    for name, function, argument in [
        ("system", os.system, "true"),
        ("eval", builtins.eval, "1"),
        ("exec", builtins.exec, "1"),
        ("getattr", builtins.getattr, "a"),
        ("import", builtins.__import__, "os"),
    ]:
        module = "posix" if name == "system" else "__builtin__"
        path = refuse(f"{name}.pth", foreign.format(f"{module}.{function.__name__}"))
        torch.save({"a": numbers(2), "b": Runs(function, argument)}, path)
    path = refuse("system_legacy.pth", foreign.format("posix.system"))
    torch.save({"a": Runs(os.system, "true")}, path, _use_new_zipfile_serialization=False)
    path = refuse("eval5.pth", foreign.format("builtins.eval"))
    torch.save({"a": Runs(builtins.eval, "1")}, path, pickle_protocol=5)
    nothing = io.BytesIO()
    torch.save({"a": numbers(2)}, nothing)
    script = refuse("script.pth", "TorchScript")
    rezip(nothing, script, "script/", add=["constants.pkl", "code/__torch__.py"])
    with zipfile.ZipFile(refuse("other.zip", "a ZIP archive without a data.pkl"), "w") as archive:
        archive.writestr("readme.txt", "nothing here")
    refuse("plain.pickle", "neither safetensors nor").write_bytes(pickle.dumps({"a": 1}))
    refuse("page.pth", "a web page").write_text("<!DOCTYPE html><html></html>")
    refuse("pointer.safetensors", "Git LFS").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    refuse("empty.pth", "it is empty").write_bytes(b"")


shutil.rmtree(HERE, ignore_errors=True)
REFUSED.mkdir(parents=True)
torch.manual_seed(0)
for make in (plain, types, views, wrappers, checkpoints, refused):
    make()
with open(HERE / "expected.json", "w") as file:
    json.dump(expected, file, separators=(",", ":"))
    file.write("\n")
