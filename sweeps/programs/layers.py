"""Writes the layers of a network of PyTorch as a list of roofsweep, a line for each layer in the order of the call.

python3 layers.py torchvision.models:resnet50 16x3x224x224 -o resnet50.csv
python3 layers.py my_network.py:Encoder 8x512:tokens -o encoder.csv

The first word names a module or a file, and a function or class that makes the network without arguments; then come the
shapes of its inputs. Tensors have shapes but no values (device meta), so nothing is computed. Operations for which
roofsweep has no workload are comments in the list, with their number of calls."""

import argparse
import collections
import csv
import importlib
import importlib.util
import pathlib
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

ELEMENTWISE = {"relu": "relu", "relu_": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "add": "add", "add_": "add"}
# Operations without traffic of their own.
FREE = """view _unsafe_view t transpose permute expand slice select detach unsqueeze squeeze split split_with_sizes
chunk alias unbind as_strided empty new_empty empty_like native_dropout zeros new_zeros ones full arange"""
CELLS = {torch.nn.LSTM: "lstm", torch.nn.GRU: "gru"}


class Unknown(Exception):
    """Raised for an operation that no row can express; its text is the reason."""


def extent(numbers):
    first, *rest = numbers if isinstance(numbers, (list, tuple)) else [numbers]
    return f"{first}x{rest[0]}" if rest and rest[0] != first else first


def convolution(out, x, weight, bias, stride, padding, dilation, transposed, _, groups):
    if x.dim() != 4:
        raise Unknown(f"{x.dim() - 2} dimensions")
    if transposed and groups > 1:
        raise Unknown("transposed, with groups")
    # A transposed convolution from x to out computes the input gradient of a convolution from out to x.
    image, other = (out, x) if transposed else (x, out)
    return {
        **{"workload": "conv2d", "pass": "backward-data" if transposed else "", "batch": x.shape[0]},
        **{"channels": image.shape[1], "filters": other.shape[1], "height": image.shape[2], "width": image.shape[3]},
        **{"kernel": extent(weight.shape[2:]), "stride": extent(stride), "padding": extent(padding)},
        **{"dilation": extent(dilation), "groups": groups},
        "bias": "yes" if bias is not None and not transposed else "no",
    }


def linear(x, weight, bias):
    sizes = {"batch": x.shape[0], "inputs": x.shape[1], "outputs": weight.shape[1]}
    return {"workload": "linear", **sizes, "bias": "yes" if bias else "no"}


def pool(out, x, operation, window, stride=None, padding=0, dilation=1, ceil_mode=False, *_):
    stride = stride or window
    if x.dim() != 4 or ceil_mode or extent(dilation) != 1:
        raise Unknown("ceil_mode, dilation, or not of images")
    sizes = {"batch": x.shape[0], "channels": x.shape[1], "height": x.shape[2], "width": x.shape[3]}
    return {
        **{"workload": "pool", "operation": operation, **sizes, "window": extent(window)},
        **{"stride": extent(stride), "padding": extent(padding)},
    }


def mean(out, x, dimensions=None, *_):
    if x.dim() != 4 or {at % 4 for at in dimensions or ()} != {2, 3}:
        raise Unknown("not of images")
    return pool(out, x, "average", list(x.shape[2:]), [1])


