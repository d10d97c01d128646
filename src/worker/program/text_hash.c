#include "worker/program/text_hash.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

static bool file_add(XXH3_state_t *state, const char *path)
{
    struct stat about;
    char chunk[65536];
    size_t got;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode))
        return false;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0)
        XXH3_128bits_update(state, chunk, got);
    fclose(file);
    return true;
}

void text_hash(char *const *words, const char *folder, char hash[TEXT_HASH])
{
    XXH3_state_t *state = XXH3_createState();
    bool any = false;
    hash[0] = '\0';
    if (!state)
        return;
    XXH3_128bits_reset(state);
    for (size_t i = 0; words[i]; ++i) {
        char path[8192];
        if (i == 0 && !strchr(words[i], '/')) /* from PATH */
            continue;
        snprintf(path, sizeof path, "%s%s%s", *words[i] == '/' ? "" : folder,
                 *words[i] == '/' ? "" : "/", words[i]);
        any |= file_add(state, path);
    }
    XXH128_hash_t h = XXH3_128bits_digest(state);
    if (any)
        snprintf(hash, TEXT_HASH, "%016llx%016llx", (unsigned long long)h.high64,
                 (unsigned long long)h.low64);
    XXH3_freeState(state);
}
