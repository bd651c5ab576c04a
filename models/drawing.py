# What the generators of drawn data sets share: a colour or gray picture that is drawn row by row and saved as PNG.
# Needs nothing but Python's own library. The same seed gives the same files.
import random
import struct
import zlib


def noise_table(value, amount):
    """For bytes.translate: random bytes become values around `value`, at most `amount` away."""
    return bytes(max(0, min(255, round(value + amount * (i - 127.5) / 127.5))) for i in range(256))


class Picture:
    def __init__(self, width, height, colour, noise, rng):
        """A picture filled with a noisy colour: a value of 0..255 for each channel, red first; 1 or 3 channels."""
        self.width, self.height, self.rng = width, height, rng
        self.planes = [bytearray(rng.randbytes(width * height).translate(noise_table(c, noise))) for c in colour]

    def span(self, y, begin, end, tables):
        """Pixels begin to end - 1 of row y; what lies outside is cut off. tables: noise_table of each channel."""
        begin, end = max(0, begin), min(self.width, end)
        if begin >= end or not 0 <= y < self.height:
            return
        at = y * self.width
        for plane, table in zip(self.planes, tables):
            plane[at + begin : at + end] = self.rng.randbytes(end - begin).translate(table)

    def save(self, path):
        """As PNG of 8 bits."""
        pixels = bytearray(self.width * self.height * len(self.planes))
        for i, plane in enumerate(self.planes):
            pixels[i :: len(self.planes)] = plane
        row = self.width * len(self.planes)
        rows = b"".join(b"\0" + pixels[y * row : (y + 1) * row] for y in range(self.height))
        colour_type = 0 if len(self.planes) == 1 else 2
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, colour_type, 0, 0, 0)
        with open(path, "wb") as out:
            out.write(b"\x89PNG\r\n\x1a\n")
            for kind, data in ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b"")):
                out.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))


def generator(name, set_name, seed):
    """Random numbers of one set: train and test never share them."""
    return random.Random(f"{name} {set_name} {seed}")
