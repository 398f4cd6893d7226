"""Writes images/ and what Pillow and torchvision make of them: images.json and crops.bin.

    pip install torch torchvision pillow numpy
    python3 make_images.py

The images are seeded patterns, every format and kind of pixel that Genus reads, small and odd on purpose. For each
one images.json has the size after `exif_transpose`, checksums of all its pixels and of its crops, and where in
crops.bin its small crops are (and a large one of images that need not be equal to the bit).
"""

import io
import json
import pathlib
import random
import shutil
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps
from torchvision import transforms
from torchvision.transforms import InterpolationMode

HERE = pathlib.Path(__file__).parent
FOLDER = HERE / "images"
RANDOM = random.Random(20250511)

SMALL = [(32, 28, "bilinear"), (16, 12, "bicubic"), (9, 14, "bicubic")]
LARGE = [(256, 224, "bicubic"), (292, 260, "bicubic")]


def pattern(width, height, channels=3):
    """A gradient, a few discs and boxes, and a little noise."""
    y, x = np.mgrid[0:height, 0:width].astype(float)
    planes = []
    for channel in range(channels):
        plane = 60 + 120 * x / max(width, 2) + 60 * np.sin((channel + 1) * 3 * y / max(height, 2))
        for shape in range(4):
            cx, cy = RANDOM.random() * width, RANDOM.random() * height
            radius, shade = (0.1 + 0.2 * RANDOM.random()) * max(width, height), RANDOM.randint(0, 255)
            inside = np.hypot(x - cx, y - cy) < radius if shape % 2 else np.maximum(abs(x - cx), abs(y - cy)) < radius
            plane[inside] = shade
        noise = np.array([RANDOM.randint(-6, 6) for _ in range(width * height)]).reshape(height, width)
        planes.append(np.clip(plane + noise, 0, 255))
    return np.stack(planes, -1).astype(np.uint8)


