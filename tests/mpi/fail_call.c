/* This library is preloaded into a job. It makes the n-th call of a kind fail once in rank 0.
 *
 * FAIL_CALL: "KIND N ERRNO". FAIL_LOG names a file that gets a line for the failing call, or
 * without FAIL_CALL for each call. A line has kind, number, and the places on the stack, innermost
 * first.
 *
 * Only calls of the program, netCDF and HDF5 count. MPI's own calls do not count, because their
 * number varies. Calls of processes that rank 0 forks count, too; calls of workers do not. A
 * failing close() closes, as on Linux. malloc() gets large blocks from mmap() within the C library,
 * where a preloaded mmap() is not called: so large blocks and threads count as mmap.
 *
 * FAIL_ONEDNN: in workers, all operations of oneDNN fail after this number. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

enum { LARGE = 32 << 10 }; /* bytes */
static const char *const kinds[] = {"fsync",  "fdatasync", "write", "close",
                                    "rename", "link",      "open",  "mmap"};
static int *counts; /* number of calls of each kind, shared with forked processes; NULL: this is not
                       rank 0 */

__attribute__((constructor)) static void begin(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *name = program_invocation_short_name;
    if (strcmp(name, "roofsweep") == 0 && (!rank || strcmp(rank, "0") == 0))
        counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Returns the name of the object that has the code, without its folder. */
static const char *object_of(void *code, Dl_info *info)
{
    if (!dladdr(code, info) || !info->dli_fname)
        return "";
    const char *slash = strrchr(info->dli_fname, '/');
    return slash ? slash + 1 : info->dli_fname;
}

static void log_call(const char *kind, int number)
{
    void *frames[64];
    Dl_info info;
    FILE *log = getenv("FAIL_LOG") ? fopen(getenv("FAIL_LOG"), "a") : NULL;
    if (!log)
        return;
    fprintf(log, "%s %d", kind, number);
    for (int i = 2, count = backtrace(frames, 64); i < count; ++i) {
        const char *object = object_of(frames[i], &info);
        fprintf(log, " %s+%zx", object, (size_t)((char *)frames[i] - (char *)info.dli_fbase));
    }
    fprintf(log, "\n");
    fclose(log);
}

/* True: this call must fail. errno says why. `kind` may be NULL. */
static bool call_fails(const char *kind, void *caller)
{
    static __thread bool inside;
    Dl_info info;
    char wanted[16] = "";
    int number = 0, code = 0, index = 0;
    const char *object = counts && kind && !inside ? object_of(caller, &info) : "";
    if (strcmp(object, "roofsweep") != 0 && strncmp(object, "libnetcdf", 9) != 0 &&
        strncmp(object, "libhdf5", 7) != 0)
        return false;
    inside = true;
    while (strcmp(kinds[index], kind) != 0)
        ++index;
    int own = __atomic_add_fetch(&counts[index], 1, __ATOMIC_SEQ_CST);
    const char *chosen = getenv("FAIL_CALL");
    bool fails = chosen && sscanf(chosen, "%15s %d %d", wanted, &number, &code) == 3 &&
                 number == own && strcmp(wanted, kind) == 0;
    if (fails || !chosen)
        log_call(kind, own);
    inside = false;
    errno = fails ? code : errno;
    return fails;
}

/* NULL for streams in memory, which make no system call. */
static const char *of_file(FILE *stream, const char *kind)
{
    return stream && fileno(stream) >= 0 ? kind : NULL;
}

/* Defines the function `name`. A failing call evaluates `before` and returns `failed`. */
#define WRAP(kind, type, name, parameters, arguments, failed, before)                              \
    type name parameters;                                                                          \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*next) parameters;                                                             \
        if (!next)                                                                                 \
            next = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                    \
        if (!call_fails(kind, __builtin_return_address(0)))                                        \
            return next arguments;                                                                 \
        int code = errno;                                                                          \
        (void)(before);                                                                            \
        errno = code;                                                                              \
        return failed;                                                                             \
    }
/* dlsym() cannot find allocation functions, because the dynamic linker itself allocates memory. */
#define WRAP_ALLOCATION(name, bytes, parameters, arguments)                                        \
    void *__libc_##name parameters;                                                                \
    void *name parameters                                                                          \
    {                                                                                              \
        bool fails = (bytes) >= LARGE && call_fails("mmap", __builtin_return_address(0));          \
        return fails ? NULL : __libc_##name arguments;                                             \
    }
#define DATA int fd, const void *data, size_t size
#define OPEN const char *path, int flags, mode_t mode
#define MMAP void *at, size_t size, int access, int flags, int fd, off_t from
#define PAIR const char *from, const char *to
WRAP("fsync", int, fsync, (int fd), (fd), -1, 0)
WRAP("fdatasync", int, fdatasync, (int fd), (fd), -1, 0)
WRAP("write", ssize_t, write, (DATA), (fd, data, size), -1, 0)
WRAP("write", ssize_t, pwrite, (DATA, off_t at), (fd, data, size, at), -1, 0)
WRAP("write", ssize_t, pwrite64, (DATA, off_t at), (fd, data, size, at), -1, 0)
WRAP(of_file(stream, "write"), int, fflush, (FILE * stream), (stream), EOF, 0)
WRAP("close", int, close, (int fd), (fd), -1, next(fd))
WRAP(of_file(stream, "close"), int, fclose, (FILE * stream), (stream), EOF, next(stream))
WRAP("rename", int, rename, (PAIR), (from, to), -1, 0)
WRAP("rename", int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags),
     (a, from, b, to, flags), -1, 0)
WRAP("link", int, link, (PAIR), (from, to), -1, 0)
WRAP("link", int, linkat, (int a, const char *from, int b, const char *to, int flags),
     (a, from, b, to, flags), -1, 0)
WRAP("open", int, open, (OPEN), (path, flags, mode), -1, 0)
WRAP("open", int, open64, (OPEN), (path, flags, mode), -1, 0)
WRAP("open", int, openat, (int folder, OPEN), (folder, path, flags, mode), -1, 0)
WRAP("open", FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, 0)
WRAP("open", FILE *, fopen64, (const char *path, const char *mode), (path, mode), NULL, 0)
WRAP("open", void *, opendir, (const char *path), (path), NULL, 0)
WRAP("mmap", void *, mmap, (MMAP), (at, size, access, flags, fd, from), MAP_FAILED, 0)
WRAP("mmap", void *, mmap64, (MMAP), (at, size, access, flags, fd, from), MAP_FAILED, 0)
WRAP("mmap", int, pthread_create,
     (unsigned long *thread, const void *settings, void *(*start)(void *), void *data),
     (thread, settings, start, data), EAGAIN, 0)
WRAP_ALLOCATION(malloc, size, (size_t size), (size))
WRAP_ALLOCATION(calloc, count *size, (size_t count, size_t size), (count, size))
WRAP_ALLOCATION(realloc, size, (void *old, size_t size), (old, size))

typedef int execute_function(const void *primitive, void *stream, int count, const void *given);
execute_function dnnl_primitive_execute;
int dnnl_primitive_execute(const void *primitive, void *stream, int count, const void *given)
{
    enum { RUNTIME_ERROR = 5 };
    static execute_function *next;
    static int calls;
    const char *most = getenv("FAIL_ONEDNN");
    if (!next)
        next = (execute_function *)dlsym(RTLD_NEXT, "dnnl_primitive_execute");
    return most && ++calls > atoi(most) ? RUNTIME_ERROR : next(primitive, stream, count, given);
}
