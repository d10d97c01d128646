#include "ranks/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "model/device_kind.h"
#include "ranks/agreement.h"
#include "results/earlier_roofs.h"

/* False of a device that is the cores of its rank. */
static bool is_numbered(const struct device *device)
{
    const struct device_kind *kind = device_kind_find(device->kind);
    return kind && kind->numbered;
}

/* One line for each host, device model and reason, with the ranks counted. */
static void log_devices(const struct inventory *inventory, const char *choices, size_t choice_size)
{
    for (int i = 0; i < inventory->ranks; ++i) {
        const struct device *device = &inventory->devices[i];
        int count = 0, earlier = 0;
        for (int j = 0; j < inventory->ranks; ++j) {
            const struct device *other = &inventory->devices[j];
            bool same =
                strcmp(device->hostname, other->hostname) == 0 &&
                strcmp(device->model, other->model) == 0 &&
                strcmp(choices + (size_t)i * choice_size, choices + (size_t)j * choice_size) == 0;
            count += same;
            earlier += same && j < i;
        }
        if (earlier == 0 && device_is_open(device))
            log_print(inventory->log, LOG_INFO, "%s: %d rank%s on %s (%s)", device->hostname, count,
                      count == 1 ? "" : "s", device->model, choices + (size_t)i * choice_size);
        if (device->cores_shared == 1 && !is_numbered(device) && earlier == 0)
            log_print(inventory->log, LOG_WARNING,
                      "%s: more ranks than cores; times and roofs disturb one another (variable "
                      "device_cores_shared)",
                      device->hostname);
    }
}

static bool is_refused(const struct device *device)
{
    return device->counters.code != OUTCOME_MISSING && device->counters.code != COUNTED_YES;
}

/* One message for each cause; where counters are required, the first cause ends the sweep. */
static enum status check_counters(const struct inventory *inventory, struct error *error)
{
    bool required = inventory->manifest->measure.counters == COUNTERS_REQUIRE;
    for (int i = 0; i < inventory->ranks; ++i) {
        const struct device *device = &inventory->devices[i];
        int count = 0, earlier = 0;
        for (int j = 0; j < inventory->ranks; ++j) {
            bool same = outcome_same(&device->counters, &inventory->devices[j].counters);
            count += same;
            earlier += same && j < i;
        }
        if (!is_refused(device) || earlier > 0)
            continue;
        char refusal[OUTCOME_TEXT];
        outcome_format(&device->counters, counted_word, refusal);
        if (required)
            return error_set(error, STATUS_DEVICE,
                             "counters = require, but on %d of %d ranks %s; counters = auto "
                             "measures without",
                             count, inventory->ranks, refusal);
        const struct device_kind *kind = device_kind_find(device->kind);
        log_print(inventory->log, kind && !kind->has_counters ? LOG_DEBUG : LOG_WARNING,
                  "hardware counters on %d of %d ranks %s; FLOPs and bytes are the modelled ones",
                  count, inventory->ranks, refusal);
    }
    return STATUS_OK;
}

/* One lost device costs its share of the work, all of them end the sweep. */
static enum status check_open(const struct inventory *inventory, const struct executor *executor,
                              struct error *error)
{
    for (int i = 0; i < inventory->ranks; ++i)
        if (device_is_open(&inventory->devices[i]))
            return STATUS_OK;
    return error_set(error, STATUS_DEVICE, "no rank could open its device; rank 0: %.800s",
                     executor_lost(executor));
}

static enum status compare(const struct inventory *inventory, const struct executor *executor,
                           struct error *error)
{
    enum status status = check_open(inventory, executor, error);
    if (status == STATUS_OK)
        status = agreement_check_devices(inventory->devices, inventory->ranks, error);
    if (status == STATUS_OK && !inventory->manifest->sweep.replicate)
        status = agreement_check_kinds(inventory->devices, inventory->ranks, error);
    return status == STATUS_OK ? check_counters(inventory, error) : status;
}

/* Each rank learns the UUID by which its device is told apart. */
static void share_names(const struct inventory *inventory, struct executor *executor)
{
    enum { NAME = sizeof((struct device *)0)->uuid };
    char own[NAME], *names = NULL;
    if (inventory->rank == 0 && !(names = malloc((size_t)inventory->ranks * NAME)))
        MPI_Abort(inventory->comm, 1);
    for (int i = 0; names && i < inventory->ranks; ++i)
        memcpy(names + (size_t)i * NAME, inventory->devices[i].uuid, NAME);
    MPI_Scatter(names, NAME, MPI_CHAR, own, NAME, MPI_CHAR, 0, inventory->comm);
    executor_name_device(executor, own);
    free(names);
}

enum status inventory_collect(struct inventory *inventory, struct executor *executor,
                              struct error *error)
{
    enum { CHOICE = 1200 };
    char choice[CHOICE], *choices = NULL;
    const struct device *own = executor_device(executor);
    enum status status = STATUS_OK;
    MPI_Comm_rank(inventory->comm, &inventory->rank);
    MPI_Comm_size(inventory->comm, &inventory->ranks);
    snprintf(choice, sizeof choice, "%s", executor_choice(executor));
    if (inventory->rank == 0) {
        choices = malloc((size_t)inventory->ranks * CHOICE);
        inventory->devices = malloc((size_t)inventory->ranks * sizeof *inventory->devices);
        if (!choices || !inventory->devices)
            MPI_Abort(inventory->comm, 1);
    }
    MPI_Gather(own, sizeof *own, MPI_BYTE, inventory->devices, sizeof *own, MPI_BYTE, 0,
               inventory->comm);
    MPI_Gather(choice, CHOICE, MPI_CHAR, choices, CHOICE, MPI_CHAR, 0, inventory->comm);
    if (inventory->rank == 0) {
        log_devices(inventory, choices, CHOICE);
        status = compare(inventory, executor, error);
        agreement_tell_apart(inventory->devices, inventory->ranks);
    }
    free(choices);
    share_names(inventory, executor);
    return agreement_reach(inventory->comm, status, error);
}

/* Rank 0's part: the earlier roofs of each rank's device, or none. */
static struct device *match_earlier(const struct inventory *inventory, const struct device *earlier,
                                    size_t count)
{
    struct device *matches = calloc((size_t)inventory->ranks, sizeof *matches);
    int missing = 0;
    if (!matches)
        MPI_Abort(inventory->comm, 1);
    for (int i = 0; matches && i < inventory->ranks; ++i) {
        const struct device *match = earlier_roofs_find(earlier, count, &inventory->devices[i]);
        if (match)
            matches[i] = *match;
        missing += !match && device_is_open(&inventory->devices[i]);
    }
    if (missing > 0)
        log_print(
            inventory->log, LOG_WARNING,
            "%s has no roofs of %d of the %d devices (same UUID, driver and power cap): these "
            "are measured",
            inventory->manifest->reuse, missing, inventory->ranks);
    return matches;
}

bool inventory_reuse_roofs(const struct inventory *inventory, const struct device *earlier,
                           size_t count, struct executor *executor)
{
    struct device own, *matches = NULL;
    if (inventory->rank == 0)
        matches = match_earlier(inventory, earlier, count);
    MPI_Scatter(matches, sizeof own, MPI_BYTE, &own, sizeof own, MPI_BYTE, 0, inventory->comm);
    free(matches);
    bool found = own.roof_count > 0 && !executor_lost(executor);
    if (found)
        executor_set_roofs(executor, &own);
    return found;
}

void inventory_clear(struct inventory *inventory)
{
    free(inventory->devices);
    inventory->devices = NULL;
}
