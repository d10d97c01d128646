#include "model/parameter.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "base/text.h"

const char *const workload_precisions[] = {"fp64", "fp32", "tf32", "fp16", "bf16", NULL};
const char *const workload_precisions_low[] = {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", NULL};
const char *const workload_caches[] = {"hot", "cold", NULL};
const char *const workload_launches[] = {"stream", "graph", NULL};
const char *const workload_no_yes[] = {"no", "yes", NULL};
const char *const workload_directions[] = {"forward", "backward", NULL};
const char *const workload_accumulations[] = {"wide", "fast", NULL};

static enum status parse_number(const struct parameter *parameter, const char *text,
                                int64_t *number, struct error *error)
{
    enum status status = units_integer(text, parameter->minimum, parameter->maximum, number, error);
    return error_prefix(error, status, "%s", parameter->name);
}

/* Parses the rows or the columns of an extent, or of a padding ("1" or "1:2"). */
static enum status parse_side(const struct parameter *parameter, const char *text, int64_t *side,
                              struct error *error)
{
    const char *colon = parameter->kind == PARAMETER_PADDING ? strchr(text, ':') : NULL;
    char before[WORKLOAD_VALUE_TEXT];
    int64_t first, second;
    snprintf(before, sizeof before, "%s", text);
    if (colon)
        before[strcspn(before, ":")] = '\0';
    TRY(parse_number(parameter, before, &first, error));
    second = first;
    if (colon)
        TRY(parse_number(parameter, colon + 1, &second, error));
    *side = parameter->kind == PARAMETER_PADDING ? padding_sides(first, second) : first;
    return STATUS_OK;
}

static enum status parse_extent(const struct parameter *parameter, const char *text,
                                struct value *value, struct error *error)
{
    const bool padding = parameter->kind == PARAMETER_PADDING;
    const char *cross = strchr(text, 'x');
    char rows[WORKLOAD_VALUE_TEXT];
    struct value parsed = {0};
    snprintf(rows, sizeof rows, "%s", text);
    rows[strcspn(rows, "x")] = '\0';
    enum status status = parse_side(parameter, rows, &parsed.first, error);
    parsed.second = parsed.first;
    if (status == STATUS_OK && cross)
        status = parse_side(parameter, cross + 1, &parsed.second, error);
    if (status && !padding && !cross && parameter->kind == PARAMETER_STEP)
        return status;
    if (status)
        return error_set(
            error, status, "%s: '%.60s' is %s; write %s, with numbers from %lld to %lld",
            parameter->name, text, padding ? "neither same nor valid nor pixels" : "no extent",
            padding ? "1, 1x0 or 1:2x0:1 (before:after)" : "3 or 3x5",
            (long long)parameter->minimum, (long long)parameter->maximum);
    *value = parsed;
    return STATUS_OK;
}

/* Removes quotes and escapes. `plain` has room for all of `text`. */
static enum status text_unquote(const char *text, char *plain, struct error *error)
{
    const char *end = words_quote_end(text);
    if (!end || *end != '\0')
        return error_set(error, STATUS_USAGE, "%.40s %s", text,
                         end ? "goes on after its closing quote" : "has no closing quote");
    for (++text; text + 1 < end; ++text) {
        if (*text == '\\' && *++text != '"' && *text != '\\')
            return error_set(error, STATUS_USAGE,
                             "\\%c is unknown; allowed within quotes: \\\" and \\\\", *text);
        *plain++ = *text;
    }
    *plain = '\0';
    return STATUS_OK;
}

static enum status text_check(const struct parameter *parameter, const char *text,
                              struct error *error)
{
    size_t length = strlen(text);
    if ((int64_t)length < parameter->minimum || (int64_t)length > parameter->maximum)
        return error_set(error, STATUS_USAGE, "a text of %zu bytes; allowed: %lld to %lld", length,
                         (long long)parameter->minimum, (long long)parameter->maximum);
    for (size_t i = 0, step; i < length; i += step)
        if ((step = utf8_character(text + i, length - i)) == 0 || text[i] == '\t')
            return error_set(error, STATUS_USAGE,
                             "byte 0x%02x; allowed: UTF-8 without control characters and tabs",
                             (unsigned char)text[i]);
    return STATUS_OK;
}

static enum status parse_text(const struct parameter *parameter, const char *text,
                              struct value *value, struct error *error)
{
    char plain[WORKLOAD_VALUE_TEXT] = "";
    enum status status = STATUS_OK;
    if (strlen(text) >= sizeof plain)
        status = text_check(parameter, text, error); /* too long */
    else if (*text == '"')
        status = text_unquote(text, plain, error);
    else
        strcpy(plain, text);
    if (status == STATUS_OK)
        status = text_check(parameter, plain, error);
    TRY(error_prefix(error, status, "%s", parameter->name));
    *value = (struct value){.first = 0};
    memcpy(value->text, plain, strlen(plain) + 1);
    return STATUS_OK;
}

enum status parameter_parse(const struct parameter *parameter, const char *text,
                            struct value *value, struct error *error)
{
    struct value number = {0};
    int index = 0;
    enum status status = STATUS_OK;
    switch (parameter->kind) {
    case PARAMETER_WORD:
        status = words_parse(parameter->words, text, &index, error);
        error_prefix(error, status, "%s", parameter->name);
        number.first = index;
        break;
    case PARAMETER_EXTENT:
    case PARAMETER_STEP:
        return parse_extent(parameter, text, value, error);
    case PARAMETER_TEXT:
        return parse_text(parameter, text, value, error);
    case PARAMETER_PADDING:
        if (strcmp(text, "same") != 0 && strcmp(text, "valid") != 0)
            return parse_extent(parameter, text, value, error);
        number.first = number.second = text[0] == 's' ? PADDING_SAME : PADDING_VALID;
        break;
    case PARAMETER_INTEGER:
    default:
        status = parse_number(parameter, text, &number.first, error);
    }
    if (status == STATUS_OK)
        *value = number;
    return status;
}

static void text_quote(const char *plain, char text[WORKLOAD_VALUE_TEXT])
{
    static const char bare[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:+@%";
    bool quoted = *plain == '\0' || plain[strspn(plain, bare)] != '\0';
    if (quoted)
        *text++ = '"';
    for (; *plain; *text++ = *plain++)
        if (*plain == '"' || *plain == '\\')
            *text++ = '\\';
    if (quoted)
        *text++ = '"';
    *text = '\0';
}

static void side_format(const struct parameter *parameter, int64_t side, char *text)
{
    const bool padding = parameter->kind == PARAMETER_PADDING;
    const int64_t before = padding ? padding_before(side) : side, after = padding_after(side);
    text += sprintf(text, "%lld", (long long)before);
    if (padding && after != before)
        sprintf(text, ":%lld", (long long)after);
}

void parameter_format(const struct parameter *parameter, struct value value,
                      char text[WORKLOAD_VALUE_TEXT])
{
    if (parameter->kind == PARAMETER_TEXT)
        text_quote(value.text, text);
    else if (parameter->kind == PARAMETER_WORD)
        snprintf(text, WORKLOAD_VALUE_TEXT, "%s", parameter->words[value.first]);
    else if (parameter->kind == PARAMETER_PADDING && value.first < 0)
        snprintf(text, WORKLOAD_VALUE_TEXT, "%s", value.first == PADDING_SAME ? "same" : "valid");
    else {
        const bool both = parameter->kind != PARAMETER_INTEGER && value.first != value.second;
        side_format(parameter, value.first, text);
        if (both) {
            strcat(text, "x");
            side_format(parameter, value.second, text + strlen(text));
        }
    }
}

bool value_equal(const struct value *a, const struct value *b)
{
    return a->first == b->first && a->second == b->second && strcmp(a->text, b->text) == 0;
}
