#include "options.h"

#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/units.h"
#include "base/text.h"
#include "model/device_kind.h"
#include "manifest/section.h"
#include "manifest/settings.h"
#include "model/workload.h"
#include "named_sweep.h"

static const char help_begin[] =
    "Usage: roofsweep [options] SWEEP.ini\n"
    "       roofsweep [options] NAME       (see --sweeps)\n"
    "       roofsweep [options] --program \"COMMAND\"\n"
    "       srun -n 8 roofsweep SWEEP.ini\n"
    "       mpirun -n 8 roofsweep SWEEP.ini\n"
    "\n"
    "Measures the configurations of a manifest and the roofs of the devices, and writes one\n"
    "NetCDF file. Each rank has a GPU, or a set of CPU cores.\n"
    "\n";

static const char help_end[] =
    "\n"
    "Read the file with roofsweep-post: tables, figures, a report, several files as one\n"
    "(merge), and which GPU is slower than the others (compare); roofsweep-post --help.\n"
    "share/roofsweep/jobscripts has job scripts for Slurm, PBS, LSF and Flux, and gate.sh,\n"
    "which judges each node of a partition and prints the commands that drain failed nodes.\n"
    "\n"
    "Exit status: 0 all configurations measured (or skipped with a reason); 1 a file, a library\n"
    "or MPI failed; 2 command line or manifest wrong, nothing ran; 3 some configurations failed,\n"
    "or need more than the time limit; 4 no usable device, or no hardware counters although\n"
    "required, or (replicate) a device was lost; 5 interrupted, or out of time: go on with\n"
    "--resume.\n";

enum exit_code exit_code_of(enum status status)
{
    static const enum exit_code codes[] = {
        [STATUS_OK] = EXIT_MEASURED,
        [STATUS_SYSTEM] = EXIT_SYSTEM,
        [STATUS_USAGE] = EXIT_USAGE,
        [STATUS_FAILED] = EXIT_SOME_FAILED,
        [STATUS_UNSUPPORTED] = EXIT_NO_DEVICE,
        [STATUS_DEVICE] = EXIT_NO_DEVICE,
        [STATUS_INTERRUPTED] = EXIT_INTERRUPTED,
    };
    return codes[status];
}

/* ---- options with a value ---- */

static enum status take_device(const char *text, struct options *options, struct error *error)
{
    const char *words[DEVICE_KINDS + 2];
    device_kind_words(words);
    options->has_device = true;
    return error_prefix(error, words_parse(words, text, &options->device, error), "--device");
}

static enum status take_output(const char *text, struct options *options, struct error *error)
{
    options->output = text;
    return *text ? STATUS_OK : error_set(error, STATUS_USAGE, "--output needs a file name");
}

static enum status add(const char *text, const char *option, const char *texts[AMENDMENTS_MAX],
                       size_t *count, struct error *error)
{
    if (*count == AMENDMENTS_MAX)
        return error_set(error, STATUS_USAGE, "more than %d times %s", AMENDMENTS_MAX, option);
    texts[(*count)++] = text;
    return STATUS_OK;
}

static enum status take_set(const char *text, struct options *options, struct error *error)
{
    return add(text, "--set", options->amendment.sets, &options->amendment.set_count, error);
}

static enum status take_only(const char *text, struct options *options, struct error *error)
{
    return add(text, "--only", options->amendment.onlys, &options->amendment.only_count, error);
}

/* --help takes the place of any other action. */
static enum status action_set(struct options *options, enum action action, struct error *error)
{
    if (options->action == ACTION_HELP)
        return STATUS_OK;
    if (options->action != ACTION_SWEEP && options->action != action && action != ACTION_HELP)
        return error_set(error, STATUS_USAGE,
                         "these actions exclude each other; name one of --dry-run, --gather, "
                         "--list, --self-test, --sweeps and --version");
    options->action = action;
    return STATUS_OK;
}

static const char one_journal[] = "--gather takes one journal; roofsweep-post merge A.nc B.nc "
                                  "--output ALL.nc joins gathered files";

