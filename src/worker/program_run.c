#include "worker/program_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/program/counts.h"
#include "worker/program/process.h"

/* ---- before ---- */

static enum status environment_make(struct program_run *run, struct error *error)
{
    struct command_line variables;
    enum status status = command_line_split(config_value(&run->request->config, "environment").text,
                                            &variables, error);
    if (status)
        return status;
    run->environment = surroundings_create();
    for (size_t i = 0; i < variables.count; ++i)
        surroundings_set(&run->environment, variables.words[i]);
    if (run->loan.visible[0])
        surroundings_set(&run->environment, run->loan.visible);
    command_line_clear(&variables);
    return run->environment.complete ? STATUS_OK : error_set(error, STATUS_FAILED, "out of memory");
}

static enum status folder_find(struct program_run *run, struct error *error)
{
    const char *folder = run->request->folder[0] ? run->request->folder : ".";
    char *found = realpath(folder, NULL);
    if (!found || strlen(found) >= sizeof run->folder) {
        free(found);
        return error_set(error, STATUS_FAILED, "%s: there is no such folder on this node", folder);
    }
    strcpy(run->folder, found);
    free(found);
    return STATUS_OK;
}

enum status program_run_prepare(struct program_run *run, struct error *error)
{
    const struct config *config = &run->request->config;
    run->iterations = config_value(config, "iterations").first;
    run->deadline =
        run->request->timeout > 0 ? clock_monotonic() + run->request->timeout : INFINITY;
    enum status status = folder_find(run, error);
    if (status == STATUS_OK)
        status = command_line_split(config_value(config, "command").text, &run->command, error);
    if (status == STATUS_OK)
        status = environment_make(run, error);
    if (status == STATUS_USAGE) /* of a text that no manifest made */
        status = STATUS_FAILED;
    return status;
}

/* One entry: "INDEX:WORD", or "NAME=VALUE". */
static enum status entry_apply(struct program_run *run, const char *entry, struct error *error)
{
    char *word;
    unsigned long index = strtoul(entry, &word, 10);
    if (word == entry || *word != ':') {
        surroundings_set(&run->environment, entry);
        return STATUS_OK;
    }
    char *copy = index < run->command.count ? strdup(word + 1) : NULL;
    if (!copy)
        return error_set(error, STATUS_FAILED, "ungraphed: there is no word %lu", index);
    free(run->command.words[index]);
    run->command.words[index] = copy;
    return STATUS_OK;
}

enum status program_run_ungraph(struct program_run *run, struct error *error)
{
    struct command_line entries;
    const char *text = config_value(&run->request->config, "ungraphed").text;
    enum status status = command_line_split(text, &entries, error);
    if (status)
        return STATUS_FAILED;
    for (size_t i = 0; i < entries.count && status == STATUS_OK; ++i)
        status = entry_apply(run, entries.words[i], error);
    command_line_clear(&entries);
    return status;
}

/* ---- runs ---- */

/* The environment with the folder of what is handed back; it is the row's but for that. */
static enum status run_in(struct program_run *run, const char *report, struct process_end *end,
                          struct error *error)
{
    surroundings_put(&run->environment, HANDBACK_VARIABLE, report);
    if (!run->environment.complete)
        return error_set(error, STATUS_FAILED, "out of memory");
    const struct process process = {
        .words = run->command.words,
        .environment = run->environment.variables,
        .folder = run->folder,
        .cpus = run->loan.cpus,
        .cpus_size = run->loan.cpus_size,
        .timeout = isfinite(run->deadline) ? fmax(run->deadline - clock_monotonic(), 0.1) : 0.0,
    };
    enum status status = process_run(&process, end, error);
    return status ? status : process_judge(&process, end, error);
}

enum status program_run_once(struct program_run *run, struct process_end *end,
                             struct handback *handback, struct injected *injected,
                             struct error *error)
{
    char report[4096];
    enum status status = handback_folder(report, error);
    if (status)
        return status;
    status = run_in(run, report, end, error);
    if (status == STATUS_OK && handback)
        status = handback_read(report, handback, error);
    if (status == STATUS_OK && injected) {
        status = injected_read(report, injected, error);
        if (status && handback)
            handback_clear(handback);
    }
    handback_remove(report);
    return status;
}

void program_run_number(struct program_run *run, const char *name, size_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", number);
    surroundings_put(&run->environment, name, text);
}

enum status program_run_injected(struct program_run *run, const char *task,
                                 struct handback *handback, struct injected *injected,
                                 struct error *error)
{
    struct process_end end;
    const struct config *config = &run->request->config;
    surroundings_put(&run->environment, "CUDA_INJECTION64_PATH", run->loan.library);
    surroundings_put(&run->environment, "NVTX_INJECTION64_PATH", run->loan.library);
    surroundings_put(&run->environment, "ROOFSWEEP_INJECT", task);
    surroundings_put(&run->environment, "ROOFSWEEP_REGION", config_value(config, "region").text);
    program_run_number(run, "ROOFSWEEP_TENSORS", counts_tensors(config_precision(config)));
    return program_run_once(run, &end, handback, injected, error);
}

void program_run_clear(struct program_run *run)
{
    command_line_clear(&run->command);
    surroundings_clear(&run->environment);
}
