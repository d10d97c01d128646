/* What a sweep produces: one record for each configuration and device, and one description of each
 * device. Plain structs in SI units, described by const field tables (field.h), which are at once
 * their JSON form and their NetCDF variables. */
#ifndef ROOFSWEEP_RECORD_H
#define ROOFSWEEP_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "model/field.h"
#include "model/roof.h"
#include "model/workload.h"

enum record_status { RECORD_MEASURED, RECORD_SKIPPED, RECORD_FAILED };

enum { RECORD_SAMPLES_MAX = 1000, KERNEL_NAME_MAX = 1024, ROOFS_MAX = 2 * ROOF_KINDS };

/* One distinct kernel of a record: same name, grid, block and resources. On a CPU, one OpenMP
 * region. */
struct kernel {
    char name[KERNEL_NAME_MAX]; /* demangled, cut at the end if longer */
    int64_t count;              /* launches in one iteration */
    double time;                /* s, all launches of one iteration together, from the trace run */
    int64_t grid_x, grid_y, grid_z, block_x, block_y, block_z;
    int64_t registers;                     /* per thread */
    int64_t static_shared, dynamic_shared; /* byte, per block */
    /* all launches of one iteration together, each counted by itself; missing unless asked for */
    double flops_counted;
    double bytes_counted[LEVEL_COUNT];
};

struct record {
    /* identity */
    char configuration[WORKLOAD_TEXT]; /* canonical text, see config_format */
    char config_hash[CONFIG_HASH_TEXT];
    char label[1024];     /* labels of all sections that ask for it, separated by a space */
    char device_key[128]; /* struct device.key of the device that it was measured on */
    /* outcome */
    int64_t status; /* enum record_status */
    char error[2048];
    int64_t attempts;
    double start_time; /* s since 1970-01-01T00:00:00Z */
    double wall_time;  /* s, everything done for this configuration */
    char job_id[64];
    /* what ran */
    char implementation[32]; /* resolved: never "auto" */
    char algorithm[128];     /* as the library calls it */
    char math[32];           /* library's math mode, e.g. tensor-op */
    int64_t unit;            /* enum unit: whose peak is the compute roof */
    double workspace;        /* byte */
    /* timing run */
    double time_median, time_mean, time_stdev, time_min, time_max; /* s, one iteration */
    double host_time; /* s, to enqueue one iteration: the pace of a caller that never waits */
    /* 1, up to noise: how much longer known kernels took with the profiler in the process, idle, as it
     * was while this was timed; missing: it was not there. */
    double profiler_ratio;
    int64_t samples;   /* iterations that the statistics are of */
    int64_t converged; /* of the adaptive rule: 1 yes, 0 max_time came first; missing without it */
    /* trace run */
    int64_t launches; /* kernels in one iteration */
    double busy_time; /* s, sum of the kernels' times in one iteration */
    /* cost */
    double flops_model, bytes_model; /* struct cost of one iteration */
    double footprint;                /* byte, struct cost.memory */
    double flops_counted;            /* hardware counters; missing where there are none */
    double bytes_counted[LEVEL_COUNT];
    double flops_vector[PRECISION_COUNT]; /* parts of flops_counted; bf16 is counted with fp16 */
    double flops_tensor[PRECISION_COUNT];
    double bytes_read[LEVEL_COUNT], bytes_written[LEVEL_COUNT]; /* parts of bytes_counted */
    char counters[512]; /* "counted", "off", or why there are no counts: "refused: ..." */
    /* conditions, seen during the timing run */
    double sm_clock, memory_clock; /* s-1 */
    double sm_clock_counted;       /* s-1, the device's cycles over its own time */
    double power;                  /* W */
    double temperature;            /* K */
    double energy;                 /* J, over the timing run */
    int64_t throttle_reasons;      /* NVML's bit mask */
    int64_t throttled; /* 1: one of them means that the clock was held down by power or heat */
    /* verification */
    double verify_error;     /* ||out - ref|| / ||ref|| over the compared elements */
    double verify_tolerance; /* largest error taken as right */
    int64_t verify_elements; /* compared; missing with verify = no */

