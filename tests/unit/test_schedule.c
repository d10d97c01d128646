/* Who measures what, and when; the order is golden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/schedule.h"

/* The order in which one rank would get a manifest's configurations, against
 * tests/data/schedule.txt. */
static void order_is_golden(void **state)
{
    (void)state;
    struct manifest *manifest;
    struct plan *plan;
    struct error error;
    if (manifest_read(TEST_DATA_DIR "/schedule.ini", &manifest, &error) ||
        plan_create(manifest, &plan, &error))
        fail_msg("%s", error.text);
    struct schedule *schedule = schedule_create(plan, 1, false);
    FILE *golden = fopen(TEST_DATA_DIR "/schedule.txt", "r");
    assert_non_null(golden);
    char line[WORKLOAD_TEXT], text[WORKLOAD_TEXT];
    size_t item;
    while (schedule_next(schedule, 0, NULL, NULL, &item)) {
        config_format(&plan->items[item].config, text);
        assert_non_null(fgets(line, sizeof line, golden));
        line[strcspn(line, "\n")] = '\0';
        assert_string_equal(text, line);
    }
    assert_null(fgets(line, sizeof line, golden));
    fclose(golden);
    schedule_destroy(schedule);
    plan_destroy(plan);
    manifest_destroy(manifest);
}

enum { ITEMS = 5 };

static struct schedule *five_items(int ranks, bool replicate)
{
    static struct plan_item items[ITEMS];
    for (int i = 0; i < ITEMS; ++i)
        items[i].cost = (struct cost){.flops = 1e12 * (i == 3 ? 9 : 1), .bytes = 1};
    struct plan plan = {.items = items, .count = ITEMS};
    return schedule_create(&plan, ranks, replicate);
}

static void split_gives_each_item_once(void **state)
{
    (void)state;
    struct schedule *schedule = five_items(3, false);
    size_t item, expected[ITEMS] = {3, 0, 1, 2, 4}; /* longest first, then the manifest's order */
    for (int i = 0; i < ITEMS; ++i) {
        assert_true(schedule_next(schedule, i % 3, NULL, NULL, &item));
        assert_int_equal(item, expected[i]);
    }
    assert_false(schedule_next(schedule, 0, NULL, NULL, &item));
    assert_int_equal(schedule_remaining(schedule), ITEMS);
    for (size_t i = 0; i < ITEMS; ++i)
        schedule_done(schedule, 0, i);
    assert_int_equal(schedule_remaining(schedule), 0);
    schedule_destroy(schedule);
}

static void lost_rank_gives_its_item_back(void **state)
{
    (void)state;
    struct schedule *schedule = five_items(2, false);
    size_t lost, other, item;
    assert_true(schedule_next(schedule, 0, NULL, NULL, &lost));
    assert_true(schedule_next(schedule, 1, NULL, NULL, &other));
    schedule_lose(schedule, 0);
    assert_true(schedule_next(schedule, 1, NULL, NULL, &item));
    assert_int_equal(item, lost);
    assert_int_equal(schedule_total(schedule), ITEMS);
    schedule_destroy(schedule);
}

static void replicate_gives_each_item_to_each_rank(void **state)
{
    (void)state;
    struct schedule *schedule = five_items(2, true);
    size_t item, seen[2] = {0, 0};
    assert_int_equal(schedule_total(schedule), 2 * ITEMS);
    schedule_done(schedule, 1, 4); /* from an earlier job */
    for (int rank = 0; rank < 2; ++rank)
        while (schedule_next(schedule, rank, NULL, NULL, &item))
            ++seen[rank];
    assert_int_equal(seen[0], ITEMS);
    assert_int_equal(seen[1], ITEMS - 1);
    schedule_lose(schedule, 0); /* nobody else can stand in for its device */
    assert_int_equal(schedule_total(schedule), ITEMS);
    assert_int_equal(schedule_remaining(schedule), ITEMS - 1);
    assert_false(schedule_next(schedule, 0, NULL, NULL, &item));
    schedule_destroy(schedule);
}

static void doubly_done_counts_once(void **state)
{
    (void)state;
    struct schedule *schedule = five_items(1, false);
    schedule_done(schedule, 0, 2);
    schedule_done(schedule, 0, 2);
    assert_int_equal(schedule_remaining(schedule), ITEMS - 1);
    schedule_destroy(schedule);
}

static bool is_even(const void *context, size_t item)
{
    ++*(size_t *)context;
    return item % 2 == 0;
}

/* What a filter keeps back can be had later, in its place. */
static void a_filter_only_keeps_back(void **state)
{
    (void)state;
    struct schedule *schedule = five_items(1, false);
    size_t item, asked = 0, expected[ITEMS] = {0, 2, 4, 3, 1};
    for (int i = 0; i < 3; ++i) {
        assert_true(schedule_next(schedule, 0, is_even, &asked, &item));
        assert_int_equal(item, expected[i]);
    }
    assert_true(asked > 3);
    assert_false(schedule_next(schedule, 0, is_even, &asked, &item));
    for (int i = 3; i < ITEMS; ++i) {
        assert_true(schedule_next(schedule, 0, NULL, NULL, &item));
        assert_int_equal(item, expected[i]);
    }
    schedule_destroy(schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_only_keeps_back),
        cmocka_unit_test(order_is_golden),
        cmocka_unit_test(split_gives_each_item_once),
        cmocka_unit_test(lost_rank_gives_its_item_back),
        cmocka_unit_test(replicate_gives_each_item_to_each_rank),
        cmocka_unit_test(doubly_done_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
