/* Rules of advice as read, and what their VALUEs and `when`s are of a row; the language is explained in
 * postproc/roofsweep_post/advice.ini. Pure. */
#ifndef ROOFSWEEP_ADVICE_VALUE_H
#define ROOFSWEEP_ADVICE_VALUE_H

#include "results/advice.h"

enum { ADVICE_KEYS = 16, ADVICE_NAME = 64 };

/* A section. */
struct advice_rule {
    char kind[ADVICE_NAME], name[ADVICE_NAME];
    char *keys[ADVICE_KEYS], *values[ADVICE_KEYS]; /* owned by struct advice */
    size_t count;
};

/* "" where the rule lacks the key. */
const char *advice_rule_get(const struct advice_rule *rule, const char *key);

/* A row, seen with the rules' constants. */
struct advice_row {
    const struct advice_rule *rules;
    size_t count;
    advice_lookup *lookup;
    const void *row;
};

/* False: the row lacks it, or it is no VALUE. */
bool advice_value_of(const struct advice_row *row, const char *expression,
                     struct advice_value *value);
/* All terms hold; none is there. */
bool advice_holds(const struct advice_row *row, const char *when);
/* The word is one of those that commas separate. */
bool advice_among(const char *word, const char *words);

#endif
