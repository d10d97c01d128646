/* Intervals between polls: short after a message, then ever longer. */
#include "unit.h"

#include <math.h>

#include "ranks/transport.h"

TEST(polls_follow_messages_and_become_rare)
{
    const double longest = 2e-3;
    double interval = poll_interval(longest, true, longest), waited = 0;
    assert_true(interval == 0);
    for (int polls = 0; interval < longest; ++polls) {
        const double last = interval;
        interval = poll_interval(last, false, longest);
        assert_true(interval >= 50e-6 && interval <= fmax(2 * last, 50e-6));
        waited += interval;
        assert_true(polls < 8);
    }
    assert_true(interval == longest && waited < 3 * longest);
    assert_true(poll_interval(interval, false, longest / 4) == longest / 4);
}
