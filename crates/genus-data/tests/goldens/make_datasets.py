"""Writes tiny annotations of Stanford Cars with SciPy and tiny files of CIFAR-100 with pickle and NumPy.

Run in this directory: python3 make_datasets.py

Python 2 wrote the pickles that people download, so that those are put together here step by step as it did. The pixels
of image i of a file are (7 i + j) mod 251, and its fine label is 13 + 30 i, so that a reader can tell them apart.
"""

import os
import pickle
import struct

import numpy as np
from scipy.io import savemat

FOLDER = "datasets"
# Three training and two test images; the classes are as in the devkit, from 1.
TRAIN = [(14, "00001.jpg"), (2, "00002.jpg"), (196, "00003.jpg")]
TEST = [(181, "00001.jpg"), (24, "00002.jpg")]
NAMES = [f"Make Model {i:03}" for i in range(1, 197)]
NAMES[0], NAMES[1], NAMES[173] = "AM General Hummer SUV 2000", "Citroën Größe 2012", "Ram C/V Cargo Van Minivan 2012"


def write(name, data):
    with open(os.path.join(FOLDER, name), "wb") as file:
        file.write(data)


# ---------------------------------------------------------------------------------------------------- MATLAB


def annotations(rows, labels=True, dtype=np.uint8):
    """A struct array as in the devkit; MATLAB stores small whole numbers in a byte."""
    fields = ["bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2"] + ["class"] * labels + ["fname"]
    array = np.zeros((1, len(rows)), dtype=[(name, object) for name in fields])
    for i, (label, name) in enumerate(rows):
        box = [np.array([[value]], dtype=dtype) for value in (39, 116, 200, 210)]
        array[0, i] = tuple(box + [np.array([[label]], dtype=dtype)] * labels + [name])
    return {"annotations": array}


def mat(name, content, compressed):
    path = os.path.join(FOLDER, name)
    savemat(path, content, do_compression=compressed)
    with open(path, "r+b") as file:
        # SciPy writes the date into the header.
        file.write(b"MATLAB 5.0 MAT-file, made by make_datasets.py".ljust(116))


def cells(names):
    array = np.empty((1, len(names)), dtype=object)
    array[0, :] = names
    return array


class BigEndian:
    """A file as MATLAB wrote it on machines with the other byte order; texts in 16 bits, classes as doubles."""

    def element(self, kind, data):
        if 0 < len(data) <= 4:
            return struct.pack(">HH", len(data), kind) + data.ljust(4, b"\0")
        return struct.pack(">II", kind, len(data)) + data + b"\0" * (-len(data) % 8)

    def matrix(self, kind, shape, name, *parts):
        flags = self.element(6, struct.pack(">II", kind, 0))
        size = self.element(5, struct.pack(">ii", *shape))
        return self.element(14, flags + size + self.element(1, name) + b"".join(parts))

    def file(self, rows):
        fields = []
        for i, (label, name) in enumerate(rows):
            # MATLAB stores a double that is a small whole number in fewer bytes.
            kind, form = [(9, ">d"), (2, ">B"), (4, ">H")][i % 3]
            fields.append(self.matrix(6, (1, 1), b"", self.element(kind, struct.pack(form, label))))
            fields.append(self.matrix(4, (1, len(name)), b"", self.element(17, name.encode("utf-16-be"))))
        width = self.element(5, struct.pack(">i", 8))
        names = self.element(1, b"class".ljust(8, b"\0") + b"fname".ljust(8, b"\0"))
        header = b"MATLAB 5.0 MAT-file, big end first".ljust(124) + b"\x01\x00MI"
        other = self.matrix(6, (1, 2), b"unused", self.element(4, struct.pack(">HH", 7, 8)))
        return header + other + self.matrix(2, (1, len(rows)), b"annotations", width, names, *fields)


def make_cars():
    mat("cars_train_annos.mat", annotations(TRAIN), True)
    mat("cars_train_plain.mat", annotations(TRAIN, dtype=np.float64), False)
    mat("cars_test_annos_withlabels.mat", annotations(TEST, dtype=np.uint16), False)
    mat("cars_test_annos.mat", annotations(TEST, labels=False), True)
    mat("cars_class_0.mat", annotations([(1, "00001.jpg"), (0, "00002.jpg")]), True)
    mat("cars_class_197.mat", annotations([(197, "00001.jpg")]), True)
    mat("cars_meta.mat", {"class_names": cells(NAMES)}, True)
    mat("cars_meta_short.mat", {"class_names": cells(NAMES[:195])}, True)
    write("cars_train_big_endian.mat", BigEndian().file(TRAIN))
    everything = np.zeros((1, 5), dtype=[(n, object) for n in ("relative_im_path", "class", "test")])
    for i, (label, test) in enumerate([(14, 0), (2, 0), (196, 0), (181, 1), (24, 1)]):
        everything[0, i] = (f"car_ims/{i + 1:06}.jpg", np.uint8(label), np.uint8(test))
    mat("cars_annos.mat", {"annotations": everything, "class_names": cells(NAMES)}, True)


