/* Why a kernel reaches no roof: the units that are busy, or what its threads wait for and why there
 * are no more of them. Pure. */
#pragma once

#include "model/device.h"
#include "model/record.h"

enum { CAUSE_TEXT = 768 };

/* "WORDS: TEXT", where the words are the verdicts, separated by ", ":
 *
 * - the name of a unit (activity_name) that is at least 60 % busy, and of those within 5 points of
 *   it;
 * - "latency", if no unit is. Between 55 and 65 % both are said.
 * - "idle", if the multiprocessors have no thread in more than 15 % of the kernel's time: as in the
 *   last wave of blocks.
 *
 * "": the kernel's activities were not counted. */
void cause_of_kernel(const struct kernel *kernel, const struct device *device,
                     char text[CAUSE_TEXT]);
/* Of the kernel of a record that takes longest, with its share of the kernels' time. */
void cause_write(const struct record *record, const struct device *device, char text[CAUSE_TEXT]);
