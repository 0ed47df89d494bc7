// Loads and stores that leave an allocation, or whose allocation has gone.
// Small overruns do not fault: memory is mapped in 2 MiB pages. Every scene here goes far enough.
#include "mapping.cuh"
#include "scene.cuh"

static constexpr long long kFarElements = 64 * kGiB / sizeof(float);

__device__ __forceinline__ void put(float* buffer, long long index, float value) { buffer[index] = value; }

__global__ void oob_store(float* buffer, long long elements, long long beyond) {
  long long index = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (index >= elements) return;
  put(buffer, index == 389 ? index + beyond : index, 1.0f);
}

SCENE(oob_store) {
  auto* buffer = static_cast<float*>(device_buffer("buffer", kMiB));
  fact("bad_block", 3ll);
  fact("bad_threads", "5");
  fact("bad_address", buffer + 389 + kFarElements);
  oob_store<<<64, 128>>>(buffer, 64 * 128, kFarElements);
}

__device__ __noinline__ void store_row(float* row, int index, float value) { row[index] = value; }

__global__ void oob_load(const float* buffer, float* out, long long beyond) {
  int index = threadIdx.x;
  store_row(out, index, buffer[index == 5 ? beyond : index]);
}

SCENE(oob_load) {
  auto* buffer = static_cast<float*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  fact("bad_threads", "5");
  fact("bad_address", buffer + kFarElements);
  oob_load<<<1, 64>>>(buffer, out, kFarElements);
}

__global__ void constant_load_oob(const float* __restrict__ buffer, float* __restrict__ out, long long beyond) {
  int index = threadIdx.x;
  out[index] = __ldg(buffer + (index >= 24 ? index + beyond : index));
}

SCENE(constant_load_oob) {
  auto* buffer = static_cast<float*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  fact("bad_threads", "24-31");
  fact("bad_address", buffer + 24 + kFarElements);
  constant_load_oob<<<1, 32>>>(buffer, out, kFarElements);
}

__global__ void vector_load_oob(const float4* buffer, float4* out, long long beyond) {
  out[threadIdx.x] = buffer[threadIdx.x + (threadIdx.x == 9 ? beyond : 0)];
}

SCENE(vector_load_oob) {
  auto* buffer = static_cast<float4*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<float4*>(device_buffer("out", kMiB));
  fact("bad_threads", "9");
  fact("bad_address", buffer + 9 + kFarElements / 4);
  vector_load_oob<<<1, 32>>>(buffer, out, kFarElements / 4);
}

__global__ void double_store_oob(double* buffer, long long beyond) {
  buffer[threadIdx.x + (threadIdx.x >= 40 ? beyond : 0)] = 2.0;
}

SCENE(double_store_oob) {
  auto* buffer = static_cast<double*>(device_buffer("buffer", kMiB));
  fact("bad_threads", "40-63");
  fact("bad_address", buffer + 40 + kFarElements / 2);
  double_store_oob<<<1, 64>>>(buffer, kFarElements / 2);
}

// Odd lanes alone store, under a predicate: the even ones must not be blamed.
__global__ void odd_lanes_store(const float* in, float* buffer, long long beyond) {
  float value = in[threadIdx.x];
  if (threadIdx.x & 1) buffer[threadIdx.x + beyond] = value;
}

SCENE(odd_lanes_store) {
  auto* in = static_cast<float*>(device_buffer("in", kMiB));
  auto* buffer = static_cast<float*>(device_buffer("buffer", kMiB));
  fact("bad_threads", "1,3,5,...,31");
  fact("bad_address", buffer + 1 + kFarElements);
  odd_lanes_store<<<1, 32>>>(in, buffer, kFarElements);
}

// row * stride is an int: from row 32768 on it wraps, and the address lies up to 2 GiB below the buffer.
__global__ void int32_overflow(unsigned char* matrix, int stride, int first_row) {
  int row = first_row + blockIdx.x;
  matrix[row * stride + static_cast<int>(threadIdx.x)] = 1;
}

SCENE(int32_overflow) {
  constexpr int kRows = 40000, kStride = 65536, kFirstRow = 32760;
  auto* matrix = static_cast<unsigned char*>(device_buffer("buffer", 1ll * kRows * kStride));
  fact("bad_block", 8ll);
  fact("bad_threads", "0-63");
  fact("first_bad_row", 32768ll);
  fact("bad_address", matrix - 2 * kGiB);
  int32_overflow<<<16, 64>>>(matrix, kStride, kFirstRow);
}

// The same in a load: its warp waits for the answer, so that its registers are still there.
__global__ void int32_overflow_load(const unsigned char* matrix, int* out, int stride, int first_row) {
  int row = first_row + blockIdx.x;
  out[blockIdx.x * blockDim.x + threadIdx.x] = matrix[row * stride + static_cast<int>(threadIdx.x)];
}