static enum status take_gather(const char *text, struct options *options, struct error *error)
{
    if (options->journal)
        return error_set(error, STATUS_USAGE, "%s", one_journal);
    options->journal = text;
    return action_set(options, ACTION_GATHER, error);
}

static enum status take_program(const char *text, struct options *options, struct error *error)
{
    if (options->program)
        return error_set(error, STATUS_USAGE,
                         "--program takes one command; a manifest can have several programs");
    options->program = text;
    return STATUS_OK;
}

static enum status take_time_limit(const char *text, struct options *options, struct error *error)
{
    if (strcmp(text, "none") == 0) {
        options->time_limit = INFINITY;
        return STATUS_OK;
    }
    return error_prefix(error, units_duration(text, &options->time_limit, error),
                        "--time-limit, a duration or 'none'");
}

/* ---- all options ---- */

#define FLAG(member)  SETS_FLAG, true, offsetof(struct options, member), NULL
#define ACTION(value) SETS_ACTION, value, 0, NULL
#define VALUE(take)   TAKES_VALUE, 0, 0, take
#define MORE          "\n                        "
/* In the order of --help. */
static const struct known_option {
    const char *name;
    char letter;       /* short option; 0: none */
    const char *value; /* name of the value in --help; NULL: no value */
    const char *help;
    enum { SETS_ACTION, SETS_LEVEL, SETS_FLAG, TAKES_VALUE } what;
    int number;  /* the action, or the log level */
    size_t flag; /* offset of the flag in struct options */
    enum status (*take)(const char *text, struct options *options, struct error *error);
} known_options[] = {
    {"output", 'o', "FILE", "where to write, instead of the manifest's output", VALUE(take_output)},
    {"device", 'd', "KIND", device_kind_help, VALUE(take_device)},
    {"dry-run", 0, NULL, "print the plan and stop; needs no MPI, no GPU, writes nothing",
     ACTION(ACTION_DRY_RUN)},
    {"program", 0, "COMMAND", "measure a program as a whole instead of a manifest, into program.nc",
     VALUE(take_program)},
    {"set", 0, "KEY=VALUE", "replace a key of the manifest: batch=16,32; LABEL.batch=16",
     VALUE(take_set)},
    {"only", 0, "LABEL", "leave out all other workload sections; may be given several times",
     VALUE(take_only)},
    {"list", 0, "[NAME]",
     "print workloads, their parameters, defaults and implementations\n"
     "      --list chips      print the theoretical rates of known GPUs for each clock\n"
     "      --list variables  print the variables of a result file",
     ACTION(ACTION_LIST)},
    {"sweeps", 0, NULL, "print the names of the manifests that come with roofsweep",
     ACTION(ACTION_SWEEPS)},
    {"resume", 0, NULL, "measure the rows that FILE.journal lacks; without a journal all",
     FLAG(resume)},
    {"any-owner", 0, NULL, "with --resume: a journal of another user, too", FLAG(any_owner)},
    {"overwrite", 0, NULL, "replace FILE and its journal; with --gather, FILE", FLAG(overwrite)},
    {"gather", 0, "JOURNAL", "rebuild the NetCDF file from a journal, on any machine",
     VALUE(take_gather)},
    {"skip-damaged", 0, NULL, "with --gather: leave damaged lines out, and name them",
     FLAG(skip_damaged)},
    {"time-limit", 0, "T",
     "measure only rows that can end within T (45min; none) of the start;" MORE
     "if SLURM_JOB_END_TIME is set, it is a limit as well",
     VALUE(take_time_limit)},
    {"self-test", 0, NULL, "count known work on the first GPU: are its counters right?",
     ACTION(ACTION_SELF_TEST)},
    {"advice", 0, NULL, "print the command that shows what limits each row, and what to try",
     FLAG(advice)},
    {"json", 0, NULL,
     "print JSON instead of text: the final table of all rows, in SI" MORE
     "units, --dry-run and --list",
     FLAG(json)},
    {"quiet", 'q', NULL, "only warnings and the final table", SETS_LEVEL, LOG_WARNING, 0, NULL},
    {"verbose", 'v', NULL, "also a line for each configuration, and what workers print", SETS_LEVEL,
     LOG_DEBUG, 0, NULL},
    {"help", 'h', NULL, "this text", ACTION(ACTION_HELP)},
    {"version", 0, NULL, "version and revision", ACTION(ACTION_VERSION)},
};
enum { OPTIONS = sizeof known_options / sizeof *known_options, LONG_OPTION = 256 };

