#include "worker/cuda/inject/tracing.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cupti.h>

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 activity_kernel;
typedef CUpti_ActivityMemcpy6 activity_copy;
#else
typedef CUpti_ActivityKernel9 activity_kernel; /* CUDA 12.8, 12.9 */
typedef CUpti_ActivityMemcpy5 activity_copy;
#endif
typedef CUpti_ActivityMemset4 activity_fill;

enum { BUFFER_BYTES = 1 << 20, BUFFER_ALIGNMENT = 8, NAME_BYTES = 1000 };

/* CUPTI's buffer callbacks have no user argument, and CUPTI may call them on a thread of its own. */
static struct {
    pthread_mutex_t lock;
    struct notes *notes; /* NULL: records are dropped */
    uint64_t begin;      /* ns, of CUPTI's clock */
    const char *problem;
} tracing = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* From the C++ runtime library; the Itanium ABI fixes its C signature. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

static void kernel_note(const activity_kernel *a)
{
    int failed = 1;
    const char *mangled = a->name ? a->name : "unknown";
    if (a->start < tracing.begin)
        return;
    if (a->end <= a->start)
        tracing.problem = "a kernel without timestamps";
    char *name = __cxa_demangle(mangled, NULL, NULL, &failed);
    note(tracing.notes, "kernel %llu %llu %u %llu %d %d %d %d %d %d %d %d %d %.*s",
         (unsigned long long)a->start, (unsigned long long)a->end, a->correlationId,
         (unsigned long long)a->graphNodeId, a->gridX, a->gridY, a->gridZ, a->blockX, a->blockY,
         a->blockZ, a->registersPerThread, a->staticSharedMemory, a->dynamicSharedMemory,
         NAME_BYTES, failed ? mangled : name);
    free(name);
}

static void moved_note(const char *word, uint64_t start, uint64_t end, uint64_t bytes)
{
    if (start >= tracing.begin)
        note(tracing.notes, "%s %llu %llu %llu", word, (unsigned long long)start,
             (unsigned long long)end, (unsigned long long)bytes);
}

static void activity_note(const CUpti_Activity *activity)
{
    const activity_copy *copy = (const activity_copy *)activity;
    const activity_fill *fill = (const activity_fill *)activity;
    if (activity->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        kernel_note((const activity_kernel *)activity);
    else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
        moved_note("copy", copy->start, copy->end, copy->bytes);
    else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMSET)
        moved_note("fill", fill->start, fill->end, fill->bytes);
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *records)
{
    *buffer = aligned_alloc(BUFFER_ALIGNMENT, BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *records = 0;
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                      size_t size, size_t valid)
{
    (void)size;
    CUpti_Activity *activity = NULL;
    size_t dropped = 0;
    pthread_mutex_lock(&tracing.lock);
    while (tracing.notes && cuptiActivityGetNextRecord(buffer, valid, &activity) == CUPTI_SUCCESS)
        activity_note(activity);
    if (tracing.notes &&
        cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS && dropped)
        tracing.problem = "CUPTI dropped records";
    pthread_mutex_unlock(&tracing.lock);
    free(buffer);
}

static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};
enum { KINDS = sizeof kinds / sizeof *kinds };

CUptiResult tracing_enable(void)
{
    CUptiResult code = cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
    for (int i = 0; i < KINDS && code == CUPTI_SUCCESS; ++i)
        code = cuptiActivityEnable(kinds[i]);
    return code;
}

CUptiResult tracing_begin(struct notes *notes)
{
    uint64_t now = 0;
    CUptiResult code = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (code == CUPTI_SUCCESS)
        code = cuptiGetTimestamp(&now);
    pthread_mutex_lock(&tracing.lock);
    tracing.notes = notes;
    tracing.begin = now;
    tracing.problem = NULL;
    pthread_mutex_unlock(&tracing.lock);
    return code;
}

CUptiResult tracing_end(const char **problem)
{
    CUptiResult code = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    for (int i = 0; i < KINDS; ++i)
        cuptiActivityDisable(kinds[i]);
    pthread_mutex_lock(&tracing.lock);
    tracing.notes = NULL;
    *problem = tracing.problem;
    pthread_mutex_unlock(&tracing.lock);
    return code;
}
