// Times small kernels launched one by one and replayed from a CUDA graph, to measure what a wrapper or the
// core-dump environment costs: run it with and without, compare the medians.
//
//   nvcc -O3 -arch=sm_90 -o overhead overhead.cu
//   ./overhead [kernels a step (64)] [steps (2000)] [turns [processor]]
//
// Prints one JSON object; times are microseconds a step. With "turns" it does so once for each line that it
// reads, so that several processes can measure in alternation; the launching thread then stays on the processor
// given, since eager launches are as fast as the core that they happen to run on.
#include <cuda_runtime.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

static void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(1);
}

__global__ void step_kernel(float* values, int count) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) values[index] = values[index] * 1.0001f + 1.0f;
}

struct Times {
  double median, p10, p90;
};

static Times measure(int steps, const std::function<void()>& step) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> microseconds;
  for (int i = 0; i < steps / 10 + 1; ++i) step();
  for (int i = 0; i < steps; ++i) {
    auto start = Clock::now();
    step();
    microseconds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::sort(microseconds.begin(), microseconds.end());
  auto at = [&](double share) { return microseconds[static_cast<size_t>(share * (microseconds.size() - 1))]; };
  return {at(0.5), at(0.1), at(0.9)};
}

static void print(const char* name, const Times& times, const char* end) {
  std::printf("\"%s\": {\"median\": %.3f, \"p10\": %.3f, \"p90\": %.3f}%s", name, times.median, times.p10, times.p90, end);
}

// Waits for a line on standard input; false at its end.
static bool my_turn() {
  int c;
  while ((c = std::getchar()) != EOF)
    if (c == '\n') return true;
  return false;
}

int main(int argc, char** argv) {
  int kernels = argc > 1 ? std::max(1, std::atoi(argv[1])) : 64;
  int steps = argc > 2 ? std::max(1, std::atoi(argv[2])) : 2000;
  constexpr int kCount = 1 << 16;
  auto start = std::chrono::steady_clock::now();
  float* values = nullptr;
  check(cudaMalloc(&values, kCount * sizeof(float)));
  check(cudaMemset(values, 0, kCount * sizeof(float)));
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  auto launch = [&] {
    for (int i = 0; i < kernels; ++i) step_kernel<<<kCount / 256, 256, 0, stream>>>(values, kCount);
  };
  launch();
  check(cudaStreamSynchronize(stream));
  double setup = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();

  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  launch();
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&executable, graph, 0));

  bool turns = argc > 3;
  if (argc > 4) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(std::atoi(argv[4]), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) std::perror("sched_setaffinity");
  }
  while (!turns || my_turn()) {
    Times eager = measure(steps, [&] {
      launch();
      check(cudaStreamSynchronize(stream));
    });
    Times replay = measure(steps, [&] {
      check(cudaGraphLaunch(executable, stream));
      check(cudaStreamSynchronize(stream));
    });
    std::printf("{\"kernels\": %d, \"steps\": %d, \"setup_ms\": %.1f, ", kernels, steps, setup);
    print("eager_us", eager, ", ");
    print("graph_us", replay, "}\n");
    std::fflush(stdout);
    if (!turns) break;
  }
  return 0;
}
