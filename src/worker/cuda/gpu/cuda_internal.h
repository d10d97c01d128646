/* Shared by the CUDA worker's own units; nobody else includes it.
 *
 * Every call into CUDA, cuDNN, cuBLASLt or CUPTI goes through a check that turns its failure into
 * the error convention, with the call's name. One stream carries all work. */
#ifndef ROOFSWEEP_CUDA_INTERNAL_H
#define ROOFSWEEP_CUDA_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "worker/device_ops.h"
#include "worker/cuda/gpu/chip.h"
#include "worker/cuda/profiling/counters.h"

/* ---- check.c: failures ---- */

/* `call` is the text of the call; only what stands before its parenthesis is printed.
 * Memory exhausted or something not offered: STATUS_UNSUPPORTED. An error that stays after it has
 * been cleared is sticky, the context is lost: STATUS_DEVICE. Anything else: STATUS_FAILED. */
enum status cuda_check(cudaError_t code, const char *call, struct error *error);
enum status cudnn_check(cudnnStatus_t code, const char *call, struct error *error);
enum status cublas_check(cublasStatus_t code, const char *call, struct error *error);

/* For functions that return enum status and have a `struct error *error`. */
#define CUDA(call)   cuda_check((call), #call, error)
#define CUDNN(call)  cudnn_check((call), #call, error)
#define CUBLAS(call) cublas_check((call), #call, error)
#define TRY(expression)                                                                            \
    do {                                                                                           \
        enum status try_status = (expression);                                                     \
        if (try_status)                                                                            \
            return try_status;                                                                     \
    } while (0)

/* Device memory, freed with cudaFree; `what` names it in the message "NEEDS of WHAT, FREE are
 * free". No bytes: NULL. */
enum status memory_allocate(double bytes, const char *what, void **memory, struct error *error);
/* STATUS_UNSUPPORTED if so much is not free now. */
enum status memory_check(double bytes, const char *what, struct error *error);

/* ---- nvml.c: conditions and what CUDA does not tell ---- */

struct nvml; /* NULL wherever NVML cannot be used: the values stay missing */

struct nvml *nvml_open(const char *pci_id);
void nvml_close(struct nvml *nvml); /* takes NULL */
/* Driver version, clocks, power limit, ECC, MIG. */
void nvml_describe(struct nvml *nvml, struct device *device);
/* Where the conditions of a record or of a roof are kept. */
struct conditions {
    double *sm_clock, *memory_clock, *temperature;
    int64_t *throttle_reasons, *throttled;
};
/* Clocks and temperature; and, if the event `last` was still to come when they had been read,
 * throttle reasons: those of a device that has already finished say nothing about the work. What
 * cannot be read stays as it was. */
void nvml_sample(struct nvml *nvml, cudaEvent_t last, const struct conditions *seen);
/* How many processes compute on the GPU, this one included; -1 where that is not known. */
int nvml_processes(struct nvml *nvml);
/* W, the mean of a load that began at `since` (s since 1970-01-01T00:00:00Z) and has ended just now;
 * NaN if that is too short for the sensor, or if there is none. */
double nvml_power(struct nvml *nvml, double since);
double nvml_energy(struct nvml *nvml); /* J since the driver was loaded; NaN if not offered */

enum { DISTURBANCE_TIMES = 2 }; /* disturbance.c */

/* ---- device.c: the open device ---- */

struct device_state {
    cudaStream_t stream;
    cudnnHandle_t cudnn;
    struct nvml *nvml;
    int capability; /* 90 */
    int multiprocessors;
    size_t l2_bytes;
    struct theory theory;
    struct roofs *roofs; /* roofs.c; NULL: none tuned */
    /* timing.c */
    cudaEvent_t *events;
    int event_count;
    struct clock_stamp
        *stamps; /* CLOCK_STAMPS at the loop's begin, as many at its end; on the device */
    void *flush; /* flush_bytes, allocated by the first flush */
    size_t flush_bytes;
    /* count.c */
    struct counters *counters; /* NULL until counters are wanted, and where they are refused */
    char counters_outcome
        [COUNTERS_TEXT]; /* of the preflight: "" before, then "counted" or why not */
    bool stand_by_decided,
        stand_by_traced;     /* whether the profiler may; again with a trace behind */
    unsigned stand_by_asked; /* tensors that it counted when last judged */
    /* trace.c */
    bool trace_refused;      /* CUPTI cannot be attached; the reason has been printed */
    bool trace_decided;      /* whether the tracer may stand by, where nothing is counted */
    bool trace_stands_by;    /* it does */
    struct launch *launches; /* owned: of the last trace, in the order of their launch */
    size_t launch_count;     /* 0 where there was no trace */
    /* disturbance.c */
    double undisturbed[DISTURBANCE_TIMES]; /* with nothing attached */
    /* As of struct record: the last judgement of what stands by; NaN: nothing does. */
    double profiler_ratio;
};

/* One kernel launch of an iteration. */
struct launch {
    uint32_t correlation; /* CUPTI's number of the API call, which rises with every call */
    size_t kernel;        /* of struct record.kernels */
};

