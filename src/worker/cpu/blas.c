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
} libraries[] = {
    {"flexiblas_set_num_threads", int_threads_set},
    {"openblas_set_num_threads", int_threads_set},
    {"MKL_Set_Num_Threads", int_threads_set},
    {"bli_thread_set_num_threads", blis_threads_set},
    {"nvpl_blas_set_num_threads", int_threads_set},
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

/* "FlexiBLAS NETLIB", with the library behind it; "OpenBLAS 0.3.21 ..." and the core type of its
 * kernels, as kernels for an older core are often the reason for a GEMM far below the roof; of
 * other libraries the file, behind links such as "libblas.so.3". */
void blas_describe(char *text, size_t size)
{
    int (*backend)(char *, size_t) =
        (int (*)(char *, size_t))blas_function("flexiblas_current_backend");
    char *(*config)(void) = (char *(*)(void))blas_function("openblas_get_config");
    char *(*core)(void) = (char *(*)(void))blas_function("openblas_get_corename");
    void *gemm = dlsym(RTLD_DEFAULT, "cblas_dgemm");
    char name[32] = "", path[PATH_MAX] = "CBLAS";
    Dl_info info;
    if (backend && backend(name, sizeof name) > 0) {
        snprintf(text, size, "FlexiBLAS %s", name);
    } else if (config && core && sscanf(config(), "%*s %31s", name) == 1) {
        snprintf(text, size, "OpenBLAS %s %s", name, core());
    } else {
        if (gemm && dladdr(gemm, &info) && info.dli_fname && !realpath(info.dli_fname, path))
            strcpy(path, "CBLAS");
        const char *slash = strrchr(path, '/');
        snprintf(text, size, "%s", slash ? slash + 1 : path);
    }
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
