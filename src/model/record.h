/* What a sweep produces: one record for each configuration and device. Plain structs in SI units,
 * described by const field tables (field.h), which are at once their JSON form and their NetCDF
 * variables. */
#pragma once

#include <stdint.h>

#include "model/field.h"
#include "model/kernel.h"
#include "model/quantity.h"
#include "model/roof.h"
#include "model/workload.h"

struct algorithm; /* model/algorithm.h */

enum record_status { RECORD_MEASURED, RECORD_SKIPPED, RECORD_FAILED };

/* A decoded record has no more: no iteration of a workload has nearly so many distinct kernels. */
enum { RECORD_SAMPLES_MAX = 1000, RECORD_KERNELS_MAX = 4096 };

struct record {
    /* identity */
    char configuration[WORKLOAD_TEXT]; /* canonical text, see config_format */
    /* The same, parsed: by record_set_config and results_fetch. Its workload is NULL if nobody parsed
     * the text, or if the text is unknown because a newer version wrote it. */
    struct config config;
    char config_hash[CONFIG_HASH_TEXT];
    char label[1024];     /* labels of all sections that ask for it, separated by a space */
    char device_key[128]; /* struct device.key of the device that it was measured on */
    /* outcome */
    int64_t status; /* enum record_status */
    /* why it was skipped or failed; of a measured row, why it was not verified or has no kernels */
    char error[2048];
    int64_t attempts;
    double start_time; /* s since 1970-01-01T00:00:00Z */
    double wall_time;  /* s, everything that the worker did for this configuration */
    double wall_time_part[PART_COUNT]; /* s, of wall_time; missing: it was not done */
    char job_id[64];
    /* what ran */
    char implementation[32];  /* resolved: never "auto" */
    char algorithm[128];      /* as the library calls it */
    char math[32];            /* library's math mode, e.g. tensor-op */
    int64_t unit;             /* enum unit: whose peak is the compute roof */
    double workspace;         /* byte */
    char layout_chosen[16];   /* as configured, or what was chosen for "auto"; "": it has none */
    double layout_other_time; /* s, of the slower layout's search; missing unless it was "auto" */
    char refused_algorithms[256]; /* faster ones whose results were wrong, separated by "; " */
    char algorithm_id[17];        /* of the algorithm's kernels, by their names; "": not known */
    char algorithm_launches[17];  /* the same with their grids and blocks */
    /* "search": this row's own; otherwise where the algorithm comes from; "":
     * nothing was to be chosen. */
    char algorithm_origin[48];
    /* The search for the algorithm; missing where there was none. Times of different algorithms, in
     * turn, in one process: they compare among themselves, and not with time_median. */
    int64_t search_candidates; /* algorithms timed that differ in their kernels or launches */
    double search_time;        /* s, of the chosen one */
    double search_noise;       /* 1: the library's first choice stays within it */
    char heuristic_algorithm[128], heuristic_id[17]; /* the library's own first choice */
    double heuristic_time;                           /* s */
    char runner_up_algorithm[128], runner_up_id[17];
    double runner_up_time;               /* s */
    char program_hash[CONFIG_HASH_TEXT]; /* of the files that a program's command names */
    /* timing run */
    double time_median, time_mean, time_stdev, time_min, time_max; /* s, one iteration */
    double time_median_low, time_median_high;                      /* s, struct stats */
    int64_t bimodal;   /* 1: two modes, see stats_two_modes; missing: too few samples */
    double graph_time; /* s, one iteration within a CUDA graph of several; missing where cold */
    /* s, of one iteration in loops of an ordinary caller, which end by waiting for the device: what
     * the host needs to enqueue it, and what the caller sees; medians, with stats_uncertainty. */
    double host_time, host_uncertainty, caller_time, caller_uncertainty;
    /* 1, up to noise: how much longer known kernels took with the profiler in the process, idle,
     * as it was while this was timed; missing: it was not there. */
    double profiler_ratio;
    int64_t placements;        /* of the buffers, that the samples are of */
    int64_t samples;           /* that the statistics are of */
    int64_t sample_iterations; /* that each sample is the mean of */
    double timer_overhead; /* s, what the timer shows where there is nothing to time; it is in every
                              sample */
    int64_t host_paced;    /* 1: the device waited for the host within some of the samples */
    int64_t converged; /* of the adaptive rule: 1 yes, 0 max_time came first; missing without it */
    /* trace run */
    int64_t launches; /* kernels in one iteration */
    double busy_time; /* s, in which at least one kernel of the iteration ran */
    /* s, from the start of its first kernel to the end of its last, all of them queued; missing if
     * the device had to wait for the host */
    double trace_time;
    /* of a program: copies and fills of memory that were traced beside its kernels, each as one
     * iteration's */
    int64_t memcpy_count, memset_count;
    double memcpy_bytes, memset_bytes; /* byte */
    double memcpy_time, memset_time;   /* s, each's own together */
    /* cost */
    double flops_model, bytes_model; /* struct cost of one iteration; missing without a model */
    double footprint;                /* byte, struct cost.memory */
    double flops_counted;            /* hardware counters; missing where there are none */
    double bytes_counted[LEVEL_COUNT];
    double flops_vector[PRECISION_COUNT]; /* parts of flops_counted; bf16 is counted with fp16 */
    double flops_tensor[PRECISION_COUNT];
    double bytes_read[LEVEL_COUNT], bytes_written[LEVEL_COUNT]; /* parts of bytes_counted */
    struct outcome counters; /* enum counted, and why there are no counts */
    /* conditions, seen during the timing run */
    double sm_clock, memory_clock; /* s-1 */
    double sm_clock_counted;       /* s-1, the device's cycles over its own time */
    double temperature;            /* K */
    int64_t throttle_reasons;      /* NVML's bit mask */
    double sm_clock_free;          /* s-1, of the device awake with next to nothing to do */
    char other_processes[256];     /* that computed on the device; "none"; "": not known */
    /* energy run: the work back to back, over and over */
    double energy, energy_time; /* J and s, of one iteration */
    double energy_clock;        /* s-1, as sm_clock_counted */
    double power;               /* W, mean */
    double idle_power;          /* W, mean of the device awake without work */
    /* verification */
    double verify_error;     /* ||out - ref|| / ||ref|| over the compared elements */
    double verify_tolerance; /* largest error that is not taken as wrong */
    /* the same of the worst element, over the larger of itself and the root mean square of all */
    double verify_element_error, verify_element_tolerance;
    /* Of an inaccurate result: the error beside that of one rounding, and the fastest accurate
     * algorithm, if others were tried; "": the result is accurate, or was not compared. */
    char accuracy[512];
    int64_t verify_elements; /* compared; missing where nothing was compared */

