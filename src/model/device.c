#include "model/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/device_kind.h"

#define D(member, type, units, ...) FIELD(struct device, member, type, units, __VA_ARGS__)
#define F(member, flags, ...)       FIELD_OF_FLAGS(struct device, member, flags, __VA_ARGS__)
const struct field device_fields[] = {
    D(key, FIELD_TEXT, "1", "session and rank that opened the device", ALWAYS),
    D(kind, FIELD_TEXT, "1", "kind of device: cuda or cpu", ALWAYS),
    D(hostname, FIELD_TEXT, "1", "host", ALWAYS),
    D(uuid, FIELD_TEXT, "1", "UUID of the GPU, or host and cores", ALWAYS),
    D(pci_id, FIELD_TEXT, "1", "PCI bus id"),
    D(index, FIELD_INTEGER, "1", "device index as the process saw it", JSON_ONLY),
    D(model, FIELD_TEXT, "1", "model", ALWAYS),
    D(compute_capability, FIELD_TEXT, "1", "compute capability, or SIMD level of a CPU", JSON_ONLY),
    D(multiprocessors, FIELD_INTEGER, "1", "multiprocessors, or cores"),
    D(processors, FIELD_INTEGER, "1", "processors of the host, with all hardware threads"),
    D(quota, FIELD_DOUBLE, "1", "processors that a cgroup's quota grants to the host's ranks",
      .comment = "of CPUs, where the quota is less than the cores; fewer cores are used then"),
    D(multiprocessor_threads, FIELD_INTEGER, "1", "threads that a multiprocessor holds at a time"),
    D(memory, FIELD_DOUBLE, "byte", "memory size", JSON_ONLY),
    D(cache, FIELD_LEVELS, "byte", "cache capacity of the whole device"),
    D(clock_max, FIELD_DOUBLE, "s-1", "highest multiprocessor or core clock", JSON_ONLY),
    D(memory_clock_max, FIELD_DOUBLE, "s-1", "highest memory clock", JSON_ONLY),
    D(power_limit, FIELD_DOUBLE, "W", "power cap"),
    F(mig, field_no_yes, "multi-instance mode", JSON_ONLY),
    F(cores_shared, field_no_yes, "another rank ran on the same cores", JSON_ONLY),
    F(cores_far, field_no_yes, "the launcher left its rank no core near it", JSON_ONLY),
    FIELD_OF_OUTCOME(struct device, counters, counted_word,
                     "whether its hardware counters can be read", JSON_ONLY),
    D(count_together, FIELD_INTEGER, "1", "most rows whose counters are read together", JSON_ONLY),
    D(driver_version, FIELD_TEXT, "1", "driver version"),
    D(runtime_version, FIELD_TEXT, "1", "runtime version", JSON_ONLY),
    D(library_version, FIELD_TEXT, "1", "version of the workload library"),
    D(system, FIELD_TEXT, "1", "versions of the device's firmware and of the operating system"),
    D(health_start, FIELD_HEALTH, "1", "health when the device was opened"),
    D(health_end, FIELD_HEALTH, "1", "health after the last row",
      .comment = "missing where the job was killed"),
    D(peak_bandwidth, FIELD_LEVELS, "byte s-1", "bandwidth roof: best measured",
      .origin = FIELD_DERIVED,
      .comment = "read and written bytes together; best of its roofs at the level", FIELD_RATE),
    D(peak_vector, FIELD_PRECISIONS, "s-1", "compute roof: measured FLOP/s of the vector units",
      .origin = FIELD_DERIVED, .comment = "best of its roofs", FIELD_RATE),
    D(peak_tensor, FIELD_PRECISIONS, "s-1", "compute roof: measured FLOP/s of the tensor units",
      .origin = FIELD_DERIVED, .comment = "best of its roofs", FIELD_RATE),
    D(cycle_vector, FIELD_PRECISIONS, "1",
      "compute roof for each cycle: measured FLOPs of the vector units", .origin = FIELD_DERIVED,
      .comment = "best of its roofs, on all multiprocessors: the greater of performance x mean / "
                 "sm_clock and sustained / sustained_clock",
      JSON_ONLY),
    D(cycle_tensor, FIELD_PRECISIONS, "1",
      "compute roof for each cycle: measured FLOPs of the tensor units", .origin = FIELD_DERIVED,
      .comment = "best of its roofs, on all multiprocessors: the greater of performance x mean / "
                 "sm_clock and sustained / sustained_clock",
      JSON_ONLY),
    D(working_set, FIELD_LEVELS, "byte",
      "largest set that the level serves at nearly its read roof", .origin = FIELD_DERIVED,
      .comment = "of its read roofs; more than that does not stay in the cache", JSON_ONLY),
    D(latency, FIELD_LEVELS, "s", "latency: time from a load to the load that needs its result",
      .origin = FIELD_DERIVED, .comment = "its roof latency"),
    D(sm_clock_free, FIELD_DOUBLE, "s-1",
      "highest multiprocessor clock that a row or a roof of the session held",
      .origin = FIELD_DERIVED, .comment = "of GPUs; rows more than 2 % below it are throttled"),
    D(launch_overhead, FIELD_DOUBLE, "s",
      "time from one empty kernel (CPU: OpenMP region) to the next", .origin = FIELD_DERIVED,
      .comment = "its roof launch gap"),
    D(roofs_reused, FIELD_TEXT, "1", "file that the roofs were taken from, instead of measured"),
    D(theory_bandwidth, FIELD_LEVELS, "byte s-1", "theoretical bandwidth at the nominal clock",
      .origin = FIELD_MODELLED, JSON_ONLY),
    D(theory_vector, FIELD_PRECISIONS, "s-1",
      "theoretical FLOP/s of the vector units, nominal clock", .origin = FIELD_MODELLED, JSON_ONLY),
    D(theory_tensor, FIELD_PRECISIONS, "s-1",
      "theoretical FLOP/s of the tensor units, nominal clock", .origin = FIELD_MODELLED, JSON_ONLY),
    {0},
};

