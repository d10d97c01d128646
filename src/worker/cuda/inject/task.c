#include "worker/cuda/inject/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {[TASK_TIME] = "time",
                                    [TASK_TRACE] = "trace",
                                    [TASK_COUNT] = "count",
                                    [TASK_PROFILE] = "profile"};
static const char *const ranges[] = {
    [TASK_REGION] = "region", [TASK_LAUNCHES] = "launches", [TASK_REPLAY] = "replay"};
enum { KINDS = sizeof kinds / sizeof *kinds, RANGES = sizeof ranges / sizeof *ranges };
static const char nvtx[] = "nvtx ";

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

/* Its index; -1: it is none of them. */
static int word_find(const char *const *words, int count, const char *word)
{
    for (int i = 0; i < count; ++i)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
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
    int found = word_find(kinds, KINDS, kind),
        by = word_find(ranges, RANGES, variable("ROOFSWEEP_RANGES"));
    if (found < 0 || !region_read(&read))
        return false;
    read.kind = (enum task_kind)found;
    read.ranges = by < 0 ? TASK_REGION : (enum task_ranges)by;
    read.regions = strtoul(variable("ROOFSWEEP_REGIONS"), NULL, 10);
    read.launches = strtoul(variable("ROOFSWEEP_LAUNCHES"), NULL, 10);
    snprintf(read.folder, sizeof read.folder, "%s", variable("ROOFSWEEP_REPORT"));
    snprintf(read.image, sizeof read.image, "%s", variable("ROOFSWEEP_IMAGE"));
    read.tensors = (unsigned)strtoul(variable("ROOFSWEEP_TENSORS"), NULL, 10);
    *task = read;
    return read.folder[0] != '\0';
}