static enum status take_option(const struct known_option *known, struct options *options,
                               struct error *error)
{
    switch (known->what) {
    case SETS_ACTION:
        return action_set(options, (enum action)known->number, error);
    case SETS_LEVEL:
        options->level = (enum log_level)known->number;
        return STATUS_OK;
    case SETS_FLAG:
        *(bool *)((char *)options + known->flag) = true;
        return STATUS_OK;
    case TAKES_VALUE:
    default:
        return known->take(optarg, options, error);
    }
}

static enum status option_refuse(const char *what, const char *argument, struct error *error)
{
    const char *names[OPTIONS + 1] = {NULL};
    for (int i = 0; i < OPTIONS; ++i)
        names[i] = known_options[i].name;
    char name[WORDS_ITEM];
    const char *begin = argument + strspn(argument, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(begin, "="), begin);
    const char *near = words_find(names, name) < 0 ? words_nearest(names, name) : NULL;
    return near ? error_set(error, STATUS_USAGE, "%s '%s'; did you mean '--%s'?", what, argument,
                            near)
                : error_set(error, STATUS_USAGE, "%s '%s'; see roofsweep --help", what, argument);
}

static bool needs_manifest(enum action action)
{
    return action == ACTION_SWEEP || action == ACTION_DRY_RUN;
}

/* The operand of --list: "chips", "variables" or a workload. */
static enum status choose_list(const char *name, struct options *options, struct error *error)
{
    static const char chips[] = "chips", variables[] = "variables";
    const char *const others[] = {chips, variables, NULL};
    char hint[WORDS_HINT];
    if (strcmp(name, chips) == 0 || strcmp(name, variables) == 0) {
        options->action = strcmp(name, chips) == 0 ? ACTION_LIST_CHIPS : ACTION_LIST_VARIABLES;
        return STATUS_OK;
    }
    workload_hint(others, NULL, name, hint);
    if (!workload_find(name))
        return error_set(error, STATUS_USAGE,
                         "--list '%.60s' is no workload, nor chips or variables%s", name, hint);
    options->workload = name;
    return STATUS_OK;
}

/* A sweep takes a manifest, --list can take a name, other actions take no operand. */
static enum status check_operands(const struct options *options, char **operands, int count,
                                  struct error *error)
{
    int manifests = needs_manifest(options->action) && !options->program;
    int most = manifests + (options->action == ACTION_LIST);
    if (manifests && count == 0 && options->advice)
        return error_set(
            error, STATUS_USAGE,
            "--advice goes with a sweep; for a result file, roofsweep-post rows FILE.nc "
            "--advice prints what limits each row, and what to try");
    if (manifests && count == 0)
        return error_set(error, STATUS_USAGE,
                         "no manifest; usage: roofsweep [options] SWEEP.ini, see roofsweep --help");
    if (count > most)
        return error_set(error, STATUS_USAGE, "unexpected '%s'; %s", operands[most],
                         options->program ? "the command of --program stands in quotes"
                         : options->action == ACTION_GATHER    ? one_journal
                         : options->action == ACTION_SELF_TEST ? "--self-test takes no manifest"
                         : manifests == 0                      ? "this action takes no manifest"
                                                               : "one manifest at a time");
    if (!needs_manifest(options->action) && !amendment_is_empty(&options->amendment))
        return error_set(error, STATUS_USAGE, "--set and --only go with a manifest");
    return STATUS_OK;
}

