#include "model/roof_kind.h"

#include <string.h>

const char *const memory_pattern_name[] = {"read", "write", "copy", "triad", "atomic", NULL};
const char *const unit_name[] = {"vector", "tensor", NULL};

#define ASKED_BY(flag) .requested_by = offsetof(struct roof_request, flag)

#define MEMORY(id, text, of_level, of_pattern, what)                                               \
    [id] = {.name = text,                                                                          \
            .measure = ROOF_BANDWIDTH,                                                             \
            .level = of_level,                                                                     \
            .pattern = of_pattern,                                                                 \
            ASKED_BY(memory[of_level]),                                                            \
            .help = what}
#define LEVEL_ROOFS(LEVEL, text)                                                                   \
    MEMORY(ROOF_##LEVEL##_READ, text " read", LEVEL_##LEVEL, PATTERN_READ, "loads"),               \
        MEMORY(ROOF_##LEVEL##_WRITE, text " write", LEVEL_##LEVEL, PATTERN_WRITE, "stores"),       \
        MEMORY(ROOF_##LEVEL##_COPY, text " copy", LEVEL_##LEVEL, PATTERN_COPY, "a = b"),           \
        MEMORY(ROOF_##LEVEL##_TRIAD, text " triad", LEVEL_##LEVEL, PATTERN_TRIAD, "a = b + s c")

/* What lies at none of the model's levels. */
#define PATH(id, text, flag, what)                                                                 \
    [id] = {.name = text,                                                                          \
            .measure = ROOF_BANDWIDTH,                                                             \
            .level = LEVEL_COUNT,                                                                  \
            ASKED_BY(flag),                                                                        \
            .help = what}

#define COMPUTE(id, text, of_precision, of_unit, what)                                             \
    [id] = {.name = text,                                                                          \
            .measure = ROOF_COMPUTE,                                                               \
            .level = LEVEL_COUNT,                                                                  \
            .precision = of_precision,                                                             \
            .unit = of_unit,                                                                       \
            ASKED_BY(compute[of_precision]),                                                       \
            .help = what}
#define VECTOR(PRECISION, text)                                                                    \
    COMPUTE(ROOF_##PRECISION##_VECTOR, text " vector", PRECISION_##PRECISION, UNIT_VECTOR,         \
            "chains of multiply-adds in registers")
#define MMA(PRECISION, text)                                                                       \
    COMPUTE(ROOF_##PRECISION##_TENSOR_MMA, text " tensor mma", PRECISION_##PRECISION, UNIT_TENSOR, \
            "matrix multiply-adds of a warp, from registers")
#define WGMMA(PRECISION, text)                                                                     \
    COMPUTE(ROOF_##PRECISION##_TENSOR_WGMMA, text " tensor wgmma", PRECISION_##PRECISION,          \
            UNIT_TENSOR, "matrix multiply-adds of a warpgroup, from shared memory")
#define TCGEN05(PRECISION, text)                                                                   \
    COMPUTE(ROOF_##PRECISION##_TENSOR_TCGEN05, text " tensor tcgen05", PRECISION_##PRECISION,      \
            UNIT_TENSOR, "matrix multiply-adds of a block, from shared to tensor memory")
#define LIBRARY(PRECISION, text)                                                                   \
    COMPUTE(ROOF_##PRECISION##_TENSOR_LIBRARY, text " tensor library", PRECISION_##PRECISION,      \
            UNIT_TENSOR, "the library's best large matrix product")

#define TIME(id, text, what)                                                                       \
    [id] = {                                                                                       \
        .name = text, .measure = ROOF_TIME, .level = LEVEL_COUNT, ASKED_BY(launch), .help = what}

const struct roof_kind roof_kinds[ROOF_KINDS] = {
    LEVEL_ROOFS(DRAM, "dram"),
    LEVEL_ROOFS(L3, "l3"),
    LEVEL_ROOFS(L2, "l2"),
    MEMORY(ROOF_L2_ATOMIC, "l2 atomic", LEVEL_L2, PATTERN_ATOMIC,
           "fp32 additions of the cache, each element by one thread"),
    LEVEL_ROOFS(L1, "l1"),
    PATH(ROOF_SHARED_READ, "shared read", memory[LEVEL_L1],
         "loads from the multiprocessors' shared memory"),
    PATH(ROOF_HOST_TO_DEVICE, "host to device", transfer, "copy engine, from pinned memory"),
    PATH(ROOF_DEVICE_TO_HOST, "device to host", transfer, "copy engine, to pinned memory"),
    PATH(ROOF_DEVICE_TO_DEVICE, "device to device", transfer,
         "copy engine, to the next device of the node"),
    VECTOR(FP64, "fp64"),
    VECTOR(FP32, "fp32"),
    VECTOR(FP16, "fp16"),
    VECTOR(BF16, "bf16"),
    MMA(FP64, "fp64"),
    MMA(TF32, "tf32"),
    MMA(FP16, "fp16"),
    MMA(BF16, "bf16"),
    MMA(FP8, "fp8"),
    MMA(INT8, "int8"),
    WGMMA(TF32, "tf32"),
    WGMMA(FP16, "fp16"),
    WGMMA(BF16, "bf16"),
    WGMMA(FP8, "fp8"),
    WGMMA(INT8, "int8"),
    TCGEN05(TF32, "tf32"),
    TCGEN05(FP16, "fp16"),
    TCGEN05(BF16, "bf16"),
    TCGEN05(FP8, "fp8"),
    TCGEN05(FP4, "fp4"),
    TCGEN05(INT8, "int8"),
    LIBRARY(FP64, "fp64"),
    LIBRARY(TF32, "tf32"),
    LIBRARY(FP16, "fp16"),
    LIBRARY(BF16, "bf16"),
    LIBRARY(FP8, "fp8"),
    LIBRARY(FP4, "fp4"),
    LIBRARY(INT8, "int8"),
    TIME(ROOF_LAUNCH_HOST, "launch host", "host time of an asynchronous launch"),
    TIME(ROOF_LAUNCH_LATENCY, "launch latency",
         "from the launch of an empty kernel to the host's knowledge of its end"),
    TIME(ROOF_LAUNCH_GAP, "launch gap",
         "from one empty kernel (CPU: OpenMP region) to the next, all queued"),
    TIME(ROOF_LAUNCH_GAP_GRAPH, "launch gap graph",
         "from one empty kernel to the next that depends on it, in a graph"),
    TIME(ROOF_LAUNCH_GAP_DEPENDENT, "launch gap dependent",
         "from one small kernel to the next, which needs its result, all queued"),
    TIME(ROOF_LAUNCH_GAP_DEPENDENT_GRAPH, "launch gap dependent graph",
         "from one small kernel to the next, which needs its result, in a graph"),
};

const char *roof_kind_name(int64_t id)
{
    return id >= 0 && id < ROOF_KINDS ? roof_kinds[id].name : NULL;
}

int roof_kind_find(const char *name)
{
    for (int id = 0; id < ROOF_KINDS; ++id)
        if (strcmp(roof_kinds[id].name, name) == 0)
            return id;
    return -1;
}

struct roof_request roof_request_all(void)
{
    struct roof_request all = {.launch = true, .transfer = true};
    memset(all.memory, true, sizeof all.memory);
    memset(all.compute, true, sizeof all.compute);
    memset(all.condition, true, sizeof all.condition);
    return all;
}

bool roof_requested(const struct roof_request *request, int id)
{
    return *(const bool *)((const char *)request + roof_kinds[id].requested_by);
}
