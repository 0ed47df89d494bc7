// What every scene shares: its registration, its checks, and the facts that it prints.
//
// A scene prints what it plants as lines "FACT name value" before the fault (addresses are only known at run
// time, and with core dumps enabled the driver aborts the process before it could say anything afterwards),
// and "READY" when a kernel that never ends has been launched, so that a recorder knows when to ask for a dump.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

constexpr long long kMiB = 1ll << 20;
constexpr long long kGiB = 1ll << 30;

struct Scene {
  const char* name;
  void (*run)();
  Scene* next;
  Scene(const char* name, void (*run)());
};

#define SCENE(name)                                \
  static void scene_##name();                      \
  static Scene registered_##name(#name, scene_##name); \
  static void scene_##name()

void check(cudaError_t status, const char* what);
#define CHECK(call) check((call), #call)

void fact(const char* name, const void* address);
void fact(const char* name, long long number);
void fact_text(const char* name, const char* text);
// A string literal is text; any other char* is an address of the GPU and must not be read here.
template <size_t kSize>
void fact(const char* name, const char (&text)[kSize]) {
  fact_text(name, text);
}

// Waits for the GPU and ends the process: 0 without an error, 4 with one (named on stdout). A store whose warp has
// retired faults late: the first wait may succeed, and a process that left then would leave no dump.
[[noreturn]] void finish();
// Says READY, then waits for ever: the scene hangs on purpose.
[[noreturn]] void hang();

// Device memory of its own 2 MiB pages; printed as FACT NAME and NAME_bytes.
void* device_buffer(const char* name, long long bytes);

// Loads a kernel before its launch: lazy loading would wait for the kernels that run, for ever if one never ends.
template <typename Kernel>
void load(Kernel* kernel) {
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, kernel));
}

// Frees device memory under a kernel that is loaded first: nothing may take over the address range meanwhile.
template <typename Kernel>
void free_under(Kernel* kernel, void* buffer) {
  load(kernel);
  CHECK(cudaFree(buffer));
  fact("bad_address", buffer);
}

// An entry point of the driver, without linking to it: the build machine may have no driver.
void* driver_entry(const char* symbol);
void check_driver(CUresult status, const char* what);
#define CHECK_DRIVER(symbol, ...) \
  check_driver(reinterpret_cast<decltype(&symbol)>(driver_entry(#symbol))(__VA_ARGS__), #symbol)

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
