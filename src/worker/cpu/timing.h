/* One configuration timed and traced: the members time and trace of device_ops. */
#ifndef ROOFSWEEP_CPU_TIMING_H
#define ROOFSWEEP_CPU_TIMING_H

#include "worker/cpu/routine.h"
#include "worker/device_ops.h"

enum status timing_time(struct device_state *state, struct work *work, bool cold, int samples,
                        double *seconds, struct record *record, struct error *error);
enum status timing_trace(struct device_state *state, struct work *work, bool cold,
                         struct record *record, struct error *error);

#endif
