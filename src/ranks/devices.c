#include "ranks/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/device_kind.h"
#include "ranks/liveness.h"

enum { REASON_TEXT = 1200 }; /* bytes of executor_reason */

enum status devices_number_shared(struct device *devices, int count, struct error *error)
{
    char text[DEVICE_IDENTITY], name[sizeof devices->uuid];
    json_t *seen = json_object(); /* {identity: number of devices} */
    enum status status = STATUS_OK;
    for (int i = 0; i < count && status == STATUS_OK; ++i) {
        struct device *device = &devices[i];
        const struct device_kind *kind = device_kind_find(device->kind);
        if (!device_is_open(device))
            continue;
        device_identity(device, text);
        const int place = 1 + (int)json_integer_value(json_object_get(seen, text));
        json_object_set_new_nocheck(seen, text, json_integer(place));
        if (place > 1 && kind && kind->exclusive) {
            int ranks = 0, first = 0;
            for (int k = 0; k < count; ++k)
                ranks += strcmp(devices[k].hostname, device->hostname) == 0;
            while (!device_same(&devices[first], device))
                ++first;
            status = error_set(error, STATUS_DEVICE,
                               "ranks %d and %d would both measure %s %s (PCI %s) of host %s; give "
                               "each its own (srun --ntasks-per-node=%d --gpus-per-task=1), or let "
                               "every rank see all %ss of its node",
                               first, i, kind->noun, device->uuid, device->pci_id, device->hostname,
                               ranks, kind->noun);
        } else if (place > 1) {
            snprintf(name, sizeof name, "%.80s#%d", device->uuid, place);
            memcpy(device->uuid, name, sizeof name);
        }
    }
    json_decref(seen);
    return status;
}

enum status devices_check_kinds(const struct device *devices, int count, struct error *error)
{
    const struct device *first = NULL; /* first open device */
    for (int i = 0; i < count; ++i) {
        if (!device_is_open(&devices[i]))
            continue;
        if (!first)
            first = &devices[i];
        if (strcmp(devices[i].kind, first->kind) != 0)
            return error_set(
                error, STATUS_DEVICE,
                "rank %d on %s has a %s device, but rank %d on %s a %s device, and they "
                "would divide one list of rows; repair the GPU, name one kind with --device, or "
                "measure all on each with distribute = replicate",
                (int)(first - devices), first->hostname, first->kind, i, devices[i].hostname,
                devices[i].kind);
    }
    return STATUS_OK;
}

/* Logs one line for each host, device model and reason, with the number of ranks. Omits rank 0's
 * host, which begins every line of the log. */
static void log_devices(const struct devices *devices, const char *reasons)
{
    void *memory = calloc((size_t)devices->ranks, 2 * sizeof(int));
    int *counts = memory_require(devices->comm, memory, "the devices of the ranks");
    int *far = counts + devices->ranks;
    json_t *seen = json_object(); /* {text: index of the first rank with it} */
    for (int i = 0; i < devices->ranks; ++i) {
        const struct device *device = &devices->list[i];
        char text[sizeof device->hostname + sizeof device->model + REASON_TEXT + 2];
        snprintf(text, sizeof text, "%s\n%s\n%s", device->hostname, device->model,
                 reasons + (size_t)i * REASON_TEXT);
        const json_t *found = json_object_get(seen, text);
        const int first = found ? (int)json_integer_value(found) : i;
        if (!found)
            json_object_set_new_nocheck(seen, text, json_integer(i));
        ++counts[first];
        far[first] += device->cores_far == 1;
    }
    json_decref(seen);
    for (int i = 0; i < devices->ranks; ++i) {
        const struct device *device = &devices->list[i];
        if (counts[i] == 0)
            continue;
        bool other = strcmp(device->hostname, devices->log->hostname) != 0;
        const char *of = other ? " of " : "", *host = other ? device->hostname : "";
        if (device_is_open(device))
            log_print(devices->log, LOG_INFO, "%d rank%s on %s%s%s (%s)", counts[i],
                      counts[i] == 1 ? "" : "s", device->model, of, host,
                      reasons + (size_t)i * REASON_TEXT);
        if (device->cores_shared == 1)
            log_print(devices->log, LOG_WARNING,
                      "more ranks than cores%s%s; times and roofs disturb one another", of, host);
        if (device->quota > 0)
            log_print(devices->log, LOG_WARNING,
                      "a cgroup's quota grants %.3g processors%s%s; each rank measures on %lld "
                      "core%s",
                      device->quota, of, host, (long long)device->multiprocessors,
                      device->multiprocessors == 1 ? "" : "s");
        if (far[i] > 0)
            log_print(devices->log, LOG_WARNING,
                      "%d of %d ranks%s%s may run only on cores far from their device, so that "
                      "copies take longer; start with srun --cpu-bind=none, or --gpu-bind=closest, "
                      "or mpirun --bind-to none",
                      far[i], counts[i], of, host);
    }
    free(counts);
}

