/* Device memory that rows reuse, on a scripted GPU (scripted_vendor.h). */
#include "scripted_vendor.h"

#include "base/clock.h"
#include "worker/gpu/arena.h"

static struct arena *arena;

static int set_up(void **state)
{
    script_set_up(state);
    assert_non_null(arena = arena_open(NULL));
    return 0;
}

static int tear_down(void **state)
{
    arena_close(arena);
    return script_tear_down(state);
}

enum { PARTS = 8 };

/* Allocations of a row: tensors of a conv2d, workspaces of candidates, and two arrays for the
 * comparison. */
struct row {
    double parts[PARTS]; /* byte */
};
static const struct row rows[] = {
    {{25.7e6, 147e3, 51e6, 8e6, 64e6, 512e6, 2e6, 2e6}},
    {{25.7e6, 147e3, 51e6, 16e6, 64e6, 256e6, 2e6, 2e6}},
    {{22.1e6, 131e3, 45e6, 8e6, 96e6, 400e6, 2e6, 2e6}},
    {{25.7e6, 140e3, 30e6, 33e6, 60e6, 300e6, 1.9e6, 2e6}},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void take(double bytes, void **memory)
{
    *memory = NULL;
    assert_ok(arena_allocate(arena, bytes, "the input", memory, &failure));
}

static void run(const struct row *row)
{
    void *memory[PARTS];
    for (int i = 0; i < PARTS; ++i)
        take(row->parts[i], &memory[i]);
    for (int i = 0; i < PARTS; ++i)
        for (int j = 0; j < i; ++j)
            assert_ptr_not_equal(memory[i], memory[j]);
    for (int i = 0; i < PARTS; ++i)
        arena_free(arena, memory[i]);
}

#define BENCH_TEST(name) TEST_WITH(name, set_up, tear_down)

BENCH_TEST(similar_rows_allocate_once)
{
    for (int i = 0; i < ROWS; ++i)
        run(&rows[i]);
    int allocations = script.allocations;
    assert_int_equal(script.frees, 0);
    for (int i = 0; i < ROWS; ++i)
        run(&rows[i]);
    assert_int_equal(script.allocations, allocations); /* all sizes were allocated before */
    assert_true(allocations <= PARTS + 4);
}

BENCH_TEST(blocks_in_use_are_not_reused)
{
    void *first, *second, *third;
    take(1e6, &first);
    take(1e6, &second);
    assert_ptr_not_equal(first, second);
    arena_free(arena, first);
    take(1e6, &third);
    assert_ptr_equal(third, first);
    arena_free(arena, third);
    arena_free(arena, second);
}

BENCH_TEST(a_small_part_gets_no_large_block)
{
    void *large, *small;
    take(1e9, &large);
    arena_free(arena, large);
    take(1e6, &small);
    assert_ptr_not_equal(large, small);
    arena_free(arena, small);
    take(0, &small);
    assert_null(small);
    arena_free(arena, small);
}

/* The smallest block is more than twice as large as the request, and is still reused. */
BENCH_TEST(a_tiny_part_gets_a_tiny_block_again)
{
    void *first, *second;
    take(64, &first);
    arena_free(arena, first);
    take(64, &second);
    assert_ptr_equal(first, second);
    arena_free(arena, second);
}

BENCH_TEST(idle_memory_is_freed_for_a_row)
{
    const double all = script.free_bytes;
    void *memory;
    take(10e9, &memory);
    arena_free(arena, memory);
    assert_true(script.free_bytes < all);
    assert_ok(arena_check(arena, 0.99 * all, "the tensors", &failure));
    assert_true(script.free_bytes == all);

    take(10e9, &memory);
    arena_free(arena, memory);
    take(0.99 * all, &memory); /* fits only without rounding */
    arena_free(arena, memory);
    assert_true(script.free_bytes == all); /* too large to be kept idle */
}

/* As in memory_allocate, the message names the requested and all free bytes. */
BENCH_TEST(oversized_requests_are_refused)
{
    struct error plain;
    void *memory = NULL, *kept;
    take(1e9, &kept);
    arena_free(arena, kept);
    assert_int_equal(arena_allocate(arena, 200e9, "the input", &memory, &failure),
                     STATUS_UNSUPPORTED);
    assert_int_equal(memory_allocate(200e9, "the input", &memory, &plain), STATUS_UNSUPPORTED);
    assert_string_equal(failure.text, plain.text);
    assert_fails_with(arena_check(arena, 200e9, "the input", &failure), STATUS_UNSUPPORTED,
                      plain.text);
    assert_null(memory);
}

/* A search limits its workspaces by the free memory, which must not depend on earlier rows. */
BENCH_TEST(available_memory_does_not_depend_on_earlier_rows)
{
    const double all = script.free_bytes;
    double available;
    void *memory, *other;
    assert_ok(arena_available(arena, &available, &failure));
    assert_true(available == all);
    take(3e9, &memory);
    take(1e9, &other);
    arena_free(arena, memory);
    take(2e9, &memory);
    assert_ok(arena_available(arena, &available, &failure));
    assert_true(available == all - 3e9);
    arena_free(arena, memory);
    arena_free(arena, other);
}

/* The next row must not write to a block that the device still uses. */
BENCH_TEST(freed_blocks_are_idle)
{
    void *memory;
    take(1e6, &memory);
    assert_ok(vendor_set(NULL, memory, 0, 1000, &failure));
    double before = clock_monotonic();
    arena_free(arena, memory);
    assert_true(clock_monotonic() >= before);
    assert_true(clock_monotonic() >= script_device_time());
}
