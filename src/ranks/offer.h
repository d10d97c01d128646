/* What one rank may be given next, and how it is worded for its worker. Made for the moment, from what rank 0
 * knows; owns nothing. */
#ifndef ROOFSWEEP_OFFER_H
#define ROOFSWEEP_OFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "model/device.h"
#include "ranks/forecast.h"
#include "ranks/hand.h"
#include "results/choices.h"

struct offer {
    const struct manifest *manifest;
    const struct plan *plan;
    const struct forecast *forecast;
    double left;                   /* s, for measuring; INFINITY: no limit */
    const bool *alone;             /* by plan item: it is counted by itself */
    const struct choices *choices; /* of algorithms; NULL: none are kept */
    /* of the rank */
    const struct device *device;
    const struct hand *hand;
};

/* Rows of this rank whose counters are read together: as many as [measure] count_together or else the device
 * says; 1 where nothing is counted. */
size_t offer_together(const struct offer *offer);

/* A schedule_filter; context: the offer. Nothing is begun that cannot end; what the rank has timed has its
 * counters still to come, and is reckoned as if it were measured anew. What is counted by itself finds
 * nothing that waits. */
bool offer_suits(const void *context, size_t item);

/* The request line for the worker; the caller frees it. NULL without memory. */
char *offer_request(const struct offer *offer, size_t item);

#endif
