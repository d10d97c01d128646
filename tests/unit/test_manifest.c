/* Manifests and plans: the contents of each, and the errors. */
#include "unit.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/amendment.h"
#include "manifest/plan.h"
#include "model/device_kind.h"
#include "model/workloads/conv2d.h"
#ifdef ROOFSWEEP_PROGRAMS
#include "program/section/template.h"
#endif

#define VALID   TEST_DATA_DIR "/manifests/valid/"
#define INVALID TEST_DATA_DIR "/manifests/invalid/"
#define PLANS   TEST_DATA_DIR "/plans/"
#define SWEEPS  TEST_DATA_DIR "/../../sweeps/"

enum { FILE_BYTES = 1 << 18 };
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

/* Calls `check` with each manifest of the folder, by name; returns their number. */
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
    assert_ok(manifest_parse("test.ini", text, strlen(text), &manifest, &failure));
    return manifest;
}

static struct manifest *read_valid(const char *path)
{
    struct manifest *manifest = NULL;
    assert_ok(manifest_read(path, &manifest, &failure));
    return manifest;
}

static struct plan *plan_of(struct manifest *manifest)
{
    struct plan *plan = NULL;
    assert_ok(plan_create(manifest, &plan, &failure));
    manifest_destroy(manifest);
    return plan;
}

/* ---- golden plans ---- */

/* Golden files hold the text of --dry-run; a changed hash is a changed identity. Frees the
 * manifest. */
static void compare_plan(struct manifest *manifest, const char *golden)
{
    char *found = NULL;
    size_t size = 0;
    struct plan *plan = plan_of(manifest);
    FILE *stream = open_memstream(&found, &size);
    plan_print(plan, stream);
    fclose(stream);
    char *expected = file_read(golden, &size);
    for (const char *a = expected, *b = found; *a || *b;) {
        size_t length = strcspn(a, "\n");
        if (strncmp(a, b, length + 1) != 0)
            fail_msg("%s\n  expected: %.*s\n  found:    %.*s", golden, (int)length, a,
                     (int)strcspn(b, "\n"), b);
        a += length + (a[length] == '\n');
        b += length + (b[length] == '\n');
    }
    free(expected);
    free(found);
    plan_destroy(plan);
}

static void check_valid(const char *name)
{
    char path[PATH_MAX], golden[PATH_MAX];
    size_t length;
    snprintf(path, sizeof path, VALID "%s", name);
    snprintf(golden, sizeof golden, PLANS "%.*s.txt", (int)(strlen(name) - 4), name);
    struct manifest *manifest = read_valid(path);
    char *text = file_read(path, &length);
    assert_string_equal(manifest->text, text);
    assert_true(manifest->section_count > 0 || strcmp(name, "roofs_only.ini") == 0);
    free(text);
    /* Other ranks and --gather have no lists, only the text. */
    assert_ok(manifest_embed_lists(manifest, &failure));
    compare_plan(parse(manifest->text), golden);
    compare_plan(manifest, golden);
}

TEST(plans_are_golden)
{
    assert_true(for_each(VALID, check_valid) >= 18);
    compare_plan(read_valid(SWEEPS "paper.ini"), PLANS "paper.txt");
    compare_plan(read_valid(SWEEPS "loops.ini"), PLANS "loops.txt");
}

/* ---- errors ---- */

/* Returns the first error of reading and planning. */
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

