/* Programs that are difficult for a profiler. Usage: hostile MODE. Each mode launches LAUNCHES
 * kernels in its region, unless its comment says otherwise. tests/gpu/programs.sh has the expected
 * results. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cupti.h>
#include <sys/wait.h>
#include <unistd.h>

/* A kernel does 2 * 64 * 128 * 1000 FLOPs. */
enum { BLOCKS = 64, THREADS = 128, STEPS = 1000, LAUNCHES = 8 };

__device__ static void compute(float *x, float a)
{
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
#pragma unroll 10
    for (int i = 0; i < STEPS; ++i)
        v = __fmaf_rn(v, a, a);
    x[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

__global__ void work(float *x, float a)
{
    compute(x, a);
}

__global__ void together(float *x, float a)
{
    cooperative_groups::this_grid().sync();
    compute(x, a);
}

static float *memory()
{
    float *x;
    if (cudaMalloc(&x, BLOCKS * THREADS * sizeof *x) != cudaSuccess ||
        cudaMemset(x, 0, BLOCKS * THREADS * sizeof *x) != cudaSuccess)
        exit(7);
    return x;
}

static void launches(float *x, int count, cudaStream_t stream)
{
    for (int i = 0; i < count; ++i)
        work<<<BLOCKS, THREADS, 0, stream>>>(x, 0.5f);
}

static void usual(float *x)
{
    launches(x, 2, nullptr);
    cudaProfilerStart();
    launches(x, LAUNCHES, nullptr);
    cudaProfilerStop();
}

static void threads(float *)
{
    cudaProfilerStart();
    for (int i = 0; i < 2; ++i)
        std::thread([] {
            launches(memory(), LAUNCHES / 2, nullptr);
            cudaDeviceSynchronize();
        }).join();
    cudaProfilerStop();
}

static void streams(float *)
{
    cudaStream_t stream[4];
    float *x[4];
    for (int i = 0; i < 4; ++i) {
        cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking);
        x[i] = memory();
    }
    cudaProfilerStart();
    for (int i = 0; i < LAUNCHES; ++i)
        launches(x[i % 4], 1, stream[i % 4]);
    cudaProfilerStop();
}

static void graph_regions(float *x, int regions)
{
    cudaStream_t stream;
    cudaGraph_t made;
    cudaGraphExec_t ready;
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    launches(x, LAUNCHES, stream);
    cudaStreamEndCapture(stream, &made);
    cudaGraphInstantiate(&ready, made, 0);
    for (int i = 0; i < regions; ++i) {
        cudaProfilerStart();
        cudaGraphLaunch(ready, stream);
        cudaProfilerStop();
    }
}

/* Enough regions for the trace and all passes in one run, also with activities. */
enum { REGIONS = 17 };

/* Each region has a copy and a fill. */
static void regions(float *x)
{
    static float host[BLOCKS * THREADS];
    for (int i = 0; i < REGIONS; ++i) {
        cudaProfilerStart();
        cudaMemset(x, 0, sizeof host);
        launches(x, LAUNCHES, nullptr);
        cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
        cudaProfilerStop();
    }
}

/* All regions differ. */
static void uneven(float *x)
{
    for (int i = 0; i < REGIONS; ++i) {
        cudaProfilerStart();
        launches(x, LAUNCHES + i, nullptr);
        cudaProfilerStop();
    }
}

static void cooperative(float *x)
{
    float a = 0.5f;
    void *arguments[] = {&x, &a};
    cudaProfilerStart();
    for (int i = 0; i < LAUNCHES; ++i)
        cudaLaunchCooperativeKernel((void *)together, BLOCKS, THREADS, arguments, 0, nullptr);
    cudaProfilerStop();
}

/* Works in a second context; the first allocation was in another context. */
static void context(float *)
{
    CUcontext other;
    CUdevice device;
    cuDeviceGet(&device, 0);
#if CUDA_VERSION >= 13000
    cuCtxCreate(&other, nullptr, 0, device);
#else
    cuCtxCreate(&other, 0, device);
#endif
    usual(memory());
}

static char **arguments;

static void child(float *x)
{
    pid_t process = fork();
    if (process == 0)
        execl(arguments[0], arguments[0], "usual", (char *)nullptr);
    waitpid(process, nullptr, 0);
    launches(x, 1, nullptr);
    cudaDeviceSynchronize();
}

static void children(float *x)
{
    child(x);
    usual(x);
}

static void forked(float *x)
{
    launches(x, 1, nullptr);
    cudaProfilerStart();
    launches(x, LAUNCHES, nullptr);
    if (fork() == 0)
        exit(0);
    wait(nullptr);
    cudaProfilerStop();
}

static void exits(float *x)
{
    cudaProfilerStart();
    launches(x, LAUNCHES, nullptr);
    _exit(0);
}

static void CUPTIAPI nothing(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *)
{
}

/* Subscribes to CUPTI itself. */
static void profiles(float *x)
{
    CUpti_SubscriberHandle subscriber;
    if (cuptiSubscribe(&subscriber, nothing, nullptr) != CUPTI_SUCCESS)
        fprintf(stderr, "its own profiler is refused\n");
    usual(x);
}

/* Launches a different number of kernels in each process. */
static void unsteady(float *x)
{
    cudaProfilerStart();
    launches(x, 1 + getpid() % 5, nullptr);
    cudaProfilerStop();
}

/* clang-format off */
static const struct {
    const char *name;
    void (*run)(float *x);
} modes[] = {
    {"usual", usual}, {"threads", threads}, {"streams", streams}, {"regions", regions},
    {"uneven", uneven}, {"cooperative", cooperative}, {"context", context}, {"child", child},
    {"children", children}, {"fork", forked}, {"exit", exits}, {"profiler", profiles},
    {"unsteady", unsteady}, {"graph", [](float *x) { graph_regions(x, 1); }},
    {"graphs", [](float *x) { graph_regions(x, REGIONS); }},
    {"exit-after", [](float *x) { usual(x), _exit(0); }},
    {"never", [](float *x) { launches(x, LAUNCHES, nullptr), cudaDeviceSynchronize(); }},
    {"illegal", [](float *x) { usual(x + (1LL << 40)); }},
};
/* clang-format on */

int main(int count, char **words)
{
    arguments = words;
    for (const auto &mode : modes)
        if (count > 1 && strcmp(words[1], mode.name) == 0) {
            mode.run(memory());
            return 0;
        }
    return 2;
}
