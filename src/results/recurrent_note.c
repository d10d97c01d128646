#include "results/recurrent_note.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/kernel_tile.h"

/* The kernels, by their names up to the template arguments. FLOPs for each unit and step, with `hidden`
 * H that is padded to P, and G gates:
 *   the state's product   2 G P; P / H times that where units are padded, too, not only what is summed
 *   functions             as counted on an H200, of all kernels but the products'; P / H times that
 *                         where they are done for padding, too */
static const struct kernel_kind {
    const char *name;
    int64_t width;   /* P is this times the first template argument; 0: it is the last argument */
    bool tensor;     /* the tensor units do the product */
    bool backward;   /* the product is the state's gradient */
    bool pads_units; /* see above */
    bool pads_functions;
    double functions;
} kinds[] = {
    {"RNN_blockPersist_fp_LSTM<", 0, false, false, false, false, 24.0},
    {"RNN_blockPersist_fp_LSTM_HMMA<", 0, true, false, false, false, 24.0},
    {"RNN_blockPersist_bp_LSTM_FMA<", 0, false, true, true, false, 36.0},
    {"RNN_blockPersist_bp_LSTM_HMMA<", 0, true, true, true, false, 36.0},
    {"ampere_lstm_tile16<", 16, true, false, true, true, 52.0},
};

/* One kernel that does the recurrence. FLOPs are for each unit and step. */
struct recurrence {
    const struct kernel_kind *kind;
    int64_t padded; /* hidden */
    double product, functions;
};

static int64_t width_parse(const struct kernel_kind *kind, const char *arguments)
{
    const char *end = strchr(arguments, '>'), *last = arguments;
    for (const char *at = arguments; end && at < end; ++at)
        if (*at == ' ')
            last = at + 1;
    return !end ? 0 : kind->width ? kind->width * atoll(arguments) : atoll(last);
}

static bool recurrence_parse(const char *name, const struct layer_products *layer,
                             struct recurrence *r)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        const char *found = strstr(name, kinds[i].name);
        int64_t padded = found ? width_parse(&kinds[i], found + strlen(kinds[i].name)) : 0;
        double grown = (double)padded / (double)layer->hidden;
        if (padded < layer->hidden)
            continue;
        *r = (struct recurrence){.kind = &kinds[i], .padded = padded};
        r->product = 2.0 * (double)(layer->gates * padded) * (kinds[i].pads_units ? grown : 1.0);
        r->functions = kinds[i].functions * (kinds[i].pads_functions ? grown : 1.0);
        return true;
    }
    return false;
}

/* Just one kernel must do it, for only that was seen. */
static bool recurrence_find(const struct record *record, const struct layer_products *layer,
                            struct recurrence *recurrence)
{
    int64_t found = 0;
    for (size_t i = 0; i < record->kernel_count; ++i)
        if (recurrence_parse(record->kernels[i].name, layer, recurrence))
            found += record->kernels[i].count > 1 ? record->kernels[i].count : 1;
    return found == 1;
}

/* ---- all other products: the input's; backward the gradients of input and weights ---- */

enum { OTHERS = 4, TILES_TEXT = 80 };

struct others {
    struct kernel_tile tiles[OTHERS];
    int64_t slices[OTHERS]; /* of what is summed up: blocks one upon the other */
    int count;
};

static bool others_add(struct others *others, const struct kernel *kernel)
{
    struct kernel_tile tile;
    if (!kernel_tile_of(kernel, &tile))
        return true;
    for (int64_t i = 0; i < kernel->count; ++i) {
        if (others->count == OTHERS || tile.blocks == 0)
            return false;
        others->slices[others->count] = kernel->grid_z;
        others->tiles[others->count++] = tile;
    }
    return true;
}

/* False if there are more than are known, or of unknown size. */
static bool others_of(const struct record *record, struct others *others)
{
    for (size_t i = 0; i < record->kernel_count; ++i)
        if (!others_add(others, &record->kernels[i]))
            return false;
    return true;
}

/* FLOPs of whole tiles in which so many products are summed up for each result. */
static double tile_flops(const struct others *others, int i, int64_t summed)
{
    const struct kernel_tile *tile = &others->tiles[i];
    double depth = (double)kernel_tile_padded(summed, tile->extents[2] * others->slices[i]);
    return 2.0 * (double)(tile->blocks / others->slices[i]) *
           (double)(tile->extents[0] * tile->extents[1]) * depth;
}

/* Vector units' counts have up to three more for each result of a block: its scale, a bias, a sum. */
static double results_flops(const struct others *others)
{
    double results = 0.0;
    for (int i = 0; i < others->count; ++i)
        results += (double)(others->tiles[i].blocks * others->tiles[i].extents[0] *
                            others->tiles[i].extents[1]);
    return 3.0 * results;
}

/* Counted FLOPs of these kernels, and what whole tiles of them may differ by. */
struct others_count {
    double counted, extra, tolerance;
};

/* Which kernel does which of the products is not known: kernel `i` and those behind it do what is left
 * of `sums`. Their FLOPs with those before; NaN if they are not what was counted. */
static double others_account(const struct others *others, int i, const int64_t sums[OTHERS],
                             double before, const struct others_count *count)
{
    if (i == others->count)
        return count->counted >= before - count->tolerance &&
                       count->counted <= before + count->extra + count->tolerance
                   ? before
                   : NAN;
    for (int chosen = i; chosen < others->count; ++chosen) {
        int64_t left[OTHERS];
        memcpy(left, sums, sizeof left);
        left[chosen] = sums[i];
        double all = others_account(others, i + 1, left,
                                    before + tile_flops(others, i, sums[chosen]), count);
        if (!isnan(all))
            return all;
    }
    return NAN;
}

