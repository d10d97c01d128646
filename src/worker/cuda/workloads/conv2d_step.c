/* conv2d passes of several parts (struct conv2d_parts). cuDNN (conv2d.c) or hand-written kernels do
 * the convolutions; hand-written kernels do bias, activation, their gradients and the update. */
#include "worker/cuda/workloads/conv2d.h"

#include <stdio.h>
#include <string.h>

#include "worker/cuda/workloads/workloads.h"

struct step_work {
    struct tensor_work tensors;
    struct conv2d shape;
    struct conv2d_parts parts;
    bool fused; /* the forward kernel adds the bias and applies the activation */
    /* cuDNN's convolutions; owned. NULL: not in this pass, or hand-written. */
    struct work *convolutions[CONV2D_BACKWARD_FILTER + 1];
};

/* Returns dz; without an activation dz is dy. */
static void *gradient(const struct step_work *step)
{
    const struct tensor_work *t = &step->tensors;
    return t->intermediate ? t->intermediate : t->input[TENSOR_OUTPUT];
}

/* ---- the parts ---- */

static struct conv2d_arrays arrays_of(const struct step_work *step, enum conv2d_pass pass)
{
    const struct tensor_work *t = &step->tensors;
    bool forward = pass == CONV2D_FORWARD, data = pass == CONV2D_BACKWARD_DATA;
    return (struct conv2d_arrays){
        .x = data ? t->result[TENSOR_INPUT] : t->input[TENSOR_INPUT],
        .w = forward || data ? t->input[TENSOR_WEIGHT] : t->result[TENSOR_WEIGHT],
        .y = forward ? t->result[TENSOR_OUTPUT] : gradient(step),
        .b = forward ? t->input[TENSOR_BIAS] : NULL,
        .finish = forward && step->fused,
    };
}

static enum status convolve(struct gpu *gpu, const struct step_work *step, enum conv2d_pass pass,
                            struct error *error)
{
    struct work *library = step->convolutions[pass];
    if (library)
        return library->ops->iterate(gpu, library, error);
    const struct conv2d_arrays arrays = arrays_of(step, pass);
    struct conv2d shape = step->shape;
    shape.pass = pass;
    return CUDA(kernel_conv2d(&shape, &arrays, gpu->stream));
}

static enum status forward(struct gpu *gpu, const struct step_work *step, struct error *error)
{
    const struct tensor_work *t = &step->tensors;
    TRY(convolve(gpu, step, CONV2D_FORWARD, error));
    if (step->fused || !conv2d_has_layer(&step->shape))
        return STATUS_OK;
    return CUDA(kernel_conv2d_finish(&step->shape, t->result[TENSOR_OUTPUT], t->input[TENSOR_BIAS],
                                     gpu->stream));
}

static enum status backward(struct gpu *gpu, const struct step_work *step, struct error *error)
{
    const struct tensor_work *t = &step->tensors;
    if (t->intermediate)
        TRY(CUDA(kernel_conv2d_slope(&step->shape, t->intermediate, t->input[TENSOR_OUTPUT],
                                     t->result[TENSOR_OUTPUT], gpu->stream)));
    if (t->result[TENSOR_BIAS])
        TRY(CUDA(kernel_conv2d_bias_gradient(&step->shape, t->result[TENSOR_BIAS], gradient(step),
                                             gpu->stream)));
    if (step->parts.data)
        TRY(convolve(gpu, step, CONV2D_BACKWARD_DATA, error));
    return step->parts.filter ? convolve(gpu, step, CONV2D_BACKWARD_FILTER, error) : STATUS_OK;
}

static enum status update(struct gpu *gpu, const struct step_work *step, struct error *error)
{
    const struct tensor_work *t = &step->tensors;
    const struct conv2d *s = &step->shape;
    TRY(CUDA(kernel_update(s->precision, t->result[TENSOR_WEIGHT_UPDATED], t->input[TENSOR_WEIGHT],
                           t->result[TENSOR_WEIGHT], CONV2D_LEARNING_RATE, conv2d_w_size(s),
                           gpu->stream)));
    if (!s->bias)
        return STATUS_OK;
    return CUDA(kernel_update(s->precision, t->result[TENSOR_BIAS_UPDATED], t->input[TENSOR_BIAS],
                              t->result[TENSOR_BIAS], CONV2D_LEARNING_RATE, s->filters,
                              gpu->stream));
}

/* ---- work_ops ---- */

static enum status step_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct step_work *step = (const struct step_work *)work;
    if (step->parts.forward)
        TRY(forward(gpu, step, error));
    if (step->parts.data || step->parts.filter)
        TRY(backward(gpu, step, error));
    return step->parts.update ? update(gpu, step, error) : STATUS_OK;
}

/* Computes the y that the activation's gradient needs, if the pass does not compute y. */
static enum status output_make(struct gpu *gpu, const struct step_work *step, struct error *error)
{
    bool needed = conv2d_needs_y(&step->shape) && !step->parts.forward;
    return needed ? forward(gpu, step, error) : STATUS_OK;
}

/* Sets results to NaN (all bits set, in every format) and computes y before the iteration. */
static enum status step_run(struct gpu *gpu, struct work *work, int64_t samples,
                            struct error *error)
{
    const struct step_work *step = (const struct step_work *)work;
    const struct tensor_work *t = &step->tensors;
    (void)samples;
    for (int i = 0; i < TENSOR_COUNT; ++i)
        if (t->result[i])
            TRY(CUDA(cudaMemsetAsync(t->result[i], 0xff, t->result_bytes[i], gpu->stream)));
    TRY(output_make(gpu, step, error));
    return step_iterate(gpu, work, error);
}

