/* A matrix product of cuBLASLt: described, its algorithms found, the fastest of them bound, run.
 * For the library all matrices lie column by column: what a workload keeps row by row is transposed
 * for it. */
#pragma once

#include <cublasLt.h>

#include "worker/gpu/tensor_work.h"

/* As it lies in memory. */
struct product_matrix {
    int64_t rows, columns;
    int64_t leading; /* elements from one column to the next */
    int64_t stride;  /* from one of the batch to the next */
    bool transposed; /* of a and b: as a factor */
};

struct product_format {
    cudaDataType_t data, result, scale;
    cublasComputeType_t compute;
    int least; /* compute capability */
};

/* d = scale a b, of each of the batch. */
struct product_form {
    enum precision precision;
    double scale;
    int64_t batches; /* 1: one product */
    struct product_matrix a, b, d;
    cublasLtEpilogue_t epilogue; /* 0: none */
    void *bias;                  /* of an epilogue that reads or writes one */
    bool fast_sums;              /* of fp8: partial sums are not added up in fp32 */
    bool narrow_sums;   /* pieces of a split product may be added in the type of the result */
    const char *suffix; /* of the algorithms' names; NULL: none */
    const struct product_format *format; /* NULL: the precision's own */
    void *scales;    /* of fp4: of a and b, one of e4m3 for each 16 elements along the sums */
    void *workspace; /* the caller's, of PRODUCT_WORKSPACE bytes; NULL: the product takes its own */
};

enum { PRODUCT_CANDIDATES = 16, PRODUCT_NAME = 64, PRODUCT_WORKSPACE = 64 << 20 };

/* All that it points to is owned, but the memory of tensors, and what is the GPU's. */
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
    int count, bound;                             /* of candidates; the one that runs */
};

/* STATUS_UNSUPPORTED where the chip does not multiply this precision, or the library does not count
 * so many products at once. Nothing is opened. */
enum status product_offered(const struct gpu *gpu, enum precision precision, double batches,
                            struct error *error);
/* The same of products by vector units. */
enum status product_plain_offered(enum precision precision, struct error *error);
/* Describes it and finds its algorithms; the first, the library's own choice, is bound. *product is
 * zero before, and product_close takes it whatever became of it. STATUS_UNSUPPORTED if the library
 * or the chip does not offer it. */
enum status product_open(const struct gpu *gpu, const struct product_form *form,
                         struct product *product, struct error *error);
void product_close(struct product *product); /* leaves it zero */

/* Enqueues it. */
enum status product_run(const struct gpu *gpu, const struct product *product, const void *a,
                        const void *b, void *d, struct error *error);

/* The work that a search times: its struct begins with this one. */
struct product_work {
    struct tensor_work tensors;
    struct product product;
};
/* Binds the fastest algorithm, and sets what the record has on it. */
enum status product_choose(struct gpu *gpu, struct product_work *work, struct record *record,
                           struct error *error);
/* The same of the algorithm that is bound, without a search. */
enum status product_describe(const struct product *product, struct record *record,
                             struct error *error);

/* As in struct tensor_routine, of a workload that is one product. */
enum status product_work_check(const struct gpu *gpu, const struct config *config,
                               struct error *error);
void product_work_close(struct work *work);
