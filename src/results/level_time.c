#include "results/level_time.h"

#include <math.h>

/* fmax passes over a NaN. */
double level_time(const struct device *device, enum memory_level level,
                  const struct level_traffic *traffic)
{
    double one_way = fmax(traffic->read / device->read_bandwidth[level],
                          traffic->written / device->write_bandwidth[level]);
    return fmax(one_way, traffic->all / device->peak_bandwidth[level]);
}

double level_bandwidth(const struct device *device, enum memory_level level,
                       const struct level_traffic *traffic)
{
    double time = level_time(device, level, traffic);
    return time > 0.0 ? traffic->all / time : device->peak_bandwidth[level];
}
