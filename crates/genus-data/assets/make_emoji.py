"""Makes emoji.zip, the pictures of `genus demo`, out of the npm package emoji-datasource-google.

    npm pack emoji-datasource-google@16.0.0 && tar xzf emoji-datasource-google-16.0.0.tgz
    python make_emoji.py package emoji.zip

The kinds are Unicode's own categories. A picture is `KIND/CODEPOINTS NAME.png`, 64 × 64 pixels of at most 64 colours on white.
Wants Pillow.
"""

import io
import json
import pathlib
import sys
import zipfile

from PIL import Image

# Kinds that say the same of every picture in them; `emoji.json` has the subcategories of Unicode's emoji-test.txt.
KINDS = {
    "arrows": lambda sub, name: sub == "arrow",
    "birds": lambda sub, name: sub == "animal-bird",
    "buildings": lambda sub, name: sub == "place-building",
    "clocks": lambda sub, name: sub == "time" and name.startswith("clock face"),
    "clothing": lambda sub, name: sub == "clothing",
    "faces": lambda sub, name: sub.startswith("face-"),
    "flags": lambda sub, name: sub == "country-flag",
    "fruits": lambda sub, name: sub == "food-fruit",
    "hands": lambda sub, name: sub.startswith("hand-fingers") or sub in ("hand-single-finger", "hands"),
    "hearts": lambda sub, name: sub == "heart",
    "mammals": lambda sub, name: sub == "animal-mammal",
    "people": lambda sub, name: sub == "person-role",
    "vehicles": lambda sub, name: sub == "transport-ground",
    "zodiac": lambda sub, name: sub == "zodiac",
}
# Of more, as many are taken at equal steps of Unicode's order.
MOST = 30


def png(path):
    picture = Image.open(path).convert("RGBA")
    paper = Image.new("RGBA", picture.size, "white")
    paper.alpha_composite(picture)
    out = io.BytesIO()
    paper.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def main(package, out):
    package = pathlib.Path(package)
    emoji = json.loads((package / "emoji.json").read_text())
    emoji = sorted((e for e in emoji if e["has_img_google"]), key=lambda e: e["sort_order"])
    count = 0
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for kind, belongs in KINDS.items():
            found = [e for e in emoji if belongs(e["subcategory"], (e["name"] or "").lower())]
            if len(found) > MOST:
                found = [found[at * len(found) // MOST] for at in range(MOST)]
            print(f"{kind:10} {len(found)}")
            count += len(found)
            for e in found:
                name = f'{e["unified"].lower()} {e["short_name"].replace("_", "-")}'
                # The same bytes whenever it is made.
                entry = zipfile.ZipInfo(f"{kind}/{name}.png", (1980, 1, 1, 0, 0, 0))
                archive.writestr(entry, png(package / "img/google/64" / e["image"]))
    print(f"{count} pictures of {len(KINDS)} kinds, {pathlib.Path(out).stat().st_size / 1e6:.2f} MB")


main(*sys.argv[1:])
