"""Finds which items belong to the classes you know, and sorts the rest into new categories.

``CategoryDiscovery`` is an estimator as scikit-learn has them, for features that you have. ``discover`` sorts photographs or
tables, ``embed`` makes features of images, ``Collection`` is a folder that lives, and ``genus.bench`` has the paper's experiments.

What is heavy is imported when it is asked for: ``import genus`` itself takes a few milliseconds.
"""

from __future__ import annotations

# As type checkers know it, without the import.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from genus import bench as bench
    from genus._collection import Collection as Collection
    from genus._discover import Discovery as Discovery
    from genus._discover import Report as Report
    from genus._discover import calibrate as calibrate
    from genus._discover import discover as discover
    from genus._estimator import CategoryDiscovery as CategoryDiscovery
    from genus._genus import Calibration as Calibration
    from genus._genus import __version__ as __version__
    from genus._images import Image as Image
    from genus._images import demo_pictures as demo_pictures
    from genus._images import embed as embed
    from genus._images import list_images as list_images

_HOMES = {
    "Calibration": "_genus",
    "CategoryDiscovery": "_estimator",
    "Collection": "_collection",
    "Discovery": "_discover",
    "Image": "_images",
    "Report": "_discover",
    "__version__": "_genus",
    "calibrate": "_discover",
    "demo_pictures": "_images",
    "discover": "_discover",
    "embed": "_images",
    "list_images": "_images",
}

__all__ = [  # noqa: RUF022 - in the order in which they are met
    "CategoryDiscovery",
    "discover",
    "Discovery",
    "Report",
    "embed",
    "list_images",
    "Image",
    "demo_pictures",
    "calibrate",
    "Calibration",
    "Collection",
    "bench",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "bench":
        return import_module("genus.bench")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'genus' has no attribute {name!r}")
    value = getattr(import_module(f"genus.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
