/* Where cuDNN keeps the weights of recurrent layers: pieces of the canonical w (model/workloads/lstm.h)
 * in its weight space. */
#ifndef ROOFSWEEP_LSTM_WEIGHTS_H
#define ROOFSWEEP_LSTM_WEIGHTS_H

#include <cudnn.h>

#include "model/workloads/lstm.h"
#include "worker/cuda/gpu/gpu.h"

/* A piece that is contiguous in both, in elements. */
struct lstm_segment {
    int64_t begin, length; /* canonical */
    int64_t at;            /* in the weight space */
};

struct lstm_weights {
    struct lstm_segment *segments; /* ascending; owned, lstm_weights_clear frees */
    size_t count;
};

/* Asks cuDNN for every piece of the weight space, `bytes` at `space` on the device. STATUS_FAILED if a
 * piece has another size than the shape says. Sets *weights also on failure. */
enum status lstm_weights_map(struct gpu *gpu, const struct lstm *shape, cudnnRNNDescriptor_t rnn,
                             const void *space, size_t bytes, struct lstm_weights *weights,
                             struct error *error);
void lstm_weights_clear(struct lstm_weights *weights);

/* Enqueues: w's elements into the weight space; what is not of w is zero. */
enum status lstm_weights_fill(struct gpu *gpu, const struct lstm_weights *weights,
                              enum precision precision, struct fill fill, void *space, size_t bytes,
                              struct error *error);

/* The place of a canonical element in the weight space. */
int64_t lstm_weights_at(const struct lstm_weights *weights, int64_t offset);

#endif
