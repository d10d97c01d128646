/* A file that is made aside and published whole: under its final name it is complete and durable,
 * or absent.
 *
 * Until then it has a name only as long as a library needs one to open it. Nobody can guess the
 * name, and nobody else's file of that name is opened. Meanwhile signals that end the process wait:
 * only SIGKILL can leave it behind. */
#ifndef ROOFSWEEP_STAGED_FILE_H
#define ROOFSWEEP_STAGED_FILE_H

#include <signal.h>
#include <stddef.h>

#include "base/status.h"

enum { STAGED_PLACES = 3, STAGED_PLACE = 4096, STAGED_PATH = STAGED_PLACE + 32 };

struct staged_file {
    int fd;
    char path[STAGED_PATH]; /* until staged_file_hide */
    sigset_t signals;       /* blocked before */
};

/* The folders in which a file for `output` can be made: TMPDIR if it is set, /dev/shm, the folder of
 * `output`. Those with room for `size` bytes come first. Returns how many there are. */
size_t staged_file_places(const char *output, double size,
                          char places[STAGED_PLACES][STAGED_PLACE]);

/* A new, empty file in the folder `place`. To be hidden as soon as a library has opened it. */
enum status staged_file_open(struct staged_file *file, const char *place, struct error *error);

/* Its name is gone and its content stays. */
void staged_file_hide(const struct staged_file *file);

/* Why no more can be written to it, as an errno; 0 if more can. Changes its content. */
int staged_file_obstacle(const struct staged_file *file);

/* Copies it into the folder of `path`, synced, and renames that to `path`. If `path` is a link, the
 * file that it names is replaced. */
enum status staged_file_publish(const struct staged_file *file, const char *path,
                                struct error *error);

/* Hidden before. Gives its room back, even where a library still holds it open. */
void staged_file_close(const struct staged_file *file);

#endif
