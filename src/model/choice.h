/* The algorithm that a search chose for a configuration, with what the search says of it: enough to
 * run it without another search. Plain data.
 *
 * It holds for that configuration on that model of device with that version of its library: the
 * names of algorithms mean something there only. A worker that is offered one checks that it has
 * the same kernels. */
#pragma once

#include <stdbool.h>

#include "model/record.h"

struct choice {
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

extern const struct field choice_fields[]; /* all members */

/* algorithm_origin of a row whose own search chose. */
extern const char choice_searched[];

/* No choice: all missing. */
void choice_init(struct choice *choice);
bool choice_is_made(const struct choice *choice);

/* False, and *choice as choice_init leaves it, unless the row was measured with what its own search
 * chose, and its kernels are known. */
bool choice_of_record(const struct record *record, struct choice *choice);
/* Sets the record's members: it runs what was chosen. A text that the choice lacks, as one out of a
 * result file may, stays the record's own. */
void choice_into_record(const struct choice *choice, struct record *record);
