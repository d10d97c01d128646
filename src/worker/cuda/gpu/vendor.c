/* The vendor's table of worker/gpu for NVIDIA GPUs: memory, stream, graphs, sensors. */
#include "worker/gpu/vendor.h"

#include <cuda.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/gpu/nvml.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/profiling/profiler.h"

/* ---- memory ---- */

enum status vendor_allocate(double bytes, void **memory, struct error *error)
{
    void *allocated = NULL;
    TRY(CUDA(cudaMalloc(&allocated, (size_t)bytes)));
    *memory = allocated;
    return STATUS_OK;
}

void vendor_free(void *memory)
{
    cudaFree(memory);
}

enum status vendor_available(double *available_bytes, double *total_bytes, struct error *error)
{
    size_t free_now, total;
    TRY(CUDA(cudaMemGetInfo(&free_now, &total)));
    *available_bytes = (double)free_now;
    *total_bytes = (double)total;
    return STATUS_OK;
}

struct arena *vendor_arena(const struct gpu *gpu)
{
    return gpu->arena;
}

enum status vendor_fill(struct gpu *gpu, enum precision precision, void *data, int64_t count,
                        struct fill values, struct error *error)
{
    return CUDA(kernel_fill(precision, data, count, values, 0, gpu->stream));
}

enum status vendor_set(struct gpu *gpu, void *data, int value, size_t bytes, struct error *error)
{
    return CUDA(cudaMemsetAsync(data, value, bytes, gpu->stream));
}

