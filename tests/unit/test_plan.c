#include "unit.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest.h"
#include "manifest/plan.h"

#define VALID  TEST_DATA_DIR "/manifests/valid/"
#define PLANS  TEST_DATA_DIR "/plans/"
#define SWEEPS TEST_DATA_DIR "/../../sweeps/"

static struct plan *plan_of(const struct manifest *manifest)
{
    struct plan *plan = NULL;
    struct error error;
    if (plan_create(manifest, &plan, &error))
        fail_msg("%s", error.text);
    return plan;
}

static struct plan *plan_read(const char *path)
{
    struct manifest *manifest = NULL;
    struct error error;
    if (manifest_read(path, &manifest, &error))
        fail_msg("%s", error.text);
    struct plan *plan = plan_of(manifest);
    manifest_destroy(manifest);
    return plan;
}

static struct plan *plan_parse(const char *text)
{
    struct manifest *manifest = NULL;
    struct error error;
    if (manifest_parse("test.ini", text, strlen(text), &manifest, &error))
        fail_msg("%s", error.text);
    struct plan *plan = plan_of(manifest);
    manifest_destroy(manifest);
    return plan;
}

/* The golden files are what --dry-run prints: a change of them is a change of that, or of
 * identities. */
static void compare_golden(const char *manifest, const char *golden)
{
    char *found = NULL, line[2048];
    size_t size = 0;
    struct plan *plan = plan_read(manifest);
    FILE *stream = open_memstream(&found, &size), *file = fopen(golden, "r");
    if (!file)
        fail_msg("cannot open %s", golden);
    plan_print(plan, stream);
    fclose(stream);
    const char *rest = found;
    for (int number = 1; fgets(line, sizeof line, file); ++number) {
        if (strncmp(rest, line, strlen(line)) != 0)
            fail_msg("%s:%d\n  expected: %s  found:    %.*s", golden, number, line,
                     (int)strcspn(rest, "\n"), rest);
        rest += strlen(line);
    }
    assert_string_equal(rest, "");
    fclose(file);
    free(found);
    plan_destroy(plan);
}

static int is_manifest(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
#ifndef ROOFSWEEP_PROGRAMS
    if (strncmp(entry->d_name, "program", 7) == 0)
        return 0;
#endif
    return dot && strcmp(dot, ".ini") == 0;
}

static void test_golden(void **state)
{
    struct dirent **entries;
    int count = scandir(VALID, &entries, is_manifest, alphasort);
    assert_true(count >= 18);
    for (int i = 0; i < count; ++i) {
        char manifest[PATH_MAX], golden[PATH_MAX];
        const char *name = entries[i]->d_name;
        snprintf(manifest, sizeof manifest, VALID "%s", name);
        snprintf(golden, sizeof golden, PLANS "%.*s.txt", (int)(strlen(name) - 4), name);
        compare_golden(manifest, golden);
        free(entries[i]);
    }
    free(entries);
    compare_golden(SWEEPS "paper.ini", PLANS "paper.txt");
    compare_golden(SWEEPS "loops.ini", PLANS "loops.txt");
}

