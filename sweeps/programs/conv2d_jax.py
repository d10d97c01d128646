"""conv2d in JAX, forward or one of its backward passes; the paper's defaults. XLA_FLAGS=--xla_gpu_autotune_level=0 to
4 says how hard XLA looks for algorithms.

    python3 conv2d_jax.py --precision fp16 --pass backward-data"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
import roofsweep_region

TOLERANCE = {"fp64": 1e-12, "fp32": 1e-4, "tf32": 3e-3, "fp16": 5e-3, "bf16": 3e-2}
DTYPE = {"fp64": jnp.float64, "fp16": jnp.float16, "bf16": jnp.bfloat16}


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
    parser.add_argument("--pass", dest="direction", default="forward")
    parser.add_argument("--iterations", type=int, default=20, help="in a region")
    parser.add_argument("--regions", type=int, default=20, help="each is a sample")
    parser.add_argument("--warmup", type=int, default=5)
    return parser.parse_args()


def convolution(args, precision):
    """A function of x, w and dy, compiled."""
    padding = [(args.kernel // 2, args.kernel // 2)] * 2

    def forward(x, w):
        return jax.lax.conv_general_dilated(
            x, w, (args.stride,) * 2, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), precision=precision
        )

    def step(x, w, dy):
        if args.direction == "forward":
            return forward(x, w)
        dx, dw = jax.vjp(forward, x, w)[1](dy)
        return dx if args.direction == "backward-data" else dw

    return jax.jit(step)


def tensors(args):
    generator = np.random.default_rng(1)
    out = (args.size - 1) // args.stride + 1
    shapes = (
        (args.batch, args.size, args.size, args.channels),
        (args.kernel, args.kernel, args.channels, args.filters),
        (args.batch, out, out, args.filters),
    )
    dtype = DTYPE.get(args.precision, jnp.float32)
    return [jnp.asarray(generator.uniform(-1, 1, shape), dtype) for shape in shapes]


def main():
    args = arguments()
    jax.config.update("jax_enable_x64", True)
    exact = jax.lax.Precision.HIGHEST
    step = convolution(args, jax.lax.Precision.DEFAULT if args.precision == "tf32" else exact)
    inputs = tensors(args)
    for _ in range(args.warmup):
        result = step(*inputs)

    def synchronize():
        result.block_until_ready()

    for _ in range(args.regions):
        with roofsweep_region.region(synchronize):
            for _ in range(args.iterations):
                result = step(*inputs)
    if roofsweep_region.counted():
        return
    right = convolution(args, exact)(*[tensor.astype(jnp.float64) for tensor in inputs])
    error = jnp.linalg.norm((result.astype(jnp.float64) - right).ravel()) / jnp.linalg.norm(right.ravel())
    roofsweep_region.verified(error, TOLERANCE[args.precision])


if __name__ == "__main__":
    main()
