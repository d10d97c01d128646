/* Power and energy from the device's energy counter, over a load that is launched back to back.
 *
 * The counter advances in steps of up to 0.1 s. Power is the energy between two steps divided by
 * the time between them on the host's clock: a GPU's own clock may run slow by a few per cent.
 * Frequent readings make the time of a step exact; a step during a long pause of the host is
 * skipped. The load runs in short portions, several of them in flight, so that the device stays
 * busy while the host reads the counter.
 *
 * Without a counter, or if the steps stay uncertain for 3 s, the values are NaN with STATUS_OK. A
 * load costs 0.65 s or more. */
#include "worker/gpu/energy.h"

#include <math.h>

#include "base/clock.h"
#include "worker/gpu/graph.h"
#include "worker/gpu/timing.h"

/* Portions of the load in flight, each with an event: 64 ms of work. Reading the counter takes much
 * longer than usual while other processes read theirs. */
enum { DEPTH = 8 };

struct run {
    struct gpu *gpu;
    const struct energy_load *load;
    int launches;        /* launches in a portion */
    double portion_time; /* s, expected */
    long enqueued, done; /* numbers of portions; `done`: those that the host saw done */
    double done_time;    /* s, when the host saw the last portion done; NaN: none yet */
};

static enum status portion_run(struct run *run, struct error *error)
{
    if (!run->load->launch) {
        clock_sleep(run->portion_time);
        return STATUS_OK;
    }
    int event = (int)(run->enqueued % DEPTH);
    if (run->enqueued >= DEPTH) {
        TRY(vendor_wait(run->gpu, event, error));
        run->done_time = clock_monotonic();
        ++run->done;
    }
    for (int i = 0; i < run->launches; ++i)
        TRY(run->load->launch(run->load->argument, error));
    ++run->enqueued;
    return vendor_record(run->gpu, event, error);
}

/* A step of the counter. All NaN: the counter did not advance. */
struct tick {
    double time, error, energy; /* s, s (time +- error), J */
};

/* Finds the first step of the counter that comes after `duration` s, and whose time is exact. */
static enum status tick_wait(struct run *run, double duration, struct tick *tick,
                             struct error *error)
{
    const double patience = 1.0; /* s */
    double begin = clock_monotonic(), now = begin, last = vendor_energy(run->gpu);
    const double longest = 3.0 * run->portion_time + 8e-3; /* s between two readings */
    *tick = (struct tick){NAN, NAN, NAN};
    while (now < begin + duration + patience) {
        TRY(portion_run(run, error));
        double energy = vendor_energy(run->gpu);
        double gap = clock_monotonic() - now;
        now += gap;
        if (energy > last && now >= begin + duration && gap <= longest) {
            *tick = (struct tick){now - 0.5 * gap, 0.5 * gap, energy};
            return STATUS_OK;
        }
        last = energy;
    }
    return STATUS_OK;
}

enum status energy_measure(struct gpu *gpu, const struct energy_load *load,
                           struct energy_means *means, struct error *error)
{
    const double aim = 8e-3;         /* s, of a portion; a reading takes up to 4 ms */
    const double settling = 0.15;    /* s; the counter's power lags behind the load */
    const double uncertainty = 0.02; /* accepted, as a fraction of the power */
    const double longest = 3.0;      /* s */
    const int launches = (int)fmax(ceil(aim / load->time), 1.0);
    const double portion = (load->launch ? launches : 1) * load->time; /* s */
    struct run run = {gpu, load, launches, portion, 0, 0, NAN};
    struct tick first, last;
    double seconds;
    *means = (struct energy_means){NAN, NAN};
    if (isnan(vendor_energy(gpu)))
        return STATUS_OK;
    TRY(vendor_reserve(gpu, DEPTH, false, error));
    TRY(tick_wait(&run, settling, &first, error));
    const struct run begin = run;
    if (load->launch)
        TRY(vendor_stamp(gpu, SPAN_BEGIN, error));
    TRY(tick_wait(&run, ENERGY_TIME, &last, error));
    seconds = last.time - first.time;
    while (first.error + last.error > uncertainty * seconds && seconds < longest) {
        TRY(tick_wait(&run, 0.0, &last, error));
        seconds = last.time - first.time;
    }
    if (load->launch)
        TRY(vendor_stamp(gpu, SPAN_END, error));
    if (first.error + last.error <= uncertainty * seconds)
        *means = (struct energy_means){(last.energy - first.energy) / seconds,
                                       (run.done_time - begin.done_time) /
                                           ((double)(run.done - begin.done) * launches)};
    return vendor_synchronize(gpu, error);
}

static const double wait_time = 8e-3; /* s */

/* The blocking kernel is one thread that waits. */
static enum status wait_launch(void *argument, struct error *error)
{
    struct gpu *gpu = argument;
    TRY(vendor_block(gpu, wait_time, error));
    return vendor_synchronize(gpu, error);
}

enum status energy_rest(struct gpu *gpu, bool constant, struct resting_power *resting,
                        struct error *error)
{
    const struct energy_load nothing = {.time = 1e-3}, wait = {wait_launch, gpu, wait_time};
    struct energy_means means;
    if (isnan(resting->idle)) {
        TRY(energy_measure(gpu, &nothing, &means, error));
        resting->idle = means.power;
    }
    if (constant && isnan(resting->constant)) {
        TRY(energy_measure(gpu, &wait, &means, error));
        resting->constant = means.power;
    }
    return STATUS_OK;
}

/* Iterations of a row. */
struct iterations {
    struct gpu *gpu;
    struct work *work;
    struct graph *graph; /* owned: `count` iterations; NULL: launched one by one */
    int count;
};

static enum status iterations_launch(void *argument, struct error *error)
{
    const struct iterations *own = argument;
    if (own->graph)
        return vendor_graph_launch(own->gpu, own->graph, error);
    for (int i = 0; i < own->count; ++i)
        TRY(own->work->ops->iterate(own->gpu, own->work, error));
    return STATUS_OK;
}

enum status energy_run(struct gpu *gpu, struct work *work, bool cold, struct resting_power *resting,
                       struct record *record, struct error *error)
{
    const double launch_time = 2e-3; /* s */
    const int count = (int)fmin(fmax(launch_time / record->time_median, 1.0), 1000.0);
    struct iterations own = {gpu, work, NULL, count};
    const struct energy_load load = {iterations_launch, &own, count * record->time_median};
    struct energy_means means;
    struct error ignored;
    if (cold || work->ops->reset || isnan(vendor_energy(gpu)))
        return STATUS_OK;
    TRY(energy_rest(gpu, false, resting, error));
    /* If work cannot be captured and waits for the host, energy_time shows the host's pace. */
    (void)graph_of_work(gpu, work, count, &own.graph, &ignored);
    enum status status = energy_measure(gpu, &load, &means, error);
    vendor_graph_drop(own.graph);
    TRY(status);
    TRY(timing_clock(gpu, &record->energy_clock, error));
    record->power = means.power;
    record->energy_time = means.time / count;
    record->energy = record->power * record->energy_time;
    record->idle_power = resting->idle;
    return STATUS_OK;
}
