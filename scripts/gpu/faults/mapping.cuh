// A buffer whose surroundings are known: address space reserved on both sides, mapped only in the middle.
#pragma once
#include "scene.cuh"

struct Mapping {
  CUdeviceptr start;
  CUmemGenericAllocationHandle handle;
  size_t bytes;
  char* pointer() const { return reinterpret_cast<char*>(start); }
};

// `bytes` is rounded up to the allocation granularity (2 MiB); as much again is reserved, unmapped, before and after.
Mapping map_between_holes(size_t bytes, CUmemAccess_flags access);
void unmap(const Mapping& mapping);
