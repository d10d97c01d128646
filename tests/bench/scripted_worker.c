/* A worker without a device, for tests/bench. It runs the real worker.c and protocol, but each step
 * of the device is a short random pause. The device claims to be a GPU, so that each rank of a
 * small machine can have one. Device and implementation are called "simulated" in records, files
 * and tables. ROOFSWEEP_SIMULATED_PACE=0 omits the pauses.
 * Counters of COUNT_TOGETHER rows are read together, in the time that an H200 takes. As on GPUs,
 * one worker of a machine counts at a time, and other workers wait. Counts are the modelled values.
 * ROOFSWEEP_SIMULATED_ROOM is the number of rows for which the device has memory. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/device_ops.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

enum { DEVICES = 1024 };

/* s, longest pause of each step */
static const double open_time = 0.2, tune_time = 0.1, prepare_time = 0.1;
static const double iteration_time = 1e-3;
static const double fastest = 1e-4; /* factor of the times that workers without pauses report */
/* s, time to begin a collection of counters, and time of each row in the collection */
static const double collection_time = 0.1, row_time = 5e-3;
enum { COUNT_TOGETHER = 16 };

struct device_state {
    int index;
    long works;  /* number of rows that are prepared now */
    int program; /* descriptor of this program's file, which is locked while counting */
};

struct work {
    struct config config;
};

static double pace(void)
{
    const char *text = getenv("ROOFSWEEP_SIMULATED_PACE");
    return text ? strtod(text, NULL) : 1;
}

static void pause_for(double seconds)
{
    seconds *= pace();
    if (seconds > 0)
        nanosleep(
            &(struct timespec){(time_t)seconds, (long)((seconds - (double)(long)seconds) * 1e9)},
            NULL);
}

static void pause_up_to(double seconds)
{
    pause_for(seconds * drand48());
}

static enum status scripted_list(int *count, int addresses[VISIBLE_MAX], struct error *error)
{
    *count = DEVICES;
    return STATUS_OK;
}

static void scripted_close(struct device_state *state)
{
    if (state)
        close(state->program);
    free(state);
}

static enum status scripted_open(int index, struct device_state **state, struct device *device,
                                 struct error *error)
{
    struct device_state *opened = malloc(sizeof *opened);
    if (!opened)
        return error_set(error, STATUS_DEVICE, "no memory to open the device");
    int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    srand48((long)(clock_epoch() * 1e6) ^ getpid());
    pause_up_to(open_time);
    *opened = (struct device_state){.index = index, .program = program};
    device->count_together = COUNT_TOGETHER;
    snprintf(device->kind, sizeof device->kind, "cuda");
    if (gethostname(device->hostname, sizeof device->hostname - 1) != 0)
        device->hostname[0] = '\0';
    device->hostname[sizeof device->hostname - 1] = '\0';
    snprintf(device->uuid, sizeof device->uuid, "GPU-simulated-%d", index);
    snprintf(device->model, sizeof device->model, "simulated device");
    device->index = index;
    *state = opened;
    return STATUS_OK;
}

static enum status scripted_try_counters(struct device_state *state, struct device *device,
                                         struct error *error)
{
    outcome_set(&device->counters, COUNTED_YES, NULL);
    return STATUS_OK;
}

static enum status scripted_tune_roofs(struct device_state *state,
                                       const struct roof_request *request, bool prove,
                                       bool found[ROOF_KINDS], struct error *error)
{
    pause_up_to(tune_time);
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        found[kind] = roof_requested(request, kind);
    return STATUS_OK;
}

static enum status scripted_measure_roof(struct device_state *state, int kind,
                                         const struct roof_order *order, struct roof *roof,
                                         struct error *error)
{
    double seconds[] = {0.9e-3, 1e-3, 1.1e-3};
    double work = roof_kinds[kind].measure == ROOF_TIME ? 100 : 1e9;
    if (order->start > 0)
        pause_for(order->start - clock_epoch());
    roof->start_time = clock_epoch();
    pause_up_to(ROOF_WINDOW);
    roof_set_samples(roof, work, seconds, 3);
    roof_judge(roof);
    return STATUS_OK;
}

