/* A matrix product on the CPU: by CBLAS, and as three nested loops. */
#ifndef ROOFSWEEP_CPU_MATMUL_H
#define ROOFSWEEP_CPU_MATMUL_H

#include "model/workloads/matmul.h"
#include "worker/cpu/routine.h"

extern const struct routine matmul_cblas, matmul_plain;

/* STATUS_UNSUPPORTED for sparse matrices: without instructions for them the work would be dense. */
enum status matmul_offered(const struct matmul *s, struct error *error);
/* Sets sizes, and what is read and written. */
void matmul_tensors(struct work *work, const struct matmul *s);

#endif
