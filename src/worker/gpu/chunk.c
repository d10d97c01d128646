#include "worker/gpu/chunk.h"

#include <math.h>

/* The stream's queue holds about a thousand launches, of 2 us and more each. If it were full, the host
 * would wait for the device, which waits for the host to release it. */
static const double host_time_most = 1e-3; /* s, of one chunk */
/* What is discarded at a failure stays small. */
static const double device_time_most = 20e-3; /* s, of one chunk */

static double within(double value, double least, double most)
{
    return fmin(fmax(value, least), most);
}

int chunk_sample_iterations(const struct pace *pace, double overhead, double share)
{
    const double most = 1000.0;
    return (int)within(ceil(overhead / share / pace->iteration_time), 1.0, most);
}

static int chunk_samples(const struct pace *pace, int iterations, int left)
{
    double most = host_time_most / (pace->enqueue_time * iterations);
    if (pace->iteration_time > 0.0)
        most = fmin(most, device_time_most / (pace->iteration_time * iterations));
    return pace->one_by_one ? 1 : (int)within(most, 1.0, fmin(left, CHUNK_SAMPLES_MAX));
}

/* A host may be taken off its processor for tens of milliseconds. What takes it more than the longest
 * limit are more launches than the queue holds. */
double chunk_limit(double host_time)
{
    const double margin = 4.0, least = 50e-3, most = 0.5; /* s */
    return within(margin * host_time, least, most);
}

struct chunk chunk_plan(const struct pace *pace, int iterations, int left, int attempt)
{
    const double margin = 1.5, least = 20e-6; /* s, of what was given up */
    if (!(pace->enqueue_time > 0.0))
        return (struct chunk){1, 0.0};
    int samples = chunk_samples(pace, iterations, left);
    double host = pace->enqueue_time * iterations * samples, limit = chunk_limit(host);
    if (pace->given_up)
        return (struct chunk){samples, fmin(least + margin * host, limit)};
    return (struct chunk){samples, ldexp(limit, attempt)};
}
