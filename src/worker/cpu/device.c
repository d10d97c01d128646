/* The CPU as a device: the cores of this process's affinity mask. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <xxhash.h>

#include "worker/cpu/memory.h"
#include "worker/cpu/onednn.h"
#include "worker/cpu/roofs.h"
#include "worker/cpu/routine.h"
#include "worker/cpu/simd.h"
#include "worker/cpu/team.h"
#include "worker/measure.h"

#define ROW(name) &name##_routines,
static const struct cpu_workload *const cpu_workloads[] = {WORKLOADS(ROW)};
#undef ROW

static enum status cpu_list(int *count, int addresses[VISIBLE_MAX], struct error *error)
{
    (void)addresses, (void)error;
    *count = 1;
    return STATUS_OK;
}

static void cpu_describe(const struct topology *topology, struct device *device)
{
    struct utsname system;
    snprintf(device->kind, sizeof device->kind, "cpu");
    if (gethostname(device->hostname, sizeof device->hostname) != 0)
        device->hostname[0] = '\0';
    device->hostname[sizeof device->hostname - 1] = '\0';
    snprintf(device->uuid, sizeof device->uuid, "cpu-%.42s-%s", device->hostname, topology->list);
    device->index = 0;
    snprintf(device->model, sizeof device->model, "%s", topology->model);
    snprintf(device->compute_capability, sizeof device->compute_capability, "%s", simd_name());
    device->multiprocessors = topology->cores;
    device->quota = topology->quota;
    device->processors = sysconf(_SC_NPROCESSORS_ONLN);
    device->memory = topology->memory;
    memcpy(device->cache, topology->cache, sizeof device->cache);
    device->clock_max = topology->clock_max;
    if (uname(&system) == 0)
        snprintf(device->driver_version, sizeof device->driver_version, "%.31s", system.release);
#ifdef ROOFSWEEP_ONEDNN
    onednn_describe(device->library_version, sizeof device->library_version);
#endif
    snprintf(device->runtime_version, sizeof device->runtime_version, "OpenMP %d", _OPENMP);
}

static void cpu_close(struct device_state *state)
{
    if (!state)
        return;
    team_unbind(&state->topology);
    roofs_release(state);
    memory_destroy(state->flush, state->flush_size);
    topology_clear(&state->topology);
    free(state);
}

static enum status cpu_open(int index, struct device_state **state, struct device *device,
                            struct error *error)
{
    if (index != 0)
        return error_set(error, STATUS_DEVICE, "there is no CPU device %d: all cores are device 0",
                         index);
    struct device_state *opened = calloc(1, sizeof *opened);
    if (!opened)
        return error_set(error, STATUS_DEVICE, "no memory to open the CPU");
    enum status status = topology_init(&opened->topology, error);
    if (status) {
        free(opened);
        return status;
    }
    status = team_bind(&opened->topology, error);
    if (status) {
        cpu_close(opened);
        return status;
    }
    cpu_describe(&opened->topology, device);
    *state = opened;
    return STATUS_OK;
}

static enum status config_supported(const struct config *config, struct error *error)
{
    const char *algorithm = config_word(config, ROLE_ALGORITHM);
    if (algorithm && strcmp(algorithm, "auto") != 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "algorithm %s is a GPU library's; on a CPU the implementation decides",
                         algorithm);
    if (config_replayed(config))
        return error_set(error, STATUS_UNSUPPORTED,
                         "launch graph: a CPU has no CUDA graphs, and its regions cost little");
    return STATUS_OK;
}

static size_t tensor_bytes(const struct work *work, int tensor)
{
    return (size_t)work->size[tensor] * work->element;
}

static bool owns_result(const struct work *work, int tensor)
{
    return work->writes[tensor] && !work->bound[tensor];
}

static enum status memory_check(double bytes, struct error *error)
{
    double available = memory_available();
    if (!(bytes > available)) /* true if `available` is NaN, unknown */
        return STATUS_OK;
    return error_set(error, STATUS_UNSUPPORTED,
                     "it needs %.4g bytes of memory with its workspace, and %.4g are available",
                     bytes, available);
}

static double work_bytes(const struct work *work)
{
    double bytes = (double)work->scratch_size;
    for (int i = 0; i < TENSOR_COUNT; ++i)
        bytes += (double)tensor_bytes(work, i) * (work->reads[i] + owns_result(work, i));
    return bytes;
}

static bool work_allocate(struct work *work)
{
    bool complete = true;
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        if (work->reads[i])
            complete &= (work->input[i] = memory_create(tensor_bytes(work, i))) != NULL;
        if (owns_result(work, i))
            complete &= (work->result[i] = memory_create(tensor_bytes(work, i))) != NULL;
    }
    complete &= (work->scratch = memory_create(work->scratch_size)) != NULL;
    return complete;
}

/* Each thread touches its static share first, as in the work itself. A batch has `batch` samples of
 * `sample` elements; samples from number `samples` on become zero. */
