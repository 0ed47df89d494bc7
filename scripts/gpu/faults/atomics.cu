// Atomics and reductions: their own opcodes, with and without a result.
#include "scene.cuh"

static constexpr long long kFar = 64 * kGiB / 4;

__global__ void atom_add_oob(unsigned* counters, unsigned* out, long long beyond) {
  out[threadIdx.x] = atomicAdd(counters + (threadIdx.x == 17 ? beyond : 0), threadIdx.x);
}

SCENE(atom_add_oob) {
  auto* counters = static_cast<unsigned*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<unsigned*>(device_buffer("out", kMiB));
  fact("bad_threads", "17");
  fact("bad_address", counters + kFar);
  atom_add_oob<<<1, 32>>>(counters, out, kFar);
}

__global__ void atom_cas_oob(unsigned long long* lock, unsigned long long* out, long long beyond) {
  out[threadIdx.x] = atomicCAS(lock + threadIdx.x + beyond, 0ull, 1ull);
}

SCENE(atom_cas_oob) {
  auto* lock = static_cast<unsigned long long*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<unsigned long long*>(device_buffer("out", kMiB));
  fact("bad_threads", "0-31");
  fact("bad_address", lock + kFar / 2);
  atom_cas_oob<<<1, 32>>>(lock, out, kFar / 2);
}

__global__ void red_add_oob(float* sums, long long beyond) {
  atomicAdd(sums + threadIdx.x + (threadIdx.x >= 30 ? beyond : 0), 1.0f);
}

SCENE(red_add_oob) {
  auto* sums = static_cast<float*>(device_buffer("buffer", kMiB));
  fact("bad_threads", "30-31");
  fact("bad_address", sums + 30 + kFar);
  red_add_oob<<<1, 32>>>(sums, kFar);
}

// Vector reduction of sm_90 and later.
__global__ void red_vector_oob(float4* sums, long long beyond) {
#if __CUDA_ARCH__ >= 900
  atomicAdd(sums + threadIdx.x + beyond, make_float4(1.0f, 2.0f, 3.0f, 4.0f));
#endif
}

SCENE(red_vector_oob) {
  auto* sums = static_cast<float4*>(device_buffer("buffer", kMiB));
  fact("bad_threads", "0-31");
  fact("bad_address", sums + kFar / 4);
  red_vector_oob<<<1, 32>>>(sums, kFar / 4);
}

__global__ void atom_misaligned(char* buffer, unsigned long long* out) {
  out[threadIdx.x] = atomicAdd(reinterpret_cast<unsigned long long*>(buffer + 16 * threadIdx.x + 4), 1ull);
}

SCENE(atom_misaligned) {
  auto* buffer = static_cast<char*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<unsigned long long*>(device_buffer("out", kMiB));
  fact("bad_threads", "0-31");
  fact("bad_address", buffer + 4);
  atom_misaligned<<<1, 32>>>(buffer, out);
}

// A histogram whose bin index is not checked, in shared memory.
__global__ void shared_atom_oob(const int* bins, int* out) {
  __shared__ int histogram[256];
  histogram[threadIdx.x] = 0;
  __syncthreads();
  out[threadIdx.x] = atomicAdd(histogram + bins[threadIdx.x], 1);
}

SCENE(shared_atom_oob) {
  auto* bins = static_cast<int*>(device_buffer("bins", kMiB));
  auto* out = static_cast<int*>(device_buffer("out", kMiB));
  int bad = 60000;
  CHECK(cudaMemcpy(bins + 77, &bad, sizeof bad, cudaMemcpyHostToDevice));
  fact("bad_threads", "77");
  fact("bad_shared_offset", 4ll * bad);
  shared_atom_oob<<<1, 256>>>(bins, out);
}

// An atomic on a thread's own stack, through a generic pointer: cudaErrorInvalidAddressSpace.
// The address is disguised: ptxas would turn an atomic on the stack that it recognises into a trap.
__global__ void invalid_address_space(int* out, long long disguise) {
  volatile int mine[8] = {};
  auto address = reinterpret_cast<long long>(mine + threadIdx.x % 8) ^ disguise;
  atomicAdd(reinterpret_cast<int*>(address), 1);
  out[threadIdx.x] = mine[threadIdx.x % 8];
}

SCENE(invalid_address_space) {
  auto* out = static_cast<int*>(device_buffer("out", kMiB));
  invalid_address_space<<<1, 32>>>(out, 0);
}
