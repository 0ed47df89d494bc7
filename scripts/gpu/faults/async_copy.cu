// Asynchronous copies: cp.async (LDGSTS, sm_80) and the bulk copy engine (UBLKCP, UBLKRED, sm_90).
#include "barrier.cuh"

__device__ __forceinline__ void copy_16(uint32_t destination, const void* source) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(destination), "l"(source) : "memory");
}

// The main loop of a pipelined kernel: stage by stage from global to shared memory.
__global__ void pipelined_copy(const float4* source, float4* out, long long source_skew, int destination_skew) {
  __shared__ __align__(16) float4 stages[4][64];
  for (int stage = 0; stage < 4; ++stage) {
    uint32_t destination = shared_address(&stages[stage][threadIdx.x]);
    const char* from = reinterpret_cast<const char*>(source + 64 * stage + threadIdx.x);
    if (stage == 2) {
      destination += destination_skew;
      from += source_skew;
    }
    copy_16(destination, from);
    asm volatile("cp.async.commit_group;");
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  out[threadIdx.x] = stages[3][63 - threadIdx.x];
}

static void run_pipelined_copy(long long source_skew, int destination_skew) {
  auto* source = static_cast<float4*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<float4*>(device_buffer("out", kMiB));
  fact("bad_threads", "0-63");
  if (source_skew) fact("bad_address", reinterpret_cast<char*>(source + 128) + source_skew);
  if (destination_skew) fact("bad_shared_offset", 2048ll + destination_skew);
  pipelined_copy<<<1, 64>>>(source, out, source_skew, destination_skew);
}

SCENE(cp_async_bad_source) { run_pipelined_copy(64 * kGiB, 0); }
SCENE(cp_async_misaligned_source) { run_pipelined_copy(8, 0); }
SCENE(cp_async_bad_destination) { run_pipelined_copy(0, 240000); }
SCENE(cp_async_misaligned_destination) { run_pipelined_copy(0, 4); }

// One thread asks the bulk copy engine for 4 KiB, everyone waits on the mbarrier.
__global__ void bulk_copy_in(const char* source, float* out, uint32_t destination_skew, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  __shared__ __align__(128) float tile[1024];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    barrier_init(&barrier, 1);
    barrier_expect(&barrier, bytes);
    bulk_load(shared_address(tile) + destination_skew, source, bytes, &barrier);
  }
  __syncthreads();
  barrier_wait(&barrier, 0);
  out[threadIdx.x] = tile[threadIdx.x];
#endif
}

static void run_bulk_copy(long long source_skew, uint32_t destination_skew, uint32_t bytes) {
  auto* source = static_cast<char*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  fact("bad_threads", "0");
  if (source_skew) fact("bad_address", source + source_skew);
  if (destination_skew) fact("bad_shared_offset", static_cast<long long>(destination_skew));
  bulk_copy_in<<<1, 128>>>(source + source_skew, out, destination_skew, bytes);
}

SCENE(bulk_bad_source) { run_bulk_copy(64 * kGiB, 0, 4096); }
SCENE(bulk_bad_destination) { run_bulk_copy(0, 240000, 4096); }
SCENE(bulk_misaligned_source) { run_bulk_copy(8, 0, 4096); }
// The H200 raises nothing: the barrier waits for bytes that do not come.
SCENE(bulk_odd_size) {
  run_bulk_copy(0, 0, 4088);
  hang();
}

__global__ void bulk_copy_out(char* destination, bool add) {
#if __CUDA_ARCH__ >= 900
  __shared__ __align__(128) float tile[1024];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) tile[i] = i;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (add)
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(destination),
                 "r"(shared_address(tile)), "r"(4096)
                 : "memory");
  else
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(destination),
                 "r"(shared_address(tile)), "r"(4096)
                 : "memory");
  bulk_drain();
#endif
}

static void run_bulk_out(bool add) {
  auto* buffer = static_cast<char*>(device_buffer("buffer", kMiB));
  fact("bad_threads", "0");
  fact("bad_address", buffer + 64 * kGiB);
  bulk_copy_out<<<1, 128>>>(buffer + 64 * kGiB, add);
}

SCENE(bulk_store_oob) { run_bulk_out(false); }
SCENE(bulk_reduce_oob) { run_bulk_out(true); }
