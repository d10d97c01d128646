/* What --set and --only make of a manifest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "manifest/amendment.h"
#include "manifest/plan.h"

static const char manifest_text[] = "; a comment\n"
                                    "[sweep]\n"
                                    "title = two\n"
                                    "[conv2d first]\n"
                                    "batch = 16, 32 ; of old\n"
                                    "filters = 64\n"
                                    "[conv2d b.c]\n"
                                    "filters = 8\n"
                                    "[lstm]\n"
                                    "batch = 1";

static struct manifest *parsed(const char *text)
{
    struct manifest *manifest;
    struct error error;
    if (manifest_parse("test.ini", text, strlen(text), &manifest, &error))
        fail_msg("%s", error.text);
    return manifest;
}

static void assert_amended(const struct amendment *amendment, const char *expected)
{
    struct manifest *manifest = parsed(manifest_text);
    struct error error;
    char *text;
    if (amendment_apply(amendment, manifest, &text, &error))
        fail_msg("%s", error.text);
    assert_string_equal(text, expected);
    manifest_destroy(parsed(text));
    free(text);
    manifest_destroy(manifest);
}

static void a_parameter_goes_to_all_that_have_it(void **state)
{
    (void)state;
    struct amendment amendment = {.sets = {"batch=1,2", "features=8"}, .set_count = 2};
    assert_amended(&amendment,
                   "; a comment\n[sweep]\ntitle = two\n"
                   "[conv2d first]\nbatch = 1,2\n#batch = 16, 32 ; of old\nfilters = 64\n"
                   "[conv2d b.c]\nbatch = 1,2\nfilters = 8\n"
                   "[lstm]\nbatch = 1,2\nfeatures = 8\n#batch = 1\n");
}

static void a_section_can_be_named(void **state)
{
    (void)state;
    struct amendment amendment = {.sets = {"b.c.batch=7", "sweep.title=x = y"}, .set_count = 2};
    assert_amended(&amendment, "; a comment\n[sweep]\ntitle = x = y\n#title = two\n"
                               "[conv2d first]\nbatch = 16, 32 ; of old\nfilters = 64\n"
                               "[conv2d b.c]\nbatch = 7\nfilters = 8\n[lstm]\nbatch = 1\n");
}

static void settings_get_their_section(void **state)
{
    (void)state;
    struct amendment amendment = {.sets = {"iterations=7", "measure.warmup=0", "timeout=9 s"},
                                  .set_count = 3,
                                  .onlys = {"lstm"},
                                  .only_count = 1};
    assert_amended(&amendment, "; a comment\n[sweep]\ntimeout = 9 s\ntitle = two\n"
                               "#[conv2d first]\n#batch = 16, 32 ; of old\n#filters = 64\n"
                               "#[conv2d b.c]\n#filters = 8\n[lstm]\nbatch = 1\n"
                               "[measure]\niterations = 7\nwarmup = 0\n");
}

static void what_means_nothing_is_refused(void **state)
{
    (void)state;
    static const struct {
        struct amendment amendment;
        const char *text;
    } rows[] = {
        {{.sets = {"bach=1"}, .set_count = 1}, "no section here may have the key 'bach'"},
        {{.sets = {"second.batch=1"}, .set_count = 1},
         "no section here has the label 'second'; allowed: first"},
        {{.sets = {"batch"}, .set_count = 1}, "is not KEY=VALUE"},
        {{.sets = {"=1"}, .set_count = 1}, "is not KEY=VALUE"},
        {{.sets = {"batch="}, .set_count = 1}, "is not KEY=VALUE"},
        {{.onlys = {"firs"}, .only_count = 1},
         "--only 'firs': no workload section has that label; did you mean 'first'? allowed: "},
        {{.sets = {"batch=many"}, .set_count = 1}, "after --set and --only: "},
        {{.sets = {"batch=1", "batch=2"}, .set_count = 2}, "a second time"},
        {{.sets = {"title=1\n[peaks]"}, .set_count = 1}, "in one line"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct manifest *manifest = parsed(manifest_text), *before = manifest;
        struct error error = {""};
        assert_int_equal(amendment_read(&rows[i].amendment, &manifest, &error), STATUS_USAGE);
        if (!strstr(error.text, rows[i].text))
            fail_msg("'%s' does not say '%s'", error.text, rows[i].text);
        assert_ptr_equal(manifest, before);
        manifest_destroy(manifest);
    }
}

static void the_amended_one_is_what_runs(void **state)
{
    (void)state;
    struct manifest *manifest = parsed(manifest_text);
    struct amendment amendment = {
        .sets = {"batch=1,2,3"}, .set_count = 1, .onlys = {"first"}, .only_count = 1};
    struct plan *plan;
    struct error error;
    assert_int_equal(amendment_read(&amendment, &manifest, &error), STATUS_OK);
    assert_int_equal(plan_create(manifest, &plan, &error), STATUS_OK);
    assert_int_equal(plan->count, 3);
    assert_non_null(strstr(manifest->text, "batch = 1,2,3\n"));
    plan_destroy(plan);
    manifest_destroy(manifest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parameter_goes_to_all_that_have_it),
        cmocka_unit_test(a_section_can_be_named),
        cmocka_unit_test(settings_get_their_section),
        cmocka_unit_test(what_means_nothing_is_refused),
        cmocka_unit_test(the_amended_one_is_what_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
