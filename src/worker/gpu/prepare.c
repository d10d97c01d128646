#include "worker/gpu/prepare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/gpu/arena.h"
#include "worker/gpu/graph.h"

static enum status implementation_find(const struct implementation *rows, const char *devices,
                                       const struct config *config,
                                       const struct implementation **found, struct error *error)
{
    const char *wanted = config_word(config, ROLE_IMPLEMENTATION);
    const bool any = strcmp(wanted, "auto") == 0;
    const char *last = "";
    char offered[128] = "";
    for (const struct implementation *row = rows; row->name; ++row) {
        const bool named = strcmp(wanted, row->name) == 0;
        if (strcmp(row->workload, config->workload->name) != 0)
            continue;
        const bool takes = !row->takes || row->takes(config);
        if (named || (any && takes))
            *found = row;
        if ((named || any) && takes)
            return STATUS_OK;
        size_t used = strlen(offered);
        if (strcmp(last, row->name) != 0)
            snprintf(offered + used, sizeof offered - used, "%s%s", used ? ", " : "", row->name);
        last = row->name;
    }
    if (*found)
        return STATUS_OK;
    return error_set(error, STATUS_UNSUPPORTED,
                     "implementation %s of %s does not run on %s devices, which have: %s", wanted,
                     config->workload->name, devices, offered[0] ? offered : "none");
}

enum status work_create(struct gpu *gpu, const struct implementation *rows, const char *devices,
                        const struct config *config, uint64_t seed, struct work **work,
                        struct record *record, struct error *error)
{
    const struct implementation *found = NULL;
    struct work *prepared = NULL, *replayed = NULL;
    TRY(implementation_find(rows, devices, config, &found, error));
    TRY(arena_check(vendor_arena(gpu), config_cost(config).memory, "the tensors", error));
    TRY(tensor_work_prepare(found->routine, gpu, config, seed, &prepared, record, error));
    if (config_replayed(config)) {
        enum status status = replay_create(gpu, prepared, &replayed, error);
        if (status) {
            prepared->ops->release(prepared);
            return status;
        }
    }
    snprintf(record->implementation, sizeof record->implementation, "%s", found->name);
    *work = replayed ? replayed : prepared;
    return STATUS_OK;
}

/* The next row's search may use a quarter of the free memory for workspaces, at most 4 GiB. Waiting
 * rows must leave it these 4 GiB. Tensors count twice, because rows own more than their tensors. */
bool work_has_room(struct gpu *gpu, const struct config *config)
{
    const double enough = 4.0 * 4.0 * (1 << 30), tensors = 2.0;
    double available;
    struct error unknown;
    return arena_available(vendor_arena(gpu), &available, &unknown) == STATUS_OK &&
           available >= enough + tensors * config_cost(config).memory;
}

enum status work_read(struct gpu *gpu, struct work *work, enum tensor tensor,
                      const int64_t *offsets, int64_t count, double *values, struct error *error)
{
    const struct work *owner = work->stream ? work->stream : work; /* owner of the results */
    const enum precision stored = owner->ops->stored ? owner->ops->stored(owner, tensor)
                                                     : precision_info[work->precision].result;
    const double bytes = (double)count * (sizeof *offsets + sizeof *values);
    int64_t *places = malloc((size_t)count * sizeof *places);
    void *memory = NULL;
    if (!places)
        return error_set(error, STATUS_FAILED, "no memory for %lld offsets", (long long)count);
    for (int64_t i = 0; i < count; ++i)
        places[i] =
            owner->ops->element ? owner->ops->element(owner, tensor, offsets[i]) : offsets[i];
    enum status status = arena_allocate(vendor_arena(gpu), bytes, "the comparison", &memory, error);
    if (status == STATUS_OK)
        status = vendor_gather(gpu, stored, owner->ops->result(owner, tensor), places, count,
                               memory, values, error);
    arena_free(vendor_arena(gpu), memory);
    free(places);
    return status;
}

enum status work_hash(struct gpu *gpu, const struct work *work, uint64_t *hash, struct error *error)
{
    const struct work *owner = work->stream ? work->stream : work; /* owner of the results */
    struct arena *arena = vendor_arena(gpu);
    void *memory = NULL;
    uint64_t sum = 0;
    enum status status = arena_allocate(arena, sizeof sum, "the hash", &memory, error);
    for (int i = 0; i < TENSOR_COUNT && status == STATUS_OK; ++i) {
        const enum tensor tensor = (enum tensor)i;
        const void *data = owner->ops->result(owner, tensor);
        if (data)
            status = vendor_hash(gpu, data, owner->ops->bytes(owner, tensor), tensor, memory, &sum,
                                 error);
    }
    arena_free(arena, memory);
    if (status == STATUS_OK)
        *hash = sum;
    return status;
}
