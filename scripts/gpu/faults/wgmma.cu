// Warp-group matrix product (HGMMA) whose shared-memory descriptor points past the block's memory.
// sm_90a only: built for that architecture alone.
#include "scene.cuh"

__global__ void wgmma_product(float* out, uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
#endif
}

// Descriptor: start address / 16 in bits 0-13, leading offset / 16 in 16-29, stride / 16 in 32-45.
static constexpr uint64_t descriptor(uint64_t address) { return address / 16 | 8ull << 16 | 16ull << 32; }

SCENE(wgmma_bad_descriptor) {
  auto* out = static_cast<float*>(device_buffer("out", kMiB));
  fact("bad_threads", "0-127");
  fact("bad_shared_offset", 0x3f000ll);
  wgmma_product<<<1, 128>>>(out, descriptor(0x3f000), descriptor(0x3f000));
}
