/* Opens a GPU with its stream, timer, memory and libraries, and describes it. */
#pragma once

#include "model/device.h"
#include "worker/cuda/gpu/gpu.h"

/* Counts the GPUs that this process can see. STATUS_DEVICE with the reason if there is none. */
enum status gpu_count(int *count, struct error *error);

/* Makes GPU `index` the current one, opens it, and describes it in *device (all but roofs, counters
 * and key). The caller closes *gpu after a failure, too. */
enum status gpu_open(int index, struct gpu *gpu, struct device *device, struct error *error);
void gpu_close(struct gpu *gpu); /* takes a struct that is all zeros */
