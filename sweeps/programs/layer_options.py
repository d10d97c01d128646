"""Options that the programs of the two layers have in all frameworks."""

import argparse

SIZES = {
    "conv2d": {"batch": 16, "filters": 64, "channels": 64, "size": 112, "kernel": 3, "stride": 2},
    "lstm": {"batch": 16, "sequence": 16, "features": 32, "hidden": 16},
}


def parser(description, layer, precisions, *passes):
    """Returns a parser; a framework may add options. layer: key of SIZES, or None. passes: further values of --pass."""
    found = argparse.ArgumentParser(description=description)
    for name, default in SIZES.get(layer, {}).items():
        found.add_argument(f"--{name}", type=int, default=default)
    found.add_argument("--precision", choices=list(precisions), default="fp32")
    found.add_argument("--pass", dest="direction", choices=["forward", "backward", *passes], default="forward")
    found.add_argument("--iterations", type=int, default=20, help="in a region")
    found.add_argument("--regions", type=int, default=20, help="each is a sample")
    found.add_argument("--warmup", type=int, default=5, help="iterations before the first region")
    found.add_argument("--cache", choices=["hot", "cold"], default="hot", help="cold: one iteration in a region")
    return found
