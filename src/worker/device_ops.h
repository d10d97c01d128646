/* The table of functions of a kind of device, which is all that worker.c sees of a device. Each
 * worker program links exactly one table.
 *
 * Single-threaded. Order: list, open, then any of try_counters, { tune_roofs, measure_roof,
 * keep_busy, release_roofs } and { prepare, time, energy, trace, count_hardware, run, read, release
 * }, then close. Only one prepared row exists at a time, unless has_room allows another.
 * STATUS_UNSUPPORTED: the device does not offer this; STATUS_FAILED: this configuration failed, the
 * device works; STATUS_DEVICE: the device is lost, and the process must end. */
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

/* s. Long enough for five samples; short enough for all roofs of eight devices in turn. */
#define ROOF_WINDOW 0.0125

/* s, shortest measurement of energy: counters with steps of 0.1 s are then exact to some per cent.
 */
#define ENERGY_TIME 0.5

struct roof_order {
    double start;        /* s since the epoch; 0: at once */
    bool sustained;      /* compute: also measure after the clock has settled, 0.2 to 2 s more */
    bool only_sustained; /* compute: the burst is known; measure the sustained value alone */
    bool energy;         /* memory and compute: also measure the energy, 0.7 s or more */
};

struct device_state; /* an open device; the table defines it */
struct work;         /* one configuration, ready to run; the table defines it */

/* A row to count, which was prepared, timed and traced. */
struct countable {
    struct work *work;
    bool cold;
    bool kernels; /* count each kernel separately */
    bool causes;  /* count the activities of each kernel */
    struct record *record;
};

/* Settings of a program that runs on the device. */
struct program_device {
    char visible[160];       /* "NAME=VALUE" that hides all other devices; "": no variable needed */
    const cpu_set_t *cpus;   /* owned by the device; NULL: the CPUs of the worker */
    size_t cpus_size;        /* byte */
    int64_t cores;           /* number of a CPU's cores */
    char library[4096];      /* library to inject, which sees kernels and regions; "": none */
    struct outcome counters; /* whether the counters can be read, or why not */
};

struct device_ops {
    const char *kind;
    const char *description; /* one line for --help */

    /* Counts the devices that this process can see, and sets their PCI addresses, coded as in
     * protocol.h; 0: unknown. STATUS_DEVICE: none; *error says why. */
    enum status (*list)(int *count, int addresses[VISIBLE_MAX], struct error *error);

    /* Opens device `index`, and describes it in *device (all but roofs and key). */
    enum status (*open)(int index, struct device_state **state, struct device *device,
                        struct error *error);
    void (*close)(struct device_state *state); /* takes NULL */

    /* Opens a device for `health` and `close` only, which work even after faults of rows. Returns
     * NULL: no memory. The function is NULL if `health` is NULL. */
    struct device_state *(*watch)(const char *pci_id);
    /* Reads the health, by enum health; unknown values are missing. NULL: the device has no health.
     */
    void (*health)(struct device_state *state, double health[HEALTH_COUNT]);

    /* Tests once whether the hardware counters can be read. Sets device->counters to the outcome,
     * with the reason of a refusal. A refusal is STATUS_OK. NULL: the device has no counters. */
    enum status (*try_counters)(struct device_state *state, struct device *device,
                                struct error *error);

    /* Finds the fastest variant of each requested roof, and with `prove` proves it by the counters,
     * if they can be read. found[] is false for roofs that this kind of device lacks. found[] stays
     * true for a roof that fails now; measure_roof returns the reason. Keeps memory until
     * release_roofs, which must precede the next tune_roofs. */
    enum status (*tune_roofs)(struct device_state *state, const struct roof_request *request,
                              bool prove, bool found[ROOF_KINDS], struct error *error);

    /* Measures a roof that was found. Sets all of *roof but name and condition; roof_init has set
     * these. Takes about ROOF_WINDOW without `sustained`. STATUS_UNSUPPORTED: not possible now.
     * STATUS_FAILED: also if `start` passed before the device was ready. */
    enum status (*measure_roof)(struct device_state *state, int kind,
                                const struct roof_order *order, struct roof *roof,
                                struct error *error);

    /* Repeats the work of a roof, so that the neighbours find the device busy, until more(argument)
     * returns false; more() is called every few milliseconds. NULL: not offered. */
    enum status (*keep_busy)(struct device_state *state, int kind, bool (*more)(void *argument),
                             void *argument, struct error *error);

