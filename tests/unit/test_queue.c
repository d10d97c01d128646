/* Who measures what, and when; the order is golden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/queue.h"

/* The order in which one rank would get a manifest's configurations, against
 * tests/data/queue.txt. */
static void order_is_golden(void **state)
{
    (void)state;
    struct manifest *manifest;
    struct plan *plan;
    struct error error;
    if (manifest_read(TEST_DATA_DIR "/queue.ini", &manifest, &error) ||
        plan_create(manifest, &plan, &error))
        fail_msg("%s", error.text);
    struct queue *queue = queue_create(plan, 1, false);
    FILE *golden = fopen(TEST_DATA_DIR "/queue.txt", "r");
    assert_non_null(golden);
    char line[WORKLOAD_TEXT], text[WORKLOAD_TEXT];
    size_t item;
    while (queue_next(queue, 0, NULL, NULL, &item)) {
        config_format(&plan->items[item].config, text);
        assert_non_null(fgets(line, sizeof line, golden));
        line[strcspn(line, "\n")] = '\0';
        assert_string_equal(text, line);
    }
    assert_null(fgets(line, sizeof line, golden));
    fclose(golden);
    queue_destroy(queue);
    plan_destroy(plan);
    manifest_destroy(manifest);
}

enum { ITEMS = 5 };

static struct queue *five_items(int ranks, bool replicate)
{
    static struct plan_item items[ITEMS];
    for (int i = 0; i < ITEMS; ++i)
        items[i].cost = (struct cost){.flops = 1e12 * (i == 3 ? 9 : 1), .bytes = 1};
    struct plan plan = {.items = items, .count = ITEMS};
    return queue_create(&plan, ranks, replicate);
}

static void split_gives_each_item_once(void **state)
{
    (void)state;
    struct queue *queue = five_items(3, false);
    size_t item, expected[ITEMS] = {3, 0, 1, 2, 4}; /* longest first, then the manifest's order */
    for (int i = 0; i < ITEMS; ++i) {
        assert_true(queue_next(queue, i % 3, NULL, NULL, &item));
        assert_int_equal(item, expected[i]);
    }
    assert_false(queue_next(queue, 0, NULL, NULL, &item));
    assert_int_equal(queue_left(queue), ITEMS);
    for (size_t i = 0; i < ITEMS; ++i)
        queue_done(queue, 0, i);
    assert_int_equal(queue_left(queue), 0);
    queue_destroy(queue);
}

static void lost_rank_gives_its_item_back(void **state)
{
    (void)state;
    struct queue *queue = five_items(2, false);
    size_t lost, other, item;
    assert_true(queue_next(queue, 0, NULL, NULL, &lost));
    assert_true(queue_next(queue, 1, NULL, NULL, &other));
    queue_rank_lost(queue, 0);
    assert_true(queue_next(queue, 1, NULL, NULL, &item));
    assert_int_equal(item, lost);
    assert_int_equal(queue_total(queue), ITEMS);
    queue_destroy(queue);
}

static void replicate_gives_each_item_to_each_rank(void **state)
{
    (void)state;
    struct queue *queue = five_items(2, true);
    size_t item, seen[2] = {0, 0};
    assert_int_equal(queue_total(queue), 2 * ITEMS);
    queue_done(queue, 1, 4); /* from an earlier job */
    for (int rank = 0; rank < 2; ++rank)
        while (queue_next(queue, rank, NULL, NULL, &item))
            ++seen[rank];
    assert_int_equal(seen[0], ITEMS);
    assert_int_equal(seen[1], ITEMS - 1);
    queue_rank_lost(queue, 0); /* nobody else can stand in for its device */
    assert_int_equal(queue_total(queue), ITEMS);
    assert_int_equal(queue_left(queue), ITEMS - 1);
    assert_false(queue_next(queue, 0, NULL, NULL, &item));
    queue_destroy(queue);
}

static void doubly_done_counts_once(void **state)
{
    (void)state;
    struct queue *queue = five_items(1, false);
    queue_done(queue, 0, 2);
    queue_done(queue, 0, 2);
    assert_int_equal(queue_left(queue), ITEMS - 1);
    queue_destroy(queue);
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
    struct queue *queue = five_items(1, false);
    size_t item, asked = 0, expected[ITEMS] = {0, 2, 4, 3, 1};
    for (int i = 0; i < 3; ++i) {
        assert_true(queue_next(queue, 0, is_even, &asked, &item));
        assert_int_equal(item, expected[i]);
    }
    assert_true(asked > 3);
    assert_false(queue_next(queue, 0, is_even, &asked, &item));
    for (int i = 3; i < ITEMS; ++i) {
        assert_true(queue_next(queue, 0, NULL, NULL, &item));
        assert_int_equal(item, expected[i]);
    }
    queue_destroy(queue);
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
