// A device function of another compilation unit (-rdc=true): the fault lies below a real call, in another section.
#include "separate.cuh"

#include "scene.cuh"

__global__ void call_other_unit(const float* weights, float* out, long long beyond) {
  out[threadIdx.x] = weight_at(weights, threadIdx.x + (threadIdx.x == 6 ? beyond : 0));
}

SCENE(separate_unit) {
  auto* weights = static_cast<float*>(device_buffer("buffer", kMiB));
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  constexpr long long kBeyond = 64 * kGiB / sizeof(float);
  fact("bad_threads", "6");
  fact("bad_address", weights + 6 + kBeyond);
  call_other_unit<<<1, 32>>>(weights, out, kBeyond);
}
