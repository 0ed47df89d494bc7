// Addresses that are mapped, but not a multiple of the access width.
#include "scene.cuh"

__global__ void misaligned_global(char* buffer) {
  *reinterpret_cast<float4*>(buffer + 16 * threadIdx.x + 4) = make_float4(1, 2, 3, 4);
}

SCENE(misaligned) {
  auto* buffer = static_cast<char*>(device_buffer("buffer", kMiB));
  fact("bad_threads", "0-63");
  fact("bad_address", buffer + 4);
  misaligned_global<<<1, 64>>>(buffer);
}

__global__ void misaligned_64(const char* buffer, float2* out) {
  int skew = threadIdx.x == 12 ? 4 : 0;
  out[threadIdx.x] = *reinterpret_cast<const float2*>(buffer + 8 * threadIdx.x + skew);
}

SCENE(misaligned_64) {
  auto* buffer = static_cast<char*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<float2*>(device_buffer("out", kMiB));
  fact("bad_threads", "12");
  fact("bad_address", buffer + 8 * 12 + 4);
  misaligned_64<<<1, 32>>>(buffer, out);
}

__global__ void misaligned_16(char* buffer) {
  *reinterpret_cast<unsigned short*>(buffer + 2 * threadIdx.x + 1) = 7;
}

SCENE(misaligned_16) {
  auto* buffer = static_cast<char*>(device_buffer("buffer", kMiB));
  fact("bad_threads", "0-31");
  fact("bad_address", buffer + 1);
  misaligned_16<<<1, 32>>>(buffer);
}

__global__ void misaligned_shared(float* out, int skew) {
  __shared__ __align__(16) float tile[1024];
  auto* cell = reinterpret_cast<float4*>(reinterpret_cast<char*>(tile) + 16 * threadIdx.x + skew);
  *cell = make_float4(1, 2, 3, 4);
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

SCENE(misaligned_shared) {
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  fact("bad_threads", "0-31");
  fact("skew", 8ll);
  misaligned_shared<<<1, 32>>>(out, 8);
}
