# SPDX-License-Identifier: Apache-2.0
"""
png_colours.py FILE RRGGBB... - ends with 1 unless each of these colours fills 50 pixels of the
picture or more. For 8-bit RGB and RGBA without interlacing, as browsers write it (PNG, ISO 15948).
"""
import struct
import sys
import zlib

PIXELS_MIN = 50


def chunks(data):
    """(type, content) of each chunk."""
    at = 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + size]
        at += size + 12


def closest(left, above, corner):
    """The predictor of filter 4: of three bytes the one closest to left + above - corner."""
    estimate = left + above - corner
    a, b, c = abs(estimate - left), abs(estimate - above), abs(estimate - corner)
    return left if a <= b and a <= c else above if b <= c else corner


def row_restore(kind, row, before, size):
    """Undoes the filter of one row. @size: bytes of a pixel"""
    if kind == 0:
        return
    for i, value in enumerate(row):
        left = row[i - size] if i >= size else 0
        corner = before[i - size] if i >= size else 0
        row[i] = (value + {1: left, 2: before[i], 3: (left + before[i]) // 2,
                           4: closest(left, before[i], corner)}[kind]) & 255


def pixels(path):
    """Each pixel as RRGGBB."""
    with open(path, "rb") as file:
        parts = list(chunks(file.read()))
    width, _, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", parts[0][1])
    if depth != 8 or colour not in (2, 6) or interlace:
        raise ValueError("a kind of PNG that is not expected")
    size = 3 if colour == 2 else 4
    data = zlib.decompress(b"".join(content for kind, content in parts if kind == b"IDAT"))
    step = width * size
    before = bytearray(step)
    for at in range(0, len(data), step + 1):
        row = bytearray(data[at + 1:at + 1 + step])
        row_restore(data[at], row, before, size)
        for i in range(0, step, size):
            yield bytes(row[i:i + 3])
        before = row


def main():
    """Returns an exit status."""
    wanted = {bytes.fromhex(text): 0 for text in sys.argv[2:]}
    for pixel in pixels(sys.argv[1]):
        if pixel in wanted:
            wanted[pixel] += 1
    for colour, count in wanted.items():
        if count < PIXELS_MIN:
            print("%d pixels have the colour %s" % (count, colour.hex()), file=sys.stderr)
    return 0 if min(wanted.values()) >= PIXELS_MIN else 1


if __name__ == "__main__":
    sys.exit(main())
