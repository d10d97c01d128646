#include "model/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const record_status_name[] = {"measured", "skipped", "failed", NULL};

#define R(member, type, units, ...) FIELD(struct record, member, type, units, __VA_ARGS__)
#define T(member, ...)              FIELD_OF_SECONDS(struct record, member, __VA_ARGS__)
#define I(member, ...)              FIELD_OF_ITERATION(struct record, member, __VA_ARGS__)
/* The search may belong to an earlier row; parallel streams add up to more than wall_time. */
#define BEYOND_ROW            .beyond_row = true
#define F(member, flags, ...) FIELD_OF_FLAGS(struct record, member, flags, __VA_ARGS__)
const struct field record_fields[] = {
    R(configuration, FIELD_TEXT, "1", "configuration, as its canonical text", ALWAYS),
    R(config_hash, FIELD_TEXT, "1", "128-bit xxHash of the canonical text", ALWAYS),
    R(label, FIELD_TEXT, "1", "labels of the manifest sections that ask for it", ALWAYS),
    R(device_key, FIELD_TEXT, "1", "device that it was measured on", JSON_ONLY),
    F(status, record_status_name, "outcome", .flags_known = true,
      .comment = "only a measured row has times; error says why another one has none", ALWAYS),
    R(error, FIELD_TEXT, "1", "reason why it was skipped or failed, or not verified", ALWAYS),
    R(attempts, FIELD_INTEGER, "1", "attempts made", JSON_ONLY),
    R(round, FIELD_INTEGER, "1", "round of the sweep that timed it", JSON_ONLY, .least = 2,
      .most = ROUNDS_MAX),
    FIELD_OF_DATE(struct record, start_time, "start of the last attempt", ALWAYS),
    T(wall_time, "wall time of everything done for this configuration", ALWAYS),
    R(wall_time_part, FIELD_PARTS, "s", "what wall_time was spent on",
      .comment = "of a program prepare, timing with the comparison, and counts with the trace"),
    R(job_id, FIELD_TEXT, "1", "job identifier of the batch system"),
    R(implementation, FIELD_TEXT, "1", "implementation that ran"),
    R(algorithm, FIELD_TEXT, "1", "algorithm that the library used"),
    R(math, FIELD_TEXT, "1", "math mode of the library", JSON_ONLY),
    F(unit, unit_name, "unit whose peak is the compute roof"),
    R(workspace, FIELD_DOUBLE, "byte", "workspace of the algorithm"),
    R(layout_chosen, FIELD_TEXT, "1",
      "layout auto of earlier versions: order of dimensions that was chosen"),
    I(layout_other_time, "layout auto of earlier versions: time of the slower one in its search",
      .comment = "beside search_time of the one that was chosen", BEYOND_ROW),
    R(algorithm_id, FIELD_TEXT, "1", "identity of the algorithm: xxHash of its kernels' names",
      .comment = "grids and shapes are not in it, so it tells whether two rows ran the same "
                 "kernels"),
    R(algorithm_launches, FIELD_TEXT, "1",
      "identity of its launches: xxHash of kernels' names, grids and blocks", JSON_ONLY),
    R(algorithm_origin, FIELD_TEXT, "1",
      "where the algorithm was chosen, if not in the row's own search"),
    R(refused_algorithms, FIELD_TEXT, "1", "algorithms of the search whose results were wrong"),
    R(search_candidates, FIELD_INTEGER, "1", "different algorithms that the search timed",
      JSON_ONLY),
    I(search_time, "time of the algorithm in the search, median",
      .comment = "times of the search compare among themselves, and not with time_median",
      BEYOND_ROW),
    R(search_noise, FIELD_DOUBLE, "1",
      "noise of the search, within which the library's own first choice stays",
      .comment = "half the width of the 88 % interval of the median of seven, over the median; "
                 "the larger one of the fastest and of the library's own first choice"),
    R(heuristic_algorithm, FIELD_TEXT, "1", "library's own first choice of an algorithm",
      .comment = "it stays unless heuristic_time > (1 + search_noise) x that of the fastest",
      JSON_ONLY),
    R(heuristic_id, FIELD_TEXT, "1", "identity of the library's own first choice, as algorithm_id"),
    I(heuristic_time, "time of the library's own first choice in the search", BEYOND_ROW),
    R(runner_up_algorithm, FIELD_TEXT, "1", "fastest other algorithm of the search", JSON_ONLY),
    R(runner_up_id, FIELD_TEXT, "1", "identity of the search's runner-up, as algorithm_id",
      JSON_ONLY),
    I(runner_up_time, "time of the search's runner-up in the search, median", JSON_ONLY,
      BEYOND_ROW),
    R(program_hash, FIELD_TEXT, "1", "128-bit xxHash of the files that a program's command names"),
    I(time_median, "time of one iteration, median",
      .comment =
          "nothing is traced or counted meanwhile; performance and what follows from it "
          "use this time less the timer's; of several placements that of the one in the middle, "
          "as clocks, trace and counts are; of several rounds the median of round_time",
      ALWAYS),
    I(time_mean, "time of one iteration, mean"),
    I(time_min, "time of one iteration, minimum", JSON_ONLY),
    I(time_max, "time of one iteration, maximum", JSON_ONLY),
    I(time_median_low, "lower end of the 95 % interval of time_median",
      .comment = "of two or more rounds: contains the median of as many other rounds on this "
                 "device. Of one round, within its process alone: the confidence interval, two of "
                 "the samples by their rank; missing for fewer than 6 samples; of several "
                 "placements the median of the fastest one"),
    I(time_median_high, "upper end of the 95 % interval of time_median",
      .comment = "as time_median_low; of one round and several placements the median of the "
                 "slowest one"),
    F(bimodal, field_no_yes, "the samples have two modes",
      .comment = "a tenth of the variance at most is left within the two parts that the samples "
                 "fall into, and the medians of the parts differ by more than 2 %; unknown for "
                 "fewer than 20 samples"),
    I(graph_time, "time of one iteration within a CUDA graph of several",
      .comment = "as many iterations as take 0.4 ms, captured; missing for cold caches, and "
                 "where something is prepared between iterations"),
    I(host_time, "time that the host needs to enqueue one iteration",
      .comment = "median of loops of a millisecond, each enqueued at once on an idle device; of "
                 "CPUs missing: there the host is the device",
      JSON_ONLY),
    I(caller_time, "time of one iteration for a caller who enqueues them in a loop",
      .comment = "median of loops of a millisecond until the device is done: nothing is held back, "
                 "so that the slower of host and device sets the pace; missing on CPUs, for cold "
                 "caches, and where something is prepared between iterations"),
    R(caller_uncertainty, FIELD_DOUBLE, "1",
      "half the 95 % confidence interval of caller_time, over caller_time"),
    R(profiler_ratio, FIELD_DOUBLE, "1",
      "device time of known kernels with the idle profiler in the process, over that without",
      .comment = "missing: no profiler was in the process while the row was timed. With one, "
                 "idle, host_time may be longer, the device's times are not: beyond 5 % it would "
                 "not have stayed",
      JSON_ONLY),
    R(placements, FIELD_INTEGER, "1", "placements of the buffers that were timed",
      .comment = "time_sample has as many samples of each, one placement after the other; fewer "
                 "than repeat where the device had no room, or the library ran other kernels",
      .least = 1),
    R(samples, FIELD_INTEGER, "1", "timed samples", .least = 1),
    R(sample_iterations, FIELD_INTEGER, "1", "iterations that one sample is the mean of",
      .least = 1),
    T(timer_overhead, "time that the timer adds to a sample"),
    F(host_paced, field_no_yes, "the device waited for the host within the samples",
      .comment = "yes: some launches could not be enqueued before the device was ready for them; "
                 "programs: the traced device idled mostly before launches that came too late"),
    F(converged, field_no_yes, "adaptive rule: the median stood before max_time came"),
    R(launches, FIELD_INTEGER, "1",
      "kernel launches in one iteration (CPU: OpenMP regions, operations of oneDNN)",
      .comment = "from the trace run"),
    R(launches_in_graphs, FIELD_INTEGER, "1",
      "launches by CUDA graphs in one iteration of a program"),
    T(busy_time, "time in which kernels ran, in one traced iteration",
      .comment = "from the trace run; kernels that run at the same time count once; a program's "
                 "region on a CPU is one kernel"),
    T(trace_time,
      "time from the first kernel's start to the last one's end, in the traced iteration",
      .comment = "all kernels were queued before the first began, so what is not busy_time is "
                 "the device's; missing where it had to wait for the host",
      JSON_ONLY),
    R(memcpy_count, FIELD_INTEGER, "1", "copies of memory in one iteration of a program"),
    R(memcpy_bytes, FIELD_DOUBLE, "byte", "bytes copied in one iteration of a program"),
    T(memcpy_time, "time of all copies of memory in one iteration of a program", BEYOND_ROW),
    R(memset_count, FIELD_INTEGER, "1", "fills of memory in one iteration of a program"),
    R(memset_bytes, FIELD_DOUBLE, "byte", "bytes filled in one iteration of a program"),
    T(memset_time, "time of all fills of memory in one iteration of a program", BEYOND_ROW),
    R(flops_model, FIELD_DOUBLE, "1", "floating-point operations of one iteration, as modelled",
      .origin = FIELD_MODELLED,
      .comment = "of the definition, a multiply-add is 2; a library may do fewer or more"),
    R(bytes_model, FIELD_DOUBLE, "byte", "compulsory traffic of one iteration, as modelled",
      .origin = FIELD_MODELLED,
      .comment = "what is needed of each input is read once, each output is written once: the "
                 "least that can be moved"),
    R(footprint, FIELD_DOUBLE, "byte", "size of all tensors, without workspace",
      .origin = FIELD_MODELLED),
    R(flops_counted, FIELD_DOUBLE, "1", "floating-point operations of one iteration, as counted",
      .comment = "by hardware counters; missing where there are none"),
    R(bytes_counted, FIELD_LEVELS, "byte", "traffic of one iteration, as counted",
      .comment = "by hardware counters; missing where there are none"),
    R(flops_vector, FIELD_PRECISIONS, "1",
      "counted FLOPs of the vector units, by precision: part of flops_counted",
      .comment = "an fp16 instruction works on two lanes, used or not, and counts both; bf16 is "
                 "counted with fp16"),
    R(flops_tensor, FIELD_PRECISIONS, "1",
      "counted FLOPs of the tensor units, by precision: part of flops_counted"),
    R(bytes_written, FIELD_LEVELS, "byte", "counted bytes that were written: part of bytes_counted",
      .comment = "dram: by the whole device; l2: by its multiprocessors, with atomics; l1: "
                 "global stores"),
    FIELD_OF_OUTCOME(
        struct record, counters, counted_word, "outcome of the hardware counters",
        .comment = "counted, off, or why there are no counts: refused or incomplete, with the "
                   "reason"),
    R(sm_clock, FIELD_DOUBLE, "s-1", "multiprocessor clock during the timed loop", JSON_ONLY),
    R(sm_clock_counted, FIELD_DOUBLE, "s-1",
      "multiprocessor clock over the timed loop, from the device's own counters", JSON_ONLY),
    R(memory_clock, FIELD_DOUBLE, "s-1", "memory clock during the timed loop", JSON_ONLY),
    R(temperature, FIELD_DOUBLE, "K", "temperature during the timed loop", JSON_ONLY),
    FIELD_OF_BITS(struct record, throttle_reasons, throttle_reason_name,
                  "clock event reasons during the timed loop, as NVML tells"),
    R(sm_clock_free, FIELD_DOUBLE, "s-1",
      "multiprocessor clock of the device awake with next to nothing to do", JSON_ONLY),
    R(threads_running, FIELD_DOUBLE, "1", "share of the cores' time in which the row's threads ran",
      .comment = "of a CPU's timing loop, or a program's regions; a thread that spins at a barrier "
                 "runs",
      .most = 1),
    R(threads_waiting, FIELD_DOUBLE, "1",
      "share of the cores' time in which the row's threads were ready, but off the processor",
      .comment = "of CPUs: in run queues, throttled by a quota, or stolen by a hypervisor",
      .most = 1),
    R(involuntary_switches, FIELD_INTEGER, "1", "involuntary context switches of the timing loop"),
    R(host_load, FIELD_DOUBLE, "1", "load average of the host over the last minute"),
    R(other_processes, FIELD_TEXT, "1", "other processes that computed on the device",
      .comment = "none, or their names, numbers and shares of the multiprocessors' time, as the "
                 "driver tells once the row is timed; empty where it does not"),
    R(energy, FIELD_DOUBLE, "J", "energy of one iteration, in the energy run",
      .comment = "power times energy_time, the idle device's share included"),
    I(energy_time, "time of one iteration, in the energy run"),
    R(energy_clock, FIELD_DOUBLE, "s-1", "multiprocessor clock over the energy run",
      .comment = "the device's own cycles over its own time"),
    R(power, FIELD_DOUBLE, "W", "power draw of the device, mean over the energy run",
      .comment = "between two steps of the driver's counter of energy; missing unless energy = "
                 "yes"),
    R(idle_power, FIELD_DOUBLE, "W", "power draw of the device awake without work, mean"),
    R(verify_error, FIELD_DOUBLE, "1", "relative error against the fp64 reference, 2-norm"),
    R(verify_tolerance, FIELD_DOUBLE, "1", "largest relative error that is not taken as wrong",
      .origin = FIELD_MODELLED, JSON_ONLY),
    R(verify_element_error, FIELD_DOUBLE, "1",
      "worst element's error over the larger of itself and the root mean square", JSON_ONLY),
    R(verify_element_tolerance, FIELD_DOUBLE, "1",
      "largest element error that is not taken as wrong", .origin = FIELD_MODELLED, JSON_ONLY),
    R(accuracy, FIELD_TEXT, "1",
      "of an inaccurate result: error beside that of one rounding, fastest accurate algorithm",
      .comment = "empty: the result is as accurate as its precision"),
    R(verify_elements, FIELD_INTEGER, "1", "result elements compared", JSON_ONLY),
    R(output_hash, FIELD_TEXT, "1", "64-bit hash of the bits of all results",
      .comment =
          "equal for the same configuration, seed, kernels and grids, device model, number of "
          "cores and library version; varies: iterations or rounds of the row differ in their "
          "bits, as sums by atomic additions do; empty: no results that can be read, as of "
          "programs"),
    {0},
};

