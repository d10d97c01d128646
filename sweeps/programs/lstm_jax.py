"""An LSTM layer in JAX, a scan over its steps, forward or backward; the paper's defaults.

python3 lstm_jax.py --precision fp16 --pass backward"""

import functools

import jax
import jax.numpy as jnp
import jax_modes
import layer_options
import roofsweep_region


def layer(args, precision):
    """Returns all outputs, or the gradients of the input and of the weights."""

    def forward(x, w, r, b):
        def step(state, gates):
            h, c = state
            i, f, g, o = jnp.split(gates + jnp.dot(h, r, precision=precision), 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((args.batch, args.hidden), x.dtype)
        return jax.lax.scan(step, (zero, zero), jnp.dot(x, w, precision=precision) + b)[1]

    def step(x, w, r, b):
        if args.direction == "forward":
            return [forward(x, w, r, b)]
        y, backward = jax.vjp(forward, x, w, r, b)
        return list(backward(jnp.ones_like(y)))

    return step


def main():
    jax.config.update("jax_enable_x64", True)
    for args in roofsweep_region.points(layer_options.parser(__doc__, "lstm", jax_modes.TOLERANCE)):
        gates = 4 * args.hidden
        shapes = (args.sequence, args.batch, args.features), (args.features, gates), (args.hidden, gates), (gates,)
        inputs = jax_modes.tensors(args, shapes)
        jax_modes.measure(args, functools.partial(layer, args), inputs, rounded=4)


if __name__ == "__main__":
    main()
