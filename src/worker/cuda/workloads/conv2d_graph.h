/* One convolution as an operation graph of cuDNN, and the execution plans that cuDNN's heuristics
 * propose for it: the way to engines that the convolution calls with named algorithms do not reach.
 *
 * create, then any of bind and run, then destroy. */
#ifndef ROOFSWEEP_CONV2D_GRAPH_H
#define ROOFSWEEP_CONV2D_GRAPH_H

#include "worker/cuda/workloads/conv2d_operation.h"

enum { CONV2D_PLANS_MAX = 160, CONV2D_PLAN_NAME = 128 };

struct conv2d_graph;

struct conv2d_graph_request {
    cudnnHandle_t cudnn;      /* must outlive the graph */
    struct plan_shelf *shelf; /* where a plan that is the only one goes in the end; may be NULL */
    struct conv2d_operation operation;
    bool tensor, vector;    /* take engines that use, and that do not use, tensor units */
    const char *only;       /* name of the one plan that is wanted; NULL: all that are proposed */
    size_t workspace_limit; /* byte */
};

struct conv2d_plan {
    char name[CONV2D_PLAN_NAME]; /* engine and knobs by cuDNN's numbers, "engine-38 k2=5 k13=1" */
    bool tensor;                 /* runs on tensor units */
    bool compiled;               /* cuDNN compiles its kernel when the plan is built */
    size_t workspace;            /* byte; known once it is built */
    cudnnBackendDescriptor_t config;
    cudnnBackendDescriptor_t descriptor; /* NULL: not built */
    enum status status;                  /* of building it */
};

/* Plans that compute in no other precision than the request's, at least one, the likely fastest
 * first. One that is named is made from its name, which takes a tenth of the time that the heuristics take.
 * STATUS_UNSUPPORTED with a reason if there is none. */
enum status conv2d_graph_create(const struct conv2d_graph_request *request,
                                struct conv2d_graph **graph, struct error *error);
void conv2d_graph_destroy(struct conv2d_graph *graph); /* takes NULL */

/* How many there are, and one of them, which lives as long as the graph. */
int conv2d_graph_plans(const struct conv2d_graph *graph);
const struct conv2d_plan *conv2d_graph_plan(const struct conv2d_graph *graph, int plan);

/* Builds the plan, if it is not built yet: a matter of microseconds to seconds. STATUS_UNSUPPORTED if
 * it needs more workspace than the request allows. */
enum status conv2d_graph_build(struct conv2d_graph *graph, int plan, struct error *error);
/* Makes a built plan the one that runs, in this device memory, which is aligned to 128 bytes. */
enum status conv2d_graph_bind(struct conv2d_graph *graph, int plan, void *x, void *w, void *y,
                              void *workspace, struct error *error);
/* Enqueues what is bound. */
cudnnStatus_t conv2d_graph_run(struct conv2d_graph *graph);

#endif
