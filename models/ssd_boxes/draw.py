#!/usr/bin/env python3
# Draws pictures of coloured boxes, with a Pascal VOC file of what is where for each, and the lists that
# convert_annoset reads. Grey boxes are drawn too, but are nothing to be found.
# Usage: draw.py FOLDER [TRAIN_PICTURES [TEST_PICTURES [SEED]]]
import os
import sys

sys.dont_write_bytecode = True  # the folder of the models stays as it is
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from drawing import Picture, generator, noise_table

SIZE = 64
CLASSES = ("red", "green", "blue")


def colour_of(kind, rng):
    if kind == "grey":
        return [rng.randint(60, 200)] * 3
    strong, weak = rng.randint(170, 240), [rng.randint(20, 90) for _ in range(3)]
    weak[CLASSES.index(kind)] = strong
    return weak


def overlaps(box, others, margin=2):
    return any(
        box[0] < o[2] + margin and o[0] < box[2] + margin and box[1] < o[3] + margin and o[1] < box[3] + margin
        for o in others
    )


def place(others, rng):
    """A box (left, top, right, bottom) that touches no other, or None where none was found."""
    for _ in range(20):
        width = rng.randint(10, 36)
        height = max(10, min(36, round(width * rng.uniform(0.6, 1.7))))
        left, top = rng.randint(0, SIZE - width), rng.randint(0, SIZE - height)
        box = (left, top, left + width, top + height)
        if not overlaps(box, others):
            return box
    return None


def draw(rng):
    shade = [rng.randint(60, 190) for _ in range(3)]
    picture = Picture(SIZE, SIZE, shade, 30, rng)
    boxes, found = [], []
    for _ in range(rng.randint(1, 4)):
        box = place(boxes, rng)
        if box is None:
            break
        # The first is never grey: each picture has something to find.
        kind = rng.choice(CLASSES + ("grey",) if boxes else CLASSES)
        boxes.append(box)
        if kind != "grey":
            found.append((kind, box))
        tables = [noise_table(c, 20) for c in colour_of(kind, rng)]
        for y in range(box[1], box[3]):
            picture.span(y, box[0], box[2], tables)
    return picture, found


def annotation(found):
    objects = "".join(
        f"  <object>\n    <name>{kind}</name>\n    <difficult>0</difficult>\n    <bndbox><xmin>{b[0]}</xmin>"
        f"<ymin>{b[1]}</ymin><xmax>{b[2]}</xmax><ymax>{b[3]}</ymax></bndbox>\n  </object>\n"
        for kind, b in found
    )
    size = f"  <size><width>{SIZE}</width><height>{SIZE}</height><depth>3</depth></size>\n"
    return f"<annotation>\n{size}{objects}</annotation>\n"


def main(folder, train="2000", test="400", seed="1"):
    for name, count in (("train", int(train)), ("test", int(test))):
        rng = generator("boxes", name, seed)
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        with open(os.path.join(folder, f"{name}.txt"), "w") as lines:
            for i in range(count):
                stem = f"{name}/{i:05}"
                picture, found = draw(rng)
                picture.save(os.path.join(folder, stem + ".png"))
                with open(os.path.join(folder, stem + ".xml"), "w") as out:
                    out.write(annotation(found))
                lines.write(f"{stem}.png {stem}.xml\n")
    with open(os.path.join(folder, "classes.txt"), "w") as out:
        out.writelines(f"{name} {i + 1} {name}\n" for i, name in enumerate(CLASSES))


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 5:
        sys.exit("usage: draw.py FOLDER [TRAIN_PICTURES [TEST_PICTURES [SEED]]]")
    main(*sys.argv[1:])
