// Kernels that never end, each waiting in its own way. The process must be killed, or asked for a dump.
#include "barrier.cuh"

static int* flag_buffer() { return static_cast<int*>(device_buffer("flag", kMiB)); }

__global__ void hang_kernel(volatile int* flag) {
  while (*flag == 0) {
  }
}

SCENE(hang) {
  hang_kernel<<<4, 64>>>(flag_buffer());
  hang();
}

__global__ void barrier_hang(volatile int* flag) {
  if (threadIdx.x / 32 == 2)
    while (*flag == 0) {
    }
  __syncthreads();
}

SCENE(barrier_hang) {
  barrier_hang<<<2, 128>>>(flag_buffer());
  hang();
}

// A named barrier that expects 256 threads of a block of 128.
__global__ void named_barrier_hang(int* out) {
  asm volatile("bar.sync 3, 256;" ::: "memory");
  out[threadIdx.x] = 1;
}

SCENE(named_barrier_hang) {
  named_barrier_hang<<<1, 128>>>(flag_buffer());
  hang();
}

// An mbarrier that expects more bytes than anybody copies.
__global__ void mbarrier_hang(int* out) {
#if __CUDA_ARCH__ >= 900
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    barrier_init(&barrier, 1);
    barrier_expect(&barrier, 4096);
  }
  __syncthreads();
  barrier_wait(&barrier, 0);
  out[threadIdx.x] = 1;
#endif
}

SCENE(mbarrier_hang) {
  mbarrier_hang<<<2, 128>>>(flag_buffer());
  hang();
}

// Lane 31 spins, its warp waits for it at __syncwarp().
__global__ void syncwarp_hang(volatile int* flag) {
  if (threadIdx.x % 32 == 31)
    while (*flag == 0) {
    }
  __syncwarp();
  flag[1 + threadIdx.x] = 1;
}

SCENE(syncwarp_hang) {
  syncwarp_hang<<<1, 32>>>(flag_buffer());
  hang();
}

// A grid barrier by hand, launched with more blocks than fit: the resident ones wait for those that cannot start.
// Each block takes all the shared memory of its SM, so that few fit.
__global__ void grid_barrier_hang(int* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (*static_cast<volatile int*>(arrived) < static_cast<int>(gridDim.x)) {
    }
  }
  __syncthreads();
}

SCENE(grid_barrier_hang) {
  int per_sm = 0, sms = 0, shared = 0;
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  CHECK(cudaFuncSetAttribute(grid_barrier_hang, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, grid_barrier_hang, 64, shared));
  fact("resident_blocks", static_cast<long long>(per_sm) * sms);
  fact("grid_blocks", static_cast<long long>(per_sm) * sms + 8);
  grid_barrier_hang<<<per_sm * sms + 8, 64, shared>>>(flag_buffer());
  hang();
}

// A lock that its last owner never released.
__global__ void lock_hang(int* lock) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) __nanosleep(100);
}

SCENE(lock_hang) {
  int* lock = flag_buffer();
  int taken = 1;
  CHECK(cudaMemcpy(lock, &taken, sizeof taken, cudaMemcpyHostToDevice));
  fact("lock_value", 1ll);
  lock_hang<<<8, 32>>>(lock);
  hang();
}

// Programmatic dependent launch: the second kernel waits for a first one that allowed it to start and then spins.
__global__ void pdl_first(volatile int* flag) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  while (*flag == 0) {
  }
}

__global__ void pdl_second(int* out) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  out[threadIdx.x] = 1;
}

SCENE(pdl_hang) {
  int* flag = flag_buffer();
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  load(pdl_second);
  pdl_first<<<1, 32, 0, stream>>>(flag);
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch = {};
  launch.gridDim = 1;
  launch.blockDim = 32;
  launch.stream = stream;
  launch.attrs = &overlap;
  launch.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&launch, pdl_second, flag + 64));
  hang();
}

// No kernel runs at all: the stream waits for a value in memory that nobody writes.
SCENE(stream_wait_hang) {
  int* flag = flag_buffer();
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  load(pdl_second);
  CHECK_DRIVER(cuStreamWaitValue32, stream, reinterpret_cast<CUdeviceptr>(flag), 1, CU_STREAM_WAIT_VALUE_EQ);
  pdl_second<<<1, 32, 0, stream>>>(flag + 64);
  hang();
}
