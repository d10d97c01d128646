/* The error convention of the whole project.
 *
 * A function that can fail returns enum status. On anything but STATUS_OK it has written one line
 * of text, without a newline, into the caller's struct error, and has changed none of its outputs.
 * Whoever first knows that it is an error words it, once, with the place and the way out; a caller
 * may only put its own place in front (error_prefix), or a way out after (error_append). struct
 * error is plain storage: nothing to free. */
#pragma once

enum status {
    STATUS_OK = 0,
    STATUS_SYSTEM,      /* a file, a system call or a library failed */
    STATUS_USAGE,       /* the command line or the manifest is wrong */
    STATUS_FAILED,      /* this configuration could not be measured; the next one may */
    STATUS_UNSUPPORTED, /* the device or library does not offer this configuration: it is skipped */
    STATUS_DEVICE,      /* the device is unusable, or was lost in mid-run (a "sticky" error) */
    STATUS_INTERRUPTED  /* a signal asked for the end */
};

struct error {
    char text[1024];
};

/* Writes the text and returns `status`, so that a failing function ends in one line. */
enum status error_set(struct error *error, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Unless `status` is STATUS_OK, puts "PREFIX: " in front of the text that is there. Returns
 * `status`. */
enum status error_prefix(struct error *error, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts more after the text that is there, and returns `status`: what a caller knows of the way
 * out. */
enum status error_append(struct error *error, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For functions that return enum status: returns what the expression gives, unless it is
 * STATUS_OK. */
#define TRY(expression)                                                                            \
    do {                                                                                           \
        enum status try_status = (expression);                                                     \
        if (try_status)                                                                            \
            return try_status;                                                                     \
    } while (0)

#ifdef __clang_analyzer__ /* sees one file at a time: not that error_set returns its argument */
#define error_set(error, status, ...)    (error_set(error, status, __VA_ARGS__), (status))
#define error_prefix(error, status, ...) (error_prefix(error, status, __VA_ARGS__), (status))
#define error_append(error, status, ...) (error_append(error, status, __VA_ARGS__), (status))
#endif