void device_init(struct device *device)
{
    memset(device, 0, sizeof *device);
    fields_clear(device_fields, device);
}

/* NULL: the device has no roof of this kind and condition. */
static const struct roof *same_roof(const struct device *device, const struct roof *roof)
{
    for (int64_t i = 0; i < device->roof_count; ++i)
        if (device->roofs[i].condition == roof->condition &&
            word_equal(&device->roofs[i].kind, &roof->kind))
            return &device->roofs[i];
    return NULL;
}

void device_add_roof(struct device *device, const struct roof *roof)
{
    const struct roof *same = same_roof(device, roof);
    if (same)
        device->roofs[same - device->roofs] = *roof;
    else if (device->roof_count < ROOFS_MAX)
        device->roofs[device->roof_count++] = *roof;
}

static int roof_order(const void *left, const void *right)
{
    const struct roof *a = left, *b = right;
    const int64_t by_condition = a->condition - b->condition;
    const int64_t order = by_condition ? by_condition : a->kind.index - b->kind.index;
    return (order > 0) - (order < 0);
}

void device_order_roofs(struct device *device)
{
    qsort(device->roofs, (size_t)device->roof_count, sizeof *device->roofs, roof_order);
}

void device_sustain_roof(struct device *device, const struct roof *roof)
{
    const struct roof *same = same_roof(device, roof);
    if (same)
        roof_sustain(&device->roofs[same - device->roofs], roof);
}

/* Raises *peak to `value`; ignores NaN. */
static void lift(double *peak, double value)
{
    *peak = fmax(*peak, value);
}

/* Whether only bandwidths measured together count: devices that share memory never reach, during
 * rows, the bandwidths that were measured alone. */
static bool only_together(const struct device *device)
{
    const struct device_kind *kind = device_kind_find(device->kind);
    bool together = false;
    for (int64_t i = 0; i < device->roof_count; ++i)
        together |= device->roofs[i].condition == ROOF_TOGETHER && roof_usable(&device->roofs[i]);
    return together && kind && kind->shares_memory;
}

/* s; time of a roof measured alone, else together; NaN: not measured. */
static double time_of(const struct device *device, enum roof_id id)
{
    double times[] = {[ROOF_ALONE] = NAN, [ROOF_TOGETHER] = NAN};
    for (int64_t i = 0; i < device->roof_count; ++i)
        if (roof_kind_of(&device->roofs[i]) == &roof_kinds[id] && roof_usable(&device->roofs[i]))
            times[device->roofs[i].condition == ROOF_TOGETHER] = device->roofs[i].time;
    return isnan(times[ROOF_ALONE]) ? times[ROOF_TOGETHER] : times[ROOF_ALONE];
}

bool device_is_open(const struct device *device)
{
    return device->uuid[0] != '\0';
}

