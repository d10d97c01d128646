/* The ranks as rank 0 sees them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ranks/crew.h"

/* What is being measured is not timed yet; what a lost rank had timed is to be measured again. */
static void what_waits_for_its_counters_is_timed(void **state)
{
    (void)state;
    static const struct {
        enum rank_state state;
        size_t in_hand, timed;
    } rows[] = {{RANK_PREPARING, 0, 0}, {RANK_BUSY, 3, 2}, {RANK_BUSY, 0, 0},    {RANK_IDLE, 3, 3},
                {RANK_COUNTING, 2, 2},  {RANK_LOST, 2, 0}, {RANK_OVERDUE, 2, 0}, {RANK_GONE, 0, 0}};
    enum { RANKS = sizeof rows / sizeof *rows };
    struct crew crew;
    size_t timed = 0;
    assert_true(crew_create(&crew, RANKS));
    assert_int_equal(crew_timed(&crew), 0);
    for (int i = 0; i < RANKS; ++i) {
        crew.ranks[i].state = rows[i].state;
        for (size_t item = 0; item < rows[i].in_hand; ++item)
            assert_true(hand_give(&crew.ranks[i].hand, item));
        timed += rows[i].timed;
        assert_int_equal(crew_timed(&crew), timed);
    }
    crew_clear(&crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_waits_for_its_counters_is_timed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
