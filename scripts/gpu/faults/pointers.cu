// Pointers that were never right: null, small integers, packed data, host addresses.
#include <vector>

#include "scene.cuh"

// The pointer is a kernel parameter, so the compiler knows that it is global memory (LDG).
__global__ void null_global(const float* weights, float* out) { out[threadIdx.x] = weights[threadIdx.x]; }

SCENE(null_global) {
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  fact("bad_threads", "0-31");
  fact("bad_address", static_cast<void*>(nullptr));
  null_global<<<1, 32>>>(nullptr, out);
}

struct Layer {
  long long shape[2];
  const float* weights;
  long long stride;
};

// The pointer comes out of a table in memory; the load is generic (LD), in PTX because nvcc would guess global.
__global__ void load_through_table(const float* const* table, int entry, float* out) {
  float value;
  asm volatile("ld.f32 %0, [%1];" : "=f"(value) : "l"(table[entry] + threadIdx.x));
  out[threadIdx.x] = value;
}

static void pointer_from_table(unsigned long long value) {
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  auto* table = static_cast<unsigned long long*>(device_buffer("table", kMiB));
  unsigned long long entries[4] = {reinterpret_cast<unsigned long long>(out), reinterpret_cast<unsigned long long>(out),
                                   value, reinterpret_cast<unsigned long long>(out)};
  CHECK(cudaMemcpy(table, entries, sizeof entries, cudaMemcpyHostToDevice));
  fact("bad_threads", "0-31");
  fact("bad_address", reinterpret_cast<void*>(value));
  load_through_table<<<1, 32>>>(reinterpret_cast<const float* const*>(table), 2, out);
}

SCENE(null_generic) { pointer_from_table(0); }
SCENE(small_integer) { pointer_from_table(0x2a8); }
// Two 32-bit integers (a shape, a pair of indices) read as one pointer.
SCENE(packed_integers) { pointer_from_table((1024ull << 32) | 512); }
// 1.0f twice: not a canonical address on any GPU.
SCENE(packed_floats) { pointer_from_table(0x3f8000003f800000ull); }

// A field of a struct behind a null pointer: null + 0x10.
__global__ void null_field(const Layer* layer, float* out) { out[threadIdx.x] = layer->weights[threadIdx.x]; }

SCENE(null_field) {
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  fact("bad_threads", "0-31");
  fact("bad_address", reinterpret_cast<void*>(0x10));
  null_field<<<1, 32>>>(nullptr, out);
}

// Pageable host memory: faults where the GPU cannot follow host page tables (no HMM, no ATS).
SCENE(host_pointer) {
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  std::vector<float> host(1 << 20, 1.0f);
  fact("bad_threads", "0-31");
  fact("bad_address", host.data());
  null_global<<<1, 32>>>(host.data(), out);
}

struct Shape {
  __host__ __device__ virtual int area() const { return side * side; }
  int side = 3;
};
struct Wide : Shape {
  __host__ __device__ int area() const override { return 2 * side; }
};

__global__ void host_vtable(const Shape* shape, int* out) { out[threadIdx.x] = shape->area(); }

// An object made on the host and copied as bytes: its table of virtual functions has a host address.
SCENE(host_vtable) {
  auto* out = static_cast<int*>(device_buffer("out", kMiB));
  auto* object = device_buffer("object", kMiB);
  Wide wide;
  CHECK(cudaMemcpy(object, static_cast<const void*>(&wide), sizeof wide, cudaMemcpyHostToDevice));
  fact("bad_address", *reinterpret_cast<void**>(&wide));
  host_vtable<<<1, 32>>>(static_cast<Shape*>(object), out);
}

// The device heap is 8 MiB by default: malloc returns null, nobody looks.
__global__ void heap_exhausted(size_t bytes) {
  auto* scratch = static_cast<float*>(malloc(bytes));
  scratch[threadIdx.x] = 1.0f;
  free(scratch);
}

SCENE(heap_exhausted) {
  fact("bad_threads", "0-31");
  fact("bad_address", static_cast<void*>(nullptr));
  heap_exhausted<<<1, 32>>>(kGiB);
}

__global__ void heap_double_free() {
  auto* scratch = static_cast<int*>(malloc(64));
  scratch[0] = threadIdx.x;
  free(scratch);
  free(scratch);
}

SCENE(heap_double_free) { heap_double_free<<<1, 32>>>(); }
