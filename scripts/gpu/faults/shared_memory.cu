// Accesses outside the block's shared memory, seen as shared (LDS, STS) and as generic addresses (LD, ST).
#include "scene.cuh"

__global__ void spin(volatile int* flag) {
  while (*flag == 0) {
  }
}

// The epilogue of a tiled kernel: each thread stores 16 bytes, a wrong tile offset sends them past the end.
template <int kThreads>
__global__ void epilogue_store(float* out, const float4* in, int tile_offset) {
  extern __shared__ float4 tile[];
  tile[threadIdx.x + tile_offset] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[kThreads - 1 - threadIdx.x].x;
}

SCENE(shared_oob) {
  auto* in = static_cast<float4*>(device_buffer("in", kMiB));
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  auto* flag = static_cast<int*>(device_buffer("flag", kMiB));
  cudaStream_t other;
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  load(epilogue_store<128>);
  spin<<<1, 32, 0, other>>>(flag);
  constexpr int kShared = 49152, kOffset = 3700;
  fact("dynamic_shared_bytes", static_cast<long long>(kShared));
  fact("bad_threads", "0-127");
  fact("bad_shared_offset", 16ll * kOffset);
  epilogue_store<128><<<1, 128, kShared>>>(out, in, kOffset);
}

__global__ void shared_load_negative(const int* indices, float* out) {
  __shared__ float tile[512];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[indices[threadIdx.x]];
}

SCENE(shared_load_negative) {
  auto* indices = static_cast<int*>(device_buffer("indices", kMiB));
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  int bad = -3000;
  CHECK(cudaMemcpy(indices + 40, &bad, sizeof bad, cudaMemcpyHostToDevice));
  fact("bad_threads", "40");
  fact("bad_shared_offset", 4ll * bad);
  shared_load_negative<<<1, 64>>>(indices, out);
}

// A generic store into the shared window; in PTX, because the compiler would see through the pointer.
__device__ __forceinline__ void store_generic(float* pointer, float value) {
  asm volatile("st.f32 [%0], %1;" ::"l"(pointer), "f"(value) : "memory");
}

__global__ void shared_generic_oob(float* out, int index) {
  __shared__ float tile[256];
  tile[threadIdx.x] = 0.0f;
  store_generic((index < 0 ? out : tile) + index + threadIdx.x, 1.0f);
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

SCENE(shared_generic_oob) {
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  constexpr int kIndex = 60000;
  fact("bad_threads", "0-63");
  fact("bad_shared_offset", 4ll * kIndex);
  shared_generic_oob<<<1, 64>>>(out, kIndex);
}
