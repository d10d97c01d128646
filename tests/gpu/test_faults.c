/* Makes calls of CUDA, cuDNN and cuBLASLt fail, one in each run: in a small row of each workload,
 * and while roofs are tuned. Each of the first calls fails in some run, and later calls at growing
 * distances. The status must fit the failure, the next row must run, and no device memory and no
 * descriptor of cuDNN's graphs may be left. Skipped (77) without a GPU. */
#include <stdio.h>
#include <string.h>

#include "faults.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/workloads/cudnn_graph.h"
#include "worker/cuda/workloads/workloads.h"
#include "worker/gpu/arena.h"
#include "worker/gpu/roofs.h"

enum { SKIPPED = 77, EVERY = 4 };

static const struct row {
    const char *text;
    const struct tensor_routine *routine;
} rows[] = {
    {"attention batch=1 heads=2 sequence=64 keys=64 precision=fp16", &attention_cudnn},
    {"attention batch=1 heads=2 sequence=64 keys=64", &attention_plain},
    {"conv2d batch=1 height=8 width=8 precision=fp16 layout=nchw algorithm=implicit-precomp-gemm",
     &conv2d_single},
    {"conv2d batch=1 height=8 width=8 algorithm=graph", &conv2d_single},
    {"conv2d batch=1 height=8 width=8 layout=nchw pass=backward algorithm=algo-1", &conv2d_cudnn},
    {"conv2d batch=1 height=8 width=8 pass=training bias=yes activation=relu", &conv2d_plain},
    {"conv2d batch=1 height=8 width=8 channels=16 precision=fp16 bias=yes", &conv2d_tiled},
    {"elementwise elements=1000 operation=add", &elementwise_cudnn},
    {"linear batch=16 inputs=32 outputs=64 activation=relu precision=fp16", &linear_cublaslt},
    {"linear batch=16 inputs=32 outputs=64 pass=backward-weights", &linear_cublaslt},
    {"lstm batch=4 sequence=4 layers=2 precision=fp16 pass=backward", &lstm_cudnn},
    {"lstm batch=4 sequence=4 cell=gru algorithm=standard", &lstm_cudnn},
    {"lstm batch=4 sequence=4 layers=3 precision=fp16", &lstm_persistent},
    {"matmul m=64 n=64 k=64", &matmul_cublaslt},
    {"norm rows=64 columns=64 pass=backward", &norm_cudnn_layer},
    {"norm rows=64 columns=64 operation=batch pass=training", &norm_cudnn_batch},
    {"pool batch=1 height=8 width=8 channels=8", &pool_cudnn},
    {"softmax rows=64 columns=64 pass=backward", &softmax_cudnn},
};

static const struct fault kinds[] = {
    {0, 0, cudaErrorMemoryAllocation, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
     CUBLAS_STATUS_ALLOC_FAILED, false},
    {0, 0, cudaErrorNotSupported, CUDNN_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED, false},
    {.lost = true},
};

struct fault fault;
static struct gpu gpu;
static long held; /* number of blocks of device memory and of descriptors in use */
static long made; /* number of descriptors created so far */
static int wrong;

bool fault_is_due(void)
{
    ++fault.calls;
    return fault.at && (fault.lost ? fault.calls >= fault.at : fault.calls == fault.at);
}

/* The linker calls these instead of the libraries' functions. */
cudaError_t __real_cudaMalloc(void **memory, size_t bytes);
cudaError_t __wrap_cudaMalloc(void **memory, size_t bytes)
{
    cudaError_t code = __real_cudaMalloc(memory, bytes);
    held += code == cudaSuccess;
    return code;
}

cudaError_t __real_cudaFree(void *memory);
cudaError_t __wrap_cudaFree(void *memory)
{
    held -= memory != NULL;
    return __real_cudaFree(memory);
}

cudnnStatus_t __real_cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                  cudnnBackendDescriptor_t *descriptor);
cudnnStatus_t __wrap_cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                  cudnnBackendDescriptor_t *descriptor)
{
    cudnnStatus_t code = __real_cudnnBackendCreateDescriptor(type, descriptor);
    held += code == CUDNN_STATUS_SUCCESS;
    ++made;
    return code;
}

cudnnStatus_t __real_cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor);
cudnnStatus_t __wrap_cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    --held;
    return __real_cudnnBackendDestroyDescriptor(descriptor);
}

static enum status row_start(const struct row *row, struct record *record, struct work **work,
                             struct error *error)
{
    struct config config;
    TRY(config_parse(row->text, &config, error));
    TRY(config_check(&config, error));
    record_set_config(record, &config);
    TRY(tensor_work_prepare(row->routine, &gpu, &config, 1, work, record, error));
    TRY((*work)->ops->run(&gpu, *work, 1, error));
    return vendor_synchronize(&gpu, error);
}

/* Prepares the row, runs it once and releases it. *reached becomes true if the fault has
 * happened. */
static enum status row_run(const struct row *row, const struct algorithm *offer,
                           struct record *record, bool *reached, struct error *error)
{
    struct work *work = NULL;
    record_init(record);
    record->offer = offer;
    fault.calls = 0;
    *error = (struct error){""};
    const enum status status = row_start(row, record, &work, error);
    *reached = fault.at && fault.calls >= fault.at;
    if (work)
        work->ops->release(work);
    fault.at = 0;
    record_clear(record);
    arena_trim(gpu.arena);
    return status;
}

