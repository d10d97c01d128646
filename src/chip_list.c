#include "chip_list.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "model/chip.h"
#include "model/roof_kind.h"

/* One column of rates. */
struct rate {
    enum unit unit;
    enum precision precision;
};
enum { RATES_MAX = 2 * PRECISION_COUNT, CELL = 32 };

static double rate_of(const struct chip *chip, const struct rate *rate)
{
    return (rate->unit == UNIT_TENSOR ? chip->tensor : chip->vector)[rate->precision];
}

/* Those that any chip has. */
static int rates_list(struct rate rates[RATES_MAX])
{
    int count = 0;
    for (int unit = UNIT_VECTOR; unit <= UNIT_TENSOR; ++unit)
        for (int precision = 0; precision < PRECISION_COUNT; ++precision) {
            bool known = false;
            rates[count] = (struct rate){(enum unit)unit, (enum precision)precision};
            for (const struct chip *chip = chip_next(NULL); chip; chip = chip_next(chip))
                known |= rate_of(chip, &rates[count]) > 0.0;
            count += known;
        }
    return count;
}

/* ---- the formats ---- */

static const char *rate_text(double rate, char text[CELL])
{
    if (isnan(rate))
        return "?";
    snprintf(text, CELL, rate > 0.0 ? "%.0f" : "-", rate);
    return text;
}

/* The star of "GeForce RTX 40*" is a pattern's. */
static const char *model_text(const struct chip *of, char text[CELL])
{
    bool siblings = false;
    for (const struct chip *chip = chip_next(NULL); chip; chip = chip_next(chip))
        siblings |= chip != of && chip->capability == of->capability;
    snprintf(text, CELL, "%s", of->model ? of->model : siblings ? "others" : "all");
    text[strcspn(text, "*")] = '\0';
    return text;
}

/* The line of precisions begins with `first`; in text the units stand above it. */
static void heads_print(const char *first, const struct rate *rates, int count, bool markdown,
                        FILE *stream)
{
    fprintf(stream, markdown ? "%s" : "%-48s", markdown ? first : "");
    for (int i = 0; i < count; ++i)
        if (markdown)
            fprintf(stream, " %s %s |", precision_info[rates[i].precision].name,
                    unit_name[rates[i].unit]);
        else
            fprintf(stream, " %6s", unit_name[rates[i].unit]);
    fprintf(stream, markdown ? "\n|" : "\n%-48s", first);
    for (const char *at = first + 1; markdown && *at; ++at)
        fputs(*at == '|' ? "---|" : "", stream);
    for (int i = 0; i < count; ++i)
        fprintf(stream, markdown ? "---:|" : " %6s", precision_info[rates[i].precision].name);
    fputc('\n', stream);
}

static void rates_print(const struct rate *rates, int count, bool markdown, FILE *stream)
{
    char text[CELL];
    heads_print(markdown ? "| architecture | capability | model |"
                         : "architecture  capability model",
                rates, count, markdown, stream);
    for (const struct chip *chip = chip_next(NULL); chip; chip = chip_next(chip)) {
        fprintf(stream, markdown ? "| %s | %d.%d | %s |" : "%-13s %8d.%d %-23s", chip->architecture,
                chip->capability / 10, chip->capability % 10, model_text(chip, text));
        for (int i = 0; i < count; ++i)
            fprintf(stream, markdown ? " %s |" : " %6s", rate_text(rate_of(chip, &rates[i]), text));
        fputc('\n', stream);
    }
}

static void peaks_print(const struct rate *rates, int count, bool markdown, FILE *stream)
{
    heads_print(markdown ? "| TFLOP/s |" : "TFLOP/s", rates, count, markdown, stream);
    for (const struct chip_product *of = chip_product_next(NULL); of; of = chip_product_next(of)) {
        const struct theory theory = chip_product_theory(of);
        const struct chip *chip = chip_find(of->capability, of->name);
        fprintf(stream, markdown ? "| %s |" : "%-48s", of->name);
        for (int i = 0; i < count; ++i) {
            double peak =
                (rates[i].unit == UNIT_TENSOR ? theory.tensor : theory.vector)[rates[i].precision];
            char text[CELL];
            snprintf(text, CELL, peak < 99.95e12 ? "%.1f" : "%.0f", peak / 1e12);
            fprintf(stream, markdown ? " %s |" : " %6s",
                    isnan(peak) ? rate_text(rate_of(chip, &rates[i]), text) : text);
        }
        fputc('\n', stream);
    }
}

static void csv_print(const struct rate *rates, int count, FILE *stream)
{
    fputs("architecture,compute_capability,model", stream);
    for (int i = 0; i < count; ++i)
        fprintf(stream, ",%s_%s", precision_info[rates[i].precision].name,
                unit_name[rates[i].unit]);
    fputc('\n', stream);
    for (const struct chip *chip = chip_next(NULL); chip; chip = chip_next(chip)) {
        fprintf(stream, "\"%s\",\"%d.%d\",", chip->architecture, chip->capability / 10,
                chip->capability % 10);
        if (chip->model)
            fprintf(stream, "\"%s\"", chip->model);
        for (int i = 0; i < count; ++i) {
            double rate = rate_of(chip, &rates[i]);
            fprintf(stream, isnan(rate) ? "," : ",%.0f", rate);
        }
        fputc('\n', stream);
    }
}

static void json_print(const struct rate *rates, int count, FILE *stream)
{
    const char *separator = "[\n";
    for (const struct chip *chip = chip_next(NULL); chip; chip = chip_next(chip)) {
        const char *quote = chip->model ? "\"" : "";
        fprintf(stream, "%s{\"architecture\":\"%s\",\"compute_capability\":\"%d.%d\"", separator,
                chip->architecture, chip->capability / 10, chip->capability % 10);
        fprintf(stream, ",\"model\":%s%s%s", quote, chip->model ? chip->model : "null", quote);
        for (int i = 0; i < count; ++i) {
            double rate = rate_of(chip, &rates[i]);
            fprintf(stream, isnan(rate) ? ",\"%s_%s\":null" : ",\"%s_%s\":%.0f",
                    precision_info[rates[i].precision].name, unit_name[rates[i].unit], rate);
        }
        fputc('}', stream);
        separator = ",\n";
    }
    fputs("\n]\n", stream);
}

void chip_list_print(enum table_format format, FILE *stream)
{
    struct rate rates[RATES_MAX];
    int count = rates_list(rates);
    bool markdown = format == TABLE_MARKDOWN;
    if (format == TABLE_CSV) {
        csv_print(rates, count, stream);
        return;
    }
    if (format == TABLE_JSON) {
        json_print(rates, count, stream);
        return;
    }
    if (!markdown)
        fputs("Theory, dense: fused multiply-adds of one multiprocessor in one clock.\n"
              "-: no such unit; ?: not known. others: of that capability and not named above.\n\n",
              stream);
    rates_print(rates, count, markdown, stream);
    fputs(markdown ? "\n" : "\nWhole chips, at their boost clocks.\n\n", stream);
    peaks_print(rates, count, markdown, stream);
}
