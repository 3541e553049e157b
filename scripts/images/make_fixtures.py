#!/usr/bin/env python3
"""make_fixtures.py FOLDER: small images of every kind that the runtime reads, and what Pillow makes of them. Needs numpy and Pillow; the
fixtures in test/Runtime/images are its output. NAME.rgb holds the pixels of NAME.*; resized.W.H.rgb those of rgb.png in that size."""

import pathlib
import sys

import numpy as np
from PIL import Image, ImageOps

folder = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(1)
WIDTH, HEIGHT = 37, 29


def smooth(height, width, channels):
    """Waves with a hard edge: what resizing overshoots at."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [127 + 120 * np.sin(x * (0.3 + 0.2 * c) + y * (0.5 - 0.1 * c)) for c in range(channels)]
    pixels = np.stack(waves, -1)
    pixels[height // 3:height // 2, width // 4:width // 2] = 255 * rng.integers(0, 2, size=channels)
    return pixels.round().astype(np.uint8)


def expect(name, image):
    (folder / f"{name}.rgb").write_bytes(image.tobytes())


def save(name, kind, image, **options):
    path = folder / f"{name}.{kind}"
    image.save(path, **options)
    expect(name, ImageOps.exif_transpose(Image.open(path)).convert("RGB"))


colours = Image.fromarray(smooth(HEIGHT, WIDTH, 3))
save("rgb", "png", colours)
save("rgba", "png", Image.fromarray(smooth(HEIGHT, WIDTH, 4)))
save("grey", "png", colours.convert("L"))
save("bits", "png", colours.convert("1"))
save("palette", "png", colours.quantize(16))
save("transparent", "png", colours.quantize(4), transparency=1)
save("grey", "jpg", colours.convert("L"), quality=90)
(folder / "grey.rgb").rename(folder / "grey_jpg.rgb")
(folder / "grey.jpg").rename(folder / "grey_jpg.jpg")
expect("grey", Image.open(folder / "grey.png").convert("RGB"))
save("halves", "jpg", colours, quality=85, subsampling="4:2:0")
save("progressive", "jpg", colours, quality=95, subsampling=0, progressive=True)
for orientation in range(1, 9):
    exif = Image.Exif()
    exif[0x0112] = orientation
    save(f"turned_{orientation}", "jpg", colours.crop((0, 0, 16, 8)), quality=95, subsampling=0, exif=exif)
exif[0x0112] = 6
save("turned", "png", colours.crop((0, 0, 7, 5)), exif=exif)
colours.convert("CMYK").save(folder / "cmyk.jpg")
# Pillow's own 16 bits are grey only; the high byte counts.
wide = (smooth(HEIGHT, WIDTH, 1)[..., 0].astype(np.uint16) << 8) + rng.integers(0, 256, size=(HEIGHT, WIDTH)).astype(np.uint16)
Image.fromarray(wide).save(folder / "wide.png")
expect("wide", Image.fromarray((wide >> 8).astype(np.uint8)).convert("RGB"))
# Never larger in one direction and smaller in the other: versions differ in which one comes first.
for width, height in ((19, 11), (64, 50), (37, 10), (5, 29), (1, 1)):
    expect(f"resized.{width}.{height}", colours.resize((width, height), Image.Resampling.BICUBIC))
