#include "worker/gpu/kernel_list.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the C++ library, which this program links for CUPTI's metrics. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* Kernels of CUTLASS have one name, and are told apart by their argument. */
static const char *const wrappers[] = {"cutlass::Kernel2<", "cutlass::Kernel<",
                                       "cutlass::device_kernel<"};
static const char *const not_told[] = {"lementWise", "elementwise",  "elemWise", "addBias",
                                       "_combine_",  "splitKreduce", "init",     "scal_kernel",
                                       "memset",     "convert"};

static const char *inner(const char *name)
{
    static const char result[] = "void ";
    if (strncmp(name, result, strlen(result)) == 0)
        name += strlen(result);
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; ++i)
        if (strncmp(name, wrappers[i], strlen(wrappers[i])) == 0)
            return name + strlen(wrappers[i]);
    return name;
}

static void name_shorten(const char *symbol, char short_name[KERNEL_LIST_NAME])
{
    int failed;
    char *demangled = __cxa_demangle(symbol, NULL, NULL, &failed);
    const char *name = inner(failed ? symbol : demangled);
    snprintf(short_name, KERNEL_LIST_NAME, "%.*s", (int)strcspn(name, "<>(,"), name);
    free(demangled);
}

void kernel_list_add(struct kernel_list *list, const char *symbol)
{
    char name[KERNEL_LIST_NAME];
    int i = 0;
    name_shorten(symbol, name);
    while (i < list->count && strcmp(list->kernels[i].name, name) != 0)
        ++i;
    if (i == KERNEL_LIST_MAX)
        return;
    if (i == list->count) {
        snprintf(list->kernels[i].name, sizeof list->kernels[i].name, "%s", name);
        list->kernels[list->count++].launches = 0;
    }
    ++list->kernels[i].launches;
}

static bool is_told(const char *name)
{
    for (size_t i = 0; i < sizeof not_told / sizeof *not_told; ++i)
        if (strstr(name, not_told[i]))
            return false;
    return true;
}

/* Whether kernel a stands before b. */
static bool is_before(const struct kernel_list *list, int a, int b)
{
    int more = list->kernels[a].launches - list->kernels[b].launches;
    return more ? more > 0 : strcmp(list->kernels[a].name, list->kernels[b].name) < 0;
}

/* The first behind `last` in the order of the text, -1: the first of all; -1 if there is none. */
static int next_told(const struct kernel_list *list, int last)
{
    int next = -1;
    for (int i = 0; i < list->count; ++i)
        if (is_told(list->kernels[i].name) && (last < 0 || is_before(list, last, i)) &&
            (next < 0 || is_before(list, i, next)))
            next = i;
    return next;
}

void kernel_list_format(const struct kernel_list *list, char *text, size_t size)
{
    static const char more[] = ", ...";
    size_t used = 0;
    text[0] = '\0';
    for (int i = next_told(list, -1); i >= 0; i = next_told(list, i)) {
        size_t length = strlen(list->kernels[i].name) + (used ? 2 : 0);
        if (used + length + sizeof more > size) {
            snprintf(text + used, size - used, "%s", used ? more : "");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                 list->kernels[i].name);
    }
}
