/* Collective decisions before and after the sweep, so that no rank leaves while others wait for
 * it. */
#ifndef ROOFSWEEP_AGREEMENT_H
#define ROOFSWEEP_AGREEMENT_H

#include <mpi.h>
#include <stdbool.h>

#include "model/device.h"
#include "model/record.h"
#include "base/status.h"

/* Collective. Returns the same status on every rank: that of the lowest rank whose `own` is not
 * STATUS_OK, whose error text rank 0 then has in *error, with the rank in front if it is not rank
 * 0. */
enum status agreement_reach(MPI_Comm comm, enum status own, struct error *error);

/* Collective. Gives every rank rank 0's text; the caller frees it. */
char *agreement_share_text(MPI_Comm comm, const char *text);

/* These pass over devices that are not open: they measure nothing. */
/* STATUS_DEVICE if two of these devices are the same one, (kind, hostname, uuid), of an exclusive
 * kind. */
enum status agreement_check_devices(const struct device *devices, int count, struct error *error);

/* Ranks on one device of a kind that is not exclusive are devices of their own: all but the first of them get
 * "#2", "#3", ... behind the UUID. A later job with as many ranks gives the same names. */
void agreement_tell_apart(struct device *devices, int count);

/* STATUS_DEVICE if they are of different kinds. They must not share out one list: what only a GPU
 * offers, a CPU would take and skip at once. */
enum status agreement_check_kinds(const struct device *devices, int count, struct error *error);

#endif
