/* module.c - modules, libraries and kernels: what they take is measured, and seen ahead where it is
 * large
 *
 * How much memory a module takes, only the driver knows: so it is measured when it was loaded, and
 * the module is unloaded if the task is far over its limit then. The stacks of a kernel are taken
 * when it is launched, where the guard does nothing: they are charged when the program gets to
 * know the kernel. */
#include <stdatomic.h>

#include "guard/calls/device.h"
#include "guard/calls/entry.h"
#include "guard/calls/kernel.h"
#include "guard/calls/overhead.h"
#include "guard/calls/state.h"

/* Kernels' stacks below that are found by measuring. */
#define LARGE_BYTES ((int64_t)256 << 20)

/* What was charged for stacks, at most, on each GPU. */
static _Atomic(int64_t) stack_bytes[SEGMENT_GPUS_MAX];

int64_t kernel_threads(void)
{
	CUdevice device;
	int processors = 0;
	int threads = 0;
	if (CALL(cuCtxGetDevice, &device) != CUDA_SUCCESS ||
	    CALL(cuDeviceGetAttribute, &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
	         device) != CUDA_SUCCESS ||
	    CALL(cuDeviceGetAttribute, &threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
	         device) != CUDA_SUCCESS)
		return 0;
	return (int64_t)processors * threads;
}

void kernel_forget(int gpu)
{
	atomic_store(&stack_bytes[gpu], 0);
}

/* True if a kernel with so much local memory for each thread may be launched. */
static bool admit_kernel(int local_bytes)
{
	uint64_t context;
	int gpu = device_current(&context);
	if (gpu == DEVICE_UNKNOWN)
		return true;
	if (gpu < 0)
		return false;
	int64_t needed_bytes = local_bytes * kernel_threads();
	int64_t had_bytes = atomic_load(&stack_bytes[gpu]);
	if (needed_bytes <= LARGE_BYTES || needed_bytes <= had_bytes)
		return true;
	if (!overhead_promise(gpu, needed_bytes - had_bytes))
		return false;
	atomic_store(&stack_bytes[gpu], needed_bytes);
	return true;
}

static bool admit_function(CUfunction function)
{
	int local_bytes = 0;
	return !state_active() ||
	       CALL(cuFuncGetAttribute, &local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
	            function) != CUDA_SUCCESS ||
	       admit_kernel(local_bytes);
}

/* Around the driver's functions that load a module: those that fit stay. */
#define LOAD_MODULE(symbol, ...)                                                                   \
	uint64_t context;                                                                          \
	int gpu = device_current(&context);                                                        \
	int64_t before_bytes = overhead_used(gpu);                                                 \
	CUresult result = CALL(symbol, __VA_ARGS__);                                               \
	if (result != CUDA_SUCCESS || overhead_within(gpu, before_bytes))                          \
		return result;                                                                     \
	(void)CALL(cuModuleUnload, *module);                                                       \
	(void)overhead_within(gpu, INT64_MAX);                                                     \
	return CUDA_ERROR_OUT_OF_MEMORY

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	LOAD_MODULE(cuModuleLoad, module, path);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	LOAD_MODULE(cuModuleLoadData, module, image);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, int *options,
                            void **values)
{
	LOAD_MODULE(cuModuleLoadDataEx, module, image, count, options, values);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	LOAD_MODULE(cuModuleLoadFatBinary, module, image);
}

/* Around the driver's functions that load what was put off until somebody wanted it. It stays, and
 * the program that continues without it will find no memory for anything else. */
#define LOAD_LATE(symbol, ...)                                                                     \
	uint64_t context;                                                                          \
	int gpu = device_current(&context);                                                        \
	int64_t before_bytes = overhead_used(gpu);                                                 \
	CUresult result = CALL(symbol, __VA_ARGS__);                                               \
	return result != CUDA_SUCCESS || overhead_within(gpu, before_bytes)                        \
	           ? result                                                                        \
	           : CUDA_ERROR_OUT_OF_MEMORY

CUresult cuModuleGetGlobal(CUdeviceptr_v1 *pointer, unsigned int *bytes, CUmodule module,
                           const char *name)
{
	LOAD_LATE(cuModuleGetGlobal, pointer, bytes, module, name);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module,
                              const char *name)
{
	LOAD_LATE(cuModuleGetGlobal_v2, pointer, bytes, module, name);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	LOAD_LATE(cuLibraryGetModule, module, library);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUlibrary library,
                            const char *name)
{
	LOAD_LATE(cuLibraryGetGlobal, pointer, bytes, library, name);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	CUresult result = CALL(cuModuleGetFunction, function, module, name);
	return result != CUDA_SUCCESS || admit_function(*function) ? result
	                                                           : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	CUresult result = CALL(cuKernelGetFunction, function, kernel);
	return result != CUDA_SUCCESS || admit_function(*function) ? result
	                                                           : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	CUresult result = CALL(cuLibraryGetKernel, kernel, library, name);
	CUdevice device;
	int local_bytes = 0;
	if (result != CUDA_SUCCESS || !state_active() ||
	    CALL(cuCtxGetDevice, &device) != CUDA_SUCCESS ||
	    CALL(cuKernelGetAttribute, &local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, *kernel,
	         device) != CUDA_SUCCESS ||
	    admit_kernel(local_bytes))
		return result;
	return CUDA_ERROR_OUT_OF_MEMORY;
}