static void expect(bool good, const struct row *row, const char *what, const struct error *error)
{
    if (good)
        return;
    printf("FAIL %s: call %ld: %s: %s\n", row->text, fault.at, what, error->text);
    ++wrong;
}

static void row_fails(const struct row *row)
{
    static const struct row next = {"softmax rows=1 columns=8", &softmax_plain};
    struct record record;
    struct error error;
    bool reached = true;
    long trials = 0;
    fault = (struct fault){0};
    enum status status = row_run(row, NULL, &record, &reached, &error);
    expect(status == STATUS_OK, row, "without a fault", &error);
    const long before = held;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds && status == STATUS_OK; ++kind) {
        reached = true;
        for (long at = 1; reached; at += 1 + at / EVERY, ++trials) {
            bool unused;
            fault = kinds[kind];
            fault.at = at;
            enum status failed = row_run(row, NULL, &record, &reached, &error);
            bool fits = fault.lost ? !reached || failed == STATUS_DEVICE : failed != STATUS_DEVICE;
            fault.at = at; /* for the message */
            expect(fits, row, "the wrong status", &error);
            expect(failed == STATUS_OK || error.text[0], row, "no reason", &error);
            expect(held == before, row, "something is left", &error);
            fault = (struct fault){0};
            failed = row_run(&next, NULL, &record, &unused, &error);
            expect(failed == STATUS_OK, row, "the next row", &error);
        }
    }
    printf("%s: %ld faults\n", row->text, trials);
    fflush(stdout);
}

/* Tunes roofs whose variants own more than arrays, once for each fault. After a failed call tuning
 * continues without the variant. If the device is lost while a graph is captured, the next call
 * reports it. */
static void roofs_fail(const struct roof_request *request)
{
    static const struct row all = {"roofs", NULL};
    long before = 0;
    fault = (struct fault){0};
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; ++kind) {
        bool reached = true;
        for (long at = 0; reached; at += 1 + at / EVERY) { /* 0: no call fails */
            struct roofs *roofs = NULL;
            bool found[ROOF_KINDS];
            struct error error = {""};
            fault = kinds[kind];
            fault.at = at;
            enum status status = roofs_tune(&roofs, &gpu, request, found, &error);
            reached = fault.calls >= at;
            expect(fault.lost || status != STATUS_DEVICE, &all, "the wrong status", &error);
            fault.at = 0;
            roofs_close(roofs);
            before = at == 0 ? held : before;
            fault.at = at; /* for the message */
            expect(held == before, &all, "something is left", &error);
        }
    }
    fault = (struct fault){0};
}

static const struct row hot = {"conv2d batch=1 height=8 width=8 algorithm=graph", &conv2d_single};

/* The plan of an offered algorithm is made from its name, without a search. */
static void plan_is_recalled(void)
{
    struct record record;
    struct error error;
    struct algorithm algorithm;
    bool unused;
    fault = (struct fault){0};
    expect(row_run(&hot, NULL, &record, &unused, &error) == STATUS_OK, &hot, "a search", &error);
    record.status = RECORD_MEASURED;
    if (!algorithm_of_record(&record, &algorithm)) {
        puts("kernels are not known here: no plan is recalled");
        return;
    }
    snprintf(algorithm.algorithm_origin, sizeof algorithm.algorithm_origin, "earlier");
    expect(row_run(&hot, &algorithm, &record, &unused, &error) == STATUS_OK, &hot, "recall",
           &error);
    expect(strcmp(record.algorithm_origin, "earlier") == 0 &&
               strcmp(record.algorithm, algorithm.algorithm) == 0,
           &hot, record.algorithm, &error);
}

/* Rows of the same shape share plans, so the second row searches without building plans. */
static void plans_are_shared(void)
{
    static const struct row cold = {"conv2d batch=1 height=8 width=8 algorithm=graph cache=cold",
                                    &conv2d_single};
    struct record record;
    struct error error;
    bool unused;
    fault = (struct fault){0};
    made = 0;
    expect(row_run(&cold, NULL, &record, &unused, &error) == STATUS_OK, &cold, "alone", &error);
    const long alone = made, before = held;
    gpu.plans = plan_shelf_create();
    expect(row_run(&hot, NULL, &record, &unused, &error) == STATUS_OK, &hot, "hot", &error);
    made = 0;
    expect(row_run(&cold, NULL, &record, &unused, &error) == STATUS_OK, &cold, "cold", &error);
    printf("descriptors of a cold row: %ld alone, %ld after a hot one\n", alone, made);
    expect(made < alone / 2, &cold, "plans are made twice", &error);
    plan_shelf_destroy(gpu.plans);
    gpu.plans = NULL;
    expect(held == before, &cold, "plans are left", &error);
}

int main(void)
{
    struct device device;
    struct error error;
    int count;
    device_init(&device);
    if (gpu_count(&count, &error)) {
        printf("%s\n", error.text);
        return SKIPPED;
    }
    enum status status = gpu_open(0, &gpu, &device, &error);
    if (status) {
        printf("FAIL: %s\n", error.text);
        return 1;
    }
    plan_is_recalled();
    plans_are_shared();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        row_fails(&rows[i]);
    const struct roof_request requests[] = {{.transfer = true}, {.launch = true}};
    /* Memory of a second GPU disappears with its context, and `held` does not see it. */
    for (size_t i = count > 1; i < sizeof requests / sizeof *requests; ++i)
        roofs_fail(&requests[i]);
    gpu_close(&gpu);
    printf("%d failures\n", wrong);
    return wrong > 0;
}
