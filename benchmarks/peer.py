#!/usr/bin/env python3
"""The same training step in PyTorch: reads a prototxt, builds the net, times it, prints a line of JSON.

The fastest of the ways that PyTorch offers is the one that counts: both memory formats, and inner products as
linear layers or as 1 x 1 convolutions (where the BLAS that PyTorch was built with is slow, oneDNN then does them).
With --wait it measures once for each line of standard input, so that two programs can take turns.
"""
import argparse
import itertools
import json
import os
import re
import statistics
import sys
import time

import torch
import torch.nn.functional as F

RATE, MOMENTUM, DECAY, CLASSES = 1e-5, 0.9, 5e-4, 10  # what train_step uses too
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
LOW_PRECISIONS = {"bf16": torch.bfloat16, "f16": torch.float16}


# ---- Prototxt: a message is a dict from field to the list of its values ----

TOKEN = re.compile(r"""\s+|\#[^\n]*|(?P<string>"[^"]*"|'[^']*')|(?P<word>[\w.+-]+)|(?P<mark>[{}<>:;,\[\]])""")


def tokens(text):
    place = 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if not match:
            raise SystemExit(f"peer: unexpected text: {text[place:place + 20]!r}")
        place = match.end()
        if match.lastgroup and match.group() not in ":;,[]":
            yield match.group()


def scalar(token):
    if token[0] in "\"'":
        return token[1:-1]
    if token in ("true", "false"):
        return token == "true"
    try:
        return int(token)
    except ValueError:
        pass
    try:
        return float(token)
    except ValueError:
        return token


def parse_message(stream):
    message, field = {}, None
    for token in stream:
        if token in "}>":
            return message
        if token in "{<":
            message.setdefault(field, []).append(parse_message(stream))
            field = None
        elif field is None:
            field = token
        else:
            message.setdefault(field, []).append(scalar(token))
            field = None
    return message


def read_prototxt(path):
    with open(path) as file:
        return parse_message(tokens(file.read()))


def one(message, field, default=None):
    return message.get(field, [default])[0]


def takes_part(layer, phase):
    if "include" in layer:
        return any(one(rule, "phase", phase) == phase for rule in layer["include"])
    return not any(one(rule, "phase", phase) == phase for rule in layer.get("exclude", []))


def per_axis(param, name, default):
    """Height and width of a field that is given once for both, once for each, or as NAME_h and NAME_w."""
    if f"{name}_h" in param or f"{name}_w" in param:
        return one(param, f"{name}_h", 0), one(param, f"{name}_w", 0)
    values = param.get("kernel_size" if name == "kernel" else name, [default])
    return (values * 2)[:2] if len(values) == 1 else tuple(values[:2])


# ---- The net: a list of (function of blobs, names read, name written) ----


class Linear(torch.nn.Module):
    """An inner product, as a linear layer or as a 1 x 1 convolution."""

    def __init__(self, inputs, outputs, bias, as_convolution):
        super().__init__()
        self.layer = (torch.nn.Conv2d(inputs, outputs, 1, bias=bias) if as_convolution else
                      torch.nn.Linear(inputs, outputs, bias=bias))
        self.as_convolution = as_convolution

    def forward(self, x):
        x = x.flatten(1)
        return self.layer(x[:, :, None, None]).flatten(1) if self.as_convolution else self.layer(x)