def norm(x, operation, columns):
    sizes = {"rows": x.numel() // columns, "columns": columns}
    return {"workload": "norm", "operation": operation, **sizes}


def softmax(out, x, dimension, *_):
    if dimension % x.dim() != x.dim() - 1:
        raise Unknown("not of the last dimension")
    return {"workload": "softmax", "rows": x.numel() // x.shape[-1], "columns": x.shape[-1]}


def elementwise(out, operation, x, other=None):
    if other is not None and getattr(other, "shape", None) != x.shape:
        raise Unknown("of a broadcast tensor, or of a number")
    return {"workload": "elementwise", "operation": operation, "elements": out.numel()}


ROWS = {
    "convolution": convolution,
    "addmm": lambda out, bias, x, weight, **_: linear(x, weight, True),
    "mm": lambda out, x, weight: linear(x, weight, False),
    "max_pool2d_with_indices": lambda out, x, *rest: pool(out[0], x, "max", *rest),
    "avg_pool2d": lambda out, x, window, stride=None, padding=0, ceil_mode=False, *_: pool(
        out, x, "average", window, stride, padding, ceil_mode=ceil_mode
    ),
    "mean": mean,
    "_softmax": softmax,
    "native_layer_norm": lambda out, x, shape, *_: norm(x, "layer", int(torch.Size(shape).numel())),
    **{
        name: lambda out, x, *_: norm(x, "batch", x.shape[1])
        for name in ("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training")
    },
    **{name: lambda out, *rest, op=op, **_: elementwise(out, op, *rest) for name, op in ELEMENTWISE.items()},
}


class Layers(TorchDispatchMode):
    """Collects a row for each operation while the network is called."""

    def __init__(self, network):
        super().__init__()
        self.path, self.rows, self.left = [""], collections.Counter(), collections.Counter()
        self.inside = 0  # depth of recurrent layers, whose operations are no rows
        for name, module in network.named_modules():
            module.register_forward_pre_hook(lambda *_, name=name: self.path.append(name))
            if isinstance(module, torch.nn.RNNBase):
                module.register_forward_pre_hook(self.enter)
                module.register_forward_hook(self.leave)
            module.register_forward_hook(lambda *_: self.path.pop() and None)
        self.attention = torch.nn.functional.scaled_dot_product_attention

    def __enter__(self):
        torch.nn.functional.scaled_dot_product_attention = self.attend
        return super().__enter__()

    def __exit__(self, *reason):
        torch.nn.functional.scaled_dot_product_attention = self.attention
        return super().__exit__(*reason)

    def add(self, row, suffix=""):
        self.rows[tuple(({"name": (self.path[-1] + suffix).lstrip(".")} | row).items())] += 1

    def leave_out(self, what, reason):
        self.left[what, reason] += 1

    def enter(self, *_):
        self.inside += 1

    def leave(self, module, inputs, _):
        self.inside -= 1
        x = inputs[0] if inputs[0].dim() == 3 else inputs[0][None]
        batch, sequence = x.shape[:2] if module.batch_first else x.shape[1::-1]
        cell = CELLS.get(type(module), getattr(module, "nonlinearity", "tanh"))
        sizes = {"features": module.input_size, "hidden": module.hidden_size, "layers": module.num_layers}
        sizes |= {"directions": 1 + module.bidirectional, "projection": module.proj_size}
        row = {"workload": "lstm", "cell": cell, "batch": batch, "sequence": sequence}
        self.add(row | sizes)

    def attend(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **_):
        batch, heads = query.shape[:-2].numel() // query.shape[-3], query.shape[-3]
        if attn_mask is not None or query.shape[-1] != value.shape[-1] or key.shape[-3] != heads:
            self.leave_out("scaled_dot_product_attention", "a mask, or heads of several sizes")
        else:
            row = {"workload": "attention", "batch": batch, "heads": heads, "head_size": query.shape[-1]}
            row |= {"sequence": query.shape[-2], "keys": key.shape[-2], "causal": "yes" if is_causal else "no"}
            self.add(row, ".attention")
        whole = query.shape[-1] == value.shape[-1]  # then the result has the strides of the query
        return torch.empty_like(query) if whole else query.new_empty(*query.shape[:-1], value.shape[-1])

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if self.inside or name in FREE.split():
            return out
        try:
            if name not in ROWS:
                raise Unknown("no workload")
            self.add(ROWS[name](out, *args), "." + ELEMENTWISE.get(name, "") if name in ELEMENTWISE else "")
        except Unknown as reason:
            self.leave_out(name, str(reason))
        return out


def make(word):
    """Returns the network that MODULE:NAME or FILE.py:NAME makes."""
    place, _, name = word.rpartition(":")
    if place.endswith(".py"):
        sys.path.insert(0, str(pathlib.Path(place).resolve().parent))
        spec = importlib.util.spec_from_file_location(pathlib.Path(place).stem, place)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(place)
    made = getattr(module, name)
    return made if isinstance(made, torch.nn.Module) else made()


def tensor(word):
    shape, _, kind = word.partition(":")
    return torch.empty([int(size) for size in shape.split("x")], dtype=torch.long if kind == "tokens" else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", metavar="MODULE:NAME", help="what makes the network")
    parser.add_argument("inputs", nargs="+", metavar="SHAPE", help="16x3x224x224, or 8x512:tokens for whole numbers")
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="default: standard output")
    args = parser.parse_args()
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.device("meta"), torch.no_grad():
        network, inputs = make(args.network).to("meta").eval(), [tensor(word) for word in args.inputs]
        layers = Layers(network)
        with layers:
            network(*inputs)
    rows = [dict(row) | {"count": count} for row, count in layers.rows.items()]
    used = [key for row in rows for key, value in row.items() if value != ""]
    columns = list(dict.fromkeys(["name", "count", "workload", *used]))
    left = [f"left out: {count} x {what} ({reason})" for (what, reason), count in layers.left.items()]
    with sys.stdout if args.output == "-" else open(args.output, "w", encoding="utf-8", newline="") as stream:
        print(
            f"# {args.network} of {', '.join(args.inputs)}, by layers.py with PyTorch {torch.__version__}", file=stream
        )
        print(*(f"# {line}" for line in left), sep="\n", end="\n" * bool(left), file=stream)
        writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for line in left:
        print(f"layers.py: {line}", file=sys.stderr)


if __name__ == "__main__":
    main()
