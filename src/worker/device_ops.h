/* The table of functions by which the worker uses a device. Each worker program links the table of
 * one kind of device.
 *
 * Single-threaded. Order: list, open, then any of try_counters, { tune_roofs, measure_roof,
 * keep_busy, release_roofs } and { prepare, time, energy, trace, count_hardware, run, read, release
 * }, then close. A second row may be prepared only if has_room allows it. STATUS_UNSUPPORTED: the
 * device does not offer this. STATUS_FAILED: this configuration failed, but the device works.
 * STATUS_DEVICE: the device is lost, and the process must end. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

#include "model/device.h"
#include "model/protocol.h"
#include "model/record.h"
#include "base/status.h"
#include "model/workload.h"
#include "model/fill.h"

/* s, time of all samples of a roof: enough for five; eight devices can measure in turn. */
#define ROOF_WINDOW 0.0125

/* s, shortest measurement of energy: counters with steps of 0.1 s are exact to a few per cent. */
#define ENERGY_TIME 0.5

struct roof_order {
    double start;        /* s since the epoch; 0: at once */
    bool sustained;      /* compute: also measure after the clock has settled, 0.2 to 2 s more */
    bool only_sustained; /* compute: measure only the sustained value, because the burst is known */
    bool energy;         /* memory and compute: also measure the energy, 0.7 s or more */
};

struct device_state; /* an open device; the table defines it */
struct work;         /* one configuration, ready to run; the table defines it */

/* A prepared, timed and traced row whose counters are to be read. */
struct countable {
    struct work *work;
    bool cold;
    bool kernels; /* also count each kernel */
    bool causes;  /* also count the activities of each kernel */
    struct record *record;
};

/* Settings of a program that runs on the device. */
struct program_device {
    char visible[160];       /* "NAME=VALUE" that hides all other devices; "": no variable needed */
    const cpu_set_t *cpus;   /* owned by the device; NULL: the CPUs of the worker */
    size_t cpus_size;        /* byte */
    int64_t cores;           /* of a CPU */
    char library[4096];      /* to inject, so that it sees kernels and regions; "": none */
    struct outcome counters; /* whether the counters can be read, or why not */
};

struct device_ops {
    const char *kind;
    const char *description; /* one line for --help */

    /* Counts the devices that this process can see, and sets their PCI addresses, coded as in
     * protocol.h; 0: unknown. STATUS_DEVICE: there is no device. */
    enum status (*list)(int *count, int addresses[VISIBLE_MAX], struct error *error);

    /* Opens device `index`, and describes it in *device (all but roofs and key). */
    enum status (*open)(int index, struct device_state **state, struct device *device,
                        struct error *error);
    void (*close)(struct device_state *state); /* takes NULL */

    /* Opens a device only for `health` and `close`, which then work even after a row has damaged
     * the CUDA context. Returns NULL without memory. The pointer is NULL if `health` is NULL. */
    struct device_state *(*watch)(const char *pci_id);
    /* Reads health[], by enum health; unknown values are NaN. NULL: the device has no health. */
    void (*health)(struct device_state *state, double health[HEALTH_COUNT]);

    /* Tests once whether the hardware counters can be read. Sets device->counters to the outcome,
     * with the reason of a refusal. A refusal is STATUS_OK. NULL: the device has no counters. */
    enum status (*try_counters)(struct device_state *state, struct device *device,
                                struct error *error);

    /* Finds the fastest variant of each requested roof, and with `prove` proves it by counters, if
     * they can be read. found[] becomes false for roofs that this kind of device lacks, but not for
     * a roof that fails: measure_roof returns its reason. Memory is kept until release_roofs, which
     * must precede the next tune_roofs. */
    enum status (*tune_roofs)(struct device_state *state, const struct roof_request *request,
                              bool prove, bool found[ROOF_KINDS], struct error *error);

    /* Measures a roof that tune_roofs found. Sets all of *roof except name and condition, which
     * roof_init has set. Takes about ROOF_WINDOW, and longer with `sustained`. STATUS_UNSUPPORTED:
     * not possible now. STATUS_FAILED: an error, or the device was not ready at `start`. */
    enum status (*measure_roof)(struct device_state *state, int kind,
                                const struct roof_order *order, struct roof *roof,
                                struct error *error);

    /* Repeats the work of a roof until more(argument), called every few milliseconds, returns
     * false: the device is busy while other devices measure the roof. NULL: not offered. */
    enum status (*keep_busy)(struct device_state *state, int kind, bool (*more)(void *argument),
                             void *argument, struct error *error);