/* One configuration. The workloads' own structs begin with it. */
struct work_ops {
    /* Enqueues what stands before every iteration and is not timed; NULL: nothing. */
    enum status (*reset)(struct device_state *state, struct work *work, struct error *error);
    /* Enqueues one iteration. */
    enum status (*iterate)(struct device_state *state, struct work *work, struct error *error);
    /* As device_ops.run, but only enqueued. */
    enum status (*run)(struct device_state *state, struct work *work, int64_t samples,
                       struct error *error);
    /* Device address of the result in this role, and where an element of the canonical layout lies
     * in it; `element` is NULL if the layouts are the same. */
    const void *(*result)(const struct work *work, enum tensor tensor);
    int64_t (*element)(const struct work *work, enum tensor tensor, int64_t offset);
    void (*release)(struct work *work); /* frees the struct as well */
};

struct work {
    const struct work_ops *ops;
    enum precision precision;
    /* timing.c: the energy counter when a record last got a value (NaN: not begun), and when that
     * began */
    double energy_given, energy_start_time; /* J, s */
    /* timing.c: host time to enqueue all that belongs to one iteration, the shortest seen; 0: not
     * yet known */
    double enqueue_time; /* s */
};

/* conv2d.c, lstm.c, matmul.c, loops.c: one implementation of a workload each, the loops both. On
 * failure *work stays NULL. */
typedef enum status work_preparation(struct device_state *state, const struct config *config,
                                     uint64_t seed, struct work **work, struct record *record,
                                     struct error *error);
work_preparation conv2d_prepare, lstm_prepare, matmul_cublaslt_prepare, matmul_plain_prepare,
    loop_prepare;

extern const char *const cudnn_math_name[]; /* by cudnnMathType_t */

/* ---- timing.c ---- */

enum status timing_run(struct device_state *state, struct work *work, bool cold, int iterations,
                       double *seconds, struct record *record, struct error *error);
/* At least so many events in state->events, and what timing_stamp needs. */
enum status timing_reserve(struct device_state *state, int events, struct error *error);
/* Enqueues a reading of all multiprocessors' clocks where a span of work begins or ends. */
enum timing_end { TIMING_BEGIN, TIMING_END };
enum status timing_stamp(struct device_state *state, enum timing_end which, struct error *error);
/* s-1, of the multiprocessors over the last span, which must be over. */
enum status timing_clock(struct device_state *state, double *clock, struct error *error);
/* Enqueues one kernel that reads state->flush_bytes, which drives everything else out of the last-level
 * cache, and leaves nothing there that is still to be written to device memory. */
enum status timing_flush(struct device_state *state, struct error *error);
void timing_close(struct device_state *state);

/* Binds `work` to each candidate in turn, times those that the library takes, and leaves it bound
 * to the fastest. If it takes none, the first one's refusal is the error. */
enum status work_choose(struct device_state *state, struct work *work, int candidates,
                        enum status (*bind)(struct device_state *state, struct work *work,
                                            int candidate, struct error *error),
                        int *fastest, struct error *error);

/* ---- count.c: hardware counters ---- */

/* The preflight, once: sets counters_outcome. */
enum status count_open(struct device_state *state, struct error *error);
enum status count_try(struct device_state *state, struct device *device, struct error *error);
/* Before anything is timed: what is left in the process from trying the counters leaves it. */
void count_withdraw(struct device_state *state);
void count_close(struct device_state *state);
enum status count_run(struct device_state *state, struct work *work, bool cold, bool kernels,
                      struct record *record, struct error *error);
/* The profiler leaves the process after every collection, from now on. */
void count_never_stand_by(struct device_state *state);
/* After a trace: whether a profiler that stands by still leaves device times alone. */
enum status count_check_stand_by(struct device_state *state, struct error *error);

/* ---- disturbance.c ---- */

/* s: the time from one of many queued empty kernels to the next, and that of one kernel of about a
 * millisecond; medians. What attaches itself to the process must leave them alone. */
enum status disturbance_times(struct device_state *state, double times[DISTURBANCE_TIMES],
                              struct error *error);
/* Remembers them with nothing attached; *known: could be timed. Fails only with STATUS_DEVICE. */
enum status disturbance_begin(struct device_state *state, bool *known, struct error *error);
/* With something attached since: sets profiler_ratio. Fails only with STATUS_DEVICE. */
enum status disturbance_judge(struct device_state *state, bool *tolerable, struct error *error);

/* ---- selftest.c: known work ---- */

enum status selftest_run(struct device_state *state, FILE *stream, struct error *error);

/* ---- trace.c, roofs.c ---- */

enum status trace_run(struct device_state *state, struct work *work, struct record *record,
                      struct error *error);
void trace_close(struct device_state *state);

/* As device_ops has them. */
enum status roofs_tune(struct device_state *state, const struct roof_request *request, bool prove,
                       bool found[ROOF_KINDS], struct error *error);
enum status roofs_measure(struct device_state *state, int kind, double start, struct roof *roof,
                          struct error *error);
void roofs_release(struct device_state *state);

#endif
