// Local memory, the stack, constant memory, textures and surfaces.
#include "scene.cuh"

__global__ void local_index(const int* indices, int* out) {
  volatile int mine[64];
  mine[indices[threadIdx.x]] = 1;
  out[threadIdx.x] = mine[threadIdx.x];
}

SCENE(local_index) {
  auto* indices = static_cast<int*>(device_buffer("indices", kMiB));
  auto* out = static_cast<int*>(device_buffer("out", kMiB));
  int bad = 3 << 20;
  CHECK(cudaMemcpy(indices + 21, &bad, sizeof bad, cudaMemcpyHostToDevice));
  fact("bad_threads", "21");
  fact("bad_index", static_cast<long long>(bad));
  local_index<<<1, 32>>>(indices, out);
}

__device__ __noinline__ int recurse(int depth, volatile int* out) {
  volatile int frame[64];
  frame[depth & 63] = depth;
  out[threadIdx.x] = depth;
  return recurse(depth + 1, out) + frame[(depth + 1) & 63];
}

__global__ void stack_overflow(int* out, int depth) { out[threadIdx.x] = recurse(depth, out); }

SCENE(stack) {
  auto* out = static_cast<int*>(device_buffer("out", kMiB));
  stack_overflow<<<1, 32>>>(out, 0);
}

__constant__ float coefficients[16];

__global__ void constant_oob(const int* indices, float* out) {
  out[threadIdx.x] = coefficients[indices[threadIdx.x]];
}

SCENE(constant_oob) {
  auto* indices = static_cast<int*>(device_buffer("indices", kMiB));
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  int bad = 1 << 22;
  CHECK(cudaMemcpy(indices + 3, &bad, sizeof bad, cudaMemcpyHostToDevice));
  fact("bad_threads", "3");
  fact("bad_index", static_cast<long long>(bad));
  constant_oob<<<1, 32>>>(indices, out);
}

__global__ void texture_dangling(cudaTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x);
}

SCENE(texture_dangling) {
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  auto* buffer = device_buffer("buffer", 64 * kMiB);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = buffer;
  resource.res.linear.sizeInBytes = 64 * kMiB;
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  cudaTextureDesc reading = {};
  reading.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &reading, nullptr));
  free_under(texture_dangling, buffer);
  fact("bad_threads", "0-31");
  texture_dangling<<<1, 32>>>(texture, out);
}

// The default boundary mode of a surface write is to trap.
__global__ void surface_oob(cudaSurfaceObject_t surface, int row) {
  surf2Dwrite(1.0f, surface, static_cast<int>(sizeof(float) * threadIdx.x), row);
}

SCENE(surface_oob) {
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, 64, 64, cudaArraySurfaceLoadStore));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface;
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  fact("bad_threads", "0-31");
  fact("bad_row", 100ll);
  surface_oob<<<1, 32>>>(surface, 100);
}
