/* What stands in for the hardware counters, and for NVML. */
#include "scripted_machine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "worker/cuda/gpu/cuda_internal.h"

/* ---- NVML ---- */

int nvml_processes(struct nvml *nvml)
{
    (void)nvml;
    return script.processes;
}

double nvml_energy(struct nvml *nvml)
{
    (void)nvml;
    return NAN;
}

void nvml_sample(struct nvml *nvml, cudaEvent_t last, const struct conditions *seen)
{
    (void)nvml;
    *seen->sm_clock = 1e9; /* not what the device's own counters say */
    *seen->memory_clock = script.memory_clock;
    if (cudaEventQuery(last) == cudaErrorNotReady)
        *seen->throttled = 0;
}

double nvml_power(struct nvml *nvml, double since)
{
    (void)nvml;
    return clock_epoch() - since > 0.05 ? 700.0 : NAN;
}

/* ---- CUPTI: there is nothing to trace ---- */

void attachment_drop(bool *stands_by)
{
    assert_false(*stands_by);
}

/* ---- counters ---- */

struct counters *counters_open(int device, CUcontext context, char refusal[COUNTERS_TEXT])
{
    (void)context, (void)refusal;
    assert_int_equal(device, script.own);
    assert_false(machine.opened);
    machine.opened = machine.attached = machine.stand_by = true;
    return (struct counters *)&machine.opened;
}

void counters_close(struct counters *counters)
{
    if (!counters)
        return;
    machine.opened = machine.tried = false;
    machine.attached = false;
}

void counters_stand_by(struct counters *counters, bool stand_by)
{
    assert_non_null(counters);
    machine.stand_by = stand_by;
    machine.asked = 0;
    if (!stand_by)
        machine.attached = false;
}

bool counters_attached(const struct counters *counters)
{
    return counters && machine.attached;
}

unsigned counters_asked(const struct counters *counters)
{
    assert_non_null(counters);
    return machine.asked;
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
        values[i] = told ? counts[i] * script.counted[i] : NAN;
    }
}

enum status counters_collect_each(struct counters *counters, unsigned tensors,
                                  const struct counters_work *works, size_t works_count,
                                  double (*values)[QUANTITY_COUNT], char problem[COUNTERS_TEXT],
                                  struct error *error)
{
    bool stood_by = machine.attached;
    assert_non_null(counters);
    ++script.collections;
    machine.asked |= tensors;
    script.afresh += !stood_by;
    machine.attached = true;
    machine.cache = SCRIPT_FOREIGN;
    for (size_t i = 0; i < works_count; ++i) {
        TRY(works[i].prepare(works[i].argument, error));
        memset(machine.counts, 0, sizeof machine.counts);
        script.counted_cache = machine.cache;
        TRY(works[i].run(works[i].argument, error));
        assert_true(machine.device <= machine.host || script_is_lost());
        counts_tell(script.stale && stood_by ? machine.counts_before : machine.counts, tensors,
                    values[i]);
        memcpy(machine.counts_before, machine.counts, sizeof machine.counts);
    }
    snprintf(problem, COUNTERS_TEXT, "%s", script.collection);
    machine.attached = machine.stand_by && strcmp(script.collection, "counted") == 0;
    return STATUS_OK;
}

/* The first is the preflight: one or two. */
enum status counters_collect(struct counters *counters, unsigned tensors,
                             const struct counters_work *work, double values[QUANTITY_COUNT],
                             char problem[COUNTERS_TEXT], struct error *error)
{
    if (machine.tried)
        return counters_collect_each(counters, tensors, work, 1, (double(*)[QUANTITY_COUNT])values,
                                     problem, error);
    const char *outcome = tensors && script.no_tensors ? script.no_tensors : script.preflight;
    machine.tried = !tensors || strcmp(outcome, "counted") == 0;
    TRY(work->prepare(work->argument, error));
    TRY(work->run(work->argument, error));
    snprintf(problem, COUNTERS_TEXT, "%s", outcome);
    machine.attached = machine.stand_by && strcmp(outcome, "counted") == 0;
    return STATUS_OK;
}

enum status counters_collect_launches(struct counters *counters, unsigned tensors,
                                      const struct counters_work *work, size_t launches,
                                      double (*values)[QUANTITY_COUNT], char problem[COUNTERS_TEXT],
                                      struct error *error)
{
    (void)counters, (void)tensors, (void)work, (void)launches, (void)values;
    (void)problem, (void)error;
    fail_msg("no roof is counted by kernel");
    return STATUS_FAILED;
}
