#include "program/section/formula.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64, DEPTH_MAX = 64 };

struct parser {
    const char *next;
    formula_lookup *lookup;
    void *user;
    int depth;
    enum status status; /* once it is not OK, values mean nothing */
    struct error *error;
};

static double fail(struct parser *p, const char *what)
{
    const char *quote = *p->next ? "'" : "";
    if (p->status == STATUS_OK)
        p->status = error_set(p->error, STATUS_USAGE,
                              "%s at %s%.40s%s; allowed: numbers, axes, + - * / and parentheses",
                              what, quote, *p->next ? p->next : "the end", quote);
    return NAN;
}

static char peek(struct parser *p)
{
    p->next += strspn(p->next, " \t");
    return *p->next;
}

static bool accept(struct parser *p, char c)
{
    if (peek(p) != c)
        return false;
    ++p->next;
    return true;
}

static double sum(struct parser *p);

static double name(struct parser *p)
{
    char text[NAME_MAX_BYTES];
    size_t length = 0;
    double value = NAN;
    while (isalnum((unsigned char)p->next[length]) || p->next[length] == '_')
        ++length;
    snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : sizeof text - 1),
             p->next);
    if (!p->lookup(p->user, text, &value))
        return fail(p, "no axis of numbers");
    p->next += length;
    return value;
}

static double nested(struct parser *p)
{
    if (++p->depth > DEPTH_MAX)
        return fail(p, "too many parentheses");
    double value = sum(p);
    --p->depth;
    return accept(p, ')') ? value : fail(p, "no closing parenthesis");
}

static double factor(struct parser *p)
{
    char c = peek(p), *end;
    if (accept(p, '('))
        return nested(p);
    if (isalpha((unsigned char)c) || c == '_')
        return name(p);
    if (!isdigit((unsigned char)c) && c != '.')
        return fail(p, c ? "nothing that has a value" : "a value is missing");
    double value = strtod(p->next, &end);
    p->next = end;
    return value;
}

static double term(struct parser *p)
{
    double value = factor(p);
    while (p->status == STATUS_OK) {
        if (accept(p, '*'))
            value *= factor(p);
        else if (accept(p, '/'))
            value /= factor(p);
        else
            break;
    }
    return value;
}

static double sum(struct parser *p)
{
    double value = term(p);
    while (p->status == STATUS_OK) {
        if (accept(p, '+'))
            value += term(p);
        else if (accept(p, '-'))
            value -= term(p);
        else
            break;
    }
    return value;
}

enum status formula_evaluate(const char *text, formula_lookup *lookup, void *user, double *value,
                             struct error *error)
{
    struct parser p = {.next = text, .lookup = lookup, .user = user, .error = error};
    double result = sum(&p);
    if (p.status == STATUS_OK && peek(&p) != '\0')
        fail(&p, "something after the formula's end");
    if (p.status)
        return p.status;
    if (!isfinite(result) || result <= 0.0)
        return error_set(error, STATUS_USAGE, "'%.80s' is %g; allowed: finite, above 0", text,
                         result);
    *value = result;
    return STATUS_OK;
}
