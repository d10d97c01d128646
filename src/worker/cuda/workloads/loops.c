#include "worker/cuda/workloads/workloads.h"

#include <math.h>

#include "model/workloads/loop.h"

struct loop_work {
    struct tensor_work tensors;
    struct loop shape;
};

/* Rounds up to an even number of elements, because fp16 and bf16 come in pairs. */
static void loop_shape(const struct config *config, struct work *work, struct tensors *tensors)
{
    ((struct loop_work *)work)->shape = loop_from(config);
    tensors->read[TENSOR_INPUT] = 2 * ceil(tensors->read[TENSOR_INPUT] / 2);
    tensors->written[TENSOR_OUTPUT] = tensors->read[TENSOR_INPUT];
}

static enum status loop_check(const struct gpu *gpu, const struct config *config,
                              struct error *error)
{
    const enum precision precision = config_precision(config);
    if (gpu->chip->vector[precision] == 0.0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "compute capability %d.%d has no %s vector unit", gpu->capability / 10,
                         gpu->capability % 10, precision_info[precision].name);
    return STATUS_OK;
}

static enum status loop_open(struct gpu *gpu, const struct config *config, struct work *work,
                             struct record *record, struct error *error)
{
    (void)gpu, (void)config, (void)error;
    tensor_work_describe(((struct loop_work *)work)->shape.shared ? "shared-memory" : "registers",
                         UNIT_VECTOR, 0.0, record);
    return STATUS_OK;
}

static enum status loop_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct loop_work *l = (const struct loop_work *)work;
    const struct loop *s = &l->shape;
    const void *x = l->tensors.input[TENSOR_INPUT];
    void *y = l->tensors.result[TENSOR_OUTPUT];
    if (s->shared)
        return CUDA(kernel_shared_loop(s->precision, y, x, s->tiles, (int)s->tile, (int)s->steps,
                                       gpu->stream));
    return CUDA(kernel_compute_loop(s->precision, y, x, s->tiles, (int)s->steps, gpu->stream));
}

const struct tensor_routine loop_plain = {
    .bytes = sizeof(struct loop_work),
    .shape = loop_shape,
    .check = loop_check,
    .open = loop_open,
    .iterate = loop_iterate,
};
