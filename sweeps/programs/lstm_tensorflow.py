"""An LSTM layer of Keras in TensorFlow 2, forward or backward; the paper's defaults. Tested on CPUs, not on a GPU.

python3 lstm_tensorflow.py --precision fp16 --pass backward"""

import layer_options
import roofsweep_region
import tensorflow as tf
import tensorflow_modes


def main():
    for args in roofsweep_region.points(layer_options.parser(__doc__, "lstm", tensorflow_modes.TOLERANCE)):
        tf.keras.utils.set_random_seed(1)
        layers = {}

        def forward(x, layers=layers):
            return layers[x.dtype](x)

        def weights(dtype, layers=layers):
            return layers[dtype].trainable_variables

        (x,) = tensorflow_modes.tensors(args, [(args.batch, args.sequence, args.features)])
        for dtype in (x.dtype, tf.float64):  # fp64 for the verification
            layers[dtype] = tf.keras.layers.LSTM(args.hidden, return_sequences=True, dtype=dtype.name)
            layers[dtype](tf.cast(x, dtype))
        layers[tf.float64].set_weights(layers[x.dtype].get_weights())
        tensorflow_modes.measure(args, forward, [x], weights, rounded=4)


if __name__ == "__main__":
    main()