# ---------------------------------------------------------------------------------------------------- CIFAR


def pixels(count):
    return np.array([[(7 * i + j) % 251 for j in range(3072)] for i in range(count)], dtype=np.uint8)


def labels(count):
    return [13 + 30 * i for i in range(count)]


class Python2:
    """What cPickle of Python 2 writes with protocol 2: texts are byte strings, everything is remembered."""

    def __init__(self):
        self.data, self.remembered = b"\x80\x02", 0

    def put(self, data):
        self.data += data

    def remember(self):
        n = self.remembered
        self.put(b"q" + bytes([n]) if n < 256 else b"r" + struct.pack("<I", n))
        self.remembered += 1

    def text(self, text):
        text = text if isinstance(text, bytes) else text.encode()
        self.put(b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + struct.pack("<I", len(text)) + text)
        self.remember()

    def int(self, number):
        if 0 <= number < 256:
            self.put(b"K" + bytes([number]))
        elif 0 <= number < 65536:
            self.put(b"M" + struct.pack("<H", number))
        else:
            self.put(b"J" + struct.pack("<i", number))

    def list(self, items, write):
        self.put(b"]")
        self.remember()
        self.put(b"(")
        for item in items:
            write(item)
        self.put(b"e")

    def array(self, array):
        self.put(b"cnumpy.core.multiarray\n_reconstruct\n")
        self.remember()
        self.put(b"cnumpy\nndarray\n")
        self.remember()
        self.put(b"K\x00\x85")
        self.remember()
        self.text("b")
        self.put(b"\x87")
        self.remember()
        self.put(b"R")
        self.remember()
        self.put(b"(K\x01")
        for size in array.shape:
            self.int(size)
        self.put(b"\x86")
        self.remember()
        self.put(b"cnumpy\ndtype\n")
        self.remember()
        self.text("u1")
        self.put(b"K\x00K\x01\x87")
        self.remember()
        self.put(b"R")
        self.remember()
        self.put(b"(K\x03")
        self.text("|")
        self.put(b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t")
        self.remember()
        self.put(b"b\x89")
        self.text(array.tobytes())
        self.put(b"t")
        self.remember()
        self.put(b"b")

    def dictionary(self, entries):
        self.put(b"}")
        self.remember()
        self.put(b"(")
        for key, value in entries:
            self.text(key)
            value()
        self.put(b"u.")
        return self.data


def python2(count, fine):
    p = Python2()
    return p.dictionary(
        [
            ("filenames", lambda: p.list([f"image_s_{i:06}.png" for i in range(count)], p.text)),
            ("batch_label", lambda: p.text("training batch 1 of 1")),
            ("fine_labels", lambda: p.list(fine, p.int)),
            ("coarse_labels", lambda: p.list([3] * count, p.int)),
            ("data", lambda: p.array(pixels(count))),
        ]
    )


def dictionary(count, key=str, array=lambda a: a):
    data = {
        "batch_label": "testing batch 1 of 1",
        "fine_labels": labels(count),
        "coarse_labels": [3] * count,
        "data": array(pixels(count)),
    }
    return {key(name): value for name, value in data.items()}


def make_cifar(names):
    p = Python2()
    fine, coarse = lambda: p.list(names, p.text), lambda: p.list(["fish"], p.text)
    write("cifar_meta", p.dictionary([("fine_label_names", fine), ("coarse_label_names", coarse)]))
    write("cifar_meta_protocol4", pickle.dumps({b"fine_label_names": [name.encode() for name in names]}, protocol=4))
    write("cifar_python2", python2(3, labels(3)))
    write("cifar_label_100", python2(1, [100]))
    write("cifar_label_negative", python2(1, [-1]))
    write("cifar_labels_short", python2(2, [1]))
    write("cifar_protocol3", pickle.dumps(dictionary(2), protocol=3))
    write("cifar_protocol4", pickle.dumps(dictionary(2), protocol=4))
    write("cifar_protocol5", pickle.dumps(dictionary(2, key=str.encode), protocol=5))
    # What must be refused: bytes as a text, text only, columns first, wider numbers, images of another size, no array.
    write("cifar_latin1", pickle.dumps(dictionary(1), protocol=2))
    write("cifar_protocol0", pickle.dumps(dictionary(1), protocol=0)[:2000])
    write("cifar_fortran", pickle.dumps(dictionary(2, array=np.asfortranarray), protocol=4))
    write("cifar_uint16", pickle.dumps(dictionary(1, array=lambda a: a.astype(np.uint16)), protocol=4))
    write("cifar_wide", pickle.dumps(dictionary(2, array=lambda a: a.reshape(1, -1)), protocol=4))
    write("cifar_no_array", pickle.dumps({"fine_labels": [1], "data": [[1, 2, 3]]}, protocol=4))
    write("cifar_list", pickle.dumps([1, 2, 3], protocol=4))


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    make_cars()
    make_cifar([f"class_{i:02}" for i in range(100)])
