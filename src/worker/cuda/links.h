/* Links: copies between the GPUs that this process sees, and NCCL, which is loaded at run time,
 * with one process for each GPU. */
#pragma once

#include "model/link.h"

/* As device_ops.measure_links. */
enum status links_measure(const struct link_order *order, struct link_list *found, char *id,
                          struct error *error);