#define K(member, type, units, ...) FIELD(struct kernel, member, type, units, __VA_ARGS__)
const struct field kernel_fields[] = {
    K(name, FIELD_TEXT, "1", "kernel name, demangled", ALWAYS),
    K(count, FIELD_INTEGER, "1", "launches in one iteration", ALWAYS),
    FIELD_OF_SECONDS(struct kernel, time, "time of all its launches in one traced iteration",
                     ALWAYS),
    K(grid_x, FIELD_INTEGER, "1", "grid size, x, in blocks", JSON_ONLY),
    K(grid_y, FIELD_INTEGER, "1", "grid size, y, in blocks", JSON_ONLY),
    K(grid_z, FIELD_INTEGER, "1", "grid size, z, in blocks", JSON_ONLY),
    K(block_x, FIELD_INTEGER, "1", "block size, x, in threads", JSON_ONLY),
    K(block_y, FIELD_INTEGER, "1", "block size, y, in threads", JSON_ONLY),
    K(block_z, FIELD_INTEGER, "1", "block size, z, in threads", JSON_ONLY),
    K(registers, FIELD_INTEGER, "1", "registers of a thread", JSON_ONLY),
    K(static_shared, FIELD_INTEGER, "byte", "static shared memory of a block", JSON_ONLY),
    K(dynamic_shared, FIELD_INTEGER, "byte", "dynamic shared memory of a block", JSON_ONLY),
    K(cluster, FIELD_INTEGER, "1", "blocks of a cluster, which run together; 1: no clusters",
      JSON_ONLY),
    K(resident, FIELD_INTEGER, "1", "blocks that the device holds at a time",
      .comment = "of clusters as CUPTI tells; else by the vendor's formula from registers, "
                 "shared memory and threads of a block, and what a multiprocessor has"),
    K(flops_counted, FIELD_DOUBLE, "1", "floating-point operations of all its launches, as counted",
      .comment = "by hardware counters, one kernel at a time; missing unless kernels = yes"),
    K(bytes_counted, FIELD_LEVELS, "byte", "traffic of all its launches, as counted",
      .comment = "as kernel_flops_counted; the sum may differ from bytes_counted, where kernels "
                 "may overlap and find each other's data in the caches"),
    K(resident_limit, FIELD_INTEGER, "1", "what allows no more blocks at a time",
      .flags = kernel_limit_name, JSON_ONLY),
    K(activity, FIELD_ACTIVITIES, "1",
      "share of a unit's peak that was used, or of the threads' time that they stalled",
      .comment = "by hardware counters, mean of all its launches, one kernel at a time; missing "
                 "unless counters = causes. dram, l2 and multiprocessors: of the kernel's time; "
                 "other units and places for threads: while a multiprocessor has a thread"),
    {0},
};

