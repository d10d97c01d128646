/* What is kept of what a process prints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/tail.h"

static void it_has_what_was_printed(void **state)
{
    (void)state;
    struct tail tail = {.length = 0};
    tail_join(&tail);
    assert_string_equal(tail.text, "");
    tail_append(&tail, "out of ", 7);
    tail_append(&tail, "memory", 6);
    assert_string_equal(tail.text, "out of memory");
    assert_int_equal(tail.length, 13);
}

static void its_lines_are_put_on_one(void **state)
{
    (void)state;
    struct tail tail = {.length = 0};
    tail_append(&tail, "a\tb\nc\n\n", 7);
    tail_join(&tail);
    assert_string_equal(tail.text, "a b|c");
    assert_int_equal(tail.length, 5);
}

/* By pieces, by one longer than it has room for, and by one that just fits. */
static void the_last_bytes_stay(void **state)
{
    (void)state;
    static char text[3 * TAIL_MAX];
    struct tail tail = {.length = 0};
    for (int i = 0; i < 3 * TAIL_MAX; ++i)
        text[i] = (char)('a' + i % 26);
    for (int i = 0; i < 3 * TAIL_MAX; i += 7)
        tail_append(&tail, text + i, i + 7 < 3 * TAIL_MAX ? 7 : (size_t)(3 * TAIL_MAX - i));
    assert_int_equal(tail.length, TAIL_MAX);
    assert_memory_equal(tail.text, text + 2 * TAIL_MAX, TAIL_MAX);
    tail_append(&tail, text, sizeof text - 1);
    assert_memory_equal(tail.text, text + 2 * TAIL_MAX - 1, TAIL_MAX);
    tail_append(&tail, text, TAIL_MAX);
    assert_memory_equal(tail.text, text, TAIL_MAX);
    assert_int_equal(tail.text[TAIL_MAX], '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_what_was_printed),
        cmocka_unit_test(its_lines_are_put_on_one),
        cmocka_unit_test(the_last_bytes_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