static void scripted_release_roofs(struct device_state *state)
{
}

static enum status scripted_prepare(struct device_state *state, const struct config *config,
                                    uint64_t seed, struct work **work, struct record *record,
                                    struct error *error)
{
    struct work *prepared = malloc(sizeof *prepared);
    if (!prepared)
        return error_set(error, STATUS_FAILED, "no memory for the configuration");
    prepared->config = *config;
    ++state->works;
    pause_up_to(prepare_time);
    snprintf(record->implementation, sizeof record->implementation, "simulated");
    record->unit = UNIT_VECTOR;
    *work = prepared;
    return STATUS_OK;
}

static enum status scripted_time(struct device_state *state, struct work *work, bool cold,
                                 int samples, double *seconds, struct record *record,
                                 struct error *error)
{
    if (record)
        record->sample_iterations = 1;
    for (int i = 0; i < samples; ++i) {
        const double wait = iteration_time * (1 + drand48());
        seconds[i] = wait * fmax(pace(), fastest); /* must be less than the wall time of the row */
        pause_for(wait);
    }
    return STATUS_OK;
}

static enum status scripted_trace(struct device_state *state, struct work *work, bool cold,
                                  struct record *record, struct error *error)
{
    record->launches = 1;
    record->busy_time = iteration_time * fmax(pace(), fastest);
    return STATUS_OK;
}

static bool scripted_has_room(struct device_state *state, const struct config *config)
{
    const char *room = getenv("ROOFSWEEP_SIMULATED_ROOM");
    return !room || state->works < strtol(room, NULL, 10);
}

static enum status scripted_count(struct device_state *state, const struct countable *rows,
                                  size_t count, struct error *error)
{
    flock(state->program, LOCK_EX);
    pause_for(collection_time);
    for (size_t i = 0; i < count; ++i) {
        const struct cost cost = config_cost(&rows[i].work->config);
        pause_for(row_time);
        outcome_set(&rows[i].record->counters, COUNTED_YES, NULL);
        rows[i].record->flops_counted = cost.flops;
        rows[i].record->bytes_counted[LEVEL_DRAM] = rows[i].record->bytes_counted[LEVEL_L2] =
            cost.bytes;
    }
    flock(state->program, LOCK_UN);
    return STATUS_OK;
}

static enum status scripted_run(struct device_state *state, struct work *work, int64_t samples,
                                struct error *error)
{
    return error_set(error, STATUS_FAILED, "a scripted device has no results: verify = no");
}

static enum status scripted_read(struct device_state *state, struct work *work, enum tensor tensor,
                                 const int64_t *offsets, int64_t count, double *values,
                                 struct error *error)
{
    return scripted_run(state, work, count, error);
}

static void scripted_release(struct device_state *state, struct work *work)
{
    state->works -= work != NULL;
    free(work);
}

static enum status scripted_program(struct device_state *state, struct program_device *given,
                                    struct error *error)
{
    outcome_set(&given->counters, COUNTED_REFUSED, "there is no device");
    return STATUS_OK;
}

const struct device_ops device_ops = {
    .kind = "cuda",
    .description = "Answers as a GPU would, and measures nothing",
    .list = scripted_list,
    .open = scripted_open,
    .close = scripted_close,
    .try_counters = scripted_try_counters,
    .tune_roofs = scripted_tune_roofs,
    .measure_roof = scripted_measure_roof,
    .release_roofs = scripted_release_roofs,
    .prepare = scripted_prepare,
    .time = scripted_time,
    .trace = scripted_trace,
    .has_room = scripted_has_room,
    .count_hardware = scripted_count,
    .run = scripted_run,
    .read = scripted_read,
    .release = scripted_release,
    .program = scripted_program,
};
