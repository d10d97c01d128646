/* The record of one configuration on one device: the product of a sweep. Plain structs in SI units
 * with field tables (field.h). */
#pragma once

#include <stdint.h>

#include "model/field.h"
#include "model/kernel.h"
#include "model/quantity.h"
#include "model/roof.h"
#include "model/workload.h"

/* The algorithm that a search found for a configuration, with the results of the search. A worker
 * that receives an algorithm needs no search, and checks that its kernels are still the same. The
 * members of the search are missing without one. The search times algorithms in turn in one
 * process, so its times can be compared with each other, but not with time_median. */
#define ALGORITHM_MEMBERS                                                                          \
    char algorithm[128]; /* name in the library; "": none */                                       \
    /* identity: hash of the kernels' names; hash of names, grids and blocks; "": unknown */       \
    char algorithm_id[17], algorithm_launches[17];                                                 \
    char refused_algorithms[256]; /* algorithms with wrong results, separated by "; " */           \
    /* algorithm_searched: from the row's own search; "run": from the search of an equal device;   \
     * "": there was no choice */                                                                  \
    char algorithm_origin[48];                                                                     \
    int64_t search_candidates; /* timed algorithms that differ in kernels or launches */           \
    double search_time;        /* s; median time of the algorithm in the search */                 \
    double search_noise;       /* share of search_time; smaller gains keep the library's choice */ \
    char heuristic_algorithm[128], heuristic_id[17]; /* first choice of the library */             \
    double heuristic_time;                           /* s */                                       \
    char runner_up_algorithm[128], runner_up_id[17];                                               \
    double runner_up_time; /* s */
struct algorithm {
    ALGORITHM_MEMBERS
};

enum record_status { RECORD_MEASURED, RECORD_SKIPPED, RECORD_FAILED };

/* Limits of a decoded record. Iterations of workloads have far fewer distinct kernels. */
enum { RECORD_SAMPLES_MAX = 1000, RECORD_KERNELS_MAX = 4096, ROUNDS_MAX = 30 };

struct record {
    /* identity */
    char configuration[WORKLOAD_TEXT]; /* canonical text, see config_format */
    /* Parsed `configuration`, set by record_set_config and results_fetch. The workload is NULL if
     * nobody parsed the text, or if a newer version wrote a text that is unknown here. */
    struct config config;
    char config_hash[CONFIG_HASH_TEXT];
    char label[1024];     /* labels of all manifest sections with this configuration, separated by
                             spaces */
    char device_key[128]; /* struct device.key of the measuring device */
    /* outcome */
    int64_t status;   /* enum record_status */
    char error[2048]; /* why the row is skipped or failed, or lacks verification or kernels */
    int64_t attempts;
    int64_t round;                     /* round of the sweep, 2 or more; missing: the first */
    double start_time;                 /* s since 1970-01-01T00:00:00Z */
    double wall_time;                  /* s, of all work of the worker for this configuration */
    double wall_time_part[PART_COUNT]; /* s, parts of wall_time; missing: no such part */
    char job_id[64];
    /* implementation */
    char implementation[32]; /* implementation that ran, never "auto" */
    union {
        struct {
            ALGORITHM_MEMBERS
        };
        struct algorithm found;
    };
    char math[32];    /* library's math mode, e.g. tensor-op */
    int64_t unit;     /* enum unit whose peak is the compute roof */
    double workspace; /* byte */
    /* only in records of versions with layout = auto: the faster layout, and time of the other */
    char layout_chosen[16];
    double layout_other_time;            /* s */
    char program_hash[CONFIG_HASH_TEXT]; /* hash of the files in a program's command */
    /* timing run */
    double time_median, time_mean, time_min, time_max; /* s, one iteration */
    double time_median_low, time_median_high; /* s, confidence interval, see struct stats */
    int64_t bimodal; /* 1: two modes, see stats_two_modes; missing: too few samples */
    /* s, time of one iteration in a CUDA graph of several iterations; missing for cold caches */
    double graph_time;
    /* s of one iteration, medians over loops in which a caller enqueues iterations and then waits
     * for the device: until the loop is enqueued (host_time), or the device done (caller_time) */
    double host_time, caller_time;
    double caller_uncertainty; /* stats_uncertainty of caller_time */
    /* time of test kernels with the idle profiler in the process / time without it; missing: the
     * profiler was not in the process during timing */
    double profiler_ratio;
    int64_t placements;        /* number of placements of the buffers that were timed */
    int64_t samples;           /* number of timed samples */
    int64_t sample_iterations; /* iterations in each sample */
    double timer_overhead;     /* s, time of a sample without work, which every sample contains */
    int64_t host_paced;        /* 1: in some samples the device waited for the host */
    /* with the adaptive rule: 1 converged, 0 ended by max_time; missing without the rule */
    int64_t converged;
    /* trace run */
    int64_t launches;           /* kernels in one iteration */
    int64_t launches_in_graphs; /* launches by CUDA graphs; only for programs */
    double busy_time;           /* s, while at least one kernel ran */
    /* s, from the start of the first kernel to the end of the last, with all kernels enqueued
     * before the start; missing if the device waited for the host */
    double trace_time;
    /* copies and fills of memory in one traced iteration of a program */
    int64_t memcpy_count, memset_count;
    double memcpy_bytes, memset_bytes; /* byte */
    double memcpy_time, memset_time;   /* s, sum of the durations */
    /* cost */
    double flops_model, bytes_model; /* of one iteration, struct cost; missing without a model */
    double footprint;                /* byte, struct cost.memory */
    double flops_counted;            /* by hardware counters; missing without counters */
    double bytes_counted[LEVEL_COUNT];
    double flops_vector[PRECISION_COUNT]; /* parts of flops_counted; fp16 includes bf16 */
    double flops_tensor[PRECISION_COUNT];
    double bytes_written[LEVEL_COUNT]; /* part of bytes_counted */
    struct outcome counters;           /* enum counted, with the reason if counts are missing */
    /* conditions during the timing run */
    double sm_clock, memory_clock; /* s-1 */
    double sm_clock_counted;       /* s-1, cycles / time, both counted by the device */
    double temperature;            /* K */
    int64_t throttle_reasons;      /* NVML's bit mask */
    double sm_clock_free;          /* s-1, while the device is awake and nearly idle */
    /* CPUs, in the timing loop: shares of the cores' time in which threads ran or waited for a
     * core, load average of the host in the last minute, involuntary context switches */
    double threads_running, threads_waiting, host_load;
    int64_t involuntary_switches;
    char other_processes[256]; /* names of processes that used the device; "none"; "": unknown */
    /* energy run: iterations back to back */
    double energy, energy_time; /* J, s; of one iteration */
    double energy_clock;        /* s-1, as sm_clock_counted */
    double power;               /* W, mean */
    double idle_power;          /* W, mean of the awake idle device */
    /* verification */
    double verify_error;     /* ||out - ref|| / ||ref|| over the compared elements */
    double verify_tolerance; /* largest verify_error of a result that is not wrong */
    /* error of the worst element / larger one of the element and the root mean square of all */
    double verify_element_error, verify_element_tolerance;
    /* of an inaccurate result: its error, the error of one rounding, and the fastest accurate
     * algorithm if others were tried; "": accurate, or not compared */
    char accuracy[512];
    int64_t verify_elements; /* elements compared; missing without a comparison */
    /* device_ops.hash, hexadecimal; "varies": results of iterations or rounds differ in bits */
    char output_hash[17];

