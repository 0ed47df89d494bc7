// Parameters of more than 4 KiB are described by another attribute (EIATTR_KPARAM_INFO_V2).
struct Wide {
  char bytes[30000];
};

extern "C" __global__ void __launch_bounds__(128, 2) wide(Wide w, int *p, short s) {
  __shared__ int t[32];
  t[threadIdx.x & 31] = w.bytes[threadIdx.x] + s;
  __syncthreads();
  p[threadIdx.x] = t[(threadIdx.x + 1) & 31];
}