SCENE(int32_overflow_load) {
  constexpr int kRows = 40000, kStride = 65536, kFirstRow = 32760;
  auto* matrix = static_cast<unsigned char*>(device_buffer("buffer", 1ll * kRows * kStride));
  auto* out = static_cast<int*>(device_buffer("out", kMiB));
  fact("bad_block", 8ll);
  fact("bad_threads", "0-63");
  fact("first_bad_row", 32768ll);
  fact("bad_address", matrix - 2 * kGiB);
  int32_overflow_load<<<16, 64>>>(matrix, out, kStride, kFirstRow);
}

// `<=` where `<` was meant: the row behind the last one begins exactly at the end of the buffer.
__global__ void one_row_too_many(float* matrix, long long stride, int rows) {
  for (int row = blockIdx.x; row <= rows; row += gridDim.x) matrix[row * stride + threadIdx.x] = 1.0f;
}

SCENE(one_row_too_many) {
  Mapping buffer = map_between_holes(16 * kMiB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  fact("bad_block", 4ll);
  fact("bad_address", buffer.pointer() + buffer.bytes);
  one_row_too_many<<<5, 64>>>(reinterpret_cast<float*>(buffer.start), 4 * kMiB / sizeof(float), 4);
}

// index - 1 at index 0: one element before the buffer.
__global__ void one_before_start(const float* buffer, float* out) {
  int index = threadIdx.x;
  out[index] = buffer[index] - buffer[index - 1];
}

SCENE(one_before_start) {
  Mapping buffer = map_between_holes(2 * kMiB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  fact("bad_threads", "0");
  fact("bad_address", buffer.pointer() - sizeof(float));
  one_before_start<<<1, 128>>>(reinterpret_cast<float*>(buffer.start), out);
}

__global__ void scale_freed(float* buffer, long long elements, float factor) {
  long long index = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (index < elements) buffer[index] *= factor;
}

SCENE(use_after_free) {
  constexpr long long kElements = 256 * kMiB / sizeof(float);
  auto* buffer = static_cast<float*>(device_buffer("buffer", 256 * kMiB));
  free_under(scale_freed, buffer);
  scale_freed<<<kElements / 256, 256>>>(buffer, kElements, 2.0f);
}

// The same, by a few blocks: a small dump.
SCENE(use_after_free_head) {
  auto* buffer = static_cast<float*>(device_buffer("buffer", 256 * kMiB));
  free_under(scale_freed, buffer);
  scale_freed<<<16, 128>>>(buffer, 16 * 128, 2.0f);
}

SCENE(use_after_unmap) {
  Mapping buffer = map_between_holes(64 * kMiB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  unmap(buffer);
  fact("bad_address", buffer.pointer());
  scale_freed<<<16, 128>>>(reinterpret_cast<float*>(buffer.start), 16 * 128, 2.0f);
}

SCENE(use_after_free_async) {
  float* buffer = nullptr;
  cudaMemPool_t pool;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  CHECK(cudaMallocAsync(&buffer, 64 * kMiB, nullptr));
  CHECK(cudaFreeAsync(buffer, nullptr));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemPoolTrimTo(pool, 0));
  fact("buffer", buffer);
  fact("buffer_bytes", 64 * kMiB);
  fact("bad_address", buffer);
  scale_freed<<<16, 128>>>(buffer, 16 * 128, 2.0f);
}

__global__ void fill(float* buffer, float value) { buffer[threadIdx.x] = value; }

SCENE(readonly_store) {
  Mapping buffer = map_between_holes(2 * kMiB, CU_MEM_ACCESS_FLAGS_PROT_READ);
  fact("bad_threads", "0-31");
  fact("bad_address", buffer.pointer());
  fill<<<1, 32>>>(reinterpret_cast<float*>(buffer.start), 1.0f);
}

// Each warp faults at an instruction of its own.
__global__ void several_pcs(float* buffer, double* out, long long beyond) {
  int lane = threadIdx.x % 32;
  switch (threadIdx.x / 32) {
    case 0: buffer[lane + beyond] = 1.0f; break;
    case 1: out[lane] = buffer[lane + 2 * beyond]; break;
    case 2: atomicAdd(buffer + lane + 3 * beyond, 1.0f); break;
    default: out[lane + 4 * beyond] = 3.0;
  }
}

SCENE(several_pcs) {
  auto* buffer = static_cast<float*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<double*>(device_buffer("out", kMiB));
  fact("bad_threads", "0-127");
  several_pcs<<<4, 128>>>(buffer, out, kFarElements);
}

// Several GiB stand in the dump before the tables: only for dumps with global memory.
SCENE(large_memory) {
  device_buffer("ballast", 4 * kGiB);
  auto* buffer = static_cast<float*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  fact("bad_threads", "5");
  fact("bad_address", buffer + 16 * kFarElements);
  oob_load<<<1, 64>>>(buffer, out, 16 * kFarElements);
}
