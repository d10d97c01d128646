/* The vendor's table of worker/gpu for NVIDIA GPUs: memory, stream, graphs, sensors. */
#include "worker/gpu/vendor.h"

#include <cuda.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/gpu/nvml.h"
#include "worker/cuda/gpu/timer.h"
#include "worker/cuda/profiling/profiler.h"

/* ---- memory ---- */

static enum status allocate(double bytes, void **memory, struct error *error)
{
    void *allocated = NULL;
    TRY(CUDA(cudaMalloc(&allocated, (size_t)bytes)));
    *memory = allocated;
    return STATUS_OK;
}

static void memory_free(void *memory)
{
    cudaFree(memory);
}

static enum status available(double *available_bytes, double *total_bytes, struct error *error)
{
    size_t free_now, total;
    TRY(CUDA(cudaMemGetInfo(&free_now, &total)));
    *available_bytes = (double)free_now;
    *total_bytes = (double)total;
    return STATUS_OK;
}

static struct arena *arena_of(const struct gpu *gpu)
{
    return gpu->arena;
}

static enum status fill(struct gpu *gpu, enum precision precision, void *data, int64_t count,
                        struct fill values, struct error *error)
{
    return CUDA(kernel_fill(precision, data, count, values, 0, gpu->stream));
}

static enum status set(struct gpu *gpu, void *data, int value, size_t bytes, struct error *error)
{
    return CUDA(cudaMemsetAsync(data, value, bytes, gpu->stream));
}

static enum status gather(struct gpu *gpu, enum precision precision, const void *data,
                          const int64_t *offsets, int64_t count, void *memory, double *values,
                          struct error *error)
{
    const size_t bytes = (size_t)count * sizeof *values;
    double *gathered = (double *)memory + count;
    TRY(CUDA(cudaMemcpyAsync(memory, offsets, bytes, cudaMemcpyHostToDevice, gpu->stream)));
    TRY(CUDA(kernel_gather(precision, data, memory, count, gathered, gpu->stream)));
    TRY(CUDA(cudaMemcpyAsync(values, gathered, bytes, cudaMemcpyDeviceToHost, gpu->stream)));
    return CUDA(cudaStreamSynchronize(gpu->stream));
}

static enum status hash(struct gpu *gpu, const void *data, size_t bytes, enum tensor tensor,
                        void *memory, uint64_t *hash, struct error *error)
{
    uint64_t own;
    TRY(CUDA(cudaMemsetAsync(memory, 0, sizeof own, gpu->stream)));
    TRY(CUDA(kernel_hash(data, bytes, tensor, memory, gpu->stream)));
    TRY(CUDA(cudaMemcpyAsync(&own, memory, sizeof own, cudaMemcpyDeviceToHost, gpu->stream)));
    TRY(CUDA(cudaStreamSynchronize(gpu->stream)));
    *hash += own;
    return STATUS_OK;
}

/* ---- stream ---- */

static enum status synchronize(struct gpu *gpu, struct error *error)
{
    return CUDA(cudaStreamSynchronize(gpu->stream));
}

static enum status launch_empty(struct gpu *gpu, struct error *error)
{
    return CUDA(kernel_empty(gpu->stream));
}

static enum status delay(struct gpu *gpu, double seconds, struct error *error)
{
    return CUDA(kernel_delay(seconds, gpu->stream));
}

/* ---- graphs ---- */

struct graph {
    cudaGraph_t captured;       /* NULL after graph_ready */
    cudaGraphExec_t executable; /* NULL before graph_ready */
};

static void graph_drop(struct graph *graph)
{
    if (!graph)
        return;
    if (graph->executable)
        cudaGraphExecDestroy(graph->executable);
    if (graph->captured)
        cudaGraphDestroy(graph->captured);
    free(graph);
}

static enum status capture_begin(struct gpu *gpu, struct error *error)
{
    return CUDA(cudaStreamBeginCapture(gpu->stream, cudaStreamCaptureModeRelaxed));
}

static enum status capture_end(struct gpu *gpu, struct graph **graph, struct error *error)
{
    cudaGraph_t captured = NULL;
    struct graph *made = calloc(1, sizeof *made);
    cudaError_t ended = cudaStreamEndCapture(gpu->stream, &captured);
    (void)cudaGetLastError();
    if (made && captured && ended == cudaSuccess) {
        made->captured = captured;
        *graph = made;
        return STATUS_OK;
    }
    if (captured)
        cudaGraphDestroy(captured);
    free(made);
    return error_set(error, STATUS_UNSUPPORTED, "%s",
                     ended != cudaSuccess ? cudaGetErrorString(ended) : "nothing was captured");
}