    /* Parts of variable length; owned, freed by record_clear. */
    double *sample; /* [sample_count] s, at most the first RECORD_SAMPLES_MAX */
    size_t sample_count;
    struct kernel *kernels;
    size_t kernel_count;
    /* Not part of the record: an algorithm of an earlier search for the function that prepares the
     * row; the caller then sets it to NULL. Not owned; NULL: none. */
    const struct algorithm *offer;
};

extern const char algorithm_searched[];

/* Sets all members to missing. */
void algorithm_init(struct algorithm *algorithm);
bool algorithm_is_known(const struct algorithm *algorithm);
/* Sets *algorithm to the algorithm of a measured row that comes from a search. False for other
 * rows: all members become missing. */
bool algorithm_of_record(const struct record *record, struct algorithm *algorithm);
/* An object with the members that are known. STATUS_SYSTEM: see fields_decode and fields_check. */
json_t *algorithm_encode(const struct algorithm *algorithm);
enum status algorithm_decode(struct json_text object, struct algorithm *algorithm,
                             struct error *error);

extern const struct field record_fields[]; /* members up to output_hash */
extern const struct field kernel_fields[];
extern const char *const record_status_name[]; /* "measured", "skipped", "failed", NULL */

/* Sets all members to missing, and frees nothing: for memory that does not yet hold a record. */
void record_init(struct record *record);
/* Frees the arrays and sets all members to missing. */
void record_clear(struct record *record);
/* Sets the configuration with its text, hash and modelled cost. */
void record_set_config(struct record *record, const struct config *config);
/* Replaces the record's kernels with a copy of `kernels`. STATUS_SYSTEM: no memory. */
enum status record_set_kernels(struct record *record, const struct kernel *kernels, size_t count,
                               struct error *error);
/* Sets counted FLOPs (by unit and precision) and bytes (by level) of one iteration, and their sums.
 * Vector FLOPs of bf16 are contained in those of fp16. NaN: missing. */
void record_set_quantities(struct record *record, const double values[QUANTITY_COUNT]);
/* Adds seconds to a part of the wall time. */
void record_add_part(struct record *record, enum wall_part part, double seconds);
/* Adds to `part` the rest of `seconds` after the sum of all parts. */
void record_end_part(struct record *record, enum wall_part part, double seconds);
/* Writes the wall time and its known parts: "; 0.31 s, prepare 0.1, timing 0.21". */
void record_format_parts(const struct record *record, char *text, size_t size);
/* JSON: the fields, "sample": [s, ...] and "kernels": [{...}, ...]. The caller owns the object. */
json_t *record_encode(const struct record *record);
/* The JSON as text. The caller frees it; NULL: no memory. */
char *record_print(const struct record *record);
/* Appends device_key, job_id, attempts, round and label of `record` to the JSON text that a worker
 * printed; also `listed`, unless NULL, for `roofsweep-post watch`. When the text is parsed,
 * appended members replace the worker's. The caller frees the result; NULL: no memory. */
char *record_complete(const char *text, const struct record *record, const char *listed);
/* Decodes into an initialised record, and clears it on failure. Requires a status; accepts unknown
 * configurations; computes a missing hash. */
enum status record_decode(struct json_text object, struct record *record, struct error *error);
/* Checks a record from a worker or a journal. STATUS_SYSTEM, with the name of the field, for four
 * faults: a number that nobody can have measured (fields_check); numbers that contradict each
 * other, the wall time or the outcome; no configuration; a wrong hash of the configuration. */
enum status record_check(const struct record *record, struct error *error);
