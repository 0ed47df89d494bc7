// Matrix loads and stores between shared memory and registers: ldmatrix (LDSM, sm_75), stmatrix (STSM, sm_90).
#include "scene.cuh"

__global__ void matrix_load(uint32_t* out, int skew) {
  __shared__ __align__(128) uint32_t tile[1024];
  for (int i = threadIdx.x; i < 1024; i += 32) tile[i] = i;
  __syncthreads();
  uint32_t address = shared_address(tile) + 16 * threadIdx.x + skew, a, b, c, d;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(address));
  out[threadIdx.x] = a ^ b ^ c ^ d;
}

static void run_load(int skew) {
  auto* out = static_cast<uint32_t*>(device_buffer("out", kMiB));
  fact("bad_threads", "0-31");
  fact("bad_shared_offset", static_cast<long long>(skew));
  matrix_load<<<1, 32>>>(out, skew);
}

SCENE(ldmatrix_oob) { run_load(240000); }
SCENE(ldmatrix_misaligned) { run_load(8); }

__global__ void matrix_store(uint32_t* out, int skew) {
  __shared__ __align__(128) uint32_t tile[1024];
#if __CUDA_ARCH__ >= 900
  uint32_t address = shared_address(tile) + 16 * threadIdx.x + skew;
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(threadIdx.x),
               "r"(1), "r"(2), "r"(3)
               : "memory");
#endif
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

static void run_store(int skew) {
  auto* out = static_cast<uint32_t*>(device_buffer("out", kMiB));
  fact("bad_threads", "0-31");
  fact("bad_shared_offset", static_cast<long long>(skew));
  matrix_store<<<1, 32>>>(out, skew);
}

SCENE(stmatrix_oob) { run_store(240000); }
SCENE(stmatrix_misaligned) { run_store(8); }
