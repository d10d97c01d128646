/* Links: copies between the GPUs of this process, and NCCL between processes of one GPU each. */
#pragma once

#include "model/link.h"

/* As device_ops.measure_links. */
enum status links_measure(const struct link_order *order, struct link_list *found, char *id,
                          struct error *error);
