#include "worker/cpu/blas.h"

#include <dlfcn.h>
#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cpu/routine.h"

/* A function of the library; NULL: the library lacks it. Looked up at run time, because Debian's
 * alternatives, FlexiBLAS and modules exchange the library behind CBLAS. */
typedef void (*function)(void);
static function blas_function(const char *name)
{
    union {
        void *address;
        function call;
    } symbol = {dlsym(RTLD_DEFAULT, name)};
    return symbol.call;
}

/* "OpenBLAS 0.3.21 ..." and the core type of its kernels. Kernels for an older core are often the
 * reason for a GEMM far below the roof. */
static void openblas_describe(char *text, size_t size)
{
    char *(*config)(void) = (char *(*)(void))blas_function("openblas_get_config");
    char *(*core)(void) = (char *(*)(void))blas_function("openblas_get_corename");
    char version[32] = "";
    if (config)
        sscanf(config(), "%*s %31s", version);
    snprintf(text, size, "OpenBLAS %s %s", version, core ? core() : "");
}

static void flexiblas_describe(char *text, size_t size)
{
    int (*backend)(char *, size_t) =
        (int (*)(char *, size_t))blas_function("flexiblas_current_backend");
    char name[32] = "";
    if (!backend || backend(name, sizeof name) <= 0)
        name[0] = '\0';
    snprintf(text, size, "FlexiBLAS %s", name);
}

/* "Intel(R) oneAPI Math Kernel Library Version 2026.2-Product Build ..." */
static void mkl_describe(char *text, size_t size)
{
    void (*say)(char *, int) = (void (*)(char *, int))blas_function("mkl_get_version_string");
    char said[200] = "", version[32] = "";
    if (say)
        say(said, (int)sizeof said);
    const char *found = strstr(said, "Version ");
    if (found)
        sscanf(found, "Version %31[^- ]", version);
    snprintf(text, size, "MKL %s", version);
}

static void blis_describe(char *text, size_t size)
{
    const char *(*version)(void) = (const char *(*)(void))blas_function("bli_info_get_version_str");
    snprintf(text, size, "BLIS %s", version ? version() : "");
}

static void nvpl_describe(char *text, size_t size)
{
    int (*version)(void) = (int (*)(void))blas_function("nvpl_blas_get_version");
    snprintf(text, size, "NVPL BLAS %d", version ? version() : 0);
}

/* BLIS's integers have the size of a pointer. */
static void blis_threads_set(function set)
{
    ((void (*)(ptrdiff_t))set)(1);
}

static void int_threads_set(function set)
{
    ((void (*)(int))set)(1);
}

/* The function that sets the number of threads identifies a library. FlexiBLAS comes before the
 * libraries that it calls. */
static const struct blas {
    const char *threads;
    void (*threads_set)(function set);
    void (*describe)(char *text, size_t size);
} libraries[] = {
    {"flexiblas_set_num_threads", int_threads_set, flexiblas_describe},
    {"openblas_set_num_threads", int_threads_set, openblas_describe},
    {"MKL_Set_Num_Threads", int_threads_set, mkl_describe},
    {"bli_thread_set_num_threads", blis_threads_set, blis_describe},
    {"nvpl_blas_set_num_threads", int_threads_set, nvpl_describe},
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

void blas_single_thread(void)
{
    for (size_t i = 0; i < LIBRARIES; ++i) {
        function set = blas_function(libraries[i].threads);
        if (set) {
            libraries[i].threads_set(set);
            return;
        }
    }
}

/* For a library without a row: its file, behind links such as "libblas.so.3". */
static void file_describe(char *text, size_t size)
{
    Dl_info info;
    char path[PATH_MAX];
    void *gemm = dlsym(RTLD_DEFAULT, "cblas_dgemm");
    if (!gemm || !dladdr(gemm, &info) || !info.dli_fname || !realpath(info.dli_fname, path)) {
        snprintf(text, size, "CBLAS");
        return;
    }
    const char *slash = strrchr(path, '/');
    snprintf(text, size, "%s", slash ? slash + 1 : path);
}

void blas_describe(char *text, size_t size)
{
    for (size_t i = 0; i < LIBRARIES; ++i)
        if (blas_function(libraries[i].threads)) {
            libraries[i].describe(text, size);
            return;
        }
    file_describe(text, size);
}

enum status blas_check(const int64_t *extents, size_t count, struct error *error)
{
    for (size_t i = 0; i < count; ++i)
        if (extents[i] > INT_MAX)
            return error_set(error, STATUS_UNSUPPORTED,
                             "a matrix of extent %lld is beyond the integers of CBLAS",
                             (long long)extents[i]);
    return STATUS_OK;
}

static const char *element_at(const void *data, int64_t index, bool wide)
{
    return (const char *)data + (size_t)index * (wide ? sizeof(double) : sizeof(float));
}

/* Computes some rows and columns of c, in the calling thread. */
static void multiply(const struct product *p, int64_t row, int64_t rows, int64_t column,
                     int64_t columns)
{
    const void *a = element_at(p->a.data, row * (p->a.transposed ? 1 : p->a.leading), p->wide);
    const void *b = element_at(p->b.data, column * (p->b.transposed ? p->b.leading : 1), p->wide);
    void *c = (void *)(uintptr_t)element_at(p->c, row * p->c_leading + column, p->wide);
    int a_order = p->a.transposed ? CblasTrans : CblasNoTrans;
    int b_order = p->b.transposed ? CblasTrans : CblasNoTrans;
    if (rows == 0 || columns == 0)
        return;
    if (p->wide)
        cblas_dgemm(CblasRowMajor, a_order, b_order, (int)rows, (int)columns, (int)p->k, 1, a,
                    (int)p->a.leading, b, (int)p->b.leading, 0, c, (int)p->c_leading);
    else
        cblas_sgemm(CblasRowMajor, a_order, b_order, (int)rows, (int)columns, (int)p->k, 1, a,
                    (int)p->a.leading, b, (int)p->b.leading, 0, c, (int)p->c_leading);
}

void blas_multiply_shared(const struct product *p)
{
    int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    int64_t extent = p->m >= p->n ? p->m : p->n;
    int64_t begin = share_begin(extent, thread, threads);
    int64_t count = share_begin(extent, thread + 1, threads) - begin;
    if (p->m >= p->n)
        multiply(p, begin, count, 0, p->n);
    else
        multiply(p, 0, p->m, begin, count);
}