bool device_has_health(const struct device *device)
{
    bool known = false;
    for (int i = 0; i < HEALTH_COUNT; ++i)
        known |= !isnan(device->health_start[i]) || !isnan(device->health_end[i]);
    return known;
}

const char *device_identity(const struct device *device, char text[DEVICE_IDENTITY])
{
    snprintf(text, DEVICE_IDENTITY, "%s %s %s", device->kind, device->hostname, device->uuid);
    return text;
}

bool device_same(const struct device *a, const struct device *b)
{
    return device_is_open(a) && strcmp(a->uuid, b->uuid) == 0 &&
           strcmp(a->hostname, b->hostname) == 0 && strcmp(a->kind, b->kind) == 0;
}

static void peaks_clear(struct device *device)
{
    for (int i = 0; i < LEVEL_COUNT; ++i)
        device->peak_bandwidth[i] = device->working_set[i] = device->latency[i] = NAN;
    for (int i = 0; i < PRECISION_COUNT; ++i) {
        device->peak_vector[i] = device->cycle_vector[i] = NAN;
        device->peak_tensor[i] = device->cycle_tensor[i] = NAN;
    }
}

static void lift_compute(struct device *device, const struct roof_kind *kind,
                         const struct roof *roof)
{
    bool vector = kind->unit == UNIT_VECTOR;
    enum precision precision = kind->precision;
    lift(&(vector ? device->peak_vector : device->peak_tensor)[precision], roof->performance);
    lift(&(vector ? device->cycle_vector : device->cycle_tensor)[precision], roof_per_cycle(roof));
}

/* Whether a farther level is faster than this roof, with the same pattern and condition. Then the
 * roof's set was not in its cache, or something else disturbed it. */
static bool is_overtaken(const struct device *device, const struct roof *roof)
{
    const double faster = 1.05;
    const struct roof_kind *own = roof_kind_of(roof), *kind;
    for (int64_t i = 0; i < device->roof_count; ++i) {
        const struct roof *other = &device->roofs[i];
        kind = roof_kind_of(other);
        if (kind && kind->level < own->level && kind->pattern == own->pattern &&
            other->condition == roof->condition && roof_usable(other) &&
            other->bandwidth > faster * roof->bandwidth)
            return true;
    }
    return false;
}

/* Judges levels from far to near, because a contradicted roof is no evidence. */
static void judge_levels(struct device *device)
{
    for (enum memory_level level = LEVEL_DRAM; level < LEVEL_COUNT; ++level)
        for (int64_t i = 0; i < device->roof_count; ++i) {
            struct roof *roof = &device->roofs[i];
            const struct roof_kind *kind = roof_kind_of(roof);
            if (kind && kind->level == level && roof_usable(roof) && is_overtaken(device, roof))
                roof->verdict = ROOF_CONTRADICTED;
        }
}

void device_set_peaks(struct device *device)
{
    judge_levels(device);
    bool shared = only_together(device);
    peaks_clear(device);
    for (int64_t i = 0; i < device->roof_count; ++i) {
        const struct roof *roof = &device->roofs[i];
        const struct roof_kind *kind = roof_kind_of(roof);
        if (!kind || !roof_usable(roof))
            continue;
        if (kind->level < LEVEL_COUNT && shared && roof->condition != ROOF_TOGETHER)
            continue;
        if (kind->level < LEVEL_COUNT && kind->measure == ROOF_TIME) {
            device->latency[kind->level] = fmin(device->latency[kind->level], roof->time);
        } else if (kind->level < LEVEL_COUNT) {
            lift(&device->peak_bandwidth[kind->level], roof->bandwidth);
            lift(&device->working_set[kind->level], roof->working_set);
        } else if (kind->measure == ROOF_COMPUTE) {
            lift_compute(device, kind, roof);
        }
    }
    device->launch_overhead = time_of(device, ROOF_LAUNCH_GAP);
}

/* Time or energy of a byte at a level if the fraction `written` of all bytes is written. NaN:
 * unknown. */
