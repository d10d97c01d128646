/* One run of a method, and how long it takes. */
#ifndef ROOFSWEEP_ROOFS_RUN_H
#define ROOFSWEEP_ROOFS_RUN_H

#include "worker/cuda/roofs/family.h"

/* Enqueues a run of a family without `time`, between the events `first` and first + 1. */
enum status run_enqueue(struct roofs *roofs, const struct winner *winner, int first,
                        struct error *error);
/* s, between those events, which must have come. */
enum status run_elapsed(struct roofs *roofs, int first, double *seconds, struct error *error);
/* A run of any family, waited for. seconds: its own time. */
enum status run_time(struct roofs *roofs, const struct winner *winner, double *seconds,
                     struct error *error);
/* Of one run: bytes, FLOPs, or how many things take the time. */
double run_work(const struct method *method);

#endif
