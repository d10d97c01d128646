/* Why a kernel reaches no roof: the busy units, or the reasons why its threads wait and the limit
 * on the number of threads. Pure functions. */
#pragma once

#include "model/device.h"
#include "model/record.h"

enum { CAUSE_TEXT = 768 };

/* Writes why a record's longest kernel reaches no roof, with its share of the time of all kernels:
 * "WORDS: TEXT". The words are verdicts, separated by ", ":
 *
 * - names of units (activity_name) that are at least 60 % busy: the busiest unit, and units within
 *   5 points of it;
 * - "latency" if no unit is at least 60 % busy. If the busiest unit has 55 to 65 %, both verdicts
 *   are given.
 * - "idle" if the multiprocessors have no thread in more than 15 % of the kernel's time, for
 * example in the last wave of blocks.
 *
 * "": the kernel's activities were not counted. */
void cause_write(const struct record *record, const struct device *device, char text[CAUSE_TEXT]);
