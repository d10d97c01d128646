#include "results/count_note.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/products.h"
#include "results/kernel_tile.h"
#include "results/recurrent_note.h"

enum { REASON_TEXT = 280 };

/* What the rules look at. */
struct facts {
    const struct record *record;
    const struct device *device;
    struct config config;
    struct products shape; /* of the matrix products */
    double own;            /* FLOPs of the unit and precision that the record is about */
    double products;       /* modelled FLOPs of the matrix products alone */
    double ratio;          /* counted over modelled, of FLOPs or bytes */
};

static bool near(double value, double expected, double tolerance)
{
    return fabs(value - expected) <= tolerance * expected;
}

static bool far(double ratio)
{
    return isfinite(ratio) && (ratio < 0.9 || ratio > 1.1);
}

/* ---- kernels by their names ---- */

static bool has_word(const char *name, const char *const *words)
{
    for (; *words; ++words)
        if (strcasestr(name, *words))
            return true;
    return false;
}

static bool ran(const struct record *record, const char *const *words)
{
    bool found = has_word(record->algorithm, words);
    for (size_t i = 0; i < record->kernel_count; ++i)
        found = found || has_word(record->kernels[i].name, words);
    return found;
}

/* FLOPs and device memory's bytes of the kernels with such a name; NaN where they were not counted.
 */
static void kernels_sum(const struct record *record, const char *const *words, double *flops,
                        double *bytes)
{
    *flops = *bytes = 0.0;
    for (size_t i = 0; i < record->kernel_count; ++i)
        if (has_word(record->kernels[i].name, words)) {
            *flops += record->kernels[i].flops_counted;
            *bytes += record->kernels[i].bytes_counted[LEVEL_DRAM];
        }
}

/* ---- FLOPs ---- */

static const struct {
    const char *words[3];
    bool more, fewer; /* than modelled: what it can explain */
    const char *reason;
} algorithms[] = {
    {{"winograd"}, false, true, "Winograd's algorithm multiplies less"},
    {{"fft"}, true, true, "Fourier transforms stand for multiply-adds"},
};

static bool by_algorithm(const struct facts *f, char reason[REASON_TEXT])
{
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; ++i)
        if ((f->ratio > 1.0 ? algorithms[i].more : algorithms[i].fewer) &&
            ran(f->record, algorithms[i].words)) {
            snprintf(reason, REASON_TEXT, "%s", algorithms[i].reason);
            return true;
        }
    return false;
}

static bool by_zeros(const struct facts *f, char reason[REASON_TEXT])
{
    double inside = f->shape.inside;
    if (inside == 1.0 || !near(f->own / f->products, inside, 0.01))
        return false;
    snprintf(reason, REASON_TEXT, "%.3g of the multiply-adds are with padding zeros; left out",
             1.0 - inside);
    return true;
}

/* cuDNN's persistent kernels of an LSTM layer. */
static bool by_recurrence(const struct facts *f, char reason[REASON_TEXT])
{
    return recurrent_note(f->record, &f->shape, f->own, f->products, reason, REASON_TEXT);
}

static bool by_tiles(const struct facts *f, char reason[REASON_TEXT])
{
    struct kernel_tile tile;
    double ratio = f->own / f->products;
    if (!far(ratio))
        return false;
    for (size_t i = 0; i < f->record->kernel_count; ++i)
        if (kernel_tile_of(&f->record->kernels[i], &tile) &&
            kernel_tile_fits(&tile, &f->shape, ratio)) {
            snprintf(reason, REASON_TEXT, "as much as a kernel's tiles of %lld x %lld x %lld need",
                     (long long)tile.extents[0], (long long)tile.extents[1],
                     (long long)tile.extents[2]);
            return true;
        }
    return false;
}

