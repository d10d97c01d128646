#include "model/roof_kind.h"

#include <string.h>

const char *const memory_pattern_name[] = {"read",   "write", "copy", "triad",
                                           "atomic", "chase", NULL};
const char *const unit_name[] = {"vector", "tensor", NULL};

#define ASKED_BY(flag) .requested_by = offsetof(struct roof_request, flag)
#define MEMORY(LEVEL, PATTERN)                                                                     \
    .measure = ROOF_BANDWIDTH, .level = LEVEL_##LEVEL, .pattern = PATTERN_##PATTERN,               \
    ASKED_BY(memory[LEVEL_##LEVEL])
#define LATENCY(LEVEL, GROUP)                                                                      \
    .measure = ROOF_TIME, .level = LEVEL_##LEVEL, .pattern = PATTERN_CHASE,                        \
    ASKED_BY(memory[LEVEL_##GROUP])
#define PATH(flag) .measure = ROOF_BANDWIDTH, .level = LEVEL_COUNT, ASKED_BY(flag)
#define COMPUTE(PRECISION, UNIT)                                                                   \
    .measure = ROOF_COMPUTE, .level = LEVEL_COUNT, .precision = PRECISION_##PRECISION,             \
    .unit = UNIT_##UNIT, ASKED_BY(compute[PRECISION_##PRECISION])
#define TIME .measure = ROOF_TIME, .level = LEVEL_COUNT, ASKED_BY(launch)

#define ROW(ID, text, row, what) [ROOF_##ID] = {.name = text, row, .help = what},
const struct roof_kind roof_kinds[ROOF_KINDS] = {ROOF_LIST(ROW)};

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
