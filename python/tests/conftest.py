import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[2]


def kinds(classes=6, items=30, features=24, noise=0.12, seed=0):
    """Items of several kinds, each around a direction of its own; the kind of each."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, features))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    of = np.repeat(np.arange(classes), items)
    X = centres[of] + rng.normal(scale=noise, size=(len(of), features))
    return X.astype(np.float32), of


@pytest.fixture
def pile():
    """Six kinds of thirty items, three of them known by five examples each."""
    X, kind = kinds()
    y = np.full(len(X), None, dtype=object)
    for known in range(3):
        y[np.flatnonzero(kind == known)[:5]] = f"kind {known}"
    return X, y, kind


@pytest.fixture(scope="session")
def command():
    """The command line, where it is built."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    built = [target / profile / "genus" for profile in ("debug", "release")]
    found = next((str(path) for path in built if path.exists()), None) or shutil.which("genus")
    if found is None:
        pytest.skip("the command line is not built")

    def run(*arguments, ok=True):
        done = subprocess.run([found, *map(str, arguments)], capture_output=True, text=True, check=False)
        if ok:
            assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def photographs(tmp_path_factory):
    """A folder of made pictures: three kinds, of which two have examples."""
    pil = pytest.importorskip("PIL.Image")
    draw_on = pytest.importorskip("PIL.ImageDraw")
    folder = tmp_path_factory.mktemp("photographs")
    rng = np.random.default_rng(1)
    for kind, (name, colour) in enumerate(
        [("discs", (200, 40, 40)), ("bars", (40, 60, 200)), ("rings", (30, 160, 60))]
    ):
        for number in range(14):
            image = pil.new("RGB", (96, 96), tuple(int(v) for v in rng.integers(200, 256, 3)))
            draw = draw_on.Draw(image)
            x, y, r = (int(v) for v in rng.integers(34, 62, 3))
            if kind == 0:
                draw.ellipse([x - 28, y - 28, x + 28, y + 28], fill=colour)
            elif kind == 1:
                draw.rectangle([x - 8, 5, x + 8, 90], fill=colour)
            else:
                draw.ellipse([x - 30, y - 30, x + 30, y + 30], outline=colour, width=6)
            known = number < 4 and kind < 2
            path = folder / ("support" if known else "query") / (name if known else "") / f"{name}-{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            image.save(path)
            del r
    return folder
