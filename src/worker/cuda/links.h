/* Links between the GPUs that this process sees: copies of pairs, and collective operations of all
 * by NCCL, which is loaded at run time. */
#pragma once

#include "model/device.h"

/* As device_ops.measure_links. */
enum status links_measure(const char *devices, enum link_operation operation, struct device *device,
                          struct error *error);
