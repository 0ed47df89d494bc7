// One bad kernel among many: streams, graphs, devices.
#include "scene.cuh"

static constexpr long long kFar = 64 * kGiB / sizeof(float);

__global__ void benign_scale(float* values, int count, float factor) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) values[index] *= factor;
}

__global__ void benign_spin(float* values, long long cycles) {
  for (long long start = clock64(); clock64() - start < cycles;) values[threadIdx.x] += 1.0f;
}

__global__ void scatter_oob(float* values, long long beyond) {
  long long index = blockIdx.x * blockDim.x + threadIdx.x;
  values[index == 100 ? index + beyond : index] = 1.0f;
}

__global__ void red_oob(float* values, long long beyond) {
  if (threadIdx.x == 3) atomicAdd(values + beyond, 1.0f);
}

static float* values_buffer() { return static_cast<float*>(device_buffer("buffer", 4 * kMiB)); }

static cudaGraphExec_t instantiate(cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  return executable;
}

static cudaStream_t capturing() {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  return stream;
}

// The kernel behind the bad one reuses its slots: by the time the GPU stops, the warp belongs to an innocent grid.
SCENE(graph) {
  float* values = values_buffer();
  fact("bad_address", values + 100 + kFar);
  cudaStream_t stream = capturing();
  for (int i = 0; i < 6; ++i) benign_scale<<<256, 256, 0, stream>>>(values, 65536, 1.01f);
  scatter_oob<<<256, 256, 0, stream>>>(values, kFar);
  for (int i = 0; i < 6; ++i) benign_scale<<<256, 256, 0, stream>>>(values, 65536, 1.01f);
  cudaGraphExec_t graph = instantiate(stream);
  for (int i = 0; i < 4; ++i) CHECK(cudaGraphLaunch(graph, stream));
  finish();
}

SCENE(graph_slot) {
  float* values = values_buffer();
  fact("bad_address", values + kFar);
  cudaStream_t stream = capturing();
  red_oob<<<1, 32, 0, stream>>>(values, kFar);
  benign_spin<<<264, 64, 0, stream>>>(values, 200000000);
  cudaGraphExec_t graph = instantiate(stream);
  CHECK(cudaGraphLaunch(graph, stream));
  finish();
}

// A graph keeps the address of a scratch buffer that was freed after the capture.
SCENE(graph_use_after_free) {
  auto* scratch = static_cast<float*>(device_buffer("buffer", 64 * kMiB));
  cudaStream_t stream = capturing();
  benign_scale<<<16, 128, 0, stream>>>(scratch, 2048, 1.01f);
  cudaGraphExec_t graph = instantiate(stream);
  CHECK(cudaGraphLaunch(graph, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaFree(scratch));
  fact("bad_address", scratch);
  CHECK(cudaGraphLaunch(graph, stream));
  finish();
}

SCENE(many) {
  float* values = values_buffer();
  fact("bad_threads", "3");
  fact("bad_address", values + kFar);
  cudaStream_t streams[2];
  for (auto& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < 200; ++i)
    if (i == 120)
      red_oob<<<64, 128, 0, streams[i % 2]>>>(values, kFar);
    else
      benign_scale<<<1024, 256, 0, streams[i % 2]>>>(values, 262144, 1.01f);
  finish();
}

__global__ void misaligned_in_stream(char* buffer) {
  *reinterpret_cast<float4*>(buffer + 16 * threadIdx.x + 4) = make_float4(1, 2, 3, 4);
}

// Two kernels on two streams, each with a fault of its own.
SCENE(multi) {
  float* values = values_buffer();
  cudaStream_t streams[2];
  for (auto& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  fact("bad_address", reinterpret_cast<char*>(values) + 4);
  load(misaligned_in_stream);
  load(scatter_oob);
  misaligned_in_stream<<<1, 64, 0, streams[0]>>>(reinterpret_cast<char*>(values));
  scatter_oob<<<256, 256, 0, streams[1]>>>(values, kFar);
  finish();
}

__global__ void device1_scatter(float* values, long long beyond) {
  long long index = threadIdx.x + (threadIdx.x == 33 ? beyond : 0);
  values[index] = 1.0f;
}

SCENE(two_devices) {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) check(cudaErrorInvalidDevice, "needs two GPUs");
  benign_spin<<<1, 32>>>(values_buffer(), 4000000000ll);
  CHECK(cudaSetDevice(1));
  float* values = values_buffer();
  fact("bad_device", 1ll);
  fact("bad_threads", "33");
  fact("bad_address", values + 33 + kFar);
  device1_scatter<<<1, 64>>>(values, kFar);
  finish();
}
