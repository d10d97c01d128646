/* How long configurations take, learnt from others; and what that does to the end of a sweep, with the times
 * of a real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <netcdf.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/prediction.h"
#include "ranks/schedule.h"

/* ---- the prediction by itself ---- */

enum { ITEMS = 6 };

/* conv2d in fp32, twice nearly the same size; in fp16; much larger; a program; one that cannot exist. */
static struct plan six_items(struct plan_item items[ITEMS])
{
    static const char *const texts[ITEMS] = {
        "conv2d batch=16",  "conv2d batch=17",      "conv2d batch=16 precision=fp16",
        "conv2d batch=256", "program command=true", "conv2d batch=16 kernel=200 padding=valid"};
    memset(items, 0, ITEMS * sizeof *items);
    for (int i = 0; i < ITEMS; ++i) {
        struct error error;
        if (config_parse(texts[i], &items[i].config, &error))
            fail_msg("%s", error.text);
        items[i].cost = config_cost(&items[i].config);
    }
    items[5].cost = (struct cost){0};
    return (struct plan){.items = items, .count = ITEMS};
}

static double seconds_of(const struct prediction *prediction, size_t item)
{
    return prediction_seconds(prediction, prediction_cell(prediction, item));
}

static void nothing_known_is_equal_for_all(void **state)
{
    (void)state;
    static struct plan_item items[ITEMS];
    struct plan plan = six_items(items);
    struct prediction *prediction = prediction_create(&plan, 1);
    assert_int_equal(prediction_cell(prediction, 0), prediction_cell(prediction, 1));
    assert_int_not_equal(prediction_cell(prediction, 0), prediction_cell(prediction, 2));
    assert_true(seconds_of(prediction, 0) == seconds_of(prediction, 3));
    assert_true(isinf(seconds_of(prediction, 4)));
    assert_true(seconds_of(prediction, 5) == 0);
    assert_true(prediction_slowness(prediction, 0) == 1);
    prediction_destroy(prediction);
}

static void its_own_cell_counts_most(void **state)
{
    (void)state;
    static struct plan_item items[ITEMS];
    struct plan plan = six_items(items);
    struct prediction *prediction = prediction_create(&plan, 1);
    prediction_learn(prediction, 0, 0, 99, false); /* the rank's first: with its libraries' start */
    assert_true(seconds_of(prediction, 0) == 1);
    prediction_learn(prediction, 0, 0, 2, false);
    for (int i = 0; i < 3; ++i)
        assert_true(fabs(seconds_of(prediction, (size_t)i) - 2) < 1e-9);
    prediction_learn(prediction, 0, 2, 8, false);
    assert_true(seconds_of(prediction, 1) > 2 && seconds_of(prediction, 1) < 2.3);
    assert_true(seconds_of(prediction, 2) < 8 && seconds_of(prediction, 2) > 7);
    assert_true(seconds_of(prediction, 3) < 3); /* fp32, as the first two */
    assert_true(isinf(seconds_of(prediction, 4)));
    assert_true(seconds_of(prediction, 5) == 0);
    prediction_destroy(prediction);
}

static void earlier_rows_count_from_the_first_on(void **state)
{
    (void)state;
    static struct plan_item items[ITEMS];
    struct plan plan = six_items(items);
    struct prediction *prediction = prediction_create(&plan, 1);
    prediction_learn(prediction, 0, 0, 3, true);
    assert_true(fabs(seconds_of(prediction, 3) - 3) < 1e-9);
    prediction_learn(prediction, 0, 0, NAN, true);
    prediction_learn(prediction, 0, 0, 0, true);
    assert_true(fabs(seconds_of(prediction, 3) - 3) < 1e-9);
    prediction_destroy(prediction);
}

static void a_slow_rank_is_found(void **state)
{
    (void)state;
    static struct plan_item items[ITEMS];
    struct plan plan = six_items(items);
    struct prediction *prediction = prediction_create(&plan, 2);
    for (int i = 0; i < 40; ++i)
        for (int rank = 0; rank < 2; ++rank)
            prediction_learn(prediction, rank, (size_t)i % 3, rank == 1 ? 4 : 1, false);
    double ratio = prediction_slowness(prediction, 1) / prediction_slowness(prediction, 0);
    if (!(ratio > 3 && ratio < 5))
        fail_msg("%g instead of 4", ratio);
    prediction_destroy(prediction);
}

/* ---- the end of a sweep ---- */

/* Rows of a result file. */
struct sweep {
    struct plan plan;
    double *seconds;
};

static void check(int code)
{
    if (code)
        fail_msg("%s", nc_strerror(code));
}

static struct sweep sweep_read(const char *path)
{
    struct sweep sweep = {{0}, NULL};
    int file, dimension, variable;
    check(nc_open(path, NC_NOWRITE, &file));
    check(nc_inq_dimid(file, "config", &dimension));
    check(nc_inq_dimlen(file, dimension, &sweep.plan.count));
    char **texts = calloc(sweep.plan.count, sizeof *texts);
    sweep.plan.items = calloc(sweep.plan.count, sizeof *sweep.plan.items);
    sweep.seconds = calloc(sweep.plan.count, sizeof *sweep.seconds);
    check(nc_inq_varid(file, "configuration", &variable));
    check(nc_get_var_string(file, variable, texts));
    check(nc_inq_varid(file, "wall_time", &variable));
    check(nc_get_var_double(file, variable, sweep.seconds));
    for (size_t i = 0; i < sweep.plan.count; ++i) {
        struct error error;
        if (config_parse(texts[i], &sweep.plan.items[i].config, &error))
            fail_msg("%s", error.text);
        sweep.plan.items[i].cost = config_cost(&sweep.plan.items[i].config);
    }
    check(nc_free_string(sweep.plan.count, texts));
    check(nc_close(file));
    free(texts);
    return sweep;
}

