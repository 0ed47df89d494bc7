// Thread-block clusters (sm_90): the shared memory of another block.
#include "barrier.cuh"

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ uint32_t map_to_rank(uint32_t address, uint32_t rank) {
  uint32_t remote = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
#endif
  return remote;
}

__device__ __forceinline__ void store_remote(uint32_t address, int value) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
#endif
}

__device__ __forceinline__ void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// Block 0 of each pair writes into the shared memory of block `rank`, `skew` bytes further than it should.
__global__ void __cluster_dims__(2, 1, 1) cluster_store(int* out, uint32_t rank, uint32_t skew) {
  __shared__ int cells[256];
  cells[threadIdx.x] = threadIdx.x;
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 0) store_remote(map_to_rank(shared_address(cells + threadIdx.x), rank) + skew, 1);
  cluster_arrive();
  cluster_wait();
  out[threadIdx.x] = cells[threadIdx.x];
}

static void run_store(uint32_t rank, uint32_t skew) {
  auto* out = static_cast<int*>(device_buffer("out", kMiB));
  fact("bad_block", 0ll);
  fact("bad_threads", "0-63");
  fact("bad_rank", static_cast<long long>(rank));
  fact("bad_shared_offset", static_cast<long long>(skew));
  cluster_store<<<2, 64>>>(out, rank, skew);
}

SCENE(cluster_bad_rank) { run_store(7, 0); }
SCENE(cluster_bad_address) { run_store(1, 240000); }

// The partner has left: nobody waits for it before the store.
__global__ void __cluster_dims__(2, 1, 1) cluster_partner_gone(int* out, long long cycles) {
  __shared__ int cells[64];
  cells[threadIdx.x] = 0;
  if (cluster_rank() == 1) return;
  for (long long start = clock64(); clock64() - start < cycles;) {
  }
  store_remote(map_to_rank(shared_address(cells + threadIdx.x), 1), 1);
  out[threadIdx.x] = cells[threadIdx.x];
}

SCENE(cluster_partner_gone) {
  auto* out = static_cast<int*>(device_buffer("out", kMiB));
  fact("bad_block", 0ll);
  fact("bad_threads", "0-31");
  cluster_partner_gone<<<2, 32>>>(out, 20000000);
}

// Block 1 never arrives at the cluster barrier.
__global__ void __cluster_dims__(2, 1, 1) cluster_hang(volatile int* flag) {
  if (cluster_rank() == 1)
    while (*flag == 0) {
    }
  cluster_arrive();
  cluster_wait();
}

SCENE(cluster_hang) {
  auto* flag = static_cast<int*>(device_buffer("flag", kMiB));
  cluster_hang<<<2, 64>>>(flag);
  hang();
}
