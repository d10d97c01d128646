#include "base/tail.h"

#include <string.h>

void tail_append(struct tail *tail, const char *text, size_t length)
{
    if (length > TAIL_MAX) {
        text += length - TAIL_MAX;
        length = TAIL_MAX;
    }
    size_t kept = tail->length;
    if (kept + length > TAIL_MAX)
        kept = TAIL_MAX - length;
    memmove(tail->text, tail->text + tail->length - kept, kept);
    memcpy(tail->text + kept, text, length);
    tail->length = kept + length;
    tail->text[tail->length] = '\0';
}

void tail_join(struct tail *tail)
{
    while (tail->length > 0 && tail->text[tail->length - 1] == '\n')
        tail->text[--tail->length] = '\0';
    for (char *c = tail->text; *c; ++c)
        if ((unsigned char)*c < ' ')
            *c = *c == '\n' ? '|' : ' ';
}
