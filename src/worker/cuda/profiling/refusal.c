#include "worker/cuda/profiling/refusal.h"

#include <stddef.h>
#include <cupti.h>

static const struct cause {
    CUptiResult code;
    const char *what, *advice;
} causes[] = {
    {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "this user may not read hardware counters",
     "ask the administrator to load the driver with NVreg_RestrictProfilingToAdminUsers=0 (options "
     "nvidia ... in /etc/modprobe.d), or run with CAP_SYS_ADMIN"},
    {CUPTI_ERROR_HARDWARE_BUSY, "another process holds this GPU's counters",
     "end other profilers on this GPU; where DCGM watches it, the administrator pauses that with "
     "dcgmi profile --pause"},
    {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "another profiler is attached to this process",
     "run without ncu, nsys or CUDA_INJECTION64_PATH"},
    {CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "the GPU is in confidential computing mode",
     "the administrator must turn that mode off or offer another GPU"},
    {CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, "the GPU is a slice of a shared one (MIG)",
     "ask for a whole GPU"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "the GPU is virtual", "ask for a physical GPU"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
     "the hypervisor forbids profiling of this virtual GPU",
     "the administrator sets enable_profiling for it, or ask for a physical GPU"},
    {CUPTI_ERROR_NOT_COMPATIBLE, "the driver is too old for this CUPTI",
     "ask the administrator for a newer driver, or build with an older CUDA toolkit"},
    {CUPTI_ERROR_API_NOT_IMPLEMENTED, "the driver is too old for this CUPTI",
     "ask the administrator for a newer driver, or build with an older CUDA toolkit"},
    {CUPTI_ERROR_NOT_SUPPORTED, "CUPTI does not support this GPU with this driver",
     "ask the administrator for a newer driver, or build with a newer CUDA toolkit"},
    {CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, "the GPU is one for mining, without counters",
     "ask for another GPU"},
    {CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, "no counters under this Windows subsystem",
     "run on Linux itself"},
};

void refusal_set(CUptiResult code, const char *call, struct outcome *outcome)
{
    const char *name = "unknown CUPTI error";
    cuptiGetResultString(code, &name);
    for (size_t i = 0; i < sizeof causes / sizeof *causes; ++i)
        if (causes[i].code == code) {
            outcome_set(outcome, COUNTED_REFUSED, "%s (%s); %s", causes[i].what, name,
                        causes[i].advice);
            return;
        }
    outcome_set(outcome, COUNTED_REFUSED, "%s: %s", call, name);
}
