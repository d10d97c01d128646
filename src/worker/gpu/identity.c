#include "worker/gpu/identity.h"

#include <cuda.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "worker/cuda/gpu/check.h"

/* The driver knows the names of all kernels, the runtime only of those that it launched itself. The
 * worker does not link the driver. */
struct driver {
    CUresult (*node_type)(CUgraphNode, CUgraphNodeType *);
    CUresult (*node_kernel)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS *);
    CUresult (*function_name)(const char **, CUfunction);
    CUresult (*kernel_name)(const char **, CUkernel);
};

static void *driver_entry(const char *symbol, unsigned introduced)
{
    void *entry = NULL;
    enum cudaDriverEntryPointQueryResult found;
    cudaError_t code =
        cudaGetDriverEntryPointByVersion(symbol, &entry, introduced, cudaEnableDefault, &found);
    return code == cudaSuccess && found == cudaDriverEntryPointSuccess ? entry : NULL;
}

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
        void *entry = driver_entry(entries[i].symbol, entries[i].introduced);
        memcpy(entries[i].place, &entry, sizeof entry);
        complete &= entry != NULL;
    }
    return complete;
}

/* Sums, because a graph has no order of its nodes. */
static void kernel_add(const char *name, const CUDA_KERNEL_NODE_PARAMS *kernel,
                       struct identity *identity)
{
    const unsigned launch[] = {kernel->gridDimX,      kernel->gridDimY,  kernel->gridDimZ,
                               kernel->blockDimX,     kernel->blockDimY, kernel->blockDimZ,
                               kernel->sharedMemBytes};
    uint64_t hash = XXH3_64bits(name, strlen(name));
    identity->kernels += hash;
    identity->launches += XXH3_64bits_withSeed(launch, sizeof launch, hash);
}

static bool node_add(const struct driver *driver, CUgraphNode node, struct identity *identity,
                     struct kernel_list *list)
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
    kernel_add(name, &kernel, identity);
    if (list)
        kernel_list_add(list, name);
    return true;
}

static struct identity graph_identity(const struct driver *driver, cudaGraph_t graph,
                                      struct kernel_list *list)
{
    const struct identity unknown = {0, 0};
    struct identity identity = unknown;
    size_t count = 0;
    if (cudaGraphGetNodes(graph, NULL, &count) != cudaSuccess)
        return unknown;
    cudaGraphNode_t *nodes = calloc(count ? count : 1, sizeof(cudaGraphNode_t));
    bool known = nodes && cudaGraphGetNodes(graph, nodes, &count) == cudaSuccess;
    for (size_t i = 0; known && i < count; ++i)
        known = node_add(driver, nodes[i], &identity, list);
    free(nodes);
    return known ? identity : unknown;
}

/* What the library refuses while it is captured, it may well do otherwise, so that refusal is none. */
enum status identity_list(struct gpu *gpu, struct work *work, struct identity *identity,
                          struct kernel_list *list, struct error *error)
{
    struct driver driver;
    struct error refusal;
    cudaGraph_t graph = NULL;
    *identity = (struct identity){0, 0};
    if (!driver_find(&driver))
        return STATUS_OK;
    TRY(CUDA(cudaStreamBeginCapture(gpu->stream, cudaStreamCaptureModeRelaxed)));
    enum status status = work->ops->iterate(gpu, work, &refusal);
    cudaError_t ended = cudaStreamEndCapture(gpu->stream, &graph);
    if (status == STATUS_OK && ended == cudaSuccess && graph)
        *identity = graph_identity(&driver, graph, list);
    if (graph)
        cudaGraphDestroy(graph);
    cudaGetLastError();
    return STATUS_OK;
}

enum status identity_find(struct gpu *gpu, struct work *work, struct identity *identity,
                          struct error *error)
{
    return identity_list(gpu, work, identity, NULL, error);
}

static void hash_format(uint64_t hash, char text[IDENTITY_TEXT])
{
    text[0] = '\0';
    if (hash)
        snprintf(text, IDENTITY_TEXT, "%016" PRIx64, hash);
}

void identity_format(const struct identity *identity, char text[IDENTITY_TEXT])
{
    hash_format(identity->kernels, text);
}

void identity_format_launches(const struct identity *identity, char text[IDENTITY_TEXT])
{
    hash_format(identity->launches, text);
}
