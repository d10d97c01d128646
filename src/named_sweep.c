#include "named_sweep.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "manifest/manifest.h"
#include "version.h"

static const char ending[] = ".ini";

/* targets.ini in the same folder is for `roofsweep-post check`. */
static int is_sweep(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > strlen(ending) && strcmp(entry->d_name, "targets.ini") != 0 &&
           strcmp(entry->d_name + length - strlen(ending), ending) == 0;
}

struct names {
    char folder[PATH_MAX];
    char **names; /* owned; without ".ini", sorted, NULL-terminated */
};

static void names_destroy(struct names *names)
{
    for (size_t i = 0; names->names && names->names[i]; ++i)
        free(names->names[i]);
    free(names->names);
}

/* The folder's path is relative to the program, so that a copied tree works. */
static enum status names_read(struct names *names, struct error *error)
{
    static const char *const places[] = {ROOFSWEEP_SWEEPS, "../../sweeps"}; /* installed, built */
    char program[PATH_MAX], place[PATH_MAX + sizeof ROOFSWEEP_SWEEPS];
    struct dirent **entries;
    int count = -1;
    TRY(folder_of_program(program, sizeof program, error));
    for (size_t i = 0; i < sizeof places / sizeof *places && count < 0; ++i) {
        snprintf(place, sizeof place, "%s/%s", program, places[i]);
        count = realpath(place, names->folder)
                    ? scandir(names->folder, &entries, is_sweep, alphasort)
                    : -1;
    }
    if (count < 0)
        return error_set(error, STATUS_SYSTEM, "no folder of sweeps at %s/%s", program, places[0]);
    names->names = calloc((size_t)count + 1, sizeof *names->names);
    for (int i = 0; i < count; ++i) {
        if (names->names)
            names->names[i] =
                strndup(entries[i]->d_name, strlen(entries[i]->d_name) - strlen(ending));
        free(entries[i]);
    }
    free(entries);
    return names->names ? STATUS_OK : error_set(error, STATUS_SYSTEM, "out of memory");
}

enum status named_sweep_find(const char *name, char path[SWEEP_PATH], struct error *error)
{
    struct names names;
    char hint[WORDS_HINT];
    snprintf(path, SWEEP_PATH, "%s", name);
    if (strcmp(name, "-") == 0 || strchr(name, '/') || access(name, F_OK) == 0 ||
        names_read(&names, error))
        return STATUS_OK;
    const char *const *known = (const char *const *)names.names;
    enum status status = STATUS_OK;
    if (words_find(known, name) >= 0) {
        snprintf(path, SWEEP_PATH, "%s/%s%s", names.folder, name, ending);
    } else {
        words_hint(known, name, hint);
        status =
            error_set(error, STATUS_USAGE,
                      "%.200s: no such file, and no sweep of that name (--sweeps)%s", name, hint);
    }
    names_destroy(&names);
    return status;
}

enum status named_sweeps_list(FILE *stream, struct error *error)
{
    struct names names;
    TRY(names_read(&names, error));
    for (size_t i = 0; names.names[i]; ++i) {
        char path[SWEEP_PATH];
        struct manifest *manifest = NULL;
        snprintf(path, sizeof path, "%s/%s%s", names.folder, names.names[i], ending);
        /* A build without programs refuses sweeps of programs: the reason takes the place of the
         * title. */
        const char *title = manifest_read(path, &manifest, error) == STATUS_OK
                                ? manifest->sweep.title
                                : error->text;
        utf8_print(stream, "%-16s  %s\n", names.names[i], title);
        manifest_destroy(manifest);
    }
    names_destroy(&names);
    return STATUS_OK;
}