/* Replaces `mark` in the line by the names of workloads. */
static void names_put(char *line, size_t size, const char *mark,
                      bool (*filter)(const struct workload *workload))
{
    char *at = strstr(line, mark), rest[256];
    if (!at)
        return;
    const char *separator = "";
    snprintf(rest, sizeof rest, "%s", at + strlen(mark));
    for (size_t i = 0; workloads[i]; ++i)
        if (!filter || filter(workloads[i])) {
            at += snprintf(at, size - (size_t)(at - line), "%s%s", separator, workloads[i]->name);
            separator = ", ";
        }
    snprintf(at, size - (size_t)(at - line), "%s", rest);
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

TEST(errors_are_golden)
{
    assert_true(for_each(INVALID, check_invalid) >= 40);
}

/* Invalid lists, each with a part of its error. */
TEST(wrong_lists_are_named)
{
    static const char *const rows[][2] = {
        {"|name,hight\n|x,3", "m.ini:3: unknown column 'hight' of conv2d; did you mean 'height'?"},
        {"|workload,dtype\n|lstm,3",
         "m.ini:3: unknown column 'dtype' of conv2d; did you mean 'prec"},
        {"|name,name\n|x,y", "m.ini:3: column 'name' comes twice"},
        {"|name,height\n|x", "m.ini:4: the header has 2 fields, and this line 1"},
        {"|height\n|\"3", "m.ini:4: a double quote is not closed; a field ends in its line"},
        {"|height\n|\"3\"4", "m.ini:4: '4' after a closing quote"},
        {"|workload\n|conv", "m.ini:4: unknown workload 'conv'; did you mean 'conv2d'?"},
        {"|workload,features\n|lstm,3\n|conv2d,3", "m.ini:5: unknown column 'features' of conv2d"},
        {"|workload\n|lstm", "m.ini: the list has no configuration of conv2d"},
        {"|name,count\n|x,0", "m.ini:4: count: '0' is not a whole number from 1"},
        {"|name\n|a;b", "m.ini:4: name: 'a;b' has a ';', which separates names"},
        {"|batch\n|2\nbatch = 4", "m.ini:4: batch is also a key of [conv2d conv2d]; leave out one"},
        {"list = b", "m.ini:3: key 'list' is here a second time; first in line 2"},
        {"[lstm]\n|batch", "m.ini:4: a line of a list; write 'list = NAME' above its lines"},
        {"", "m.ini:2: list: " INVALID "list.csv.: cannot open"},
        {NULL, INVALID "list.csv:4: height: 'nine' is not a whole number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[PATH_MAX];
        int length = snprintf(text, sizeof text, "[conv2d]\nlist = " INVALID "list.csv%s\n%s\n",
                              rows[i][0] ? "." : "", rows[i][0] ? rows[i][0] : "");
        assert_fails(refuse("m.ini", text, (size_t)length, &failure), STATUS_USAGE, rows[i][1]);
    }
}

/* ---- settings ---- */

/* `measure` has the settings of manifest_settings_text, `sweep` all others. */
static void assert_settings(const char *name, const char *sweep, const char *measure)
{
    char path[PATH_MAX], text[1024], *at = text, *end = text + sizeof text;
    snprintf(path, sizeof path, VALID "%s", name);
    struct manifest *m = read_valid(path);
    at += snprintf(at, end - at,
                   "'%s' '%s' %s replicate=%d %g s retries=%d most=%llu "
                   "launch=%d transfer=%d energy=%d alone=%d together=%d reuse='%s'",
                   m->sweep.title, m->sweep.output,
                   m->sweep.device == DEVICE_AUTO ? "auto"
                                                  : device_kind_chosen(m->sweep.device)->name,
                   m->sweep.replicate, m->sweep.timeout, m->sweep.retries,
                   (unsigned long long)m->sweep.max_configurations, m->peaks.launch,
                   m->peaks.transfer, m->peaks.energy, m->peaks.condition[ROOF_ALONE],
                   m->peaks.condition[ROOF_TOGETHER], m->reuse ? m->reuse : "");
    for (int i = 0; i < LEVEL_COUNT; ++i)
        if (m->peaks.memory[i])
            at += snprintf(at, end - at, " %s", memory_level_name[i]);
    for (int i = 0; i < PRECISION_COUNT; ++i)
        if (m->peaks.compute[i])
            at += snprintf(at, end - at, " %s", precision_info[i].name);
    assert_string_equal(text, sweep);
    manifest_settings_text(m, text);
    assert_string_equal(text, measure);
    manifest_destroy(m);
}

TEST(settings_are_read)
{
    assert_settings("minimal.ini",
                    "'' 'minimal.nc' auto replicate=0 120 s retries=1 "
                    "most=100000 launch=1 transfer=1 energy=0 alone=1 together=1 reuse='' dram l3 "
                    "l2 l1 fp64 fp32 tf32 fp16 bf16 fp8 fp4 int8",
                    "warmup=5 iterations=20 cpu:stop=0.02,min_time=0.2,max_time=2 counters=auto "
                    "kernels=no verify=yes seed=1");
    assert_settings("settings.ini",
                    "'ResNet-50; conv2d = \"batch\" # 1' 'out/put.nc' cpu replicate=1 90 "
                    "s retries=3 most=2 launch=0 transfer=0 energy=1 alone=0 together=1 "
                    "reuse='roofs; of May.nc' dram l2 fp64 fp16",
                    "warmup=2 iterations=9 repeat=5 counters=require kernels=yes verify=no "
                    "energy=yes seed=42");
    assert_settings("adaptive.ini",
                    "'' 'adaptive.nc' auto replicate=0 120 s retries=1 "
                    "most=100000 launch=1 transfer=1 energy=0 alone=1 together=1 reuse='' dram l3 "
                    "l2 l1 fp64 fp32 tf32 fp16 bf16 fp8 fp4 int8",
                    "warmup=5 stop=0.005 min_time=0.02 max_time=15 counters=auto kernels=no "
                    "verify=yes seed=1");
    struct manifest *manifest = parse("[conv2d]\n");
    assert_string_equal(manifest->sections[0].label, "conv2d");
    assert_int_equal(manifest->sections[0].vary, VARY_PRODUCT);
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

/* Values that golden plans do not show. */
TEST(axes_are_read)
{
    struct manifest *manifest =
        parse("[conv2d a]\nkernel = 3, 5x7\npadding = same, 0, valid\npass = backward-data\n"
              "batch = 1:1000000:*1000000\nstride = 1:4:*2, 2x1\n");
    const struct axis *kernel = axis_of(manifest, 0, "kernel");
    assert_axis(kernel, (const int64_t[]){3, 5}, 2);
    assert_true(kernel->values[0].second == 3 && kernel->values[1].second == 7);
    const struct axis *stride = axis_of(manifest, 0, "stride");
    assert_axis(stride, (const int64_t[]){1, 2, 4, 2}, 4);
    assert_true(stride->values[1].second == 2 && stride->values[3].second == 1);
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

TEST(long_lines_are_whole)
{
    struct manifest *manifest = read_valid(VALID "long_line.ini");
    char title[1024] = "";
    for (int i = 0; i < 60; ++i)
        sprintf(title + strlen(title), "%sword%d", i ? " " : "", i);
    assert_string_equal(manifest->sweep.title, title);
    manifest_destroy(manifest);
}

TEST(outputs_have_default_names)
{
    static const char *const rows[][2] = {
        {"sweep.ini", "sweep.nc"}, {"/a/b.c/sweep.ini", "sweep.nc"},
        {"a.b.ini", "a.b.nc"},     {"manifest", "manifest.nc"},
        {".ini", ".ini.nc"},       {"stdin", "stdin.nc"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct manifest *manifest = NULL;
        assert_ok(manifest_parse(rows[i][0], "[lstm]", 6, &manifest, &failure));
        assert_string_equal(manifest->sweep.output, rows[i][1]);
        assert_string_equal(manifest->path, rows[i][0]);
        manifest_destroy(manifest);
    }
}

/* ---- files, and limits ---- */

/* Creates a file of `length` equal bytes, which the caller removes. */
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
    char expected[PATH_MAX + 128];
    snprintf(expected, sizeof expected, "%s: %s", path, reason);
    if (reason[0] == '1') /* a line number */
        snprintf(expected, sizeof expected, "%s:%s", path, reason);
    assert_fails_with(manifest_read(path, &manifest, &failure), STATUS_USAGE, expected);
    assert_null(manifest);
}

TEST(unreadable_files_are_refused)
{
    assert_unreadable(TEST_DATA_DIR "/missing.ini", "cannot open: No such file or directory");
    assert_unreadable(TEST_DATA_DIR, "it is no regular file; '-' reads standard input");
    char line[] = "/tmp/roofsweep-manifest-XXXXXX", file[] = "/tmp/roofsweep-manifest-XXXXXX";
    file_fill(line, 'x', 10 << 20);
    assert_unreadable(line, "1: a line of 10485760 bytes; at most 4096 are allowed");
    unlink(line);
    file_fill(file, '\n', (16 << 20) + 1);
    assert_unreadable(file, "larger than 16777216 bytes: no manifest; name the file "
                            "that lists what to measure");
    if (geteuid() != 0) { /* root reads everything */
        assert_int_equal(chmod(file, 0), 0);
        assert_unreadable(file, "cannot open: Permission denied");
    }
    unlink(file);
    assert_int_equal(mkfifo(file, 0600), 0); /* opening it would wait for a writer */
    assert_unreadable(file, "it is no regular file; '-' reads standard input");
    unlink(file);
}

/* Parses `count` sections [lstm aN] with these lines, and returns the error. */
static enum status parse_sections(int count, const char *lines, struct error *error)
{
    char *text;
    size_t size;
    struct manifest *manifest = NULL;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    for (int i = 0; i < count; ++i)
        fprintf(stream, "[lstm a%d]\n%s", i, lines);
    fclose(stream);
    enum status status = manifest_parse("m.ini", text, size, &manifest, error);
    assert_true(status || manifest->section_count == (size_t)count);
    manifest_destroy(manifest);
    free(text);
    return status;
}

/* Ranges are counted before they are expanded, so that a small text cannot fill the memory. */
TEST(sections_and_values_have_limits)
{
    static const char rule[] = "batch=1 & batch=1 & batch=1 & batch=1 & batch=1 & batch=1";
    char lines[512];
    assert_ok(parse_sections(10000, "", &failure));
    assert_fails_with(parse_sections(10001, "", &failure), STATUS_USAGE,
                      "m.ini:10001: more than 10000 workload sections; one section "
                      "can have lists and ranges");
    assert_int_equal(parse_sections(1000, "batch = 1:65536:+1\n", &failure), STATUS_USAGE);
    assert_string_equal(failure.text + strlen("m.ini:8"),
                        ": batch: more than 200000 values in all lists, ranges and excludes "
                        "together; make several manifests of this one");
    /* Each section also has a value for its cache. */
    assert_ok(parse_sections(1000, "vary = zip\nbatch = 1,1,1,1\n", &failure));
    snprintf(lines, sizeof lines, "exclude = %s, %s, %s, %s\n", rule, rule, rule, rule);
    assert_fails(parse_sections(10000, lines, &failure), STATUS_USAGE,
                 ": exclude: more than 200000 values in all");
}

TEST(standard_input_is_read)
{
    struct manifest *manifest = NULL;
    assert_non_null(freopen(VALID "settings.ini", "rb", stdin));
    assert_ok(manifest_read("-", &manifest, &failure));
    assert_string_equal(manifest->path, "stdin");
    assert_int_equal(manifest->measure.iterations, 9);
    manifest_destroy(manifest);
    manifest = NULL;
    assert_non_null(freopen(INVALID "value_zero.ini", "rb", stdin));
    assert_fails_with(manifest_read("-", &manifest, &failure), STATUS_USAGE,
                      "stdin:2: batch: '0' is not a whole number from 1 to 1048576");
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

TEST(formulas_have_values)
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
        {"mode", NAN}, {"0x10", NAN},     {"1+0X1", NAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        double value = NAN;
        enum status status = evaluate(rows[i].text, &value, &failure);
        if (status != (isnan(rows[i].value) ? STATUS_USAGE : STATUS_OK) ||
            !(value == rows[i].value || (isnan(value) && isnan(rows[i].value))))
            fail_msg("'%s': %g, %s", rows[i].text, value, failure.text);
    }
}

TEST(deep_parentheses_are_refused)
{
    char text[4001];
    double value;
    memset(text, '(', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(evaluate(text, &value, &failure), STATUS_USAGE);
}

/* Keys are compared one by one: without a limit, 10^5 of them took 24 s. */
TEST(programs_of_many_keys_are_refused)
{
    char text[8192] = "[program x]\ncommand = true\n", *at = text + strlen(text);
    struct manifest *manifest;
    for (int i = 1; i <= 256; ++i)
        at += sprintf(at, "env.V%d = 1\n", i);
    assert_fails_with(manifest_parse("m.ini", text, strlen(text), &manifest, &failure),
                      STATUS_USAGE, "m.ini:258: more than 256 keys in [program x]");
}

#else
TEST(programs_name_the_option)
{
    struct manifest *manifest = NULL;
    static const char text[] = "[program x]\ncommand = true\n";
    assert_fails_with(manifest_parse("m.ini", text, strlen(text), &manifest, &failure),
                      STATUS_USAGE,
                      "m.ini:1: [program] is not in this build; configure with "
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
    assert_ok(amendment_read(amendment, &manifest, &failure));
    assert_string_equal(manifest->text, expected);
    manifest_destroy(manifest);
}

TEST(a_key_goes_to_all_sections_that_have_it)
{
    struct amendment amendment = {.sets = {"batch=1,2", "features=8"}, .set_count = 2};
    assert_amended(&amendment,
                   "; a comment\n[sweep]\ntitle = two\n"
                   "[conv2d first]\nbatch = 1,2\n#batch = 16, 32 ; of old\nfilters = 64\n"
                   "[ conv2d  b.c ]\nbatch = 1,2\nfilters = 8\n"
                   "[lstm]\nbatch = 1,2\nfeatures = 8\n#batch = 1\n");
}

TEST(a_label_selects_one_section)
{
    struct amendment amendment = {.sets = {"b.c.batch=7", "sweep.title=x = y"}, .set_count = 2};
    assert_amended(&amendment, "; a comment\n[sweep]\ntitle = x = y\n#title = two\n"
                               "[conv2d first]\nbatch = 16, 32 ; of old\nfilters = 64\n"
                               "[ conv2d  b.c ]\nbatch = 7\nfilters = 8\n[lstm]\nbatch = 1\n");
}

TEST(settings_get_a_section)
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

/* If workloads share a label, a parameter goes to those that have it. */
TEST(a_parameter_goes_to_workloads_of_its_label)
{
    struct manifest *manifest = parse("[conv2d n]\n[lstm n]\n[conv2d m]\n");
    struct amendment amendment = {.sets = {"n.kernel=1", "n.batch=2"}, .set_count = 2};
    assert_ok(amendment_read(&amendment, &manifest, &failure));
    assert_string_equal(manifest->text,
                        "[conv2d n]\nkernel = 1\nbatch = 2\n[lstm n]\nbatch = 2\n[conv2d m]\n");
    manifest_destroy(manifest);
}

/* A setting from --set replaces lines of the manifest that it excludes. The manifest keeps its
 * folder. */
TEST(settings_replace_what_they_exclude)
{
    struct manifest *manifest = parse("[measure]\niterations = 9\nwarmup = 1\n[lstm]\nbatch = 1\n");
    struct amendment amendment = {.sets = {"stop=2%", "max_time=3 s"}, .set_count = 2};
    manifest->folder = strdup("/there");
    assert_ok(amendment_read(&amendment, &manifest, &failure));
    assert_string_equal(manifest->text, "[measure]\nstop = 2%\nmax_time = 3 s\n#iterations = 9\n"
                                        "warmup = 1\n[lstm]\nbatch = 1\n");
    assert_string_equal(manifest->folder, "/there");
    manifest_destroy(manifest);
}

TEST(wrong_amendments_are_refused)
{
    static const struct {
        struct amendment amendment;
        const char *text;
    } rows[] = {
        {{.sets = {"bach=1"}, .set_count = 1}, "may have the key 'bach'; did you mean 'batch'?"},
        {{.sets = {"iteratoins=1"}, .set_count = 1}, "did you mean 'iterations'?"},
        {{.sets = {"dtype=fp16"}, .set_count = 1}, "'dtype'; did you mean 'precision'?"},
        {{.sets = {"precision=float32"}, .set_count = 1}, "did you mean 'fp32'?"},
        {{.sets = {"nonsense = 1"}, .set_count = 1}, "may have the key 'nonsense'"},
        {{.sets = {"list=a.csv"}, .set_count = 1}, "needs the label of a section: LABEL.list"},
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
        {{.sets = {"first.#x=1"}, .set_count = 1}, "--set 'first.#x=1' has a comment"},
        {{.sets = {"title=a ;b"}, .set_count = 1}, "--set 'title=a ;b' has a comment"},
        {{.sets = {"title=\xff"}, .set_count = 1}, "--set:2: not UTF-8 text"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct manifest *manifest = parse(manifest_text), *before = manifest;
        assert_fails(amendment_read(&rows[i].amendment, &manifest, &failure), STATUS_USAGE,
                     rows[i].text);
        assert_ptr_equal(manifest, before);
        manifest_destroy(manifest);
    }
}

/* Its lines are not those of the user's file. */
TEST(errors_of_an_amended_plan_say_so)
{
    struct manifest *manifest = parse("[matmul a]\nm = 32, 64\n");
    struct amendment amendment = {.sets = {"a.exclude=m=32, m=64"}, .set_count = 1};
    struct plan *plan;
    assert_ok(amendment_read(&amendment, &manifest, &failure));
    assert_fails(plan_create(manifest, &plan, &failure), STATUS_USAGE,
                 "after --set and --only: test.ini:2: exclude leaves out");
    manifest_destroy(manifest);
}

/* ---- plans ---- */

/* Each committed sweep has the expected configurations. All are possible and have a cost. */
TEST(sweeps_have_their_points)
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
        {SWEEPS "paper_frameworks.ini", 5 * 11 * 4 + 7 + 4 * 13 * 4 + 13 * 2, 0, 13 * 2},
        {SWEEPS "frameworks_cpu.ini", 4 * (8 + 10), 0, 0},
#endif
        {SWEEPS "algorithms.ini", 2 * 7 * (3 + 2) + 3 * 2 * 2 * 4, 2 * 7, 0},
        {SWEEPS "loops.ini", 2 * 2 + 2 + 2 + 1, 0, 0},
        {SWEEPS "guide.ini", 5 + 12 + 5, 2, 0},
        {SWEEPS "handwritten.ini", 6 + 12 + 9 + 8 + 2 + 6 + 4 + 8 + 4 + 1, 0, 0},
        {SWEEPS "resnet50.ini", 2 * 26, 2 * 6, 0},
        {SWEEPS "recurrent.ini", 32 + 2 + 2 + 6, 0, 0},
        {SWEEPS "training.ini", 2 * (1 + 1 + 1 + 2 + 4 * 2) + 6 * 5 - 2 + 2 + 8, 2, 6},
        {SWEEPS "precisions.ini", 4 + 1 + 4 + 4, 0, 0},
        {SWEEPS "quickstart.ini", 3 * 3 + 4 * 2 - 1, 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct plan *plan = plan_of(read_valid(rows[i].path));
        if (plan->count != rows[i].count || plan->merged != rows[i].merged ||
            plan->excluded != rows[i].excluded)
            fail_msg("%s: %zu configurations, %zu merged, %zu excluded", rows[i].path, plan->count,
                     plan->merged, plan->excluded);
        for (size_t j = 0; j < plan->count; ++j) {
            assert_ok(config_check(&plan->items[j].config, &failure));
            assert_true(plan->items[j].cost.flops > 0 && plan->items[j].cost.bytes > 0);
        }
        plan_destroy(plan);
    }
}

/* Each committed list has the published multiply-adds of its network for one image (U-Net and
 * GPT-2: sums by hand), or all lines of DeepBench. */
TEST(lists_are_their_networks)
{
    static const struct {
        const char *list, *workloads[5], *lines;
        double count, giga;
    } rows[] = {
        {"resnet50", {"conv2d", "linear"}, "batch = 1\n", 54, 4.089},
        {"mobilenet_v2", {"conv2d", "linear"}, "batch = 1\n", 53, 0.3008},
        {"unet", {"conv2d"}, "batch = 1\n", 23, 150.4},
        {"gpt2_medium", {"linear", "attention"}, "", 4 * 24 + 1 + 24, 387.9},
        {"deepbench-conv2d", {"conv2d"}, "", 217, 0},
        {"deepbench-recurrent", {"lstm"}, "", 125, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[1024] = "";
        double count = 0, flops = 0;
        for (const char *const *workload = rows[i].workloads; *workload; ++workload)
            sprintf(text + strlen(text), "[%s net]\nlist = " SWEEPS "lists/%s.csv\n%s", *workload,
                    rows[i].list, rows[i].lines);
        struct plan *plan = plan_of(parse(text));
        for (size_t j = 0; j < plan->count; ++j) {
            assert_true(plan->items[j].cost.flops > 0);
            count += (double)plan->items[j].count;
            flops += (double)plan->items[j].count * plan->items[j].cost.flops;
        }
        if (count != rows[i].count ||
            (rows[i].giga != 0 && fabs(flops / 2e9 / rows[i].giga - 1) > 1e-3))
            fail_msg("%s: %g layers of %g GMAC", rows[i].list, count, flops / 2e9);
        plan_destroy(plan);
    }
}

#ifdef ROOFSWEEP_PROGRAMS
TEST(an_ungraphed_value_may_be_longer_than_its_axis)
{
    plan_destroy(plan_of(parse("[program p]\ncommand = echo {mode}\nmode = max\n"
                               "ungraphed.mode = default\n")));
}

/* Axes keep leading zeros. Formulas are exact up to 2^53. */
TEST(programs_keep_all_digits)
{
    struct plan *plan = plan_of(parse("[program p]\ncommand = run {case} {n}\ncase = 007\n"
                                      "n = 1125899906842625\nflops = n\n"));
    assert_string_equal(config_value(&plan->items[0].config, "command").text,
                        "run 007 1125899906842625");
    assert_true(plan->items[0].cost.flops == 1125899906842625.0);
    plan_destroy(plan);
}

/* Without a label an axis is set in programs that have it. */
TEST(a_setting_goes_to_axes_of_programs)
{
    struct manifest *manifest = parse("[measure]\nwarmup = 1\n[conv2d c]\n[program p]\n"
                                      "command = run {batch}\nbatch = 8\niterations = 20\n");
    struct amendment amendment = {
        .sets = {"iterations=7", "batch=2", "precision=fp16", "region=all"}, .set_count = 4};
    assert_ok(amendment_read(&amendment, &manifest, &failure));
    assert_string_equal(manifest->text,
                        "[measure]\niterations = 7\nwarmup = 1\n[conv2d c]\n"
                        "batch = 2\nprecision = fp16\n[program p]\nbatch = 2\nregion = all\n"
                        "command = run {batch}\n#batch = 8\niterations = 20\n");
    manifest_destroy(manifest);
}
#endif

/* A row of two sections keeps the places of both, also if one label ends with the other. */
TEST(all_labels_of_a_listed_row_count)
{
    struct plan *plan = plan_of(parse("[conv2d subnet]\nlist = " SWEEPS "lists/unet.csv\n"
                                      "[conv2d net]\nlist = " SWEEPS "lists/unet.csv\n"));
    const struct plan_item *first = &plan->items[0];
    assert_true(first->count == 2);
    assert_true(strncmp(first->listed, "subnet:1 ", 9) == 0 && strstr(first->listed, "; net:1 "));
    plan_destroy(plan);
}

TEST(rules_exclude)
{
    /* clang-format off */
    static const struct {
        const char *rule;
        size_t left; /* of 72: batch 1, 2, 4; kernel 1, 3, 3x5, 5; padding same, 0, 1; two passes */
    } rows[] = {
        {"batch = 1", 48}, {"batch == 1", 48}, {"batch != 1", 24}, {"batch < 2", 48},
        {"batch <= 2", 24}, {"batch > 2", 48}, {"batch >= 2", 24}, {"batch=1&batch=2", 72},
        {"batch=1,batch=2", 24}, {"kernel = 3", 54}, {"kernel = 3x5", 54}, {"kernel != 3x5", 18},
        {"kernel >= 3", 18}, {"kernel > 3", 54}, {"kernel < 5", 36}, {"kernel <= 5x5", 0},
        {"padding = same", 48}, {"padding != same", 24}, {"padding >= 0", 24},
        {"padding < 1", 48}, {"pass = forward", 36},
        {"pass != forward & batch > 1 & kernel = 1 & padding = 1, batch = 1 & padding = 0", 62},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[512];
        snprintf(text, sizeof text,
                 "[conv2d]\nbatch = 1, 2, 4\nkernel = 1, 3, 3x5, 5\npadding = same, 0, 1\n"
                 "pass = forward, backward-data\nexclude = %s\n",
                 rows[i].rule);
        struct manifest *manifest = parse(text);
        struct plan *plan = NULL;
        enum status status = plan_create(manifest, &plan, &failure);
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

/* 100,000 configurations, the default limit; the second section repeats the first. */
TEST(large_plans_merge_repetitions)
{
    struct plan *plan = plan_of(parse("[lstm a]\nbatch = 1:250:+1\nhidden = 1:200:+1\n"
                                      "[lstm b]\nhidden = 1:200:+1\nbatch = 1:250:+1\n"));
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
