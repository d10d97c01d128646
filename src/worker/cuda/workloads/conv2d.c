#include "worker/cuda/workloads/workloads.h"

#include <math.h>
#include <string.h>

#include "model/choice.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/workloads/conv2d_format.h"
#include "worker/cuda/workloads/conv2d_part.h"
#include "worker/cuda/workloads/conv2d_step.h"

/* One layout of the two that layout = auto tries, with what its search says. */
struct attempt {
    struct work *work;    /* NULL: refused */
    struct record record; /* shares what it owns with the row's record */
};

/* The first stays unless the second is faster by more than the noise. */
static bool second_wins(const struct attempt attempts[2])
{
    const struct record *first = &attempts[0].record, *second = &attempts[1].record;
    double noise = fmax(first->search_noise, second->search_noise);
    return !attempts[0].work ||
           (attempts[1].work && (1.0 + noise) * second->search_time < first->search_time);
}

/* The layout of an earlier choice. *work stays NULL if that cannot be had: both are tried then. */
static enum status layout_recall(struct gpu *gpu, const struct config *config, uint64_t seed,
                                 struct work **work, struct record *record, struct error *error)
{
    struct attempt attempt = {NULL, *record};
    struct error refusal;
    enum status status = STATUS_UNSUPPORTED;
    for (int i = 0; i < 2 && record->offer; ++i) {
        struct config one = conv2d_with_layout(config, (enum layout)i);
        record_set_layout(&attempt.record, &one);
        if (strcmp(attempt.record.layout_chosen, record->offer->layout_chosen) == 0) {
            status = conv2d_part_prepare(gpu, &one, seed, NULL, &attempt.work, &attempt.record,
                                         &refusal);
            break;
        }
    }
    record->offer = NULL;
    if (status == STATUS_DEVICE)
        *error = refusal;
    if (status)
        return status == STATUS_DEVICE ? status : STATUS_OK;
    if (conv2d_part_recalled(attempt.work)) {
        *record = attempt.record;
        *work = attempt.work;
    } else {
        attempt.work->ops->release(attempt.work);
    }
    return STATUS_OK;
}

static enum status layouts_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                   struct work **work, struct record *record, struct error *error)
{
    TRY(layout_recall(gpu, config, seed, work, record, error));
    if (*work)
        return STATUS_OK;
    struct attempt attempts[2] = {{NULL, *record}, {NULL, *record}};
    enum status status = STATUS_OK;
    for (int i = 0; i < 2 && status != STATUS_DEVICE; ++i) {
        struct config one = conv2d_with_layout(config, (enum layout)i);
        record_set_layout(&attempts[i].record, &one);
        status = conv2d_part_prepare(gpu, &one, seed, NULL, &attempts[i].work, &attempts[i].record,
                                     error);
    }
    int chosen = second_wins(attempts), other = !chosen;
    if (status == STATUS_DEVICE || !attempts[chosen].work)
        return status;
    if (attempts[other].work) {
        attempts[chosen].record.layout_other_time = attempts[other].record.search_time;
        attempts[other].work->ops->release(attempts[other].work);
    }
    *record = attempts[chosen].record;
    *work = attempts[chosen].work;
    return STATUS_OK;
}

enum status conv2d_cudnn_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                 struct work **work, struct record *record, struct error *error)
{
    struct conv2d shape = conv2d_from(config);
    TRY(conv2d_format_check(gpu, shape.precision, error));
    if (conv2d_is_step(&shape))
        return conv2d_step_prepare(gpu, config, seed, work, record, error);
    struct work *prepared = NULL;
    TRY(shape.layout == LAYOUT_AUTO
            ? layouts_prepare(gpu, config, seed, &prepared, record, error)
            : conv2d_part_prepare(gpu, config, seed, NULL, &prepared, record, error));
    *work = prepared;
    return STATUS_OK;
}
