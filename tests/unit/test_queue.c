/* Order of configurations. test_dispatcher.c tests assignment and lost ranks. */

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/queue.h"

/* The order for a single rank, against tests/data/queue.txt. */
TEST(order_is_golden)
{
    struct manifest *manifest;
    struct plan *plan;
    assert_ok(manifest_read(TEST_DATA_DIR "/queue.ini", &manifest, &failure));
    assert_ok(plan_create(manifest, &plan, &failure));
    struct queue *queue = queue_create(plan, 1, false, 1);
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

static struct queue *five_items(void)
{
    static struct plan_item items[ITEMS];
    for (int i = 0; i < ITEMS; ++i)
        items[i].cost = (struct cost){.flops = 1e12 * (i == 3 ? 9 : 1), .bytes = 1};
    struct plan plan = {.items = items, .count = ITEMS};
    return queue_create(&plan, 1, false, 1);
}

TEST(an_item_done_twice_counts_once)
{
    struct queue *queue = five_items();
    queue_done(queue, 0, 2, 1);
    queue_done(queue, 0, 2, 1);
    queue_done(queue, 0, 2, 2); /* from a journal with more rounds */
    assert_int_equal(queue_left(queue), ITEMS - 1);
    queue_destroy(queue);
}

/* Fills the predecessor of each item in each round; the first item has none. */
static void predecessors(int count, int rounds, uint64_t seed, int before[][64])
{
    struct plan_item *items = calloc((size_t)count, sizeof *items);
    struct plan plan = {.items = items, .count = (size_t)count};
    struct queue *queue = queue_create(&plan, 1, false, rounds);
    for (int round = 1; round <= rounds; ++round) {
        int last = -1;
        size_t item;
        for (int i = 0; i < count; ++i, last = (int)item) {
            assert_true(queue_next(queue, 0, NULL, NULL, &item));
            assert_false(queue_is_done(queue, 0, item, round));
            before[round][item] = i ? last : -round;
            queue_done(queue, 0, item, round);
        }
        assert_int_equal(queue_next_round(queue, seed, false), round < rounds);
    }
    assert_int_equal(queue_left(queue), 0);
    assert_int_equal(queue_total(queue), count * rounds);
    queue_destroy(queue);
    free(items);
}

/* No item has one predecessor in all rounds. Equal predecessors in two rounds are rare. */
TEST(rounds_have_other_orders)
{
    int before[8][64], pairs = 0, equal = 0;
    for (int count = 2; count < 50; ++count)
        for (int rounds = 2; rounds < 8; ++rounds)
            for (uint64_t seed = 1; seed < 4; ++seed) {
                predecessors(count, rounds, seed, before);
                for (int item = 0; item < count; ++item) {
                    int all = 1;
                    for (int round = 2; round <= rounds; ++round) {
                        all += before[round][item] == before[1][item];
                        for (int other = 1; other < round && count > 15; ++other, ++pairs)
                            equal += before[round][item] == before[other][item];
                    }
                    if (all == rounds)
                        fail_msg("item %d of %d in %d rounds", item, count, rounds);
                }
            }
    assert_true(equal * 200 < pairs);
}

/* The fifth item waits for another run, and is then given up; all other items have all rounds. */
TEST(rounds_go_on_without_an_item)
{
    struct plan_item items[ITEMS] = {{.count = 0}};
    struct queue *queue = queue_create(&(struct plan){.items = items, .count = ITEMS}, 1, false, 3);
    size_t item;
    for (int round = 1; round <= 3; ++round) {
        for (int i = 0; i < ITEMS - 1; ++i) {
            assert_true(queue_next(queue, 0, NULL, NULL, &item));
            queue_done(queue, 0, item, round);
        }
        if (round == 2)
            assert_int_equal(queue_drop(queue, 0, ITEMS - 1), 3);
        assert_int_equal(queue_next_round(queue, 1, round == 1), round < 3);
    }
    assert_int_equal(queue_left(queue), 0);
    queue_destroy(queue);
}

static bool is_even(const void *context, size_t item)
{
    ++*(size_t *)context;
    return item % 2 == 0;
}

TEST(a_rejected_item_keeps_its_place)
{
    struct queue *queue = five_items();
    size_t item, calls = 0, expected[ITEMS] = {0, 2, 4, 3, 1};
    for (int i = 0; i < 3; ++i) {
        assert_true(queue_next(queue, 0, is_even, &calls, &item));
        assert_int_equal(item, expected[i]);
    }
    assert_true(calls > 3);
    assert_false(queue_next(queue, 0, is_even, &calls, &item));
    for (int i = 3; i < ITEMS; ++i) {
        assert_true(queue_next(queue, 0, NULL, NULL, &item));
        assert_int_equal(item, expected[i]);
    }
    queue_destroy(queue);
}