    /* Measures links into *device, or makes an id (LINK_ID bytes). No other function may have been
     * called. NULL: no links. */
    enum status (*measure_links)(const struct link_order *order, struct device *device, char *id,
                                 struct error *error);

    /* Frees the memory of tune_roofs, and forgets the roofs. */
    void (*release_roofs)(struct device_state *state);

    /* Allocates and fills the tensors, resolves "auto", and chooses the algorithm. Sets
     * implementation, algorithm, math, unit and workspace of *record. */
    enum status (*prepare)(struct device_state *state, const struct config *config, uint64_t seed,
                           struct work **work, struct record *record, struct error *error);

    /* Takes samples, and writes the time of one iteration in each sample to seconds[]. A sample is
     * the mean of record->sample_iterations iterations. This function sets that number, which is
     * constant for a piece of work. `cold` flushes the last-level cache before each iteration,
     * outside of its time. Sets timer_overhead, host_paced and conditions (clocks, ...) of *record.
     * NULL record: a warm-up with samples of one iteration. */
    enum status (*time)(struct device_state *state, struct work *work, bool cold, int samples,
                        double *seconds, struct record *record, struct error *error);

    /* Repeats the work for ENERGY_TIME or more. Sets energy, energy_time, energy_clock, power and
     * idle_power of *record. Unknown values stay missing; that is STATUS_OK. NULL: the device has
     * no energy counter. */
    enum status (*energy)(struct device_state *state, struct work *work, bool cold,
                          struct record *record, struct error *error);

    /* Traces one iteration; `cold` as in `time`. Sets launches, busy_time, trace_time and kernels
     * of *record, and host_time and caller_time of a device that is not the host. */
    enum status (*trace)(struct device_state *state, struct work *work, bool cold,
                         struct record *record, struct error *error);

    /* Returns whether the configuration can be prepared and measured beside the existing work, with
     * the same result as alone. NULL: never. */
    bool (*has_room)(struct device_state *state, const struct config *config);

    /* Counts rows together; `cold` as in `time`. Each row runs as often as the counters need. Sets
     * flops_*, bytes_* and counters of the records. If rows cannot be counted, record->counters
     * says why, and the status is STATUS_OK. `kernels` repeats the row to count each kernel that
     * the last `trace` of its work has found; `causes` repeats it again for the kernels'
     * activities. The counts of a row do not depend on the other rows. After a failure the rows can
     * be counted again. NULL: the device has no counters. */
    enum status (*count_hardware)(struct device_state *state, const struct countable *rows,
                                  size_t count, struct error *error);

    /* Fills the outputs with NaN, runs the work once for the comparison, and waits. For an LSTM's
     * backward pass the output gradient of all batch samples from `samples` on is zero, so that the
     * reference computes only the first samples; other workloads ignore `samples`. */
    enum status (*run)(struct device_state *state, struct work *work, int64_t samples,
                       struct error *error);

    /* Reads elements of a result tensor, by offset in the layout that workloads/ defines. */
    enum status (*read)(struct device_state *state, struct work *work, enum tensor tensor,
                        const int64_t *offsets, int64_t count, double *values, struct error *error);

    /* As reference_request.compute. NULL: the host computes all references. */
    enum status (*compute)(struct device_state *state, const struct config *config,
                           const void *results, struct error *error);

    /* Hashes the bits of all results, as the last iteration left them. NULL: rows have no hash. */
    enum status (*hash)(struct device_state *state, struct work *work, uint64_t *hash,
                        struct error *error);

    /* Rejects the algorithm of `work`, whose results are wrong or inaccurate: makes `work` run
     * another one, and sets *record as `prepare` does. STATUS_UNSUPPORTED: no algorithm is left.
     * NULL: the device has one algorithm for each row. */
    enum status (*reject)(struct device_state *state, struct work *work, struct record *record,
                          struct error *error);

    void (*release)(struct device_state *state, struct work *work); /* takes NULL work */

    /* Fills *settings, which is zero, for a program on this device. Until the next call of any
     * other function, nothing of this process disturbs the program. */
    enum status (*program)(struct device_state *state, struct program_device *settings,
                           struct error *error);

    /* Counts work of known size, and prints the counts beside the expected ones. STATUS_FAILED: a
     * count is wrong. STATUS_UNSUPPORTED: no counters now. NULL: the device has no counters. */
    enum status (*self_test)(struct device_state *state, FILE *stream, struct error *error);
};

extern const struct device_ops device_ops; /* exactly one is linked into each worker program */
