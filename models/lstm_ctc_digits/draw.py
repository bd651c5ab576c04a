#!/usr/bin/env python3
# Draws pictures of one to six digits in a row (or always of DIGITS), of varying size, place and slant, and lists with
# six labels for each: the digits, then -1.
# Usage: draw.py FOLDER [TRAIN_PICTURES [TEST_PICTURES [SEED [DIGITS]]]]
import os
import sys

sys.dont_write_bytecode = True  # the folder of the models stays as it is
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from drawing import Picture, generator, noise_table

WIDTH, HEIGHT, MOST = 80, 20, 6
# Each digit as 7 rows of 5 dots.
DOTS = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00010 00100 01000 11111",
    "11110 00001 00001 01110 00001 00001 11110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)


def draw(rng, count):
    dark_on_light = rng.random() < 0.5
    paper, ink = (rng.randint(170, 230), rng.randint(20, 90)) if dark_on_light else (rng.randint(20, 80), rng.randint(150, 230))
    picture = Picture(WIDTH, HEIGHT, [paper], 20, rng)
    tables = [noise_table(ink, 20)]
    digits = [rng.randint(0, 9) for _ in range(count or rng.randint(1, MOST))]
    slot = WIDTH // max(len(digits), 4)
    left = rng.randint(0, WIDTH - slot * len(digits))
    for i, digit in enumerate(digits):
        width, height = rng.randint(8, min(slot, 14) - 2), rng.randint(11, 17)
        x = left + i * slot + rng.randint(0, slot - width - 1)
        y = rng.randint(1, HEIGHT - height - 1)
        slant = rng.uniform(-2, 2)
        rows = DOTS[digit].split()
        for line in range(height):
            dots = rows[line * 7 // height]
            shift = x + round(slant * (0.5 - line / height))
            for dot in range(5):
                if dots[dot] == "1":
                    picture.span(y + line, shift + dot * width // 5, shift + (dot + 1) * width // 5, tables)
    return picture, digits


def main(folder, train="4000", test="800", seed="1", digits="0"):
    for name, count in (("train", int(train)), ("test", int(test))):
        rng = generator("digits", name, seed)
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        with open(os.path.join(folder, f"{name}.txt"), "w") as lines:
            for i in range(count):
                picture, shown = draw(rng, int(digits))
                picture.save(os.path.join(folder, name, f"{i:05}.png"))
                labels = shown + [-1] * (MOST - len(shown))
                lines.write(f"{name}/{i:05}.png {' '.join(map(str, labels))}\n")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 6:
        sys.exit("usage: draw.py FOLDER [TRAIN_PICTURES [TEST_PICTURES [SEED [DIGITS]]]]")
    main(*sys.argv[1:])
