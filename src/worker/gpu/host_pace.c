#include "worker/gpu/host_pace.h"

#include "base/clock.h"
#include "base/stats.h"
#include "worker/cuda/gpu/check.h"

static enum status iteration_enqueue(struct gpu *gpu, struct work *work, double *seconds,
                                     struct error *error)
{
    if (work->ops->reset)
        TRY(work->ops->reset(gpu, work, error));
    TRY(CUDA(cudaStreamSynchronize(gpu->stream)));
    double begin = clock_monotonic();
    TRY(work->ops->iterate(gpu, work, error));
    *seconds = clock_monotonic() - begin;
    return STATUS_OK;
}

/* Few where one takes long: it then says enough. */
enum status host_pace(struct gpu *gpu, struct work *work, double *seconds, struct error *error)
{
    enum { LEAST = 5, MOST = 15 };
    const double enough = 4e-3; /* s */
    double values[MOST], begin = clock_monotonic();
    struct stats stats;
    size_t count = 0;
    while (count < LEAST || (count < MOST && clock_monotonic() - begin < enough))
        TRY(iteration_enqueue(gpu, work, &values[count++], error));
    TRY(CUDA(cudaStreamSynchronize(gpu->stream)));
    TRY(stats_compute(values, count, &stats, error));
    *seconds = stats.median;
    return STATUS_OK;
}
