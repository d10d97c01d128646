/* The theoretical rates of known chips: `roofsweep --list chips`. */
#pragma once

#include <stdio.h>

/* A line for each row of model/chip.h: fused multiply-adds of one multiprocessor in one clock, by
 * unit and precision. "-": the chip has no such unit. "?": the rate is unknown. Ends with the peaks
 * of whole chips. */
void chip_list_print(FILE *stream);