def photo(width=97, height=61, mode="RGB"):
    channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    data = pattern(width, height, channels)
    return Image.frombytes(mode, (width, height), data.tobytes())


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(samples, depth, colour, chunks=(), interlaced=False):
    """A PNG by hand: samples are rows × columns × channels of `depth` bits."""
    height, width, _ = samples.shape

    def lines(part):
        rows, columns, _ = part.shape
        if rows == 0 or columns == 0:
            return b""
        flat = part.reshape(rows, -1)
        if depth == 16:
            return b"".join(b"\0" + row.astype(">u2").tobytes() for row in flat)
        bits = (flat[:, :, None] >> np.arange(depth - 1, -1, -1)) & 1
        return b"".join(b"\0" + np.packbits(row.reshape(-1)).tobytes() for row in bits)

    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
        data = b"".join(lines(samples[y0::dy, x0::dx]) for x0, y0, dx, dy in passes)
    else:
        data = lines(samples)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    body = chunk(b"IHDR", header) + b"".join(chunk(*each) for each in chunks)
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b"")


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def turned(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def resampled(jpeg, old, new):
    """Changes the sampling of the first component: a valid image, though not a pretty one."""
    start = next(jpeg.index(bytes([0xFF, marker])) for marker in (0xC0, 0xC2) if bytes([0xFF, marker]) in jpeg)
    assert jpeg[start + 11] == old
    return jpeg[: start + 11] + bytes([new]) + jpeg[start + 12 :]


def images():
    """Name, bytes, and whether the pixels must be equal to the bit."""
    rgb = photo()
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        for quality in (35, 90):
            data = saved(rgb, "JPEG", quality=quality, subsampling=subsampling)
            yield f"baseline_{name}_q{quality}.jpg", data, True
        data = saved(rgb, "JPEG", quality=80, subsampling=subsampling, progressive=True)
        yield f"progressive_{name}.jpg", data, True
    yield "restart.jpg", saved(rgb, "JPEG", quality=80, restart_marker_blocks=3), True
    yield "restart_progressive.jpg", saved(rgb, "JPEG", quality=80, restart_marker_rows=1, progressive=True), True
    yield "optimized.jpg", saved(rgb, "JPEG", quality=99, optimize=True), True
    yield "rgb.jpg", saved(rgb, "JPEG", quality=80, keep_rgb=True), True
    yield "grey.jpg", saved(photo(mode="L"), "JPEG", quality=80), True
    yield "grey_progressive.jpg", saved(photo(mode="L"), "JPEG", quality=80, progressive=True), True
    cmyk = saved(photo(mode="CMYK"), "JPEG", quality=80)
    yield "cmyk.jpg", cmyk, True
    adobe = cmyk.index(b"Adobe")
    yield "ycck.jpg", cmyk[: adobe + 11] + b"\2" + cmyk[adobe + 12 :], True
    yield "cmyk_plain.jpg", cmyk.replace(b"Adobe", b"other"), True
    square = photo(64, 64)
    yield "baseline_440.jpg", resampled(saved(square, "JPEG", subsampling=1), 0x21, 0x12), True
    yield "baseline_411.jpg", resampled(saved(square, "JPEG", subsampling=2), 0x22, 0x41), True
    yield "progressive_440.jpg", resampled(saved(square, "JPEG", subsampling=1, progressive=True), 0x21, 0x12), True
    for width, height in ((1, 1), (2, 3), (3, 2), (5, 5), (16, 17), (17, 16), (3, 300), (300, 3)):
        yield f"small_{width}x{height}.jpg", saved(photo(width, height), "JPEG", subsampling=2, quality=85), True
    for orientation in range(1, 9):
        exif = turned(orientation)
        yield f"turned_{orientation}.jpg", saved(photo(40, 27), "JPEG", quality=70, exif=exif), True
        yield f"turned_{orientation}.png", saved(photo(13, 9), "PNG", exif=exif), True
    yield "turned.webp", saved(photo(23, 14), "WEBP", lossless=True, exif=turned(6)), True
    yield "turned.tif", saved(photo(23, 14), "TIFF", exif=turned(8)), True
    xmp = b'<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    yield "turned_xmp.jpg", saved(photo(40, 27), "JPEG", quality=70, xmp=xmp), True

    for mode in ("L", "LA", "RGB", "RGBA"):
        yield f"{mode.lower()}.png", saved(photo(61, 43, mode), "PNG"), True
    for depth in (1, 2, 4, 8):
        grey = pattern(37, 29, 1) >> (8 - depth)
        yield f"grey_{depth}bit.png", png(grey, depth, 0), True
        clear = [(b"tRNS", struct.pack(">H", 1))]
        yield f"grey_{depth}bit_transparent.png", png(grey, depth, 0, clear, interlaced=True), True
        colours = bytes(RANDOM.randint(0, 255) for _ in range(3 << depth))
        alphas = bytes(RANDOM.randint(0, 255) for _ in range(1 << (depth - 1)))
        yield f"palette_{depth}bit.png", png(grey, depth, 3, [(b"PLTE", colours)], interlaced=True), True
        chunks = [(b"PLTE", colours), (b"tRNS", alphas)]
        yield f"palette_{depth}bit_transparent.png", png(grey, depth, 3, chunks), True
    yield "rgb_transparent.png", png(pattern(31, 22), 8, 2, [(b"tRNS", b"\0\1\0\2\0\3")]), True
    for colour, channels in ((2, 3), (4, 2), (6, 4)):
        wide = pattern(33, 21, channels).astype(np.uint16) * 256 + pattern(33, 21, channels)
        yield f"colour{colour}_16bit.png", png(wide, 16, colour, interlaced=colour == 2), True
    yield "interlaced.png", png(pattern(45, 30), 8, 2, interlaced=True), True
    yield "interlaced_1x3.png", png(pattern(1, 3), 8, 2, interlaced=True), True
    for width, height in ((1, 1), (1, 20000), (20000, 1), (3, 500), (500, 3)):
        yield f"size_{width}x{height}.png", saved(photo(width, height, "L"), "PNG", optimize=True), True
    # Flat colours keep the large ones small.
    flat = Image.fromarray(pattern(257, 255) & 0xC0)
    for width, height in ((257, 255), (256, 256), (256, 300), (255, 256)):
        image = flat.resize((width, height), Image.Resampling.NEAREST)
        yield f"size_{width}x{height}.png", saved(image.quantize(16), "PNG", optimize=True), True

    yield "lossy.webp", saved(rgb, "WEBP", quality=80), False
    yield "lossy_alpha.webp", saved(photo(mode="RGBA"), "WEBP", quality=60, exact=True), False
    yield "lossless.webp", saved(photo(41, 30), "WEBP", lossless=True), True
    yield "lossless_alpha.webp", saved(photo(41, 30, "RGBA"), "WEBP", lossless=True, exact=True), True
    frames = [photo(31, 23) for _ in range(3)]
    animated = {"save_all": True, "append_images": frames[1:], "duration": 100}
    yield "animated.webp", saved(frames[0], "WEBP", lossless=True, **animated), True
    yield "animated.png", saved(frames[0], "PNG", **animated), True
    yield "animated.gif", saved(frames[0], "GIF", **animated), True
    yield "still.gif", saved(photo(41, 30), "GIF", interlace=1), True
    yield "grey.gif", saved(photo(41, 30, "L"), "GIF", interlace=0), True
    clear = photo(41, 30).quantize(32)
    yield "transparent.gif", saved(clear, "GIF", transparency=3), True
    # A frame in the middle of its screen, with and without a transparent colour.
    for name, start in (("transparent", b"\x21\xf9\x04\x01\0\0\x02\0"), ("opaque", b"")):
        inner = saved(photo(20, 12).quantize(8), "GIF", interlace=0)
        table = 13 + 3 * (2 << (inner[10] & 7))
        separator = inner.index(b",\0\0\0\0", table)
        moved = inner[:6] + struct.pack("<HH", 34, 25) + inner[10:table] + start
        moved += b"," + struct.pack("<HH", 7, 4) + inner[separator + 5 :]
        yield f"offset_{name}.gif", moved, True

    yield "rgb.bmp", saved(photo(31, 21), "BMP"), True
    yield "rgba.bmp", saved(photo(15, 11, "RGBA"), "BMP"), True
    yield "grey.bmp", saved(photo(31, 21, "L"), "BMP"), True
    yield "black_white.bmp", saved(photo(31, 21, "L").convert("1"), "BMP"), True
    yield "palette.bmp", saved(photo(31, 21).quantize(16), "BMP"), True
    for mode in ("L", "LA", "RGB", "RGBA", "CMYK"):
        yield f"{mode.lower()}.tif", saved(photo(31, 21, mode), "TIFF"), True
    yield "palette.tif", saved(photo(31, 21).quantize(64), "TIFF"), True
    yield "black_white.tif", saved(photo(31, 21, "L").convert("1"), "TIFF"), True
    for name in ("tiff_lzw", "tiff_adobe_deflate", "packbits"):
        yield f"{name}.tif", saved(photo(31, 21), "TIFF", compression=name), True
    yield "fax.tif", saved(photo(31, 21, "L").convert("1"), "TIFF", compression="group4"), True
    pages = [photo(25, 17) for _ in range(2)]
    yield "pages.tif", saved(pages[0], "TIFF", save_all=True, append_images=pages[1:]), True


def grey16():
    """Grey of 16 bits is not compared with Pillow, which clips it, but with its upper half."""
    wide = pattern(33, 21, 1).astype(np.uint16) * 256 + pattern(33, 21, 1)
    upper = Image.fromarray((wide[:, :, 0] >> 8).astype(np.uint8))
    yield "grey_16bit.png", png(wide, 16, 0), upper
    yield "grey_16bit.tif", saved(Image.fromarray(wide[:, :, 0]), "TIFF"), upper


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    entries, crops = [], bytearray()
    listed = [(name, data, Image.open(io.BytesIO(data)), exact) for name, data, exact in images()]
    listed += [(name, data, upper, True) for name, data, upper in grey16()]
    for name, data, image, exact in listed:
        (FOLDER / name).write_bytes(data)
        image = ImageOps.exif_transpose(image).convert("RGB")
        entry = {"name": name, "exact": exact, "width": image.width, "height": image.height}
        entry["checksum"] = zlib.crc32(image.tobytes())
        entry["crops"] = []
        for resize, crop, kernel in SMALL + LARGE:
            mode = {"bilinear": InterpolationMode.BILINEAR, "bicubic": InterpolationMode.BICUBIC}[kernel]
            steps = transforms.Compose([transforms.Resize(resize, mode), transforms.CenterCrop(crop)])
            if min(image.size) * 1000 < max(image.size):
                # What torchvision would make is gigabytes; Pillow resizes the middle, which is all that the crop shows.
                pixels = thin(image, resize, crop, mode)
            else:
                pixels = steps(image).tobytes()
            item = {"resize": resize, "crop": crop, "filter": kernel, "checksum": zlib.crc32(pixels)}
            if (resize, crop, kernel) in SMALL or (not exact and resize == 256):
                item["offset"] = len(crops)
                crops += pixels
            entry["crops"].append(item)
        entries.append(entry)
    # What the normalised values are of the first small crop of the first image.
    first = Image.open(FOLDER / listed[0][0]).convert("RGB")
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    steps = [transforms.Resize(16, InterpolationMode.BICUBIC), transforms.CenterCrop(12)]
    steps += [transforms.ToTensor(), transforms.Normalize(mean, std)]
    values = transforms.Compose(steps)(first).numpy().reshape(-1)
    lines = ",\n".join("  " + json.dumps(entry) for entry in entries)
    bits = json.dumps([int(bits) for bits in values.view(np.uint32)])
    (HERE / "images.json").write_text(f'{{"images": [\n{lines}\n],\n"normalized_bits": {bits}\n}}\n')
    (HERE / "crops.bin").write_bytes(crops)


def thin(image, resize, crop, mode):
    """The crop of an image of one pixel's width or height, whose longer side grows by `resize`."""
    assert min(image.size) == 1
    kernel = Image.Resampling.BILINEAR if mode == InterpolationMode.BILINEAR else Image.Resampling.BICUBIC
    long = max(image.size)
    start = round((long * resize - crop) / 2.0)
    # Far enough around the middle for the kernel, in whole pixels of the source.
    first, last = start // resize - 4, (start + crop) // resize + 5
    wide = image.width > 1
    part = image.crop((first, 0, last, 1) if wide else (0, first, 1, last))
    size = ((last - first) * resize, resize) if wide else (resize, (last - first) * resize)
    part = part.resize(size, kernel)
    start -= first * resize
    across = round(max(resize - crop, 0) / 2.0)
    if crop > resize:
        pad = (crop - resize) // 2
        out = Image.new("RGB", (crop, crop))
        box = (start, 0, start + crop, resize) if wide else (0, start, resize, start + crop)
        out.paste(part.crop(box), (0, pad) if wide else (pad, 0))
        return out.tobytes()
    box = (start, across, start + crop, across + crop) if wide else (across, start, across + crop, start + crop)
    return part.crop(box).tobytes()


if __name__ == "__main__":
    main()
