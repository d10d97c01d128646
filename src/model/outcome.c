#include "model/outcome.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

const char *const counted_word[] = {
    [COUNTED_YES] = "counted",
    [COUNTED_OFF] = "off",
    [COUNTED_REFUSED] = "refused",
    [COUNTED_INCOMPLETE] = "incomplete",
    [COUNTED_NOT_BY_KERNEL] = "counted, but not by kernel",
    [COUNTED_WITHOUT_CAUSES] = "counted, but without causes",
    NULL,
};

static const char separator[] = ": ";

void outcome_set(struct outcome *outcome, int64_t code, const char *format, ...)
{
    va_list arguments;
    *outcome = (struct outcome){.code = code};
    if (!format)
        return;
    va_start(arguments, format);
    vsnprintf(outcome->reason, sizeof outcome->reason, format, arguments);
    va_end(arguments);
}

void outcome_set_brief(struct outcome *outcome, const struct outcome *whole)
{
    int length = (int)strcspn(whole->reason, ";");
    outcome_set(outcome, whole->code, "%.*s", length, whole->reason);
}

void outcome_format(const struct outcome *outcome, const char *const *words,
                    char text[OUTCOME_TEXT])
{
    text[0] = '\0';
    if (outcome->code != OUTCOME_MISSING)
        snprintf(text, OUTCOME_TEXT, "%s%s%s", words[outcome->code],
                 outcome->reason[0] ? separator : "", outcome->reason);
}

bool outcome_parse(const char *text, const char *const *words, struct outcome *outcome)
{
    for (int64_t i = 0; words[i]; ++i) {
        const char *rest = text + strlen(words[i]);
        if (strncmp(text, words[i], strlen(words[i])) != 0)
            continue;
        if (*rest && strncmp(rest, separator, strlen(separator)) != 0)
            continue;
        rest += *rest ? strlen(separator) : 0;
        outcome->code = i;
        utf8_copy(outcome->reason, sizeof outcome->reason, rest, strlen(rest));
        return true;
    }
    return false;
}

bool outcome_same(const struct outcome *a, const struct outcome *b)
{
    return a->code == b->code && strcmp(a->reason, b->reason) == 0;
}
