"""Writes real.json: checksums of what Pillow and torchvision make of real photographs.

    pip install torch torchvision pillow
    python3 make_real.py ../../../../../shared/data/cub200_small.tar

The photographs are not part of the repository; the test that needs them passes with a line when they are not there.
"""

import io
import json
import pathlib
import sys
import tarfile
import zlib

from PIL import Image
from torchvision import transforms
from torchvision.transforms import InterpolationMode

STEPS = transforms.Compose([transforms.Resize(292, InterpolationMode.BICUBIC), transforms.CenterCrop(260)])


def main():
    lines = []
    with tarfile.open(sys.argv[1]) as archive:
        members = [member for member in archive if member.name.endswith(".jpg")]
        for member in members[9::20]:
            image = Image.open(io.BytesIO(archive.extractfile(member).read())).convert("RGB")
            pixels, crop = zlib.crc32(image.tobytes()), zlib.crc32(STEPS(image).tobytes())
            entry = {"name": member.name, "pixels": pixels, "crop": crop}
            lines.append(json.dumps(entry))
    (pathlib.Path(__file__).parent / "real.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
