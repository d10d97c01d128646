#include "worker/cuda/roofs/roofs_run.h"

#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/timer.h"

enum status run_elapsed(struct roofs *roofs, int first, double *seconds, struct error *error)
{
    return timer_elapsed(roofs->gpu->timer, first, first + 1, seconds, error);
}

enum status run_enqueue(struct roofs *roofs, const struct winner *winner, int first,
                        struct error *error)
{
    cudaEvent_t *events = roofs->gpu->timer->events;
    TRY(CUDA(cudaEventRecord(events[first], roofs->gpu->stream)));
    TRY(winner->family->run(roofs, &winner->method, error));
    return CUDA(cudaEventRecord(events[first + 1], roofs->gpu->stream));
}

enum status run_time(struct roofs *roofs, const struct winner *winner, double *seconds,
                     struct error *error)
{
    if (winner->family->time)
        return winner->family->time(roofs, &winner->method, seconds, error);
    TRY(run_enqueue(roofs, winner, 0, error));
    TRY(CUDA(cudaEventSynchronize(roofs->gpu->timer->events[1])));
    return run_elapsed(roofs, 0, seconds, error);
}

double run_work(const struct method *method)
{
    return method->work * (double)method->iterations;
}
