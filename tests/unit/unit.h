/* cmocka, and the headers that it needs. cmocka passes a state to each test. Few tests use it, so
 * the compiler accepts unused parameters from here on. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/status.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* The error of calls that assert_ok and assert_fails check. */
static struct error failure __attribute__((unused));

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != STATUS_OK)                                                                   \
            fail_msg("%s", failure.text);                                                          \
    } while (0)

/* The call returns `expected`, and the text of `failure` contains `part`. */
#define assert_fails(call, expected, part)                                                         \
    do {                                                                                           \
        failure.text[0] = '\0';                                                                    \
        assert_int_equal(call, expected);                                                          \
        assert_says(failure.text, part);                                                           \
    } while (0)

/* The call returns `expected`, and the text of `failure` is `whole`. */
#define assert_fails_with(call, expected, whole)                                                   \
    do {                                                                                           \
        assert_fails(call, expected, "");                                                          \
        assert_string_equal(failure.text, whole);                                                  \
    } while (0)

static inline void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' does not say '%s'", text, part);
}

/* Begins the definition of a test, which unit.c runs: TEST(name) { ... } */
void test_add(const char *name, CMUnitTestFunction run, CMFixtureFunction set_up,
              CMFixtureFunction tear_down);
#define TEST_WITH(name, set_up, tear_down)                                                         \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void name##_add(void)                                      \
    {                                                                                              \
        test_add(#name, name, set_up, tear_down);                                                  \
    }                                                                                              \
    static void name(void **state)
#define TEST(name) TEST_WITH(name, NULL, NULL)
