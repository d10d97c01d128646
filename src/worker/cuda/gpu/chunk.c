#include "worker/cuda/gpu/chunk.h"

#include <math.h>

/* The stream's queue holds about a thousand launches, of 2 us and more each. If it were full, the host
 * would wait for the device, which waits for the host's delay to end. */
static const double host_time_most = 1e-3; /* s, of one chunk */
/* What is discarded at a failure stays small. */
static const double device_time_most = 20e-3; /* s, of one chunk */

static const double delay_most = 50e-3; /* s, of what is tried anew */

static double within(double value, double least, double most)
{
    return fmin(fmax(value, least), most);
}

/* s, for which the device waits, so that it begins no sample before that sample is enqueued. The host
 * takes `host` for one and the device `device`. While the device runs one, the host enqueues the next. */
static double waiting(double host, double device, int samples)
{
    return host + (samples - 1) * fmax(host - device, 0.0);
}

int chunk_sample_iterations(const struct pace *pace, double overhead, double share)
{
    const double most = 1000.0;
    return (int)within(ceil(overhead / share / pace->iteration_time), 1.0, most);
}

struct chunk chunk_plan(const struct pace *pace, int iterations, int left, int attempt)
{
    const double margin = 1.5, least = 20e-6; /* s: a query of an event and the like */
    const double factor = ldexp(1.0, attempt), host = pace->enqueue_time * iterations;
    if (!(pace->enqueue_time > 0.0))
        return (struct chunk){1, 0.0};
    double most = host_time_most / host;
    if (pace->iteration_time > 0.0)
        most = fmin(most, device_time_most / (pace->iteration_time * iterations));
    int samples = (int)within(most / factor, 1.0, fmin(left, CHUNK_SAMPLES_MAX));
    double once = waiting(margin * host, pace->iteration_time * iterations, samples);
    return (struct chunk){samples, least + fmax(once, fmin(factor * once, delay_most))};
}
