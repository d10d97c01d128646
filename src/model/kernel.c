#include "model/kernel.h"

#include <stdlib.h>
#include <string.h>

/* By enum activity. */
/* clang-format off */
const char *const activity_name[ACTIVITY_COUNT + 1] = {
    "dram", "l2", "data_pipe", "issue", "fma", "fp64", "tensor", "threads", "multiprocessors",
    "stall_barrier", "stall_branch_resolving", "stall_dispatch_stall", "stall_drain", "stall_gmma",
    "stall_imc_miss", "stall_lg_throttle", "stall_long_scoreboard", "stall_math_pipe_throttle",
    "stall_membar", "stall_mio_throttle", "stall_misc", "stall_no_instruction",
    "stall_short_scoreboard", "stall_sleeping", "stall_tex_throttle", "stall_wait",
    "stall_not_selected", "stall_selected", NULL};
/* clang-format on */

const char *const kernel_limit_name[] = {"threads", "registers", "shared_memory",
                                         "blocks",  "barriers",  NULL};

bool kernel_same(const struct kernel *a, const struct kernel *b)
{
    return a->grid_x == b->grid_x && a->grid_y == b->grid_y && a->grid_z == b->grid_z &&
           a->block_x == b->block_x && a->block_y == b->block_y && a->block_z == b->block_z &&
           a->registers == b->registers && a->static_shared == b->static_shared &&
           a->dynamic_shared == b->dynamic_shared && a->cluster == b->cluster &&
           strcmp(a->name, b->name) == 0;
}

static int calls_compare(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;
    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static int starts_compare(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

void launches_sort(struct launch *launches, size_t count)
{
    if (count > 0)
        qsort(launches, count, sizeof *launches, calls_compare);
}

double launches_busy_time(struct launch *launches, size_t count)
{
    uint64_t end = 0, busy = 0;
    if (count > 0)
        qsort(launches, count, sizeof *launches, starts_compare);
    for (size_t i = 0; i < count; ++i) {
        const struct launch *launch = &launches[i];
        if (launch->end > end)
            busy += launch->end - (launch->start > end ? launch->start : end);
        end = launch->end > end ? launch->end : end;
    }
    return 1e-9 * (double)busy;
}
