#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "inject_bench.h"
#include "scripted_cupti.h"
#include "worker/program/handback.h"
#include "worker/program/injected.h"

int InitializeInjection(void);

CUcontext program_context;

/* ---- CUDA ---- */

CUresult cuCtxSynchronize(void)
{
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = program_context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

/* ---- what a program does ---- */

void call(CUpti_CallbackId id, const char *symbol)
{
    CUpti_CallbackData data = {.callbackSite = CUPTI_API_ENTER, .symbolName = symbol};
    if (!cupti.called || !cupti.calls[id])
        return;
    cupti.called(NULL, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
    data.callbackSite = CUPTI_API_EXIT;
    cupti.called(NULL, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

void launch(const char *kernel)
{
    call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, kernel);
}

void kernel_ran(uint64_t start, uint64_t node)
{
    cupti.records[cupti.record_count++] = (scripted_kernel){
        .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        .name = "_Z3addi",
        .start = start,
        .end = start + 100,
        .correlationId = (uint32_t)cupti.record_count,
        .graphNodeId = node,
        .gridX = 2,
        .gridY = 1,
        .gridZ = 1,
        .blockX = 64,
        .blockY = 1,
        .blockZ = 1,
        .registersPerThread = 10,
    };
}

void usual(void)
{
    CALL(cuMemAlloc_v2);
    launch("warm");
    for (int i = 0; i < 2; ++i) {
        CALL(cuProfilerStart);
        launch("a");
        launch("b");
        CALL(cuProfilerStop);
    }
}

void run_program(void (*behaviour)(void), const char *task, const char *region, struct run *run)
{
    struct error error;
    char image[4200];
    int status;
    assert_int_equal(handback_folder(run->folder, &error), STATUS_OK);
    snprintf(image, sizeof image, "/tmp/roofsweep-image-%d", (int)getpid());
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setenv("ROOFSWEEP_INJECT", task, 1);
        setenv("ROOFSWEEP_REGION", region, 1);
        setenv("ROOFSWEEP_REPORT", run->folder, 1);
        setenv("ROOFSWEEP_IMAGE", image, 1);
        setenv("ROOFSWEEP_TENSORS", "4", 1);
        setenv("ROOFSWEEP_REGIONS", run->regions ? run->regions : "1", 1);
        setenv("ROOFSWEEP_RANGES", run->ranges ? run->ranges : "region", 1);
        setenv("ROOFSWEEP_LAUNCHES", "2", 1);
        InitializeInjection();
        behaviour();
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(injected_read(run->folder, &run->found, &error), STATUS_OK);
    handback_remove(run->folder);
}

int inject_set_up(void **state)
{
    cupti_set_up(state);
    program_context = (CUcontext)&program_context;
    cupti.present = true; /* its subscriber is here from the start */
    cupti.now = 1000;
    return 0;
}