void record_init(struct record *record)
{
    memset(record, 0, sizeof *record);
    fields_clear(record_fields, record);
}

void record_clear(struct record *record)
{
    free(record->sample);
    free(record->kernels);
    record->sample = NULL;
    record->kernels = NULL;
    record->sample_count = record->kernel_count = 0;
    record->config.workload = NULL;
    record->offer = NULL;
    fields_clear(record_fields, record);
}

void record_set_config(struct record *record, const struct config *config)
{
    struct cost cost = config_cost(config);
    record->config = *config;
    config_format(config, record->configuration);
    config_hash(config, record->config_hash);
    record->flops_model = cost.flops;
    record->bytes_model = cost.bytes;
    record->footprint = cost.memory;
}

const char algorithm_searched[] = "search";

void algorithm_init(struct algorithm *algorithm)
{
    struct record none;
    record_init(&none);
    *algorithm = none.found;
}

bool algorithm_is_known(const struct algorithm *algorithm)
{
    return algorithm->algorithm[0] != '\0';
}

bool algorithm_of_record(const struct record *record, struct algorithm *algorithm)
{
    algorithm_init(algorithm);
    if (record->status != RECORD_MEASURED || !record->algorithm[0] || !record->algorithm_id[0] ||
        !record->algorithm_launches[0] || !record->algorithm_origin[0])
        return false;
    *algorithm = record->found;
    return true;
}