static double mix_cost(const struct device *device, int level, double written, bool energy)
{
    static const struct {
        enum memory_pattern pattern;
        double written;
    } mixes[] = {
        {PATTERN_READ, 0}, {PATTERN_TRIAD, 1.0 / 3}, {PATTERN_COPY, 0.5}, {PATTERN_WRITE, 1}};
    const bool shared = only_together(device);
    double best[PATTERN_COUNT];
    double at = NAN, before = NAN; /* written fraction and cost of the previous mix */
    for (int i = 0; i < PATTERN_COUNT; ++i)
        best[i] = NAN;
    for (int64_t i = 0; i < device->roof_count; ++i) {
        const struct roof *roof = &device->roofs[i];
        const struct roof_kind *kind = roof_kind_of(roof);
        if (kind && (int)kind->level == level && roof_usable(roof) &&
            (!shared || roof->condition == ROOF_TOGETHER))
            best[kind->pattern] =
                fmin(best[kind->pattern], energy ? roof->energy : 1 / roof->bandwidth);
    }
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes && !isnan(written); ++i) {
        const double next = best[mixes[i].pattern], to = mixes[i].written;
        if (isnan(next))
            continue;
        if (written <= to)
            return isnan(before) ? next : before + (next - before) * (written - at) / (to - at);
        before = next;
        at = to;
    }
    return before;
}

double device_mix_bandwidth(const struct device *device, int level, double written)
{
    const double time = mix_cost(device, level, written, false);
    return isnan(time) ? device->peak_bandwidth[level] : 1 / time;
}

double device_byte_energy(const struct device *device, int level, double written)
{
    return mix_cost(device, level, isnan(written) ? 0 : written, true);
}

double device_flop_energy(const struct device *device, int64_t unit, enum precision precision)
{
    double least = NAN;
    for (int64_t i = 0; i < device->roof_count; ++i) {
        const struct roof *roof = &device->roofs[i];
        const struct roof_kind *kind = roof_kind_of(roof);
        if (kind && kind->measure == ROOF_COMPUTE && (int64_t)kind->unit == unit &&
            kind->precision == precision && roof_usable(roof))
            least = fmin(least, roof->energy);
    }
    return least;
}

double device_constant_power(const struct device *device)
{
    double power = NAN;
    for (int64_t i = 0; i < device->roof_count; ++i)
        power = fmin(power, device->roofs[i].constant_power);
    return power;
}

json_t *device_encode(const struct device *device)
{
    json_t *object = fields_encode(device_fields, device), *roofs = json_array();
    for (int64_t i = 0; i < device->roof_count; ++i)
        json_array_append_new(roofs, fields_encode(roof_fields, &device->roofs[i]));
    json_object_set_new(object, "roofs", roofs);
    return object;
}

enum status device_decode(struct json_text object, struct device *device, struct error *error)
{
    struct json_reader roofs = json_reader_array(json_member(object, "roofs"));
    struct json_text roof;
    device_init(device);
    TRY(fields_decode(device_fields, object, device, error));
    for (; device->roof_count < ROOFS_MAX && json_reader_next(&roofs, NULL, &roof);
         ++device->roof_count)
        TRY(fields_decode(roof_fields, roof, &device->roofs[device->roof_count], error));
    return STATUS_OK;
}

enum status device_check_roof(const struct device *device, const struct roof *roof,
                              struct error *error)
{
    const struct roof_kind *kind = roof_kind_of(roof);
    const double value = roof_value(roof);
    double theory = NAN;
    TRY(roof_check(roof, error));
    if (kind && kind->measure == ROOF_COMPUTE)
        theory = (kind->unit == UNIT_TENSOR ? device->theory_tensor
                                            : device->theory_vector)[kind->precision];
    else if (kind && kind->level < LEVEL_COUNT)
        theory = device->theory_bandwidth[kind->level];
    return theory > 0 && value > ROOF_THEORIES * theory /* theory 0: the driver reports no clock */
               ? error_set(error, STATUS_SYSTEM,
                           "roof '%s' is %g, which nobody can have measured: theory is %g",
                           roof_name(roof), value, theory)
               : STATUS_OK;
}

enum status device_check(const struct device *device, struct error *error)
{
    TRY(fields_check(device_fields, device, error));
    if (!device_is_open(device))
        return error_set(error, STATUS_SYSTEM, "a device without 'uuid'");
    for (int64_t i = 0; i < device->roof_count; ++i)
        TRY(error_prefix(error, device_check_roof(device, &device->roofs[i], error),
                         "roof %lld of %lld", (long long)i + 1, (long long)device->roof_count));
    return STATUS_OK;
}

double device_launch_gap(const struct device *device, bool graph)
{
    return graph ? time_of(device, ROOF_LAUNCH_GAP_GRAPH) : device->launch_overhead;
}

double device_clock(const struct device *device, double clock)
{
    return clock > 1.01 * device->clock_max ? NAN : clock;
}
