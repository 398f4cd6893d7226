"""Images, and the features that an encoder makes of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from genus import _genus
from genus._progress import listener

Pathlike = str | os.PathLike[str]


@dataclass(frozen=True)
class Image:
    """An image file of a folder or a manifest."""

    id: str
    path: Path
    label: str | None = None

    def __fspath__(self) -> str:
        return str(self.path)


def list_images(folder: Pathlike) -> list[Image]:
    """The images below a folder, or those that a manifest or a list names; the first folder below is the label."""
    return [Image(*found) for found in _genus.list_images(os.fspath(folder))]


def demo_pictures(folder: Pathlike, *, seed: int = 0) -> tuple[Path, Path, Path]:
    """Writes pictures to try things on into a folder: emoji of fourteen kinds, five of them with five labelled examples.

    Gives the folder of examples, with a folder a kind, that of the pile, and a table with the truth about the pile.
    """
    return _genus.write_demo(os.fspath(folder), seed)


def image_options(
    encoder: Pathlike | None = None,
    weights: Pathlike | None = None,
    precision: str | None = None,
    cache: Pathlike | bool = True,
    strict: bool = False,
) -> dict[str, Any]:
    """How images become features, as the extension wants it."""
    return {
        "encoder": None if encoder is None else os.fspath(encoder),
        "weights": None if weights is None else os.fspath(weights),
        "precision": precision,
        "cache": None if isinstance(cache, bool) else os.fspath(cache),
        "use_cache": cache is not False,
        "strict": strict,
    }


def embed(
    images: Pathlike | Iterable[Any],
    *,
    encoder: Pathlike | None = None,
    weights: Pathlike | None = None,
    precision: str | None = None,
    cache: Pathlike | bool = True,
    progress: bool | None = None,
) -> np.ndarray:
    """The features of images, a row an image in their order, as float32.

    ``images`` is a folder, a path, or an iterable of paths (those of :func:`list_images` too), PIL images or arrays of bytes of the
    shape (height, width, 3), (height, width, 4) or (height, width). The features of an image depend on it alone. Files are remembered
    in the cache; an image that cannot be read is an error. ``encoder`` is a name as on the command line, such as
    ``"dinov2-small"``; by default it is the one inside.
    """
    if isinstance(images, np.ndarray) and images.ndim in (2, 3):
        raise ValueError(
            f"images is one array of the shape {images.shape}: give an iterable of images, as in embed([image])"
        )
    if isinstance(images, (str, os.PathLike)) and not isinstance(images, Image):
        given: list[Any] = list_images(images)
    else:
        given = [images] if isinstance(images, Image) else list(images)  # type: ignore[arg-type]
    if not given:
        raise ValueError("there are no images: give at least one")
    options = image_options(encoder, weights, precision, cache, strict=True)
    files = [isinstance(image, (str, os.PathLike)) for image in given]
    if all(files):
        return _genus.embed_files([os.fspath(image) for image in given], options, listener(progress))
    if any(files):
        raise TypeError("images are paths and pictures in one list: give either paths or pictures")
    pixels = [_pixels(image, at) for at, image in enumerate(given)]
    return _genus.embed_pixels(pixels, options, listener(progress))


def _pixels(image: Any, at: int) -> tuple[int, int, bytes]:
    """Width, height, and three bytes a pixel."""
    if hasattr(image, "getexif") and hasattr(image, "convert"):
        from PIL import ImageOps

        # As a file is read: turned upright, transparency dropped.
        image = ImageOps.exif_transpose(image)
        image = image.convert("RGB")
        return image.width, image.height, image.tobytes()
    if hasattr(image, "detach"):
        image = image.detach().cpu()
    array = np.asarray(image)
    if array.dtype != np.uint8:
        raise TypeError(
            f"image {at} is an array of {array.dtype}, and images are of bytes (uint8): scale it to 0..255 and convert it"
        )
    if array.ndim == 2:
        array = np.repeat(array[:, :, None], 3, axis=2)
    if array.ndim != 3 or array.shape[2] not in (3, 4) or 0 in array.shape:
        raise ValueError(
            f"image {at} has the shape {array.shape}, and (height, width, 3), (height, width, 4) or (height, width) is needed"
        )
    array = array[:, :, :3]
    return array.shape[1], array.shape[0], np.ascontiguousarray(array).tobytes()
