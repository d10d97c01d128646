#include "trial.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/kernels.h"
#include "model/reference.h"

/* Turns: a prime, so that each has some of all kinds. */
enum { SKIPPED = 77, OFFSET = 16, GUARD = 4096, TURNS = 13 };

static void fail(struct trials *trials, const char *text, const char *problem)
{
    fprintf(stderr, "FAIL: %s: %s\n", text, problem);
    ++trials->failures;
}

static bool ran(struct trials *trials, const char *text, cudaError_t code)
{
    if (code == cudaSuccess)
        code = cudaDeviceSynchronize();
    if (code != cudaSuccess)
        fail(trials, text, cudaGetErrorString(code));
    return code == cudaSuccess;
}

/* ---- arrays ---- */

static char *array_create(const struct trials *trials, size_t bytes)
{
    char *memory = NULL;
    if (cudaMalloc((void **)&memory, OFFSET + bytes + trials->guard) != cudaSuccess)
        return NULL;
    cudaMemset(memory, 0xff, OFFSET + bytes + trials->guard);
    return memory + OFFSET;
}

static void array_free(void *array)
{
    if (array)
        cudaFree((char *)array - OFFSET);
}

static enum precision stored(const struct config *config, const struct trial_arrays *arrays,
                             int tensor)
{
    enum precision precision = config_precision(config);
    return arrays->wide[tensor] && precision != PRECISION_FP64 ? PRECISION_FP32 : precision;
}

static bool arrays_create(const struct trials *trials, const struct config *config,
                          struct trial_arrays *arrays)
{
    bool complete = true;
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        enum precision precision = stored(config, arrays, i);
        size_t element = precision_info[precision].bytes;
        if (arrays->reads[i] > 0) {
            arrays->input[i] = array_create(trials, (size_t)arrays->reads[i] * element);
            complete = complete && arrays->input[i] &&
                       kernel_fill(precision, arrays->input[i], arrays->reads[i],
                                   config_fill(config, TRIAL_SEED, (enum tensor)i), 0,
                                   NULL) == cudaSuccess;
        }
        if (arrays->writes[i] > 0)
            complete = complete && (arrays->result[i] =
                                        array_create(trials, (size_t)arrays->writes[i] * element));
    }
    if (arrays->between > 0)
        complete =
            complete &&
            (arrays->scratch = array_create(
                 trials, (size_t)arrays->between * precision_info[config_precision(config)].bytes));
    return complete;
}

static void arrays_free(const struct trial_arrays *arrays)
{
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        array_free(arrays->input[i]);
        array_free(arrays->result[i]);
    }
    array_free(arrays->scratch);
}

/* ---- comparison ---- */

static void guard_check(struct trials *trials, const char *text, const char *array, size_t bytes)
{
    unsigned char around[OFFSET + GUARD];
    cudaMemcpy(around, array - OFFSET, OFFSET, cudaMemcpyDeviceToHost);
    cudaMemcpy(around + OFFSET, array + bytes, trials->guard, cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < OFFSET + trials->guard; ++i)
        if (around[i] != 0xff) {
            fail(trials, text, "it writes where it must not");
            return;
        }
}

