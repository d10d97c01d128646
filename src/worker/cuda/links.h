/* Links between the GPUs that this process sees: copies, and what all do together by NCCL, which is
 * met at run time only. */
#pragma once

#include "model/device.h"

/* As device_ops.measure_links. */
enum status links_measure(const char *devices, enum link_operation operation, struct device *device,
                          struct error *error);
