/* The sections [sweep], [measure] and [peaks]: one const table of keys, defaults, and what excludes
 * what. */
#pragma once

#include "manifest/ini_lines.h"
#include "manifest/manifest.h"

enum { SETTINGS_MAX = 32 };
struct settings {
    struct sweep_settings sweep;
    struct measure_settings measure;
    struct roof_request peaks;
    char *reuse;             /* NULL: roofs are measured */
    int cache;               /* see settings_cache */
    int lines[SETTINGS_MAX]; /* where each key stands, 0: nowhere */
};

extern const char *const settings_groups[]; /* "sweep", "measure", "peaks", NULL */

/* Everything at its default; title, output and reuse NULL, and the caller's to free. */
struct settings settings_default(void);
/* The axis "cache" of sections that do not name one, as a section would write it. */
const char *settings_cache(const struct settings *settings);
/* Sets one key; `group` is an index into settings_groups. */
enum status settings_take(struct settings *settings, int group, const struct ini_line *line,
                          struct error *error);
/* Name of the first group that a key is of; NULL: of none. */
const char *settings_group_of(const char *key);
/* All keys, with the names of their groups. */
void settings_keys(const char *keys[SETTINGS_MAX], const char *groups[SETTINGS_MAX]);
/* Line of a key, 0 if the manifest does not have it. */
int settings_line(const struct settings *settings, const char *key);
/* After the last line: what goes together. "PATH:LINE: " is in front of the error. */
enum status settings_finish(struct settings *settings, const char *path, struct error *error);
