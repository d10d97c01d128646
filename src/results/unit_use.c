#include "results/unit_use.h"

#include <math.h>
#include <stdio.h>

#include "results/compute_roof.h"

static double peak_of(const struct record *record, const struct device *device, enum unit unit,
                      int precision)
{
    return compute_roof_of(device, unit, (enum precision)precision, record->sm_clock_counted).peak;
}

static double part_time(double part, double peak, double all)
{
    const double negligible = 0.01;
    if (isnan(part) || part == 0)
        return 0;
    return isnan(peak) && part < negligible * all ? 0 : part / peak;
}

/* int8 operations are no FLOPs. */
static double parts_time(const struct record *record, const struct device *device, double flops)
{
    double time = 0;
    for (int i = 0; i < PRECISION_COUNT; ++i)
        if (i != PRECISION_INT8)
            time +=
                part_time(record->flops_vector[i], peak_of(record, device, UNIT_VECTOR, i), flops) +
                part_time(record->flops_tensor[i], peak_of(record, device, UNIT_TENSOR, i), flops);
    return time;
}

static double sum_of(const double values[PRECISION_COUNT])
{
    double sum = NAN;
    for (int i = 0; i < PRECISION_COUNT; ++i)
        if (i != PRECISION_INT8 && !isnan(values[i]))
            sum = isnan(sum) ? values[i] : sum + values[i];
    return sum;
}

/* Of the FLOPs, those that vector units did. */
static double vector_share(const struct record *record, double flops, bool apart)
{
    if (apart)
        return sum_of(record->flops_vector) / flops;
    return record->unit == UNIT_VECTOR ? 1 : record->unit == UNIT_TENSOR ? 0 : NAN;
}

static void note_write(double vector, double peak_vector, double peak_tensor,
                       char note[UNIT_NOTE_TEXT])
{
    *note = '\0';
    if (vector > 0.5 && peak_tensor > peak_vector)
        snprintf(
            note, UNIT_NOTE_TEXT,
            "vector units did %.1f %% of the FLOPs; the roof of the tensor units is %.1f times "
            "as high",
            100 * vector, peak_tensor / peak_vector);
}

struct unit_use unit_use(const struct record *record, const struct device *device, double flops,
                         bool counted)
{
    enum precision precision =
        record->config.workload ? config_precision(&record->config) : PRECISION_COUNT;
    bool apart = counted && !isnan(sum_of(record->flops_vector));
    const struct compute_roof own =
        compute_roof_of(device, record->unit, precision, record->sm_clock_counted);
    double vector = peak_of(record, device, UNIT_VECTOR, precision);
    double tensor = peak_of(record, device, UNIT_TENSOR, precision);
    struct unit_use use = {.time = apart ? parts_time(record, device, flops) : flops / own.peak,
                           .sustained = own.sustained,
                           .configured = fmax(vector, tensor)};
    use.peak = flops > 0 ? flops / use.time : own.peak;
    note_write(vector_share(record, flops, apart), vector, tensor, use.note);
    return use;
}
