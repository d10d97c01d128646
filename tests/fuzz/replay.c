/* Replaces a fuzzer: runs every prefix of each file of the command line. With -runs=N in front,
 * runs N more inputs, the same in each call: random bytes of the files are changed, left out or
 * repeated, and numbers are replaced by extreme ones. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/fill.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES = 1 << 16 };

struct text {
    uint8_t data[2 * BYTES];
    size_t size;
};

static bool text_load(struct text *text, const char *path)
{
    FILE *stream = fopen(path, "rb");
    text->size = stream ? fread(text->data, 1, BYTES, stream) : 0;
    if (!stream)
        perror(path);
    else
        fclose(stream);
    return stream != NULL;
}

/* Runs a copy, so that the sanitizers notice reads after the end. */
static void text_run(const struct text *text, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        abort();
    memcpy(copy, text->data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static size_t chance(size_t below)
{
    static uint64_t count;
    return below > 0 ? fill_mix(++count) % below : 0;
}

/* Replaces `length` bytes by a text. */
static void text_replace(struct text *text, size_t at, size_t length, const void *with, size_t size)
{
    if (text->size - length + size > BYTES)
        return;
    memmove(text->data + at + size, text->data + at + length, text->size - at - length);
    memcpy(text->data + at, with, size);
    text->size += size - length;
}

static void text_change(struct text *text)
{
    static const char *const numbers[] = {
        "0",    "-1",    "-1e-6", "1e308", "253402300801",
        "1e11", "1e999", "null",  "{}",    "-9223372036854775808"};
    const char *number = numbers[chance(sizeof numbers / sizeof *numbers)];
    size_t at = chance(text->size), length = chance(text->size - at), word = at;
    const uint8_t byte = (uint8_t)chance(256);
    switch (chance(5)) {
    case 0:
        text_replace(text, at, text->size > 0, &byte, 1);
        break;
    case 1:
        text->data[at] ^= (uint8_t)(1 << chance(8));
        break;
    case 2:
        text_replace(text, at, length % 40, "", 0);
        break;
    case 3: {
        uint8_t again[BYTES];
        memcpy(again, text->data + at, length);
        text_replace(text, at, 0, again, length);
        break;
    }
    default:
        while (word < text->size && !isdigit(text->data[word]))
            ++word;
        for (at = word;
             at < text->size && (isdigit(text->data[at]) || strchr("+-.e", text->data[at]));)
            ++at;
        text_replace(text, word, at - word, number, strlen(number));
        break;
    }
}

int main(int argc, char **argv)
{
    static struct text text;
    long runs = 0;
    if (argc > 1 && sscanf(argv[1], "-runs=%ld", &runs) != 1)
        runs = 0;
    const int first = runs > 0 ? 2 : 1;
    for (int i = first; i < argc; ++i) {
        if (!text_load(&text, argv[i]))
            return 1;
        for (size_t cut = 0; cut <= text.size; ++cut)
            text_run(&text, cut);
    }
    for (long run = 0; run < runs && argc > first; ++run) {
        text_load(&text, argv[(size_t)first + chance((size_t)(argc - first))]);
        for (size_t changes = 1 + chance(4); changes > 0; --changes)
            text_change(&text);
        text_run(&text, text.size);
    }
    return argc <= first;
}
