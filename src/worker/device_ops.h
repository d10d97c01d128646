/* What a kind of device must be able to do, as a table of functions. worker.c knows nothing else of
 * a device; src/worker/cuda and src/worker/cpu each define one table.
 *
 * Single-threaded. Order: count, open, then any of try_counters, { tune_roofs, measure_roof,
 * keep_busy, release_roofs } and { prepare, time, energy, trace, count_hardware, run, read, release
 * }, then close. One piece of work exists at a time, unless has_room says that another one may be
 * prepared; layout.c prepares two without a question. STATUS_UNSUPPORTED: the device does not offer
 * this; STATUS_FAILED: this configuration went wrong, the device is fine; STATUS_DEVICE: the device
 * is lost, the process must end. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

#include "model/device.h"
#include "model/record.h"
#include "base/status.h"
#include "model/workload.h"
#include "model/fill.h"

/* s: long enough for five samples, short enough for all roofs of eight devices in turn. */
#define ROOF_WINDOW 0.0125

/* s, at least: a counter of energy that steps every 0.1 s is then right to some per cent. */
#define ENERGY_TIME 0.5

/* How a roof is to be measured. */
struct roof_order {
    double start;   /* s since the epoch; 0: at once */
    bool sustained; /* of compute: also once the clock has settled, which takes 0.2 to 2 s more */
    bool only_sustained; /* of compute: without the burst, which is known */
    bool energy;         /* of memory and compute: its energy, too, which takes 0.7 s and more */
};

struct device_state; /* the table's own */
struct work;         /* the table's own: one configuration, allocated and ready to run */

/* A row that is to be counted: it was prepared, timed and traced. */
struct countable {
    struct work *work;
    bool cold, kernels, causes; /* of each kernel its counts, and its activities */
    struct record *record;
};

/* What a program that runs on a device gets from it. */
struct program_device {
    char visible[160];     /* "NAME=VALUE", by which the program sees this device alone; "": none */
    const cpu_set_t *cpus; /* that it may use; NULL: the worker's. The device's */
    size_t cpus_size;      /* byte */
    char library[4096];    /* to inject, which sees kernels and regions; "": there is none */
    struct outcome counters; /* whether they can be counted, and why not */
};

struct device_ops {
    const char *kind;
    const char *description; /* one line for --help */

    /* Devices that this process can see. STATUS_DEVICE with the reason if there is none. */
    enum status (*count)(int *count, struct error *error);
    /* The PCI address of one, as protocol.h writes it; 0: not known. NULL: they have none. */
    int (*address)(int index);

    /* Opens device `index` and describes it (all but roofs and key) in *device. */
    enum status (*open)(int index, struct device_state **state, struct device *device,
                        struct error *error);
    void (*close)(struct device_state *state); /* takes NULL */

    /* A state for health and close alone, which no fault of a row ends; NULL without memory. It is
     * given where health is. */
    struct device_state *(*watch)(const char *pci_id);
    /* Its health now, by enum health; what is not known is missing. NULL: nothing is. */
    void (*health)(struct device_state *state, double health[HEALTH_COUNT]);

    /* Finds out, once, whether there are hardware counters: sets counters of *device, which also
     * says why not: that is STATUS_OK. NULL: the device has none. */
    enum status (*try_counters)(struct device_state *state, struct device *device,
                                struct error *error);

    /* Finds the fastest way to do each roof that is requested, and proves it by the counters where
     * `prove` and there are some: found[] by kind. It keeps what memory measure_roof needs, until
     * release_roofs, which comes before another call. A roof that this kind of device never has is
     * not found; one that it has but cannot measure now is, and measure_roof says why not. */
    enum status (*tune_roofs)(struct device_state *state, const struct roof_request *request,
                              bool prove, bool found[ROOF_KINDS], struct error *error);

    /* Measures a roof that was found, in the way that was found, into *roof, which roof_init has
     * set: all but name and condition. Takes about ROOF_WINDOW, without `sustained`.
     * STATUS_UNSUPPORTED: cannot be measured now. STATUS_FAILED: also if `start` passed before it
     * was ready to begin. */
    enum status (*measure_roof)(struct device_state *state, int kind,
                                const struct roof_order *order, struct roof *roof,
                                struct error *error);

