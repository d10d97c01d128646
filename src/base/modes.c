#include "base/modes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The distribution of the values is a staircase, of steps one high. A distribution of one mode is convex
 * before its mode and concave behind it. The search keeps an interval that the mode lies in. Two curves
 * run through it: the greatest convex one below the stairs, and the least concave one above. Where they
 * are farthest apart, the interval is cut down, until they are no farther apart in it than the stairs
 * are from the curves outside of it. Twice the dip is the larger of the two (algorithm AS 217, Applied
 * Statistics 34, 1985). Values and corners are numbered from 1, as there. */
struct search {
    const double *sorted;
    size_t count, low, high;
    size_t *below, *above; /* the next corner of the curve that ends in this one: on the low side of
                                 the convex one, on the high side of the concave one */
    size_t *convex, *concave; /* the corners inside: from high down, and from low up */
    size_t convex_last, concave_last;
};

static double value(const struct search *s, size_t i)
{
    return s->sorted[i - 1];
}

/* Whether the way from i to j is less steep than the way from j to k; each way is given upwards or both
 * downwards. */
static bool less_steep(const struct search *s, size_t i, size_t j, size_t k)
{
    double first = (double)i - (double)j, second = (double)j - (double)k;
    return (value(s, i) - value(s, j)) * second < (value(s, j) - value(s, k)) * first;
}

static void corners_find(struct search *s)
{
    s->below[1] = 1;
    for (size_t i = 2; i <= s->count; ++i) {
        s->below[i] = i - 1;
        for (size_t j; (j = s->below[i]) != 1 && !less_steep(s, i, j, s->below[j]);)
            s->below[i] = s->below[j];
    }
    s->above[s->count] = s->count;
    for (size_t i = s->count - 1; i >= 1; --i) {
        s->above[i] = i + 1;
        for (size_t j; (j = s->above[i]) != s->count && !less_steep(s, i, j, s->above[j]);)
            s->above[i] = s->above[j];
    }
}

static void curves_follow(struct search *s)
{
    size_t i = 1, j = 1;
    for (s->convex[1] = s->high; s->convex[i] > s->low; ++i)
        s->convex[i + 1] = s->below[s->convex[i]];
    for (s->concave[1] = s->low; s->concave[j] < s->high; ++j)
        s->concave[j + 1] = s->above[s->concave[j]];
    s->convex_last = i;
    s->concave_last = j;
}

/* The height, in steps, of the straight line from corner a to corner b at the value number i, over a. */
static double line_height(const struct search *s, size_t a, size_t b, size_t i)
{
    return (value(s, i) - value(s, a)) * ((double)b - (double)a) / (value(s, b) - value(s, a));
}

/* The largest distance between the curves. *left and *right: the corners where the interval is to be
 * cut. */
static double curves_apart(const struct search *s, size_t *left, size_t *right)
{
    double apart = 0.0;
    size_t i = s->convex_last - 1, j = 2;
    *left = s->convex_last;
    *right = s->concave_last;
    if (s->convex_last == 2 && s->concave_last == 2)
        return 1.0;
    do {
        size_t a = s->convex[i], b = s->concave[j];
        bool at_concave = a > b; /* its corner comes first */
        size_t from = at_concave ? s->convex[i + 1] : s->concave[j - 1];
        double height = at_concave ? (double)b - (double)from + 1.0 - line_height(s, from, a, b)
                                   : line_height(s, from, b, a) - ((double)a - (double)from - 1.0);
        if (height >= apart) {
            apart = height;
            *left = i + (at_concave ? 1 : 0);
            *right = j;
        }
        j += at_concave ? 1 : 0;
        i -= at_concave || i == 1 ? 0 : 1;
        j = j > s->concave_last ? s->concave_last : j;
    } while (s->convex[i] != s->concave[j]);
    return apart;
}

/* The largest distance of the stairs from a curve, from corner `low` to the next one, `high`: above the
 * convex one (side 1), below the concave one (side -1). */
