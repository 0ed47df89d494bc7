// faults SCENE: runs one scene. faults --list: names them all.
#include <chrono>
#include <cstring>
#include <thread>

#include "scene.cuh"

static Scene*& scenes() {
  static Scene* first = nullptr;
  return first;
}

Scene::Scene(const char* name, void (*run)()) : name(name), run(run), next(scenes()) { scenes() = this; }

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::printf("ERROR %s: %s\n", cudaGetErrorName(status), what);
  std::fflush(stdout);
  std::_Exit(3);
}

void check_driver(CUresult status, const char* what) {
  if (status == CUDA_SUCCESS) return;
  std::printf("ERROR driver %d: %s\n", static_cast<int>(status), what);
  std::fflush(stdout);
  std::_Exit(3);
}

void fact(const char* name, const void* address) {
  std::printf("FACT %s %p\n", name, address);
  std::fflush(stdout);
}

void fact(const char* name, long long number) {
  std::printf("FACT %s %lld\n", name, number);
  std::fflush(stdout);
}

void fact_text(const char* name, const char* text) {
  std::printf("FACT %s %s\n", name, text);
  std::fflush(stdout);
}

void finish() {
  CHECK(cudaGetLastError());
  cudaError_t status = cudaDeviceSynchronize();
  if (status == cudaSuccess) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    status = cudaDeviceSynchronize();
  }
  std::printf("END %s\n", cudaGetErrorName(status));
  std::fflush(stdout);
  std::_Exit(status == cudaSuccess ? 0 : 4);
}

void hang() {
  CHECK(cudaGetLastError());
  std::printf("READY\n");
  std::fflush(stdout);
  finish();
}

void* device_buffer(const char* name, long long bytes) {
  void* buffer = nullptr;
  CHECK(cudaMalloc(&buffer, bytes));
  CHECK(cudaMemset(buffer, 0, bytes));
  char size_name[64];
  std::snprintf(size_name, sizeof size_name, "%s_bytes", name);
  fact(name, buffer);
  fact(size_name, bytes);
  return buffer;
}

void* driver_entry(const char* symbol) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion(symbol, &entry, 12000, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) check(cudaErrorNotSupported, symbol);
  return entry;
}

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (Scene* scene = scenes(); scene; scene = scene->next) std::puts(scene->name);
    return 0;
  }
  for (Scene* scene = scenes(); argc == 2 && scene; scene = scene->next)
    if (std::strcmp(argv[1], scene->name) == 0) {
      scene->run();
      finish();
    }
  std::fprintf(stderr, "usage: faults SCENE | --list\n");
  return 2;
}
