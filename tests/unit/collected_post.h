/* A post that keeps what is sent, for tests that play the other ranks; include cmocka.h first. */
#ifndef ROOFSWEEP_TEST_COLLECTED_POST_H
#define ROOFSWEEP_TEST_COLLECTED_POST_H

#include <stdlib.h>
#include <string.h>

#include "ranks/post.h"

enum { COLLECTED_MAX = 256 };
struct collected {
    struct {
        int to;
        enum letter_kind kind;
        char *text;
    } letters[COLLECTED_MAX];
    size_t count;
};

static inline enum status collect(void *context, int to, enum letter_kind kind, const char *text,
                                  struct error *error)
{
    struct collected *collected = context;
    (void)error;
    assert_true(collected->count < COLLECTED_MAX);
    collected->letters[collected->count].to = to;
    collected->letters[collected->count].kind = kind;
    collected->letters[collected->count++].text = strdup(text);
    return STATUS_OK;
}

static inline struct post collected_post(struct collected *collected)
{
    return (struct post){.context = collected, .send = collect};
}

/* Takes the first letter of this kind to this rank out; the caller frees it. NULL: there is none. */
static inline char *collected_take(struct collected *collected, int to, enum letter_kind kind)
{
    for (size_t i = 0; i < collected->count; ++i)
        if (collected->letters[i].to == to && collected->letters[i].kind == kind) {
            char *text = collected->letters[i].text;
            memmove(&collected->letters[i], &collected->letters[i + 1],
                    (--collected->count - i) * sizeof collected->letters[0]);
            return text;
        }
    return NULL;
}

static inline void collected_clear(struct collected *collected)
{
    while (collected->count > 0)
        free(collected->letters[--collected->count].text);
}

#endif
