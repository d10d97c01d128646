/* One sentence for a row: what limits it, and what to try. The rules are data: the build writes
 * postproc/roofsweep_post/advice.ini, which explains itself, into the program; roofsweep-post reads the same file. */
#ifndef ROOFSWEEP_ADVICE_H
#define ROOFSWEEP_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum { ADVICE_VALUE = 160, ADVICE_TEXT = 1024 };

/* A variable's value: a word, or a number and "". */
struct advice_value {
    char word[ADVICE_VALUE];
    double number; /* NaN: missing, or it is a word */
};

/* Sets *value to the row's variable of this name. level: "", or which memory level of it. False: the row lacks it. */
typedef bool advice_lookup(const void *row, const char *name, const char *level,
                           struct advice_value *value);

struct advice;

/* The program's own rules. STATUS_SYSTEM without memory. */
enum status advice_create(struct advice **advice, struct error *error);
/* Rules out of a text. STATUS_USAGE: it is no INI file, or a section is none of cause, try, constant. */
enum status advice_parse(const char *text, size_t length, struct advice **advice,
                         struct error *error);
void advice_destroy(struct advice *advice); /* takes NULL */

/* The sentence for a row with this limiter (limiter.h). A limiter without a rule is as an unknown one. */
void advice_sentence(const struct advice *advice, const char *limiter, advice_lookup *lookup,
                     const void *row, char text[ADVICE_TEXT]);

#endif