class Net(torch.nn.Module):
    def __init__(self, path, phase, batch, shape, as_convolution):
        super().__init__()
        self.phase, self.as_convolution = phase, as_convolution
        self.steps, self.losses, self.groups = [], [], {}
        self.modules_by_name = torch.nn.ModuleList()
        self.sizes = {}  # what each blob's shape is, to know the inputs of weights
        net = read_prototxt(path)
        layers = [layer for layer in net["layer"] if takes_part(layer, phase)]
        with torch.no_grad():
            blobs = {}
            for at, layer in enumerate(layers):
                self.add(layer, layers[at + 1:], blobs, (batch, *shape))
        self.drop_when_read()

    def add(self, layer, following, blobs, shape):
        kind, tops, bottoms = one(layer, "type"), layer.get("top", []), layer.get("bottom", [])
        if not bottoms:
            blobs[tops[0]] = torch.zeros(shape)
            self.input, self.label = tops[0], (tops + [None])[1]
            if self.label:
                blobs[self.label] = torch.zeros(shape[0], dtype=torch.long)
            return
        if kind in ("Accuracy", "Silence"):
            return
        if kind == "Scale":  # part of the batch normalisation before it
            assert self.scaled == bottoms[0], f"{one(layer, 'name')}: Scale without BatchNorm before it"
            if tops[0] != bottoms[0]:
                self.steps.append((torch.nn.Identity(), bottoms, tops[0]))
                blobs[tops[0]] = blobs[bottoms[0]]
            return
        function = self.convert(kind, layer, following, [blobs[b] for b in bottoms])
        self.scaled = tops[0] if kind == "BatchNorm" else None
        if isinstance(function, torch.nn.Module):
            self.modules_by_name.append(function)
            self.group_parameters(function, layer, following if kind == "BatchNorm" else None)
        if kind == "SoftmaxWithLoss":
            self.losses.append((tops[0], float(one(layer, "loss_weight", 1))))
        self.steps.append((function, bottoms, tops[0]))
        blobs[tops[0]] = function(*[blobs[b] for b in bottoms])

    def group_parameters(self, module, layer, following):
        specs = (following[0] if following else layer).get("param", [])
        for index, parameter in enumerate(module.parameters()):
            spec = specs[index] if index < len(specs) else {}
            key = (float(one(spec, "lr_mult", 1)), float(one(spec, "decay_mult", 1)))
            self.groups.setdefault(key, []).append(parameter)

    def convert(self, kind, layer, following, bottoms):
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()
        make = getattr(self, f"make_{name}", None)
        if make is None:
            raise SystemExit(f"peer: layer type {kind} is not known here")
        self.in_place = layer["top"][0] == layer["bottom"][0]
        return make(one(layer, f"{name}_param", {}), bottoms, following)

    def make_convolution(self, param, bottoms, _):
        return torch.nn.Conv2d(bottoms[0].shape[1], one(param, "num_output"), per_axis(param, "kernel", 0),
                               per_axis(param, "stride", 1), per_axis(param, "pad", 0), per_axis(param, "dilation", 1),
                               one(param, "group", 1), one(param, "bias_term", True))

    def make_inner_product(self, param, bottoms, _):
        return Linear(bottoms[0][0].numel(), one(param, "num_output"), one(param, "bias_term", True),
                      self.as_convolution)

    def make_pooling(self, param, bottoms, _):
        average = one(param, "pool", "MAX") == "AVE"
        if one(param, "global_pooling", False):
            kernel, stride, pad = tuple(bottoms[0].shape[2:]), 1, 0
        else:
            kernel, stride, pad = (per_axis(param, "kernel", 0), per_axis(param, "stride", 1),
                                   per_axis(param, "pad", 0))
        ceil = one(param, "round_mode", "CEIL") == "CEIL"
        pool = F.avg_pool2d if average else F.max_pool2d
        return lambda x: pool(x, kernel, stride, pad, ceil_mode=ceil)

    def make_re_l_u(self, param, bottoms, following):
        slope = one(param, "negative_slope", 0)
        return torch.nn.LeakyReLU(slope, self.in_place) if slope else torch.nn.ReLU(self.in_place)

    def make_l_r_n(self, param, bottoms, _):
        size, alpha, beta, k = (one(param, "local_size", 5), one(param, "alpha", 1.0), one(param, "beta", 0.75),
                                one(param, "k", 1.0))
        assert one(param, "norm_region", "ACROSS_CHANNELS") == "ACROSS_CHANNELS", "LRN within channels"
        return lambda x: F.local_response_norm(x, size, alpha, beta, k)

    def make_dropout(self, param, bottoms, _):
        return torch.nn.Dropout(one(param, "dropout_ratio", 0.5))

    def make_batch_norm(self, param, bottoms, following):
        scaled = bool(following) and one(following[0], "type") == "Scale"
        return torch.nn.BatchNorm2d(bottoms[0].shape[1], one(param, "eps", 1e-5),
                                    1 - one(param, "moving_average_fraction", 0.999), affine=scaled)

    def make_eltwise(self, param, bottoms, _):
        assert one(param, "operation", "SUM") == "SUM" and "coeff" not in param, "Eltwise other than a plain sum"
        return torch.add

    def make_concat(self, param, bottoms, _):
        axis = one(param, "axis", 1)
        return lambda *parts: torch.cat(parts, axis)

    def make_flatten(self, param, bottoms, _):
        return lambda x: x.flatten(1)

    def make_softmax(self, param, bottoms, _):
        return lambda x: F.softmax(x, 1)

    def make_softmax_with_loss(self, param, bottoms, _):
        return lambda scores, label: F.cross_entropy(scores.flatten(1), label)

    def drop_when_read(self):
        """Adds to each step the blobs that nothing reads after it."""
        kept, out = {name for name, _ in self.losses}, []
        for function, bottoms, top in reversed(self.steps):
            dead = [b for b in set(bottoms) if b not in kept and b != top]
            kept.update(bottoms)
            out.append((function, bottoms, top, dead))
        self.steps = out[::-1]

    def forward(self, x, label):
        blobs = {self.input: x, self.label: label}
        for function, bottoms, top, dead in self.steps:
            blobs[top] = function(*[blobs[b] for b in bottoms])
            for blob in dead:
                del blobs[blob]
        if not self.losses:
            return blobs[top]
        return sum(weight * blobs[name] for name, weight in self.losses)


