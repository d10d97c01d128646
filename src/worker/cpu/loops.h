/* The two loops on the CPU: chains of multiply-adds in registers, and over tiles. */
#ifndef ROOFSWEEP_CPU_LOOPS_H
#define ROOFSWEEP_CPU_LOOPS_H

#include "worker/cpu/routine.h"

extern const struct routine compute_loop_plain, shared_loop_plain;

#endif
