/* The sections [sweep], [measure] and [peaks]: one const table of keys, their defaults, and rules
 * for keys that exclude each other. */
#pragma once

#include "manifest/ini_lines.h"
#include "model/protocol.h"

struct sweep_settings {
    char *title;    /* "" if not given */
    char *output;   /* relative to the working folder; by default the manifest's name with .nc */
    int device;     /* see device_kind_chosen */
    bool replicate; /* distribute = replicate */
    double timeout; /* s; limit for one configuration */
    int retries;    /* further attempts after a worker was lost */
    int rounds;     /* [measure] rounds: number of measurements of the whole sweep */
    uint64_t max_configurations; /* a larger plan is refused */
    uint64_t seed;               /* seed of the inputs' random values */
};

enum { SETTINGS_MAX = 32 };
struct settings {
    struct sweep_settings sweep;
    struct measure_settings measure;
    struct roof_request peaks;
    char *reuse;             /* see struct manifest */
    int cache;               /* see settings_cache */
    int lines[SETTINGS_MAX]; /* line of each key; 0: not in the manifest */
};

extern const char *const settings_groups[]; /* "sweep", "measure", "peaks", NULL */

/* All defaults. title, output and reuse are NULL, and owned by the caller. */
struct settings settings_default(void);
/* The values of `cache`, as in a manifest, for sections without that key. */
const char *settings_cache(const struct settings *settings);
/* Sets one key; `group` is an index into settings_groups. */
enum status settings_take(struct settings *settings, int group, const struct ini_line *line,
                          struct error *error);
/* Whether a manifest must not have both keys. */
bool settings_exclude(const char *key, const char *other);
/* Name of the first group with the key; NULL: none. */
const char *settings_group_of(const char *key);
/* All keys, with the names of their groups. */
void settings_keys(const char *keys[SETTINGS_MAX], const char *groups[SETTINGS_MAX]);
/* 0: the key is not in the manifest. */
int settings_line(const struct settings *settings, const char *key);
/* After the last line: refuses keys that exclude each other. Errors begin with "PATH:LINE: ". */
enum status settings_finish(struct settings *settings, const char *path, struct error *error);
