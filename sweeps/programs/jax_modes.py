"""Precisions and regions of the JAX programs."""

import jax
import jax.numpy as jnp
import numpy as np
import roofsweep_region

TOLERANCE = {"fp64": 1e-12, "fp32": 1e-4, "tf32": 3e-3, "fp16": 5e-3, "bf16": 3e-2}
DTYPE = {"fp64": jnp.float64, "fp16": jnp.float16, "bf16": jnp.bfloat16}


def tensors(args, shapes):
    generator = np.random.default_rng(1)
    dtype = DTYPE.get(args.precision, jnp.float32)
    return [jnp.asarray(generator.uniform(-1, 1, shape), dtype) for shape in shapes]


def measure(args, make, inputs, rounded=1):
    """Measures the function that make(XLA's precision) returns; the function returns a list of results. rounded: factor
    on the tolerance; 1 for results that are rounded once."""
    exact = jax.lax.Precision.HIGHEST
    step = jax.jit(make(jax.lax.Precision.DEFAULT if args.precision == "tf32" else exact))
    iterations = 1 if args.cache == "cold" else args.iterations
    scratch, read = jnp.zeros(1 << 26, jnp.float32), None
    fill, total = jax.jit(lambda old: old + 1, donate_argnums=0), jax.jit(jnp.sum)
    for _ in range(args.warmup):
        result = step(*inputs)

    def synchronize():
        jax.block_until_ready((result, scratch, read))

    def flush():
        nonlocal scratch, read
        scratch = fill(scratch)
        read = total(scratch)

    def run():
        nonlocal result
        for _ in range(iterations):
            result = step(*inputs)

    flush()
    cold = None
    if args.cache == "cold":
        cold = roofsweep_region.Cold(flush, synchronize, queued=jax.default_backend() == "gpu")
    roofsweep_region.regions(args.regions, run, synchronize, cold)
    if roofsweep_region.counted():
        return
    norm, error = jnp.linalg.norm, 0.0
    for got, right in zip(result, jax.jit(make(exact))(*[tensor.astype(jnp.float64) for tensor in inputs])):
        error = max(error, norm((got.astype(jnp.float64) - right).ravel()) / norm(right.ravel()))
    roofsweep_region.verified(error, rounded * TOLERANCE[args.precision])
