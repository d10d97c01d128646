/* The algorithm that a search chose for a configuration, with what the search says of it: enough to
 * run it without another search. Plain data.
 *
 * It holds for that configuration on that model of device with that version of its library: the
 * names of algorithms mean something there only. A worker that is offered one checks that it has
 * the same kernels. */
#pragma once

#include <stdbool.h>

#include "model/record.h"

struct algorithm {
    /* As the members of the same name of struct record. */
    char algorithm[128];
    char algorithm_id[17], algorithm_launches[17];
    char layout_chosen[16];
    double layout_other_time; /* s */
    char refused_algorithms[256];
    int64_t search_candidates;
    double search_time, search_noise;
    char heuristic_algorithm[128], heuristic_id[17];
    double heuristic_time; /* s */
    char runner_up_algorithm[128], runner_up_id[17];
    double runner_up_time;     /* s */
    char algorithm_origin[48]; /* what a row says that is measured with it */
};

extern const struct field algorithm_fields[]; /* all members */

/* algorithm_origin of a row whose own search chose. */
extern const char algorithm_searched[];

/* All missing. */
void algorithm_init(struct algorithm *algorithm);
bool algorithm_is_known(const struct algorithm *algorithm);

/* False, and *algorithm as algorithm_init leaves it, unless the row was measured with what its own
 * search chose, and its kernels are known. */
bool algorithm_of_record(const struct record *record, struct algorithm *algorithm);
/* Sets the record's members: it runs what was chosen. A text that the algorithm lacks, as one out
 * of a result file may, stays the record's own. */
void algorithm_into_record(const struct algorithm *algorithm, struct record *record);