static bool by_clusters(const struct facts *f, char reason[REASON_TEXT])
{
    struct kernel_tile tile;
    double ratio = f->own / f->products;
    if (!far(ratio))
        return false;
    for (size_t i = 0; i < f->record->kernel_count; ++i)
        if (kernel_tile_of(&f->record->kernels[i], &tile) &&
            kernel_tile_fits_in_clusters(&tile, &f->shape, ratio)) {
            snprintf(reason, REASON_TEXT,
                     "as much as a kernel's tiles of %lld x %lld x %lld need, in clusters of %lld",
                     (long long)tile.extents[0], (long long)tile.extents[1],
                     (long long)tile.extents[2], (long long)tile.cluster);
            return true;
        }
    return false;
}

enum { TILED_PARTS = 3 };

/* Each part, such as the two gradients of a backward pass, has tiles of its own. */
static bool by_tiles_of_parts(const struct facts *f, char reason[REASON_TEXT])
{
    struct kernel_tile tiles[TILED_PARTS] = {{{0}, 0, 1}}, tile;
    int count = 0, parts = f->shape.parts;
    size_t used;
    double ratio = f->own / f->products;
    if (!far(ratio) || parts < 2 || parts > TILED_PARTS)
        return false;
    for (size_t i = 0; i < f->record->kernel_count; ++i) {
        if (!kernel_tile_of(&f->record->kernels[i], &tile))
            continue;
        if (count == parts)
            return false;
        tiles[count++] = tile;
    }
    if (!kernel_tiles_fit(tiles, count, &f->shape, parts, ratio * parts))
        return false;
    used = (size_t)snprintf(reason, REASON_TEXT, "as much as the tiles of its parts' kernels need");
    for (int i = 0; i < count; ++i)
        used += (size_t)snprintf(reason + used, REASON_TEXT - used, "%s%lld x %lld x %lld",
                                 i ? ", " : ": ", (long long)tiles[i].extents[0],
                                 (long long)tiles[i].extents[1], (long long)tiles[i].extents[2]);
    return true;
}

/* Two extents, such as channels and filters, that are no multiples of what an instruction takes;
 * only if just one pair of padded sizes fits. */
static bool by_instructions(const struct facts *f, char reason[REASON_TEXT])
{
    static const int64_t multiples[] = {1, 4, 8, 16, 32};
    enum { COUNT = sizeof multiples / sizeof *multiples };
    const struct extent *extents = f->shape.ways[0];
    int64_t second = 0, third = 0;
    double ratio = f->own / f->products;
    if (f->shape.count == 0 || !extents[1].name || !extents[2].name || !far(ratio))
        return false;
    for (int i = 0; i < COUNT * COUNT; ++i) {
        const int64_t m[3] = {1, multiples[i % COUNT], multiples[i / COUNT]};
        int64_t new_second = kernel_tile_padded(extents[1].first, m[1]);
        int64_t new_third = kernel_tile_padded(extents[2].first, m[2]);
        if (!near(products_growth(extents, m), ratio, 0.01))
            continue;
        if (third && (second != new_second || third != new_third))
            return false;
        second = new_second;
        third = new_third;
    }
    if (!third)
        return false;
    snprintf(reason, REASON_TEXT,
             "as much as %lld %s padded to %lld and %lld %s padded to %lld need",
             (long long)extents[1].first, extents[1].name, (long long)second,
             (long long)extents[2].first, extents[2].name, (long long)third);
    return true;
}

static const char *const elementwise[] = {"elementwise", "elemwise", NULL};

/* The model's convention. */
static bool by_convention(const struct facts *f, char reason[REASON_TEXT])
{
    if (!f->shape.uncounted || f->record->unit == UNIT_TENSOR)
        return false;
    snprintf(reason, REASON_TEXT, "%s", f->shape.uncounted);
    return true;
}

/* Pairs of a query and a key that are computed in tiles of so many queries or keys, without tiles where
 * no query sees a key. */
static double tiled_pairs(const struct products *shape, int64_t tile)
{
    double pairs = 0.0;
    for (int64_t first = 0; first < shape->queries; first += tile) {
        int64_t seen = first + tile < shape->keys ? first + tile : shape->keys;
        pairs += (double)tile * (double)kernel_tile_padded(seen, tile);
    }
    return pairs;
}

