#include "mapping.cuh"

Mapping map_between_holes(size_t bytes, CUmemAccess_flags access) {
  CHECK(cudaFree(nullptr));  // makes the context
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  size_t granularity = 0;
  CHECK_DRIVER(cuMemGetAllocationGranularity, &granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  Mapping mapping = {};
  mapping.bytes = (bytes + granularity - 1) / granularity * granularity;
  CUdeviceptr reserved = 0;
  CHECK_DRIVER(cuMemAddressReserve, &reserved, 3 * mapping.bytes, 0, 0, 0);
  mapping.start = reserved + mapping.bytes;
  CHECK_DRIVER(cuMemCreate, &mapping.handle, mapping.bytes, &properties, 0);
  CHECK_DRIVER(cuMemMap, mapping.start, mapping.bytes, 0, mapping.handle, 0);
  CUmemAccessDesc allowed = {};
  allowed.location = properties.location;
  allowed.flags = access;
  CHECK_DRIVER(cuMemSetAccess, mapping.start, mapping.bytes, &allowed, 1);
  fact("buffer", mapping.pointer());
  fact("buffer_bytes", static_cast<long long>(mapping.bytes));
  return mapping;
}

void unmap(const Mapping& mapping) {
  CHECK_DRIVER(cuMemUnmap, mapping.start, mapping.bytes);
  CHECK_DRIVER(cuMemRelease, mapping.handle);
}
