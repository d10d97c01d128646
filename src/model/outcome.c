#include "model/outcome.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static void reason_copy(const char *reason, struct outcome *outcome)
{
    size_t length = strlen(reason);
    if (length >= sizeof outcome->reason)
        length = sizeof outcome->reason - 1;
    while (length > 0 && ((unsigned char)reason[length] & 0xc0) == 0x80)
        --length;
    memcpy(outcome->reason, reason, length);
    outcome->reason[length] = '\0';
}

bool outcome_parse(const char *text, const char *const *words, struct outcome *outcome)
{
    for (int64_t i = 0; words[i]; ++i) {
        const char *rest = text + strlen(words[i]);
        if (strncmp(text, words[i], strlen(words[i])) != 0)
            continue;
        if (*rest && strncmp(rest, separator, strlen(separator)) != 0)
            continue;
        outcome->code = i;
        reason_copy(*rest ? rest + strlen(separator) : "", outcome);
        return true;
    }
    return false;
}

bool outcome_same(const struct outcome *a, const struct outcome *b)
{
    return a->code == b->code && strcmp(a->reason, b->reason) == 0;
}
