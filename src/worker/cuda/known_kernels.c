#include "worker/cuda/known_kernels.h"

#include "base/stats.h"
#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/gpu/arena.h"
#include "worker/gpu/vendor.h"

enum { LAUNCHES = 300, SAMPLES = 15, FMA_BLOCK = 1024 };
static const double warming = 10e-3; /* s of load, after which the clock has risen */

/* What is timed, of gpu->stream. */
typedef enum status enqueue(struct gpu *gpu, void *out, struct error *error);

static enum status gap_enqueue(struct gpu *gpu, void *out, struct error *error)
{
    (void)out;
    for (int i = 0; i < LAUNCHES; ++i)
        TRY(CUDA(kernel_empty(gpu->stream)));
    return STATUS_OK;
}

static enum status kernel_enqueue(struct gpu *gpu, void *out, struct error *error)
{
    const struct fma_kernel *kernel = fma_kernels;
    const int64_t iterations = 400;
    while (kernel->precision != PRECISION_FP32)
        ++kernel;
    return CUDA(kernel->launch(out, iterations, gpu->multiprocessors, FMA_BLOCK, gpu->stream));
}

static enum status span_enqueue(struct gpu *gpu, enqueue *work, void *out, struct error *error)
{
    TRY(vendor.record(gpu, 0, error));
    TRY(work(gpu, out, error));
    return vendor.record(gpu, 1, error);
}

/* All is queued before the first begins, as in timing.c. */
static enum status held_time(struct gpu *gpu, enqueue *work, void *out, double *seconds,
                             struct error *error)
{
    const double longest = 0.1; /* s, that the host may take */
    TRY(vendor.hold(gpu, longest, error));
    enum status status = span_enqueue(gpu, work, out, error);
    vendor.release(gpu);
    if (status)
        return status;
    TRY(vendor.wait(gpu, 1, error));
    return vendor.elapsed(gpu, 0, 1, seconds, error);
}

static enum status medians(struct gpu *gpu, void *out, double times[KNOWN_KERNELS],
                           struct error *error)
{
    static const struct {
        enqueue *work;
        int parts; /* of which one is wanted */
    } known[KNOWN_KERNELS] = {
        {kernel_enqueue, 1}, {gap_enqueue, LAUNCHES}, /* the gap depends on the clock most: warm */
    };
    TRY(CUDA(kernel_delay(warming, gpu->stream)));
    for (int i = 0; i < KNOWN_KERNELS; ++i) {
        double seconds[SAMPLES];
        struct stats stats;
        TRY(known[i].work(gpu, out,
                          error)); /* loads its code, for which the device must not be held */
        for (int j = 0; j < SAMPLES; ++j)
            TRY(held_time(gpu, known[i].work, out, &seconds[j], error));
        TRY(stats_compute(seconds, SAMPLES, &stats, error));
        times[i] = stats.median / known[i].parts;
    }
    return STATUS_OK;
}

enum status known_kernels_time(struct gpu *gpu, double times[KNOWN_KERNELS], struct error *error)
{
    void *out;
    TRY(vendor.reserve(gpu, 2, false, error));
    TRY(memory_allocate((double)gpu->multiprocessors * FMA_BLOCK * sizeof(double), "a known kernel",
                        &out, error));
    enum status status = medians(gpu, out, times, error);
    cudaFree(out);
    return status;
}
