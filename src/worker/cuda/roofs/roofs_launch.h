/* What it costs to launch a kernel. */
#ifndef ROOFSWEEP_ROOFS_LAUNCH_H
#define ROOFSWEEP_ROOFS_LAUNCH_H

#include "worker/cuda/roofs/family.h"

extern const struct roof_family roofs_launch;

#endif
