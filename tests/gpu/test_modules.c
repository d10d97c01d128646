/* Tests that counted FLOPs are right if modules are unloaded and others are loaded to the same
 * addresses: CUPTI must not take a new kernel for an old one. Skipped (77) without a GPU, or
 * without counters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "worker/cuda/profiling/counters.h"

enum { ROUNDS = 24, WORKS = 4, THREADS = 128, BLOCKS = 64, FMAS_MOST = 2000, SKIPPED = 77 };

static const char head[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                           ".visible .entry chain(.param .u64 out, .param .f32 factor)\n{\n"
                           ".reg .f32 %f<3>;\n.reg .b64 %d<4>;\n.reg .b32 %r<2>;\n"
                           "ld.param.u64 %d1, [out];\nld.param.f32 %f2, [factor];\n"
                           "mov.u32 %r1, %tid.x;\ncvt.rn.f32.u32 %f1, %r1;\n";
static const char fma_line[] = "fma.rn.f32 %f1, %f1, %f2, %f2;\n";
static const char tail[] = "cvta.to.global.u64 %d1, %d1;\nmul.wide.u32 %d2, %r1, 4;\n"
                           "add.s64 %d3, %d1, %d2;\nst.global.f32 [%d3], %f1;\nret;\n}\n";

struct chain {
    CUmodule module;
    CUfunction function;
    CUdeviceptr out;
    int fmas;
};

static char text[sizeof head + FMAS_MOST * sizeof fma_line + sizeof tail];

static CUresult chain_load(struct chain *chain, int fmas)
{
    char *end = text + sprintf(text, "%s", head);
    for (int i = 0; i < fmas; ++i)
        end += sprintf(end, "%s", fma_line);
    sprintf(end, "%s", tail);
    chain->fmas = fmas;
    CUresult code = cuModuleLoadData(&chain->module, text);
    return code ? code : cuModuleGetFunction(&chain->function, chain->module, "chain");
}

static enum status prepare(void *argument, struct error *error)
{
    (void)argument, (void)error;
    return STATUS_OK;
}

static enum status run(void *argument, struct error *error)
{
    struct chain *chain = argument;
    float factor = 0.5f;
    void *arguments[] = {&chain->out, &factor};
    CUresult code =
        cuLaunchKernel(chain->function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL);
    if (!code)
        code = cuCtxSynchronize();
    return code ? error_set(error, STATUS_DEVICE, "launch: %d", (int)code) : STATUS_OK;
}

/* Returns the number of wrong counts; -1: counting failed. */
static int round_count(struct counters *counters, struct chain *chains, int number)
{
    double values[WORKS][QUANTITY_COUNT];
    struct profiled_work works[WORKS];
    struct outcome outcome;
    struct error error;
    int wrong = 0;
    for (int i = 0; i < WORKS; ++i)
        works[i] = (struct profiled_work){prepare, run, &chains[i], NULL};
    if (counters_collect(counters, 0, works, WORKS, NULL, 0, values, &outcome, &error) ||
        outcome.code != COUNTED_YES)
        return -1;
    for (int i = 0; i < WORKS; ++i) {
        double expected = 2.0 * chains[i].fmas * THREADS * BLOCKS;
        double counted = values[i][QUANTITY_VECTOR_FP32];
        if (counted == expected)
            continue;
        printf("round %d, kernel %d: %.0f FLOPs counted, %.0f expected\n", number, i, counted,
               expected);
        ++wrong;
    }
    return wrong;
}

static int rounds_count(struct counters *counters, CUdeviceptr out)
{
    int wrong = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        struct chain chains[WORKS];
        for (int i = 0; i < WORKS; ++i) {
            chains[i].out = out;
            if (chain_load(&chains[i], 1 + (997 * round + 331 * i) % FMAS_MOST))
                return -1;
        }
        int now = round_count(counters, chains, round);
        if (now < 0)
            return -1;
        wrong += now;
        for (int i = 0; i < WORKS; ++i) /* in each second round half of the modules stay loaded */
            if (round % 2 == 0 || i % 2 == 0)
                cuModuleUnload(chains[i].module);
    }
    return wrong;
}

int main(void)
{
    CUcontext context;
    CUdeviceptr out;
    struct outcome refusal;
    if (cudaFree(NULL) != cudaSuccess || cuCtxGetCurrent(&context) || cuMemAlloc(&out, 1 << 16)) {
        printf("no GPU\n");
        return SKIPPED;
    }
    struct counters *counters = counters_open(0, context, &refusal);
    if (!counters) {
        printf("no counters: %s\n", refusal.reason);
        return SKIPPED;
    }
    int wrong = rounds_count(counters, out);
    bool stayed = counters_are_attached(counters);
    counters_close(counters);
    printf("%d rounds of %d kernels: %d wrong%s\n", (int)ROUNDS, (int)WORKS, wrong,
           stayed ? "" : ", CUPTI did not stay");
    return wrong != 0 || !stayed;
}
