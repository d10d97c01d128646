"""conv2d in JAX, forward, backward (both gradients) or one of them; the paper's defaults.
XLA_FLAGS=--xla_gpu_autotune_level=0 to 4 sets how long XLA searches for algorithms.

    python3 conv2d_jax.py --precision fp16 --pass backward-data"""

import functools

import jax
import jax_modes
import layer_options
import roofsweep_region


def convolution(args, precision):
    """Returns the pass as a function of x, w and dy."""
    padding = [(args.kernel // 2, args.kernel // 2)] * 2

    def forward(x, w):
        return jax.lax.conv_general_dilated(
            x, w, (args.stride,) * 2, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), precision=precision
        )

    def step(x, w, dy):
        if args.direction == "forward":
            return [forward(x, w)]
        wanted = [args.direction != "backward-filter", args.direction != "backward-data"]
        return [gradient for gradient, asked in zip(jax.vjp(forward, x, w)[1](dy), wanted) if asked]

    return step


def main():
    jax.config.update("jax_enable_x64", True)
    for args in roofsweep_region.points(
        layer_options.parser(__doc__, "conv2d", jax_modes.TOLERANCE, "backward-data", "backward-filter")
    ):
        out = (args.size - 1) // args.stride + 1
        shapes = (
            (args.batch, args.size, args.size, args.channels),
            (args.kernel, args.kernel, args.channels, args.filters),
            (args.batch, out, out, args.filters),
        )
        inputs = jax_modes.tensors(args, shapes)
        jax_modes.measure(args, functools.partial(convolution, args), inputs)


if __name__ == "__main__":
    main()
