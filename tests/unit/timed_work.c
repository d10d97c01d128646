#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernels/kernels.h"
#include "scripted_bench.h"
#include "timed_work.h"
#include "worker/cuda/gpu/check.h"
#include "worker/gpu/timing.h"

enum status empty_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    (void)work;
    return CUDA(kernel_empty(gpu->stream));
}

const struct work_ops empty_ops = {.iterate = empty_iterate};

enum status nothing_reset(struct gpu *gpu, struct work *work, struct error *error)
{
    (void)work;
    return CUDA(kernel_delay(100e-6, gpu->stream));
}

struct record timed(struct work *work, int samples, double *seconds)
{
    struct record record;
    struct error error;
    record_init(&record);
    assert_int_equal(timing_run(&bench.gpu, work, false, 2, seconds, NULL, &error), STATUS_OK);
    assert_int_equal(timing_run(&bench.gpu, work, false, samples, seconds, &record, &error),
                     STATUS_OK);
    return record;
}

void assert_all_near(const double *seconds, int count, double expected)
{
    for (int i = 0; i < count; ++i)
        assert_near(seconds[i], expected);
}