static void tensor_fill(struct work *work, enum tensor tensor, int64_t sample, int64_t batch,
                        int64_t samples)
{
    struct fill fill = config_fill(&work->config, work->seed, tensor);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < work->size[tensor]; ++i)
        element_store(work->precision, work->input[tensor], i,
                      i / sample % batch < samples ? fill_value(fill, (uint64_t)i) : 0.0);
}

static void cpu_release(struct device_state *state, struct work *work)
{
    (void)state;
    if (!work)
        return;
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        memory_destroy(work->input[i], tensor_bytes(work, i));
        if (owns_result(work, i))
            memory_destroy(work->result[i], tensor_bytes(work, i));
    }
    memory_destroy(work->scratch, work->scratch_size);
    if (work->plan && work->routine->release)
        work->routine->release(work);
    free(work->plan);
    free(work->shape);
    free(work);
}

static void work_describe(const struct work *work, struct record *record)
{
    snprintf(record->implementation, sizeof record->implementation, "%s",
             work->routine->implementation);
    snprintf(record->algorithm, sizeof record->algorithm, "%s",
             work->routine->name ? work->routine->name(work) : work->routine->algorithm);
    snprintf(record->math, sizeof record->math, "fma");
    record->unit = strstr(record->algorithm, "amx") ? UNIT_TENSOR : UNIT_VECTOR;
    record->workspace = (double)work->scratch_size;
}

static struct work *work_create(const struct cpu_workload *workload, const struct routine *routine,
                                const struct topology *topology, const struct config *config,
                                uint64_t seed)
{
    struct work *work = calloc(1, sizeof *work);
    if (!work)
        return NULL;
    work->workload = workload;
    work->routine = routine;
    work->topology = topology;
    work->config = *config;
    work->seed = seed;
    work->precision = config_precision(config);
    work->element = precision_info[work->precision].bytes;
    work->shape = calloc(1, workload->shape_size);
    work->plan = calloc(1, routine->plan_size ? routine->plan_size : 1);
    if (!work->shape || !work->plan) {
        free(work->shape);
        free(work->plan);
        free(work);
        return NULL;
    }
    workload->shape(work);
    const struct tensors tensors = config->workload->tensors(config);
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        work->size[i] = (int64_t)fmax(tensors.read[i], tensors.written[i]);
        work->reads[i] = tensors.read[i] > 0;
        work->writes[i] = tensors.written[i] > 0;
    }
    return work;
}

/* The thread that will use a page touches the page first. */
static enum status work_fill(struct work *work, struct error *error)
{
    char *scratch = work->scratch;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < work->scratch_size; ++i)
        scratch[i] = 0;
    for (int i = 0; i < TENSOR_COUNT; ++i)
        if (work->reads[i])
            tensor_fill(work, (enum tensor)i, 1, 1, 1);
    enum status status = work->routine->ready ? work->routine->ready(work, error) : STATUS_OK;
    if (status == STATUS_OK && work->routine->before)
        work->routine->before(work);
    return status;
}

static enum status routine_prepare(struct device_state *state, const struct cpu_workload *workload,
                                   const struct routine *routine, const struct config *config,
                                   uint64_t seed, struct work **work, struct error *error)
{
    const enum precision precision = config_precision(config);
    enum status status = routine->check ? routine->check(precision, error) : STATUS_OK;
    if (!routine->check && precision != PRECISION_FP32 && precision != PRECISION_FP64)
        status = error_set(error, STATUS_UNSUPPORTED, "its precisions are fp32 and fp64, not %s",
                           precision_info[precision].name);
    TRY(status);
    struct work *prepared = work_create(workload, routine, &state->topology, config, seed);
    if (!prepared)
        return error_set(error, STATUS_FAILED, "no memory for the configuration");
    if (routine->plan)
        status = routine->plan(prepared, error);
    if (status == STATUS_OK)
        status = memory_check(work_bytes(prepared), error);
    if (status == STATUS_OK && !work_allocate(prepared))
        status = error_set(error, STATUS_UNSUPPORTED, "the system refuses %.4g bytes of memory",
                           work_bytes(prepared));
    if (status == STATUS_OK)
        status = work_fill(prepared, error);
    if (status) {
        cpu_release(state, prepared);
        return status;
    }
    *work = prepared;
    return STATUS_OK;
}

static void text_add(char *text, size_t size, const char *separator, const char *more,
                     const char *why)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s%.200s", used ? separator : "", more, why);
}