    /* Goes on with the work of a roof that was just measured, so that the neighbours find the
     * device busy, until more(argument) says no; it is asked every few milliseconds. NULL: not
     * offered. */
    enum status (*keep_busy)(struct device_state *state, int kind, bool (*more)(void *argument),
                             void *argument, struct error *error);

    /* Measures links between the named devices, separated by commas, or all that the process sees,
     * into *device. Before anything else of this table. NULL: they have none. */
    enum status (*measure_links)(const char *devices, enum link_operation operation,
                                 struct device *device, struct error *error);

    /* Frees what tune_roofs keeps; the roofs are then no longer found. */
    void (*release_roofs)(struct device_state *state);

    /* Allocates and fills the tensors, resolves "auto", and chooses the algorithm; sets
     * implementation, algorithm, math, unit and workspace of *record. The configuration names a
     * layout (layout.h). */
    enum status (*prepare)(struct device_state *state, const struct config *config, uint64_t seed,
                           struct work **work, struct record *record, struct error *error);

    /* Takes `samples` of them and writes the time of one iteration in each to seconds[]. A sample
     * is the mean of record->sample_iterations, which this sets, and which stay the same for one
     * piece of work. `cold` flushes the last-level cache before each iteration, outside of its
     * time. timer_overhead, host_paced and conditions (clocks, ...) go to *record. NULL: a warm-up,
     * whose samples are of one iteration each. */
    enum status (*time)(struct device_state *state, struct work *work, bool cold, int samples,
                        double *seconds, struct record *record, struct error *error);

    /* Repeats the work for ENERGY_TIME or more: sets energy, energy_time, energy_clock, power and
     * idle_power of *record. What cannot be known stays missing: that is STATUS_OK. NULL: the
     * device has no counter of energy. */
    enum status (*energy)(struct device_state *state, struct work *work, bool cold,
                          struct record *record, struct error *error);

    /* One iteration under the tracer, `cold` as in `time`: sets launches, busy_time, trace_time and
     * kernels of *record, and host_time and caller_time where the host is not the device. */
    enum status (*trace)(struct device_state *state, struct work *work, bool cold,
                         struct record *record, struct error *error);

    /* Whether this configuration can be prepared and measured beside the work that is there, and
     * will be as if it were alone. NULL: it never can. */
    bool (*has_room)(struct device_state *state, const struct config *config);

    /* Counts rows together, each with as many iterations as the hardware counters need, at least
     * one, `cold` as in `time`: sets flops_*, bytes_* and counters of their records, which also say
     * why there are no counts: that is STATUS_OK. NULL: the device has no counters. `kernels`: as
     * many iterations again for the counts of each kernel of the record, as the last `trace` of
     * that work has set them. `causes`: again, for their activities. What a row counts does not
     * depend on the others. If it fails, the rows can be counted again. */
    enum status (*count_hardware)(struct device_state *state, const struct countable *rows,
                                  size_t count, struct error *error);

    /* One complete, synchronous evaluation for the comparison: outputs are first filled with NaN.
     * For an LSTM's backward pass the output gradient of all batch samples from `samples` on is set
     * to zero, so that the reference needs to compute only that many; otherwise `samples` is not
     * used. */
    enum status (*run)(struct device_state *state, struct work *work, int64_t samples,
                       struct error *error);

    /* Elements of a result tensor, by offset in the layout that workloads/ defines, as doubles. */
    enum status (*read)(struct device_state *state, struct work *work, enum tensor tensor,
                        const int64_t *offsets, int64_t count, double *values, struct error *error);

    /* The results of what `work` runs are wrong, or inaccurate: makes it run another algorithm, and
     * sets *record as `prepare` does. STATUS_UNSUPPORTED: there is no other. NULL: there never is.
     */
    enum status (*reject)(struct device_state *state, struct work *work, struct record *record,
                          struct error *error);

    void (*release)(struct device_state *state, struct work *work); /* takes NULL work */

    /* What a program on this device gets, in *given, which is zero. Until the next call of any
     * other function nothing of this process is in the program's way. */
    enum status (*program)(struct device_state *state, struct program_device *given,
                           struct error *error);

    /* Counts work of known size on the open device and prints counted against expected.
     * STATUS_FAILED if a count is wrong; STATUS_UNSUPPORTED if there are none. NULL: the device has
     * no counters. */
    enum status (*self_test)(struct device_state *state, FILE *stream, struct error *error);
};

extern const struct device_ops device_ops; /* exactly one is linked into each worker program */
