#include "scripted_cuda.h"

#include "scripted_bench.h"

#include <math.h>
#include <string.h>

#include "worker/gpu/arena.h"
#include "worker/gpu/vendor.h"
#include "worker/cuda/profile.h"
#include "worker/gpu/roof_family.h"

struct bench bench;

/* The roofs of cuBLASLt are not scripted: this device has none. */
static const void *no_row(struct roofs *roofs, int kind, int n)
{
    (void)roofs, (void)kind, (void)n;
    return NULL;
}
const struct roof_family roofs_library = {.row = no_row};

void bench_open(void)
{
    const int bus_bits = 6016;
    bench.gpu = (struct gpu){
        .index = script.own,
        .stream = script_stream(),
        .capability = CAPABILITY,
        .multiprocessors = MULTIPROCESSORS,
        .l2_bytes = L2_BYTES,
        .chip = chip_find(CAPABILITY, "NVIDIA H200"),
        .power_limit = 700.0,
        .theory = chip_theory(chip_find(CAPABILITY, "NVIDIA H200"), MULTIPROCESSORS, 1.98e9, 3.2e9,
                              bus_bits),
        .arena = arena_open(&bench.gpu),
    };
    script_arena = bench.gpu.arena;
    script_roofs = (struct script_roofs){&bench.gpu.theory, &bench.gpu.power_limit, profiler_count};
    bench.profiler = profile_open(&bench.gpu);
    bench.counters[0] = '\0';
    assert_non_null(bench.profiler);
    cudaSetDevice(script.own);
}

void bench_release_roofs(void)
{
    roofs_close(bench.roofs);
    bench.roofs = NULL;
}

void bench_close(void)
{
    bench_release_roofs();
    profiler_close(bench.profiler);
    arena_close(bench.gpu.arena);
    bench = (struct bench){0};
    script_assert_clean();
}

int bench_set_up(void **state)
{
    (void)state;
    script_reset();
    bench_open();
    return 0;
}

int bench_tear_down(void **state)
{
    (void)state;
    bench_close();
    return 0;
}

enum status bench_tune(const struct roof_request *request, bool prove, bool found[ROOF_KINDS],
                       struct error *error)
{
    struct outcome counters = {.code = OUTCOME_MISSING};
    enum status status =
        prove ? profile_try(bench.profiler, &bench.gpu, &counters, error) : STATUS_OK;
    outcome_format(&counters, counted_word, bench.counters);
    if (status == STATUS_OK)
        status =
            roofs_tune(&bench.roofs, &bench.gpu,
                       counters.code == COUNTED_YES ? bench.profiler : NULL, request, found, error);
    if (status != STATUS_DEVICE)
        profiler_leave(bench.profiler);
    return status;
}
