/* Outcome of work that may be impossible, such as reading counters: a code for the program and a
 * reason for people. As text it is "WORD" or "WORD: REASON". Plain data. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OUTCOME_MISSING INT64_MIN /* code of work that nobody tried */

enum { OUTCOME_REASON = 512, OUTCOME_TEXT = OUTCOME_REASON + 64 };

struct outcome {
    int64_t code; /* index into the words, or OUTCOME_MISSING */
    char reason[OUTCOME_REASON];
};

/* Outcome of hardware counters. */
enum counted {
    COUNTED_YES,
    COUNTED_OFF, /* not requested */
    COUNTED_REFUSED,
    COUNTED_INCOMPLETE,
    COUNTED_NOT_BY_KERNEL, /* counted, but not each kernel separately */
    COUNTED_WITHOUT_CAUSES /* counted, but without the requested activities */
};
extern const char *const counted_word[]; /* ends with NULL */

/* `format` NULL: no reason. */
void outcome_set(struct outcome *outcome, int64_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Copies `whole`, but cuts the reason at the first ';': the rest is advice, equal for all rows. */
void outcome_set_brief(struct outcome *outcome, const struct outcome *whole);

/* Writes the text form; "" if the outcome is missing. */
void outcome_format(const struct outcome *outcome, const char *const *words,
                    char text[OUTCOME_TEXT]);

/* False, without a change: the text begins with none of the words. */
bool outcome_parse(const char *text, const char *const *words, struct outcome *outcome);

bool outcome_same(const struct outcome *a, const struct outcome *b);
