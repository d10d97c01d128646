/* The algorithm that a search found for a configuration, with the results of the search. With it
 * the configuration can run again without a search. Plain data.
 *
 * An algorithm is valid for one configuration, one device model and one version of library and
 * driver. A worker that receives an algorithm checks that its kernels are still the same. */
#pragma once

#include <stdbool.h>

#include "model/record.h"

/* Members have the names, types and sizes of those of struct record. */
struct algorithm {
    char algorithm[128]; /* "": no algorithm */
    char algorithm_id[17], algorithm_launches[17];
    char refused_algorithms[256];
    int64_t search_candidates;
    double search_time, search_noise;
    char heuristic_algorithm[128], heuristic_id[17];
    double heuristic_time; /* s */
    char runner_up_algorithm[128], runner_up_id[17];
    double runner_up_time; /* s */
    char algorithm_origin[48];
};

extern const struct field algorithm_fields[]; /* all members */

/* algorithm_origin of a row whose own search found the algorithm. */
extern const char algorithm_searched[];

/* Sets all members to missing. */
void algorithm_init(struct algorithm *algorithm);
bool algorithm_is_known(const struct algorithm *algorithm);

/* Sets *algorithm to the algorithm of a measured row, if a search for this or for an earlier row
 * found it. False for other rows, for which all members become missing. */
bool algorithm_of_record(const struct record *record, struct algorithm *algorithm);
void algorithm_into_record(const struct algorithm *algorithm, struct record *record);
