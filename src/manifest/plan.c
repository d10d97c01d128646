#include "manifest/plan.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/exclusion.h"
#include "manifest/section.h"
#include "model/naming.h"
#include "base/units.h"
#include "base/text.h"

/* A section's axes as places of an odometer: place 0 turns slowest. The shape comes first, in the
 * order of the manifest's lines, then the series: the points of one shape stay together. */
struct places {
    const struct section *section;
    size_t shape, count;                    /* places of the shape; of all */
    int parameter[WORKLOAD_PARAMETERS_MAX]; /* of each place */
    size_t at[WORKLOAD_PARAMETERS_MAX];     /* index of each place's current value */
    struct config defaults;
};

/* A plan under construction. */
struct builder {
    struct plan plan;
    void *hashes;                /* of its items, as tsearch has them */
    const struct section **last; /* by item: the section that asked for it last */
};

static bool place_before(const struct section *section, int a, int b)
{
    const struct parameter *parameters = section->workload->parameters;
    if (parameters[a].series != parameters[b].series)
        return parameters[b].series;
    return section->axes[a].line < section->axes[b].line;
}

static struct places places_make(const struct section *section)
{
    struct places places = {.section = section, .defaults = config_default(section->workload)};
    for (int i = 0; i < (int)section->workload->count; ++i) {
        if (section->axes[i].count == 0)
            continue;
        size_t j = places.count++;
        for (; j > 0 && place_before(section, i, places.parameter[j - 1]); --j)
            places.parameter[j] = places.parameter[j - 1];
        places.parameter[j] = i;
        places.shape += !section->workload->parameters[i].series;
    }
    return places;
}

static size_t place_size(const struct places *places, size_t place)
{
    return places->section->axes[places->parameter[place]].count;
}

static bool product_next(struct places *places, size_t first, size_t end)
{
    for (size_t place = end; place-- > first;) {
        if (++places->at[place] < place_size(places, place))
            return true;
        places->at[place] = 0;
    }
    return false;
}

/* Moves all places that have more than one value by one, together. */
static bool zip_next(struct places *places)
{
    bool more = false;
    for (size_t place = 0; place < places->shape; ++place) {
        if (place_size(places, place) == 1)
            continue;
        places->at[place] = (places->at[place] + 1) % place_size(places, place);
        more = places->at[place] != 0;
    }
    return more;
}

/* Only one place at a time is away from its first value, the default. The first place goes through
 * its values, then the next place does. */
static bool one_at_a_time_next(struct places *places)
{
    size_t place = 0;
    while (place < places->shape && places->at[place] == 0)
        ++place;
    place = place == places->shape ? 0 : place;
    for (; place < places->shape; ++place) {
        if (++places->at[place] < place_size(places, place))
            return true;
        places->at[place] = 0;
    }
    return false;
}

static bool shape_next(struct places *places)
{
    switch (places->section->vary) {
    case VARY_ZIP:
        return zip_next(places);
    case VARY_ONE_AT_A_TIME:
        return one_at_a_time_next(places);
    default:
        return product_next(places, 0, places->shape);
    }
}

/* The product, or UINT64_MAX if it is larger than that. */
static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t result;
    return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

/* How many configurations the section has, before any is excluded. */
static uint64_t section_count(const struct section *section)
{
    struct places places = places_make(section);
    uint64_t shapes = 1, series = 1;
    for (size_t place = 0; place < places.shape; ++place) {
        uint64_t size = place_size(&places, place);
        if (section->vary == VARY_PRODUCT)
            shapes = product(shapes, size);
        else if (section->vary == VARY_ONE_AT_A_TIME)
            shapes += size - 1;
        else if (size > shapes)
            shapes = size;
    }
    for (size_t place = places.shape; place < places.count; ++place)
        series = product(series, place_size(&places, place));
    return product(shapes, series);
}

static enum status manifest_count(const struct manifest *manifest, uint64_t *count,
                                  struct error *error)
{
    uint64_t total = 0, most = 0;
    const struct section *largest = manifest->sections;
    for (size_t i = 0; i < manifest->section_count; ++i) {
        uint64_t n = section_count(&manifest->sections[i]);
        if (__builtin_add_overflow(total, n, &total))
            total = UINT64_MAX;
        if (n > most) {
            most = n;
            largest = &manifest->sections[i];
        }
    }
    if (total > manifest->sweep.max_configurations) {
        char text[32];
        snprintf(text, sizeof text, total == UINT64_MAX ? "more than 1.8e19" : "%llu",
                 (unsigned long long)total);
        return error_set(error, STATUS_USAGE,
                         "%s:%d: %s configurations, most of them from [%s %s]; allowed: "
                         "max_configurations = %llu, which [sweep] can raise",
                         manifest->path, largest->line, text, largest->workload->name,
                         largest->label, (unsigned long long)manifest->sweep.max_configurations);
    }
    *count = total;
    return STATUS_OK;
}

