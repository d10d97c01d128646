#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "manifest/formula.h"

/* n is 3, half is 0.5, there is no other. */
static bool lookup(void *user, const char *name, double *value)
{
    (void)user;
    *value = strcmp(name, "n") == 0 ? 3.0 : 0.5;
    return strcmp(name, "n") == 0 || strcmp(name, "half") == 0;
}

static void formulas_have_their_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value; /* NaN: refused */
    } rows[] = {
        {"1", 1},      {" 2 + 3*4 ", 14}, {"(2+3)*4", 20}, {"8/2/2", 2},     {"8-2-2", 4},
        {"n*n", 9},    {"half", 0.5},     {"1e3", 1000},   {".5*n", 1.5},    {"((n))", 3},
        {"", NAN},     {"2*", NAN},       {"(2", NAN},     {"2)", NAN},      {"2 3", NAN},
        {"m", NAN},    {"n-3", NAN},      {"n-4", NAN},    {"1/(n-3)", NAN}, {"-1", NAN},
        {"2**3", NAN}, {"n^2", NAN},      {"n;", NAN},     {"nn", NAN},      {"1e999", NAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        double value = NAN;
        struct error error = {""};
        enum status status = formula_evaluate(rows[i].text, lookup, NULL, &value, &error);
        if (status != (isnan(rows[i].value) ? STATUS_USAGE : STATUS_OK) ||
            !(value == rows[i].value || (isnan(value) && isnan(rows[i].value))))
            fail_msg("'%s': %g, %s", rows[i].text, value, error.text);
    }
}

static void parentheses_end_somewhere(void **state)
{
    (void)state;
    char text[4001];
    double value;
    struct error error;
    memset(text, '(', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(formula_evaluate(text, lookup, NULL, &value, &error), STATUS_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_have_their_values),
        cmocka_unit_test(parentheses_end_somewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
