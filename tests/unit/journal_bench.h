/* Journals in a folder of their own, for tests. */
#pragma once

#include "results/journal.h"

/* The state of a test: a folder with at most these files. */
struct folder {
    char path[64], journal[96], file[96], cdl[96];
};
/* Set-up and tear-down of each test. */
int folder_create(void **state);
int folder_remove(void **state);
#define FOLDER_TEST(name) TEST_WITH(name, folder_create, folder_remove)
const char *path_of(void **state); /* path of the journal */

struct journal *open_journal(const char *path, enum journal_mode mode);
void append(struct journal *journal, const char *kind, json_t *entry);
void write_records(const char *path, int count);
struct results *read_journal(const char *path, bool *torn);
/* Fetches a record, valid until the next call. */
const struct record *record_of(const struct results *results, size_t row);

/* A record with identity `number` and `device_key`: measured, or failed if the key is empty. */
json_t *record_entry(int number, const char *device_key, double time);
json_t *device_entry(const char *key, const char *uuid);

/* Reads a file; the caller frees the bytes. */
char *file_load(const char *path, size_t *length);
void file_store(const char *path, const char *text, size_t length);
