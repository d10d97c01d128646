/* A matrix product of cuBLASLt with the search for its fastest algorithm. The library reads
 * matrices by columns, so a matrix stored by rows is transposed for it. */
#pragma once

#include <cublasLt.h>

#include "worker/gpu/tensor_work.h"

/* A matrix in memory, by columns. */
struct product_matrix {
    int64_t rows, columns;
    int64_t leading; /* elements between columns */
    int64_t stride;  /* elements between matrices of a batch */
    bool transposed; /* in the product; a and b only */
};

struct product_format {
    cudaDataType_t data, result, scale;
    cublasComputeType_t compute;
    int least; /* least compute capability */
};

/* d = scale a b, for each matrix of the batch. */
struct product_form {
    enum precision precision;
    double scale;
    int64_t batches; /* 1: one product */
    struct product_matrix a, b, d;
    cublasLtEpilogue_t epilogue; /* 0: none */
    void *bias;                  /* read or written by the epilogue */
    bool fast_sums;              /* fp8: partial sums may be added in less than fp32 */
    bool narrow_sums;            /* parts of a split product may be added in the result's type */
    const char *suffix;          /* added to the algorithms' names; NULL: none */
    const struct product_format *format; /* NULL: the format that belongs to the precision */
    void *scales;    /* fp4: an e4m3 number for each 16 elements along k, for both a and b */
    void *workspace; /* the caller's, of PRODUCT_WORKSPACE bytes; NULL: the product allocates */
};

enum { PRODUCT_CANDIDATES = 16, PRODUCT_NAME = 64, PRODUCT_WORKSPACE = 64 << 20 };

/* Owns its descriptors and own_workspace. */
struct product {
    const struct product_format *format;
    double scale_double;
    float scale_float;
    int32_t scale_integer;
    cublasLtHandle_t handle; /* the GPU's */
    struct arena *arena;     /* the GPU's */
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulPreference_t preference;
    void *workspace, *own_workspace;
    cublasLtMatmulHeuristicResult_t candidates[PRODUCT_CANDIDATES];
    char names[PRODUCT_CANDIDATES][PRODUCT_NAME]; /* "algo-66", with the form's suffix */
    int count, bound;                             /* number of candidates; index in use */
};

/* STATUS_UNSUPPORTED: the chip does not multiply this precision, or the batch is too large for the
 * library. Opens nothing. */
enum status product_offered(const struct gpu *gpu, enum precision precision, double batches,
                            struct error *error);
/* Opens a product and finds its algorithms. The first algorithm, the library's own choice, is
 * bound. *product is zero before. The caller closes it, after a failure too. STATUS_UNSUPPORTED:
 * the library or the chip lacks the product. */
enum status product_open(const struct gpu *gpu, const struct product_form *form,
                         struct product *product, struct error *error);
void product_close(struct product *product); /* *product is zero afterwards */

/* Enqueues the bound algorithm. */
enum status product_run(const struct gpu *gpu, const struct product *product, const void *a,
                        const void *b, void *d, struct error *error);

/* Work with one product. Structs of workloads with a product begin with this struct. */
struct product_work {
    struct tensor_work tensors;
    struct product product;
};
/* Binds the fastest algorithm and describes it in the record. */
enum status product_choose(struct gpu *gpu, struct product_work *work, struct record *record,
                           struct error *error);
enum status product_describe(const struct product *product, struct record *record,
                             struct error *error);

/* As in struct tensor_routine. */
enum status product_work_check(const struct gpu *gpu, const struct config *config,
                               struct error *error);
void product_work_close(struct work *work);
