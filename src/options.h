/* The command line. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/log.h"
#include "manifest/amendment.h"
#include "manifest/manifest.h"
#include "base/status.h"

/* Exit statuses of the program; help_end (options.c) explains them. */
enum exit_code {
    EXIT_MEASURED = 0,
    EXIT_SYSTEM = 1,
    EXIT_USAGE = 2,
    EXIT_SOME_FAILED = 3,
    EXIT_NO_DEVICE = 4,
    EXIT_INTERRUPTED = 5
};
enum exit_code exit_code_of(enum status status);

enum action {
    ACTION_SWEEP,
    ACTION_DRY_RUN,
    ACTION_LIST,
    ACTION_LIST_CHIPS,
    ACTION_LIST_VARIABLES,
    ACTION_SWEEPS,
    ACTION_GATHER,
    ACTION_SELF_TEST,
    ACTION_HELP,
    ACTION_VERSION
};

/* Strings point into argv. */
struct options {
    enum action action;
    const char *manifest; /* "program" with --program; NULL for actions without a manifest */
    const char *program;  /* --program: command to measure instead of a manifest; NULL: none */
    const char *journal;  /* argument of --gather */
    const char *output;   /* NULL: the manifest's output */
    struct amendment amendment;
    const char *workload; /* workload that ACTION_LIST prints; NULL: all */
    bool has_device;
    int device; /* argument of device_kind_chosen; only if has_device */
    bool resume, overwrite, skip_damaged, any_owner;
    bool advice;       /* print the command that shows what limits each row */
    bool json;         /* print the final table, --list and --dry-run as JSON */
    double time_limit; /* s, from the start of the program; 0: not given; INFINITY: none */
    enum log_level level;
};

enum status options_parse(int argc, char **argv, struct options *options, struct error *error);
/* Reads the manifest, or makes it from --program, and applies --set and --only. */
enum status options_manifest(const struct options *options, struct manifest **manifest,
                             struct error *error);
void options_help(FILE *stream);
/* Prints parameters, defaults and implementations of a workload; NULL: of all. */
void options_list(const char *workload, bool json, FILE *stream);
