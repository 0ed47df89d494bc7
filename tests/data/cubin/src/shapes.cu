// What a code image can hold: an inline chain two calls deep, a template, a device function kept out of
// line, an assert, static shared memory, parameters of several sizes. Line numbers matter to the tests.
#include <cassert>

struct Pair {
  float a;
  int b[3];
};

__device__ __noinline__ float inner(const float *p, int i) { return p[i] * 2.0f; }

__device__ __forceinline__ void leaf(float *q, float v) {
  q[0] = v;  // line 13: the store
}

__device__ __forceinline__ void branch(float *q, float v) {
  leaf(q + 1, v);  // line 17
}

extern "C" __global__ void store_chain(float *q, const float *p, int n, Pair pair) {
  __shared__ float tile[64];
  int i = threadIdx.x;
  tile[i & 63] = p[i];
  __syncthreads();
  if (i < n)
    branch(q + i, tile[(i + 1) & 63] + pair.a);  // line 26
}

template <int N>
__global__ void templated(double *out, char flag) {
  out[threadIdx.x] = flag * N;
}
template __global__ void templated<7>(double *, char);

__global__ void calls(float *q, const float *p) { q[threadIdx.x] = inner(p, threadIdx.x); }

__global__ void checked(int *p) { assert(p[threadIdx.x] == 3); }
