#include "kernels.h"

/* Two kernels, as different steps of a network are two: one and the same kernel again and again could
 * find its code and its arguments where the last launch left them. */
__global__ static void link_there(float *y, const float *x, float scale, float shift, int count)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        y[i] = scale * x[i] + shift;
}

__global__ static void link_back(float *x, const float *y, float shift, float scale, int count)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        x[i] = (y[i] - shift) * scale;
}

/* Powers of two, so that x is the same after each pair of links. */
cudaError_t kernel_link(int number, float *x, float *y, int count, cudaStream_t stream)
{
    const int threads = 128, blocks = (count + threads - 1) / threads;
    if (number % 2 == 0)
        link_there<<<blocks, threads, 0, stream>>>(y, x, 0.5f, 0.25f, count);
    else
        link_back<<<blocks, threads, 0, stream>>>(x, y, 0.25f, 2.0f, count);
    return cudaGetLastError();
}