json_t *algorithm_encode(const struct algorithm *algorithm)
{
    struct record record;
    record_init(&record);
    record.found = *algorithm;
    return fields_encode(record_fields, &record);
}

enum status algorithm_decode(struct json_text object, struct algorithm *algorithm,
                             struct error *error)
{
    struct record record;
    TRY(fields_decode(record_fields, object, &record, error));
    TRY(fields_check(record_fields, &record, error));
    *algorithm = record.found;
    return STATUS_OK;
}

void record_add_part(struct record *record, enum wall_part part, double seconds)
{
    double *own = &record->wall_time_part[part];
    *own = isnan(*own) ? seconds : *own + seconds;
}

void record_end_part(struct record *record, enum wall_part part, double seconds)
{
    for (int i = 0; i < PART_COUNT; ++i)
        seconds -= isnan(record->wall_time_part[i]) ? 0 : record->wall_time_part[i];
    record_add_part(record, part, fmax(seconds, 0)); /* rounding can leave less than 0 */
}

void record_format_parts(const struct record *record, char *text, size_t size)
{
    int used = 0;
    text[0] = '\0';
    if (!isnan(record->wall_time))
        used = snprintf(text, size, "; %.3g s", record->wall_time);
    for (int i = 0; i < PART_COUNT && (size_t)used < size; ++i)
        if (!isnan(record->wall_time_part[i]))
            used += snprintf(text + used, size - (size_t)used, ", %s %.3g", wall_part_name[i],
                             record->wall_time_part[i]);
}

