/* What became of something that may be left out or refused: a code for the program, and a reason
 * for people. As text it is WORD or "WORD: REASON", where the word is that of the code. Plain
 * data. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OUTCOME_MISSING INT64_MIN /* the code where nobody asked */

enum { OUTCOME_REASON = 512, OUTCOME_TEXT = OUTCOME_REASON + 64 };

struct outcome {
    int64_t code; /* index of its words, or OUTCOME_MISSING */
    char reason[OUTCOME_REASON];
};

/* What became of hardware counters. */
enum counted {
    COUNTED_YES,
    COUNTED_OFF, /* nobody wanted them */
    COUNTED_REFUSED,
    COUNTED_INCOMPLETE,
    COUNTED_NOT_BY_KERNEL, /* the whole was counted, its kernels by themselves were not */
    COUNTED_WITHOUT_CAUSES /* all was counted but activities of its kernels, which were asked for */
};
extern const char *const counted_word[]; /* ends with NULL */

/* `format` NULL: no reason. */
void outcome_set(struct outcome *outcome, int64_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Without what stands after the first ';' of the reason, the advice: it is the same for all
 * rows. */
void outcome_set_brief(struct outcome *outcome, const struct outcome *whole);

/* "" if the code is missing. */
void outcome_format(const struct outcome *outcome, const char *const *words,
                    char text[OUTCOME_TEXT]);

/* false, and *outcome as it was, if it begins with no such word. */
bool outcome_parse(const char *text, const char *const *words, struct outcome *outcome);

bool outcome_same(const struct outcome *a, const struct outcome *b);
