#include "worker/cuda/inject/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {
    [TASK_TIME] = "time", [TASK_TRACE] = "trace", [TASK_COUNT] = "count"};
static const char nvtx[] = "nvtx ";

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static bool region_read(struct task *task)
{
    const char *region = variable("ROOFSWEEP_REGION");
    if (strcmp(region, "profiler") == 0)
        task->region = TASK_PROFILER;
    else if (strcmp(region, "all") == 0)
        task->region = TASK_ALL;
    else if (strncmp(region, nvtx, strlen(nvtx)) == 0)
        task->region = TASK_NVTX;
    else
        return false;
    if (task->region == TASK_NVTX)
        snprintf(task->range, sizeof task->range, "%s", region + strlen(nvtx));
    return true;
}

bool task_read(struct task *task)
{
    const char *kind = variable("ROOFSWEEP_INJECT");
    struct task read = {.kind = TASK_TIME};
    while (read.kind <= TASK_COUNT && strcmp(kinds[read.kind], kind) != 0)
        ++read.kind;
    if (read.kind > TASK_COUNT || !region_read(&read))
        return false;
    snprintf(read.folder, sizeof read.folder, "%s", variable("ROOFSWEEP_REPORT"));
    snprintf(read.image, sizeof read.image, "%s", variable("ROOFSWEEP_IMAGE"));
    read.tensors = (unsigned)strtoul(variable("ROOFSWEEP_TENSORS"), NULL, 10);
    *task = read;
    return read.folder[0] != '\0';
}