static double stairs_apart(const struct search *s, size_t low, size_t high, int side)
{
    double most = 1.0;
    if (high - low <= 1 || value(s, high) == value(s, low))
        return most;
    for (size_t i = low; i <= high; ++i)
        most = fmax(most, 1.0 + side * ((double)(i - low) - line_height(s, low, high, i)));
    return most;
}

double modes_dip(const double *sorted, size_t count, size_t *scratch)
{
    struct search s = {sorted,
                       count,
                       1,
                       count,
                       scratch,
                       scratch + (count + 1),
                       scratch + 2 * (count + 1),
                       scratch + 3 * (count + 1),
                       0,
                       0};
    double dip = 1.0;
    if (count < 2 || sorted[0] == sorted[count - 1])
        return dip / (2.0 * (double)count);
    corners_find(&s);
    for (;;) {
        size_t left, right;
        curves_follow(&s);
        if (curves_apart(&s, &left, &right) < dip)
            break;
        for (size_t i = left; i < s.convex_last; ++i)
            dip = fmax(dip, stairs_apart(&s, s.convex[i + 1], s.convex[i], 1));
        for (size_t i = right; i < s.concave_last; ++i)
            dip = fmax(dip, stairs_apart(&s, s.concave[i], s.concave[i + 1], -1));
        if (s.low == s.convex[left] && s.high == s.concave[right])
            break;
        s.low = s.convex[left];
        s.high = s.concave[right];
    }
    return dip / (2.0 * (double)count);
}

/* Of uniform values: no other single mode dips deeper, but for a few values. Simulated, 8,000 times and
 * more for each count; the article's table agrees. */
double modes_dip_critical(size_t count)
{
    static const struct {
        double most, scaled; /* the 0.99 quantile times sqrt(count) */
    } table[] = {{10, 0.506},  {20, 0.541},  {50, 0.576},   {100, 0.593},
                 {200, 0.606}, {500, 0.614}, {1000, 0.624}, {HUGE_VAL, 0.626}};
    size_t row = 0;
    while ((double)count > table[row].most)
        ++row;
    return table[row].scaled / sqrt((double)count);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(const double *sorted, size_t count)
{
    return sorted[(count - 1) / 2] / 2 + sorted[count / 2] / 2;
}

/* Where the squared distances from the two means are least. Neither part has less than a tenth of the
 * values: a few stragglers are no mode. */
static size_t parting(const double *sorted, size_t count)
{
    double total = 0.0, low = 0.0, best = -1.0;
    size_t least = (count + 9) / 10, cut = least;
    for (size_t i = 0; i < count; ++i)
        total += sorted[i] - sorted[0];
    for (size_t i = 1; i <= count - least; ++i) {
        low += sorted[i - 1] - sorted[0];
        double high = total - low, n = (double)i, m = (double)(count - i);
        double between = low * low / n + high * high / m; /* the rest is the same for all */
        if (i >= least && between > best) {
            best = between;
            cut = i;
        }
    }
    return cut;
}

static bool parts_differ(const double *sorted, size_t count)
{
    const double matters = 0.02;
    size_t cut = parting(sorted, count);
    double low = middle(sorted, cut), high = middle(sorted + cut, count - cut);
    return high - low > matters * low;
}

enum status modes_test(const double *values, size_t count, bool *two, struct error *error)
{
    if (count < MODES_SAMPLES_LEAST) {
        *two = false;
        return STATUS_OK;
    }
    double *sorted = malloc(count * sizeof *sorted);
    size_t *scratch = malloc(4 * (count + 1) * sizeof *scratch);
    if (sorted && scratch) {
        memcpy(sorted, values, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_doubles);
        *two = modes_dip(sorted, count, scratch) > modes_dip_critical(count) &&
               parts_differ(sorted, count);
    }
    bool enough = sorted && scratch;
    free(sorted);
    free(scratch);
    return enough ? STATUS_OK : error_set(error, STATUS_SYSTEM, "no memory for %zu samples", count);
}