/* The sweeps that people run: as many configurations as the paper has points, and all can exist. */
static void test_sweeps(void **state)
{
    static const struct {
        const char *path;
        size_t count, merged, excluded;
    } rows[] = {
        {SWEEPS "conv2d_batch.ini", 3 * 3 * 2, 0, 0},
        {SWEEPS "conv2d_filters.ini", 4 * 3 * 2, 0, 0},
        {SWEEPS "conv2d_kernel.ini", 4 * 3 * 2, 0, 0},
        {SWEEPS "conv2d_stride.ini", 3 * 3 * 2, 0, 0},
        {SWEEPS "lstm_batch.ini", 4 * 2 * 2, 0, 0},
        {SWEEPS "lstm_sequence.ini", 4 * 2 * 2, 0, 0},
        {SWEEPS "lstm_features.ini", 4 * 2 * 2, 0, 0},
        {SWEEPS "lstm_hidden.ini", 4 * 2 * 2, 0, 0},
        {SWEEPS "paper.ini", 4 * (84 - 18) + 2 * (64 - 12 + 5), 4 * 18 + 2 * 12, 0},
#ifdef ROOFSWEEP_PROGRAMS
        {SWEEPS "paper_frameworks.ini", 5 * 11 * 4 + 3 * 13 * 4 + 13 * 2, 0, 13 * 2},
#endif
        {SWEEPS "algorithms.ini", 2 * 7 * (3 + 2), 2 * 7, 0},
        {SWEEPS "loops.ini", 2 * 2 + 2 + 2 + 1, 0, 0},
        {SWEEPS "guide.ini", 5 + 12 + 5, 2, 0},
        {SWEEPS "handwritten.ini", 6 + 12 + 9 + 8 + 2 + 6 + 4 + 8 + 4 + 1, 0, 0},
        {SWEEPS "recurrent.ini", 32 + 2 + 2 + 6, 0, 0},
        {SWEEPS "training.ini", 2 * (1 + 1 + 1 + 2 + 4 * 2 + 4 * 4 - 2), 2 * 2, 0},
        {SWEEPS "precisions.ini", 4 + 1 + 2 + 4 + 4, 0, 0},
        {SWEEPS "quickstart.ini", 3 * 3 + 4 * 2 - 1, 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct plan *plan = plan_read(rows[i].path);
        struct error error;
        if (plan->count != rows[i].count || plan->merged != rows[i].merged ||
            plan->excluded != rows[i].excluded)
            fail_msg("%s: %zu configurations, %zu merged, %zu excluded", rows[i].path, plan->count,
                     plan->merged, plan->excluded);
        for (size_t j = 0; j < plan->count; ++j) {
            assert_int_equal(config_check(&plan->items[j].config, &error), STATUS_OK);
            assert_true(plan->items[j].cost.flops > 0 && plan->items[j].cost.bytes > 0);
        }
        plan_destroy(plan);
    }
}

static void test_exclude(void **state)
{
    static const struct {
        const char *rule;
        size_t left; /* of batch 1, 2, 4 x kernel 1, 3, 3x5, 5 x padding same, 0, 1 x two passes =
                        72 */
    } rows[] = {
        {"batch = 1", 48},
        {"batch == 1", 48},
        {"batch != 1", 24},
        {"batch < 2", 48},
        {"batch <= 2", 24},
        {"batch > 2", 48},
        {"batch >= 2", 24},
        {"batch=1&batch=2", 72},
        {"batch=1,batch=2", 24},
        {"kernel = 3", 54},
        {"kernel = 3x5", 54},
        {"kernel != 3x5", 18},
        {"kernel >= 3", 18},
        {"kernel > 3", 54},
        {"kernel < 5", 36},
        {"kernel <= 5x5", 0},
        {"padding = same", 48},
        {"padding != same", 24},
        {"padding >= 0", 24},
        {"padding < 1", 48},
        {"pass = forward", 36},
        {"pass != forward & batch > 1 & kernel = 1 & padding = 1, batch = 1 & padding = 0", 62},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[512];
        snprintf(text, sizeof text,
                 "[conv2d]\nbatch = 1, 2, 4\nkernel = 1, 3, 3x5, 5\npadding = same, 0, 1\n"
                 "pass = forward, backward-data\nexclude = %s\n",
                 rows[i].rule);
        struct manifest *manifest = NULL;
        struct plan *plan = NULL;
        struct error error;
        if (manifest_parse("test.ini", text, strlen(text), &manifest, &error))
            fail_msg("%s", error.text);
        enum status status = plan_create(manifest, &plan, &error);
        assert_int_equal(status, rows[i].left ? STATUS_OK : STATUS_USAGE);
        if (plan && (plan->count != rows[i].left || plan->count + plan->excluded != 72))
            fail_msg("'%s' leaves %zu", rows[i].rule, plan->count);
        plan_destroy(plan);
        manifest_destroy(manifest);
    }
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* As many as the default limit allows; the second section repeats the first. */
static void test_large(void **state)
{
    struct plan *plan = plan_parse("[lstm a]\nbatch = 1:250:+1\nhidden = 1:200:+1\n"
                                   "[lstm b]\nhidden = 1:200:+1\nbatch = 1:250:+1\n");
    assert_int_equal(plan->count, 50000);
    assert_int_equal(plan->merged, 50000);
    const char **hashes = calloc(plan->count, sizeof *hashes);
    assert_non_null(hashes);
    for (size_t i = 0; i < plan->count; ++i) {
        assert_string_equal(plan->items[i].label, "a b");
        hashes[i] = plan->items[i].hash;
    }
    qsort(hashes, plan->count, sizeof *hashes, compare_texts);
    for (size_t i = 1; i < plan->count; ++i)
        assert_true(strcmp(hashes[i - 1], hashes[i]) < 0);
    free(hashes);
    plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_sweeps),
        cmocka_unit_test(test_exclude),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
