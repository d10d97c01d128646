/* A made-up workload with free texts, without a model and a reference. Also tests rules for all
 * workloads. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/axis.h"
#include "manifest/exclusion.h"
#include "manifest/plan.h"
#include "model/record.h"
#include "model/workloads/conv2d.h"
#include "ranks/queue.h"
#include "results/derive.h"

static const struct parameter made_up_parameters[] = {
    WORKLOAD_FREE_TEXT("command", 255, "true", "a text"),
    WORKLOAD_FREE_TEXT("mode", 20, "", "another"),
    WORKLOAD_INTEGER("size", 100, "1", "a number"),
};
static const struct workload made_up = {
    .name = "made-up",
    WORKLOAD_TABLE(made_up_parameters),
};
enum { COMMAND, MODE, SIZE };

static struct config made_up_config(const char *command, const char *mode, int64_t size)
{
    struct config config = config_default(&made_up);
    struct value number = {.first = size}, value = {0};
    config_set(&config, SIZE, &number);
    snprintf(value.text, sizeof value.text, "%s", command);
    config_set(&config, COMMAND, &value);
    snprintf(value.text, sizeof value.text, "%s", mode);
    config_set(&config, MODE, &value);
    return config;
}

/* The workload with two later parameters, which older rows do not have. */
static const char *const later_words[] = {"as-before", "otherwise", NULL};
static const struct parameter grown_parameters[] = {
    WORKLOAD_FREE_TEXT("command", 255, "true", "a text"),
    WORKLOAD_LATER_INTEGER("depth", 0, 9, "0", "a number that came later"),
    WORKLOAD_LATER_SERIES("manner", later_words, "as-before", "a word that came later"),
    WORKLOAD_FREE_TEXT("mode", 20, "", "another"),
    WORKLOAD_INTEGER("size", 100, "1", "a number"),
};
static const struct workload grown = {
    .name = "made-up",
    WORKLOAD_TABLE(grown_parameters),
};