static enum status check_together(const struct options *options, struct error *error)
{
    const enum action action = options->action;
    const struct {
        bool wrong;
        const char *text;
    } rules[] = {
        {options->resume && options->overwrite, "--resume and --overwrite exclude each other"},
        {options->resume && action == ACTION_GATHER,
         "--resume goes with a sweep, not with --gather"},
        {options->skip_damaged && action != ACTION_GATHER,
         "--skip-damaged goes with --gather only"},
        {options->any_owner && !options->resume, "--any-owner goes with --resume only"},
        {options->json && (action == ACTION_LIST_CHIPS || action == ACTION_SWEEPS),
         "--list chips and --sweeps have no JSON"},
        {options->program && !needs_manifest(action),
         "--program goes with a sweep or --dry-run only"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i)
        if (rules[i].wrong)
            return error_set(error, STATUS_USAGE, "%s", rules[i].text);
    return STATUS_OK;
}

enum status options_parse(int argc, char **argv, struct options *options, struct error *error)
{
    struct options parsed = {.action = ACTION_SWEEP, .level = LOG_INFO};
    struct option long_options[OPTIONS + 1] = {{0}};
    char letters[2 * OPTIONS + 2] = ":"; /* getopt_long returns ':' for a missing value, not '?' */
    for (int i = 0; i < OPTIONS; ++i) {
        const struct known_option *known = &known_options[i];
        const bool value = known->what == TAKES_VALUE;
        const char letter[] = {known->letter, value ? ':' : '\0', '\0'};
        long_options[i] = (struct option){known->name, value ? required_argument : no_argument,
                                          NULL, LONG_OPTION + i};
        strcat(letters, letter);
    }
    optind = 0; /* GNU: resets the parser, even within a group of short options */
    for (int option; (option = getopt_long(argc, argv, letters, long_options, NULL)) != -1;) {
        int known = option - LONG_OPTION;
        for (int i = 0; i < OPTIONS; ++i)
            known = known_options[i].letter == option ? i : known;
        if (known < 0)
            return option_refuse(option == ':' ? "a value is missing after" : "unknown option",
                                 argv[optind - 1], error);
        TRY(take_option(&known_options[known], &parsed, error));
    }
    TRY(check_operands(&parsed, argv + optind, argc - optind, error));
    if (parsed.action == ACTION_LIST && optind < argc)
        TRY(choose_list(argv[optind], &parsed, error));
    TRY(check_together(&parsed, error));
    if (needs_manifest(parsed.action))
        parsed.manifest = parsed.program ? "program" : argv[optind];
    *options = parsed;
    return STATUS_OK;
}

enum status options_manifest(const struct options *options, struct manifest **manifest,
                             struct error *error)
{
    struct manifest *read = NULL;
    char path[SWEEP_PATH];
    if (!options->program)
        TRY(named_sweep_find(options->manifest, path, error));
    enum status status = options->program ? manifest_of_program(options->program, &read, error)
                                          : manifest_read(path, &read, error);
    if (status == STATUS_OK && !amendment_is_empty(&options->amendment))
        status = amendment_read(&options->amendment, &read, error);
    if (status == STATUS_OK)
        status = manifest_embed_lists(read, error);
    if (status == STATUS_OK)
        *manifest = read;
    else
        manifest_destroy(read);
    return status;
}

void options_help(FILE *stream)
{
    char name[32];
    fputs(help_begin, stream);
    for (const struct known_option *known = known_options; known < known_options + OPTIONS;
         ++known) {
        snprintf(name, sizeof name, "%s%s%s", known->name, known->value ? " " : "",
                 known->value ? known->value : "");
        if (known->letter)
            fprintf(stream, "  -%c, --%-15s ", known->letter, name);
        else
            fprintf(stream, "      --%-15s ", name);
        fprintf(stream, "%s\n", known->help);
    }
    fputs(help_end, stream);
}

static void list_parameter(const struct parameter *parameter, FILE *stream)
{
    fprintf(stream, "  %-15s %-10s", parameter->name, parameter->initial);
    if (parameter->words)
        for (size_t i = 0; parameter->words[i]; ++i)
            fprintf(stream, "%s%s", i ? ", " : " ", parameter->words[i]);
    else
        fprintf(stream, " %s%lld to %lld%s",
                parameter->kind == PARAMETER_PADDING ? "same, valid or "
                : parameter->kind == PARAMETER_TEXT  ? "text of "
                                                     : "",
                (long long)parameter->minimum, (long long)parameter->maximum,
                parameter->kind == PARAMETER_TEXT ? " bytes" : "");
    fprintf(stream, "\n  %26s %s\n", "", parameter->help);
}

static void list_kind(const struct section_kind *kind, FILE *stream)
{
    fprintf(stream, "[%s LABEL]\n  setting         default    allowed\n", kind->workload->name);
    for (size_t i = 0; kind->key(i); ++i)
        fprintf(stream, "  %-15s %-10s %s\n  %26s %s\n", kind->key(i)->name, kind->key(i)->initial,
                kind->key(i)->allowed, "", kind->key(i)->help);
    fputs("  All other keys are axes: lists of numbers or of words.\n", stream);
}

/* -DROOFSWEEP_PROGRAMS=OFF builds without the workload `program`. */
static bool is_listed(const struct workload *workload, const char *name)
{
    return (!name || strcmp(workload->name, name) == 0) &&
           (!workload->axes || section_kind_of(workload));
}

/* A section such as [program] has settings of its own (section_kind) instead of parameters. */
static void list_workload(const struct workload *workload, FILE *stream)
{
    const struct section_kind *kind = section_kind_of(workload);
    if (kind) {
        list_kind(kind, stream);
        return;
    }
    fprintf(stream, "[%s LABEL]\n  %-15s %-10s allowed\n", workload->name, "parameter", "default");
    for (size_t j = 0; j < workload->count; ++j)
        list_parameter(&workload->parameters[j], stream);
}

static json_t *words_encode(const char *const *words)
{
    json_t *array = json_array();
    for (size_t i = 0; words[i]; ++i)
        json_array_append_new(array, json_string(words[i]));
    return array;
}

static json_t *workload_encode(const struct workload *workload)
{
    json_t *parameters = json_array();
    const struct section_kind *kind = section_kind_of(workload);
    for (size_t i = 0; kind && kind->key(i); ++i)
        json_array_append_new(parameters,
                              json_pack("{s:s, s:s, s:s, s:s}", "name", kind->key(i)->name,
                                        "default", kind->key(i)->initial, "allowed",
                                        kind->key(i)->allowed, "help", kind->key(i)->help));
    for (size_t i = 0; !kind && i < workload->count; ++i) {
        const struct parameter *parameter = &workload->parameters[i];
        json_t *object = json_pack("{s:s, s:s, s:s}", "name", parameter->name, "default",
                                   parameter->initial, "help", parameter->help);
        json_t *limits = parameter->words
                             ? json_pack("{s:o}", "allowed", words_encode(parameter->words))
                             : json_pack("{s:I, s:I}", "minimum", (json_int_t)parameter->minimum,
                                         "maximum", (json_int_t)parameter->maximum);
        json_object_update_new(object, limits);
        json_array_append_new(parameters, object);
    }
    return json_pack("{s:s, s:o}", "name", workload->name, "parameters", parameters);
}

/* Prints the workloads, and the keys of all other sections of a manifest. */
static void list_json(const char *name, FILE *stream)
{
    json_t *all = json_array(), *settings = json_object();
    const char *keys[SETTINGS_MAX + 1] = {NULL}, *groups[SETTINGS_MAX];
    settings_keys(keys, groups);
    for (size_t i = 0; keys[i]; ++i) {
        const char *group = groups[i];
        if (!json_object_get(settings, group))
            json_object_set_new(settings, group, json_array());
        json_array_append_new(json_object_get(settings, group), json_string(keys[i]));
    }
    for (size_t i = 0; workloads[i]; ++i)
        if (is_listed(workloads[i], name))
            json_array_append_new(all, workload_encode(workloads[i]));
    json_t *list = json_pack("{s:o, s:o}", "settings", settings, "workloads", all);
    json_dumpf(list, stream, JSON_INDENT(1));
    fputc('\n', stream);
    json_decref(list);
}

void options_list(const char *name, bool json, FILE *stream)
{
    if (json) {
        list_json(name, stream);
        return;
    }
    for (size_t i = 0; workloads[i]; ++i) {
        if (!is_listed(workloads[i], name))
            continue;
        fputs(i > 0 && !name ? "\n" : "", stream);
        list_workload(workloads[i], stream);
    }
}
