#include "manifest/vary.h"

#include "base/text.h"

static const char *const vary_words[] = {"product", "zip", "one-at-a-time", NULL};

enum status vary_parse(const char *text, enum vary *vary, struct error *error)
{
    int index;
    enum status status = words_parse(vary_words, text, &index, error);
    if (status)
        error_prefix(error, "vary");
    else
        *vary = (enum vary)index;
    return status;
}
