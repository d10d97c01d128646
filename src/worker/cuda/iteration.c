#include "worker/cuda/iteration.h"

#include "worker/cuda/gpu/check.h"
#include "worker/gpu/vendor.h"

static enum status iteration_reset(const struct iteration *i, struct error *error)
{
    return i->work->ops->reset ? i->work->ops->reset(i->gpu, i->work, error) : STATUS_OK;
}

/* The cache is as when it is timed: flushed, or with what an iteration leaves there. */
static enum status iteration_prepare(void *argument, struct error *error)
{
    const struct iteration *i = argument;
    TRY(iteration_reset(i, error));
    TRY(vendor.flush(i->gpu, error));
    if (!i->cold) {
        TRY(i->work->ops->iterate(i->gpu, i->work, error));
        TRY(iteration_reset(i, error));
    }
    return vendor.synchronize(i->gpu, error);
}

static enum status iteration_run(void *argument, struct error *error)
{
    const struct iteration *i = argument;
    TRY(i->work->ops->iterate(i->gpu, i->work, error));
    return vendor.synchronize(i->gpu, error);
}

struct profiled_work iteration_counted(struct iteration *iteration)
{
    return (struct profiled_work){iteration_prepare, iteration_run, iteration, NULL};
}

/* The event is over as soon as the device is no longer held. */
static enum status iteration_hold(void *argument, struct error *error)
{
    const struct iteration *i = argument;
    TRY(vendor.hold(i->gpu, i->hold_limit, error));
    return vendor.record(i->gpu, 0, error);
}

static enum status iteration_enqueue(struct iteration *i, struct error *error)
{
    TRY(i->work->ops->iterate(i->gpu, i->work, error));
    return vendor.pending(i->gpu, 0, &i->held, error);
}

static enum status iteration_run_held(void *argument, struct error *error)
{
    struct iteration *i = argument;
    enum status status = iteration_enqueue(i, error);
    vendor.release(i->gpu);
    return status ? status : vendor.synchronize(i->gpu, error);
}

/* With CUPTI attached a launch takes the host longer, and the first one longest. */
struct profiled_work iteration_traced(struct iteration *iteration, double host_time)
{
    iteration->hold_limit = chunk_limit(host_time);
    return (struct profiled_work){iteration_prepare, iteration_run_held, iteration, iteration_hold};
}
