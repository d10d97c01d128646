#include "chip_list.h"

#include <math.h>
#include <string.h>

#include "model/chip.h"
#include "model/roof_kind.h"

/* A column of the table. */
struct rate {
    enum unit unit;
    enum precision precision;
};
enum { RATES_MAX = 2 * PRECISION_COUNT, CELL = 32 };

static double rate_of(const struct chip *chip, const struct rate *rate)
{
    return (rate->unit == UNIT_TENSOR ? chip->tensor : chip->vector)[rate->precision];
}

/* Lists the rates that at least one chip has. Returns their number. */
static int rates_list(struct rate rates[RATES_MAX])
{
    int count = 0;
    for (int unit = UNIT_VECTOR; unit <= UNIT_TENSOR; ++unit)
        for (int precision = 0; precision < PRECISION_COUNT; ++precision) {
            bool known = false;
            rates[count] = (struct rate){(enum unit)unit, (enum precision)precision};
            for (const struct chip *chip = chips; chip->architecture; ++chip)
                known |= rate_of(chip, &rates[count]) > 0.0;
            count += known;
        }
    return count;
}

static const char *rate_text(double rate, char text[CELL])
{
    if (isnan(rate))
        return "?";
    snprintf(text, CELL, rate > 0.0 ? "%.0f" : "-", rate);
    return text;
}

/* The products of a row: its pattern without a star at the end, "others" or "all". */
static const char *model_text(const struct chip *of, char text[CELL])
{
    bool siblings = false;
    for (const struct chip *chip = chips; chip->architecture; ++chip)
        siblings |= chip != of && chip->capability == of->capability;
    snprintf(text, CELL, "%s", of->model ? of->model : siblings ? "others" : "all");
    text[strcspn(text, "*")] = '\0';
    return text;
}

static void heads_print(const char *first, const struct rate *rates, int count, FILE *stream)
{
    fprintf(stream, "%-48s", "");
    for (int i = 0; i < count; ++i)
        fprintf(stream, " %6s", unit_name[rates[i].unit]);
    fprintf(stream, "\n%-48s", first);
    for (int i = 0; i < count; ++i)
        fprintf(stream, " %6s", precision_info[rates[i].precision].name);
    fputc('\n', stream);
}

static void rates_print(const struct rate *rates, int count, FILE *stream)
{
    char text[CELL];
    heads_print("architecture  capability model", rates, count, stream);
    for (const struct chip *chip = chips; chip->architecture; ++chip) {
        fprintf(stream, "%-13s %8d.%d %-23s", chip->architecture, chip->capability / 10,
                chip->capability % 10, model_text(chip, text));
        for (int i = 0; i < count; ++i)
            fprintf(stream, " %6s", rate_text(rate_of(chip, &rates[i]), text));
        fputc('\n', stream);
    }
}

static void peaks_print(const struct rate *rates, int count, FILE *stream)
{
    heads_print("TFLOP/s", rates, count, stream);
    for (const struct chip_product *of = chip_products; of->name; ++of) {
        const struct theory theory = chip_product_theory(of);
        const struct chip *chip = chip_find(of->capability, of->name);
        fprintf(stream, "%-48s", of->name);
        for (int i = 0; i < count; ++i) {
            double peak =
                (rates[i].unit == UNIT_TENSOR ? theory.tensor : theory.vector)[rates[i].precision];
            char text[CELL];
            snprintf(text, CELL, peak < 99.95e12 ? "%.1f" : "%.0f", peak / 1e12);
            fprintf(stream, " %6s", isnan(peak) ? rate_text(rate_of(chip, &rates[i]), text) : text);
        }
        fputc('\n', stream);
    }
}

void chip_list_print(FILE *stream)
{
    struct rate rates[RATES_MAX];
    int count = rates_list(rates);
    fputs("Theoretical dense rates: fused multiply-adds of one multiprocessor in one clock.\n"
          "-: no such unit; ?: unknown; others: GPUs of this capability without a line above.\n\n",
          stream);
    rates_print(rates, count, stream);
    fputs("\nWhole chips, at their boost clocks.\n\n", stream);
    peaks_print(rates, count, stream);
}
