"""Precisions and regions of the TensorFlow programs."""

import numpy as np
import roofsweep_region
import tensorflow as tf

TOLERANCE = {"fp64": 1e-12, "fp32": 1e-4, "fp16": 5e-3}
DTYPE = {"fp64": "float64", "fp32": "float32", "fp16": "float16"}


def tensors(args, shapes):
    generator = np.random.default_rng(1)
    return [tf.constant(generator.uniform(-1, 1, shape), DTYPE[args.precision]) for shape in shapes]


def compiled(args, forward, weights):
    """Returns the pass as a compiled function: the result of forward(*inputs), or all gradients."""

    def step(*inputs):
        if args.direction == "forward":
            return [forward(*inputs)]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = forward(*inputs)
        sources = [*inputs, *weights(inputs[0].dtype)]
        return tape.gradient(y, sources, output_gradients=tf.ones_like(y))

    return tf.function(step)


def measure(args, forward, inputs, weights=lambda dtype: [], rounded=1):
    """Measures a function of the inputs. weights(dtype): further tensors that have gradients; rounded: factor on the
    tolerance; 1 for results that are rounded once."""
    step, scratch = compiled(args, forward, weights), tf.Variable(tf.zeros(1 << 26))
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
    exact = compiled(args, forward, weights)(*[tf.cast(tensor, tf.float64) for tensor in inputs])
    error = max(np.linalg.norm(a.numpy() - b.numpy()) / np.linalg.norm(b.numpy()) for a, b in zip(result, exact))
    roofsweep_region.verified(error, rounded * TOLERANCE[args.precision])
