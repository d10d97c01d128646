/* Prepares the work of a configuration and reads its results. */
#pragma once

#include "worker/gpu/tensor_work.h"

/* One implementation of a workload, or several rows with one name. */
struct implementation {
    const char *workload, *name;
    const struct tensor_routine *routine;
    bool (*takes)(const struct config *config); /* NULL: all configurations */
};

/* As device_ops.prepare. `rows` end with a row without a name. The first row of the workload with
 * the requested name, or for "auto" of any name, that takes the configuration prepares it. If none
 * of the name takes the configuration, the last one does, and says why not. `devices` names the
 * vendor's GPUs in messages. */
enum status work_create(struct gpu *gpu, const struct implementation *rows, const char *devices,
                        const struct config *config, uint64_t seed, struct work **work,
                        struct record *record, struct error *error);

/* As device_ops.has_room. */
bool work_has_room(struct gpu *gpu, const struct config *config);

/* As device_ops.read. */
enum status work_read(struct gpu *gpu, struct work *work, enum tensor tensor,
                      const int64_t *offsets, int64_t count, double *values, struct error *error);

/* As device_ops.hash. */
enum status work_hash(struct gpu *gpu, const struct work *work, uint64_t *hash,
                      struct error *error);