static void step_close(struct work *work)
{
    struct step_work *step = (struct step_work *)work;
    for (int i = 0; i <= CONV2D_BACKWARD_FILTER; ++i)
        if (step->convolutions[i])
            step->convolutions[i]->ops->release(step->convolutions[i]);
}

/* ---- preparation ---- */

static void step_shape(const struct config *config, struct work *work, struct tensors *tensors)
{
    struct step_work *step = (struct step_work *)work;
    const struct conv2d s = step->shape = conv2d_from(config);
    step->parts = conv2d_parts[s.pass];
    if (conv2d_needs_y(&s)) /* the gradient before the activation */
        step->tensors.intermediate_bytes =
            (size_t)tensors->written[TENSOR_OUTPUT] * precision_info[s.precision].bytes;
}

static enum status step_open(struct gpu *gpu, struct step_work *step, struct error *error)
{
    step->tensors.ops.run = step_run;
    return output_make(gpu, step, error);
}

static struct config convolution_config(const struct config *config, enum conv2d_pass pass)
{
    static const char *const names[] = {"pass", "bias", "activation", "fusion"};
    struct config one = *config, initial = config_default(config->workload);
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        size_t at = (size_t)workload_parameter(config->workload, names[i]);
        struct value value = config_get(&initial, at);
        if (i == 0)
            value.first = pass;
        config_set(&one, at, &value);
    }
    return one;
}

/* Adds a convolution's algorithm to the record of the whole pass. */
static void record_join(const struct record *one, struct record *all)
{
    size_t used = strlen(all->algorithm);
    snprintf(all->algorithm + used, sizeof all->algorithm - used, "%s%s", used ? "; " : "",
             one->algorithm);
    if (one->unit == UNIT_TENSOR || !used) {
        memcpy(all->math, one->math, sizeof all->math);
        all->unit = one->unit;
    }
    /* `one` began as a copy of `all`, so its times include those of earlier convolutions. */
    memcpy(all->wall_time_part, one->wall_time_part, sizeof all->wall_time_part);
    all->workspace = (used ? all->workspace : 0.0) + one->workspace;
}

static bool has_convolution(const struct conv2d *s, int pass)
{
    const struct conv2d_parts parts = conv2d_parts[s->pass];
    return pass == CONV2D_FORWARD         ? parts.forward || conv2d_needs_y(s)
           : pass == CONV2D_BACKWARD_DATA ? parts.data
                                          : parts.filter;
}

static enum status library_check(const struct gpu *gpu, const struct config *config,
                                 struct error *error)
{
    const struct conv2d s = conv2d_from(config);
    if (s.fusion == FUSION_FUSED)
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuDNN is not used here with fused bias and activation; "
                         "implementation=plain fuses them");
    for (int pass = 0; pass <= CONV2D_BACKWARD_FILTER; ++pass) {
        const struct config one = convolution_config(config, (enum conv2d_pass)pass);
        if (has_convolution(&s, pass))
            TRY(conv2d_single_check(gpu, &one, error));
    }
    return STATUS_OK;
}

static enum status library_open(struct gpu *gpu, const struct config *config, struct work *work,
                                struct record *record, struct error *error)
{
    struct step_work *step = (struct step_work *)work;
    record->algorithm[0] = '\0';
    for (int i = 0; i <= CONV2D_BACKWARD_FILTER; ++i) {
        const enum conv2d_pass pass = (enum conv2d_pass)i;
        const struct conv2d_arrays arrays = arrays_of(step, pass);
        const struct conv2d_memory memory = {arrays.x, arrays.w, arrays.y};
        const struct config one = convolution_config(config, pass);
        struct record found = *record;
        found.offer = NULL; /* an offer is for a single convolution */
        if (!has_convolution(&step->shape, i))
            continue;
        TRY(conv2d_part_prepare(gpu, &one, &memory, &step->convolutions[pass], &found, error));
        record_join(&found, record);
    }
    return step_open(gpu, step, error);
}

const struct tensor_routine conv2d_cudnn = {
    .bytes = sizeof(struct step_work),
    .shape = step_shape,
    .check = library_check,
    .open = library_open,
    .iterate = step_iterate,
    .close = step_close,
};

bool conv2d_is_single(const struct config *config)
{
    const struct conv2d s = conv2d_from(config);
    return s.pass <= CONV2D_BACKWARD_FILTER && !conv2d_has_layer(&s);
}

/* ---- any pass by hand-written kernels ---- */

static enum status plain_check(const struct gpu *gpu, const struct config *config,
                               struct error *error)
{
    const struct conv2d s = conv2d_from(config);
    (void)gpu;
    if (s.precision == PRECISION_TF32)
        return error_set(error, STATUS_UNSUPPORTED,
                         "tf32 is a precision of tensor units, which the plain kernels do not use");
    if (strcmp(s.algorithm, "auto") != 0)
        return error_set(error, STATUS_UNSUPPORTED, "algorithm %s is cuDNN's", s.algorithm);
    return STATUS_OK;
}

static enum status plain_open(struct gpu *gpu, const struct config *config, struct work *work,
                              struct record *record, struct error *error)
{
    struct step_work *step = (struct step_work *)work;
    (void)config, (void)record;
    step->fused = conv2d_has_layer(&step->shape) && step->shape.fusion != FUSION_SEPARATE;
    return step_open(gpu, step, error);
}

const struct tensor_routine conv2d_plain = {
    .bytes = sizeof(struct step_work),
    .algorithm = "thread-per-element",
    .shape = step_shape,
    .check = plain_check,
    .open = plain_open,
    .iterate = step_iterate,
};