TEST(later_parameters_leave_old_texts)
{
    static const struct {
        const char *given, *canonical; /* after "made-up command=a" */
        int64_t depth, manner;
    } rows[] = {
        {" mode=b size=3", " mode=b size=3", 0, 0},
        {" depth=0 manner=as-before mode=b size=3", " mode=b size=3", 0, 0},
        {" depth=2 mode=b size=3", " depth=2 mode=b size=3", 2, 0},
        {" manner=otherwise mode=b size=3", " manner=otherwise mode=b size=3", 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char given[WORKLOAD_TEXT], text[WORKLOAD_TEXT], before[WORKLOAD_TEXT];
        struct config config, old;
        snprintf(given, sizeof given, "made-up command=a%s", rows[i].given);
        assert_ok(config_parse_as(&grown, given, &config, &failure));
        assert_int_equal(config.values[1].first, rows[i].depth);
        assert_int_equal(config.values[2].first, rows[i].manner);
        config_format(&config, text);
        assert_string_equal(text + strlen("made-up command=a"), rows[i].canonical);
        if (i > 0)
            continue;
        assert_ok(config_parse_as(&made_up, text, &old, &failure));
        config_format(&old, before);
        assert_string_equal(text, before);
    }
}

TEST(hostile_texts_round_trip)
{
    /* clang-format off */
    static const char *const texts[] = {
        "", " ", "  two  blanks  ", "a=b", "=", "size=2", " size=2 ", "\"", "\\", "\\\"", "\"\"",
        "\" size=3", "\\\\", "ends in \\", "'single' \"double\"", "a, b; c # d & e", "[section]",
        "{batch}", "$(rm)", "%s%n", "made-up command=x",
        ("gr\xc3\xbc\xc3\x9f" "e \xe2\x82\xac \xf0\x9f\x98\x80"),
        "python3 sweeps/programs/conv2d.py --batch 16 --name \"a b\"",
    };
    /* clang-format on */
    enum { COUNT = sizeof texts / sizeof *texts };
    char seen[COUNT][CONFIG_HASH_TEXT];
    for (size_t i = 0; i < COUNT; ++i) {
        char text[WORKLOAD_TEXT], again[WORKLOAD_TEXT];
        struct config config = made_up_config(texts[i], "m", 7), parsed;
        config_format(&config, text);
        if (config_parse_as(&made_up, text, &parsed, &failure))
            fail_msg("'%s': %s", text, failure.text);
        assert_string_equal(config_get(&parsed, COMMAND).text, texts[i]);
        assert_string_equal(config_get(&parsed, MODE).text, "m");
        assert_int_equal(parsed.values[SIZE].first, 7);
        assert_memory_equal(&parsed, &config, sizeof config);
        config_format(&parsed, again);
        assert_string_equal(again, text);
        config_hash(&config, seen[i]);
        for (size_t j = 0; j < i; ++j)
            assert_string_not_equal(seen[i], seen[j]);
    }
}

TEST(texts_are_formatted)
{
    static const char *const rows[][2] = {
        {"eager", "made-up command=eager mode=\"\" size=1"},
        {"a/b-c_d.e:f+g@h%", "made-up command=a/b-c_d.e:f+g@h% mode=\"\" size=1"},
        {"a b", "made-up command=\"a b\" mode=\"\" size=1"},
        {"a\\b\"", "made-up command=\"a\\\\b\\\"\" mode=\"\" size=1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[WORKLOAD_TEXT];
        struct config config = made_up_config(rows[i][0], "", 1);
        config_format(&config, text);
        assert_string_equal(text, rows[i][1]);
    }
}

/* The longest texts, of bytes that need an escape; and one byte more. */
TEST(texts_have_bounds)
{
    char longest[256], mode[21], text[WORKLOAD_TEXT], value[WORKLOAD_VALUE_TEXT];
    struct config parsed;
    memset(longest, '"', 255);
    memset(mode, '\\', 20);
    longest[255] = mode[20] = '\0';
    struct config config = made_up_config(longest, mode, 100);
    config_format(&config, text);
    assert_ok(config_parse_as(&made_up, text, &parsed, &failure));
    assert_memory_equal(&parsed, &config, sizeof config);
    parameter_format(&made_up_parameters[COMMAND], config_get(&config, COMMAND), value);
    assert_int_equal(strlen(value), 2 * 255 + 2);

    struct value kept = {.first = 5}, unchanged = kept;
    static const size_t lengths[] = {256, 512, 513, 599};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
        char more[600];
        memset(more, 'x', lengths[i]);
        more[lengths[i]] = '\0';
        assert_fails(parameter_parse(&made_up_parameters[COMMAND], more, &kept, &failure),
                     STATUS_USAGE, "allowed: 0 to 255");
        assert_memory_equal(&kept, &unchanged, sizeof kept);
    }
}

TEST(wrong_texts_are_refused)
{
    static const char *const values[] = {
        "\"open", "\"",   "\"open\\\"", "\"a\"b", "\"a\" ",       "\"\\n\"",  "a\tb",
        "a\nb",   "\x7f", "\xff",       "\xc3",   "\xed\xa0\x80", "\xc0\xaf",
    };
    static const char *const configs[] = {
        "made-up command=\"a b",
        "made-up command=\"a\"b",
        "made-up command=a b",
        "made-up command=\"a\"  size=1",
        "made-up mode=123456789012345678901",
        "matmul",
    };
    struct value value;
    struct config config;
    struct error error;
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i) {
        error.text[0] = '\0';
        assert_int_equal(parameter_parse(&made_up_parameters[COMMAND], values[i], &value, &error),
                         STATUS_USAGE);
        assert_true(strncmp(error.text, "command: ", 9) == 0);
    }
    for (size_t i = 0; i < sizeof configs / sizeof *configs; ++i)
        assert_int_equal(config_parse_as(&made_up, configs[i], &config, &error), STATUS_USAGE);
}

TEST(texts_are_axes)
{
    struct axis axis = {.line = 1};
    size_t room = MANIFEST_VALUES_MAX;
    const struct parameter *command = &made_up_parameters[COMMAND];
    assert_ok(axis_parse(command, "eager, \"a, b\" ,run it:now, \"say \\\"hi\\\"\"", &room, &axis,
                         &failure));
    static const char *const expected[] = {"eager", "a, b", "run it:now", "say \"hi\""};
    assert_int_equal(axis.count, 4);
    for (size_t i = 0; i < 4; ++i)
        assert_string_equal(axis.values[i].text, expected[i]);
    assert_ok(axis_distinct(command, &axis, &failure));
    axis_clear(&axis);
    assert_ok(axis_parse(command, "a b, c, \"a b\"", &room, &axis, &failure));
    assert_fails_with(axis_distinct(command, &axis, &failure), STATUS_USAGE,
                      "command: \"a b\" comes twice");
    axis_clear(&axis);
    assert_fails(axis_parse(command, "a, \"b, c", &room, &axis, &failure), STATUS_USAGE,
                 "no closing quote");
}

