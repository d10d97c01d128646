#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef error_set /* macros of status.h for clang's analyzer */
#undef error_prefix
#undef error_append

enum status error_set(struct error *error, enum status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return status;
}

enum status error_prefix(struct error *error, enum status status, const char *format, ...)
{
    if (status == STATUS_OK)
        return status;
    struct error inner = *error;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < sizeof error->text)
        snprintf(error->text + length, sizeof error->text - (size_t)length, ": %.*s",
                 (int)(sizeof error->text - (size_t)length), inner.text);
    return status;
}

enum status error_append(struct error *error, enum status status, const char *format, ...)
{
    size_t length = strlen(error->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text + length, sizeof error->text - length, format, arguments);
    va_end(arguments);
    return status;
}