    /* Adds measured links to *links. If `order` has members but no id, makes a communicator's id
     * (LINK_ID bytes) instead. Must be the first call of the process. NULL: no links. */
    enum status (*measure_links)(const struct link_order *order, struct link_list *links, char *id,
                                 struct error *error);

    void (*release_roofs)(struct device_state *state);

    /* Allocates and fills the tensors, resolves "auto", and chooses the algorithm. Sets
     * implementation, algorithm, math, unit and workspace of *record. */
    enum status (*prepare)(struct device_state *state, const struct config *config, uint64_t seed,
                           struct work **work, struct record *record, struct error *error);

    /* Takes samples, and writes the time of one iteration in each sample to seconds[]. Sets
     * record->sample_iterations, the number of iterations in a sample, which is the same in all
     * calls for the same work. `cold`: the last-level cache is flushed before each iteration, and
     * the time excludes the flush. Sets timer_overhead, host_paced and conditions (clocks, ...) of
     * *record. `record` NULL: a warm-up, with samples of one iteration. */
    enum status (*time)(struct device_state *state, struct work *work, bool cold, int samples,
                        double *seconds, struct record *record, struct error *error);

    /* Repeats the work for ENERGY_TIME or more. Sets energy, energy_time, energy_clock, power and
     * idle_power of *record; missing values are no error. NULL: no energy counter. */
    enum status (*energy)(struct device_state *state, struct work *work, bool cold,
                          struct record *record, struct error *error);

    /* Traces one iteration; `cold` as in `time`. Sets launches, busy_time, trace_time and kernels
     * of *record, and host_time and caller_time of a device that is not the host. */
    enum status (*trace)(struct device_state *state, struct work *work, bool cold,
                         struct record *record, struct error *error);

    /* Returns whether the configuration can be prepared and measured while other work stays
     * prepared, with the same result as alone. NULL: never. */
    bool (*has_room)(struct device_state *state, const struct config *config);

    /* Counts rows together; `cold` as in `time`. Each row runs as often as the counters need. Sets
     * flops_*, bytes_* and counters of the records. If rows cannot be counted, record->counters has
     * the reason, and the status is STATUS_OK. `kernels` and `causes` count the kernels that the
     * last `trace` of the row's work found. The counts of a row do not depend on the other rows.
     * After a failure the rows can be counted again. May add a row's own time to PART_COUNTS of its
     * record. NULL: the device has no counters. */
    enum status (*count_hardware)(struct device_state *state, const struct countable *rows,
                                  size_t count, struct error *error);

    /* Fills the outputs with NaN, runs the work once for verification, and waits for its end. In an
     * LSTM's backward pass the output gradient is zero for all but the first `samples` samples of
     * the batch, so that the reference needs no others. Other workloads ignore `samples`. */
    enum status (*run)(struct device_state *state, struct work *work, int64_t samples,
                       struct error *error);

    /* Reads elements of a result at `offsets` in the layout of src/model/workloads/. */
    enum status (*read)(struct device_state *state, struct work *work, enum tensor tensor,
                        const int64_t *offsets, int64_t count, double *values, struct error *error);

    /* As reference_request.compute. NULL: the host computes all references. */
    enum status (*compute)(struct device_state *state, const struct config *config,
                           const void *results, struct error *error);

    /* Sets *hash to a hash of all results of the last iteration. NULL: rows have no hash. */
    enum status (*hash)(struct device_state *state, struct work *work, uint64_t *hash,
                        struct error *error);

    /* Rejects the algorithm of `work`, because its results are wrong or inaccurate. `work` then
     * runs a different algorithm, and *record is set as by `prepare`. STATUS_UNSUPPORTED: no
     * algorithm is left. NULL: the device has one algorithm for each row. */
    enum status (*reject)(struct device_state *state, struct work *work, struct record *record,
                          struct error *error);

    void (*release)(struct device_state *state, struct work *work); /* takes NULL work */

    /* Sets *settings, which is zero. This process then gives the device no work until the next call
     * of a function of this table. */
    enum status (*program)(struct device_state *state, struct program_device *settings,
                           struct error *error);

    /* Counts work of known size, and prints counted and expected values. STATUS_FAILED: a count is
     * wrong. STATUS_UNSUPPORTED: counters cannot be read now. NULL: the device has no counters. */
    enum status (*self_test)(struct device_state *state, FILE *stream, struct error *error);
};

extern const struct device_ops device_ops; /* exactly one is linked into each worker program */
