"""Makes bursts of photographs: several frames of each, as a camera that is held by hand takes them.

    python -m venv venv && venv/bin/pip install pillow
    venv/bin/python bench/bursts.py PHOTOS BURSTS --frames 2-8 --seed 1

Every image of the folder PHOTOS becomes frames `NAME.0.jpg`, `NAME.1.jpg` … in the same subfolder of BURSTS. A frame is
a crop, a few pixels off, a little brighter or darker, and a JPEG of its own quality; what is done to it follows from
the seed and the image's path alone.
"""

import argparse
import random
from pathlib import Path

from PIL import Image, ImageEnhance

KINDS = {".jpg", ".jpeg", ".png", ".webp"}


def span(text):
    """A number, or two with a dash between them."""
    low, _, high = text.partition("-")
    low, high = int(low), int(high or low)
    if not 1 <= low <= high:
        raise argparse.ArgumentTypeError(f"{text} is no number of frames; write 3, or 2-8")
    return low, high


def frame(image, rng, args):
    """One frame of what the image shows."""
    width, height = image.size
    # What is cut off is shared out between the sides, and the camera moves by a few pixels more.
    kept = 1 - rng.uniform(0, args.crop)
    w, h = round(width * kept), round(height * kept)
    left = rng.uniform(0, width - w) + rng.randint(-args.shift, args.shift)
    top = rng.uniform(0, height - h) + rng.randint(-args.shift, args.shift)
    left, top = min(max(round(left), 0), width - w), min(max(round(top), 0), height - h)
    cut = image.crop((left, top, left + w, top + h))
    return ImageEnhance.Brightness(cut).enhance(1 + rng.uniform(-args.brightness, args.brightness))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("bursts", type=Path)
    parser.add_argument("--frames", type=span, default=(3, 3), help="frames of a burst, as 3 or 2-8 [default: 3]")
    parser.add_argument("--crop", type=float, default=0.05, help="cut off up to this share of the sides")
    parser.add_argument("--shift", type=int, default=2, help="move by up to so many pixels")
    parser.add_argument("--brightness", type=float, default=0.05, help="brighter or darker by up to this share")
    parser.add_argument("--quality", type=int, nargs=2, default=(70, 95), help="the range of the JPEG quality")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    paths = sorted(p for p in args.photos.rglob("*") if p.suffix.lower() in KINDS)
    if not paths:
        raise SystemExit(f"{args.photos}: no images; name a folder of .jpg, .png or .webp files")
    count = 0
    for path in paths:
        name = path.relative_to(args.photos)
        rng = random.Random(f"{args.seed} {name.as_posix()}")
        image = Image.open(path).convert("RGB")
        folder = args.bursts / name.parent
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(rng.randint(*args.frames)):
            quality = rng.randint(*args.quality)
            frame(image, rng, args).save(folder / f"{name.stem}.{number}.jpg", quality=quality)
            count += 1
    print(f"{len(paths)} photographs, {count} frames")


if __name__ == "__main__":
    main()
