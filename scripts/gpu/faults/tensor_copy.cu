// Tensor copies (TMA: UTMALDG, UTMASTG): a garbage descriptor, a good one of memory that has gone, a bad destination.
#include <cstring>

#include "barrier.cuh"

constexpr int kTile = 32;

__device__ __forceinline__ void tensor_load(uint32_t destination, const CUtensorMap* map, int x, int y,
                                            uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          destination),
      "l"(map), "r"(x), "r"(y), "r"(shared_address(barrier))
      : "memory");
#endif
}

__device__ __forceinline__ void load_tile(const CUtensorMap* map, float* out, uint32_t skew, int x) {
#if __CUDA_ARCH__ >= 900
  __shared__ __align__(1024) float tile[kTile * kTile];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    barrier_init(&barrier, 1);
    barrier_expect(&barrier, sizeof tile);
    tensor_load(shared_address(tile) + skew, map, x, 0, &barrier);
  }
  __syncthreads();
  barrier_wait(&barrier, 0);
  out[threadIdx.x] = tile[threadIdx.x];
#endif
}

__global__ void tensor_copy_in(const __grid_constant__ CUtensorMap map, float* out, uint32_t skew, int x) {
  load_tile(&map, out, skew, x);
}

__global__ void tensor_copy_in_through(const CUtensorMap* map, float* out) { load_tile(map, out, 0, 0); }

__global__ void tensor_copy_out(const __grid_constant__ CUtensorMap map, float value) {
#if __CUDA_ARCH__ >= 900
  __shared__ __align__(1024) float tile[kTile * kTile];
  for (int i = threadIdx.x; i < kTile * kTile; i += blockDim.x) tile[i] = value;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(0),
               "r"(0), "r"(shared_address(tile))
               : "memory");
  bulk_drain();
#endif
}

// A matrix of 4096 x 4096 floats (64 MiB), tiles of 32 x 32.
static CUtensorMap describe(void* matrix) {
  CUtensorMap map;
  cuuint64_t sizes[2] = {4096, 4096}, strides[1] = {4096 * sizeof(float)};
  cuuint32_t box[2] = {kTile, kTile}, steps[2] = {1, 1};
  CHECK_DRIVER(cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, matrix, sizes, strides, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

static float* out_buffer() { return static_cast<float*>(device_buffer("out", kMiB)); }

SCENE(tma) {
  CUtensorMap map;
  std::memset(&map, 0xa5, sizeof map);
  fact("bad_threads", "0");
  fact("descriptor", "every byte 0xa5");
  tensor_copy_in<<<1, 128>>>(map, out_buffer(), 0, 0);
}

SCENE(tma_zero_descriptor) {
  CUtensorMap map;
  std::memset(&map, 0, sizeof map);
  fact("bad_threads", "0");
  fact("descriptor", "every byte 0");
  tensor_copy_in<<<1, 128>>>(map, out_buffer(), 0, 0);
}

SCENE(tma_dangling) {
  float* out = out_buffer();
  void* matrix = device_buffer("buffer", 64 * kMiB);
  CUtensorMap map = describe(matrix);
  free_under(tensor_copy_in, matrix);
  fact("bad_threads", "0");
  tensor_copy_in<<<1, 128>>>(map, out, 0, 0);
}

SCENE(tma_store_dangling) {
  void* matrix = device_buffer("buffer", 64 * kMiB);
  CUtensorMap map = describe(matrix);
  free_under(tensor_copy_out, matrix);
  fact("bad_threads", "0");
  tensor_copy_out<<<1, 128>>>(map, 1.0f);
}

SCENE(tma_misaligned_destination) {
  CUtensorMap map = describe(device_buffer("buffer", 64 * kMiB));
  fact("bad_threads", "0");
  fact("skew", 16ll);
  tensor_copy_in<<<1, 128>>>(map, out_buffer(), 16, 0);
}

SCENE(tma_bad_destination) {
  CUtensorMap map = describe(device_buffer("buffer", 64 * kMiB));
  fact("bad_threads", "0");
  fact("bad_shared_offset", 245760ll);
  tensor_copy_in<<<1, 128>>>(map, out_buffer(), 245760, 0);
}

// The descriptor itself lies in freed memory, as when a workspace is given back before the kernel runs.
SCENE(tma_descriptor_freed) {
  float* out = out_buffer();
  void* matrix = device_buffer("buffer", 64 * kMiB);
  void* workspace = device_buffer("workspace", 64 * kMiB);
  CUtensorMap map = describe(matrix);
  CHECK(cudaMemcpy(workspace, &map, sizeof map, cudaMemcpyHostToDevice));
  free_under(tensor_copy_in_through, workspace);
  fact("bad_threads", "0");
  tensor_copy_in_through<<<1, 128>>>(static_cast<CUtensorMap*>(workspace), out);
}
