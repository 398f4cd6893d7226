"""Writes digits.gz, the digits data set of scikit-learn: 1797 x 64 pixels, then 1797 labels, one byte each.

Run in this directory: python3 make_digits.py
"""

import gzip

import numpy
from sklearn.datasets import load_digits

digits = load_digits()
pixels = digits.data.astype(numpy.uint8)
labels = digits.target.astype(numpy.uint8)
assert pixels.shape == (1797, 64) and (pixels == digits.data).all() and pixels.max() == 16
with open("digits.gz", "wb") as file:
    # No time and no name in the header: the same bytes on every run.
    file.write(gzip.compress(pixels.tobytes() + labels.tobytes(), compresslevel=9, mtime=0))
