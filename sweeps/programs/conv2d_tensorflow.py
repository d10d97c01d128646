"""conv2d in TensorFlow 2, or as a graph and a session of TensorFlow 1 (compat.v1). Not run on a GPU by us.

python3 conv2d_tensorflow.py --version 1 --precision fp32"""

import argparse

import numpy as np
import roofsweep_region
import tensorflow as tf

TOLERANCE = {"fp64": 1e-12, "fp32": 1e-4, "fp16": 5e-3}
DTYPE = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16}


def arguments():
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
    parser.add_argument("--version", type=int, choices=[1, 2], default=2)
    parser.add_argument("--iterations", type=int, default=20, help="in a region")
    parser.add_argument("--regions", type=int, default=20, help="each is a sample")
    return parser.parse_args()


def convolve(args, x, w):
    edge = [args.kernel // 2] * 2
    return tf.nn.conv2d(x, w, args.stride, [[0, 0], edge, edge, [0, 0]])


def steps(args, x, w):
    """One iteration, the result of which is an array: each of it waits for the device."""
    if args.version == 2:
        x, w = tf.constant(x), tf.constant(w)
        compiled = tf.function(lambda: convolve(args, x, w))
        return lambda: compiled().numpy()
    graph = tf.Graph()
    with graph.as_default():
        result = convolve(args, tf.constant(x), tf.constant(w))
    session = tf.compat.v1.Session(graph=graph)
    return lambda: session.run(result)


def main():
    args = arguments()
    generator = np.random.default_rng(1)
    x = generator.uniform(-1, 1, (args.batch, args.size, args.size, args.channels)).astype(DTYPE[args.precision])
    w = generator.uniform(-1, 1, (args.kernel, args.kernel, args.channels, args.filters)).astype(DTYPE[args.precision])
    step = steps(args, x, w)
    result = step()
    for _ in range(args.regions):
        with roofsweep_region.region():
            for _ in range(args.iterations):
                result = step()
    right = convolve(args, tf.constant(x.astype(np.float64)), tf.constant(w.astype(np.float64))).numpy()
    error = np.linalg.norm(result.astype(np.float64) - right) / np.linalg.norm(right)
    roofsweep_region.verified(error, TOLERANCE[args.precision])


if __name__ == "__main__":
    main()
