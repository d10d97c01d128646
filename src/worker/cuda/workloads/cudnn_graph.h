/* An operation graph of cuDNN and its execution plans.
 *
 * Order of calls: create; describe and operate for tensors and operations; plan; then any of build,
 * bind and run; destroy. */
#pragma once

#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/workloads/cudnn_tensor.h"

struct cudnn_attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    const void *values; /* NULL ends a list */
};

enum { CUDNN_PLAN_NAME = 128 };

struct cudnn_plan {
    char name[CUDNN_PLAN_NAME]; /* cuDNN's numbers of engine and knobs, "engine-38 k2=5 k13=1" */
    bool tensor;                /* runs on tensor units */
    bool compiled;              /* cuDNN compiles its kernel when the plan is built */
    bool last_resort;           /* not built once another plan of the graph is */
    size_t workspace;           /* byte; known once the plan is built */
    double hot_time;            /* s, as in struct search */
    enum status status;         /* result of the build */
    cudnnBackendDescriptor_t config;
    cudnnBackendDescriptor_t descriptor; /* NULL: not built */
};

/* Keeps plans of finished rows. Destroying a plan that cuDNN has compiled unloads its code. CUPTI
 * must then be attached again (profiling/counters.c), which costs as much as counting dozens of
 * rows. So the shelf destroys many plans at once. It also keeps the last searched graphs, for the
 * next row of the same shape. */
struct plan_shelf;
struct plan_shelf *plan_shelf_create(void);        /* returns NULL without memory */
void plan_shelf_destroy(struct plan_shelf *shelf); /* takes NULL; destroys the plans */

struct cudnn_graph;

/* `shelf` takes over the plans of a graph without a key when the graph is destroyed. NULL: plans
 * are destroyed with the graph.
 *
 * `key` is a hash of the search's configuration. If a recent row had the same key, *graph is that
 * row's graph with its plans, and gets one more user. NULL: *graph is new. */
enum status cudnn_graph_create(cudnnHandle_t cudnn, struct plan_shelf *shelf, const char *key,
                               size_t workspace_limit, struct cudnn_graph **graph,
                               struct error *error);
void cudnn_graph_destroy(struct cudnn_graph *graph); /* ends one use; takes NULL */

/* Makes a descriptor, which lives as long as the graph. */
enum status cudnn_graph_describe(struct cudnn_graph *graph, cudnnBackendDescriptorType_t type,
                                 const struct cudnn_attribute *attributes,
                                 cudnnBackendDescriptor_t *descriptor, struct error *error);
struct cudnn_graph_tensor {
    int64_t uid; /* the tensor's number in the graph and in a variant pack */
    cudnnDataType_t type;
    struct cudnn_extents extents;
    int64_t alignment; /* byte */
    bool inner;        /* a value within the kernel, without memory */
    bool by_value;     /* in host memory */
};
enum status cudnn_graph_tensor(struct cudnn_graph *graph, const struct cudnn_graph_tensor *tensor,
                               cudnnBackendDescriptor_t *descriptor, struct error *error);
enum status cudnn_graph_operate(struct cudnn_graph *graph, cudnnBackendDescriptorType_t type,
                                const struct cudnn_attribute *attributes, struct error *error);

/* A selection of cuDNN's engines. */
struct cudnn_engines {
    bool tensor, vector; /* engines that use tensor units; engines that do not */
    bool compiled_last;  /* compiled plans of cuDNN's fallback are last resorts */
    const char *only;    /* name of the only plan; NULL: all */
};

/* Finds plans, the likely fastest first, at least one. STATUS_UNSUPPORTED with a reason if there is
 * none.
 *
 * Without `engines`, builds the first plans of the heuristics; names of these plans have no knobs.
 * With `engines`, builds nothing, and finds all selected engines that compute in no narrower
 * precision. Making a plan from the name `only` takes a tenth of the heuristics' time. */
enum status cudnn_graph_plan(struct cudnn_graph *graph, const struct cudnn_engines *engines,
                             struct error *error);
int cudnn_graph_plans(const struct cudnn_graph *graph);
struct cudnn_plan *cudnn_graph_plan_at(const struct cudnn_graph *graph, int plan);

/* Builds a plan that is not built yet, in microseconds to seconds. STATUS_UNSUPPORTED if the plan
 * needs more workspace than the graph allows, or is a last resort that is not needed. */
enum status cudnn_graph_build(struct cudnn_graph *graph, int plan, struct error *error);
/* A plan and its memory, for one user. All zero: not bound. */
struct cudnn_binding {
    cudnnBackendDescriptor_t plan; /* not owned */
    cudnnBackendDescriptor_t pack; /* the tensors' memory; owned */
};
/* Binds a built plan to the memory of its tensors, by their unique ids: device memory, or host
 * memory for tensors by value. */
enum status cudnn_graph_bind(struct cudnn_graph *graph, int plan, const int64_t *uids,
                             void *const *memory, int64_t count, void *workspace,
                             struct cudnn_binding *binding, struct error *error);
void cudnn_graph_unbind(struct cudnn_binding *binding); /* call before the graph is destroyed */
cudnnStatus_t cudnn_graph_run(const struct cudnn_graph *graph, const struct cudnn_binding *binding);
