#include "ranks/prediction.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/forecast.h"

/* Octaves of modelled duration, from 2^-64 s on; one for what cannot exist, one without a model. */
enum { OCTAVES = 128, LOWEST = -64, IMPOSSIBLE = OCTAVES, UNMODELLED, OCTAVE_COUNT };
enum { NO_CELL = -1 };

/* Weights of a row of another cell, over that of one of the same. */
static const double other_word = 0.05, other_workload = 1e-4;
static const double octaves_half = 2.0; /* so many octaves away it counts half */

/* Rows before a rank counts as slow or fast, and those of slowness 1 that it starts with. */
static const double slowness_least = 3, slowness_start = 1;

/* Predictions are made anew when so many more rows are known, but so often at most that each row costs
 * no more than `pairs_each` pairs of cells: some microseconds. */
static const double fresh_share = 1.0 / 16, pairs_each = 2000;

/* What configurations of a family have in common. */
struct family {
    const struct workload *workload;
    int16_t words[WORKLOAD_PARAMETERS_MAX]; /* 0 where a parameter is no word */
    int cells[OCTAVE_COUNT];                /* by octave, or NO_CELL */
};

struct cell {
    size_t family;
    int octave;
    double rows, sum; /* rows known, and the sum of their logarithms of s */
    double seconds;   /* predicted */
};

struct learner {
    bool started;
    double rows, sum; /* of the logarithms of its times over the predicted ones */
};

struct prediction {
    struct family *families;
    size_t family_count, family_room;
    struct cell *cells;
    size_t cell_count, cell_room;
    uint32_t *cell_of; /* by item */
    struct learner *ranks;
    double rows, fresh; /* known; of these since the predictions were made */
};

/* ---- cells ---- */

static int octave_of(struct cost cost)
{
    double modelled = forecast_modelled(cost);
    if (isnan(modelled))
        return UNMODELLED;
    if (modelled <= 0)
        return IMPOSSIBLE;
    return (int)fmin(fmax(floor(log2(modelled)) - LOWEST, 0), OCTAVES - 1);
}

static struct family family_from(const struct config *config)
{
    struct family family = {.workload = config->workload};
    for (size_t i = 0; config->workload && i < config->workload->count; ++i)
        if (config->workload->parameters[i].kind == PARAMETER_WORD)
            family.words[i] = (int16_t)config->values[i].first;
    for (int i = 0; i < OCTAVE_COUNT; ++i)
        family.cells[i] = NO_CELL;
    return family;
}

static bool same_family(const struct family *a, const struct family *b)
{
    return a->workload == b->workload && memcmp(a->words, b->words, sizeof a->words) == 0;
}

static bool reserve(void **array, size_t size, size_t count, size_t *room)
{
    if (count < *room)
        return true;
    size_t more = 2 * *room + 16;
    void *grown = realloc(*array, more * size);
    if (!grown)
        return false;
    *array = grown;
    *room = more;
    return true;
}

/* The plan goes through the families in turn, so the one behind the last one is looked at first. */
static bool family_find(struct prediction *prediction, const struct family *wanted, size_t *place)
{
    for (size_t i = 0; i < prediction->family_count; ++i) {
        size_t next = (*place + 1 + i) % prediction->family_count;
        if (same_family(&prediction->families[next], wanted)) {
            *place = next;
            return true;
        }
    }
    if (!reserve((void **)&prediction->families, sizeof *prediction->families,
                 prediction->family_count, &prediction->family_room))
        return false;
    *place = prediction->family_count++;
    prediction->families[*place] = *wanted;
    return true;
}

static double unlearnt(int octave)
{
    return octave == UNMODELLED ? INFINITY : octave == IMPOSSIBLE ? 0 : 1;
}

static bool cell_find(struct prediction *prediction, size_t family, int octave, uint32_t *cell)
{
    int *known = &prediction->families[family].cells[octave];
    if (*known == NO_CELL) {
        if (!reserve((void **)&prediction->cells, sizeof *prediction->cells, prediction->cell_count,
                     &prediction->cell_room))
            return false;
        prediction->cells[prediction->cell_count] =
            (struct cell){.family = family, .octave = octave, .seconds = unlearnt(octave)};
        *known = (int)prediction->cell_count++;
    }
    *cell = (uint32_t)*known;
    return true;
}

