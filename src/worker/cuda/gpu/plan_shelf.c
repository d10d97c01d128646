#include "worker/cuda/gpu/plan_shelf.h"

#include <stdlib.h>

struct graph {
    cudnnBackendDescriptor_t *descriptors; /* owned */
    int count;
};

struct plan_shelf {
    struct graph graphs[PLAN_SHELF_MOST];
    int count;
};

static void graph_destroy(struct graph *graph)
{
    while (graph->count > 0)
        cudnnBackendDestroyDescriptor(graph->descriptors[--graph->count]);
    free(graph->descriptors);
}

static void empty(struct plan_shelf *shelf)
{
    for (int i = 0; i < shelf->count; ++i)
        graph_destroy(&shelf->graphs[i]);
    shelf->count = 0;
}

struct plan_shelf *plan_shelf_create(void)
{
    return calloc(1, sizeof(struct plan_shelf));
}

void plan_shelf_destroy(struct plan_shelf *shelf)
{
    if (shelf)
        empty(shelf);
    free(shelf);
}

void plan_shelf_put(struct plan_shelf *shelf, cudnnBackendDescriptor_t *descriptors, int count)
{
    struct graph graph = {descriptors, count};
    if (!shelf) {
        graph_destroy(&graph);
        return;
    }
    if (shelf->count == PLAN_SHELF_MOST)
        empty(shelf);
    shelf->graphs[shelf->count++] = graph;
}
