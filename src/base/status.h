/* The error convention of the whole project.
 *
 * A function that can fail returns enum status. If it returns anything but STATUS_OK, it has
 * written one line of text, without a newline, into the caller's struct error, and has changed none
 * of its outputs. The function that detects the error writes the text: what failed, where, and what
 * the user can do. Callers only prepend their own place (error_prefix), or append what the user can
 * do (error_append). struct error owns nothing. */
#pragma once

enum status {
    STATUS_OK = 0,
    STATUS_SYSTEM,      /* a file, a system call or a library failed */
    STATUS_USAGE,       /* the command line or the manifest is wrong */
    STATUS_FAILED,      /* this configuration could not be measured; others may work */
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

/* Puts "PREFIX: " in front of the text, unless `status` is STATUS_OK. Returns `status`. */
enum status error_prefix(struct error *error, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends to the text, for example advice that only the caller can give. Returns `status`. */
enum status error_append(struct error *error, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Evaluates the expression. If its value is not STATUS_OK, returns the value from the function that
 * contains the macro. */
#define TRY(expression)                                                                            \
    do {                                                                                           \
        enum status try_status = (expression);                                                     \
        if (try_status)                                                                            \
            return try_status;                                                                     \
    } while (0)

#ifdef __clang_analyzer__ /* clang's analyzer does not see that these functions return `status` */
#define error_set(error, status, ...)    (error_set(error, status, __VA_ARGS__), (status))
#define error_prefix(error, status, ...) (error_prefix(error, status, __VA_ARGS__), (status))
#define error_append(error, status, ...) (error_append(error, status, __VA_ARGS__), (status))
#endif
