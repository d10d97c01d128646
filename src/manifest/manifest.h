/* The manifest, sweep.ini: what to run, and how to run and measure it.
 *
 * Life cycle: manifest_read (a file) or manifest_parse (a text), read the const fields,
 * manifest_destroy. Errors in a manifest are STATUS_USAGE and say "FILE:LINE: what was found; what
 * is allowed"; STATUS_SYSTEM: no memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "manifest/list.h"
#include "model/protocol.h"
#include "model/roof.h"
#include "model/workload.h"

enum vary { VARY_PRODUCT, VARY_ZIP, VARY_ONE_AT_A_TIME };

struct sweep_settings {
    char *title;    /* "" if not given */
    char *output;   /* relative to the working folder; by default the manifest's name with .nc */
    int device;     /* see device_kind_chosen */
    bool replicate; /* distribute = replicate */
    bool overwrite;
    double timeout;              /* s for one configuration */
    int retries;                 /* further attempts after a worker was lost */
    int64_t max_failures;        /* number of failed rows that ends the sweep; -1: no limit */
    uint64_t max_configurations; /* a larger plan is refused */
    uint64_t seed;               /* seed of the inputs' random values */
    char *algorithms;            /* NULL, "run", "search", or a path: see sweep_algorithms_file */
};

/* One parameter's list of values. */
struct axis {
    struct value *values;
    size_t count; /* number of values; 0: the section does not name the parameter */
    int line; /* line of the key; INT_MAX: values from [measure], after all lines of the section */
};

enum comparison { COMPARE_EQ, COMPARE_NE, COMPARE_LT, COMPARE_LE, COMPARE_GT, COMPARE_GE };
struct term {
    int parameter;
    enum comparison comparison;
    struct value value;
};
/* A rule: excludes a configuration if all terms hold. */
struct exclusion {
    struct term *terms;
    size_t count;
};

struct section {
    const struct workload *workload; /* with a kind: its parameters are the section's axes */
    const struct section_kind *kind; /* section.h; NULL: the keys are the workload's parameters */
    void *own; /* owned; state of `kind`; NULL before the section's first line */
    char *label;
    enum vary vary;
    struct axis axes[WORKLOAD_PARAMETERS_MAX]; /* by the workload's parameter order */
    struct list list;                          /* each row is combined with all of the axes */
    struct exclusion *exclusions;              /* a configuration is excluded if any holds */
    size_t exclusion_count;
    int line, vary_line, exclude_line; /* 0: not in the section */
};

/* Path of the algorithm cache; NULL: no file. */
const char *sweep_algorithms_file(const struct sweep_settings *sweep);
/* Whether every row searches its algorithm, whatever earlier rows have found. */
bool sweep_searches_anew(const struct sweep_settings *sweep);

struct manifest {
    char *path;   /* path as given, for messages */
    char *text;   /* the whole file, for journal and NetCDF; see manifest_embed_lists */
    char *folder; /* absolute folder of the file, where programs run; NULL: from manifest_parse */
    struct sweep_settings sweep;
    struct measure_settings measure;
    struct roof_request peaks;
    char *reuse;                     /* result file to take roofs from; NULL: roofs are measured */
    int reuse_line, algorithms_line; /* lines that name the two files */
    struct section *sections;
    size_t section_count; /* 0: a manifest of [peaks] alone measures the roofs */
};

/* Sets *manifest, owned by the caller, on success only. `path` "-" is standard input, which
 * messages call "stdin". */
enum status manifest_read(const char *path, struct manifest **manifest, struct error *error);
enum status manifest_parse(const char *path, const char *text, size_t length,
                           struct manifest **manifest, struct error *error);
/* Makes the manifest of --program: one command with region = all, in the working folder. Its path
 * is "program". */
enum status manifest_of_program(const char *command, struct manifest **manifest,
                                struct error *error);
/* Puts the lines of lists that are files into manifest->text, below their keys, so that the text
 * alone makes the plan. */
enum status manifest_embed_lists(struct manifest *manifest, struct error *error);
void manifest_destroy(struct manifest *manifest); /* takes NULL */

/* Writes the settings of measurements as one canonical line ("warmup=5 iterations=20 ... seed=1").
 * A file must not mix records with different lines. */
void manifest_settings_text(const struct manifest *manifest, char text[256]);
