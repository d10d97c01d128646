#include "worker/cuda/row_profiler.h"

#include <string.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/known_kernels.h"
#include "worker/cuda/gpu/nvml.h"
#include "worker/gpu/vendor.h"

/* ---- what the profiler runs by itself ---- */

_Static_assert((int)KNOWN_KERNELS == (int)PROFILER_TIMES, "all known kernels judge");

static enum status judge_measure(void *argument, double times[PROFILER_TIMES], struct error *error)
{
    return known_kernels_time(argument, times, error);
}

/* The flush's buffer, while there is memory for it. */
static enum status trial_reserve(void *argument, struct error *error)
{
    struct gpu *gpu = argument;
    return vendor.flush(gpu, error);
}

static enum status trial_run(void *argument, struct error *error)
{
    struct gpu *gpu = argument;
    TRY(CUDA(kernel_empty(gpu->stream)));
    return vendor.synchronize(gpu, error);
}

struct profiler *row_profiler_open(struct gpu *gpu)
{
    const struct profiler_judge judge = {judge_measure, gpu};
    const struct profiler_trial trial = {trial_reserve, trial_run, gpu};
    return profiler_open(&judge, &trial);
}

/* ---- whether there are counters ---- */

/* libcuda.so is met at run time only: a worker without driver must still be able to say so. */
static CUcontext context_current(void)
{
    typedef CUresult (*get_function)(CUcontext * context);
    enum { INTRODUCED = 4000 }; /* CUDA 4.0 */
    void *entry = NULL;
    enum cudaDriverEntryPointQueryResult found;
    CUcontext context = NULL;
    if (cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &entry, INTRODUCED, cudaEnableDefault,
                                         &found) != cudaSuccess ||
        !entry)
        return NULL;
    get_function get;
    memcpy(&get, &entry, sizeof get);
    return get(&context) == CUDA_SUCCESS ? context : NULL;
}

enum status row_profiler_try(struct profiler *profiler, struct gpu *gpu, struct outcome *outcome,
                             struct error *error)
{
    bool tried = profiler_counters(profiler)->code != OUTCOME_MISSING;
    if (!tried && nvml_processes(gpu->nvml) > 1) {
        outcome_set(outcome, COUNTED_REFUSED,
                    "another process computes on this GPU and would be counted; end it (nvidia-smi "
                    "names it), or ask for a GPU of your own");
        return STATUS_OK;
    }
    return profiler_try(profiler, gpu->index, context_current(), outcome, error);
}