/* A mask hides pairs from the model, and tiles hold some of them. */
static bool by_mask(const struct facts *f, char reason[REASON_TEXT])
{
    static const int64_t tiles[] = {16, 32, 64, 80, 96, 128, 160, 176, 192, 256};
    double all = (double)f->shape.queries * (double)f->shape.keys;
    double done = f->own / f->products * tiled_pairs(&f->shape, 1);
    if (f->shape.queries == 0)
        return false;
    if (f->record->unit == UNIT_VECTOR && done >= 0.99 * all) {
        snprintf(reason, REASON_TEXT,
                 "all pairs of a query and a key are computed, seen or not, and the softmax is no "
                 "FLOP in the model");
        return true;
    }
    if (near(done, all, 0.01)) {
        snprintf(reason, REASON_TEXT, "all pairs of a query and a key are computed, seen or not");
        return true;
    }
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; ++i)
        if (near(done, tiled_pairs(&f->shape, tiles[i]), 0.01)) {
            snprintf(reason, REASON_TEXT,
                     "as much as tiles of %lld queries or keys need, not all of which are seen",
                     (long long)tiles[i]);
            return true;
        }
    return false;
}

/* Functions such as sigmoids count, and have no FLOPs in the model. */
static bool by_cells(const struct facts *f, char reason[REASON_TEXT])
{
    double flops, bytes;
    if (f->shape.cells == 0.0 || !ran(f->record, elementwise))
        return false;
    kernels_sum(f->record, elementwise, &flops, &bytes);
    if (!near(f->record->flops_counted - flops, f->products, 0.1))
        return false;
    snprintf(reason, REASON_TEXT,
             "elementwise kernels of %s do %.3g for each %s, "
             "the model %.3g",
             f->shape.part, flops / f->shape.cells, f->shape.cell,
             (f->record->flops_model - f->products) / f->shape.cells);
    return true;
}

/* No reason, but what there is more of. */
static bool by_parts(const struct facts *f, char reason[REASON_TEXT])
{
    if (f->shape.cells == 0.0 || f->record->unit != UNIT_TENSOR)
        return false;
    snprintf(reason, REASON_TEXT,
             "the tensor units do %.3g times the products, the vector units %.3g for each %s; "
             "not explained further",
             f->own / f->products, (f->record->flops_counted - f->own) / f->shape.cells,
             f->shape.cell);
    return true;
}

/* Conversions, scaling and sums beside the products of the tensor units. */
static bool by_vector_units(const struct facts *f, char reason[REASON_TEXT])
{
    if (f->record->unit != UNIT_TENSOR || !near(f->own, f->products, 0.1))
        return false;
    snprintf(reason, REASON_TEXT,
             "the tensor units do %.3g times the products, the vector units the rest",
             f->own / f->products);
    return true;
}

/* ---- bytes of device memory ---- */

static const struct {
    const char *words[8];
    const char *what;
} movers[] = {
    {{"nchwToNhwc", "nhwcToNchw", "FoldedNhwc", "convertTensor", "AddPadding", "cvt"},
     "kernels that convert the layout"},
    {{"splitKreduce", "ReduceSplit"}, "kernels that add partial sums"},
};

static bool by_movers(const struct facts *f, char reason[REASON_TEXT])
{
    const struct record *record = f->record;
    double flops, bytes;
    for (size_t i = 0; i < sizeof movers / sizeof *movers; ++i) {
        if (!ran(record, movers[i].words))
            continue;
        kernels_sum(record, movers[i].words, &flops, &bytes);
        if (isnan(bytes))
            snprintf(reason, REASON_TEXT, "%s ran; kernels = yes would show their part",
                     movers[i].what);
        else
            snprintf(reason, REASON_TEXT, "%s move %.3g times the model, all others %.3g",
                     movers[i].what, bytes / record->bytes_model,
                     (record->bytes_counted[LEVEL_DRAM] - bytes) / record->bytes_model);
        return true;
    }
    return false;
}

