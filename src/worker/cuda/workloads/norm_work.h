/* A norm's tensors, and what a pass is given beside them: means and inverse standard deviations of these
 * x, which a kernel computes before anything is timed. */
#ifndef ROOFSWEEP_NORM_WORK_H
#define ROOFSWEEP_NORM_WORK_H

#include "kernels/kernels.h"
#include "model/workloads/norm.h"
#include "worker/gpu/tensor_work.h"

struct norm_work {
    struct tensor_work tensors; /* in the roles that norm.h says */
    struct norm shape;
    struct norm_arrays arrays; /* all of them, for the plain kernels */
    /* Owned. NULL where the pass is given none; variances are of forward batch norms only. */
    void *mean, *inverse, *variance;
};

/* Allocates and fills what *work, which is all zero, needs. After a failure it is to be cleared as well. */
enum status norm_work_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                             struct norm_work *work, struct error *error);
void norm_work_clear(struct norm_work *work);

/* Enqueues a pass by plain kernels. */
enum status norm_work_iterate(struct gpu *gpu, struct work *work, struct error *error);

#endif
