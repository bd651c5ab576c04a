#!/usr/bin/env python3
# Draws pictures of discs, squares and triangles of any colour, and for each a gray picture of the classes of its
# pixels: 0 background, 1 disc, 2 square, 3 triangle. The lists name pictures and class pictures in the same order.
# Usage: draw.py FOLDER [TRAIN_PICTURES [TEST_PICTURES [SEED]]]
import math
import os
import sys

sys.dont_write_bytecode = True  # the folder of the models stays as it is
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from drawing import Picture, generator, noise_table

SIZE = 64
CLASSES = ("background", "disc", "square", "triangle")


def spans(kind, size):
    """Of each row of a shape of size x size pixels: where it begins and ends."""
    for row in range(size):
        middle = row + 0.5
        if kind == 1:
            half = math.sqrt(max(0, (size / 2) ** 2 - (middle - size / 2) ** 2))
        elif kind == 2:
            half = size / 2
        else:
            half = middle / 2
        yield row, round(size / 2 - half), round(size / 2 + half)


def draw(rng):
    shade = [rng.randint(30, 220) for _ in range(3)]
    picture = Picture(SIZE, SIZE, shade, 25, rng)
    classes = Picture(SIZE, SIZE, [0], 0, rng)
    taken = []
    for _ in range(rng.randint(1, 3)):
        kind, size = rng.randint(1, 3), rng.randint(16, 30)
        left, top = rng.randint(0, SIZE - size), rng.randint(0, SIZE - size)
        if any(left < l + s and l < left + size and top < t + s and t < top + size for l, t, s in taken):
            continue
        taken.append((left, top, size))
        while True:
            colour = [rng.randint(20, 235) for _ in range(3)]
            if max(abs(a - b) for a, b in zip(colour, shade)) > 80:
                break
        tables, label = [noise_table(c, 25) for c in colour], [noise_table(kind, 0)]
        for row, begin, end in spans(kind, size):
            picture.span(top + row, left + begin, left + end, tables)
            classes.span(top + row, left + begin, left + end, label)
    return picture, classes


def main(folder, train="1500", test="300", seed="1"):
    for name, count in (("train", int(train)), ("test", int(test))):
        rng = generator("shapes", name, seed)
        for kind in ("pictures", "classes"):
            os.makedirs(os.path.join(folder, name, kind), exist_ok=True)
        lists = [open(os.path.join(folder, f"{name}_{kind}.txt"), "w") for kind in ("pictures", "classes")]
        for i in range(count):
            for kind, picture, lines in zip(("pictures", "classes"), draw(rng), lists):
                path = f"{name}/{kind}/{i:05}.png"
                picture.save(os.path.join(folder, path))
                lines.write(path + " 0\n")
        for lines in lists:
            lines.close()
    with open(os.path.join(folder, "classes.txt"), "w") as out:
        out.writelines(name + "\n" for name in CLASSES)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 5:
        sys.exit("usage: draw.py FOLDER [TRAIN_PICTURES [TEST_PICTURES [SEED]]]")
    main(*sys.argv[1:])
