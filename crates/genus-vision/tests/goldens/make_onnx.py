#!/usr/bin/env python3
"""A small network as a file of ONNX, and what ONNX Runtime for Python makes of made-up pixels: onnx/network.onnx, onnx/features.json.

usage: python3 make_onnx.py      (pip install onnx onnxruntime numpy)
"""
import json
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from made_up import uniform

HERE = os.path.dirname(os.path.abspath(__file__))
SIDE, CHANNELS = 16, 5


def main():
    kernel = numpy_helper.from_array(uniform("kernel", CHANNELS * 27).reshape(CHANNELS, 3, 3, 3), "kernel")
    shape = numpy_helper.from_array(np.array([0, CHANNELS, -1], np.int64), "shape")
    nodes = [
        helper.make_node("Conv", ["pixels", "kernel"], ["convolved"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["convolved"], ["map"]),
        helper.make_node("Reshape", ["map", "shape"], ["flat"]),
        helper.make_node("Transpose", ["flat"], ["tokens"], perm=[0, 2, 1]),
        helper.make_node("GlobalAveragePool", ["map"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["row"]),
    ]
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    half = SIDE // 2
    outputs = [value("row", ["n", CHANNELS]), value("map", ["n", CHANNELS, half, half]),
               value("tokens", ["n", half * half, CHANNELS])]
    graph = helper.make_graph(nodes, "network", [value("pixels", ["n", 3, SIDE, SIDE])], outputs, [kernel, shape])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    folder = os.path.join(HERE, "onnx")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "network.onnx")
    onnx.save(model, path)
    session = onnxruntime.InferenceSession(path)
    pixels = 1.5 * uniform("pixels", 2 * 3 * SIDE * SIDE).reshape(2, 3, SIDE, SIDE)
    row, maps, tokens = session.run(["row", "map", "tokens"], {"pixels": pixels})
    features = {"none": row, "map": maps.mean((2, 3)), "cls": tokens[:, 0], "mean": tokens.mean(1)}
    with open(os.path.join(folder, "features.json"), "w") as file:
        json.dump({pooling: [[float(f"{v:.7g}") for v in row] for row in rows] for pooling, rows in features.items()}, file)


if __name__ == "__main__":
    main()