static enum status cpu_prepare(struct device_state *state, const struct config *config,
                               uint64_t seed, struct work **work, struct record *record,
                               struct error *error)
{
    const char *wanted = config_word(config, ROLE_IMPLEMENTATION);
    bool automatic = strcmp(wanted, "auto") == 0;
    char reasons[sizeof error->text / 2] = "", offered[128] = "";
    const struct cpu_workload *workload = NULL;
    enum status status = config_supported(config, error);
    if (status == STATUS_OK)
        status = memory_check(config_cost(config).memory, error);
    TRY(status);
    for (size_t i = 0; i < sizeof cpu_workloads / sizeof *cpu_workloads; ++i)
        if (cpu_workloads[i]->workload == config->workload)
            workload = cpu_workloads[i];
    for (int i = 0; workload && workload->routines[i].implementation; ++i) {
        const struct routine *routine = &workload->routines[i];
        text_add(offered, sizeof offered, ", ", routine->implementation, "");
        if (!automatic && strcmp(wanted, routine->implementation) != 0)
            continue;
        status = routine_prepare(state, workload, routine, config, seed, work, error);
        if (status == STATUS_OK)
            work_describe(*work, record);
        if (status != STATUS_UNSUPPORTED || !automatic)
            return status;
        text_add(reasons, sizeof reasons, "; ", routine->implementation, ": ");
        text_add(reasons, sizeof reasons, "", "", error->text);
    }
    if (reasons[0])
        return error_set(error, STATUS_UNSUPPORTED, "%s", reasons);
#ifndef ROOFSWEEP_ONEDNN
    if (strcmp(wanted, "onednn") == 0)
        return error_set(error, STATUS_UNSUPPORTED, "this worker was built without oneDNN");
#endif
    return error_set(error, STATUS_UNSUPPORTED,
                     "implementation %s of %s does not run on a CPU, which has: %s", wanted,
                     config->workload->name, offered[0] ? offered : "none");
}

/* Demands twice the tensors' memory, because the work also needs a workspace. */
static bool cpu_has_room(struct device_state *state, const struct config *config)
{
    (void)state;
    return !(2 * config_cost(config).memory > memory_available());
}

static enum status cpu_run(struct device_state *state, struct work *work, int64_t samples,
                           struct error *error)
{
    for (int tensor = 0; tensor < TENSOR_COUNT; ++tensor)
        if (work->writes[tensor]) {
#pragma omp parallel for schedule(static)
            for (int64_t i = 0; i < work->size[tensor]; ++i)
                element_store(work->precision, work->result[tensor], i, NAN);
        }
    bool partial = work->workload->gradient_shape && work->reads[TENSOR_OUTPUT];
    int64_t sample, batch;
    if (partial) {
        work->workload->gradient_shape(work, &sample, &batch);
        tensor_fill(work, TENSOR_OUTPUT, sample, batch, samples);
    }
    if (work->routine->before)
        work->routine->before(work);
    if (work->routine->own_regions)
        team_unbind_caller(&state->topology);
    enum status status = team_iterate(work, NULL, error);
    if (partial)
        tensor_fill(work, TENSOR_OUTPUT, 1, 1, 1);
    return work->routine->own_regions ? team_bind_after(&state->topology, status, error) : status;
}

static enum status cpu_read(struct device_state *state, struct work *work, enum tensor tensor,
                            const int64_t *offsets, int64_t count, double *values,
                            struct error *error)
{
    (void)state;
    if (!work->writes[tensor])
        return error_set(error, STATUS_FAILED, "this pass has no such result");
    const void *data = work->result[tensor];
    for (int64_t i = 0; i < count; ++i)
        values[i] = element_load(work->precision, data, offsets[i]);
    return STATUS_OK;
}

/* Adds hashes of pieces, which the threads divide. Each piece has a seed of its own. */
static enum status cpu_hash(struct device_state *state, struct work *work, uint64_t *hash,
                            struct error *error)
{
    const size_t piece = 1 << 18; /* byte */
    uint64_t sum = 0;
    (void)state, (void)error;
    for (int tensor = 0; tensor < TENSOR_COUNT; ++tensor) {
        const char *data = work->result[tensor];
        const size_t bytes = work->writes[tensor] ? tensor_bytes(work, tensor) : 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (size_t at = 0; at < bytes; at += piece)
            sum += XXH3_64bits_withSeed(data + at, bytes - at < piece ? bytes - at : piece,
                                        at + (size_t)tensor);
    }
    *hash = sum;
    return STATUS_OK;
}

/* The program gets the process's initial affinity, because this thread is bound to a core. */
static enum status cpu_program(struct device_state *state, struct program_device *given,
                               struct error *error)
{
    (void)error;
    given->cpus = state->topology.mask;
    given->cpus_size = state->topology.mask_size;
    given->cores = state->topology.cores;
    given->counters = measure_no_counters;
    return STATUS_OK;
}

const struct device_ops device_ops = {
    .kind = "cpu",
    .description = "measures on the CPU cores of its affinity mask (OpenMP, oneDNN)",
    .list = cpu_list,
    .open = cpu_open,
    .close = cpu_close,
    .tune_roofs = roofs_tune,
    .measure_roof = roofs_measure,
    .keep_busy = roofs_keep_busy,
    .release_roofs = roofs_release,
    .prepare = cpu_prepare,
    .time = team_time,
    .trace = team_trace,
    .has_room = cpu_has_room,
    .run = cpu_run,
    .read = cpu_read,
    .hash = cpu_hash,
    .release = cpu_release,
    .program = cpu_program,
};
