"""Values that depend on a name and a place only: the scripts that make goldens and the tests make the same."""
import numpy as np


def fnv(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) % 2**64
    return h


def uniform(name, count):
    """Numbers of 24 bits in [-1, 1) that depend on a name and a place only (splitmix64)."""
    with np.errstate(over="ignore"):
        z = np.uint64(fnv(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return ((z >> np.uint64(40)).astype(np.float64) / 2**23 - 1).astype(np.float32)