static struct config config_at(const struct places *places)
{
    struct config config = places->defaults;
    for (size_t place = 0; place < places->count; ++place) {
        int parameter = places->parameter[place];
        config_set(&config, (size_t)parameter,
                   &places->section->axes[parameter].values[places->at[place]]);
    }
    return config;
}

static bool config_excluded(const struct config *config, const struct section *section)
{
    for (size_t i = 0; i < section->exclusion_count; ++i)
        if (exclusion_holds(&section->exclusions[i], config))
            return true;
    return false;
}

static int item_compare(const void *a, const void *b)
{
    const struct plan_item *x = a, *y = b;
    return strcmp(x->hash, y->hash);
}

/* Items lie in their plan. */
static void item_keep(void *item)
{
    (void)item;
}

static enum status label_append(struct plan_item *item, const char *label, struct error *error)
{
    char *joined;
    if (asprintf(&joined, "%s %s", item->label, label) < 0)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    free(item->label);
    item->label = joined;
    return STATUS_OK;
}

static enum status config_add(struct builder *builder, const struct section *section,
                              const struct config *config, struct error *error)
{
    struct plan *plan = &builder->plan;
    struct plan_item *item = &plan->items[plan->count];
    struct error unused;
    *item = (struct plan_item){.config = *config};
    config_hash(config, item->hash);
    struct plan_item *const *found = tsearch(item, &builder->hashes, item_compare);
    if (found && *found != item) {
        size_t i = (size_t)(*found - plan->items);
        bool again = builder->last[i] == section;
        plan->merged += 1;
        builder->last[i] = section;
        return again ? STATUS_OK : label_append(*found, section->label, error);
    }
    item->label = found ? strdup(section->label) : NULL;
    if (!item->label)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    if (config_check(config, &unused) == STATUS_OK)
        item->cost = config_cost(config);
    builder->last[plan->count++] = section;
    return STATUS_OK;
}

static enum status section_add(struct builder *builder, const struct manifest *manifest,
                               const struct section *section, struct error *error)
{
    struct places places = places_make(section);
    do {
        struct config point = config_at(&places), config = point;
        if (config_excluded(&point, section)) {
            builder->plan.excluded += 1;
            continue;
        }
        if (section->kind)
            TRY(section->kind->expand(section, manifest->path, &point, &config, error));
        TRY(config_add(builder, section, &config, error));
    } while (product_next(&places, places.shape, places.count) || shape_next(&places));
    return STATUS_OK;
}

static enum status builder_make(uint64_t count, struct builder *builder, struct error *error)
{
    const size_t room = count > 0 ? count : 1;
    builder->plan.items = calloc(room, sizeof *builder->plan.items);
    builder->last = calloc(room, sizeof *builder->last);
    return builder->plan.items && builder->last
               ? STATUS_OK
               : error_set(error, STATUS_SYSTEM, "no memory for %llu configurations",
                           (unsigned long long)count);
}

static void plan_clear(struct plan *plan)
{
    for (size_t i = 0; i < plan->count; ++i)
        free(plan->items[i].label);
    free(plan->items);
}

static enum status builder_fill(struct builder *builder, const struct manifest *manifest,
                                struct error *error)
{
    const struct section *first = manifest->sections;
    for (size_t i = 0; i < manifest->section_count; ++i)
        TRY(section_add(builder, manifest, &manifest->sections[i], error));
    if (builder->plan.count > 0 || builder->plan.excluded == 0)
        return STATUS_OK;
    /* Nothing is left of any section, so each has an exclude; the first one is named. */
    return error_set(error, STATUS_USAGE,
                     "%s:%d: exclude leaves out every configuration of [%s %s]%s, %zu in all",
                     manifest->path, first->exclude_line, first->workload->name, first->label,
                     manifest->section_count > 1 ? " and of the other sections" : "",
                     builder->plan.excluded);
}

enum status plan_create(const struct manifest *manifest, struct plan **plan, struct error *error)
{
    struct builder builder = {.hashes = NULL};
    uint64_t count = 0;
    TRY(manifest_count(manifest, &count, error));
    struct plan *created = malloc(sizeof *created);
    enum status status = created ? builder_make(count, &builder, error)
                                 : error_set(error, STATUS_SYSTEM, "out of memory");
    if (status == STATUS_OK)
        status = builder_fill(&builder, manifest, error);
    tdestroy(builder.hashes, item_keep);
    free(builder.last);
    if (status) {
        plan_clear(&builder.plan);
        free(created);
        return status;
    }
    *created = builder.plan;
    *plan = created;
    return STATUS_OK;
}