static double *values_read(enum precision precision, const void *data, const int64_t *offsets,
                           int64_t count)
{
    size_t bytes = (size_t)count * sizeof(double);
    double *values = malloc(bytes), *gathered = NULL;
    int64_t *places = NULL;
    cudaMalloc((void **)&places, bytes);
    cudaMalloc((void **)&gathered, bytes);
    cudaMemcpy(places, offsets, bytes, cudaMemcpyHostToDevice);
    kernel_gather(precision, data, places, count, gathered, NULL);
    if (values && cudaMemcpy(values, gathered, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) {
        free(values);
        values = NULL;
    }
    cudaFree(places);
    cudaFree(gathered);
    return values;
}

static void slice_check(struct trials *trials, const char *text, const struct config *config,
                        const struct slice *slice, const struct trial_arrays *arrays)
{
    double *values = values_read(stored(config, arrays, slice->tensor),
                                 arrays->result[slice->tensor], slice->offsets, slice->count);
    struct slice_errors errors = {0};
    if (values)
        slice_compare(slice, values, config_precision(config), &errors);
    if (!values || !(errors.norm <= config_tolerance(config).accurate)) {
        char problem[128];
        snprintf(problem, sizeof problem, "tensor %d: relative error %g over %lld elements",
                 (int)slice->tensor, errors.norm, (long long)slice->count);
        fail(trials, text, problem);
    }
    free(values);
}

/* What references start from, see struct reference_request. */
struct computed {
    const struct config *config;
    const struct trial_arrays *arrays;
};

static enum status computed_read(void *context, enum tensor tensor, const int64_t *offsets,
                                 int64_t count, double *values, struct error *error)
{
    const struct computed *computed = context;
    double *read = values_read(stored(computed->config, computed->arrays, tensor),
                               computed->arrays->result[tensor], offsets, count);
    if (!read)
        return error_set(error, STATUS_FAILED, "tensor %d cannot be read", (int)tensor);
    memcpy(values, read, (size_t)count * sizeof *values);
    free(read);
    return STATUS_OK;
}

static void expectation_check(struct trials *trials, const char *text, const struct config *config,
                              const struct trial_arrays *arrays)
{
    struct computed computed = {config, arrays};
    const struct reference_request request = {
        config, TRIAL_SEED, 2e7, 64, INT64_MAX, reference_in_turn, computed_read, &computed};
    struct expectation expectation = {.count = 0};
    struct error error;
    if (config->workload->reference(&request, &expectation, &error))
        fail(trials, text, error.text);
    for (size_t i = 0; i < expectation.count; ++i)
        slice_check(trials, text, config, &expectation.slices[i], arrays);
    expectation_clear(&expectation);
}

static void results_check(struct trials *trials, const char *text, const struct config *config,
                          const struct trial_arrays *arrays)
{
    size_t element = precision_info[config_precision(config)].bytes;
    for (int i = 0; i < TENSOR_COUNT; ++i)
        if (arrays->result[i])
            guard_check(trials, text, arrays->result[i],
                        (size_t)arrays->writes[i] *
                            precision_info[stored(config, arrays, i)].bytes);
    if (arrays->scratch)
        guard_check(trials, text, arrays->scratch, (size_t)arrays->between * element);
    expectation_check(trials, text, config, arrays);
}

static const struct trial *trial_find(const struct trials *trials, const struct config *config)
{
    const struct trial *found = trials->kinds;
    while (found->workload && strcmp(found->workload, config->workload->name) != 0)
        ++found;
    return found;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Whether a configuration is asked for, its turn has come, and there is time. */
static bool trial_due(struct trials *trials, const char *text)
{
    if (trials->only && !strstr(text, trials->only))
        return false;
    if (trials->seen++ % trials->turns != trials->turn)
        return false;
    if (seconds_now() < trials->until)
        return true;
    ++trials->left;
    return false;
}

static void trial_check(struct trials *trials, const char *text)
{
    struct config config;
    struct error error;
    struct trial_arrays arrays = {.input = {NULL}};
    if (!trial_due(trials, text))
        return;
    if (config_parse(text, &config, &error) || config_check(&config, &error)) {
        fail(trials, text, error.text);
        return;
    }
    const struct trial *trial = trial_find(trials, &config);
    trial->size(&config, &arrays);
    ++trials->checked;
    if (!arrays_create(trials, &config, &arrays))
        fail(trials, text, "no memory");
    else if (ran(trials, text, trial->launch(&config, &arrays)))
        results_check(trials, text, &config, &arrays);
    arrays_free(&arrays);
}

void trial_cross(struct trials *trials, const char *text, const char *const *const *lists)
{
    if (!*lists) {
        trial_check(trials, text);
        return;
    }
    for (const char *const *word = *lists; *word; ++word) {
        char longer[WORKLOAD_TEXT];
        if (snprintf(longer, sizeof longer, "%s %s", text, *word) < (int)sizeof longer)
            trial_cross(trials, longer, lists + 1);
        else
            fail(trials, text, "it is too long");
    }
}

int trial_main(int count, char **arguments, const struct trial *kinds,
               void (*check)(struct trials *trials))
{
    int devices = 0;
    bool exact = count > 1 && strcmp(arguments[1], "exact") == 0, timed = count > 3;
    struct trials trials = {
        .kinds = kinds,
        .guard = exact ? 0 : GUARD,
        .only = count > 2 ? arguments[2] : NULL,
        .until = timed ? seconds_now() + strtod(arguments[3], NULL) : INFINITY,
        .turns = timed ? TURNS : 1,
    };
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        puts("no GPU");
        return SKIPPED;
    }
    for (; trials.turn < trials.turns; ++trials.turn) {
        trials.seen = 0;
        check(&trials);
    }
    printf("%d configurations, %d failures\n", trials.checked, trials.failures);
    if (trials.left > 0)
        printf("%d left out: no time\n", trials.left);
    return trials.failures > 0;
}