    /* Ragged and per-sample parts; owned, freed by record_clear. */
    double *sample; /* [sample_count] s, the first RECORD_SAMPLES_MAX at most */
    size_t sample_count;
    struct kernel *kernels;
    size_t kernel_count;
};

/* One device as one job saw it. Plain data. */
struct device {
    char key[128]; /* unique in a file: session and rank */
    char kind[16]; /* "cuda" or "cpu" */
    char hostname[128];
    char uuid[96];   /* CPU: the host and the cores, "cpu-HOST-0-7" */
    char pci_id[32]; /* 00000000:3B:00.0; CPU: empty */
    int64_t index;   /* as the job's processes see it */
    char model[96];
    char compute_capability[16];        /* "9.0" */
    int64_t multiprocessors;            /* SMs, or cores */
    double memory;                      /* byte */
    double cache[LEVEL_COUNT];          /* byte, capacity on the whole device; dram missing */
    double clock_max, memory_clock_max; /* s-1 */
    double power_limit;                 /* W */
    int64_t ecc;                        /* 1 on, 0 off */
    int64_t mig;                        /* 1 on, 0 off */
    int64_t cores_shared;               /* 1: another rank ran on the same cores */
    char counters[512]; /* "counted"; or "refused: WHY; WHAT TO DO"; "" if nobody asked */
    char driver_version[32], runtime_version[32], library_version[64];
    /* The roofs that the model uses, set by device_set_peaks; missing where none was measured. */
    double peak_bandwidth[LEVEL_COUNT];                                /* byte s-1 */
    double peak_vector[PRECISION_COUNT], peak_tensor[PRECISION_COUNT]; /* s-1 */
    double launch_overhead;  /* s, from one kernel (or OpenMP region) to the next */
    char roofs_reused[1024]; /* file that the roofs were taken from; "": measured by this job */
    /* theory, from attributes and clocks; missing where not known */
    double theory_bandwidth[LEVEL_COUNT];
    double theory_vector[PRECISION_COUNT], theory_tensor[PRECISION_COUNT];

    struct roof roofs[ROOFS_MAX]; /* the first roof_count */
    int64_t roof_count;
};

extern const struct field record_fields[]; /* members up to verify_elements */
extern const struct field kernel_fields[];
extern const struct field device_fields[];
extern const char *const record_status_name[]; /* "measured", "skipped", "failed", NULL */

/* Sets everything to missing, with no samples and kernels. */
void record_init(struct record *record);
/* Frees what the record owns and sets it to missing. */
void record_clear(struct record *record);
/* Sets what follows from the configuration alone: its text, its hash and its modelled cost. */
void record_set_config(struct record *record, const struct config *config);
/* Gives the record a copy of these kernels, replacing what it had. STATUS_SYSTEM without memory. */
enum status record_set_kernels(struct record *record, const struct kernel *kernels, size_t count,
                               struct error *error);
void device_init(struct device *device);
const struct roof *device_roof(const struct device *device, const char *name,
                               int64_t condition); /* NULL if there is none */
/* Replaces the roof of the same kind and condition. */
void device_add_roof(struct device *device, const struct roof *roof);
/* Of the usable roofs the highest at each memory level and for each precision and unit, whatever
 * their condition: a ceiling is what nothing exceeds. But the ranks of a CPU share its memory while
 * they work: of its bandwidths those measured together count, if there are any. Launch overhead: the
 * gap, alone if there is such a roof. */
void device_set_peaks(struct device *device);

/* JSON: the fields, "sample": [s, ...] and "kernels": [{...}, ...]; of a device, "roofs": [{...}, ...].
 * The caller owns the result. Decoding needs a record that was initialised; on failure it is
 * cleared. A record always has a status. */
json_t *record_encode(const struct record *record);
enum status record_decode(const json_t *object, struct record *record, struct error *error);
json_t *device_encode(const struct device *device);
enum status device_decode(const json_t *object, struct device *device, struct error *error);

#endif
