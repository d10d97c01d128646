/* Reads any bytes as a journal, first unchanged, then with a correct checksum in front of each
 * line. Readable records must give results and a table. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "results/journal.h"
#include "results/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes "kind","entry":{...} as a line of a journal, with its checksum. */
static void line_write(FILE *stream, const char *line, size_t length)
{
    fprintf(stream, "{\"xxh3\":\"%016" PRIx64 "\",\"kind\":", XXH3_64bits(line, length));
    fwrite(line, 1, length, stream);
    fputs("}\n", stream);
}

static void lines_write(FILE *stream, const char *text, size_t size)
{
    for (size_t at = 0, length; at < size; at += length + 1) {
        const char *newline = memchr(text + at, '\n', size - at);
        length = newline ? (size_t)(newline - text) - at : size - at;
        line_write(stream, text + at, length);
    }
}

static void results_check(struct results *results)
{
    FILE *stream = fopen("/dev/null", "w");
    struct error error;
    if (!results || !stream)
        abort();
    for (size_t i = 0; i < results->row_count; ++i) {
        struct record record;
        record_init(&record);
        if (results_fetch(results, &results->rows[i], &record, &error))
            abort();
        record_clear(&record);
    }
    if (results_sort(results, NULL, &error))
        abort();
    report_print(results, false, -1, stream);
    fclose(stream);
    results_destroy(results);
}

static void journal_check(const char *path)
{
    struct results *results = NULL;
    struct journal_damage damage = {0};
    struct error error = {""};
    bool torn;
    if (journal_read(path, &results, &torn, &error) == STATUS_OK)
        results_check(results);
    else if (!*error.text || results)
        abort();
    results = NULL;
    if (journal_salvage(path, &results, &damage, &error) == STATUS_OK)
        results_check(results);
    else if (!*error.text || results)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int framed = 0; framed < 2; ++framed) {
        char path[64];
        int fd = memfd_create("journal", MFD_CLOEXEC);
        FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
        if (!stream)
            abort();
        if (framed)
            lines_write(stream, (const char *)data, size);
        else
            fwrite(data, 1, size, stream);
        fflush(stream);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        journal_check(path);
        fclose(stream);
    }
    return 0;
}
