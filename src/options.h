/* The command line. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/log.h"
#include "manifest/amendment.h"
#include "manifest/manifest.h"
#include "base/status.h"

/* What the process tells its caller; --help documents them. */
enum exit_code {
    EXIT_MEASURED = 0, /* all configurations measured, or skipped with a reason */
    EXIT_SYSTEM = 1,   /* a file, a library or MPI failed */
    EXIT_USAGE = 2,    /* the command line or the manifest is wrong; nothing ran */
    /* complete, but some configurations failed; or they need more than the time limit */
    EXIT_SOME_FAILED = 3,
    EXIT_NO_DEVICE = 4,  /* no usable device; required counters refused; (replicate) one was lost */
    EXIT_INTERRUPTED = 5 /* ended by a signal or the time limit; --resume goes on */
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
    const char *manifest; /* NULL with --gather, --list, --help, --version */
    const char *program;  /* --program: a command instead of a manifest; NULL: there is none */
    const char *journal;  /* --gather */
    const char *output;   /* NULL: as the manifest says */
    struct amendment amendment;
    const char *workload; /* ACTION_LIST: this one alone; NULL: all */
    bool has_device;
    int device; /* if has_device: see device_kind_chosen */
    bool resume, overwrite, skip_damaged, any_owner;
    bool advice;       /* the last lines say how to ask for it */
    bool json;         /* format of the final table, --list, --dry-run and --sweeps */
    double time_limit; /* s, from the start of the program; 0: not given; INFINITY: none */
    enum log_level level;
};

enum status options_parse(int argc, char **argv, struct options *options, struct error *error);
/* What it asks for: the manifest that it names, or that of its program. */
enum status options_manifest(const struct options *options, struct manifest **manifest,
                             struct error *error);
void options_help(FILE *stream);
/* Workloads, or the one of this name: parameters, defaults and implementations. */
void options_list(const char *workload, bool json, FILE *stream);
