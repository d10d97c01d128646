/* What an earlier result file holds that is used again instead of measured: the roofs of devices,
 * and what searches for algorithms chose. */
#pragma once

#include <stddef.h>

#include "base/status.h"
#include "model/algorithm.h"
#include "model/device.h"

/* It begins as a result file does; nothing else is checked. */
bool earlier_is_result(const char *path);

/* All devices of the file that have roofs, with these and their origin in roofs_reused; the caller
 * frees *devices. STATUS_USAGE, with the reason, if the file cannot be read, is of another format
 * version, or has none. */
enum status earlier_roofs_read(const char *path, struct device **devices, size_t *count,
                               struct error *error);

/* The one that is the same device under the same conditions: UUID, driver and power cap. Of several
 * sessions' the one with the most roofs, since one may have been interrupted; of these the latest.
 * NULL if there is none. */
const struct device *earlier_roofs_find(const struct device *devices, size_t count,
                                        const struct device *device);

/* Which devices an algorithm holds for. As the members of struct device. */
struct algorithm_owner {
    char model[96], library_version[64], driver_version[32];
};

/* A row that was measured with what a search chose, its own or an earlier one. */
struct earlier_algorithm {
    struct algorithm algorithm; /* not checked */
    char config_hash[CONFIG_HASH_TEXT];
    struct algorithm_owner owner;
    double start_time;             /* s since the epoch */
    int64_t status, config_device; /* as the file has them */
};

/* All such rows, in the order of the file; the caller frees *algorithms. STATUS_USAGE as above, but
 * that a file without any is no error. */
enum status earlier_algorithms_read(const char *path, struct earlier_algorithm **algorithms,
                                    size_t *count, struct error *error);
