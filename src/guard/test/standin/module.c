/* module.c - the stand-in's modules, kernels and limits of contexts, which take memory beside
 * allocations */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct CUfunc_st {
	int local_bytes;
};
struct CUmod_st {
	struct CUfunc_st function;
	int64_t bytes;
	int gpu;
	CUdeviceptr managed; /* its managed variable; 0: none */
	int64_t managed_bytes;
};

static int64_t stack_bytes[STANDIN_GPUS_MAX];
static size_t limits[3] = { 1024, (size_t)1 << 20, (size_t)8 << 20 };

void standin_forget_modules(void)
{
	memset(stack_bytes, 0, sizeof stack_bytes);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	long long mib = 0;
	long long managed_mib = 0;
	int local_bytes = 0;
	if (standin_current() == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	(void)sscanf(image, "%lld kernel=%d managed=%lld", &mib, &local_bytes, &managed_mib);
	CUmodule made = calloc(1, sizeof *made);
	*made = (struct CUmod_st){ .function = { local_bytes },
		                   .bytes = (int64_t)mib << 20,
		                   .gpu = standin_current_gpu(),
		                   .managed_bytes = (int64_t)managed_mib << 20 };
	pthread_mutex_lock(&standin_mutex);
	bool taken = standin_take(made->gpu, made->bytes);
	pthread_mutex_unlock(&standin_mutex);
	if (!taken) {
		free(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*module = made;
	return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	return cuModuleLoadData(module, path);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, int *options,
                            void **values)
{
	(void)count, (void)options, (void)values;
	return cuModuleLoadData(module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule module)
{
	pthread_mutex_lock(&standin_mutex);
	(void)standin_take(module->gpu, -module->bytes);
	if (module->managed != 0)
		standin_remove(standin_find(PIECE_MEMORY, module->managed));
	pthread_mutex_unlock(&standin_mutex);
	free(module);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	(void)name;
	*function = &module->function;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal(CUdeviceptr_v1 *pointer, unsigned int *bytes, CUmodule module,
                           const char *name)
{
	(void)pointer, (void)bytes, (void)module, (void)name;
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module,
                              const char *name)
{
	(void)name;
	if (module->managed_bytes == 0)
		return CUDA_ERROR_NOT_FOUND;
	if (module->managed == 0 &&
	    cuMemAllocManaged(&module->managed, (size_t)module->managed_bytes, 1) != CUDA_SUCCESS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (pointer != NULL)
		*pointer = module->managed;
	if (bytes != NULL)
		*bytes = (size_t)module->managed_bytes;
	return CUDA_SUCCESS;
}

/* A library is a module here. */
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	return cuModuleGetFunction((CUfunction *)(void *)kernel, (CUmodule)(void *)library, name);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	*module = (CUmodule)(void *)library;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUlibrary library,
                            const char *name)
{
	return cuModuleGetGlobal_v2(pointer, bytes, (CUmodule)(void *)library, name);
}

CUresult cuLibraryGetManaged(CUdeviceptr *pointer, size_t *bytes, CUlibrary library,
                             const char *name)
{
	return cuModuleGetGlobal_v2(pointer, bytes, (CUmodule)(void *)library, name);
}

CUresult cuLibraryUnload(CUlibrary library)
{
	return cuModuleUnload((CUmodule)(void *)library);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	*function = (CUfunction)(void *)kernel;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
	if (attribute != CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	*value = function->local_bytes;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *value, int attribute, CUkernel kernel, CUdevice device)
{
	(void)device;
	return cuFuncGetAttribute(value, attribute, (CUfunction)(void *)kernel);
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	(void)device;
	*value =
	    attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? STANDIN_THREADS / 2048 : 2048;
	return CUDA_SUCCESS;
}

/* The driver takes stacks for all threads with the first launch that needs them, and keeps them. */
CUresult cuLaunchKernel(CUfunction function)
{
	if (function == NULL)
		return CUDA_SUCCESS;
	int gpu = standin_current_gpu();
	int64_t needed_bytes = (int64_t)function->local_bytes * STANDIN_THREADS;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&standin_mutex);
	if (needed_bytes > stack_bytes[gpu]) {
		if (standin_take(gpu, needed_bytes - stack_bytes[gpu]))
			stack_bytes[gpu] = needed_bytes;
		else
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&standin_mutex);
	return result;
}

CUresult cuCtxGetLimit(size_t *value, int limit)
{
	if (limit < 0 || limit > 2)
		return CUDA_ERROR_INVALID_VALUE;
	*value = limits[limit];
	return CUDA_SUCCESS;
}

/* The heap is taken at once here. */
CUresult cuCtxSetLimit(int limit, size_t value)
{
	if (limit < 0 || limit > 2)
		return CUDA_ERROR_INVALID_VALUE;
	int64_t more = (int64_t)value - (int64_t)limits[limit];
	pthread_mutex_lock(&standin_mutex);
	bool taken =
	    limit != CU_LIMIT_MALLOC_HEAP_SIZE || standin_take(standin_current_gpu(), more);
	pthread_mutex_unlock(&standin_mutex);
	if (!taken)
		return CUDA_ERROR_OUT_OF_MEMORY;
	limits[limit] = value;
	return CUDA_SUCCESS;
}