static double value_of(const double values[QUANTITY_COUNT], enum quantity quantity)
{
    return quantity < QUANTITY_COUNT ? values[quantity] : NAN;
}

void record_set_quantities(struct record *record, const double values[QUANTITY_COUNT])
{
    for (int i = 0; i < PRECISION_COUNT; ++i) {
        enum precision one = (enum precision)i;
        record->flops_vector[i] =
            one == PRECISION_BF16 ? NAN : value_of(values, quantity_of(one, false));
        record->flops_tensor[i] = value_of(values, quantity_of(one, true));
    }
    record->flops_counted = quantity_flops(values);
    for (int level = 0; level < LEVEL_COUNT; ++level) {
        enum quantity read, write;
        bool counted = quantity_of_level((enum memory_level)level, &read, &write);
        record->bytes_written[level] = counted ? values[write] : NAN;
    }
    quantity_bytes(values, record->bytes_counted);
}

enum status record_set_kernels(struct record *record, const struct kernel *kernels, size_t count,
                               struct error *error)
{
    struct kernel *copy = malloc((count ? count : 1) * sizeof *copy);
    if (!copy)
        return error_set(error, STATUS_SYSTEM, "no memory for %zu kernels", count);
    if (count)
        memcpy(copy, kernels, count * sizeof *copy);
    free(record->kernels);
    record->kernels = copy;
    record->kernel_count = count;
    return STATUS_OK;
}

