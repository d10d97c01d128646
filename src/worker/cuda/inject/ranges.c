/* Ranges of NVTX, by NVTX_INJECTION64_PATH. CUPTI takes no part in it. */
#include "worker/cuda/inject/ranges.h"

#include <string.h>
#include <nvtx3/nvToolsExt.h>

#include "worker/cuda/inject/inject.h"

/* Ranges nest in each thread; the region is the outermost of its name. */
static _Thread_local int depth, region_depth;

static void pushed(const char *name)
{
    const struct task *task = inject_task();
    ++depth;
    if (region_depth == 0 && task && name && strcmp(name, task->range) == 0) {
        region_depth = depth;
        inject_region(true);
    }
}

static void popped(void)
{
    if (region_depth != 0 && region_depth == depth) {
        region_depth = 0;
        inject_region(false);
    }
    depth -= depth > 0;
}

static const char *name_of(const nvtxEventAttributes_t *event)
{
    return event && event->messageType == NVTX_MESSAGE_TYPE_ASCII ? event->message.ascii : NULL;
}

static int NVTX_API push(const char *name)
{
    pushed(name);
    return depth;
}

static int NVTX_API push_event(const nvtxEventAttributes_t *event)
{
    pushed(name_of(event));
    return depth;
}

static int NVTX_API pop(void)
{
    popped();
    return depth;
}

static int NVTX_API push_domain(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    (void)domain;
    return push_event(event);
}

static int NVTX_API pop_domain(nvtxDomainHandle_t domain)
{
    (void)domain;
    return pop();
}

struct slot {
    NvtxCallbackModule module;
    unsigned index;
    void (*function)(void);
};

static const struct slot slots[] = {
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA, (void (*)(void))push},
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushEx, (void (*)(void))push_event},
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop, (void (*)(void))pop},
    {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, (void (*)(void))push_domain},
    {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, (void (*)(void))pop_domain},
};

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
    const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
    if (!callbacks || !inject_begin() || inject_task()->region != TASK_NVTX)
        return 0;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; ++i) {
        NvtxFunctionTable table = NULL;
        unsigned size = 0;
        if (callbacks->GetModuleFunctionTable(slots[i].module, &table, &size) &&
            slots[i].index < size && table[slots[i].index])
            *(void (**)(void))table[slots[i].index] = slots[i].function;
    }
    return 1;
}
