/* A sender that keeps all messages, for tests that play the other ranks. */
#pragma once

#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "ranks/message.h"

enum { COLLECTED_MAX = 256 };
struct collected {
    struct {
        int to;
        enum message_kind kind;
        char *text;
    } messages[COLLECTED_MAX];
    size_t count;
};

static inline enum status collect(void *context, int to, enum message_kind kind, const char *text,
                                  struct error *error)
{
    struct collected *collected = context;
    assert_true(collected->count < COLLECTED_MAX);
    collected->messages[collected->count].to = to;
    collected->messages[collected->count].kind = kind;
    collected->messages[collected->count++].text = strdup(text);
    return STATUS_OK;
}

static inline struct sender collected_sender(struct collected *collected)
{
    return (struct sender){.context = collected, .send = collect};
}

/* Removes the first message of this kind to this rank; the caller frees it. NULL: none. */
static inline char *collected_take(struct collected *collected, int to, enum message_kind kind)
{
    for (size_t i = 0; i < collected->count; ++i)
        if (collected->messages[i].to == to && collected->messages[i].kind == kind) {
            char *text = collected->messages[i].text;
            memmove(&collected->messages[i], &collected->messages[i + 1],
                    (--collected->count - i) * sizeof collected->messages[0]);
            return text;
        }
    return NULL;
}

static inline void collected_clear(struct collected *collected)
{
    while (collected->count > 0)
        free(collected->messages[--collected->count].text);
}