static bool items_sort(struct prediction *prediction, const struct plan *plan)
{
    size_t place = 0;
    for (size_t i = 0; i < plan->count; ++i) {
        struct family family = family_from(&plan->items[i].config);
        if (!family_find(prediction, &family, &place) ||
            !cell_find(prediction, place, octave_of(plan->items[i].cost), &prediction->cell_of[i]))
            return false;
    }
    return true;
}

struct prediction *prediction_create(const struct plan *plan, int ranks)
{
    struct prediction *created = calloc(1, sizeof *created);
    if (!created)
        return NULL;
    created->cell_of = malloc((plan->count + 1) * sizeof *created->cell_of);
    created->ranks = calloc((size_t)ranks, sizeof *created->ranks);
    if (created->cell_of && created->ranks && items_sort(created, plan))
        return created;
    prediction_destroy(created);
    return NULL;
}

void prediction_destroy(struct prediction *prediction)
{
    if (!prediction)
        return;
    free(prediction->families);
    free(prediction->cells);
    free(prediction->cell_of);
    free(prediction->ranks);
    free(prediction);
}

size_t prediction_cells(const struct prediction *prediction)
{
    return prediction->cell_count;
}

size_t prediction_cell(const struct prediction *prediction, size_t item)
{
    return prediction->cell_of[item];
}

double prediction_seconds(const struct prediction *prediction, size_t cell)
{
    return prediction->cells[cell].seconds;
}

double prediction_slowness(const struct prediction *prediction, int rank)
{
    const struct learner *learner = &prediction->ranks[rank];
    return learner->rows < slowness_least ? 1
                                          : exp(learner->sum / (learner->rows + slowness_start));
}

/* ---- learning ---- */

static double weight(const struct prediction *prediction, const struct cell *known,
                     const struct cell *asked)
{
    const struct family *a = &prediction->families[known->family];
    const struct family *b = &prediction->families[asked->family];
    double away = (known->octave - asked->octave) / octaves_half;
    double near = 1 / (1 + away * away);
    if (a->workload != b->workload)
        return near * other_workload;
    for (size_t i = 0; i < WORKLOAD_PARAMETERS_MAX; ++i)
        near *= a->words[i] == b->words[i] ? 1 : other_word;
    return near;
}

static double from_neighbours(const struct prediction *prediction, const struct cell *asked)
{
    double weights = 0, sum = 0;
    for (size_t i = 0; i < prediction->cell_count; ++i) {
        const struct cell *known = &prediction->cells[i];
        if (known->rows == 0)
            continue;
        double each = weight(prediction, known, asked);
        weights += each * known->rows;
        sum += each * known->sum;
    }
    return exp(sum / weights);
}

static bool is_judged(const struct cell *cell)
{
    return cell->octave < OCTAVES;
}

static void predict(struct prediction *prediction)
{
    double pairs = (double)prediction->cell_count * (double)prediction->cell_count;
    if (prediction->fresh < fresh_share * prediction->rows ||
        prediction->fresh * pairs_each < pairs)
        return;
    prediction->fresh = 0;
    for (size_t i = 0; i < prediction->cell_count; ++i)
        if (is_judged(&prediction->cells[i]))
            prediction->cells[i].seconds = from_neighbours(prediction, &prediction->cells[i]);
}

/* Its own cell's rows say how long a row takes; before there are any, nothing is said about the rank. */
static void learn_slowness(struct learner *learner, const struct cell *cell, double seconds)
{
    if (cell->rows == 0)
        return;
    learner->sum += log(seconds) - cell->sum / cell->rows;
    ++learner->rows;
}

void prediction_learn(struct prediction *prediction, int rank, size_t item, double seconds,
                      bool earlier)
{
    struct learner *learner = &prediction->ranks[rank];
    struct cell *cell = &prediction->cells[prediction->cell_of[item]];
    bool first = !earlier && !learner->started;
    learner->started |= !earlier;
    if (first || !is_judged(cell) || !(seconds > 0) || isinf(seconds))
        return;
    learn_slowness(learner, cell, seconds);
    cell->sum += log(seconds / prediction_slowness(prediction, rank));
    ++cell->rows;
    ++prediction->rows;
    ++prediction->fresh;
    predict(prediction);
}
