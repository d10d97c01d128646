/* What others reach on these cores, for cpu_roofs.sh: copy and triad by STREAM's rules (plain
 * loops, compiled for this CPU, arrays of four times the last-level cache, bytes without what a
 * store fetches first, the best of ten), and the GEMMs of the BLAS that the worker links.
 * Usage: cpu_roofs BYTES EXTENT; prints "ROOF<tab>VALUE<tab>WHO". */
#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 10 };

static double *new_array(size_t count, double value)
{
    double *array = aligned_alloc(64, count * sizeof *array);
    if (!array) {
        perror("cpu_roofs");
        exit(1);
    }
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < count; ++i)
        array[i] = value;
    return array;
}

static void stream(size_t count)
{
    double *restrict a = new_array(count, 1.0), *restrict b = new_array(count, 2.0);
    double *restrict c = new_array(count, 3.0);
    double copy = INFINITY, triad = INFINITY;
    for (int run = 0; run < RUNS; ++run) {
        double begin = omp_get_wtime();
#pragma omp parallel for simd schedule(static)
        for (size_t i = 0; i < count; ++i)
            c[i] = a[i];
        double middle = omp_get_wtime();
#pragma omp parallel for simd schedule(static)
        for (size_t i = 0; i < count; ++i)
            a[i] = b[i] + 0.4 * c[i];
        copy = fmin(copy, middle - begin);
        triad = fmin(triad, omp_get_wtime() - middle);
    }
    double bytes = (double)(count * sizeof *a);
    printf("dram copy\t%g\tSTREAM\ndram triad\t%g\tSTREAM\n", 2.0 * bytes / copy,
           3.0 * bytes / triad);
    free(a);
    free(b);
    free(c);
}

/* Runs one of them, GEMM(n), RUNS times: FLOP/s of the best. */
#define GEMM_BEST(best, n, gemm)                                                                   \
    for (int run = 0; run < RUNS; ++run) {                                                         \
        double begin = omp_get_wtime();                                                            \
        gemm;                                                                                      \
        best = fmax(best, 2.0 * (n) * (n) * (n) / (omp_get_wtime() - begin));                      \
    }

static void gemms(int n)
{
    size_t count = (size_t)n * (size_t)n;
    double *a = new_array(count, 0.0), *b = new_array(count, 0.0), *c = new_array(count, 0.0);
    float *sa = (float *)a, *sb = (float *)b, *sc = (float *)c;
    double fp64 = 0.0, fp32 = 0.0;
    for (size_t i = 0; i < count; ++i) {
        a[i] = 0.1 + (double)(i % 97) * 1e-2;
        b[i] = 1.1 - (double)(i % 89) * 1e-2;
    }
    GEMM_BEST(
        fp64, (double)n,
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, a, n, b, n, 0.0, c, n))
    for (size_t i = 0; i < count; ++i) { /* the same memory again */
        sa[i] = 0.1F + (float)(i % 97) * 1e-2F;
        sb[i] = 1.1F - (float)(i % 89) * 1e-2F;
    }
    GEMM_BEST(fp32, (double)n,
              cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0F, sa, n, sb, n,
                          0.0F, sc, n))
    const char *core = openblas_get_corename();
    printf("fp64 vector\t%g\tdgemm of OpenBLAS for %s\n", fp64, core);
    printf("fp32 vector\t%g\tsgemm of OpenBLAS for %s\n", fp32, core);
    free(a);
    free(b);
    free(c);
}

int main(int argc, char **argv)
{
    double bytes = argc == 3 ? atof(argv[1]) : 0.0;
    int extent = argc == 3 ? atoi(argv[2]) : -1;
    if (argc != 3 || extent < 0)
        return 2;
    if (bytes > 0.0)
        stream((size_t)bytes / sizeof(double) / 8 * 8);
    if (extent > 0)
        gemms(extent);
    return 0;
}
