#include "ranks/ledger.h"

#include <stdlib.h>

#include "results/sampling.h"

struct ledger {
    struct journal *journal;
    const struct log *log;
    const struct manifest *manifest;
    const struct plan *plan;
    struct progress *progress; /* owned */
    size_t failures;
};

struct ledger *ledger_create(struct journal *journal, const struct log *log,
                             const struct manifest *manifest, const struct plan *plan, size_t done,
                             size_t total)
{
    struct ledger *ledger = malloc(sizeof *ledger);
    struct progress *progress = progress_create(log, "", done, total);
    if (ledger && progress) {
        *ledger = (struct ledger){journal, log, manifest, plan, progress, 0};
        return ledger;
    }
    progress_destroy(progress);
    free(ledger);
    return NULL;
}

void ledger_destroy(struct ledger *ledger)
{
    if (ledger)
        progress_destroy(ledger->progress);
    free(ledger);
}

enum status ledger_device(struct ledger *ledger, json_t *device, struct error *error)
{
    enum status status = journal_append(ledger->journal, "device", device, error);
    progress_start(ledger->progress);
    return status;
}

/* What a reader of its time should know at once. */
static void log_sampling(const struct ledger *ledger, const struct record *record)
{
    const int64_t told[] = {record->host_paced, record->bimodal};
    static const char marks[] = {'h', 'b'};
    for (size_t i = 0; i < sizeof marks; ++i)
        if (told[i] == 1)
            log_print(ledger->log, LOG_INFO, "%s: %s", record->configuration,
                      sampling_mark_text(marks[i]));
}

enum status ledger_record(struct ledger *ledger, size_t item, const struct record *record,
                          json_t *json, struct progress_left left, struct error *error)
{
    const struct plan_item *asked = &ledger->plan->items[item];
    record_patch(json, "label", text_encode(asked->label));
    record_patch(json, "config_hash", json_string(asked->hash));
    enum status status = journal_append(ledger->journal, "record", json, error);
    log_print(ledger->log, LOG_DEBUG, "%s: %s%s%s", record->configuration,
              record_status_name[record->status], record->error[0] ? ": " : "", record->error);
    log_sampling(ledger, record);
    ledger->failures += record->status == RECORD_FAILED;
    progress_update(ledger->progress, left, ledger->failures);
    return status;
}

void ledger_timed(struct ledger *ledger, struct progress_left left)
{
    progress_update(ledger->progress, left, ledger->failures);
}

enum status ledger_sync(struct ledger *ledger, struct error *error)
{
    return journal_sync(ledger->journal, error);
}

bool ledger_is_spent(const struct ledger *ledger)
{
    int64_t most = ledger->manifest->sweep.max_failures;
    return most >= 0 && ledger->failures >= (size_t)most;
}
