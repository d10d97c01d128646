/* Kinds of roofs, in one const table for ranks and workers.
 *
 * A new kind is a row in ROOF_LIST, and variants that measure it in the folders of the devices that
 * have it. Only device.c (launch overheads) and the roofs.c of worker/cpu and worker/gpu depend on
 * individual kinds. This file is C and C++, because kernels/ include it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/workload.h"

/* clang-format off */
/* Macros for rows that differ in one word. roof_kind.c defines MEMORY, LATENCY, COMPUTE, PATH
 * and TIME. */
#define ROOFS_OF_LEVEL(X, LEVEL, text) \
    X(LEVEL##_READ, text " read", MEMORY(LEVEL, READ), "loads") \
    X(LEVEL##_WRITE, text " write", MEMORY(LEVEL, WRITE), "stores") \
    X(LEVEL##_COPY, text " copy", MEMORY(LEVEL, COPY), "a = b") \
    X(LEVEL##_TRIAD, text " triad", MEMORY(LEVEL, TRIAD), "a = b + s c")
#define ROOF_LATENCY(X, ID, text, LEVEL, GROUP) \
    X(ID##_LATENCY, text " latency", LATENCY(LEVEL, GROUP), \
      "from a load to the load that needs its result")
#define ROOF_VECTOR(X, PRECISION, text) \
    X(PRECISION##_VECTOR, text " vector", COMPUTE(PRECISION, VECTOR), \
      "chains of multiply-adds in registers")
#define ROOF_MMA(X, PRECISION, text) \
    X(PRECISION##_TENSOR_MMA, text " tensor mma", COMPUTE(PRECISION, TENSOR), \
      "matrix multiply-adds of a warp, from registers")
#define ROOF_WGMMA(X, PRECISION, text) \
    X(PRECISION##_TENSOR_WGMMA, text " tensor wgmma", COMPUTE(PRECISION, TENSOR), \
      "matrix multiply-adds of a warpgroup, from shared memory")
#define ROOF_TCGEN05(X, PRECISION, text) \
    X(PRECISION##_TENSOR_TCGEN05, text " tensor tcgen05", COMPUTE(PRECISION, TENSOR), \
      "matrix multiply-adds of a block, from shared to tensor memory")
#define ROOF_LIBRARY(X, PRECISION, text) \
    X(PRECISION##_TENSOR_LIBRARY, text " tensor library", COMPUTE(PRECISION, TENSOR), \
      "the library's best large matrix product")

/* X(ID, name, measure, help), in the order of measurement and display. */
#define ROOF_LIST(X) \
    ROOFS_OF_LEVEL(X, DRAM, "dram") \
    ROOFS_OF_LEVEL(X, L3, "l3") \
    ROOFS_OF_LEVEL(X, L2, "l2") \
    X(L2_ATOMIC, "l2 atomic", MEMORY(L2, ATOMIC), \
      "fp32 additions of the cache, each element by one thread") \
    ROOFS_OF_LEVEL(X, L1, "l1") \
    X(SHARED_READ, "shared read", PATH(memory[LEVEL_L1]), \
      "loads from the multiprocessors' shared memory") \
    ROOF_LATENCY(X, DRAM, "dram", DRAM, DRAM) \
    ROOF_LATENCY(X, L2, "l2", L2, L2) \
    ROOF_LATENCY(X, L1, "l1", L1, L1) \
    ROOF_LATENCY(X, SHARED, "shared", COUNT, L1) \
    X(HOST_TO_DEVICE, "host to device", PATH(transfer), "copy engine, from pinned memory") \
    X(DEVICE_TO_HOST, "device to host", PATH(transfer), "copy engine, to pinned memory") \
    ROOF_VECTOR(X, FP64, "fp64") \
    ROOF_VECTOR(X, FP32, "fp32") \
    ROOF_VECTOR(X, FP16, "fp16") \
    ROOF_VECTOR(X, BF16, "bf16") \
    ROOF_VECTOR(X, INT8, "int8") \
    ROOF_MMA(X, FP64, "fp64") \
    ROOF_MMA(X, TF32, "tf32") \
    ROOF_MMA(X, FP16, "fp16") \
    ROOF_MMA(X, BF16, "bf16") \
    ROOF_MMA(X, FP8, "fp8") \
    ROOF_MMA(X, INT8, "int8") \
    ROOF_WGMMA(X, TF32, "tf32") \
    ROOF_WGMMA(X, FP16, "fp16") \
    ROOF_WGMMA(X, BF16, "bf16") \
    ROOF_WGMMA(X, FP8, "fp8") \
    ROOF_WGMMA(X, INT8, "int8") \
    ROOF_TCGEN05(X, TF32, "tf32") \
    ROOF_TCGEN05(X, FP16, "fp16") \
    ROOF_TCGEN05(X, BF16, "bf16") \
    ROOF_TCGEN05(X, FP8, "fp8") \
    ROOF_TCGEN05(X, FP4, "fp4") \
    ROOF_TCGEN05(X, INT8, "int8") \
    ROOF_LIBRARY(X, FP64, "fp64") \
    ROOF_LIBRARY(X, TF32, "tf32") \
    ROOF_LIBRARY(X, FP16, "fp16") \
    ROOF_LIBRARY(X, BF16, "bf16") \
    ROOF_LIBRARY(X, FP8, "fp8") \
    ROOF_LIBRARY(X, FP4, "fp4") \
    ROOF_LIBRARY(X, INT8, "int8") \
    X(LAUNCH_HOST, "launch host", TIME, "host time of an asynchronous launch") \
    X(LAUNCH_LATENCY, "launch latency", TIME, \
      "from the launch of an empty kernel to the host's knowledge of its end") \
    X(LAUNCH_GAP, "launch gap", TIME, \
      "from one empty kernel (CPU: OpenMP region) to the next, all queued") \
    X(LAUNCH_GAP_GRAPH, "launch gap graph", TIME, \
      "from one empty kernel to the next that depends on it, in a graph") \
    X(LAUNCH_GAP_DEPENDENT, "launch gap dependent", TIME, \
      "from one small kernel to the next, which needs its result, all queued") \
    X(LAUNCH_GAP_DEPENDENT_GRAPH, "launch gap dependent graph", TIME, \
      "from one small kernel to the next, which needs its result, in a graph")
/* clang-format on */

#define ROOF_ID(ID, name, row, help) ROOF_##ID,
enum roof_id { ROOF_LIST(ROOF_ID) ROOF_KINDS };

/* Bytes read plus written per second, FLOPs per second (int8: operations), or seconds. */
enum roof_measure { ROOF_BANDWIDTH, ROOF_COMPUTE, ROOF_TIME };

/* Patterns of memory accesses: loads; stores; a = b; a = b + s c; atomic additions in the cache; a
 * chain of loads, each of which returns the address of the next. */
enum memory_pattern {
    PATTERN_READ,
    PATTERN_WRITE,
    PATTERN_COPY,
    PATTERN_TRIAD,
    PATTERN_ATOMIC,
    PATTERN_CHASE,
    PATTERN_COUNT
};

enum unit { UNIT_VECTOR, UNIT_TENSOR };

/* Roofs and conditions that a manifest requests. A device measures the requested roofs that it has.
 * A node's only device measures no roofs together. */
struct roof_request {
    bool memory[LEVEL_COUNT]; /* l1 includes shared memory */
    bool compute[PRECISION_COUNT];
    bool launch;
    bool transfer;     /* host to device, device to host */
    bool links;        /* between devices of the node, link.h */
    bool condition[2]; /* by enum roof_condition */
    bool energy; /* also measure energy: J per byte of memory roofs, J per FLOP of compute roofs */
};

struct roof_kind {
    const char *name; /* unique, at most 31 bytes, e.g. "dram triad" */
    enum roof_measure measure;
    enum memory_level level;     /* LEVEL_COUNT: none, or shared memory */
    enum memory_pattern pattern; /* if there is a level */
    enum precision precision;    /* ROOF_COMPUTE, with `unit` */
    enum unit unit;
    size_t requested_by; /* offset in struct roof_request of the flag that requests this roof */
    const char *help;    /* one line */
};

#ifdef __cplusplus
extern "C" {
#endif

extern const char *const memory_pattern_name[]; /* "read", "write", "copy", "triad", ... */
extern const char *const unit_name[];           /* "vector", "tensor", NULL */

extern const struct roof_kind roof_kinds[ROOF_KINDS]; /* by enum roof_id */

const char *roof_kind_name(int64_t id); /* NULL: no such id */
int roof_kind_find(const char *name);   /* enum roof_id, or -1 */

struct roof_request roof_request_all(void); /* everything: the default */
bool roof_requested(const struct roof_request *request, int id);

#ifdef __cplusplus
}
#endif
