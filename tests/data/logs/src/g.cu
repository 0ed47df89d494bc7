#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cassert>
#include <cuda_runtime.h>
__device__ __noinline__ void put(float*p,long n,float v){ p[n]=v; }
__global__ void k_store(float*p,long n){ put(p,threadIdx.x+n,1.f); }
__global__ void k_load(const float*p,float*q,long n){ q[threadIdx.x]=p[threadIdx.x+n]; }
__global__ void k_mis(char*p){ *(float4*)(p+4+16*threadIdx.x)=make_float4(1,2,3,4); }
__global__ void k_shared(float*q,int n){ extern __shared__ float s[]; s[threadIdx.x+n]=q[threadIdx.x]; __syncthreads(); q[threadIdx.x]=s[0]; }
__global__ void k_assert(int*p,int v){ int id=p[threadIdx.x]; assert(id<v && "bad id"); p[threadIdx.x]=id; }
__global__ void k_trap(int*p){ if(threadIdx.x==3) __trap(); p[threadIdx.x]=1; }
typedef void(*fp)(float*,long,float);
__global__ void k_pc(fp f,float*p){ f(p,threadIdx.x,2.f); }
__device__ __noinline__ int rec(int n,volatile int*p){ volatile int a[64]; a[n&63]=n+p[0]; return n>100000000?0:rec(n+1,p)+a[(n+1)&63]; }
__global__ void k_stack(int*p){ p[0]=rec(0,p); }
__global__ void k_space(float*p){ unsigned a=(unsigned)(size_t)p; asm volatile("{.reg .u64 t; cvta.shared.u64 t, %0; atom.global.add.f32 _, [t], 0f3f800000;}"::"l"((unsigned long long)(a&0xff0))); }
__global__ void k_null(int*p){ p[threadIdx.x]=3; }
__global__ void k_race(int*q){ __shared__ int s; s=threadIdx.x; q[threadIdx.x]=s; }
int main(int c,char**v){ const char*m=v[1]; if(c>2) cudaSetDevice(atoi(v[2])); char*p; cudaMalloc(&p,1<<20); cudaMemset(p,0x7f,1<<20); cudaDeviceSynchronize();
 if(!strcmp(m,"store")) k_store<<<1,64>>>((float*)p,1L<<38);
 else if(!strcmp(m,"load")) k_load<<<1,64>>>((float*)p,(float*)p,(1<<18)-32);
 else if(!strcmp(m,"mis")) k_mis<<<2,64>>>(p);
 else if(!strcmp(m,"shared")) k_shared<<<1,128,512>>>((float*)p,1<<20);
 else if(!strcmp(m,"assert")) k_assert<<<1,64>>>((int*)p,5);
 else if(!strcmp(m,"trap")) k_trap<<<1,64>>>((int*)p);
 else if(!strcmp(m,"pc")) k_pc<<<1,32>>>((fp)0x7f0000001000,(float*)p);
 else if(!strcmp(m,"stack")) k_stack<<<1,1>>>((int*)p);
 else if(!strcmp(m,"space")) k_space<<<1,32>>>((float*)p);
 else if(!strcmp(m,"null")) k_null<<<1,32>>>((int*)16);
 else if(!strcmp(m,"race")) k_race<<<1,64>>>((int*)p);
 cudaError_t e=cudaDeviceSynchronize(); fprintf(stderr,"%s: CUDA error: %s (%s)\n",m,cudaGetErrorString(e),cudaGetErrorName(e)); return 0;}
