/* Who gets which cores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ranks/binding.h"

static void alone_gets_all(void **state)
{
    (void)state;
    cpu_set_t all;
    bool shared = true;
    sched_getaffinity(0, sizeof all, &all);
    cpu_set_t share = binding_share(&all, 0, 1, &shared);
    assert_true(CPU_EQUAL(&share, &all));
    assert_false(shared);
}

/* As many ranks as there are processors: either the cores are divided without overlap, or, where
 * two processors are one core, everyone has all and it is said so. */
static void shares_do_not_overlap(void **state)
{
    (void)state;
    cpu_set_t all, taken;
    sched_getaffinity(0, sizeof all, &all);
    int count = CPU_COUNT(&all);
    CPU_ZERO(&taken);
    for (int place = 0; place < count; ++place) {
        bool shared;
        cpu_set_t common, share = binding_share(&all, place, count, &shared);
        CPU_AND(&common, &share, &taken);
        assert_true(CPU_COUNT(&share) > 0);
        if (shared && count > 1)
            assert_true(CPU_EQUAL(&share, &all));
        else
            assert_int_equal(CPU_COUNT(&common), 0);
        CPU_OR(&taken, &taken, &share);
    }
    assert_true(CPU_EQUAL(&taken, &all));
}

static void more_ranks_than_cores_share(void **state)
{
    (void)state;
    cpu_set_t all;
    bool shared = false;
    sched_getaffinity(0, sizeof all, &all);
    cpu_set_t share = binding_share(&all, 3, CPU_COUNT(&all) + 5, &shared);
    assert_true(shared);
    assert_true(CPU_EQUAL(&share, &all));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_gets_all),
        cmocka_unit_test(shares_do_not_overlap),
        cmocka_unit_test(more_ranks_than_cores_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
