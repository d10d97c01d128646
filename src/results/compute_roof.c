#include "results/compute_roof.h"

#include <math.h>

struct compute_roof compute_roof_of(const struct device *device, int64_t unit,
                                    enum precision precision, double clock)
{
    bool vector = unit == UNIT_VECTOR;
    if ((!vector && unit != UNIT_TENSOR) || precision == PRECISION_COUNT)
        return (struct compute_roof){NAN, NAN};
    double each = (vector ? device->cycle_vector : device->cycle_tensor)[precision];
    double peak = (vector ? device->peak_vector : device->peak_tensor)[precision];
    return (struct compute_roof){
        .peak = isnan(each * clock) ? peak : each * clock,
        .sustained = (vector ? device->sustained_vector : device->sustained_tensor)[precision],
    };
}
