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

/* A section's axes as places of an odometer; place 0 turns slowest. First come the axes of the
 * shape, in the order of the manifest's lines, then the series, so that points of one shape stay
 * together. */
struct places {
    const struct section *section;
    size_t shape, count;                    /* number of places in the shape, and in total */
    int parameter[WORKLOAD_PARAMETERS_MAX]; /* parameter at each place */
    size_t at[WORKLOAD_PARAMETERS_MAX];     /* index of the current value at each place */
    struct config config;                   /* defaults */
};

struct builder {
    struct plan *plan;
    const struct section **last; /* the last section that has each item */
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
    struct places places = {.section = section, .config = config_default(section->workload)};
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

/* Moves to the next point of the shape. False: it was the last. */
static bool shape_next(struct places *places)
{
    bool more = false;
    size_t place = 0;
    if (places->section->vary == VARY_PRODUCT)
        return product_next(places, 0, places->shape);
    if (places->section->vary == VARY_ZIP) { /* places with several values move together */
        for (; place < places->shape; ++place) {
            if (place_size(places, place) == 1)
                continue;
            places->at[place] = (places->at[place] + 1) % place_size(places, place);
            more = places->at[place] != 0;
        }
        return more;
    }
    /* Each place in turn takes all its values, while the other places keep their first value. */
    while (place < places->shape && places->at[place] == 0)
        ++place;
    for (place = place == places->shape ? 0 : place; place < places->shape; ++place) {
        if (++places->at[place] < place_size(places, place))
            return true;
        places->at[place] = 0;
    }
    return false;
}

/* At most UINT64_MAX. */
static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t result;
    return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

/* Number of the section's configurations, including excluded ones. */
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
    return product(product(shapes, series), section->list.path ? section->list.count : 1);
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

static int item_compare(const void *a, const void *b)
{
    const struct plan_item *x = a, *y = b;
    return strcmp(x->hash, y->hash);
}

/* Frees nothing: tdestroy needs a function, but the plan owns its items. */
static void item_keep(void *item)
{
    (void)item;
}

/* Appends "LABEL:PLACE NAME xCOUNT", unless `listed` ends with it: axes can repeat the row. */
static enum status row_note(struct plan_item *item, const struct section *section,
                            const struct list_row *row, struct error *error)
{
    char *entry, *listed = NULL;
    if (asprintf(&entry, "%s:%zu%s%s x%lld", section->label, row->place, row->name ? " " : "",
                 row->name ? row->name : "", (long long)row->count) < 0)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    const char *before = item->listed ? item->listed : "";
    size_t used = strlen(before), length = strlen(entry);
    bool noted = used >= length && strcmp(before + used - length, entry) == 0 &&
                 (used == length || (used > length + 1 && before[used - length - 2] == ';'));
    int made = noted ? 0 : asprintf(&listed, "%s%s%s", before, used ? "; " : "", entry);
    free(entry);
    if (made < 0)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    if (noted)
        return STATUS_OK;
    free(item->listed);
    item->listed = listed;
    item->count += row->count;
    return STATUS_OK;
}

/* `row`: the list's row from which the configuration comes, or NULL. */
static enum status config_add(struct builder *builder, const struct section *section,
                              const struct list_row *row, const struct config *config,
                              struct error *error)
{
    struct plan *plan = builder->plan;
    struct plan_item *item = &plan->items[plan->count];
    struct error unused;
    *item = (struct plan_item){.config = *config};
    config_hash(config, item->hash);
    struct plan_item *const *found = tsearch(item, &plan->hashes, item_compare);
    struct plan_item *kept = found ? *found : item;
    const struct section **last = &builder->last[kept - plan->items];
    char *label = NULL;
    if (!found)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    if (kept != item) {
        plan->merged += 1;
    } else {
        plan->count += 1;
        if (config_check(config, &unused) == STATUS_OK)
            item->cost = config_cost(config);
    }
    if (row)
        TRY(row_note(kept, section, row, error));
    if (*last == section)
        return STATUS_OK;
    if (asprintf(&label, "%s%s%s", kept->label ? kept->label : "", kept->label ? " " : "",
                 section->label) < 0)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    free(kept->label);
    kept->label = label;
    *last = section;
    return STATUS_OK;
}

/* Adds the combinations of all axes with a row of the list. `row` NULL: there is no list. */
static enum status row_add(struct builder *builder, const struct manifest *manifest,
                           const struct section *section, const struct list_row *row,
                           struct error *error)
{
    struct places places = places_make(section);
    do {
        struct config point = places.config, config;
        for (size_t i = 0; i < places.count; ++i) {
            size_t parameter = (size_t)places.parameter[i];
            config_set(&point, parameter, &section->axes[parameter].values[places.at[i]]);
        }
        for (size_t i = 0; row && i < section->workload->count; ++i) {
            const struct value value = config_get(&row->config, i);
            if (row->set >> i & 1)
                config_set(&point, i, &value);
        }
        config = point;
        bool excluded = false;
        for (size_t i = 0; i < section->exclusion_count && !excluded; ++i)
            excluded = exclusion_holds(&section->exclusions[i], &point);
        if (excluded) {
            builder->plan->excluded += 1;
            continue;
        }
        if (section->kind)
            TRY(section->kind->expand(section, manifest->path, &point, &config, error));
        TRY(config_add(builder, section, row, &config, error));
    } while (product_next(&places, places.shape, places.count) || shape_next(&places));
    return STATUS_OK;
}

void plan_destroy(struct plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->count; ++i) {
        free(plan->items[i].label);
        free(plan->items[i].listed);
        free(plan->items[i].name);
    }
    tdestroy(plan->hashes, item_keep);
    free(plan->items);
    free(plan);
}