/* Outcomes are known here only with counters = require: then the first refusal ends the sweep. */
static enum status check_counters(const struct devices *devices, struct error *error)
{
    for (int i = 0; i < devices->ranks; ++i) {
        const struct outcome *counters = &devices->list[i].counters;
        char refusal[OUTCOME_TEXT];
        int count = 0;
        if (counters->code == OUTCOME_MISSING || counters->code == COUNTED_YES)
            continue;
        for (int j = 0; j < devices->ranks; ++j)
            count += outcome_same(counters, &devices->list[j].counters);
        outcome_format(counters, counted_word, refusal);
        return error_set(error, STATUS_DEVICE,
                         "counters = require, but on %d of %d ranks %s; counters = auto measures "
                         "without",
                         count, devices->ranks, refusal);
    }
    return STATUS_OK;
}

/* The sweep goes on without some devices, but not without all. */
static enum status compare(const struct devices *devices, const struct executor *executor,
                           struct error *error)
{
    bool any_open = false;
    for (int i = 0; i < devices->ranks; ++i)
        any_open |= device_is_open(&devices->list[i]);
    if (!any_open)
        return error_set(error, STATUS_DEVICE, "no rank could open its device; rank 0: %.800s",
                         executor_lost(executor));
    TRY(devices_number_shared(devices->list, devices->ranks, error));
    if (!devices->manifest->sweep.replicate)
        TRY(devices_check_kinds(devices->list, devices->ranks, error));
    return check_counters(devices, error);
}

enum status devices_collect(struct devices *devices, struct executor *executor, struct error *error)
{
    /* No rank has roofs yet, so only the members before the roofs are sent. */
    enum { PART = offsetof(struct device, roofs), UUID = sizeof devices->list->uuid };
    char reason[REASON_TEXT], uuid[UUID], *reasons = NULL, *parts = NULL;
    enum status status = STATUS_OK;
    MPI_Comm_rank(devices->comm, &devices->rank);
    MPI_Comm_size(devices->comm, &devices->ranks);
    snprintf(reason, sizeof reason, "%s", executor_reason(executor));
    if (devices->rank == 0) {
        void *memory = malloc((size_t)devices->ranks * REASON_TEXT);
        reasons = memory_require(devices->comm, memory, "the devices of the ranks");
        memory = malloc((size_t)devices->ranks * PART);
        parts = memory_require(devices->comm, memory, "the devices of the ranks");
        memory = calloc((size_t)devices->ranks, sizeof *devices->list);
        devices->list = memory_require(devices->comm, memory, "the devices of the ranks");
    }
    MPI_Gather(executor_device(executor), PART, MPI_BYTE, parts, PART, MPI_BYTE, 0, devices->comm);
    MPI_Gather(reason, REASON_TEXT, MPI_CHAR, reasons, REASON_TEXT, MPI_CHAR, 0, devices->comm);
    if (devices->rank == 0) {
        for (int i = 0; i < devices->ranks; ++i)
            memcpy(&devices->list[i], parts + (size_t)i * PART, PART);
        log_devices(devices, reasons);
        status = compare(devices, executor, error);
        for (int i = 0; i < devices->ranks; ++i)
            memcpy(parts + (size_t)i * UUID, devices->list[i].uuid, UUID);
    }
    MPI_Scatter(parts, UUID, MPI_CHAR, uuid, UUID, MPI_CHAR, 0, devices->comm);
    executor_name_device(executor, uuid);
    free(reasons);
    free(parts);
    return liveness_agree(devices->comm, status, error);
}

bool devices_reuse_roofs(const struct devices *devices, const struct results *earlier,
                         struct executor *executor)
{
    /* Messages begin at roof_count and end behind the last roof. */
    enum { BEGIN = offsetof(struct device, roof_count) };
    struct device own = *executor_device(executor); /* has no roofs */
    int missing = 0;
    for (int i = devices->rank == 0 ? devices->ranks - 1 : -1; i >= 0; --i) {
        const struct device *match = results_roofs(earlier, &devices->list[i]);
        const struct device *sent = match ? match : &own;
        const char *part = (const char *)sent + BEGIN,
                   *end = (const char *)&sent->roofs[sent->roof_count];
        missing += !match && device_is_open(&devices->list[i]);
        if (i > 0)
            MPI_Send(part, (int)(end - part), MPI_BYTE, i, 0, devices->comm);
        else
            memmove((char *)&own + BEGIN, part, (size_t)(end - part));
    }
    if (devices->rank > 0)
        MPI_Recv((char *)&own + BEGIN, sizeof own - BEGIN, MPI_BYTE, 0, 0, devices->comm,
                 MPI_STATUS_IGNORE);
    if (missing > 0)
        log_print(devices->log, LOG_WARNING,
                  "%s has no roofs of %d of the %d devices (same UUID, driver and power cap): "
                  "these are measured",
                  devices->manifest->reuse, missing, devices->ranks);
    snprintf(own.roofs_reused, sizeof own.roofs_reused, "%s", devices->manifest->reuse);
    const bool found = own.roof_count > 0 && !executor_lost(executor);
    if (found)
        executor_set_roofs(executor, &own);
    return found;
}

void devices_clear(struct devices *devices)
{
    free(devices->list);
    devices->list = NULL;
}
