/* conv2d on the CPU: conv2d_im2col through CBLAS; conv2d_direct and conv2d_plain, which is the name
 * that a GPU has as well, from the definition. */
#ifndef ROOFSWEEP_CPU_CONV2D_H
#define ROOFSWEEP_CPU_CONV2D_H

#include "model/workloads/conv2d.h"
#include "worker/cpu/routine.h"

extern const struct routine conv2d_im2col, conv2d_direct, conv2d_plain;

/* Sets sizes, and what is read and written. */
void conv2d_tensors(struct work *work, const struct conv2d *s);

#endif
