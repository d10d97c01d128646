/* An operation graph of cuDNN, and its execution plans: any operations, described by attributes.
 *
 * create; describe and operate for tensors and operations; plan; then any of build, bind and run;
 * destroy. */
#pragma once

#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/workloads/cudnn_tensor.h"

/* An attribute of one of cuDNN's descriptors. */
struct cudnn_attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    const void *values; /* NULL ends a list */
};

enum { CUDNN_PLAN_NAME = 128 };

struct cudnn_plan {
    char name[CUDNN_PLAN_NAME]; /* engine and knobs by cuDNN's numbers, "engine-38 k2=5 k13=1" */
    bool tensor;                /* runs on tensor units */
    bool compiled;              /* cuDNN compiles its kernel when the plan is built */
    size_t workspace;           /* byte; known once it is built */
    double hot_time;            /* s, of its users: as struct search has it */
    enum status status;         /* of building it */
    cudnnBackendDescriptor_t config;
    cudnnBackendDescriptor_t descriptor; /* NULL: not built */
};

/* Plans of rows that are done. They stay for a while, because destroying a plan that cuDNN has
 * compiled unloads its code: then CUPTI has to be attached anew (profiling/counters.c), which costs
 * as much as counting dozens of rows. They are destroyed many at a time, so this is rare. The last
 * graphs that were searched among stay for the next row of the same shape. */
struct plan_shelf;
struct plan_shelf *plan_shelf_create(void);        /* NULL without memory */
void plan_shelf_destroy(struct plan_shelf *shelf); /* takes NULL; destroys what is on it */

struct cudnn_graph;

/* `shelf`: where its plans go in the end; NULL: they are destroyed with the graph.
 *
 * `key`, a hash: of what is searched among. Then it is the same graph that the last rows with this
 * key had, with its plans, and has several users; its plans are destroyed with it. NULL: it is new.
 */
enum status cudnn_graph_create(cudnnHandle_t cudnn, struct plan_shelf *shelf, const char *key,
                               size_t workspace_limit, struct cudnn_graph **graph,
                               struct error *error);
void cudnn_graph_destroy(struct cudnn_graph *graph); /* for this user; takes NULL */

/* A descriptor with these attributes, which lives as long as the graph. */
enum status cudnn_graph_describe(struct cudnn_graph *graph, cudnnBackendDescriptorType_t type,
                                 const struct cudnn_attribute *attributes,
                                 cudnnBackendDescriptor_t *descriptor, struct error *error);
/* The same of a tensor. */
struct cudnn_graph_tensor {
    int64_t uid; /* its name in the graph and in a variant pack */
    cudnnDataType_t type;
    struct cudnn_extents extents;
    int64_t alignment; /* byte */
    bool inner;        /* it is within the kernel only, and has no memory */
    bool by_value;     /* its memory is the host's */
};
enum status cudnn_graph_tensor(struct cudnn_graph *graph, const struct cudnn_graph_tensor *tensor,
                               cudnnBackendDescriptor_t *descriptor, struct error *error);
/* The same of an operation, which becomes the graph's next one. */
enum status cudnn_graph_operate(struct cudnn_graph *graph, cudnnBackendDescriptorType_t type,
                                const struct cudnn_attribute *attributes, struct error *error);

/* Which of cuDNN's engines are wanted, if it is not the first that compute the graph in any way. */
struct cudnn_engines {
    bool tensor, vector; /* those that use, and that do not use, tensor units */
    const char *only;    /* name of the one plan that is wanted; NULL: all */
};

/* Finds plans, the likely fastest first, at least one. STATUS_UNSUPPORTED with a reason if there is
 * none.
 *
 * `engines` NULL: the first engines that the heuristics name, each built, and named without its
 * knobs. Otherwise: all engines that compute in no narrower precision; none is built. A plan that
 * is named is made from its name, which takes a tenth of the time that the heuristics take. */
enum status cudnn_graph_plan(struct cudnn_graph *graph, const struct cudnn_engines *engines,
                             struct error *error);
int cudnn_graph_plans(const struct cudnn_graph *graph);
struct cudnn_plan *cudnn_graph_plan_at(const struct cudnn_graph *graph, int plan);

/* Builds the plan, if it is not built yet: a matter of microseconds to seconds. STATUS_UNSUPPORTED
 * if it needs more workspace than the graph allows. */
enum status cudnn_graph_build(struct cudnn_graph *graph, int plan, struct error *error);
/* What one user runs. All zero: nothing. */
struct cudnn_binding {
    cudnnBackendDescriptor_t plan; /* not owned */
    cudnnBackendDescriptor_t pack; /* its memory; owned */
};
/* Makes a built plan the one that runs, with these tensors by their unique ids: device memory, of
 * those that are passed by value the host's. */
enum status cudnn_graph_bind(struct cudnn_graph *graph, int plan, const int64_t *uids,
                             void *const *memory, int64_t count, void *workspace,
                             struct cudnn_binding *binding, struct error *error);
void cudnn_graph_unbind(struct cudnn_binding *binding); /* before its graph is destroyed */
/* Enqueues what is bound. */
cudnnStatus_t cudnn_graph_run(const struct cudnn_graph *graph, const struct cudnn_binding *binding);
