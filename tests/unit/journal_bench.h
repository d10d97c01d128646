/* A folder that holds at most one journal, and what is written there and read. For tests only. */
#pragma once

#include "results/journal.h"

/* Of each test. */
int folder_create(void **state);
int folder_remove(void **state);
const char *path_of(void **state); /* the journal */

void assert_ok(enum status status, const struct error *error);

struct journal *open_journal(const char *path, enum journal_mode mode);
void append(struct journal *journal, const char *kind, json_t *entry);
void write_records(const char *path, int count);
struct results *read_journal(const char *path, bool *torn);
/* Fetched from where it is; until the next call. */
const struct record *record_of(const struct results *results, size_t row);

/* A measured record that `number` and `device_key` identify; without a device, one that failed. */
json_t *record_entry(int number, const char *device_key, double time);
json_t *device_entry(const char *key, const char *uuid);

/* As bytes; the caller frees them. */
char *file_load(const char *path, size_t *length);
void file_store(const char *path, const char *text, size_t length);
