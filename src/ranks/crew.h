/* The ranks as rank 0 sees them: what state each is in, what it has in hand, and since when. Plain data for
 * the coordinator, which alone changes it; the functions here only look. */
#ifndef ROOFSWEEP_CREW_H
#define ROOFSWEEP_CREW_H

#include <stdbool.h>
#include <stddef.h>

#include "model/device.h"
#include "ranks/hand.h"

enum rank_state {
    RANK_PREPARING,
    RANK_IDLE,     /* all that it has in hand is timed, or there is nothing: it can have more */
    RANK_BUSY,     /* one of what it has in hand is being measured */
    RANK_COUNTING, /* it was told to count what it has in hand */
    RANK_LOST,     /* those from here on get no work */
    RANK_SILENT,   /* was preparing; may write again */
    RANK_OVERDUE,  /* was busy or counting; may write again */
    RANK_GONE
};

struct rank {
    enum rank_state state;
    struct hand hand; /* owned; of RANK_IDLE to RANK_COUNTING, and RANK_OVERDUE */
    double
        since; /* s: of RANK_PREPARING and RANK_BUSY its beginning, of RANK_COUNTING the last record */
    double count_began; /* s, of RANK_COUNTING */
    size_t count_rows;  /* that it had in hand then */
};

struct crew {
    struct rank *ranks; /* owned */
    int count;
};

/* All are preparing. False without memory. */
bool crew_create(struct crew *crew, int count);
void crew_clear(struct crew *crew);

/* What is true of some rank at least. */
struct crew_census {
    bool preparing;
    bool at_work; /* is measuring or counting */
    bool able;    /* gets work, now or later */
};
struct crew_census crew_look(const struct crew *crew);

/* Configurations that are timed and wait for their counters, of all ranks that get work. */
size_t crew_timed(const struct crew *crew);

/* Every rank has said its last word. */
bool crew_gone(const struct crew *crew);
/* Those that have not, with their hosts: "rank 3 on node7, rank 5 on node8". False: there are none. */
bool crew_absent(const struct crew *crew, const struct device *devices, char *text, size_t size);

/* For people: " over CONFIGURATION" of a rank that measures one, else what it counts, or "". */
enum { CREW_WORK = WORKLOAD_TEXT + 8 };
void crew_work_format(const struct rank *rank, const struct plan *plan, char text[CREW_WORK]);

/* s; 0: for ever. */
struct crew_patience {
    double roofs; /* before a rank has a device with roofs */
    double work;  /* while it measures a configuration */
    double count; /* in addition, for each that waits for its counters */
};
/* Whether the rank has said nothing for longer than that. Never of one that waits for a letter. */
bool crew_is_silent(const struct rank *rank, const struct crew_patience *patience, double now);

/* s that a row took whose record comes now: until it was timed, and its share of the counting. */
double crew_duration(const struct rank *rank, const struct hand_item *item, double now);

#endif
