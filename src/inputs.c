#include "inputs.h"

#include <stdlib.h>

#include "ranks/resume.h"
#include "results/earlier_roofs.h"

static enum status load_manifest(struct inputs *inputs, const struct options *options,
                                 struct manifest **manifest, struct error *error)
{
    TRY(options_manifest(options, manifest, error));
    inputs->manifest = *manifest;
    return plan_create(inputs->manifest, &inputs->plan, error);
}

/* Within a run only with replicate a configuration comes again. */
static enum status open_choices(struct inputs *inputs, struct error *error)
{
    const struct sweep_settings *settings = &inputs->manifest->sweep;
    const char *path = sweep_algorithms_file(settings);
    struct choices_file file;
    if (sweep_searches_anew(settings) || (!path && !settings->replicate))
        return STATUS_OK;
    enum status status = STATUS_OK;
    if (path)
        status = outputs_check_input(&inputs->outputs, path, "the file of algorithms", error);
    if (status == STATUS_OK)
        status = choices_open(path, settings->replicate, &inputs->choices, &file, error);
    if (status)
        error_prefix(error, "%s: [sweep] algorithms", inputs->manifest->path);
    else if (file.damaged > 0)
        log_print(inputs->log, LOG_WARNING, "%s: %zu lines are damaged and left out", path,
                  file.damaged);
    return status;
}

static enum status look_at_outputs(struct inputs *inputs, const struct options *options,
                                   struct error *error)
{
    char settings[256];
    const struct sweep_settings *manifest = &inputs->manifest->sweep;
    enum status status = outputs_name(
        options->output ? options->output : manifest->output, options->resume,
        options->overwrite || (manifest->overwrite && !options->resume), &inputs->outputs, error);
    if (status == STATUS_OK && options->manifest)
        status = outputs_check_input(&inputs->outputs, options->manifest, "the manifest", error);
    if (status == STATUS_OK)
        status = outputs_check(&inputs->outputs, error);
    if (status == STATUS_OK)
        status = open_choices(inputs, error);
    if (status)
        return status;
    manifest_settings_text(inputs->manifest, settings);
    status = outputs_earlier(&inputs->outputs, settings, inputs->log, &inputs->journal,
                             &inputs->earlier, error);
    if (status)
        return status;
    /* With replicate, which devices there are is not known yet. */
    inputs->complete = !manifest->replicate && inputs->earlier->row_count > 0 &&
                       resume_missing(inputs->plan, inputs->earlier) == 0;
    return STATUS_OK;
}

/* Before anything is replaced: with --overwrite it may be the output itself. */
static enum status look_at_earlier_roofs(struct inputs *inputs, struct error *error)
{
    const char *path = inputs->manifest->reuse;
    if (!path || inputs->complete)
        return STATUS_OK;
    enum status status =
        earlier_roofs_read(path, &inputs->earlier_devices, &inputs->earlier_device_count, error);
    if (status)
        error_prefix(error, "%s: [peaks] reuse", inputs->manifest->path);
    return status;
}

enum status inputs_read(const struct options *options, const struct log *log, struct inputs *inputs,
                        struct manifest **manifest, struct error *error)
{
    inputs->log = log;
    TRY(load_manifest(inputs, options, manifest, error));
    TRY(look_at_outputs(inputs, options, error));
    return look_at_earlier_roofs(inputs, error);
}

void inputs_clear(struct inputs *inputs)
{
    journal_close(inputs->journal);
    choices_close(inputs->choices);
    results_destroy(inputs->earlier);
    plan_destroy(inputs->plan);
    free(inputs->earlier_devices);
}
