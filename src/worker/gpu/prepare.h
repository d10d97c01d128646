/* Prepares the work of a configuration and reads its results. */
#pragma once

#include "worker/gpu/tensor_work.h"

/* Implementations of a workload may share a name. */
struct implementation {
    const char *workload, *name;
    const struct tensor_routine *routine;
    bool (*takes)(const struct config *config); /* NULL: all configurations */
};

/* As device_ops.prepare. `rows` end with a row without a name. Among the rows with the workload and
 * the requested name ("auto": any name), the first one that takes the configuration prepares it. If
 * none takes it, the last of them reports why. `devices` names the vendor's GPUs in messages. */
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
