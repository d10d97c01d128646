/* The search for the fastest of what a library offers: "auto".
 *
 * Each candidate is timed briefly, then the fastest ones in turn, several times. The library's own
 * first choice stays unless another one is faster by more than the noise.
 *
 * What an earlier search chose (record->offer) is taken instead, if the library still has a candidate of that
 * name that runs the same kernels in the same grids. Where the kernels are not known nothing is taken. */
#ifndef ROOFSWEEP_SEARCH_H
#define ROOFSWEEP_SEARCH_H

#include <stdbool.h>

#include "worker/gpu/work.h"
#include "worker/gpu/identity.h"

struct search {
    struct gpu *gpu;
    struct work *work;
    bool cold; /* the cache mode that the work is wanted in */
    int count; /* candidates, at least 1 */
    /* Candidates from here on are in the library's own order: the first of them that it takes is its
     * own choice. `count`: it has no order. */
    int ordered;
    /* Makes a candidate what `work` runs. A refusal is no failure of the search. */
    enum status (*bind)(struct gpu *gpu, struct work *work, int candidate, struct error *error);
    const char *(*name)(const struct work *work, int candidate);
    /* algorithm_id of kernels that are not to be chosen, in any form; NULL: none. */
    const char *refused;
    /* What tells algorithms apart; NULL: identity_find. */
    enum status (*identify)(struct gpu *gpu, struct work *work, struct identity *identity,
                            struct error *error);
};

/* Takes record->offer away. True: the work is bound to the *chosen one of the offer, and *record says so,
 * with what the earlier search found. It has run once, and is not timed. *status, with *error: STATUS_OK,
 * or STATUS_DEVICE, with false. */
bool search_recall(const struct search *search, int *chosen, struct record *record,
                   enum status *status, struct error *error);

/* Recalls what is offered; or else searches. Leaves the work bound to *chosen, and sets what *record has on the
 * search: algorithm_id, algorithm_launches, algorithm_origin, search_*, heuristic_*, runner_up_*. If the library takes no candidate, the
 * first one's refusal is the error. */
enum status search_run(const struct search *search, int *chosen, struct record *record,
                       struct error *error);

enum { SEARCH_REFUSED = 128 };

/* Adds what the record has run to what is not to be chosen any more (search.refused), and tells so in the
 * record. `recalled`: it was an earlier choice; what that one's search refused, the next finds by itself.
 * STATUS_UNSUPPORTED if its kernels are not known, or too many are refused already. */
enum status search_refuse(char refused[SEARCH_REFUSED], bool recalled, struct record *record,
                          struct error *error);

#endif