# ---- Measuring ----


class Step:
    def __init__(self, args, shape, channels_last, as_convolution):
        self.inference, self.clock = args.inference, args.clock
        self.device, self.low = args.device, LOW_PRECISIONS.get(args.precision)
        self.variant = ("channels_last" if channels_last else "plain") + (", inner products as convolutions"
                                                                           if as_convolution else "")
        torch.manual_seed(1)
        net = Net(args.model, "TEST" if args.inference else "TRAIN", args.batch, shape, as_convolution)
        x = torch.rand(args.batch, *shape) * 2 - 1
        if channels_last:
            net, x = net.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
        label = torch.arange(args.batch) % CLASSES
        self.net, self.x, self.label = net.to(args.device), x.to(args.device), label.to(args.device)
        net.train(not args.inference)
        groups = [{"params": parameters, "lr": RATE * rate, "weight_decay": DECAY * decay}
                  for (rate, decay), parameters in net.groups.items()]
        on_card = {"fused": True} if args.device == "cuda" else {}
        self.optimizer = torch.optim.SGD(groups, lr=RATE, momentum=MOMENTUM, **on_card)
        self.scaler = torch.amp.GradScaler(args.device) if args.precision == "f16" else None
        if args.compile:
            self.net = torch.compile(net)
            self.variant += ", compiled"

    def forward(self):
        if self.low is None:
            return self.net(self.x, self.label)
        with torch.autocast(self.device, self.low):
            return self.net(self.x, self.label)

    def run(self):
        if self.inference:
            with torch.inference_mode():
                self.forward()
            if self.device == "cuda":
                torch.cuda.synchronize()
            return
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.forward()
        if self.scaler is None:
            loss.backward()
            self.optimizer.step()
        else:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.loss = loss.item()
        if self.device == "cuda":
            torch.cuda.synchronize()  # the loss is there before the update is done

    def timed(self):
        start = CLOCKS[self.clock]()
        self.run()
        return CLOCKS[self.clock]() - start


def fastest_step(args, shape):
    best, best_seconds = None, None
    has_inner_products = any(one(layer, "type") == "InnerProduct" for layer in read_prototxt(args.model)["layer"])
    for channels_last, as_convolution in itertools.product((True, False), (True, False)):
        if as_convolution and not has_inner_products:
            continue
        step = Step(args, shape, channels_last, as_convolution)
        step.run()
        seconds = step.timed()
        if seconds < 1:
            seconds = min(seconds, step.timed(), step.timed())
        if best is None or seconds < best_seconds:
            best, best_seconds = step, seconds
    return best


def measure(args, step):
    times, start = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < args.seconds:
        times.append(step.timed())
    seconds = statistics.median(times)
    print(json.dumps({"model": args.model, "batch": args.batch, "threads": torch.get_num_threads(),
                      "device": args.device, "precision": args.precision,
                      "images_per_s": args.batch / seconds, "step_ms": 1e3 * seconds, "iterations": len(times),
                      "variant": step.variant, "loss": getattr(step, "loss", None)}), flush=True)


def picture_shape(args):
    if args.shape:
        return [int(size) for size in args.shape.split(",")]
    net = read_prototxt(os.path.join(os.path.dirname(args.model), "deploy.prototxt"))
    first = next(layer for layer in net["layer"] if one(layer, "type") == "Input")
    return one(one(first, "input_param"), "shape")["dim"][1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--shape", default="", help="C,H,W; else what deploy.prototxt beside the model says")
    parser.add_argument("--inference", action="store_true")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: time of all threads, for one thread")
    parser.add_argument("--wait", action="store_true", help="measure once for each line of standard input")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("f32", "tf32", *LOW_PRECISIONS), default="f32")
    parser.add_argument("--compile", action="store_true", help="torch.compile the net")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    torch.backends.cudnn.benchmark = args.device == "cuda"
    if args.threads:
        torch.set_num_threads(args.threads)
    step = fastest_step(args, picture_shape(args))
    if not args.wait:
        return measure(args, step)
    print("ready", flush=True)
    for _ in sys.stdin:
        measure(args, step)


if __name__ == "__main__":
    main()
