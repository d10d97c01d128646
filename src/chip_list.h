/* What is known of chips, for people and programs: `roofsweep --list chips`. */
#pragma once

#include <stdio.h>

#include "results/report.h"

/* A line for each row of model/chip.h: fused multiply-adds of one multiprocessor in one clock, by
 * unit and precision. No such units: "-" for people, 0 for programs. Not known: "?" for people,
 * empty or null for programs. For people also the peaks of whole chips. */
void chip_list_print(enum table_format format, FILE *stream);
