"""conv2d in TensorFlow 2, forward or backward (both gradients). Tested on CPUs, not on a GPU.

python3 conv2d_tensorflow.py --precision fp32 --pass backward"""

import layer_options
import roofsweep_region
import tensorflow as tf
import tensorflow_modes


def main():
    for args in roofsweep_region.points(layer_options.parser(__doc__, "conv2d", tensorflow_modes.TOLERANCE)):
        edge = [args.kernel // 2] * 2

        def forward(x, w, args=args, edge=edge):
            return tf.nn.conv2d(x, w, args.stride, [[0, 0], edge, edge, [0, 0]])

        inputs = tensorflow_modes.tensors(
            args,
            (
                (args.batch, args.size, args.size, args.channels),
                (args.kernel, args.kernel, args.channels, args.filters),
            ),
        )
        tensorflow_modes.measure(args, forward, inputs)


if __name__ == "__main__":
    main()
