/* The search for the fastest of what a library offers: "auto".
 *
 * Each candidate is timed briefly, then the fastest ones in turn, several times. Cache mode and
 * launch are those of the record's configuration, which must be set: with a hot cache in a graph
 * the fastest ones are timed in graphs. The library's own first choice stays unless another one is
 * faster by more than the noise.
 *
 * What an earlier search chose (record->offer) is taken instead, if the library still has a
 * candidate of that name that runs the same kernels in the same grids.
 * Where the kernels are not known nothing is taken. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/gpu/work.h"

/* ---- which kernels a piece of work runs ---- */

/* Libraries offer the same kernels under several names, and other kernels under the same name, so
 * an algorithm is known by its kernels. */
struct identity {
    uint64_t kernels;  /* of the kernels' names, whatever their order and grids; 0: not known */
    uint64_t launches; /* the same with grids, blocks and shared memory; 0: not known */
};

/* The kernels by short names, to be told beside the name of an algorithm that leaves the choice of
 * some of them to another library. Plain data. */
enum { KERNEL_LIST_MAX = 16, KERNEL_LIST_NAME = 96 };
struct kernel_list {
    struct listed_kernel {
        char name[KERNEL_LIST_NAME];
        int launches;
    } kernels[KERNEL_LIST_MAX]; /* more are left out */
    int count;
};

/* `symbol` as the driver has it, mangled or not. Without its template's and its own arguments it is
 * what "RNN_blockPersist_fp_LSTM" or "nvjet_sm90_hsh_64x8_64x16_1x2_h_bz_NNT" is. */
void kernel_list_add(struct kernel_list *list, const char *symbol);

/* Those that multiply, "NAME, NAME", the most launched first, then by name: work on single
 * elements, set-up and sums of parts are left out. As many as fit, "..." for the rest; "" if there
 * is none. `text` of `size` bytes is always ended. */
void kernel_list_format(const struct kernel_list *list, char *text, size_t size);

/* Of what is bound: one iteration is captured, not run. It stays unknown where graph_kernels knows
 * nothing. Adds the kernels to *list, which is empty; NULL: not wanted. */
enum status identity_find(struct gpu *gpu, struct work *work, struct identity *identity,
                          struct kernel_list *list, struct error *error);

/* ---- the search ---- */

struct search {
    struct gpu *gpu;
    struct work *work;
    int count; /* candidates, at least 1 */
    /* Candidates from here on are in the library's own order: the first of them that it takes is
     * its own choice. `count`: it has no order. */
    int ordered;
    /* Makes a candidate what `work` runs. A refusal is no failure of the search. */
    enum status (*bind)(struct gpu *gpu, struct work *work, int candidate, struct error *error);
    const char *(*name)(const struct work *work, int candidate);
    /* Where the least that a candidate takes with a hot cache is kept, s, for a later search of the
     * same candidates with a cold one, which takes no less; 0: not known. NULL: nowhere. */
    double *(*hot_time)(const struct work *work, int candidate);
    /* algorithm_id of kernels that are not to be chosen, in any form; NULL: none. */
    const char *refused;
    /* What tells algorithms apart; NULL: identity_find. */
    enum status (*identify)(struct gpu *gpu, struct work *work, struct identity *identity,
                            struct error *error);
};

/* Takes record->offer away. True: the work is bound to the *chosen one of the offer, and *record
 * says so, with what the earlier search found. It has run once, and is not timed. *status, with
 * *error: STATUS_OK, or STATUS_DEVICE, with false. */
bool search_recall(const struct search *search, int *chosen, struct record *record,
                   enum status *status, struct error *error);

/* Recalls what is offered; or else searches. Leaves the work bound to *chosen, and sets what
 * *record has on the search: algorithm_id, algorithm_launches, algorithm_origin, search_*,
 * heuristic_*, runner_up_*. If the library takes no candidate, the first one's refusal is the
 * error. */
enum status search_run(const struct search *search, int *chosen, struct record *record,
                       struct error *error);

enum { SEARCH_REFUSED = 128 };

/* Adds what the record has run to what is not to be chosen any more (search.refused), and tells so
 * in the record. `recalled`: it was an earlier algorithm; what that one's search refused, the next
 * finds by itself. STATUS_UNSUPPORTED if its kernels are not known, or too many are refused
 * already. */
enum status search_refuse(char refused[SEARCH_REFUSED], bool recalled, struct record *record,
                          struct error *error);
