/* Each kernel of norms, as trial.h says. */
#include <stdio.h>

#include "kernels/kernels.h"
#include "model/workloads/norm.h"
#include "trial.h"

static void norm_size(const struct config *config, struct trial_arrays *arrays)
{
    struct norm s = norm_from(config);
    bool backward = s.pass == NORM_BACKWARD;
    int64_t kept = backward ? s.columns : s.pass == NORM_TRAINING ? norm_statistics(&s) : 0;
    arrays->reads[TENSOR_INPUT] = s.rows * s.columns;
    arrays->reads[TENSOR_WEIGHT] = arrays->reads[TENSOR_BIAS] = s.columns;
    arrays->reads[TENSOR_OUTPUT] = backward ? s.rows * s.columns : 0;
    arrays->writes[backward ? TENSOR_INPUT : TENSOR_OUTPUT] = s.rows * s.columns;
    arrays->writes[TENSOR_WEIGHT] = arrays->writes[TENSOR_BIAS] = kept;
    arrays->wide[TENSOR_WEIGHT] = arrays->wide[TENSOR_BIAS] = true;
}

/* Ends with a step of -1. */
static cudaError_t norm_steps(enum precision precision, const struct norm_arrays *arrays,
                              const int *steps)
{
    cudaError_t code = cudaSuccess;
    for (; code == cudaSuccess && *steps >= 0; ++steps)
        code = kernel_norm_step(precision, (enum norm_step) * steps, arrays, NULL);
    return code;
}

static cudaError_t norm_batch(const struct norm *s, struct norm_arrays *a, bool training)
{
    static const int moments[] = {NORM_STEP_SUM_MOMENTS, NORM_STEP_MOMENTS, -1};
    static const int gradients[] = {NORM_STEP_SUM_BATCH, NORM_STEP_BATCH_GRADIENTS, NORM_STEP_APPLY,
                                    -1};
    static const int apply[] = {NORM_STEP_APPLY, -1};
    struct norm_arrays found = *a;
    found.mean = training ? a->mean : (void *)a->mean_given;
    found.inverse = training ? a->inverse : (void *)a->inverse_given;
    found.dy = NULL;
    cudaError_t code = norm_steps(s->precision, &found, moments);
    a->mean_given = found.mean;
    a->inverse_given = found.inverse;
    if (code != cudaSuccess)
        return code;
    return norm_steps(s->precision, a, s->pass == NORM_BACKWARD ? gradients : apply);
}

/* A backward pass needs a forward pass first, whose y goes to dx. */
static cudaError_t norm_layer(const struct norm *s, const struct norm_arrays *a)
{
    static const int together[] = {NORM_STEP_LAYER_GRADIENTS, -1};
    static const int separate[] = {NORM_STEP_SUM_LAYER, NORM_STEP_LAYER_GRADIENTS, -1};
    struct norm_arrays first = *a;
    if (s->pass != NORM_BACKWARD)
        return kernel_layer_norm(s->precision, a, NULL);
    first.dy = NULL;
    first.y = a->dx;
    first.mean = (void *)a->mean_given;
    first.inverse = (void *)a->inverse_given;
    cudaError_t code = kernel_layer_norm(s->precision, &first, NULL);
    if (code == cudaSuccess)
        code = kernel_layer_norm(s->precision, a, NULL);
    bool sums = kernel_layer_norm_sums(s->precision, s->columns);
    return code == cudaSuccess ? norm_steps(s->precision, a, sums ? together : separate) : code;
}

static cudaError_t norm_launch(const struct config *config, const struct trial_arrays *arrays)
{
    const int chunks = 5;
    struct norm s = norm_from(config);
    bool training = s.pass == NORM_TRAINING, backward = s.pass == NORM_BACKWARD;
    size_t wide = precision_info[norm_wide(s.precision)].bytes;
    size_t moments = (size_t)norm_statistics(&s) * wide;
    void *mean = NULL, *inverse = NULL, *partial = NULL;
    cudaMalloc(&mean, moments);
    cudaMalloc(&inverse, moments);
    cudaMalloc(&partial, 2 * (size_t)chunks * (size_t)s.columns * wide);
    struct norm_arrays a = {
        .rows = s.rows,
        .columns = s.columns,
        .x = arrays->input[TENSOR_INPUT],
        .dy = arrays->input[TENSOR_OUTPUT],
        .gamma = arrays->input[TENSOR_WEIGHT],
        .beta = arrays->input[TENSOR_BIAS],
        .mean_given = mean,
        .inverse_given = inverse,
        .y = arrays->result[TENSOR_OUTPUT],
        .dx = arrays->result[TENSOR_INPUT],
        .mean = training ? arrays->result[TENSOR_WEIGHT] : NULL,
        .inverse = training ? arrays->result[TENSOR_BIAS] : NULL,
        .dgamma = backward ? arrays->result[TENSOR_WEIGHT] : NULL,
        .dbeta = backward ? arrays->result[TENSOR_BIAS] : NULL,
        .partial = partial,
        .chunks = chunks,
    };
    cudaError_t code =
        s.operation == NORM_BATCH ? norm_batch(&s, &a, training) : norm_layer(&s, &a);
    cudaFree(partial); /* waits */
    cudaFree(inverse);
    cudaFree(mean);
    return code;
}

static const struct trial kinds[] = {
    {"norm", norm_size, norm_launch},
    {NULL, NULL, NULL},
};

/* Groups of one warp and of several, rows in registers and longer ones, with and without whole pieces;
 * fewer rows than chunks, and columns of one block and several. */
static void norm_check(struct trials *trials)
{
    static const int shapes[][2] = {{6, 6},     {5, 8},     {17, 33},   {9, 256},   {8, 257},
                                    {300, 64},  {1000, 40}, {5, 1024},  {70, 2048}, {5, 4096},
                                    {6, 4095},  {7, 8192},  {5, 8200},  {5, 16384}, {5, 16390},
                                    {5, 20000}, {4000, 6},  {100, 520}, {7, 1000}};
    static const char *const passes[] = {"forward", "training", "backward"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (int variant = 0; variant < 6 * TRIAL_PRECISIONS; ++variant) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "norm rows=%d columns=%d operation=%s pass=%s precision=%s",
                     shapes[i][0], shapes[i][1], variant % 2 ? "batch" : "layer",
                     passes[variant / 2 % 3], trial_precisions[variant / 6]);
            trial_check(trials, text);
        }
}

int main(int count, char **arguments)
{
    return trial_main(count, arguments, kinds, norm_check);
}