/* What is summed up for each result. The state's weights change by all steps but the first, whose state
 * is zero; where a program gives that state, a product of its own does that step. */
static bool others_sums(const struct others *others, const struct layer_products *layer,
                        bool backward, int64_t sums[OTHERS])
{
    const int64_t forward_sums[OTHERS] = {layer->features};
    const int64_t backward_sums[OTHERS] = {layer->gates * layer->hidden,
                                           layer->batch * layer->steps,
                                           layer->batch * (layer->steps - 1), layer->batch};
    memcpy(sums, backward ? backward_sums : forward_sums, sizeof forward_sums);
    return backward ? others->count >= OTHERS - 1 : others->count == 1;
}

/* FLOPs of whole tiles; NaN if the kernels are not known to be these, or were counted otherwise. */
static double others_tiled(const struct record *record, const struct layer_products *layer,
                           const struct recurrence *r, struct others *others,
                           struct others_count *count)
{
    int64_t sums[OTHERS];
    if (!others_of(record, others) || !others_sums(others, layer, r->kind->backward, sums))
        return NAN;
    if (record->unit == UNIT_VECTOR)
        count->extra = results_flops(others);
    return others_account(others, 0, sums, 0.0, count);
}

static void tiles_write(const struct others *others, char text[TILES_TEXT])
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < others->count && used < TILES_TEXT; ++i) {
        const int64_t *extents = others->tiles[i].extents;
        bool said = false;
        for (int before = 0; before < i; ++before)
            said = said || !memcmp(others->tiles[before].extents, extents, 3 * sizeof *extents);
        if (!said)
            used += (size_t)snprintf(text + used, TILES_TEXT - used, "%s%lld x %lld x %lld",
                                     used ? ", " : "", (long long)extents[0], (long long)extents[1],
                                     (long long)extents[2]);
    }
}

/* ---- the note ---- */

/* FLOPs, for each unit and step. */
struct split {
    double functions, others;
    bool separate; /* by unit: neither follows from the other */
};

static bool near(double value, double expected, double tolerance)
{
    return fabs(value - expected) <= tolerance * expected;
}

static bool split_of(const struct record *record, const struct recurrence *r, double own,
                     double cells, struct split *split)
{
    bool tensor = record->unit == UNIT_TENSOR;
    double on_tensor = r->kind->tensor ? r->product : 0.0;
    double on_vector = r->product - on_tensor;
    split->separate = tensor;
    split->functions = tensor ? (record->flops_counted - own) / cells - on_vector : r->functions;
    split->others = own / cells - (tensor ? on_tensor : on_vector + split->functions);
    return near(split->functions, r->functions, 0.15) && (tensor || on_tensor == 0.0);
}

/* Why the other products are `ratio` times the modelled ones, where tiles are `tiled` times. */
static void others_write(const struct others *others, double ratio, double tiled, char *text,
                         size_t size)
{
    char tiles[TILES_TEXT];
    bool grown = !near(tiled, 1.0, 0.005), more = !near(ratio, tiled, 0.02);
    tiles_write(others, tiles);
    if (near(ratio, 1.0, 0.02) || (!grown && !more))
        snprintf(text, size, "as modelled");
    else if (isnan(tiled))
        snprintf(text, size, "%.3g times the model, not explained further", ratio);
    else
        snprintf(text, size, "%.3g times the model: %s%s%s%s", ratio,
                 grown ? "whole tiles of " : "", grown ? tiles : "", grown && more ? ", " : "",
                 more ? "scaling and sums of results" : "");
}

static void note_write(const struct layer_products *layer, const struct recurrence *r,
                       const struct split *split, const char *others, char *reason, size_t size)
{
    char pads[80] = "", functions[80] = "";
    if (r->padded > layer->hidden)
        snprintf(pads, sizeof pads, "the recurrence's kernel pads %d hidden to %d, ",
                 (int)layer->hidden, (int)r->padded);
    if (split->separate)
        snprintf(functions, sizeof functions, "functions are %.3g FLOPs for each unit and step, ",
                 split->functions);
    snprintf(reason, size, "%s%sproducts outside the recurrence are %s", pads, functions, others);
}

bool recurrent_note(const struct record *record, const struct products *shape, double own,
                    double products, char *reason, size_t size)
{
    const struct layer_products *layer = &shape->layer;
    struct recurrence r = {.kind = NULL};
    struct split split;
    struct others others = {.count = 0};
    double cells = (double)layer->batch * (double)layer->steps * (double)layer->hidden;
    if (cells == 0.0 || !recurrence_find(record, layer, &r) ||
        !split_of(record, &r, own, cells, &split))
        return false;
    double modelled = products - cells * 2.0 * (double)(layer->gates * layer->hidden);
    double ratio = split.others * cells / modelled;
    struct others_count count = {split.others * cells, 0.0, 0.02 * own};
    double tiled = others_tiled(record, layer, &r, &others, &count) / modelled;
    if (isnan(tiled) && (ratio < 0.99 || ratio > 2.6))
        return false;
    char text[160];
    others_write(&others, ratio, tiled, text, sizeof text);
    note_write(layer, &r, &split, text, reason, size);
    return true;
}
