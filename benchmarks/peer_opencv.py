#!/usr/bin/env python3
"""Forward of a deploy net in OpenCV's dnn module, from a caffemodel: times it and prints a line of JSON.

With --wait it measures once for each line of standard input, so that several programs can take turns.
"""
import argparse
import json
import re
import statistics
import sys
import time

import cv2
import numpy

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def picture_shape(path):
    """C, H and W of the first Input layer of a deploy net."""
    with open(path) as file:
        shape = re.search(r"shape\s*{([^}]*)}", file.read()).group(1)
    return [int(size) for size in re.findall(r"dim\s*:\s*(\d+)", shape)][1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: time of all threads, for one thread")
    parser.add_argument("--wait", action="store_true", help="measure once for each line of standard input")
    args = parser.parse_args()
    if args.threads:
        cv2.setNumThreads(args.threads)
    net = cv2.dnn.readNetFromCaffe(args.model, args.weights)
    x = numpy.random.default_rng(1).uniform(-1, 1, [args.batch, *picture_shape(args.model)]).astype(numpy.float32)
    clock = CLOCKS[args.clock]

    def forward():
        start = clock()
        net.setInput(x)
        net.forward()
        return clock() - start

    def measure():
        times, start = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - start < args.seconds:
            times.append(forward())
        seconds = statistics.median(times)
        print(json.dumps({"model": args.model, "batch": args.batch, "threads": cv2.getNumThreads(),
                          "images_per_s": args.batch / seconds, "step_ms": 1e3 * seconds, "iterations": len(times),
                          "variant": f"OpenCV {cv2.__version__}"}), flush=True)

    forward()
    if not args.wait:
        return measure()
    print("ready", flush=True)
    for _ in sys.stdin:
        measure()


if __name__ == "__main__":
    main()
