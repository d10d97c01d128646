/* What stands in for the CUDA runtime, shared by its files; no test includes it. */
#ifndef ROOFSWEEP_SCRIPTED_CUDA_H
#define ROOFSWEEP_SCRIPTED_CUDA_H

#include <cuda_runtime_api.h>

#include "scripted_machine.h"

cudaStream_t script_stream(void);

/* As script_enqueue and script_kernel. */
cudaError_t script_cuda_enqueue(double seconds, cudaStream_t stream);
cudaError_t script_cuda_kernel(const char *name, double seconds, double in_graph,
                               cudaStream_t stream);

/* One run of a roof's work. */
struct work_done {
    const char *kind, *what;
    const void *row; /* whose code it is, */
    int choice;      /* or which of its codes */
    double amount;   /* bytes or FLOPs */
    int blocks, threads;
    double pace; /* of the fastest way's rate, beside what `best` says; 0: 1 */
};
cudaError_t script_run(const struct work_done *work, cudaStream_t stream);
/* For the counters, by the type of what is multiplied. */
extern const enum quantity script_tensor_quantities[PRECISION_COUNT];

#endif
