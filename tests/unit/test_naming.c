/* Short names: the label and what differs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "model/naming.h"

static struct config parsed(const char *text)
{
    struct config config;
    struct error error;
    if (config_parse(text, &config, &error))
        fail_msg("%s: %s", text, error.text);
    return config;
}

/* Names by label and configuration, all added first. */
static void what_differs_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *label, *configuration, *name;
    } rows[] = {
        {"sizes", "conv2d batch=8 precision=fp32", "sizes batch=8 precision=fp32"},
        {"sizes", "conv2d batch=16 precision=fp16", "sizes batch=16 precision=fp16"},
        {"sizes", "conv2d batch=16 precision=fp16 kernel=3", "sizes batch=16 precision=fp16"},
        {"sizes", "lstm batch=8", "sizes"}, /* of another workload: a group of its own */
        {"one two three", "conv2d batch=8", "one+2"},
        {"run", "program axes=\"mode=eager\" command=\"./a eager\"", "run mode=eager"},
        {"run", "program axes=\"mode=graph\" command=\"./a graph\"", "run mode=graph"},
    };
    enum { COUNT = sizeof rows / sizeof *rows };
    struct naming *naming = naming_create();
    assert_non_null(naming);
    for (int i = 0; i < COUNT; ++i) {
        struct config config = parsed(rows[i].configuration);
        assert_true(naming_add(naming, rows[i].label, &config));
    }
    for (int i = 0; i < COUNT; ++i) {
        struct config config = parsed(rows[i].configuration);
        char name[WORKLOAD_TEXT];
        assert_true(naming_format(naming, rows[i].label, &config, name));
        assert_string_equal(name, rows[i].name);
    }
    naming_destroy(naming);
}

/* Of a text that this version does not know there is no configuration, and so no short name. */
static void the_unknown_has_no_name(void **state)
{
    (void)state;
    struct naming *naming = naming_create();
    struct config known = parsed("conv2d batch=8"), unknown = {.workload = NULL};
    char name[WORKLOAD_TEXT] = "as it was";
    assert_true(naming_add(naming, "a", &unknown));
    assert_false(naming_format(naming, "a", &unknown, name));
    assert_false(naming_format(naming, "a", &known, name));
    assert_string_equal(name, "as it was");
    naming_destroy(naming);
    naming_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_differs_is_named),
        cmocka_unit_test(the_unknown_has_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
