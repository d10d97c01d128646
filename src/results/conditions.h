/* What a result file has, so that its variables can have values (enum field_need). A variable is left out
 * if no row, device or roof of the file can have a value for it: nobody asked for it (energy = no), none of
 * its workloads has it, or none of its devices can measure it. */
#ifndef ROOFSWEEP_CONDITIONS_H
#define ROOFSWEEP_CONDITIONS_H

#include "results/results.h"

/* From sessions, devices and the texts of the rows; reads no record. */
unsigned conditions_met(const struct results *results);

#endif
