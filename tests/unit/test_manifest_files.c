/* Manifests: where they are read from, and how large they may be. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "manifest/manifest.h"

#define VALID   TEST_DATA_DIR "/manifests/valid/"
#define INVALID TEST_DATA_DIR "/manifests/invalid/"

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
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),          cmocka_unit_test(test_many_sections),
        cmocka_unit_test(test_many_values),    cmocka_unit_test(test_files_without_end),
        cmocka_unit_test(test_standard_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
