// Names that a demangler meets: lambdas, packs, function and member pointers, literals of every kind,
// expressions in signatures, unnamed namespaces, static kernels of relocatable code.
#include <type_traits>

namespace ns {
namespace {
struct Hidden {
  int v;
};
}  // namespace
template <class T, int N>
struct Arr {
  T d[N];
};
template <class... Ts>
struct Tup {};
enum class Mode : char { A, B = 3 };
enum Old { X = -2 };
__global__ void anon(Hidden h, Arr<Arr<float, 2>, 3> a) {}
}  // namespace ns

template <class F>
__global__ void launch(F f, int n) {
  if (threadIdx.x < n)
    f(threadIdx.x);
}
template <class... Ts>
__global__ void variadic(Ts... ts) {}
template <class... Ts>
__global__ void packs(ns::Tup<Ts *...> a, ns::Tup<const Ts &...> b) {}
template <class T>
__global__ void arrays(T (*f)(int, const T &), T (&arr)[4]) {}
template <class R, class... A>
__global__ void pointers(R (*f)(A...)) {}
template <ns::Mode M, ns::Old O, bool B, char C, unsigned short S, long long L, unsigned long long U>
__global__ void literals() {}
template <class T>
__global__ void member(int T::*p, int (T::*q)(float) const) {}
template <template <class, int> class TT, class T>
__global__ void nested(TT<T, 4> x) {}
template <class T>
__global__ typename std::enable_if<std::is_integral<T>::value && sizeof(T) == 4, void>::type chosen(T t) {}
__device__ void callee(int) {}
template <void (*F)(int)>
__global__ void function_value() {}
template <class T>
struct S {
  struct In {
    int q;
  };
};
template <class T>
__global__ void inside(typename S<T>::In i, S<S<T>> s, const volatile T *__restrict__ p) {}
__global__ void plain(const float4 *__restrict__ a, unsigned char b, void *const *d, const void *(*e)[3]) {}
static __global__ void hidden(int) {}

void host() {
  int k = 3;
  launch<<<1, 1>>>([=] __device__(int i) { (void)(k + i); }, 4);
  auto g = [=] __host__ __device__(int i) { (void)(i); };
  launch<<<1, 1>>>(g, 4);
  variadic<<<1, 1>>>(1, 2.0f, 'c', ns::Tup<>());
  variadic<<<1, 1>>>();
  packs<int, float><<<1, 1>>>({}, {});
  packs<><<<1, 1>>>({}, {});
  arrays<int><<<1, 1>>>(nullptr, *(int(*)[4]) nullptr);
  pointers<void><<<1, 1>>>((void (*)()) nullptr);
  pointers<int, float, char *><<<1, 1>>>((int (*)(float, char *)) nullptr);
  literals<ns::Mode::B, ns::X, true, 'a', 5, -7, 9><<<1, 1>>>();
  member<ns::Hidden><<<1, 1>>>(nullptr, nullptr);
  nested<ns::Arr, double><<<1, 1>>>({});
  chosen<int><<<1, 1>>>(1);
  function_value<callee><<<1, 1>>>();
  inside<int><<<1, 1>>>({}, {}, nullptr);
  ns::anon<<<1, 1>>>({}, {});
  hidden<<<1, 1>>>(1);
}
