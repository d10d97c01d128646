/* The roofs that an earlier result file holds, to be used again instead of measured. */
#ifndef ROOFSWEEP_EARLIER_ROOFS_H
#define ROOFSWEEP_EARLIER_ROOFS_H

#include <stddef.h>

#include "model/device.h"
#include "model/record.h"
#include "base/status.h"

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

#endif