void plan_destroy(struct plan *plan)
{
    if (!plan)
        return;
    plan_clear(plan);
    free(plan);
}

/* The names of the final table, one for each item. */
struct names {
    struct naming *naming; /* NULL: no memory, so the labels stand in */
    int width;             /* of the longest, but NAME_WIDTH_MAX at most */
};
enum { NAME_WIDTH_MAX = 100 };

static void name_format(const struct names *names, const struct plan_item *item,
                        char name[WORKLOAD_TEXT])
{
    if (!names->naming || !naming_format(names->naming, item->label, &item->config, name))
        snprintf(name, WORKLOAD_TEXT, "%s", item->label);
}

static struct names names_of(const struct plan *plan)
{
    struct names names = {naming_create(), (int)strlen("name")};
    for (size_t i = 0; names.naming && i < plan->count; ++i) {
        if (naming_add(names.naming, plan->items[i].label, &plan->items[i].config))
            continue;
        naming_destroy(names.naming);
        names.naming = NULL;
    }
    for (size_t i = 0; i < plan->count; ++i) {
        char name[WORKLOAD_TEXT];
        name_format(&names, &plan->items[i], name);
        int width = (int)strlen(name);
        names.width = width > names.width ? width : names.width;
    }
    names.width = names.width < NAME_WIDTH_MAX ? names.width : NAME_WIDTH_MAX;
    return names;
}

/* False if the item cannot exist. */
static bool item_print(const struct plan_item *item, const struct names *names, FILE *stream)
{
    char text[WORKLOAD_TEXT], name[WORKLOAD_TEXT];
    char flops[UNITS_TEXT], bytes[UNITS_TEXT], memory[UNITS_TEXT];
    struct error reason;
    bool exists = config_check(&item->config, &reason) == STATUS_OK;
    units_format(exists ? item->cost.flops : NAN, "FLOP", flops);
    units_format(exists ? item->cost.bytes : NAN, "B", bytes);
    units_format(exists ? item->cost.memory : NAN, "B", memory);
    config_format(&item->config, text);
    name_format(names, item, name);
    utf8_print(stream, "%.12s  %11s  %9s  %9s  %-*s  %s", item->hash, flops, bytes, memory,
               names->width, name, text);
    if (exists)
        fputc('\n', stream);
    else
        utf8_print(stream, "  (skipped: %s)\n", reason.text);
    return exists;
}

void plan_print(const struct plan *plan, FILE *stream)
{
    if (plan->count == 0) {
        fputs("configurations: 0; only the roofs of each device will be measured\n", stream);
        return;
    }
    const struct names names = names_of(plan);
    size_t skipped = 0, unknown = 0;
    utf8_print(stream, "%-12s  %11s  %9s  %9s  %-*s  %s\n", "hash", "FLOPs", "bytes", "memory",
               names.width, "name", "configuration");
    for (size_t i = 0; i < plan->count; ++i)
        if (item_print(&plan->items[i], &names, stream))
            unknown += isnan(plan->items[i].cost.flops) && isnan(plan->items[i].cost.bytes);
        else
            ++skipped;
    naming_destroy(names.naming);
    utf8_print(stream,
               "configurations: %zu (%zu cannot exist and will be skipped), excluded: %zu, "
               "repetitions merged: %zu\n",
               plan->count, skipped, plan->excluded, plan->merged);
    if (unknown > 0)
        utf8_print(stream, "without a modelled cost: %zu; they are measured first\n", unknown);
}

static json_t *number_encode(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

json_t *plan_encode(const struct plan *plan)
{
    const struct names names = names_of(plan);
    json_t *items = json_array();
    for (size_t i = 0; i < plan->count; ++i) {
        const struct plan_item *item = &plan->items[i];
        char text[WORKLOAD_TEXT], name[WORKLOAD_TEXT];
        struct error reason;
        bool exists = config_check(&item->config, &reason) == STATUS_OK;
        config_format(&item->config, text);
        name_format(&names, item, name);
        json_array_append_new(
            items, json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:s?}", "config_hash", item->hash,
                             "configuration", text, "label", item->label, "name", name, "flops",
                             number_encode(exists ? item->cost.flops : NAN), "bytes",
                             number_encode(exists ? item->cost.bytes : NAN), "memory",
                             number_encode(exists ? item->cost.memory : NAN), "skipped",
                             exists ? NULL : reason.text));
    }
    naming_destroy(names.naming);
    return json_pack("{s:o, s:I, s:I}", "configurations", items, "excluded",
                     (json_int_t)plan->excluded, "merged", (json_int_t)plan->merged);
}
