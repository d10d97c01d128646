/* The search for the fastest algorithm of a library: "auto".
 *
 * Each candidate is timed briefly; the fastest ones are then timed in turn, several times. Cache
 * mode and launch are those of the record's configuration: with a hot cache and launch = graph, the
 * finalists are timed in graphs. The library's own first choice wins unless another candidate is
 * faster by more than the noise.
 *
 * An algorithm of an earlier search (record->offer) needs no search. The library must still have a
 * candidate of that name with the same kernels in the same grids. If the kernels are unknown, the
 * offer is ignored. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/gpu/work.h"

/* ---- kernels of a piece of work ---- */

/* Identifies an algorithm by its kernels, in any order. Names do not identify it: a library may
 * offer the same kernels under several names, and a later version other kernels under the same
 * name. */
struct identity {
    uint64_t kernels;  /* hash of the kernels' names; 0: unknown */
    uint64_t launches; /* hash of names, grids, blocks and shared memory; 0: unknown */
};

enum { KERNEL_LIST_MAX = 16, KERNEL_LIST_NAME = 96 };
struct kernel_list {
    struct listed_kernel {
        char name[KERNEL_LIST_NAME]; /* without arguments and template arguments */
        int launches;
    } kernels[KERNEL_LIST_MAX]; /* further kernels are left out */
    int count;
};

/* Formats the names of the kernels that multiply, "NAME, NAME", the most launched first. Leaves out
 * generic kernels (elementwise, set-up, reductions). Names beyond `size` bytes become "...". */
void kernel_list_format(const struct kernel_list *list, char *text, size_t size);

/* Identifies the bound algorithm by capturing one iteration, which does not run. The identity stays
 * unknown if graph_kernels does not know the kernels. Adds the kernels to *list; NULL: none. */
enum status identity_find(struct gpu *gpu, struct work *work, struct identity *identity,
                          struct kernel_list *list, struct error *error);

/* ---- the search ---- */

struct search {
    struct gpu *gpu;
    struct work *work;
    int count; /* number of candidates, at least 1 */
    /* Number of the first candidate of the library's heuristic. The first candidate from there on
     * that the library accepts is the library's own choice. `count`: no heuristic. */
    int ordered;
    /* Makes `work` run a candidate. A refusal does not fail the search. */
    enum status (*bind)(struct gpu *gpu, struct work *work, int candidate, struct error *error);
    const char *(*name)(const struct work *work, int candidate);
    /* Returns where the caller keeps a candidate's shortest time with a hot cache, s; 0: unknown. A
     * search with a cold cache skips candidates that were slow with a hot cache. NULL: not kept. */
    double *(*hot_time)(const struct work *work, int candidate);
    /* algorithm_id of each algorithm with wrong results, with a space after each; NULL: none. */
    const char *refused;
    /* Replaces identity_find; NULL: identity_find. */
    enum status (*identify)(struct gpu *gpu, struct work *work, struct identity *identity,
                            struct error *error);
};

/* Consumes record->offer. Returns true if the offered algorithm is now bound, as candidate *chosen;
 * *record then has the results of the earlier search. The work is not timed. On false, *status is
 * STATUS_OK, or STATUS_DEVICE with *error. */
bool search_recall(const struct search *search, int *chosen, struct record *record,
                   enum status *status, struct error *error);

/* Recalls the offered algorithm, or searches. Binds candidate *chosen, and sets the search's
 * members of *record: algorithm_id, algorithm_launches, algorithm_origin, search_*, heuristic_*,
 * runner_up_*. If the library refuses all candidates, the error is the first refusal. */
enum status search_run(const struct search *search, int *chosen, struct record *record,
                       struct error *error);

enum { SEARCH_REFUSED = 128 };

/* Adds the record's algorithm to `refused` (see struct search) and to record->refused_algorithms.
 * With `recalled` the algorithm comes from an earlier search: the record drops that search's
 * refusals, because the next search tests them again. STATUS_UNSUPPORTED: unknown kernels, or a
 * full list. */
enum status search_refuse(char refused[SEARCH_REFUSED], bool recalled, struct record *record,
                          struct error *error);