json_t *record_encode(const struct record *record)
{
    json_t *object = fields_encode(record_fields, record);
    json_t *samples = json_array(), *kernels = json_array();
    for (size_t i = 0; i < record->sample_count; ++i)
        json_array_append_new(samples, json_real(record->sample[i]));
    for (size_t i = 0; i < record->kernel_count; ++i)
        json_array_append_new(kernels, fields_encode(kernel_fields, &record->kernels[i]));
    json_object_set_new(object, "sample", samples);
    json_object_set_new(object, "kernels", kernels);
    return object;
}

char *record_print(const struct record *record)
{
    json_t *object = record_encode(record);
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return text;
}

char *record_complete(const char *text, const struct record *record, const char *listed)
{
    static const struct field added[] = {
        R(device_key, FIELD_TEXT, "1", ""),  R(job_id, FIELD_TEXT, "1", ""),
        R(attempts, FIELD_INTEGER, "1", ""), R(round, FIELD_INTEGER, "1", ""),
        R(label, FIELD_TEXT, "1", ""),       {0}};
    json_t *object = json_pack("{s:s,s:s,s:s}", "device_key", "", "job_id", "", "label", "");
    json_object_update_new(object, fields_encode(added, record));
    if (listed)
        json_object_set_new(object, "listed", text_encode(listed));
    char *members = json_dumps(object, JSON_COMPACT), *complete = NULL;
    json_decref(object);
    if (members &&
        asprintf(&complete, "%.*s,%s", (int)(strrchr(text, '}') - text), text, members + 1) < 0)
        complete = NULL;
    free(members);
    return complete;
}

/* Returns memory for the elements of `array`, of `size` bytes each, and sets *count. NULL: an
 * error; *count is 0. */
static void *array_create(struct json_text array, const char *things, size_t most, size_t size,
                          size_t *count, struct error *error)
{
    struct json_reader reader = json_reader_array(array);
    struct json_text element;
    void *items = NULL;
    for (*count = 0; json_reader_next(&reader, NULL, &element);)
        ++*count;
    if (*count > most)
        error_set(error, STATUS_SYSTEM, "%zu %s; a record has %zu at most", *count, things, most);
    else if (!(items = calloc(*count + 1, size)))
        error_set(error, STATUS_SYSTEM, "no memory for %zu %s", *count, things);
    *count = items ? *count : 0;
    return items;
}

static enum status decode_samples(struct json_text array, struct record *record,
                                  struct error *error)
{
    struct json_reader reader = json_reader_array(array);
    struct json_text element;
    free(record->sample);
    record->sample = array_create(array, "samples", RECORD_SAMPLES_MAX, sizeof *record->sample,
                                  &record->sample_count, error);
    for (size_t i = 0; record->sample && json_reader_next(&reader, NULL, &element); ++i)
        if (!json_text_number(element, &record->sample[i]))
            return error_set(error, STATUS_SYSTEM, "a sample is no number");
    return record->sample ? STATUS_OK : STATUS_SYSTEM;
}

static enum status decode_kernels(struct json_text array, struct record *record,
                                  struct error *error)
{
    struct json_reader reader = json_reader_array(array);
    struct json_text element;
    free(record->kernels);
    record->kernels = array_create(array, "kernels", RECORD_KERNELS_MAX, sizeof *record->kernels,
                                   &record->kernel_count, error);
    for (size_t i = 0; record->kernels && json_reader_next(&reader, NULL, &element); ++i)
        TRY(fields_decode(kernel_fields, element, &record->kernels[i], error));
    return record->kernels ? STATUS_OK : STATUS_SYSTEM;
}

static enum status decode_members(struct json_text object, struct record *record,
                                  struct error *error)
{
    struct json_reader reader = json_reader_object(object);
    const struct field *next = record_fields;
    struct json_text name, value;
    while (json_reader_next(&reader, &name, &value))
        if (json_text_is(name, "sample"))
            TRY(decode_samples(value, record, error));
        else if (json_text_is(name, "kernels"))
            TRY(decode_kernels(value, record, error));
        else
            TRY(field_decode(record_fields, &next, name, value, record, error));
    if (reader.broken)
        return error_set(error, STATUS_SYSTEM, "not a JSON object");
    return record->status == FIELD_MISSING
               ? error_set(error, STATUS_SYSTEM, "a record without a status")
               : STATUS_OK;
}

enum status record_decode(struct json_text object, struct record *record, struct error *error)
{
    record_clear(record);
    enum status status = decode_members(object, record, error);
    if (status) {
        record_clear(record);
        return status;
    }
    if (record->configuration[0] && !record->config_hash[0])
        config_text_hash(record->configuration, record->config_hash);
    return STATUS_OK;
}

