/* How long a plan may take, as --dry-run says it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "estimate.h"

static const char manifest_text[] = "[conv2d]\nbatch = 1, 2, 3, 4\n[lstm]\nbatch = 1\n";

static char *printed(const struct estimate_total *total)
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    estimate_print(total, stream);
    fclose(stream);
    return text;
}

static void rows_that_are_there_tell_of_others(void **state)
{
    (void)state;
    struct manifest *manifest;
    struct plan *plan;
    struct results *earlier = results_create();
    struct record record;
    struct estimate_total total;
    struct error error;
    assert_int_equal(
        manifest_parse("test.ini", manifest_text, strlen(manifest_text), &manifest, &error),
        STATUS_OK);
    assert_int_equal(plan_create(manifest, &plan, &error), STATUS_OK);
    assert_int_equal(estimate_make(manifest, plan, NULL, &total, &error), STATUS_OK);
    assert_int_equal(total.left, 5);
    assert_int_equal(total.judged, 0);
    assert_true(total.at_most > 5 * 5 && total.at_most < 5 * 120);
    char *text = printed(&total);
    assert_non_null(strstr(text, "on one slow device: at most "));
    assert_null(strstr(text, "judged"));
    free(text);

    record_init(&record);
    record_set_config(&record, &plan->items[3].config);
    record.status = RECORD_MEASURED;
    record.attempts = 1;
    record.wall_time = 0.2;
    assert_int_equal(results_add_record(earlier, &record, &error), STATUS_OK);
    assert_int_equal(estimate_make(manifest, plan, earlier, &total, &error), STATUS_OK);
    assert_int_equal(total.left, 4);
    assert_int_equal(total.judged, 3);
    assert_true(fabs(total.seconds - 3 * 0.3) < 1e-9); /* half as much again, each */
    text = printed(&total);
    assert_non_null(strstr(text, "judged by the rows that are there: at most 1 s for 3 config"));
    free(text);
    results_destroy(earlier);
    plan_destroy(plan);
    manifest_destroy(manifest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_are_there_tell_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
