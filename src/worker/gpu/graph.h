/* Work in a graph: launches are captured once and replayed as a whole, as frameworks run compiled
 * models. Gaps between kernels are smaller, and streams that a library forks cost less. */
#pragma once

#include <stdbool.h>

#include "worker/gpu/work.h"

/* Captures what `enqueue` enqueues. The caller drops *graph. STATUS_UNSUPPORTED: it fails. */
enum status graph_capture(struct gpu *gpu, gpu_enqueue *enqueue, void *argument,
                          struct graph **graph, struct error *error);
/* Captures iterations of the work, as graph_capture. */
enum status graph_of_work(struct gpu *gpu, struct work *work, int iterations, struct graph **graph,
                          struct error *error);

/* Captures one iteration, which does not run, and calls visit() for each kernel, in any order.
 * *known: false if the capture fails, or the driver does not report the kernels. */
enum status graph_kernels(struct gpu *gpu, struct work *work, graph_kernel_visit *visit,
                          void *argument, bool *known, struct error *error);

/* Makes work that replays a graph (launch = graph). Each iteration launches a graph of one
 * iteration, with the algorithm that `stream` has chosen. Preparations (work_ops.reset, the flush)
 * stay outside of the graph. Verification runs a separate graph, captured from work_ops.run.
 *
 * `stream` is the same work launched kernel by kernel. On success *work owns `stream`; after a
 * failure the caller still owns `stream`. STATUS_UNSUPPORTED: the capture fails. */
enum status replay_create(struct gpu *gpu, struct work *stream, struct work **work,
                          struct error *error);
