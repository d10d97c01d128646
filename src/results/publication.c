#include "results/publication.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "results/journal.h"
#include "results/outputs.h"
#include "results/report.h"
#include "results/results_nc.h"

void summary_format(const struct summary *summary, int status, double seconds,
                    char text[SUMMARY_TEXT])
{
    size_t total = 0;
    int used;
    for (int i = 0; record_status_name[i]; ++i)
        total += summary->rows[i];
    used = snprintf(text, SUMMARY_TEXT, "summary status=%d rows=%zu", status, total);
    for (int i = 0; record_status_name[i]; ++i)
        used += snprintf(text + used, SUMMARY_TEXT - (size_t)used, " %s=%zu", record_status_name[i],
                         summary->rows[i]);
    if (summary->left != SIZE_MAX)
        used += snprintf(text + used, SUMMARY_TEXT - (size_t)used, " left=%zu", summary->left);
    snprintf(text + used, SUMMARY_TEXT - (size_t)used,
             " devices=%zu roofs=%zu seconds=%.1f file=%s", summary->devices, summary->roofs,
             seconds, summary->file);
}

/* A closed standard output is no failure, because the result file is already written. */
static enum status print_table(const struct results *results, const struct publication *publication,
                               const struct log *log, struct error *error)
{
    struct printout table;
    bool unread = false;
    TRY(printout_open(&table, error));
    report_print(results, publication->json, STDOUT_FILENO, table.stream);
    enum status status = printout_close(&table, &publication->patience, &unread, error);
    if (status && unread) {
        log_print(log, LOG_WARNING, "the table: %s", error->text);
        status = STATUS_OK;
    }
    return status;
}

static enum status write_file(const struct results *results, const struct publication *publication,
                              const char *netcdf, char written[LINK_TARGET], struct error *error)
{
    const char *journal = publication->journal;
    if (results->row_count == 0 && results->device_count == 0)
        return error_set(error, STATUS_SYSTEM, "%s: it has no rows and no devices yet", journal);
    snprintf(written, LINK_TARGET, "%s", netcdf);
    enum status status =
        results_nc_write(results, netcdf, publication->overwrite ? NULL : written, error);
    return error_prefix(error, status, "%s keeps every row, for --gather%s", journal,
                        access(netcdf, F_OK) == 0 ? " with --overwrite" : "");
}

/* Returns the plan of a session's manifest; NULL: this version rejects the manifest. */
static struct plan *plan_of(const struct session *session)
{
    struct manifest *manifest = NULL;
    struct plan *plan = NULL;
    struct error unread;
    if (session->manifest_text &&
        manifest_parse(session->manifest_path, session->manifest_text,
                       strlen(session->manifest_text), &manifest, &unread) == STATUS_OK &&
        plan_create(manifest, &plan, &unread) != STATUS_OK)
        plan = NULL;
    manifest_destroy(manifest);
    return plan;
}

/* Sorts by `plan`, or, if `plan` is NULL, by the plan of the last session. Rows that this plan
 * lacks get their list entries from the plans of earlier sessions. */
static enum status sort(struct results *results, const struct plan *plan, struct error *error)
{
    size_t session = results->session_count;
    struct plan *last = !plan && session > 0 ? plan_of(&results->sessions[--session]) : NULL;
    plan = plan ? plan : last;
    ssize_t left = plan ? results_list(results, plan) : 1;
    while (left > 0 && session-- > 0) {
        struct plan *earlier = plan_of(&results->sessions[session]);
        left = earlier ? results_list(results, earlier) : left;
        plan_destroy(earlier);
    }
    enum status status = left < 0 ? error_set(error, STATUS_SYSTEM, "no memory for the lists")
                                  : results_sort(results, plan, error);
    plan_destroy(last);
    return status;
}

static void warn_unplanned(const struct results *results, const struct log *log)
{
    enum { NAMES_MAX = 8 };
    const struct row *rows = &results->rows[results->row_count];
    char names[1024] = "";
    size_t used = 0;
    for (size_t i = 0; i < results->unplanned && i < NAMES_MAX; ++i)
        used +=
            (size_t)snprintf(names + used, sizeof names - used, "%s%.100s (%s)", i > 0 ? ", " : "",
                             rows[i].name, record_status_name[rows[i].status]);
    if (results->unplanned > 0)
        log_print(log, LOG_WARNING,
                  "left out, as the manifest no longer has them: %s%s; the journal keeps them",
                  names, results->unplanned > NAMES_MAX ? ", ..." : "");
}

