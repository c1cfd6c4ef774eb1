#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/oracle/pixels/: tiny images of every kind and the float pixels that real TensorFlow
gives for them (decode with 3 or 1 channels, resize), which tests/oracle/test_pixels.c compares bit
for bit.

    python tests/oracle/make_pixels.py [FOLDER]       # needs tensorflow-cpu 2.21, pillow, numpy
"""
import io
import os
import struct
import sys
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from PIL import Image

OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "pixels")


def picture(h, w, seed, channels=3):
    """Edges, gradients and noise, so that every filter shows."""
    rng = np.random.RandomState(seed)
    y, x = np.mgrid[0:h, 0:w].astype(np.float64)
    planes = []
    for c in range(channels):
        p = 128 + 90 * np.sin(x / (2.5 + c) + seed) + 60 * np.cos(y / (3.1 + c))
        p[(x + y + c * 3) % 11 < 2] = 250
        p[h // 3:h // 2, w // 4:w // 2] = 20 * c
        planes.append(p + rng.randint(-25, 25, (h, w)))
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def jpeg(a, mode="RGB", **how):
    b = io.BytesIO()
    Image.fromarray(a if a.shape[-1] > 1 else a[..., 0], mode).save(b, "JPEG", **how)
    return b.getvalue()


def without_segment(data, marker):
    """A JPEG with the first segment of that marker cut out."""
    at = 2
    while data[at] == 0xFF and data[at + 1] != 0xDA:
        n = struct.unpack(">H", data[at + 2:at + 4])[0]
        if data[at + 1] == marker:
            return data[:at] + data[at + 2 + n:]
        at += 2 + n
    raise ValueError("no such segment")


def with_orientation(data, value):
    tiff = b"MM\0*\0\0\0\x08" + struct.pack(">HHHIHHI", 1, 0x0112, 3, 1, value, 0, 0)
    body = b"Exif\0\0" + tiff
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + data[2:]


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def pack_rows(a, depth):
    """[h, w, c] of integers to PNG rows (filter 0)."""
    h = a.shape[0]
    flat = a.reshape(h, -1)
    rows = []
    for r in flat:
        if depth == 16:
            body = r.astype(">u2").tobytes()
        elif depth == 8:
            body = r.astype(np.uint8).tobytes()
        else:
            bits = ((r[:, None] >> np.arange(depth - 1, -1, -1)) & 1).astype(np.uint8).reshape(-1)
            body = np.packbits(bits).tobytes()
        rows.append(b"\0" + body)
    return b"".join(rows)


ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2),
         (1, 0, 2, 1)]


def png(a, color_type, depth=8, interlaced=False, extra=b""):
    h, w = a.shape[:2]
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, color_type, 0, 0, int(interlaced)))
    if interlaced:
        raw = b"".join(pack_rows(a[y::dy, x::dx], depth) for y, x, dy, dx in ADAM7
                       if a[y::dy, x::dx].size)
    else:
        raw = pack_rows(a, depth)
    return (b"\x89PNG\r\n\x1a\n" + head + extra + chunk(b"IDAT", zlib.compress(raw, 9)) +
            chunk(b"IEND", b""))


def bmp(a, top_down=False):
    """8 (gray palette), 24 or 32 bits by the number of channels (as BGR[A])."""
    h, w, c = a.shape
    palette = b"".join(bytes([i, i, i, 0]) for i in range(256)) if c == 1 else b""
    rows = [r.tobytes() + b"\0" * (-(w * c) % 4) for r in (a if top_down else a[::-1])]
    data = b"".join(rows)
    at = 54 + len(palette)
    return (b"BM" + struct.pack("<IHHI", at + len(data), 0, 0, at) +
            struct.pack("<IiiHHIIiiII", 40, w, -h if top_down else h, 1, 8 * c, 0, len(data), 2835,
                        2835, 256 if c == 1 else 0, 0) + palette + data)


def images():
    rgb, odd, big = picture(45, 60, 1), picture(37, 53, 2), picture(96, 131, 3)
    gray = picture(41, 50, 4, 1)
    yield "j444.jpg", jpeg(odd, quality=90, subsampling=0)
    yield "j422.jpg", jpeg(odd, quality=85, subsampling=1)
    yield "j420.jpg", jpeg(odd, quality=75, subsampling=2)
    yield "j420big.jpg", jpeg(big, quality=80, subsampling=2)
    yield "jprogressive.jpg", jpeg(odd, quality=80, subsampling=2, progressive=True)
    yield "jprogressive444.jpg", jpeg(rgb, quality=95, subsampling=0, progressive=True)
    yield "jrestart.jpg", jpeg(rgb, quality=80, subsampling=2, restart_marker_blocks=2)
    yield "jgray.jpg", jpeg(gray, "L", quality=85)
    cmyk = jpeg(picture(33, 47, 5, 4), "CMYK", quality=85)
    yield "jcmyk_adobe.jpg", cmyk
    yield "jcmyk_plain.jpg", without_segment(cmyk, 0xEE)
    yield "jtiny.jpg", jpeg(picture(1, 1, 6), quality=90)
    yield "jrow.jpg", jpeg(picture(1, 40, 7), quality=90)
    yield "jcolumn.jpg", jpeg(picture(40, 1, 8), quality=90, subsampling=2)
    yield "jorient6.jpg", with_orientation(jpeg(odd, quality=85, subsampling=2), 6)
    yield "prgb.png", png(odd, 2)
    yield "prgb_interlaced.png", png(odd, 2, interlaced=True)
    yield "pgray.png", png(gray, 0)
    yield "pgray_interlaced.png", png(gray, 0, interlaced=True)
    yield "pgray1.png", png(gray >> 7, 0, 1)
    yield "pgray2.png", png(gray >> 6, 0, 2)
    yield "pgray4.png", png(gray >> 4, 0, 4)
    yield "pgray16.png", png(gray.astype(np.int64) * 256 + 255 - gray, 0, 16)
    yield "prgb16.png", png(odd.astype(np.int64) * 256 + 255 - odd, 2, 16)
    yield "pgrayalpha.png", png(picture(31, 44, 9, 2), 4)
    yield "prgba.png", png(picture(31, 44, 10, 4), 6)
    yield "prgba16.png", png(picture(31, 44, 11, 4).astype(np.int64) * 257, 6, 16)
    table = picture(16, 16, 12).reshape(256, 3)
    plte = chunk(b"PLTE", table.tobytes())
    index = picture(29, 39, 13, 1)
    yield "ppalette.png", png(index, 3, 8, extra=plte)
    yield "ppalette_trns.png", png(index, 3, 8, extra=plte + chunk(b"tRNS", bytes(range(200))))
    yield "ppalette4.png", png(index >> 4, 3, 4, extra=chunk(b"PLTE", table[:16].tobytes()))
    yield "ppalette1.png", png(index >> 7, 3, 1, extra=chunk(b"PLTE", table[:2].tobytes()))
    yield "prgb_trns.png", png(odd, 2, extra=chunk(b"tRNS", struct.pack(">HHH", 20, 20, 20)))
    yield "pgamma.png", png(odd, 2, extra=chunk(b"gAMA", struct.pack(">I", 45455)))
    yield "ptext.png", png(odd, 2, extra=chunk(b"tEXt", b"Comment\0" + b"x" * 3000))
    yield "b24.bmp", bmp(odd)
    yield "b24top.bmp", bmp(odd, top_down=True)
    yield "b32.bmp", bmp(picture(31, 44, 14, 4))
    yield "b8.bmp", bmp(gray)


def decode(data, name, channels):
    if name.endswith(".jpg"):
        return tf.io.decode_jpeg(data, channels=channels)
    if name.endswith(".png"):
        return tf.io.decode_png(data, channels=channels)
    image = tf.io.decode_bmp(data)  # its channels are the file's
    if image.shape[-1] == 4:
        image = image[..., :3]
    if image.shape[-1] == 1 and channels == 3:
        image = tf.image.grayscale_to_rgb(image)
    return image


def save(name, tensor):
    np.save(os.path.join(OUT, name), np.asarray(tensor, np.float32))


def main():
    os.makedirs(OUT, exist_ok=True)
    rows = []

    def case(name, h, w, channels, resize, fit, scale, tensor):
        expected = f"e{len(rows):03d}.npy"
        save(expected, tensor)
        rows.append(f"{name},{h},{w},{channels},{resize},{fit},{scale},{expected}")

    kept = {}
    for i, (name, data) in enumerate(images()):
        with open(os.path.join(OUT, name), "wb") as f:
            f.write(data)
        image = decode(data, name, 3)
        kept[name] = image
        h, w = 16 + i % 5, 19 + i % 3
        case(name, h, w, 3, "bilinear", "stretch", "0..255", tf.image.resize(image, (h, w)))
        h, w = image.shape[:2]
        if h * w <= 1500:
            case(name, h, w, 3, "bilinear", "stretch", "0..255", tf.cast(image, tf.float32))
        if name.startswith(("jgray", "pgray", "j420.", "prgb.", "pgamma", "ppalette.")):
            case(name, 15, 17, 1, "bilinear", "stretch", "0..255",
                 tf.image.resize(decode(data, name, 1), (15, 17)))
    for name in ("j420.jpg", "prgb.png", "j420big.jpg"):
        image = kept[name]
        for h, w in ((61, 71), (7, 100), (100, 3), (1, 1), (32, 32), (24, 33)):
            if h * w * 12 > 20000 and name != "j420.jpg":
                continue
            case(name, h, w, 3, "bilinear", "stretch", "0..255", tf.image.resize(image, (h, w)))
    image = kept["j420big.jpg"]
    for h, w in ((20, 20), (11, 31), (31, 11), (24, 40)):
        case("j420big.jpg", h, w, 3, "bilinear", "pad", "0..255",
             tf.image.resize_with_pad(image, h, w))
        case("j420big.jpg", h, w, 3, "bilinear", "crop", "0..255", crop(image, h, w))
    small = tf.image.resize(image, (18, 18))
    case("j420big.jpg", 18, 18, 3, "bilinear", "stretch", "0..1", small / 255.0)
    from keras.applications.imagenet_utils import preprocess_input
    for mode, scale in (("tf", "-1..1"), ("caffe", "caffe"), ("torch", "torch")):
        case("j420big.jpg", 18, 18, 3, "bilinear", "stretch", scale,
             preprocess_input(small.numpy().copy(), mode=mode, data_format="channels_last"))
    for name in ("j420big.jpg", "prgb.png"):
        for h, w in ((20, 24), (9, 50), (60, 70), (1, 1)):
            case(name, h, w, 3, "antialias", "stretch", "0..255",
                 tf.image.resize(kept[name], (h, w), antialias=True))
    with open(os.path.join(OUT, "cases.csv"), "w") as f:
        f.write("file,height,width,channels,resize,fit,scale,expected\n")
        f.write("\n".join(rows) + "\n")
    total = sum(os.path.getsize(os.path.join(OUT, n)) for n in os.listdir(OUT))
    print(f"{len(rows)} cases, {total} bytes in {OUT}")


def crop(image, h, w):
    """As keras.utils.image_dataset_from_directory(crop_to_aspect_ratio=True) does in its graph."""
    from keras.utils import image_dataset_from_directory
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "a"))
        with open(os.path.join(folder, "a", "x.png"), "wb") as f:
            f.write(tf.io.encode_png(image).numpy())
        data = image_dataset_from_directory(folder, labels=None, image_size=(h, w), batch_size=None,
                                            shuffle=False, crop_to_aspect_ratio=True, verbose=False)
        return next(iter(data)).numpy()


if __name__ == "__main__":
    main()