static void sweep_free(struct sweep *sweep)
{
    free(sweep->plan.items);
    free(sweep->seconds);
}

enum { RANKS_MAX = 16 };
enum order { AS_MODELLED, AS_LEARNT };

struct rank {
    bool busy;
    size_t item;
    double end; /* s */
};

static int first_to_end(const struct rank *ranks, int count)
{
    int first = -1;
    for (int i = 0; i < count; ++i)
        if (ranks[i].busy && (first < 0 || ranks[i].end < ranks[first].end))
            first = i;
    return first;
}

/* What one run of a sweep takes, s. */
struct course {
    double total, tail; /* the tail begins with the first rank that gets nothing more */
    size_t rows;
};

/* `slow`: how much slower the last rank is than the others. */
static struct course run(const struct sweep *sweep, int count, enum order order, double slow)
{
    struct rank ranks[RANKS_MAX] = {{0}};
    struct schedule *schedule = schedule_create(&sweep->plan, count, false);
    struct course course = {0};
    double now = 0, idle[RANKS_MAX] = {0};
    for (;;) {
        for (int i = 0; i < count; ++i) {
            if (ranks[i].busy || !schedule_next(schedule, i, NULL, NULL, &ranks[i].item))
                continue;
            ranks[i].busy = true;
            ranks[i].end = now + sweep->seconds[ranks[i].item] * (i == count - 1 ? slow : 1);
        }
        int next = first_to_end(ranks, count);
        if (next < 0)
            break;
        double took = sweep->seconds[ranks[next].item] * (next == count - 1 ? slow : 1);
        now = idle[next] = ranks[next].end;
        ranks[next].busy = false;
        if (order == AS_LEARNT)
            schedule_learn(schedule, next, ranks[next].item, took, false);
        schedule_done(schedule, next, ranks[next].item);
        ++course.rows;
    }
    assert_int_equal(schedule_remaining(schedule), 0);
    schedule_destroy(schedule);
    course.total = now;
    for (int i = 0; i < count; ++i)
        course.tail = fmax(course.tail, now - idle[i]);
    return course;
}

static double share(struct course course)
{
    return 100 * course.tail / course.total;
}

static void compare(const char *what, const struct sweep *sweep, int ranks, double slow,
                    struct course both[2])
{
    for (int order = AS_MODELLED; order <= AS_LEARNT; ++order) {
        both[order] = run(sweep, ranks, (enum order)order, slow);
        assert_int_equal(both[order].rows, sweep->plan.count);
    }
    print_message("%-28s %d ranks: as modelled %6.2f s, tail %5.2f %%; as learnt %6.2f s, tail "
                  "%5.2f %%\n",
                  what, ranks, both[0].total, share(both[0]), both[1].total, share(both[1]));
}

/* No more than 3 % of the sweep is spent waiting for the last ones. */
static void the_tail_is_short(void **state)
{
    (void)state;
    struct sweep sweep = sweep_read(TEST_DATA_DIR "/paper_h200.nc");
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        struct course both[2];
        compare("paper_h200.nc", &sweep, ranks, 1, both);
        assert_true(share(both[AS_LEARNT]) < 3);
    }
    sweep_free(&sweep);
}

/* A workload that takes far longer than its model says comes first nonetheless. */
static void a_model_that_misleads_does_no_harm(void **state)
{
    (void)state;
    struct sweep sweep = sweep_read(TEST_DATA_DIR "/paper_h200.nc");
    for (size_t i = 0; i < sweep.plan.count; ++i)
        if (strcmp(sweep.plan.items[i].config.workload->name, "lstm") == 0)
            sweep.seconds[i] *= 8;
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        struct course both[2];
        compare("LSTMs 8 times as long", &sweep, ranks, 1, both);
        assert_true(share(both[AS_LEARNT]) < 3);
        assert_true(share(both[AS_LEARNT]) <= share(both[AS_MODELLED]));
    }
    sweep_free(&sweep);
}

static void a_slow_device_does_not_hold_up_the_end(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        double slow;
    } cases[] = {{"the last rank 4 times slower", 4}, {"the last rank 16 times slower", 16}};
    struct sweep sweep = sweep_read(TEST_DATA_DIR "/paper_h200.nc");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        for (int ranks = 2; ranks <= 8; ranks *= 2) {
            struct course both[2];
            compare(cases[i].what, &sweep, ranks, cases[i].slow, both);
            assert_true(share(both[AS_LEARNT]) < 3);
            assert_true(both[AS_LEARNT].total < 1.001 * both[AS_MODELLED].total);
        }
    sweep_free(&sweep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_known_is_equal_for_all),
        cmocka_unit_test(its_own_cell_counts_most),
        cmocka_unit_test(earlier_rows_count_from_the_first_on),
        cmocka_unit_test(a_slow_rank_is_found),
        cmocka_unit_test(the_tail_is_short),
        cmocka_unit_test(a_model_that_misleads_does_no_harm),
        cmocka_unit_test(a_slow_device_does_not_hold_up_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
