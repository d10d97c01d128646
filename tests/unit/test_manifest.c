/* Manifests: what they say, and what is refused. */
#include "unit.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/device_kind.h"
#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "model/workloads/conv2d.h"
#ifdef ROOFSWEEP_PROGRAMS
#include "program/section/template.h"
#endif
#include "manifest/amendment.h"

#define VALID   TEST_DATA_DIR "/manifests/valid/"
#define INVALID TEST_DATA_DIR "/manifests/invalid/"

enum { FILE_BYTES = 1 << 16 };
static char *file_read(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    char *text = calloc(1, FILE_BYTES);
    *length = fread(text, 1, FILE_BYTES - 1, file);
    fclose(file);
    return text;
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

/* Calls `check` with each manifest of the folder, by name; returns how many there are. */
static int for_each(const char *folder, void (*check)(const char *name))
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_manifest, alphasort);
    for (int i = 0; i < count; ++i) {
        check(entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return count;
}

static struct manifest *parse(const char *text)
{
    struct manifest *manifest = NULL;
    struct error error;
    if (manifest_parse("test.ini", text, strlen(text), &manifest, &error))
        fail_msg("%s", error.text);
    return manifest;
}

static struct manifest *read_valid(const char *name)
{
    char path[PATH_MAX];
    struct manifest *manifest = NULL;
    struct error error;
    snprintf(path, sizeof path, VALID "%s", name);
    if (manifest_read(path, &manifest, &error))
        fail_msg("%s", error.text);
    return manifest;
}

static void check_valid(const char *name)
{
    struct manifest *manifest = read_valid(name);
    size_t length;
    char *text = file_read(manifest->path, &length);
    assert_string_equal(manifest->text, text);
    assert_true(manifest->section_count > 0 || strcmp(name, "roofs_only.ini") == 0);
    free(text);
    manifest_destroy(manifest);
}

static void test_valid(void **state)
{
    assert_true(for_each(VALID, check_valid) >= 18);
}

/* What a user would see: the error of reading, or else of planning. */
static enum status refuse(const char *name, const char *text, size_t length, struct error *error)
{
    struct manifest *manifest = NULL;
    struct plan *plan = NULL;
    enum status status = manifest_parse(name, text, length, &manifest, error);
    assert_true((status == STATUS_OK) == (manifest != NULL));
    if (status)
        return status;
    status = plan_create(manifest, &plan, error);
    assert_true((status == STATUS_OK) == (plan != NULL));
    plan_destroy(plan);
    manifest_destroy(manifest);
    return status;
}

static bool is_modelled(const struct workload *workload)
{
    return strcmp(workload->name, "program") != 0;
}

/* The line with the names of workloads in the place of `mark`. */
static void names_put(char *line, size_t size, const char *mark,
                      bool (*filter)(const struct workload *workload))
{
    char *at = strstr(line, mark), rest[256];
    if (!at)
        return;
    const char **names = workload_names(NULL, filter);
    assert_non_null(names);
    snprintf(rest, sizeof rest, "%s", at + strlen(mark));
    for (size_t i = 0; names[i]; ++i)
        at += snprintf(at, size - (size_t)(at - line), "%s%s", i ? ", " : "", names[i]);
    snprintf(at, size - (size_t)(at - line), "%s", rest);
    free(names);
}

static void check_invalid(const char *name)
{
    char path[PATH_MAX];
    struct error error = {"accepted"};
    size_t length, expected_length;
    snprintf(path, sizeof path, INVALID "%s", name);
    char *text = file_read(path, &length);
    strcpy(strrchr(path, '.'), ".txt");
    char *expected = file_read(path, &expected_length);
    expected[strcspn(expected, "\n")] = '\0';
    names_put(expected, FILE_BYTES, "{workloads}", NULL);
    names_put(expected, FILE_BYTES, "{models}", is_modelled);
    enum status status = refuse(name, text, length, &error);
    if (status != STATUS_USAGE || strcmp(error.text, expected) != 0)
        fail_msg("%s: status %d\n  expected: %s\n  found:    %s", name, (int)status, expected,
                 error.text);
    free(expected);
    free(text);
}

static void test_invalid(void **state)
{
    assert_true(for_each(INVALID, check_invalid) >= 40);
}

/* However a manifest is cut off, it is read or refused. */
static void check_cut(const char *name)
{
    char path[PATH_MAX];
    size_t length;
    struct error error;
    snprintf(path, sizeof path, VALID "%s", name);
    char *text = file_read(path, &length);
    for (size_t cut = 0; cut < length; ++cut) {
        char *copy = malloc(cut + 1); /* of the exact size, for the sanitizer */
        memcpy(copy, text, cut);
        enum status status = refuse(name, copy, cut, &error);
        assert_true(status == STATUS_OK || status == STATUS_USAGE);
        free(copy);
    }
    free(text);
}

static void test_cut(void **state)
{
    assert_true(for_each(VALID, check_cut) > 0);
}

static void test_defaults(void **state)
{
    struct manifest *manifest = read_valid("minimal.ini");
    assert_string_equal(manifest->sweep.title, "");
    assert_string_equal(manifest->sweep.output, "minimal.nc");
    assert_int_equal(manifest->sweep.device, DEVICE_AUTO);
    assert_false(manifest->sweep.replicate);
    assert_false(manifest->sweep.overwrite);
    assert_true(manifest->sweep.timeout == 120);
    assert_int_equal(manifest->sweep.retries, 1);
    assert_true(manifest->sweep.max_failures == -1);
    assert_true(manifest->sweep.max_configurations == 100000);
    assert_true(manifest->sweep.seed == 1);
    assert_int_equal(manifest->measure.warmup, 5);
    assert_int_equal(manifest->measure.iterations, 20);
    assert_true(manifest->measure.stop == 0);
    assert_int_equal(manifest->measure.counters, COUNTERS_AUTO);
    assert_false(manifest->measure.kernels);
    assert_true(manifest->measure.verify);
    assert_true(manifest->peaks.launch && manifest->peaks.transfer);
    assert_true(manifest->peaks.condition[ROOF_ALONE] && manifest->peaks.condition[ROOF_TOGETHER]);
    assert_null(manifest->reuse);
    for (int i = 0; i < LEVEL_COUNT; ++i)
        assert_true(manifest->peaks.memory[i]);
    for (int i = 0; i < PRECISION_COUNT; ++i)
        assert_true(manifest->peaks.compute[i]);
    assert_string_equal(manifest->sections[0].label, "conv2d");
    assert_int_equal(manifest->sections[0].vary, VARY_PRODUCT);
    char text[256];
    manifest_settings_text(manifest, text);
    assert_string_equal(text, "warmup=5 iterations=20 counters=auto kernels=no verify=yes seed=1");
    manifest_destroy(manifest);
}

static void test_settings(void **state)
{
    struct manifest *manifest = read_valid("settings.ini");
    assert_string_equal(manifest->sweep.title, "ResNet-50; conv2d = \"batch\" # 1");
    assert_string_equal(manifest->sweep.output, "out/put.nc");
    assert_string_equal(device_kind_chosen(manifest->sweep.device)->name, "cpu");
    assert_true(manifest->sweep.replicate);
    assert_true(manifest->sweep.overwrite);
    assert_true(manifest->sweep.timeout == 90);
    assert_int_equal(manifest->sweep.retries, 3);
    assert_true(manifest->sweep.max_failures == 7);
    assert_true(manifest->sweep.max_configurations == 2);
    assert_true(manifest->sweep.seed == 42);
    assert_int_equal(manifest->measure.warmup, 2);
    assert_int_equal(manifest->measure.iterations, 9);
    assert_int_equal(manifest->measure.counters, COUNTERS_REQUIRE);
    assert_true(manifest->measure.kernels);
    assert_false(manifest->measure.verify);
    assert_true(manifest->measure.energy);
    assert_false(manifest->peaks.launch);
    assert_false(manifest->peaks.transfer);
    assert_true(manifest->peaks.energy);
    assert_false(manifest->peaks.condition[ROOF_ALONE]);
    assert_true(manifest->peaks.condition[ROOF_TOGETHER]);
    assert_string_equal(manifest->reuse, "roofs; of May.nc");
    for (int i = 0; i < LEVEL_COUNT; ++i)
        assert_int_equal(manifest->peaks.memory[i], i == LEVEL_L2 || i == LEVEL_DRAM);
    for (int i = 0; i < PRECISION_COUNT; ++i)
        assert_int_equal(manifest->peaks.compute[i], i == PRECISION_FP16 || i == PRECISION_FP64);
    char text[256];
    manifest_settings_text(manifest, text);
    assert_string_equal(text,
                        "warmup=2 iterations=9 repeat=5 counters=require kernels=yes verify=no "
                        "energy=yes seed=42");
    manifest_destroy(manifest);
}

static void test_adaptive(void **state)
{
    struct manifest *manifest = read_valid("adaptive.ini");
    assert_int_equal(manifest->measure.iterations, 0);
    assert_true(fabs(manifest->measure.stop - 0.005) < 1e-12);
    assert_true(fabs(manifest->measure.min_time - 0.02) < 1e-12);
    assert_true(manifest->measure.max_time == 15);
    assert_true(manifest->sweep.max_failures == -1);
    char text[256];
    manifest_settings_text(manifest, text);
    assert_string_equal(text, "warmup=5 stop=0.005 min_time=0.02 max_time=15 counters=auto "
                              "kernels=no verify=yes seed=1");
    manifest_destroy(manifest);
}

static const struct axis *axis_of(const struct manifest *manifest, size_t section,
                                  const char *parameter)
{
    int i = workload_parameter(manifest->sections[section].workload, parameter);
    assert_true(i >= 0);
    return &manifest->sections[section].axes[i];
}

static void assert_axis(const struct axis *axis, const int64_t *values, size_t count)
{
    assert_int_equal(axis->count, count);
    for (size_t i = 0; i < count; ++i)
        assert_true(axis->values[i].first == values[i]);
}

/* What the golden plans of unit/plan do not show. */
static void test_axes(void **state)
{
    struct manifest *manifest =
        parse("[conv2d a]\nkernel = 3, 5x7\npadding = same, 0, valid\npass = backward-data\n"
              "batch = 1:1000000:*1000000\n");
    const struct axis *kernel = axis_of(manifest, 0, "kernel");
    assert_axis(kernel, (const int64_t[]){3, 5}, 2);
    assert_true(kernel->values[0].second == 3 && kernel->values[1].second == 7);
    assert_axis(axis_of(manifest, 0, "padding"), (const int64_t[]){PADDING_SAME, 0, PADDING_VALID},
                3);
    assert_axis(axis_of(manifest, 0, "pass"), (const int64_t[]){CONV2D_BACKWARD_DATA}, 1);
    assert_axis(axis_of(manifest, 0, "batch"), (const int64_t[]){1, 1000000}, 2);
    manifest_destroy(manifest);

    manifest = parse("[measure]\ncache = cold\n[lstm]\n");
    assert_axis(axis_of(manifest, 0, "cache"), (const int64_t[]){1}, 1);
    manifest_destroy(manifest);

    /* The step after the last value is beyond 64 bits. */
    manifest = parse("[compute-loop a]\nelements = 34359738368:68719476736:*2147483647\n");
    assert_axis(axis_of(manifest, 0, "elements"), (const int64_t[]){34359738368}, 1);
    manifest_destroy(manifest);
}

static void test_long_lines(void **state)
{
    struct manifest *manifest = read_valid("long_line.ini");
    char title[1024] = "";
    for (int i = 0; i < 60; ++i)
        sprintf(title + strlen(title), "%sword%d", i ? " " : "", i);
    assert_string_equal(manifest->sweep.title, title);
    manifest_destroy(manifest);

    /* A title comes through whole wherever its lines are cut into pieces for the library. */
    for (size_t shift = 0; shift < 64; ++shift) {
        char line[4096] = "";
        memset(line, 'x', shift + 1);
        while (strlen(line) < 700)
            strcat(line, " #1 a;b a,b [c] d=e");
        char *text;
        assert_true(asprintf(&text, "[sweep]\ntitle = %s\n[conv2d]\n", line) > 0);
        manifest = parse(text);
        assert_string_equal(manifest->sweep.title, line);
        manifest_destroy(manifest);
        free(text);
    }
}

static void test_output_name(void **state)
{
    static const char *const rows[][2] = {
        {"sweep.ini", "sweep.nc"}, {"/a/b.c/sweep.ini", "sweep.nc"},
        {"a.b.ini", "a.b.nc"},     {"manifest", "manifest.nc"},
        {".ini", ".ini.nc"},       {"stdin", "stdin.nc"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct manifest *manifest = NULL;
        struct error error;
        assert_int_equal(manifest_parse(rows[i][0], "[lstm]", 6, &manifest, &error), STATUS_OK);
        assert_string_equal(manifest->sweep.output, rows[i][1]);
        assert_string_equal(manifest->path, rows[i][0]);
        manifest_destroy(manifest);
    }
}

static void test_destroy_null(void **state)
{
    manifest_destroy(NULL);
    plan_destroy(NULL);
}

/* ---- where they are read from, and how large they may be ---- */

/* A file of `length` bytes of one kind, removed by the caller. */
static void file_fill(char path[], char byte, size_t length)
{
    int descriptor = mkstemp(path);
    FILE *file = fdopen(descriptor, "wb");
    assert_non_null(file);
    for (size_t i = 0; i < length; ++i)
        putc(byte, file);
    fclose(file);
}

static void assert_unreadable(const char *path, const char *reason)
{
    struct manifest *manifest = NULL;
    struct error error;
    char expected[PATH_MAX + 128];
    snprintf(expected, sizeof expected, "%s: %s", path, reason);
    if (reason[0] == '1') /* a line number */
        snprintf(expected, sizeof expected, "%s:%s", path, reason);
    assert_int_equal(manifest_read(path, &manifest, &error), STATUS_USAGE);
    assert_string_equal(error.text, expected);
    assert_null(manifest);
}

static void test_files(void **state)
{
    assert_unreadable(TEST_DATA_DIR "/missing.ini", "No such file or directory");
    assert_unreadable(TEST_DATA_DIR, "Is a directory");
    char line[] = "/tmp/roofsweep-manifest-XXXXXX", file[] = "/tmp/roofsweep-manifest-XXXXXX";
    file_fill(line, 'x', 10 << 20);
    assert_unreadable(line, "1: a line of 10485760 bytes; at most 4096 are allowed");
    unlink(line);
    file_fill(file, '\n', (16 << 20) + 1);
    assert_unreadable(file, "larger than 16777216 bytes: no manifest; name the file "
                            "that lists what to measure");
    if (geteuid() != 0) { /* root reads everything */
        assert_int_equal(chmod(file, 0), 0);
        assert_unreadable(file, "Permission denied");
    }
    unlink(file);
}

/* Labels are compared with one another, so that there must be an end to them. */
static void test_many_sections(void **state)
{
    enum { MOST = 10000 };
    char *text;
    size_t size;
    struct manifest *manifest = NULL;
    struct error error;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    for (int i = 0; i < MOST; ++i)
        fprintf(stream, "[lstm a%d]\n", i);
    fflush(stream);
    assert_int_equal(manifest_parse("m.ini", text, size, &manifest, &error), STATUS_OK);
    assert_int_equal(manifest->section_count, MOST);
    manifest_destroy(manifest);
    fprintf(stream, "[lstm last]\n");
    fclose(stream);
    assert_int_equal(manifest_parse("m.ini", text, size, &manifest, &error), STATUS_USAGE);
    assert_string_equal(error.text,
                        "m.ini:10001: more than 10000 workload sections; one section can "
                        "have lists and ranges");
    free(text);
}

/* Ranges are counted before they are expanded: a small text must not take a large machine. */
static void test_many_values(void **state)
{
    static const char says[] = ": batch: more than 200000 values in all lists, ranges and excludes "
                               "together; make several manifests of this one";
    static const char *const rows[] = {"batch = 1:65536:+1\n", "vary = zip\nbatch = 1,1,1,1\n"};
    char *text, *line;
    size_t size;
    struct manifest *manifest = NULL;
    struct error error;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; ++row) {
        FILE *stream = open_memstream(&text, &size);
        assert_non_null(stream);
        for (int i = 0; i < 1000; ++i)
            fprintf(stream, "[lstm a%d]\n%s", i, rows[row]);
        fclose(stream);
        /* A value for each cache, too. */
        assert_int_equal(manifest_parse("m.ini", text, size, &manifest, &error),
                         row ? STATUS_OK : STATUS_USAGE);
        if (!row) {
            line = error.text + strlen("m.ini:8");
            assert_string_equal(line, says);
        }
        manifest_destroy(manifest);
        manifest = NULL;
        free(text);
    }
    static const char excludes[] = "batch=1 & batch=1 & batch=1 & batch=1 & batch=1 & batch=1";
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    for (int i = 0; i < 10000; ++i) {
        fprintf(stream, "[lstm a%d]\nexclude = %s", i, excludes);
        fprintf(stream, ", %s, %s, %s\n", excludes, excludes, excludes);
    }
    fclose(stream);
    assert_int_equal(manifest_parse("m.ini", text, size, &manifest, &error), STATUS_USAGE);
    assert_non_null(strstr(error.text, ": exclude: more than 200000 values in all"));
    free(text);
}

/* Neither ends, and a fifo has no size. */
static void test_files_without_end(void **state)
{
    char folder[] = "/tmp/roofsweep-manifest-XXXXXX", path[64];
    assert_unreadable("/dev/zero", "larger than 16777216 bytes: no manifest; name the file that "
                                   "lists what to measure");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t writer = fork();
    assert_true(writer >= 0);
    if (writer == 0) {
        static const char block[4096] = "[lstm a]";
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        while (write(fd, block, sizeof block) > 0)
            ;
        _exit(0);
    }
    assert_unreadable(path, "larger than 16777216 bytes: no manifest; name the file that lists "
                            "what to measure");
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    unlink(path);
    rmdir(folder);
}

static void test_standard_input(void **state)
{
    struct manifest *manifest = NULL;
    struct error error;
    assert_non_null(freopen(VALID "settings.ini", "rb", stdin));
    assert_int_equal(manifest_read("-", &manifest, &error), STATUS_OK);
    assert_string_equal(manifest->path, "stdin");
    assert_int_equal(manifest->measure.iterations, 9);
    manifest_destroy(manifest);
    manifest = NULL;
    assert_non_null(freopen(INVALID "value_zero.ini", "rb", stdin));
    assert_int_equal(manifest_read("-", &manifest, &error), STATUS_USAGE);
    assert_string_equal(error.text, "stdin:2: batch: '0' is not a whole number from 1 to 1048576");
    assert_null(manifest);
}

#ifdef ROOFSWEEP_PROGRAMS
/* ---- formulas ---- */

static const struct parameter formula_axes[] = {
    WORKLOAD_FREE_TEXT("half", 20, "0.5", ""),
    WORKLOAD_FREE_TEXT("mode", 20, "eager", ""),
    WORKLOAD_INTEGER("n", 100, "3", ""),
};

static enum status evaluate(const char *text, double *value, struct error *error)
{
    static const struct workload workload = {.name = "axes", WORKLOAD_TABLE(formula_axes)};
    const struct config point = config_default(&workload);
    bool used[3] = {false};
    const struct template template = {&point, used};
    return template_formula(&template, text, value, error);
}

static void formulas_have_values(void **state)
{
    static const struct {
        const char *text;
        double value; /* NaN: refused */
    } rows[] = {
        {"1", 1},      {" 2 + 3*4 ", 14}, {"(2+3)*4", 20}, {"8/2/2", 2},     {"8-2-2", 4},
        {"n*n", 9},    {"half", 0.5},     {"1e3", 1000},   {".5*n", 1.5},    {"((n))", 3},
        {"", NAN},     {"2*", NAN},       {"(2", NAN},     {"2)", NAN},      {"2 3", NAN},
        {"m", NAN},    {"n-3", NAN},      {"n-4", NAN},    {"1/(n-3)", NAN}, {"-1", NAN},
        {"2**3", NAN}, {"n^2", NAN},      {"n;", NAN},     {"nn", NAN},      {"1e999", NAN},
        {"mode", NAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        double value = NAN;
        struct error error = {""};
        enum status status = evaluate(rows[i].text, &value, &error);
        if (status != (isnan(rows[i].value) ? STATUS_USAGE : STATUS_OK) ||
            !(value == rows[i].value || (isnan(value) && isnan(rows[i].value))))
            fail_msg("'%s': %g, %s", rows[i].text, value, error.text);
    }
}

static void deep_parentheses_are_refused(void **state)
{
    char text[4001];
    double value;
    struct error error;
    memset(text, '(', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(evaluate(text, &value, &error), STATUS_USAGE);
}

#else
static void programs_name_the_option(void **state)
{
    struct manifest *manifest = NULL;
    struct error error;
    static const char text[] = "[program x]\ncommand = true\n";
    assert_int_equal(manifest_parse("m.ini", text, strlen(text), &manifest, &error), STATUS_USAGE);
    assert_string_equal(error.text, "m.ini:1: [program] is not in this build; configure with "
                                    "-DROOFSWEEP_PROGRAMS=ON");
}
#endif

/* ---- --set and --only ---- */

static const char manifest_text[] = "; a comment\n"
                                    "[sweep]\n"
                                    "title = two\n"
                                    "[conv2d first]\n"
                                    "batch = 16, 32 ; of old\n"
                                    "filters = 64\n"
                                    "[ conv2d  b.c ]\n"
                                    "filters = 8\n"
                                    "[lstm]\n"
                                    "batch = 1";

static void assert_amended(const struct amendment *amendment, const char *expected)
{
    struct manifest *manifest = parse(manifest_text);
    struct error error;
    char *text;
    if (amendment_apply(amendment, manifest, &text, &error))
        fail_msg("%s", error.text);
    assert_string_equal(text, expected);
    manifest_destroy(parse(text));
    free(text);
    manifest_destroy(manifest);
}

static void a_parameter_goes_to_all_that_have_it(void **state)
{
    struct amendment amendment = {.sets = {"batch=1,2", "features=8"}, .set_count = 2};
    assert_amended(&amendment,
                   "; a comment\n[sweep]\ntitle = two\n"
                   "[conv2d first]\nbatch = 1,2\n#batch = 16, 32 ; of old\nfilters = 64\n"
                   "[ conv2d  b.c ]\nbatch = 1,2\nfilters = 8\n"
                   "[lstm]\nbatch = 1,2\nfeatures = 8\n#batch = 1\n");
}

static void a_section_can_be_named(void **state)
{
    struct amendment amendment = {.sets = {"b.c.batch=7", "sweep.title=x = y"}, .set_count = 2};
    assert_amended(&amendment, "; a comment\n[sweep]\ntitle = x = y\n#title = two\n"
                               "[conv2d first]\nbatch = 16, 32 ; of old\nfilters = 64\n"
                               "[ conv2d  b.c ]\nbatch = 7\nfilters = 8\n[lstm]\nbatch = 1\n");
}

static void settings_get_their_section(void **state)
{
    struct amendment amendment = {.sets = {"iterations=7", "measure.warmup=0", "timeout=9 s"},
                                  .set_count = 3,
                                  .onlys = {"lstm"},
                                  .only_count = 1};
    assert_amended(&amendment, "; a comment\n[sweep]\ntimeout = 9 s\ntitle = two\n"
                               "#[conv2d first]\n#batch = 16, 32 ; of old\n#filters = 64\n"
                               "#[ conv2d  b.c ]\n#filters = 8\n[lstm]\nbatch = 1\n"
                               "[measure]\niterations = 7\nwarmup = 0\n");
}

static void what_means_nothing_is_refused(void **state)
{
    static const struct {
        struct amendment amendment;
        const char *text;
    } rows[] = {
        {{.sets = {"bach=1"}, .set_count = 1}, "may have the key 'bach'; did you mean 'batch'?"},
        {{.sets = {"iteratoins=1"}, .set_count = 1}, "did you mean 'iterations'?"},
        {{.sets = {"nonsense = 1"}, .set_count = 1}, "may have the key 'nonsense'"},
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
        struct manifest *manifest = parse(manifest_text), *before = manifest;
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
    struct manifest *manifest = parse(manifest_text);
    struct amendment amendment = {
        .sets = {"batch=1,2,3"}, .set_count = 1, .onlys = {"first", "first"}, .only_count = 2};
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
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_adaptive),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_output_name),
        cmocka_unit_test(test_destroy_null),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_many_sections),
        cmocka_unit_test(test_many_values),
        cmocka_unit_test(test_files_without_end),
        cmocka_unit_test(test_standard_input),
#ifdef ROOFSWEEP_PROGRAMS
        cmocka_unit_test(formulas_have_values),
        cmocka_unit_test(deep_parentheses_are_refused),
#else
        cmocka_unit_test(programs_name_the_option),
#endif
        cmocka_unit_test(a_parameter_goes_to_all_that_have_it),
        cmocka_unit_test(a_section_can_be_named),
        cmocka_unit_test(settings_get_their_section),
        cmocka_unit_test(what_means_nothing_is_refused),
        cmocka_unit_test(the_amended_one_is_what_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