/* What a single kernel of the model would keep to itself. */
static const struct {
    const char *words[2];
    const char *reason;
} between[] = {
    {{"three-steps"},
     "the scores are written and read between its steps; the model has them in a kernel"},
    {{"-separate"}, "the kernel behind the product reads it and writes it again"},
    {{"scalePackedTensor"}, "a kernel sets the result to zero, and another adds to it"},
};

static bool by_steps(const struct facts *f, char reason[REASON_TEXT])
{
    for (size_t i = 0; i < sizeof between / sizeof *between; ++i)
        if (ran(f->record, between[i].words)) {
            snprintf(reason, REASON_TEXT, "%s", between[i].reason);
            return true;
        }
    return false;
}

/* Kernels hand over results in the workspace: what is beyond the model is up to its size written, and as much
 * read. Fourier transforms of tiles use it again for each tile. */
static bool by_workspace(const struct facts *f, char reason[REASON_TEXT])
{
    static const char *const transforms[] = {"fft", NULL};
    const struct record *record = f->record;
    const double moved =
        (record->bytes_counted[LEVEL_DRAM] - record->bytes_model) / record->workspace;
    const bool transformed = ran(record, transforms);
    const double both = 2.1; /* of a workspace that is written and read */
    const double least =
        transformed ? 0.0 : 0.5; /* all that transforms hand over, they hand over there */
    if (!(record->workspace > 0.0) || record->kernel_count < 2 || !(moved >= least) ||
        (moved > both && !transformed))
        return false;
    snprintf(reason, REASON_TEXT,
             "its kernels hand over results%s in a workspace of %.3g MB; %.3g times that is moved",
             moved > both ? " of one tile after the other" : "", 1e-6 * record->workspace, moved);
    return true;
}

/* A single kernel that reads and writes more than there is. What it writes may stay in L2, so that is counted there. */
static bool by_rereading(const struct facts *f, char reason[REASON_TEXT])
{
    const struct record *record = f->record;
    const double read = record->bytes_read[LEVEL_DRAM], written = record->bytes_written[LEVEL_L2];
    if (record->kernel_count != 1 || !(read + written > 1.1 * record->footprint) ||
        !(record->footprint > f->device->cache[LEVEL_L2]))
        return false;
    snprintf(
        reason, REASON_TEXT,
        "its kernel reads %.3g MB from dram and writes %.3g MB to l2, of tensors of %.3g MB: l2 "
        "does not hold them",
        1e-6 * read, 1e-6 * written, 1e-6 * record->footprint);
    return true;
}

/* What small work writes stays in L2. But a device writes up to 262144 bytes once in about 13 ms, whatever runs on it
 * (docs/measurements.md, "Writes that are nobody's"). */
static bool by_device(const struct facts *f, char reason[REASON_TEXT])
{
    const double least = 64e3, most = 300e3; /* byte */
    const struct record *record = f->record;
    const double written = record->bytes_written[LEVEL_DRAM];
    const double beyond = record->bytes_counted[LEVEL_DRAM] - record->bytes_model;
    if (!(record->footprint < f->device->cache[LEVEL_L2] / 4.0) || !(written >= least) ||
        !(written <= most) || !(written >= 0.5 * beyond))
        return false;
    snprintf(reason, REASON_TEXT,
             "%.3g kB of it are the device's own writes, which come now and then", 1e-3 * written);
    return true;
}

/* A flush takes the kernels' code out of L2, too: each reads its code, and 4 kB more (docs/measurements.md, "Code in
 * device memory"). A part of what the model has as written stays in L2, so it is at least what is beyond the model. */
