/* The hash of a program's text: of the files that its command names. */
#ifndef ROOFSWEEP_WORKER_PROGRAM_TEXT_HASH_H
#define ROOFSWEEP_WORKER_PROGRAM_TEXT_HASH_H

enum { TEXT_HASH = 33 };

/* 128-bit xxHash (XXH3) of the contents, one behind the other, of all words that name a regular file,
 * seen from the folder, as 32 hexadecimal digits. "" if there is none: a command from PATH alone. */
void text_hash(char *const *words, const char *folder, char hash[TEXT_HASH]);

#endif