TEST(texts_are_excluded)
{
    static const struct {
        const char *rule, *command;
        bool holds;
    } rows[] = {
        {"command = eager", "eager", true},
        {"command = eager", "eagerly", false},
        {"command != eager", "graph", true},
        {"command = \"a & b, c\" & size = 1", "a & b, c", true},
        {"command = \"x < y\" & size = 2", "x < y", false},
    };
    size_t room = MANIFEST_VALUES_MAX;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct exclusion *exclusions;
        size_t count;
        struct config config = made_up_config(rows[i].command, "", 1);
        if (exclusions_parse(&made_up, rows[i].rule, &room, &exclusions, &count, &failure))
            fail_msg("%s: %s", rows[i].rule, failure.text);
        assert_int_equal(count, 1);
        assert_int_equal(exclusion_holds(exclusions, &config), rows[i].holds);
        exclusions_destroy(exclusions, count);
    }
    struct exclusion *exclusions;
    size_t count;
    assert_fails(exclusions_parse(&made_up, "command < b", &room, &exclusions, &count, &failure),
                 STATUS_USAGE, "use = or !=");
}

static void check_row(const struct workload *workload)
{
    struct config config = config_default(workload);
    int64_t strings = 0;
    char text[WORKLOAD_TEXT];
    assert_true(workload->count <= WORKLOAD_PARAMETERS_MAX);
    for (size_t i = 0; i < workload->count; ++i) {
        const struct parameter *p = &workload->parameters[i];
        struct value value = config_get(&config, i);
        assert_true(i == 0 || strcmp(p[-1].name, p->name) < 0);
        parameter_format(p, value, text);
        if (p->kind != PARAMETER_TEXT)
            assert_string_equal(text, p->initial);
        else
            strings += p->maximum + 1;
        assert_true(p->kind != PARAMETER_TEXT || p->maximum < WORKLOAD_STRING);
        for (size_t j = 0; j < i && p->role != ROLE_NONE; ++j)
            assert_true(p->role != workload->parameters[j].role);
    }
    assert_true(strings <= WORKLOAD_STRINGS);
    /* A reference needs inputs of one precision. */
    assert_true(!workload->reference || config_precision(&config) < PRECISION_COUNT);
}

TEST(workloads_keep_the_rules)
{
    for (size_t i = 0; workloads[i]; ++i)
        check_row(workloads[i]);
    check_row(&made_up);
}

TEST(rows_without_a_model_have_missing_values)
{
    struct config config = made_up_config("run", "", 1);
    struct record record;
    struct device device;
    record_init(&record);
    device_init(&device);
    assert_ok(config_check(&config, &failure));
    assert_int_equal(config_precision(&config), PRECISION_COUNT);
    assert_false(config_cold(&config));
    assert_null(config_word(&config, ROLE_IMPLEMENTATION));
    record_set_config(&record, &config);
    assert_string_equal(record.configuration, "made-up command=run mode=\"\" size=1");
    assert_true(isnan(record.flops_model) && isnan(record.bytes_model) && isnan(record.footprint));
    record.status = RECORD_MEASURED;
    record.time_median = 1.0;
    record.launches = 1;
    struct derived derived = derive(&record, &device);
    assert_string_equal(derived.roof_memory_level, "");
    assert_true(isnan(derived.arithmetic_intensity[LEVEL_DRAM]) && isnan(derived.performance));
    record_clear(&record);
}

/* A plan of a matmul and two made-up sizes: the dry run shows "-", and the sizes come first, in the
 * manifest's order. */
TEST(rows_without_a_model_come_first)
{
    struct value sizes[] = {{.first = 9}, {.first = 3}};
    struct section sections[] = {
        {.workload = workload_find("matmul"), .label = "known", .line = 1},
        {.workload = &made_up, .label = "unknown", .line = 2},
    };
    struct manifest manifest = {.path = "test.ini",
                                .sections = sections,
                                .section_count = 2,
                                .sweep.max_configurations = 10};
    struct plan *plan = NULL;
    char *text = NULL;
    size_t size = 0, item, order[3];
    sections[1].axes[SIZE] = (struct axis){sizes, 2, 3};
    assert_ok(plan_create(&manifest, &plan, &failure));
    assert_int_equal(plan->count, 3);
    FILE *stream = open_memstream(&text, &size);
    plan_print(plan, stream);
    fclose(stream);
    assert_says(text, "            -          -          -  unknown size=");
    assert_says(text, "without a modelled cost: 2; they are measured first");
    struct queue *queue = queue_create(plan, 1, false, 1);
    for (size_t i = 0; i < 3; ++i) {
        assert_true(queue_next(queue, 0, NULL, NULL, &item));
        order[i] = item;
    }
    assert_true(order[0] == 1 && order[1] == 2 && order[2] == 0);
    queue_destroy(queue);
    plan_destroy(plan);
    free(text);
}
