/* One convolution by cuDNN's calls with named algorithms, which a sweep can ask for. cuDNN marks them
 * as deprecated; operation graphs (conv2d_graph.h) reach more engines, but their plans have no names.
 *
 * create, then find, then any of bind and run, then destroy. */
#ifndef ROOFSWEEP_CONV2D_CALLS_H
#define ROOFSWEEP_CONV2D_CALLS_H

#include "model/workloads/conv2d.h"
#include "worker/cuda/gpu/libraries.h"

enum { CONV2D_CALLS_MAX = 16, CONV2D_CALL_NAMES = 160 };

struct conv2d_calls;

struct conv2d_calls_request {
    const struct conv2d *shape;
    struct arena *arena; /* for the search's workspace */
    cudnnDataType_t data, compute;
    cudnnMathType_t math;
    bool tensor,
        vector; /* `math` runs on tensor units; results of vector units are taken as well */
};

struct conv2d_memory {
    void *x, *w, *y;
};

struct conv2d_call {
    const char *name; /* "implicit-precomp-gemm" */
    cudnnMathType_t math;
    bool tensor;      /* runs on tensor units */
    size_t workspace; /* byte */
    int number;       /* cuDNN's, in this pass */
};

enum status conv2d_calls_create(const struct conv2d_calls_request *request,
                                struct conv2d_calls **calls, struct error *error);
void conv2d_calls_destroy(struct conv2d_calls *calls); /* takes NULL */

/* Whether the pass has an algorithm of this name; their names, separated by ", ". */
bool conv2d_calls_has(const struct conv2d_calls *calls, const char *name);
void conv2d_calls_list(const struct conv2d_calls *calls, char names[CONV2D_CALL_NAMES]);

/* All calls that compute in no other precision than the request's, the likely fastest first; `name`:
 * those of one algorithm alone, or NULL. cuDNN runs each once where a name is given, since only that
 * tells in which math it runs. *count may be 0: then *refusal is cuDNN's reason, or success. */
enum status conv2d_calls_find(struct conv2d_calls *calls, cudnnHandle_t cudnn, const char *name,
                              const struct conv2d_memory *memory, size_t workspace_limit,
                              struct conv2d_call found[CONV2D_CALLS_MAX], int *count,
                              cudnnStatus_t *refusal, struct error *error);

/* Makes `call` the one that runs, in this memory. */
enum status conv2d_calls_bind(struct conv2d_calls *calls, const struct conv2d_call *call,
                              const struct conv2d_memory *memory, void *workspace,
                              struct error *error);
/* Enqueues what is bound. */
cudnnStatus_t conv2d_calls_run(struct conv2d_calls *calls, cudnnHandle_t cudnn);

#endif
