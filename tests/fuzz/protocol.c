/* Reads any bytes as a line between rank and worker: the result is an error with a reason, or a
 * message that is unchanged after writing and reading. Records are then added to results, and the
 * table is printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/protocol.h"
#include "results/journal.h"
#include "results/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void request_check(const char *line)
{
    struct request request;
    struct error error = {""};
    if (request_decode(line, &request, &error)) {
        if (!*error.text)
            abort();
        return;
    }
    char *text = request_encode(&request);
    if (request_decode(text, &request, &error))
        abort();
    free(text);
}

/* The record's text goes into a journal, as in a sweep. A journal must accept every valid reply. */
static void report_check(struct reply *reply)
{
    char path[] = "/tmp/roofsweep-fuzz-XXXXXX";
    struct error error;
    struct results *results;
    struct journal *journal;
    bool torn;
    int fd = mkstemp(path);
    FILE *stream = fopen("/dev/null", "w");
    strcpy(reply->device.uuid, "u");
    memcpy(reply->device.key, reply->record.device_key, sizeof reply->device.key);
    if (!*reply->device.key)
        strcpy(reply->device.key, "k");
    if (fd < 0 || !stream || journal_open(path, JOURNAL_REPLACE, &journal, &error) ||
        journal_append(journal, "device", device_encode(&reply->device), &error) ||
        (reply->kind == REPLY_RECORD &&
         journal_append_text(journal, "record", reply->record_text, &error)) ||
        journal_read(path, &results, &torn, &error) || results_sort(results, NULL, &error))
        abort();
    report_print(results, false, -1, stream);
    fclose(stream);
    results_destroy(results);
    journal_close(journal);
    close(fd);
    unlink(path);
}

static void reply_check(const char *line)
{
    struct reply reply;
    struct error error = {""};
    reply_init(&reply);
    if (reply_decode(line, &reply, &error) == STATUS_OK) {
        report_check(&reply);
        char *first = reply_encode(&reply);
        if (reply_decode(first, &reply, &error))
            abort();
        char *second = reply_encode(&reply);
        if (strcmp(first, second) != 0)
            abort();
        free(first);
        free(second);
    } else if (!*error.text) {
        abort();
    }
    reply_clear(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = strndup((const char *)data, size);
    if (!line)
        abort();
    line[strcspn(line, "\n")] = '\0'; /* a newline ends the line */
    request_check(line);
    reply_check(line);
    free(line);
    return 0;
}
