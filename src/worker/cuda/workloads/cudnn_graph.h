/* An operation graph of cuDNN, and the execution plans that its heuristics propose for it: any
 * operations, described by attributes.
 *
 * create; describe and operate for tensors and operations; plan; then any of bind and run; destroy. */
#ifndef ROOFSWEEP_CUDNN_GRAPH_H
#define ROOFSWEEP_CUDNN_GRAPH_H

#include "worker/cuda/workloads/cudnn_descriptors.h"

enum { CUDNN_GRAPH_PLANS = 8, CUDNN_GRAPH_OPERATIONS = 16, CUDNN_GRAPH_NAME = 32 };

struct cudnn_plan {
    char name[CUDNN_GRAPH_NAME]; /* "engine-38", by cuDNN's number */
    bool tensor;                 /* runs on tensor units */
    size_t workspace;            /* byte */
    cudnnBackendDescriptor_t descriptor;
};

struct cudnn_graph;

/* `shelf`: where its plans go in the end; may be NULL. */
enum status cudnn_graph_create(cudnnHandle_t cudnn, struct plan_shelf *shelf,
                               size_t workspace_limit, struct cudnn_graph **graph,
                               struct error *error);
void cudnn_graph_destroy(struct cudnn_graph *graph); /* takes NULL */

/* A descriptor with these attributes, which lives as long as the graph. */
enum status cudnn_graph_describe(struct cudnn_graph *graph, cudnnBackendDescriptorType_t type,
                                 const struct cudnn_attribute *attributes,
                                 cudnnBackendDescriptor_t *descriptor, struct error *error);
/* The same of an operation, which becomes the graph's next one. */
enum status cudnn_graph_operate(struct cudnn_graph *graph, cudnnBackendDescriptorType_t type,
                                const struct cudnn_attribute *attributes, struct error *error);

/* Builds a plan for each of the first engines that cuDNN's heuristics name, the likely fastest first,
 * at least one. STATUS_UNSUPPORTED with a reason if there is none. */
enum status cudnn_graph_plan(struct cudnn_graph *graph, struct error *error);
int cudnn_graph_plans(const struct cudnn_graph *graph);
const struct cudnn_plan *cudnn_graph_plan_at(const struct cudnn_graph *graph, int plan);

/* Makes the plan the one that runs, with these tensors by their unique ids: device memory, of those
 * that are passed by value the host's. */
enum status cudnn_graph_bind(struct cudnn_graph *graph, int plan, const int64_t *uids,
                             void *const *memory, int64_t count, void *workspace,
                             struct error *error);
cudnnStatus_t cudnn_graph_run(struct cudnn_graph *graph); /* enqueues what is bound */

#endif
