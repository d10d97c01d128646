/* The tests of a program, in the order of its file, and its main. */
#include "unit.h"

#include <stdlib.h>

enum { TESTS_MAX = 64 };
static struct CMUnitTest tests[TESTS_MAX]; /* cmocka skips entries without a name */

void test_add(const char *name, CMUnitTestFunction run, CMFixtureFunction set_up,
              CMFixtureFunction tear_down)
{
    static size_t count;
    if (count == TESTS_MAX)
        abort();
    tests[count++] = (struct CMUnitTest){name, run, set_up, tear_down, NULL};
}

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
