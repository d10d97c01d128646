/* The kinds of roofs: one const table, which ranks and workers share.
 *
 * To add a kind: its id in enum roof_id, its row in roof_kind.c, and a way to do it in the roofs.c
 * of each device folder that has it. Nothing else knows the kinds one by one. Plain C and C++, for
 * kernels/. */
#ifndef ROOFSWEEP_ROOF_KIND_H
#define ROOFSWEEP_ROOF_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/workload.h"

/* In the order in which they are measured and shown. */
enum roof_id {
    ROOF_DRAM_READ,
    ROOF_DRAM_WRITE,
    ROOF_DRAM_COPY,
    ROOF_DRAM_TRIAD,
    ROOF_L3_READ,
    ROOF_L3_WRITE,
    ROOF_L3_COPY,
    ROOF_L3_TRIAD,
    ROOF_L2_READ,
    ROOF_L2_WRITE,
    ROOF_L2_COPY,
    ROOF_L2_TRIAD,
    ROOF_L2_ATOMIC,
    ROOF_L1_READ,
    ROOF_L1_WRITE,
    ROOF_L1_COPY,
    ROOF_L1_TRIAD,
    ROOF_SHARED_READ,
    ROOF_HOST_TO_DEVICE,
    ROOF_DEVICE_TO_HOST,
    ROOF_DEVICE_TO_DEVICE,
    ROOF_FP64_VECTOR,
    ROOF_FP32_VECTOR,
    ROOF_FP16_VECTOR,
    ROOF_BF16_VECTOR,
    ROOF_FP64_TENSOR_MMA,
    ROOF_TF32_TENSOR_MMA,
    ROOF_FP16_TENSOR_MMA,
    ROOF_BF16_TENSOR_MMA,
    ROOF_FP8_TENSOR_MMA,
    ROOF_INT8_TENSOR_MMA,
    ROOF_TF32_TENSOR_WGMMA,
    ROOF_FP16_TENSOR_WGMMA,
    ROOF_BF16_TENSOR_WGMMA,
    ROOF_FP8_TENSOR_WGMMA,
    ROOF_INT8_TENSOR_WGMMA,
    ROOF_TF32_TENSOR_TCGEN05,
    ROOF_FP16_TENSOR_TCGEN05,
    ROOF_BF16_TENSOR_TCGEN05,
    ROOF_FP8_TENSOR_TCGEN05,
    ROOF_FP4_TENSOR_TCGEN05,
    ROOF_INT8_TENSOR_TCGEN05,
    ROOF_FP64_TENSOR_LIBRARY,
    ROOF_TF32_TENSOR_LIBRARY,
    ROOF_FP16_TENSOR_LIBRARY,
    ROOF_BF16_TENSOR_LIBRARY,
    ROOF_FP8_TENSOR_LIBRARY,
    ROOF_FP4_TENSOR_LIBRARY,
    ROOF_INT8_TENSOR_LIBRARY,
    ROOF_LAUNCH_HOST,
    ROOF_LAUNCH_LATENCY,
    ROOF_LAUNCH_GAP,
    ROOF_LAUNCH_GAP_GRAPH,
    ROOF_LAUNCH_GAP_DEPENDENT,
    ROOF_LAUNCH_GAP_DEPENDENT_GRAPH,
    ROOF_KINDS
};

/* What kind of figure it is: bytes read plus written per second, FLOPs per second (int8:
 * operations), or the seconds of one thing. */
enum roof_measure { ROOF_BANDWIDTH, ROOF_COMPUTE, ROOF_TIME };

/* How memory is used: loads; stores; a = b; a = b + s c; additions that the cache does. */
enum memory_pattern {
    PATTERN_READ,
    PATTERN_WRITE,
    PATTERN_COPY,
    PATTERN_TRIAD,
    PATTERN_ATOMIC,
    PATTERN_COUNT
};

/* Which unit of the device computes. */
enum unit { UNIT_VECTOR, UNIT_TENSOR };

/* Which roofs to measure, and under which conditions; a device measures those of them that it has.
 * One without neighbours is measured alone, whichever condition is wanted. */
/* A way to do a kind of roof, by its number on this model of device. The fastest one that a device
 * has found another one of the same model tries first, and looks for others only if it is not as
 * fast there. All zero is no way. */
struct roof_way {
    int number;
    double rate; /* work per second when it was found; 0: no way */
};

struct roof_request {
    bool memory[LEVEL_COUNT]; /* with l1, shared memory too */
    bool compute[PRECISION_COUNT];
    bool launch;
    bool transfer;                    /* between host and device, and from device to device */
    bool condition[2];                /* by enum roof_condition */
    struct roof_way ways[ROOF_KINDS]; /* to be tried first, and alone if they are as fast here */
    bool later
        [ROOF_KINDS]; /* by a later tune, which also proves: another device looks for their ways */
};

struct roof_kind {
    const char *name; /* unique, at most 31 bytes, e.g. "dram triad" */
    enum roof_measure measure;
    enum memory_level level;     /* of ROOF_BANDWIDTH; LEVEL_COUNT: none of the model's levels */
    enum memory_pattern pattern; /* of those with a level */
    enum precision precision;    /* of ROOF_COMPUTE, as `unit` */
    enum unit unit;
    size_t requested_by; /* offset in struct roof_request of the flag that asks for it */
    const char *help;    /* one line: what is measured */
};

#ifdef __cplusplus
extern "C" {
#endif

extern const char *const memory_pattern_name[]; /* "read", "write", "copy", "triad", ... */
extern const char *const unit_name[];           /* "vector", "tensor", NULL */

extern const struct roof_kind roof_kinds[ROOF_KINDS]; /* by enum roof_id */

const char *roof_kind_name(int64_t id); /* NULL: there is no such id */
int roof_kind_find(const char *name);   /* enum roof_id, or -1 */

struct roof_request roof_request_all(void); /* everything: the default */
bool roof_requested(const struct roof_request *request, int id);

#ifdef __cplusplus
}
#endif
#endif