static enum status items_finish(struct plan *plan, struct error *error)
{
    struct naming *naming = naming_create();
    bool made = naming;
    char name[WORKLOAD_TEXT];
    for (size_t i = 0; made && i < plan->count; ++i) {
        const struct plan_item *item = &plan->items[i];
        made = naming_add(naming, item->label, item->listed, &item->config);
    }
    for (size_t i = 0; made && i < plan->count; ++i) {
        const struct plan_item *item = &plan->items[i];
        naming_format(naming, item->label, item->listed, &item->config, name);
        plan->items[i].name = strdup(name);
        made = plan->items[i].name;
    }
    naming_destroy(naming);
    return made ? STATUS_OK : error_set(error, STATUS_SYSTEM, "out of memory");
}

size_t plan_find(const struct plan *plan, const char *hash)
{
    struct plan_item key;
    snprintf(key.hash, sizeof key.hash, "%s", hash);
    struct plan_item *const *found = tfind(&key, &plan->hashes, item_compare);
    return found ? (size_t)(*found - plan->items) : plan->count;
}

static enum status builder_fill(struct builder *builder, const struct manifest *manifest,
                                struct error *error)
{
    uint64_t count = 0;
    TRY(manifest_count(manifest, &count, error));
    const size_t room = count > 0 ? count : 1;
    const struct section *first = manifest->sections;
    builder->plan->items = calloc(room, sizeof *builder->plan->items);
    builder->last = calloc(room, sizeof *builder->last);
    if (!builder->plan->items || !builder->last)
        return error_set(error, STATUS_SYSTEM, "no memory for %llu configurations",
                         (unsigned long long)count);
    for (size_t i = 0; i < manifest->section_count; ++i) {
        const struct section *section = &manifest->sections[i];
        for (size_t row = 0; row < section->list.count; ++row)
            TRY(row_add(builder, manifest, section, &section->list.rows[row], error));
        if (!section->list.path)
            TRY(row_add(builder, manifest, section, NULL, error));
    }
    if (builder->plan->count > 0 || builder->plan->excluded == 0)
        return items_finish(builder->plan, error);
    /* Every section is empty, so each has an exclude. The error names the first one. */
    return error_set(error, STATUS_USAGE,
                     "%s:%d: exclude leaves out every configuration of [%s %s]%s, %zu in all",
                     manifest->path, first->exclude_line, first->workload->name, first->label,
                     manifest->section_count > 1 ? " and of the other sections" : "",
                     builder->plan->excluded);
}

enum status plan_create(const struct manifest *manifest, struct plan **plan, struct error *error)
{
    struct builder builder = {.plan = calloc(1, sizeof *builder.plan)};
    enum status status = builder.plan ? builder_fill(&builder, manifest, error)
                                      : error_set(error, STATUS_SYSTEM, "out of memory");
    free(builder.last);
    if (status)
        plan_destroy(builder.plan);
    else
        *plan = builder.plan;
    return manifest->amended ? error_prefix(error, status, AMENDED) : status;
}

enum { NAME_WIDTH_MAX = 100 };

/* The kind of the section, for the first row of a label; else NULL. */
static const struct section_kind *kind_of_first(const struct plan *plan, size_t i)
{
    const struct plan_item *item = &plan->items[i];
    return i == 0 || item[-1].config.workload != item->config.workload ||
                   strcmp(item[-1].label, item->label) != 0
               ? section_kind_of(item->config.workload)
               : NULL;
}

