/* Intervals between polls: few polls, little delay. */

#include "unit.h"

#include <math.h>

#include "ranks/transport.h"

static const double longest = 2e-3; /* s */

/* Waits for an answer that comes after `seconds`. Returns the number of polls; *late: s from the
 * answer to its poll. */
static int wait_for_answer(struct poll_interval *interval, double *now, double answer, double *late)
{
    const double asked = *now;
    int looks = 0;
    poll_interval_update(interval, *now, true, true, longest);
    while (*now < asked + answer) {
        assert_true(interval->seconds >= 0 && interval->seconds < 1);
        *now += interval->seconds;
        ++looks;
        if (*now < asked + answer)
            poll_interval_update(interval, *now, false, true, longest);
    }
    *late = *now - asked - answer;
    poll_interval_update(interval, *now, true, false, longest);
    return looks;
}

static void typical_answers_need_few_polls_and_little_delay(void **state)
{
    const double answers[] = {0.2e-3, 2e-3, 20e-3};
    for (int i = 0; i < 3; ++i) {
        struct poll_interval interval = poll_interval_start();
        double now = 1000, late = NAN;
        int looks = 0;
        for (int j = 0; j < 20; ++j)
            looks = wait_for_answer(&interval, &now, answers[i] * (j % 2 ? 1.02 : 0.98), &late);
        assert_in_range(looks, 1, 5);
        assert_true(late <= 0.15 * answers[i] + 50e-6);
    }
}

static void polls_for_a_late_answer_become_rare(void **state)
{
    struct poll_interval interval = poll_interval_start();
    double now = 0, late;
    for (int i = 0; i < 10; ++i)
        wait_for_answer(&interval, &now, 1e-3, &late);
    assert_in_range(wait_for_answer(&interval, &now, 1.0, &late), 100, 600); /* at most 2 ms each */
    assert_true(late <= longest);
}

/* A wait for other ranks does not count as a typical answer. */
static void a_long_wait_does_not_make_the_next_one_long(void **state)
{
    struct poll_interval interval = poll_interval_start();
    double now = 0, late;
    wait_for_answer(&interval, &now, 100.0, &late);
    wait_for_answer(&interval, &now, 1e-3, &late);
    assert_true(late <= 50e-3);
    for (int i = 0; i < 30; ++i)
        wait_for_answer(&interval, &now, 1e-3, &late);
    assert_true(late <= 0.3e-3);
}

/* 256 ranks on two cores once had a median wait of 11 ms: each answer came long before the first
 * poll and made the next poll only an eighth earlier. */
static void polls_adapt_to_faster_answers(void **state)
{
    struct poll_interval interval = poll_interval_start();
    double now = 0, late;
    for (int i = 0; i < 10; ++i)
        wait_for_answer(&interval, &now, 40e-3, &late);
    for (int i = 0; i < 10; ++i)
        wait_for_answer(&interval, &now, 1e-3, &late);
    assert_true(late <= 0.5e-3);
}

static void without_an_answer_due_polls_follow_messages(void **state)
{
    struct poll_interval interval = poll_interval_start();
    poll_interval_update(&interval, 1, true, false, longest);
    assert_true(interval.seconds == 0);
    double before = 0;
    for (int i = 0; i < 20; ++i) {
        poll_interval_update(&interval, 1, false, false, longest);
        assert_true(interval.seconds >= before && interval.seconds <= longest);
        before = interval.seconds;
    }
    assert_true(before == longest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typical_answers_need_few_polls_and_little_delay),
        cmocka_unit_test(polls_for_a_late_answer_become_rare),
        cmocka_unit_test(a_long_wait_does_not_make_the_next_one_long),
        cmocka_unit_test(polls_adapt_to_faster_answers),
        cmocka_unit_test(without_an_answer_due_polls_follow_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
