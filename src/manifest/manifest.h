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
#include "manifest/section.h"
#include "manifest/settings.h"

#define AMENDED "after --set and --only"

struct manifest {
    char *path;   /* as given, for messages */
    char *text;   /* the whole file, for journal and NetCDF; see manifest_embed_lists */
    bool amended; /* by manifest/amendment.h: errors with a line begin with AMENDED */
    char *folder; /* absolute folder of the file, where programs run; NULL: from manifest_parse */
    struct sweep_settings sweep;
    struct measure_settings measure;
    struct roof_request peaks;
    char *reuse; /* result file, whose journal gives the roofs; NULL: roofs are measured */
    int reuse_line;
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
/* Puts the lines of list files into manifest->text, below their keys, so that the text alone makes
 * the plan. */
enum status manifest_embed_lists(struct manifest *manifest, struct error *error);
void manifest_destroy(struct manifest *manifest); /* takes NULL */

/* Writes the settings of measurements as one canonical line ("warmup=5 iterations=20 ... seed=1").
 * A file must not mix records with different lines. */
void manifest_settings_text(const struct manifest *manifest, char text[256]);
