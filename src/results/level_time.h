/* The shortest time in which a memory level can move a row's bytes. Pure.
 *
 * A level has a roof for each direction and one for both together, and none may be exceeded: the time is
 * the longest of read / read roof, written / write roof, and all / best roof of any mix. (An L2 may do
 * 9.5 TB/s of loads, 4.9 of stores, and 12.1 of both at once.) */
#ifndef ROOFSWEEP_LEVEL_TIME_H
#define ROOFSWEEP_LEVEL_TIME_H

#include "model/device.h"

/* What is moved at a level, byte. Directions that are not known are NaN; `all` is then enough. */
struct level_traffic {
    double read, written, all;
};

/* s. A roof that was not measured limits nothing; NaN if none of them and its bytes are known. */
double level_time(const struct device *device, enum memory_level level,
                  const struct level_traffic *traffic);

/* byte s-1: the bandwidth roof of this mix, all / level_time; of no bytes at all the best roof. */
double level_bandwidth(const struct device *device, enum memory_level level,
                       const struct level_traffic *traffic);

#endif
