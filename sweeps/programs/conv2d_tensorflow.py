"""conv2d in TensorFlow 2, forward or backward (both gradients). Tested on CPUs, not on a GPU.

python3 conv2d_tensorflow.py --precision fp32 --pass backward"""

import argparse

import numpy as np
import roofsweep_region
import tensorflow as tf

TOLERANCE = {"fp64": 1e-12, "fp32": 1e-4, "fp16": 5e-3}
DTYPE = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16}


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        ("batch", 16),
        ("filters", 64),
        ("channels", 64),
        ("size", 112),
        ("kernel", 3),
        ("stride", 2),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--precision", choices=list(TOLERANCE), default="fp32")
    parser.add_argument("--pass", dest="direction", choices=["forward", "backward"], default="forward")
    parser.add_argument("--iterations", type=int, default=20, help="in a region")
    parser.add_argument("--regions", type=int, default=20, help="each is a sample")
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--cache", choices=["hot", "cold"], default="hot", help="cold: one iteration in a region")
    return parser


def convolution(args):
    """Returns the pass as a compiled function of x, w and dy."""
    edge = [args.kernel // 2] * 2

    def forward(x, w):
        return tf.nn.conv2d(x, w, args.stride, [[0, 0], edge, edge, [0, 0]])

    def step(x, w, dy):
        if args.direction == "forward":
            return [forward(x, w)]
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = forward(x, w)
        return tape.gradient(y, [x, w], output_gradients=dy)

    return tf.function(step)


def measure(args):
    generator = np.random.default_rng(1)
    out = (args.size - 1) // args.stride + 1
    shapes = (
        (args.batch, args.size, args.size, args.channels),
        (args.kernel, args.kernel, args.channels, args.filters),
        (args.batch, out, out, args.filters),
    )
    inputs = [tf.constant(generator.uniform(-1, 1, shape).astype(DTYPE[args.precision])) for shape in shapes]
    step = convolution(args)
    scratch = tf.Variable(tf.zeros(1 << 26))
    synchronize = tf.test.experimental.sync_devices
    iterations = 1 if args.cache == "cold" else args.iterations
    for _ in range(args.warmup):
        result = step(*inputs)

    def run():
        nonlocal result
        for _ in range(iterations):
            result = step(*inputs)

    cold = None
    if args.cache == "cold":
        cold = roofsweep_region.Cold(
            lambda: tf.reduce_sum(scratch.assign_add(tf.ones_like(scratch))),
            synchronize,
            bool(tf.config.list_physical_devices("GPU")),
        )
    roofsweep_region.regions(args.regions, run, synchronize, cold)
    if roofsweep_region.counted():
        return
    exact = convolution(args)(*[tf.cast(tensor, tf.float64) for tensor in inputs])
    error = max(np.linalg.norm(a.numpy() - b.numpy()) / np.linalg.norm(b.numpy()) for a, b in zip(result, exact))
    roofsweep_region.verified(error, TOLERANCE[args.precision])


def main():
    for args in roofsweep_region.points(options()):
        measure(args)


if __name__ == "__main__":
    main()
