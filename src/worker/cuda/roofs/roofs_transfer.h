/* Copies between host and device, and to the next device. */
#ifndef ROOFSWEEP_ROOFS_TRANSFER_H
#define ROOFSWEEP_ROOFS_TRANSFER_H

#include "worker/cuda/roofs/family.h"

extern const struct roof_family roofs_transfer;

#endif
