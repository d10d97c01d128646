/* The theoretical rates of known chips: `roofsweep --list chips`. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* A line for each row of model/chip.h: fused multiply-adds of one multiprocessor in one clock, by
 * unit and precision. "-", in JSON 0: the chip has no such unit. "?", in JSON null: the rate is
 * unknown. The text ends with the peaks of whole chips. */
void chip_list_print(bool json, FILE *stream);
