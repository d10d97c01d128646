/* What may be said of a row's times, by how they were taken. Pure functions of the record. */
#ifndef ROOFSWEEP_SAMPLING_H
#define ROOFSWEEP_SAMPLING_H

#include "model/record.h"

struct sampling {
    double uncertainty;    /* half the width of the median's confidence interval, over the median */
    double timer_share;    /* of the timer's own time in a sample of the median time */
    int64_t timer_visible; /* 1: more than 2 % of it; FIELD_MISSING if that is not known */
    double idle_share;     /* of the energy that the device would have used without the work */
};

/* What is missing in the record makes missing what needs it. */
struct sampling sampling_derive(const struct record *record);

enum { SAMPLING_MARKS = 5 };
/* Behind a time in the table: 'n' noisy, an uncertainty above 5 %, 'h' host_paced, 'b' bimodal, 't' timer_visible, in
 * this order; "" for a time that is as it should be. */
void sampling_marks(const struct record *record, char marks[SAMPLING_MARKS]);
/* What a mark means; NULL for another letter. */
const char *sampling_mark_text(char mark);

#endif
