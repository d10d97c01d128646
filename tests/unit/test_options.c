
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/device_kind.h"
#include "options.h"
#include "model/device.h"

static enum status parse(const char *line, struct options *options, struct error *error)
{
    char *argv[16] = {(char *)"roofsweep"}, *copy = strdup(line), *rest = copy;
    int argc = 1;
    for (char *word; (word = strsep(&rest, " "));)
        if (*word)
            argv[argc++] = word;
    enum status status = options_parse(argc, argv, options, error);
    free(copy);
    return status;
}

TEST(actions)
{
    static const struct {
        const char *line;
        enum action action;
    } rows[] = {
        {"sweep.ini", ACTION_SWEEP},
        {"--dry-run sweep.ini", ACTION_DRY_RUN},
        {"sweep.ini --dry-run", ACTION_DRY_RUN},
        {"--list", ACTION_LIST},
        {"--list lstm", ACTION_LIST},
        {"--list chips", ACTION_LIST_CHIPS},
        {"--list variables", ACTION_LIST_VARIABLES},
        {"--gather x.nc.journal", ACTION_GATHER},
        {"-h", ACTION_HELP},
        {"--self-test", ACTION_SELF_TEST},
        {"--version", ACTION_VERSION},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct options options;
        assert_ok(parse(rows[i].line, &options, &failure));
        assert_int_equal(options.action, rows[i].action);
    }
}

TEST(values)
{
    struct options options;
    assert_ok(parse("-v --device cpu --resume sweep.ini", &options, &failure));
    assert_true(options.has_device &&
                strcmp(device_kind_chosen(options.device)->name, "cpu") == 0 && options.resume);
    assert_int_equal(options.level, LOG_DEBUG);
    assert_ok(parse("-q sweep.ini", &options, &failure));
    assert_false(options.has_device || options.resume || options.overwrite || options.output);
    assert_int_equal(options.level, LOG_WARNING);
    assert_true(options.time_limit == 0 && !options.json && !options.workload);
    assert_ok(
        parse("--time-limit 2h --json --set a=1 --set b=2 --only x a.ini", &options, &failure));
    assert_true(options.time_limit == 7200 && options.json);
    assert_int_equal(options.amendment.set_count, 2);
    assert_int_equal(options.amendment.only_count, 1);
    assert_ok(parse("--time-limit none a.ini", &options, &failure));
    assert_true(isinf(options.time_limit));
    assert_ok(parse("--list lstm", &options, &failure));
    assert_non_null(options.workload);
}

TEST(wrong_lines_are_explained)
{
    static const struct {
        const char *line, *text;
    } rows[] = {
        {"", "no manifest"},
        {"--advice", "roofsweep-post rows FILE.nc --advice"},
        {"a.ini b.ini", "unexpected 'b.ini'"},
        {"--list a.ini", "--list 'a.ini' is no workload"},
        {"--list conv2", "did you mean 'conv2d'"},
        {"--list conv", "did you mean 'conv2d'"},
        {"--list chip", "did you mean 'chips'"},
        {"--list chips a.ini", "unexpected 'a.ini'"},
        {"--list lstm a.ini", "unexpected 'a.ini'"},
        {"--gather a.journal --only a", "go with a manifest"},
        {"--time-limit 30 a.ini", "--time-limit"},
        {"--time-limit never a.ini", "a duration or 'none': 'never'"},
        {"--program python3 train.py",
         "unexpected 'train.py'; the command of --program stands in quotes"},
        {"--self-test a.ini", "--self-test takes no manifest"},
        {"--gather a.journal --gather b.journal",
         "--gather takes one journal; roofsweep-post merge"},
        {"--program a --program b", "--program takes one command"},
        {"--dry-run --gather a.journal", "these actions exclude each other; name one of"},
        {"--gather a.journal --resume", "--resume goes with a sweep, not with --gather"},
        {"--device abacus a.ini", "allowed: auto, cuda, cpu"},
        {"--resume --overwrite a.ini", "exclude each other"},
        {"--list chips --json", "no JSON"},
        {"--skip-damaged a.ini", "goes with --gather"},
        {"--any-owner a.ini", "goes with --resume"},
        {"--gather a.journal b.journal -o c.nc", "one journal; roofsweep-post merge A.nc B.nc"},
        {"--nonsense a.ini", "--nonsense"},
        {"--output", "a value is missing"},
        {"-x a.ini", "unknown option '-x'; see roofsweep --help"},
        {"--outptu=b.nc a.ini", "unknown option '--outptu=b.nc'; did you mean '--output'?"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct options options;
        assert_fails(parse(rows[i].line, &options, &failure), STATUS_USAGE, rows[i].text);
    }
}

/* ---- kinds of devices ---- */

TEST(rows_are_complete_and_unique)
{
    for (int i = 0; i < DEVICE_KINDS; ++i) {
        const struct device_kind *kind = &device_kinds[i];
        assert_true(kind->name && *kind->name && kind->noun && *kind->noun);
        assert_true(strlen(kind->name) < sizeof((struct device *)0)->kind);
        assert_int_equal(strncmp(kind->worker, "roofsweep-worker-", 17), 0);
        assert_ptr_equal(device_kind_find(kind->name), kind); /* no other kind has the name */
        for (int j = 0; j < i; ++j)
            assert_string_not_equal(device_kinds[j].worker, kind->worker);
    }
    assert_null(device_kind_find("abacus"));
    assert_null(device_kind_find(""));
}

/* Devices without a number are the cores of ranks, which two ranks can share (binding.h). */
TEST(an_exclusive_kind_is_numbered)
{
    for (int i = 0; i < DEVICE_KINDS; ++i)
        assert_true(device_kinds[i].numbered || !device_kinds[i].exclusive);
}

TEST(an_option_of_a_device_is_the_index_of_its_word)
{
    const char *words[DEVICE_KINDS + 2];
    device_kind_words(words);
    assert_string_equal(words[DEVICE_AUTO], "auto");
    assert_null(device_kind_chosen(DEVICE_AUTO));
    for (int i = 1; words[i]; ++i)
        assert_string_equal(device_kind_chosen(i)->name, words[i]);
    assert_null(words[DEVICE_KINDS + 1]);
}
