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

static inline void assert_ok(enum status status, const struct error *error)
{
    if (status != STATUS_OK)
        fail_msg("%s", error->text);
}

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