/* STATUS_SYSTEM: `value` exceeds `most`, which `limit` names, by more than the relative `slack`. */
static enum status check_limit(const char *name, double value, double slack, const char *limit,
                               double most, struct error *error)
{
    return value * (1 - slack) > most
               ? error_set(error, STATUS_SYSTEM, "'%s' is %g, but '%s' is %g", name, value, limit,
                           most)
               : STATUS_OK;
}

static const double resolution = 1e-3; /* relative error of clocks in short iterations */

/* No part of a row's time is longer than the whole. */
static enum status check_wall(const struct record *record, struct error *error)
{
    for (const struct field *field = record_fields; field->name; ++field) {
        const double *times = (const void *)((const char *)record + field->offset);
        if (strcmp(field->units, "s") != 0 || field->beyond_row)
            continue;
        for (size_t i = 0; i < field_elements(field); ++i)
            TRY(check_limit(field->name, times[i], resolution, "wall_time", record->wall_time,
                            error));
    }
    for (size_t i = 0; i < record->sample_count; ++i)
        TRY(check_limit("sample", record->sample[i], resolution, "wall_time", record->wall_time,
                        error));
    return STATUS_OK;
}

static enum status check_measured(const struct record *record, struct error *error)
{
    const struct {
        const char *name;
        double value;
    } times[] = {{"time_min", record->time_min},
                 {"time_median_low", record->time_median_low},
                 {"time_median", record->time_median},
                 {"time_median_high", record->time_median_high},
                 {"time_max", record->time_max}},
      *below = NULL;              /* the preceding known time; no later time is shorter */
    const double rounding = 1e-9; /* relative rounding error of sums */
    if (isnan(record->time_median))
        return error_set(error, STATUS_SYSTEM, "a measured record without 'time_median'");
    for (size_t i = 0; i < sizeof times / sizeof *times; ++i) {
        if (isnan(times[i].value))
            continue;
        if (below)
            TRY(check_limit(below->name, below->value, 0, times[i].name, times[i].value, error));
        below = &times[i];
    }
    TRY(check_limit("time_mean", record->time_mean, rounding, "time_max", record->time_max, error));
    TRY(check_limit("time_min", record->time_min, rounding, "time_mean", record->time_mean, error));
    TRY(check_limit("busy_time", record->busy_time, resolution, "trace_time", record->trace_time,
                    error));
    TRY(check_limit("energy", record->energy, resolution, "power x energy_time",
                    record->power * record->energy_time, error));
    TRY(check_limit("verify_error", record->verify_error, 0, "verify_tolerance",
                    record->verify_tolerance, error));
    return check_limit("verify_element_error", record->verify_element_error, 0,
                       "verify_element_tolerance", record->verify_element_tolerance, error);
}

/* Compares texts, so that configurations of a newer version pass. */
static enum status check_identity(const struct record *record, struct error *error)
{
    char hash[CONFIG_HASH_TEXT];
    config_text_hash(record->configuration, hash);
    if (!record->configuration[0])
        return error_set(error, STATUS_SYSTEM, "a record without 'configuration'");
    if (strcmp(hash, record->config_hash) == 0)
        return STATUS_OK;
    return error_set(error, STATUS_SYSTEM, "'config_hash' is %s, but that of '%.200s' is %s",
                     record->config_hash, record->configuration, hash);
}

enum status record_check(const struct record *record, struct error *error)
{
    static const struct field sample = {
        .name = "sample", .units = "s", .least = FIELD_ITERATION_MIN};
    TRY(fields_check(record_fields, record, error));
    TRY(check_identity(record, error));
    TRY(check_wall(record, error));
    if (record->status == RECORD_MEASURED)
        TRY(check_measured(record, error));
    if (record->status == RECORD_SKIPPED && !isnan(record->time_median))
        return error_set(error, STATUS_SYSTEM, "a skipped record with 'time_median'");
    for (size_t i = 0; i < record->sample_count; ++i)
        TRY(field_check_number(&sample, record->sample[i], error));
    for (size_t i = 0; i < record->kernel_count; ++i)
        TRY(error_prefix(error, fields_check(kernel_fields, &record->kernels[i], error),
                         "kernel %zu of %zu", i + 1, record->kernel_count));
    return STATUS_OK;
}
