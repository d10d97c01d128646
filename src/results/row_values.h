/* The variables of config of one row, by the names that they have in the result file. Pure. */
#ifndef ROOFSWEEP_ROW_VALUES_H
#define ROOFSWEEP_ROW_VALUES_H

#include "model/device.h"
#include "model/record.h"
#include "results/advice.h"
#include "results/derived_rows.h"

struct row_values {
    const struct record *record;
    const struct device *device;
    struct derived_row derived;
};

struct row_values row_values_of(const struct record *record, const struct device *device);

/* An advice_lookup of a struct row_values. Beside the variables there is the device's device_kind. A flag is its word. */
advice_lookup row_value;

#endif