static bool by_code(const struct facts *f, char reason[REASON_TEXT])
{
    const double most = 64e3; /* byte, of a kernel */
    const struct record *record = f->record;
    const double each =
        (record->bytes_counted[LEVEL_DRAM] - record->bytes_model) / (double)record->kernel_count;
    if (!config_cold(&f->config) || !(each <= most))
        return false;
    if (record->kernel_count == 1)
        snprintf(reason, REASON_TEXT, "a cold cache reads its kernel's code, too: at least %.3g kB",
                 1e-3 * each);
    else
        snprintf(reason, REASON_TEXT,
                 "a cold cache reads the code of its %zu kernels, too: at least %.3g kB for each",
                 record->kernel_count, 1e-3 * each);
    return true;
}

static bool by_cache(const struct facts *f, char reason[REASON_TEXT])
{
    const struct record *record = f->record;
    bool hot = !config_cold(&f->config);
    bool written = record->bytes_read[LEVEL_DRAM] + record->bytes_written[LEVEL_L2] >=
                   0.9 * record->bytes_model;
    const double little = 0.3; /* of the model: of a tensor that does not stay more is moved */
    bool held = f->ratio <= little;
    if (!hot && !written)
        return false;
    snprintf(reason, REASON_TEXT, "%s",
             hot && held ? "hot cache: l2 holds all tensors"
             : hot       ? "hot cache: l2 still holds a part of the tensors"
                         : "what was written is still in l2");
    return true;
}

/* ---- the rules ---- */

struct rule {
    bool more; /* or fewer than modelled */
    bool (*explain)(const struct facts *facts, char reason[REASON_TEXT]);
};

/* The first that holds. */
static const struct rule flops_rules[] = {
    {true, by_recurrence},     {true, by_algorithm},    {false, by_algorithm},
    {false, by_zeros},         {true, by_tiles},        {true, by_clusters},
    {true, by_tiles_of_parts}, {true, by_instructions}, {true, by_mask},
    {true, by_vector_units},   {true, by_cells},        {true, by_parts},
    {true, by_convention},     {false, by_convention},  {false, NULL},
};
static const struct rule bytes_rules[] = {
    {true, by_movers}, {true, by_steps}, {true, by_workspace}, {true, by_rereading},
    {true, by_device}, {true, by_code},  {false, by_cache},    {false, NULL},
};

static void explain(const struct rule *rules, struct facts *facts, const char *what, double counted,
                    double modelled, char text[COUNT_NOTE_TEXT])
{
    char reason[REASON_TEXT] = "not explained";
    size_t used = strlen(text);
    facts->ratio = counted / modelled;
    if (!far(facts->ratio))
        return;
    for (; rules->explain; ++rules)
        if (rules->more == (facts->ratio > 1.0) && rules->explain(facts, reason))
            break;
    snprintf(text + used, COUNT_NOTE_TEXT - used, "%s%s: counted is %.3g times the model: %s",
             used ? "; " : "", what, facts->ratio, reason);
}

/* The counters do not tell bf16 from fp16. Vector units that have products of 16 bits may add them up in
 * fp32 alone. */
static double own_flops(const struct record *record, enum precision precision)
{
    bool half = precision == PRECISION_BF16 || precision == PRECISION_FP16;
    if (precision == PRECISION_COUNT)
        return NAN;
    if (record->unit == UNIT_TENSOR)
        return record->flops_tensor[precision];
    if (!half)
        return record->flops_vector[precision];
    double own = record->flops_vector[PRECISION_FP16];
    return own == 0.0 ? record->flops_vector[PRECISION_FP32] : own;
}

void count_note(const struct record *record, const struct device *device,
                char text[COUNT_NOTE_TEXT])
{
    struct facts facts = {.record = record, .device = device, .config = record->config};
    text[0] = '\0';
    if (!record->config.workload)
        return;
    facts.own = own_flops(record, config_precision(&facts.config));
    config_products(&facts.config, &facts.shape);
    facts.products = record->flops_model - facts.shape.cells * facts.shape.flops_of_cell;
    explain(flops_rules, &facts, "FLOPs", record->flops_counted, record->flops_model, text);
    explain(bytes_rules, &facts, "dram bytes", record->bytes_counted[LEVEL_DRAM],
            record->bytes_model, text);
}
