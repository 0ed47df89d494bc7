// The other half of separate_caller.cu, compiled to its own relocatable unit.
#include "separate.cuh"

__device__ float weight_at(const float* weights, long long index) {
  float below = weights[index];
  return below * 0.5f + weights[index + 1];
}