static enum status publish(struct results *results, const struct publication *publication,
                           const char *netcdf, const struct log *log, struct summary *summary,
                           struct error *error)
{
    char written[LINK_TARGET];
    TRY(sort(results, publication->plan, error));
    warn_unplanned(results, log);
    TRY(write_file(results, publication, netcdf, written, error));
    *summary = (struct summary){.devices = results->device_count, .left = SIZE_MAX};
    snprintf(summary->file, sizeof summary->file, "%s", written);
    size_t failed_rounds = 0;
    for (size_t i = 0; i < results->row_count; ++i) {
        const struct row *row = &results->rows[i];
        ++summary->rows[row->status];
        for (size_t j = 1; j < row->round_count; ++j)
            failed_rounds += row->rounds[j].there && isnan(row->rounds[j].time);
    }
    for (size_t i = 0; i < results->device_count; ++i)
        summary->roofs += (size_t)results->devices[i].roof_count;
    enum status status = print_table(results, publication, log, error);
    log_print(log, LOG_INFO, "%zu rows and %zu roofs in %s", results->row_count, summary->roofs,
              written);
    if (status == STATUS_OK && strcmp(written, netcdf) != 0)
        return error_set(error, STATUS_SYSTEM,
                         "%s has appeared meanwhile and is not replaced: the results are in %s",
                         netcdf, written);
    if (status == STATUS_OK && summary->rows[RECORD_FAILED] > 0)
        return error_set(error, STATUS_FAILED,
                         "%zu of %zu rows failed: the table, and the variable error of %s, have "
                         "the reasons",
                         summary->rows[RECORD_FAILED], results->row_count, written);
    if (status == STATUS_OK && failed_rounds > 0)
        return error_set(error, STATUS_FAILED,
                         "%zu later rounds failed: round_time of %s lacks them", failed_rounds,
                         written);
    return status;
}

static enum status netcdf_name(const struct publication *publication, char netcdf[OUTPUTS_PATH],
                               struct error *error)
{
    static const char suffix[] = ".journal";
    size_t length = strlen(publication->journal), cut = sizeof suffix - 1;
    bool has_suffix = length > cut && strcmp(publication->journal + length - cut, suffix) == 0;
    if (!publication->netcdf && !has_suffix)
        return error_set(error, STATUS_USAGE,
                         "'%s' does not end in %s: name OUTPUT%s, or say --output FILE",
                         publication->journal, suffix, suffix);
    const char *name = publication->netcdf ? publication->netcdf : publication->journal;
    const size_t size = publication->netcdf ? strlen(name) : length - cut;
    if (size >= OUTPUTS_PATH)
        return error_set(error, STATUS_USAGE, "the output's name is too long");
    snprintf(netcdf, OUTPUTS_PATH, "%.*s", (int)size, name);
    return STATUS_OK;
}

static enum status make(const struct publication *publication, const struct log *log,
                        struct summary *summary, struct error *error)
{
    const char *journal = publication->journal;
    const char *source = publication->source ? publication->source : journal;
    struct results *results;
    struct journal_damage damage = {.count = 0};
    char netcdf[OUTPUTS_PATH], lines[JOURNAL_DAMAGE_TEXT];
    TRY(netcdf_name(publication, netcdf, error));
    TRY(publication->skip_damaged ? journal_salvage(source, &results, &damage, error)
                                  : journal_read(source, &results, &damage.torn, error));
    journal_warn_left_out(journal, damage.torn, results, log);
    enum status status = publish(results, publication, netcdf, log, summary, error);
    const size_t without_device = results->without_device;
    results_destroy(results);
    if (status && status != STATUS_FAILED)
        return status;
    journal_damage_format(&damage, lines);
    if (damage.count > 0)
        return error_set(error, STATUS_SYSTEM, "%s: %zu damaged, left out: %s; the rest is in %s",
                         journal, damage.count, lines, netcdf);
    if (without_device > 0)
        return error_set(error, STATUS_SYSTEM,
                         "%s: %zu rows or rounds without a device are left out of %s", journal,
                         without_device, netcdf);
    return status;
}

enum status publication_make(const struct publication *publication, const struct log *log,
                             struct summary *summary, struct error *error)
{
    const char *source = publication->source;
    enum status status = make(publication, log, summary, error);
    if (status && source && strncmp(error->text, source, strlen(source)) == 0) {
        const struct error read = *error;
        error_set(error, status, "%s%s", publication->journal, read.text + strlen(source));
    }
    return status;
}

enum status publication_gather(const struct publication *publication, const struct log *log,
                               struct summary *summary, struct error *error)
{
    char netcdf[OUTPUTS_PATH];
    TRY(outputs_check_journal(publication->journal, error));
    TRY(netcdf_name(publication, netcdf, error));
    TRY(outputs_check_gathered(publication->journal, netcdf, publication->overwrite, error));
    return publication_make(publication, log, summary, error);
}
