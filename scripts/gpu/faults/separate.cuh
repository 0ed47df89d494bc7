#pragma once
__device__ float weight_at(const float* weights, long long index);
