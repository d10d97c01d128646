/* What stands in for cuDNN's recurrent layers: descriptors that must be set before they are used and given
 * back, a weight space with a place for each matrix and bias, memory that must be as large as they say. */
#ifndef ROOFSWEEP_SCRIPTED_RECURRENT_H
#define ROOFSWEEP_SCRIPTED_RECURRENT_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

#include "scripted_cuda.h"

struct script_recurrent {
    int descriptors;       /* of cuDNN that there are now */
    int forward, backward; /* runs: of the layers, and of both their gradients */
    int builds;            /* kernels that were compiled */
    bool trained;          /* the reserve space is of a training pass, and not used up */
    cudnnRNNAlgo_t algorithm;
    cudnnRNNMode_t mode;
    unsigned refused; /* the test's: a bit for each cudnnRNNAlgo_t that is refused when it runs */
};
extern struct script_recurrent recurrent;

/* Elements from the weight space's begin to the matrix, or bias, of this number of a layer's direction,
 * as cudnnGetRNNWeightParams numbers them. */
int64_t script_weights_at(int layer, int number, bool bias);

#endif
