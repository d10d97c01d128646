#include "program/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"

const char *const program_regions[] = {"profiler", "all", NULL};

static const char *const program_precisions[] = {"fp64", "fp32",  "tf32", "fp16",
                                                 "bf16", "mixed", NULL};

const char *const program_replays[] = {"runs", "kernel", NULL};

/* clang-format off */
static const struct parameter program_parameters[] = {
    WORKLOAD_FREE_TEXT("axes", PROGRAM_AXES, "", "point of the section's axes, as NAME=VALUE"),
    WORKLOAD_FREE_TEXT("command", PROGRAM_COMMAND, "", "words that run, without a shell"),
    WORKLOAD_FREE_TEXT("environment", PROGRAM_ENVIRONMENT, "", "NAME=VALUE is set, NAME inherited"),
    WORKLOAD_INTEGER("iterations", 1000000000, "1", "that one region holds"),
    WORKLOAD_FREE_TEXT("model_bytes", PROGRAM_NUMBER, "", "byte, of one iteration"),
    WORKLOAD_FREE_TEXT("model_flops", PROGRAM_NUMBER, "", "of one iteration"),
    WORKLOAD_FREE_TEXT("modelled_as", PROGRAM_NUMBER, "", "workload whose model it has"),
    WORKLOAD_WORDS("precision", program_precisions, "mixed", ROLE_PRECISION,
                   "whose peak is the roof"),
    WORKLOAD_FREE_TEXT("region", PROGRAM_REGION, "profiler", "profiler, all, or nvtx NAME"),
    WORKLOAD_LATER_WORDS("replay", program_replays, "runs", ROLE_NONE, "what is repeated to count"),
    WORKLOAD_LATER_TEXT("ungraphed", PROGRAM_UNGRAPHED, "",
                        "words of the command, and variables, of a run without CUDA graphs"),
};
/* clang-format on */

static bool program_is_shared(const struct config *config)
{
    struct command_line words;
    struct error unread;
    bool found = false;
    if (command_line_split(config_value(config, "environment").text, &words, &unread))
        return false;
    for (size_t i = 0; i < words.count; ++i)
        found |= strncmp(words.words[i], PROGRAM_POINT "=", sizeof PROGRAM_POINT) == 0;
    command_line_clear(&words);
    return found;
}

enum status program_model_config(const struct config *program, const struct workload *model,
                                 struct config *config, struct error *error)
{
    struct config made = config_default(model);
    for (size_t i = 0; i < model->count; ++i) {
        char text[WORKLOAD_STRING];
        struct value value;
        if (!config_axis(program, model->parameters[i].name, text))
            continue;
        TRY(parameter_parse(&model->parameters[i], text, &value, error));
        config_set(&made, i, &value);
    }
    *config = made;
    return STATUS_OK;
}

static enum status program_check(const struct config *config, struct error *error)
{
    struct value command = config_value(config, "command"),
                 name = config_value(config, "modelled_as");
    const struct workload *model = workload_find(name.text);
    struct config modelled;
    if (command.text[0] == '\0')
        return error_set(error, STATUS_UNSUPPORTED, "a program without a command");
    if (name.text[0] == '\0')
        return STATUS_OK;
    if (!model || model == &program_workload)
        return error_set(error, STATUS_UNSUPPORTED, "modelled_as: '%s' has no model", name.text);
    if (program_model_config(config, model, &modelled, error) || config_check(&modelled, error))
        return error_prefix(error, STATUS_UNSUPPORTED, "as %s", name.text);
    return STATUS_OK;
}

static void cost_set(const struct config *config, const char *parameter, double *cost)
{
    struct value value = config_value(config, parameter);
    if (value.text[0])
        *cost = strtod(value.text, NULL);
}

static struct cost program_cost(const struct config *config)
{
    struct cost cost = {NAN, NAN, NAN};
    const struct workload *model = workload_find(config_value(config, "modelled_as").text);
    struct config modelled;
    struct error unused;
    if (model && model != &program_workload &&
        program_model_config(config, model, &modelled, &unused) == STATUS_OK)
        cost = config_cost(&modelled);
    cost_set(config, "model_flops", &cost.flops);
    cost_set(config, "model_bytes", &cost.bytes);
    return cost;
}

const struct workload program_workload = {
    .name = "program",
    WORKLOAD_TABLE(program_parameters),
    .check = program_check,
    .cost = program_cost,
    .axes = "axes",
    .shared = program_is_shared,
};
