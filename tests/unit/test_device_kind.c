/* The table of device kinds: what its readers rely on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "model/device.h"
#include "model/device_kind.h"

static void rows_are_complete_and_unique(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICE_KINDS; ++i) {
        const struct device_kind *kind = &device_kinds[i];
        assert_true(kind->name && *kind->name && kind->noun && *kind->noun);
        assert_true(strlen(kind->name) < sizeof((struct device *)0)->kind);
        assert_int_equal(strncmp(kind->worker, "roofsweep-worker-", 17), 0);
        assert_ptr_equal(device_kind_find(kind->name), kind); /* the first of that name */
        for (int j = 0; j < i; ++j)
            assert_string_not_equal(device_kinds[j].worker, kind->worker);
    }
    assert_null(device_kind_find("abacus"));
    assert_null(device_kind_find(""));
}

/* A kind that is not numbered is the cores of a rank, which binding.h shares out or says that they
 * are shared: two ranks may have them. */
static void an_exclusive_kind_is_numbered(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICE_KINDS; ++i)
        assert_true(device_kinds[i].numbered || !device_kinds[i].exclusive);
}

static void a_choice_is_the_index_of_its_word(void **state)
{
    (void)state;
    const char *words[DEVICE_KINDS + 2];
    device_kind_words(words);
    assert_string_equal(words[DEVICE_AUTO], "auto");
    assert_null(device_kind_chosen(DEVICE_AUTO));
    for (int i = 1; words[i]; ++i)
        assert_string_equal(device_kind_chosen(i)->name, words[i]);
    assert_null(words[DEVICE_KINDS + 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_complete_and_unique),
        cmocka_unit_test(an_exclusive_kind_is_numbered),
        cmocka_unit_test(a_choice_is_the_index_of_its_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
