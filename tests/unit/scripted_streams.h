/* What stands in for the kernels of workloads that stream, and for cuDNN's calls that do the same. */
#ifndef ROOFSWEEP_SCRIPTED_STREAMS_H
#define ROOFSWEEP_SCRIPTED_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "scripted_cuda.h"

/* What ran last. */
struct script_stream {
    const char *what; /* "kernel elementwise", "activation"; NULL: nothing yet */
    enum precision precision;
    int choice;       /* operation or mode, as the kernel or cuDNN numbers them */
    int64_t elements; /* of the first tensor */
    double factor;    /* alpha of cuDNN's call */
    const void *tensors[3];
    int launches;        /* in all */
    int descriptors;     /* of cuDNN that there are now */
    const char *refused; /* the test's: cuDNN's call of this name does not offer it */
};
extern struct script_stream streamed;

#endif
