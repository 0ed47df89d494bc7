#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cassert>
#include <unistd.h>
#include <cuda_runtime.h>
__global__ void k_store(float*p,long n){ long i=blockIdx.x*(long)blockDim.x+threadIdx.x; p[i+(i==37?(1L<<34):0)]=1.f; }
__global__ void k_mis(char*p){ *(float4*)(p+4+16*threadIdx.x)=make_float4(1,2,3,4); }
__global__ void k_assert(int*p,int v){ int id=p[threadIdx.x]; assert(id<v && "bad id"); p[threadIdx.x]=id; }
__global__ void k_trap(int*p){ if(threadIdx.x==3) __trap(); p[threadIdx.x]=1; }
__global__ void k_spin(volatile int*p){ while(*p==0); }
__global__ void k_space(int*p){ atomicAdd((int*)((char*)p - 0),1); }
int main(int c,char**v){ const char*m=v[1]; void*p; cudaMalloc(&p,1<<20); cudaMemset(p,0x7f,1<<20);
 if(!strcmp(m,"store")) k_store<<<64,128>>>((float*)p,1);
 else if(!strcmp(m,"mis")) k_mis<<<4,64>>>((char*)p);
 else if(!strcmp(m,"assert")) k_assert<<<2,64>>>((int*)p,5);
 else if(!strcmp(m,"trap")) k_trap<<<1,64>>>((int*)p);
 else if(!strcmp(m,"spin")) { cudaMemset(p,0,1<<20); k_spin<<<2,64>>>((int*)p);}
 cudaError_t e=cudaDeviceSynchronize(); fprintf(stderr,"sync: %s (%s)\n",cudaGetErrorString(e),cudaGetErrorName(e)); return 0;}
