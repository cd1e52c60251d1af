/* standin.h - a driver of our own with the driver's entry points, for tests without a GPU
 *
 * Memory is numbers here. The environment says what there is:
 *	STANDIN_GPUS     how many GPUs (2)
 *	STANDIN_MEMORY   bytes of each (16 GiB)
 *	STANDIN_CONTEXT  bytes that the first context in a process takes on a GPU (0)
 *	STANDIN_PIECE    bytes by which pools grow (32 MiB)
 *	STANDIN_STATE    a file in which all processes add up what they have taken
 *	STANDIN_PRIVATE  if set, cuGetProcAddress gives out functions that the library
 *	                 does not export
 *	CUDA_VISIBLE_DEVICES  numbers of GPUs, with commas between them */
#ifndef GUARD_STANDIN_H
#define GUARD_STANDIN_H

#include <stdatomic.h>
#include <stdint.h>

#include "../../calls/driver_abi.h"

enum { STANDIN_GPUS_MAX = 4, STANDIN_USERS_MAX = 256 };

/* What one process has taken of each GPU. */
struct standin_user {
	_Atomic(int64_t) pid; /* 0: nobody's */
	_Atomic(int64_t) used_bytes[STANDIN_GPUS_MAX];
};

/* What all processes have taken of each GPU. What one has that ended comes back when another
 * takes something. */
struct standin_state {
	_Atomic(int64_t) used_bytes[STANDIN_GPUS_MAX];
	_Atomic(int64_t) peak_bytes[STANDIN_GPUS_MAX];
	struct standin_user users[STANDIN_USERS_MAX];
};

/* The stand-in's modules and kernels are texts: "MIB name=STACK_BYTES managed=MIB" is a module
 * that takes so much memory, with a kernel that has so much local memory for each thread and a
 * managed variable. A device has 132
 * processors of 2048 threads. */
enum { STANDIN_THREADS = 132 * 2048 };

#pragma GCC visibility push(default)

/* The UUID of GPU `gpu`, by its number on the machine. */
void standin_uuid(int gpu, uint8_t uuid[16]);

/* What this process has taken of a GPU, by its number on the machine, contexts
 * included. */
int64_t standin_used(int gpu);

/* What of that NVML gives to the process. */
int64_t standin_shown(int gpu);

/* Whether a stream is being captured, from now on. */
void standin_capture(CUstream stream, int capturing);

/* A graph was launched that takes so much on the current device. */
void standin_launch_graph(int64_t bytes);

/* How many functions of the driver this process has called, of those that allocate. */
int64_t standin_calls(void);

CUresult cuDriverGetVersion(int *version);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags);
CUresult cuLaunchKernel(CUfunction function); /* its other arguments do not matter */
CUresult cuMemsetD8_v2(CUdeviceptr pointer, unsigned char value, size_t bytes);
CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                               size_t count, CUdeviceptr pointer);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuGetErrorName(CUresult error, const char **name);

/* Asked by the guard; here they have to be seen. */
CUresult cuInit(unsigned int flags);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext *context);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
CUresult cuStreamIsCapturing(CUstream stream, int *status);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer);
CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer);
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                CUmemGenericAllocationHandle handle);
CUresult cuCtxGetLimit(size_t *value, int limit);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function);
CUresult cuKernelGetAttribute(int *value, int attribute, CUkernel kernel, CUdevice device);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphNodeGetType(CUgraphNode node, int *type);
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *parameters);
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *pointer);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph);
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUarray array,
                                      CUdevice device);
CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements,
                                               CUmipmappedArray array, CUdevice device);
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr at,
                             unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes);
nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
#pragma GCC visibility pop

#endif
