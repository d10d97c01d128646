/* What the library hands back to the worker: lines in a file of this process. See
 * worker/program/handback.h. */
#ifndef ROOFSWEEP_INJECT_NOTES_H
#define ROOFSWEEP_INJECT_NOTES_H

struct notes; /* one process', until its end */

struct notes *notes_open(const char *folder); /* NULL: the file cannot be made */

/* One line, without its newline. Takes NULL. */
void note(struct notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* All lines are on file, whatever becomes of the process. */
void notes_flush(struct notes *notes);

#endif