    /* Ragged and per-sample parts; owned, freed by record_clear. */
    double *sample; /* [sample_count] s, the first RECORD_SAMPLES_MAX at most */
    size_t sample_count;
    struct kernel *kernels;
    size_t kernel_count;
    /* Not part of the record: what an earlier search chose, offered to whoever prepares the row,
     * who takes it away. Not owned; NULL: nothing. */
    const struct algorithm *offer;
};

extern const struct field record_fields[]; /* members up to verify_elements */
extern const struct field kernel_fields[];
extern const char *const record_status_name[]; /* "measured", "skipped", "failed", NULL */

/* Sets everything to missing, with no samples and kernels. */
void record_init(struct record *record);
/* Frees what the record owns and sets it to missing. */
void record_clear(struct record *record);
/* Sets the configuration and what follows from it alone: its text, its hash and its modelled
 * cost. */
void record_set_config(struct record *record, const struct config *config);
/* Sets the layout that the configuration names; "auto" and none: "". */
void record_set_layout(struct record *record, const struct config *config);
/* Gives the record a copy of these kernels, replacing what it had. STATUS_SYSTEM without memory. */
enum status record_set_kernels(struct record *record, const struct kernel *kernels, size_t count,
                               struct error *error);
/* Sets FLOPs and bytes of one iteration: by unit and precision, by level, and their sums. Vector
 * FLOPs of fp16 and bf16 count together, and stand with fp16. NaN: missing. */
void record_set_quantities(struct record *record, const double values[QUANTITY_COUNT]);
/* Adds seconds to a part of the wall time. */
void record_add_part(struct record *record, enum wall_part part, double seconds);
/* Adds to a part what no part has of the seconds that the row has taken so far. */
void record_end_part(struct record *record, enum wall_part part, double seconds);
/* "; 0.31 s, prepare 0.1, timing 0.21"; "" of what is missing. */
void record_format_parts(const struct record *record, char *text, size_t size);
/* JSON: the fields, "sample": [s, ...] and "kernels": [{...}, ...]; the caller owns it. */
json_t *record_encode(const struct record *record);
/* The same as text. The caller frees it; NULL without memory. */
char *record_print(const struct record *record);
/* A worker's text of a record, with what the ranks say of it in place of what the worker says:
 * device_key, job_id, attempts and label of `record`. They are the last members, which count. The
 * caller frees it; NULL without memory. */
char *record_complete(const char *text, const struct record *record);
/* Needs a record that was initialised, and clears it on failure. A record always has a status. An
 * unknown configuration is no error; a missing hash is that of the configuration. */
enum status record_decode(struct json_text object, struct record *record, struct error *error);
/* STATUS_SYSTEM, with the field's name: no device measured these numbers (fields_check), they
 * contradict one another or the outcome, or the hash is of another configuration. The one check of
 * what a worker answers and of what a line of a journal holds. */
enum status record_check(const struct record *record, struct error *error);