enum status vendor_gather(struct gpu *gpu, enum precision precision, const void *data,
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

enum status vendor_hash(struct gpu *gpu, const void *data, size_t bytes, enum tensor tensor,
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

enum status vendor_synchronize(struct gpu *gpu, struct error *error)
{
    return CUDA(cudaStreamSynchronize(gpu->stream));
}

enum status vendor_launch_empty(struct gpu *gpu, struct error *error)
{
    return CUDA(kernel_empty(gpu->stream));
}

enum status vendor_delay(struct gpu *gpu, double seconds, struct error *error)
{
    return CUDA(kernel_delay(seconds, gpu->stream));
}

/* ---- events, the blocking kernel, the flush, clocks ---- */

/* All pointers are owned. */
struct timer {
    cudaEvent_t *events; /* [event_count] */
    int event_count;
    struct clock_stamp *stamps; /* device memory: 2 x CLOCK_STAMPS, for begin and end of a span */
    /* Pinned host memory that blocking kernels poll. All kernels up to this ticket may end. */
    volatile uint64_t *released;
    uint64_t ticket; /* ticket of the last blocking kernel */
    void *flush;     /* device memory of flush_bytes; NULL until it is reserved */
    size_t flush_bytes;
    struct calibration calibration;
};

/* Unified addressing maps `released` to the same address on the device. */
enum status vendor_reserve(struct gpu *gpu, int count, bool flushed, struct error *error)
{
    struct timer *timer = gpu->timer;
    void *memory;
    if (count > 0 && count > timer->event_count) {
        cudaEvent_t *events = realloc(timer->events, (size_t)count * sizeof *events);
        if (!events)
            return error_set(error, STATUS_FAILED, "no memory for %d events", count);
        timer->events = events;
    }
    while (timer->event_count < count) {
        TRY(CUDA(cudaEventCreate(&timer->events[timer->event_count])));
        ++timer->event_count;
    }
    if (!timer->released) {
        TRY(CUDA(cudaHostAlloc(&memory, sizeof *timer->released, cudaHostAllocMapped)));
        timer->released = memory;
        *timer->released = timer->ticket;
    }
    if (!timer->stamps) {
        TRY(memory_allocate(2.0 * CLOCK_STAMPS * sizeof *timer->stamps, "the clock", &memory,
                            error));
        timer->stamps = memory;
    }
    if (!flushed || timer->flush)
        return STATUS_OK;
    TRY(memory_allocate(2.0 * (double)gpu->l2_bytes, "flushing the cache", &timer->flush, error));
    timer->flush_bytes = 2 * gpu->l2_bytes;
    return CUDA(cudaMemsetAsync(timer->flush, 0, timer->flush_bytes, gpu->stream));
}

enum status vendor_record(struct gpu *gpu, int event, struct error *error)
{
    return CUDA(cudaEventRecord(gpu->timer->events[event], gpu->stream));
}

enum status vendor_wait(struct gpu *gpu, int event, struct error *error)
{
    return CUDA(cudaEventSynchronize(gpu->timer->events[event]));
}

enum status vendor_pending(struct gpu *gpu, int event, bool *is_pending, struct error *error)
{
    cudaError_t code = cudaEventQuery(gpu->timer->events[event]);
    *is_pending = code == cudaErrorNotReady;
    if (!*is_pending)
        return CUDA(code);
    (void)cudaGetLastError(); /* "not ready" is no error */
    return STATUS_OK;
}

enum status vendor_elapsed(struct gpu *gpu, int first, int second, double *seconds,
                           struct error *error)
{
    const cudaEvent_t *events = gpu->timer->events;
    float milliseconds;
    TRY(CUDA(cudaEventElapsedTime(&milliseconds, events[first], events[second])));
    *seconds = 1e-3 * (double)milliseconds;
    return STATUS_OK;
}

enum status vendor_block(struct gpu *gpu, double limit, struct error *error)
{
    struct timer *timer = gpu->timer;
    ++timer->ticket;
    return CUDA(kernel_block(timer->released, timer->ticket, limit, gpu->stream));
}

void vendor_unblock(struct gpu *gpu)
{
    *gpu->timer->released = gpu->timer->ticket;
}

enum status vendor_flush(struct gpu *gpu, struct error *error)
{
    TRY(vendor_reserve(gpu, 0, true, error));
    return CUDA(kernel_read(gpu->timer->flush, gpu->timer->flush_bytes, gpu->stream));
}

enum status vendor_stamp(struct gpu *gpu, enum span_end end, struct error *error)
{
    struct clock_stamp *stamps = gpu->timer->stamps + end * CLOCK_STAMPS;
    int blocks = 2 * gpu->multiprocessors; /* more blocks than multiprocessors, so some share one */
    TRY(CUDA(cudaMemsetAsync(stamps, 0, CLOCK_STAMPS * sizeof *stamps, gpu->stream)));
    return CUDA(kernel_clock(stamps, blocks, gpu->stream));
}

enum status vendor_span(struct gpu *gpu, struct clock_span *span, struct error *error)
{
    struct clock_stamp stamps[2][CLOCK_STAMPS];
    struct clock_span sum = {0.0, 0.0};
    int count = 0;
    TRY(CUDA(cudaMemcpy(stamps, gpu->timer->stamps, sizeof stamps, cudaMemcpyDeviceToHost)));
    for (int i = 0; i < CLOCK_STAMPS; ++i) {
        const struct clock_stamp *begin = &stamps[0][i], *end = &stamps[1][i];
        if (begin->nanoseconds == 0 || end->nanoseconds <= begin->nanoseconds)
            continue;
        sum.cycles += (double)(end->cycles - begin->cycles);
        sum.seconds += 1e-9 * (double)(end->nanoseconds - begin->nanoseconds);
        ++count;
    }
    *span = count > 0 ? (struct clock_span){sum.cycles / count, sum.seconds / count} : sum;
    return STATUS_OK;
}

struct timer *timer_open(void)
{
    struct timer *timer = calloc(1, sizeof *timer);
    if (timer)
        timer->calibration = (struct calibration){NAN, NAN};
    return timer;
}

void timer_close(struct timer *timer)
{
    if (!timer)
        return;
    for (int i = 0; i < timer->event_count; ++i)
        cudaEventDestroy(timer->events[i]);
    free(timer->events);
    cudaFree(timer->flush);
    cudaFree(timer->stamps);
    if (timer->released)
        cudaFreeHost((void *)timer->released);
    free(timer);
}

/* ---- graphs ---- */

struct graph {
    cudaGraph_t captured;       /* NULL after vendor_graph_ready */
    cudaGraphExec_t executable; /* NULL before vendor_graph_ready */
};

void vendor_graph_drop(struct graph *graph)
{
    if (!graph)
        return;
    if (graph->executable)
        cudaGraphExecDestroy(graph->executable);
    if (graph->captured)
        cudaGraphDestroy(graph->captured);
    free(graph);
}

enum status vendor_capture_begin(struct gpu *gpu, struct error *error)
{
    return CUDA(cudaStreamBeginCapture(gpu->stream, cudaStreamCaptureModeRelaxed));
}

enum status vendor_capture_end(struct gpu *gpu, struct graph **graph, struct error *error)
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

enum status vendor_graph_ready(struct graph *graph, struct error *error)
{
    TRY(CUDA(cudaGraphInstantiate(&graph->executable, graph->captured, 0)));
    cudaGraphDestroy(graph->captured);
    graph->captured = NULL;
    return STATUS_OK;
}

enum status vendor_graph_launch(struct gpu *gpu, const struct graph *graph, struct error *error)
{
    return CUDA(cudaGraphLaunch(graph->executable, gpu->stream));
}

/* The CUDA driver knows the names of all kernels; the runtime only knows those that it launched. */
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

bool vendor_graph_kernels(const struct graph *graph, graph_kernel_visit *visit, void *argument)
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

struct calibration *vendor_calibration(const struct gpu *gpu)
{
    return &gpu->timer->calibration;
}

/* ---- sensors ---- */

void vendor_conditions(struct gpu *gpu, int last, const struct conditions *seen)
{
    nvml_sample(gpu->nvml, gpu->timer->events[last], seen);
}

double vendor_power(struct gpu *gpu, double since)
{
    return nvml_power(gpu->nvml, since);
}

double vendor_energy(struct gpu *gpu)
{
    return nvml_energy(gpu->nvml);
}

const struct theory *vendor_theory(const struct gpu *gpu)
{
    return &gpu->theory;
}

double vendor_power_limit(const struct gpu *gpu)
{
    return gpu->power_limit;
}

enum status vendor_count(struct profiler *profiler, unsigned tensors,
                         const struct profiled_work *works, size_t count, const size_t *launches,
                         size_t room, double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                         struct error *error)
{
    return profiler_count(profiler, tensors, works, count, launches, room, values, outcome, error);
}