enum status plan_find_programs(const struct plan *plan, const char *folder, struct error *error)
{
    for (size_t i = 0; i < plan->count; ++i) {
        const struct section_kind *kind = kind_of_first(plan, i);
        enum status status = kind ? kind->find(&plan->items[i].config, folder, error) : STATUS_OK;
        TRY(error_prefix(error, status, "%s", plan->items[i].name));
    }
    return STATUS_OK;
}

void plan_print_notes(const struct plan *plan, FILE *stream)
{
    for (size_t i = 0; i < plan->count; ++i) {
        const struct plan_item *item = &plan->items[i];
        const struct section_kind *kind = kind_of_first(plan, i);
        char note[SECTION_NOTE] = "";
        if (kind)
            kind->note(&item->config, note);
        if (*note)
            utf8_print(stream, "%s: %s\n", item->label, note);
    }
}

struct item_text {
    char configuration[WORKLOAD_TEXT];
    bool exists;         /* the configuration can exist */
    struct error reason; /* why the configuration cannot exist */
    struct cost cost;    /* NaN if the configuration cannot exist */
};

static struct item_text item_format(const struct plan_item *item)
{
    struct item_text text = {.cost = item->cost};
    text.exists = config_check(&item->config, &text.reason) == STATUS_OK;
    if (!text.exists)
        text.cost = (struct cost){NAN, NAN, NAN};
    config_format(&item->config, text.configuration);
    return text;
}

/* False if the item cannot exist. */
static bool item_print(const struct plan_item *item, int width, FILE *stream)
{
    const struct item_text text = item_format(item);
    char flops[UNITS_TEXT], bytes[UNITS_TEXT], memory[UNITS_TEXT];
    units_format(text.cost.flops, "FLOP", flops);
    units_format(text.cost.bytes, "B", bytes);
    units_format(text.cost.memory, "B", memory);
    utf8_print(stream, "%.12s  %11s  %9s  %9s  %-*s  %s", item->hash, flops, bytes, memory, width,
               item->name, text.configuration);
    if (text.exists)
        fputc('\n', stream);
    else
        utf8_print(stream, "  (skipped: %s)\n", text.reason.text);
    return text.exists;
}

void plan_print(const struct plan *plan, FILE *stream)
{
    if (plan->count == 0) {
        fputs("configurations: 0; only the roofs of each device will be measured\n", stream);
        return;
    }
    int width = (int)strlen("name");
    size_t skipped = 0, unknown = 0;
    for (size_t i = 0; i < plan->count; ++i)
        width = (int)strlen(plan->items[i].name) > width ? (int)strlen(plan->items[i].name) : width;
    width = width < NAME_WIDTH_MAX ? width : NAME_WIDTH_MAX;
    utf8_print(stream, "%-12s  %11s  %9s  %9s  %-*s  %s\n", "hash", "FLOPs", "bytes", "memory",
               width, "name", "configuration");
    for (size_t i = 0; i < plan->count; ++i)
        if (item_print(&plan->items[i], width, stream))
            unknown += isnan(plan->items[i].cost.flops) && isnan(plan->items[i].cost.bytes);
        else
            ++skipped;
    utf8_print(stream,
               "configurations: %zu (%zu cannot exist and will be skipped), excluded: %zu, "
               "repetitions merged: %zu\n",
               plan->count, skipped, plan->excluded, plan->merged);
    plan_print_notes(plan, stream);
    if (unknown > 0)
        utf8_print(stream, "without a modelled cost: %zu; they are measured first\n", unknown);
}

json_t *plan_encode(const struct plan *plan)
{
    json_t *items = json_array();
    for (size_t i = 0; i < plan->count; ++i) {
        const struct plan_item *item = &plan->items[i];
        const struct item_text text = item_format(item);
        json_array_append_new(
            items,
            json_pack("{s:s, s:s, s:s, s:s, s:s?, s:o?, s:o?, s:o?, s:s?}", "config_hash",
                      item->hash, "configuration", text.configuration, "label", item->label, "name",
                      item->name, "listed", item->listed, "flops", json_real(text.cost.flops),
                      "bytes", json_real(text.cost.bytes), "memory", json_real(text.cost.memory),
                      "skipped", text.exists ? NULL : text.reason.text));
    }
    return json_pack("{s:o, s:I, s:I}", "configurations", items, "excluded",
                     (json_int_t)plan->excluded, "merged", (json_int_t)plan->merged);
}
