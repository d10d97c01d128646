#include "worker/gpu/energy.h"

#include <math.h>

#include "base/clock.h"
#include "worker/gpu/vendor.h"
#include "worker/gpu/graph.h"
#include "worker/gpu/timing.h"

/* Steps under way, each with an event of the timer's: 64 ms of work, since asking for the energy
 * may take much longer than usual while other processes ask, too. */
enum { DEPTH = 8 };

/* Work that is launched over and over; nothing: a device that is left alone. */
struct load {
    struct gpu *gpu;
    struct work *work;   /* NULL: nothing */
    struct graph *graph; /* of `iterations`; NULL: they are launched one by one. Owned. */
    int iterations;      /* of one launch */
    int launches;        /* of one step */
    double step_time;    /* s, as it should be */
    long enqueued, done; /* steps; of the device, as far as the host knows */
    double done_time;    /* s, when the last of them was; NaN: none */
};

static enum status load_launch(const struct load *load, struct error *error)
{
    if (load->graph)
        return vendor.graph_launch(load->gpu, load->graph, error);
    for (int i = 0; i < load->iterations; ++i)
        TRY(load->work->ops->iterate(load->gpu, load->work, error));
    return STATUS_OK;
}

static enum status load_step(struct load *load, struct error *error)
{
    if (!load->work) {
        clock_sleep(load->step_time);
        return STATUS_OK;
    }
    int event = (int)(load->enqueued % DEPTH);
    if (load->enqueued >= DEPTH) {
        TRY(vendor.wait(load->gpu, event, error));
        load->done_time = clock_monotonic();
        ++load->done;
    }
    for (int i = 0; i < load->launches; ++i)
        TRY(load_launch(load, error));
    ++load->enqueued;
    return vendor.record(load->gpu, event, error);
}

/* The counter advances in steps of up to 0.1 s, and is right when it does. */
struct tick {
    double time, energy; /* s, J; NaN: the counter did not advance */
};

/* The first step of the counter that comes `duration` from now, or later. When it came is known as
 * well as the counter was read often: one that came while the host did something else is passed
 * over. */
static enum status tick_wait(struct load *load, double duration, struct tick *tick,
                             struct error *error)
{
    const double patience = 1.0; /* s */
    double begin = clock_monotonic(), now = begin, last = vendor.energy(load->gpu);
    const double longest = 3.0 * load->step_time + 8e-3; /* s, from one reading to the next */
    *tick = (struct tick){NAN, NAN};
    while (now < begin + duration + patience) {
        TRY(load_step(load, error));
        double energy = vendor.energy(load->gpu);
        double gap = clock_monotonic() - now;
        now += gap;
        if (energy > last && now >= begin + duration && gap <= longest) {
            *tick = (struct tick){now, energy};
            return STATUS_OK;
        }
        last = energy;
    }
    return STATUS_OK;
}

/* Between two steps of the counter, after a time in which the load settles. All by the host's
 * clock: a GPU's own may run slow by some per cent. */
struct measured {
    double power;     /* W */
    double step_time; /* s, of the load's own steps; NaN without any */
};

static enum status power_measure(struct load *load, struct measured *measured, struct error *error)
{
    const double settling = 0.15; /* s: the counter's power follows the load within this */
    struct tick first, last;
    TRY(tick_wait(load, settling, &first, error));
    const struct load begin = *load;
    if (load->work)
        TRY(vendor.stamp(load->gpu, SPAN_BEGIN, error));
    TRY(tick_wait(load, ENERGY_TIME, &last, error));
    if (load->work)
        TRY(vendor.stamp(load->gpu, SPAN_END, error));
    measured->power = (last.energy - first.energy) / (last.time - first.time);
    measured->step_time = (load->done_time - begin.done_time) / (double)(load->done - begin.done);
    return vendor.synchronize(load->gpu, error);
}

enum status energy_run(struct gpu *gpu, struct work *work, bool cold, double *idle_power,
                       struct record *record, struct error *error)
{
    const double launch_time = 2e-3, step_time = 8e-3; /* s: to ask the counter takes up to 4 ms */
    struct load nothing = {.gpu = gpu, .step_time = 1e-3};
    struct load load = {.gpu = gpu, .work = work, .done_time = NAN};
    struct measured measured;
    struct error ignored;
    if (cold || work->ops->reset || isnan(vendor.energy(gpu)))
        return STATUS_OK;
    TRY(vendor.reserve(gpu, DEPTH, false, error));
    if (isnan(*idle_power)) {
        TRY(power_measure(&nothing, &measured, error));
        *idle_power = measured.power;
    }
    load.iterations = (int)fmin(fmax(launch_time / record->time_median, 1.0), 1000.0);
    load.launches = (int)fmax(ceil(step_time / (load.iterations * record->time_median)), 1.0);
    load.step_time = load.launches * load.iterations * record->time_median;
    /* Without a graph the host's pace would show, and with it a device that waits. But not
     * everything can be captured, and then the host's pace it is: energy_time tells. */
    (void)graph_of_work(gpu, work, load.iterations, &load.graph, &ignored);
    enum status status = power_measure(&load, &measured, error);
    vendor.graph_drop(load.graph);
    if (status)
        return status;
    TRY(timing_clock(gpu, &record->energy_clock, error));
    record->power = measured.power;
    record->energy_time = measured.step_time / ((double)load.launches * load.iterations);
    record->energy = record->power * record->energy_time;
    record->idle_power = *idle_power;
    return STATUS_OK;
}
