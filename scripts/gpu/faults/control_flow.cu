// Asserts, traps, wrong jumps, and faults below calls.
#include <cassert>

#include "scene.cuh"

__global__ void assert_kernel(const int* values, int limit) { assert(values[threadIdx.x] < limit); }

static int* iota(int count) {
  auto* values = static_cast<int*>(device_buffer("values", kMiB));
  for (int i = 0; i < count; ++i) CHECK(cudaMemcpy(values + i, &i, sizeof i, cudaMemcpyHostToDevice));
  return values;
}

SCENE(assert) {
  fact("bad_threads", "13");
  assert_kernel<<<1, 14>>>(iota(14), 13);
}

__global__ void trap_kernel(const int* values) {
  if (values[threadIdx.x] == 11) __trap();
}

SCENE(trap) {
  fact("bad_threads", "11");
  trap_kernel<<<1, 32>>>(iota(32));
}

typedef int (*Operation)(int);

__global__ void call_through_pointer(const Operation* table, int entry, int* out) {
  out[threadIdx.x] = table[entry](threadIdx.x);
}

static void call_address(unsigned long long address) {
  auto* table = static_cast<unsigned long long*>(device_buffer("table", kMiB));
  auto* out = static_cast<int*>(device_buffer("out", kMiB));
  CHECK(cudaMemcpy(table + 1, &address, sizeof address, cudaMemcpyHostToDevice));
  fact("bad_pc", reinterpret_cast<void*>(address));
  call_through_pointer<<<1, 32>>>(reinterpret_cast<Operation*>(table), 1, out);
}

// A corrupt function pointer that looks like an address; null; and one that no instruction can have. Pointers are
// relative to the kernel's section: the H200 takes null for the kernel's own first instruction and starts it anew.
SCENE(badpc) { call_address(reinterpret_cast<unsigned long long>(&call_address) & ~0xfull); }
SCENE(null_function) {
  call_address(0);
  hang();
}
SCENE(misaligned_function) { call_address(0x7f0000000108ull); }

// A jump table indexed by a register that is out of its range. The table lies in constant memory, which reads as
// zero past its end: the H200 jumps to the kernel's first instruction, for ever.
__global__ void corrupt_branch(const int* selectors, int* out) {
  int result = 0;
  asm volatile(
      "{\n"
      "targets: .branchtargets case0, case1, case2, case3, case4, case5;\n"
      "brx.idx %1, targets;\n"
      "case0: add.s32 %0, %0, 10; bra.uni done;\n"
      "case1: mul.lo.s32 %0, %0, 7; bra.uni done;\n"
      "case2: xor.b32 %0, %0, 99; bra.uni done;\n"
      "case3: sub.s32 %0, %0, 5; bra.uni done;\n"
      "case4: shl.b32 %0, %0, 3; bra.uni done;\n"
      "case5: not.b32 %0, %0;\n"
      "done:\n"
      "}\n"
      : "+r"(result)
      : "r"(selectors[threadIdx.x]));
  out[threadIdx.x] = result;
}

SCENE(corrupt_branch) {
  auto* selectors = static_cast<int*>(device_buffer("selectors", kMiB));
  auto* out = static_cast<int*>(device_buffer("out", kMiB));
  int bad = 5000;
  for (int i = 0; i < 32; ++i) CHECK(cudaMemcpy(selectors + i, &bad, sizeof bad, cudaMemcpyHostToDevice));
  fact("bad_threads", "0-31");
  fact("bad_index", static_cast<long long>(bad));
  corrupt_branch<<<1, 32>>>(selectors, out);
  hang();
}

__device__ __noinline__ float inner(const float* values, long long index) { return values[index] + 1.0f; }

__device__ __noinline__ float outer(const float* values, long long index) {
  return inner(values, index * 3) * inner(values, index + 1);
}

__global__ void deep_call(const float* values, float* out, long long beyond) {
  out[threadIdx.x] = outer(values, threadIdx.x + beyond);
}

SCENE(deep) {
  auto* values = static_cast<float*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  constexpr long long kBeyond = 16 * kGiB / sizeof(float);
  fact("bad_threads", "0-31");
  fact("bad_address", values + 3 * kBeyond);
  deep_call<<<1, 32>>>(values, out, kBeyond);
}

// One function inlined at two places, at two depths: only the line table's inline chain tells which one failed.
__device__ __forceinline__ float read(const float* values, long long index) { return values[index]; }

__device__ __forceinline__ float average(const float* values, long long index) {
  return 0.5f * (read(values, index) + read(values, index + 1));
}

__global__ void inline_chain(const float* values, float* out, long long beyond) {
  float first = read(values, threadIdx.x);
  out[threadIdx.x] = first;
  __syncthreads();
  out[threadIdx.x] = first + average(values, threadIdx.x + beyond);
}

SCENE(inline_chain) {
  auto* values = static_cast<float*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  constexpr long long kBeyond = 64 * kGiB / sizeof(float);
  fact("bad_threads", "0-31");
  fact("bad_address", values + kBeyond);
  inline_chain<<<1, 32>>>(values, out, kBeyond);
}