static enum status graph_ready(struct graph *graph, struct error *error)
{
    TRY(CUDA(cudaGraphInstantiate(&graph->executable, graph->captured, 0)));
    cudaGraphDestroy(graph->captured);
    graph->captured = NULL;
    return STATUS_OK;
}

static enum status graph_launch(struct gpu *gpu, const struct graph *graph, struct error *error)
{
    return CUDA(cudaGraphLaunch(graph->executable, gpu->stream));
}

/* Functions of the CUDA driver, which knows the names of all kernels; the runtime knows only those
 * that it launched. */
struct driver {
    CUresult (*node_type)(CUgraphNode, CUgraphNodeType *);
    CUresult (*node_kernel)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS *);
    CUresult (*function_name)(const char **, CUfunction);
    CUresult (*kernel_name)(const char **, CUkernel);
};

static bool driver_find(struct driver *driver)
{
    const struct {
        const char *symbol;
        unsigned introduced;
        void *place;
    } entries[] = {
        {"cuGraphNodeGetType", 10000, &driver->node_type},
        {"cuGraphKernelNodeGetParams", 12000, &driver->node_kernel},
        {"cuFuncGetName", 12030, &driver->function_name},
        {"cuKernelGetName", 12030, &driver->kernel_name},
    };
    bool complete = true;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; ++i) {
        void *entry = cuda_driver_function(entries[i].symbol, entries[i].introduced);
        memcpy(entries[i].place, &entry, sizeof entry);
        complete &= entry != NULL;
    }
    return complete;
}

static bool node_visit(const struct driver *driver, CUgraphNode node, graph_kernel_visit *visit,
                       void *argument)
{
    CUgraphNodeType type;
    CUDA_KERNEL_NODE_PARAMS kernel;
    const char *name = NULL;
    if (driver->node_type(node, &type) != CUDA_SUCCESS)
        return false;
    if (type != CU_GRAPH_NODE_TYPE_KERNEL)
        return true;
    if (driver->node_kernel(node, &kernel) != CUDA_SUCCESS)
        return false;
    CUresult code = kernel.func ? driver->function_name(&name, kernel.func)
                                : driver->kernel_name(&name, kernel.kern);
    if (code != CUDA_SUCCESS || !name)
        return false;
    const struct graph_kernel found = {name,
                                       {kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ,
                                        kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ,
                                        kernel.sharedMemBytes}};
    visit(&found, argument);
    return true;
}

static bool graph_kernels(const struct graph *graph, graph_kernel_visit *visit, void *argument)
{
    struct driver driver;
    size_t count = 0;
    if (!driver_find(&driver) || cudaGraphGetNodes(graph->captured, NULL, &count) != cudaSuccess)
        return false;
    cudaGraphNode_t *nodes = calloc(count ? count : 1, sizeof(cudaGraphNode_t));
    bool known = nodes && cudaGraphGetNodes(graph->captured, nodes, &count) == cudaSuccess;
    for (size_t i = 0; known && i < count; ++i)
        known = node_visit(&driver, nodes[i], visit, argument);
    free(nodes);
    return known;
}

/* ---- sensors ---- */

static void conditions(struct gpu *gpu, int last, const struct conditions *seen)
{
    nvml_sample(gpu->nvml, timer_event(gpu, last), seen);
}

static double power(struct gpu *gpu, double since)
{
    return nvml_power(gpu->nvml, since);
}

static double energy(struct gpu *gpu)
{
    return nvml_energy(gpu->nvml);
}

static const struct theory *theory(const struct gpu *gpu)
{
    return &gpu->theory;
}

static double power_limit(const struct gpu *gpu)
{
    return gpu->power_limit;
}

const struct gpu_vendor vendor = {
    .allocate = allocate,
    .free = memory_free,
    .available = available,
    .arena = arena_of,
    .fill = fill,
    .set = set,
    .gather = gather,
    .hash = hash,
    .synchronize = synchronize,
    .reserve = timer_reserve,
    .record = timer_record,
    .wait = timer_wait,
    .pending = timer_pending,
    .elapsed = timer_elapsed,
    .block = timer_block,
    .unblock = timer_unblock,
    .flush = timer_flush,
    .stamp = timer_stamp,
    .span = timer_span,
    .launch_empty = launch_empty,
    .delay = delay,
    .calibration = timer_calibration,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_kernels = graph_kernels,
    .graph_ready = graph_ready,
    .graph_launch = graph_launch,
    .graph_drop = graph_drop,
    .conditions = conditions,
    .power = power,
    .energy = energy,
    .theory = theory,
    .power_limit = power_limit,
    .count = profiler_count,
};
