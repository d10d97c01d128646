/* What stands in for NVML, and for hardware counters, which counts what the scripted
 * kernels say that they did. */
#include "scripted_cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/gpu/nvml.h"
#include "worker/cuda/profiling/counters.h"
#include "worker/cuda/profiling/tracer.h"

/* ---- NVML ---- */

int nvml_processes(struct nvml *nvml)
{
    (void)nvml;
    return script.processes;
}

/* ---- tracer: there is nothing to trace ---- */

struct tracer *tracer_open(void)
{
    return malloc(1);
}

void tracer_close(struct tracer *tracer)
{
    free(tracer);
}

const struct trace *tracer_last(const struct tracer *tracer)
{
    static const struct trace nothing;
    assert_non_null(tracer);
    return &nothing;
}

bool tracer_is_attached(const struct tracer *tracer)
{
    assert_non_null(tracer);
    return false;
}

void tracer_detach(struct tracer *tracer)
{
    assert_non_null(tracer);
}

enum status tracer_run(struct tracer *tracer, const struct profiled_work *work, bool stays,
                       struct outcome *outcome, struct error *error)
{
    (void)tracer, (void)work, (void)stays, (void)outcome, (void)error;
    fail_msg("nothing is traced");
    return STATUS_FAILED;
}

/* ---- counters ---- */

struct counters *counters_open(int device, CUcontext context, struct outcome *refusal)
{
    (void)context, (void)refusal;
    assert_int_equal(device, script.own);
    assert_false(machine.opened);
    machine.opened = machine.attached = true;
    return (struct counters *)&machine.opened;
}

void counters_close(struct counters *counters)
{
    if (!counters)
        return;
    machine.opened = machine.tried = false;
    machine.attached = false;
}

void counters_detach(struct counters *counters)
{
    assert_non_null(counters);
    machine.attached = false;
}

bool counters_are_attached(const struct counters *counters)
{
    return counters && machine.attached;
}

bool counters_have(const struct counters *counters, enum quantity quantity)
{
    assert_non_null(counters);
    return quantity != script.absent;
}

static void counts_tell(const double *counts, unsigned tensors, double values[QUANTITY_COUNT])
{
    for (int i = 0; i < QUANTITY_COUNT; ++i) {
        unsigned tensor = quantity_tensor((enum quantity)i);
        bool told = i != (int)script.absent && (!tensor || tensor & tensors);
        if (i >= QUANTITY_ACTIVITY || tensors == QUANTITY_ACTIVITIES)
            values[i] = i >= QUANTITY_ACTIVITY && tensors == QUANTITY_ACTIVITIES ? 0.5 : NAN;
        else
            values[i] = told ? counts[i] * script.counted[i] : NAN;
    }
}

/* Whether all of it is counted, and CUPTI still attached. */
static void outcome_tell(const char *text, struct outcome *outcome)
{
    assert_true(outcome_parse(text, counted_word, outcome));
    machine.attached = outcome->code == COUNTED_YES;
}

/* The first is the preflight: one or two. */
static enum status preflight(unsigned tensors, const struct profiled_work *work,
                             struct outcome *outcome, struct error *error)
{
    bool refused = tensors && script.no_tensors;
    machine.tried = !refused;
    TRY(work->prepare(work->argument, error));
    TRY(work->run(work->argument, error));
    outcome_tell(refused ? script.no_tensors : script.preflight, outcome);
    machine.tried = machine.tried && (!tensors || outcome->code == COUNTED_YES);
    return STATUS_OK;
}

enum status counters_collect(struct counters *counters, unsigned tensors,
                             const struct profiled_work *works, size_t count,
                             double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                             struct error *error)
{
    bool stayed = machine.attached;
    assert_non_null(counters);
    if (!machine.tried)
        return preflight(tensors, works, outcome, error);
    ++script.collections;
    script.afresh += !stayed;
    machine.attached = true;
    machine.cache = SCRIPT_FOREIGN;
    for (size_t i = 0; i < count; ++i) {
        TRY(works[i].prepare(works[i].argument, error));
        memset(machine.counts, 0, sizeof machine.counts);
        script.counted_cache = machine.cache;
        TRY(works[i].run(works[i].argument, error));
        assert_true(machine.device <= machine.host || script_is_lost());
        counts_tell(machine.counts, tensors, values[i]);
    }
    outcome_tell(script.collection, outcome);
    for (size_t i = 0; i < count && outcome->code != COUNTED_YES; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            values[i][j] = NAN;
    return STATUS_OK;
}

/* All launches of a scripted work do the same. */
enum status counters_collect_launches(struct counters *counters, unsigned tensors,
                                      const struct profiled_work *work, size_t launches,
                                      size_t most, double (*values)[QUANTITY_COUNT],
                                      struct outcome *outcome, struct error *error)
{
    assert_non_null(counters);
    assert_true(launches > 0 && launches <= most);
    machine.attached = true;
    TRY(work->prepare(work->argument, error));
    memset(machine.counts, 0, sizeof machine.counts);
    TRY(work->run(work->argument, error));
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        machine.counts[i] /= (double)launches;
    for (size_t i = 0; i < launches; ++i)
        counts_tell(machine.counts, tensors, values[i]);
    outcome_tell(tensors == QUANTITY_ACTIVITIES ? script.activities : script.collection, outcome);
    return STATUS_OK;
}
