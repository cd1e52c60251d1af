/* module.c - modules, libraries and kernels: what they take is measured, and seen ahead where it is
 * large
 *
 * How much memory a module takes, only the driver knows: so it is measured when it was loaded, and
 * the module is unloaded if the task is far over its limit then. The stacks of a kernel are taken
 * when it is launched, where the guard does nothing: they are charged when the program gets to
 * know the kernel. */
#include <stdatomic.h>

#include "guard/budget/budget.h"
#include "guard/budget/share.h"
#include "guard/calls/charge.h"
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

/* There is a managed variable: until there is one, unloading costs nothing. */
static _Atomic(bool) any_managed;

/* A managed variable, which NVML gives to no process, is charged when the program gets to know it.
 * False if it exceeds the limit. */
static bool admit_variable(int gpu, CUdeviceptr pointer, size_t bytes, uint64_t module)
{
	struct charge charge;
	struct track_item item;
	int managed = 0;
	if (gpu == DEVICE_UNKNOWN || track_find(TRACK_GLOBAL, pointer, &item) ||
	    CALL(cuPointerGetAttribute, &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer) !=
	        CUDA_SUCCESS ||
	    managed == 0)
		return true;
	if (!charge_begin_here(&charge, bytes))
		return false;
	item = (struct track_item){ .key = pointer,
		                    .bytes = charge.bytes,
		                    .context = charge.context,
		                    .owner = module,
		                    .references = 1,
		                    .share = SHARE_NONE,
		                    .kind = TRACK_GLOBAL,
		                    .gpu = (int8_t)charge.gpu,
		                    .hidden = 1 };
	atomic_store(&any_managed, true);
	if (!track_add(&item)) {
		charge_cancel(&charge);
		return false;
	}
	budget_hide(state_member(), charge.gpu, charge.bytes);
	return true;
}

/* Around the driver's functions that find a variable of a module or library. The caller may not
 * want to know where it is, or how large: so the driver is asked again. */
#define GET_VARIABLE(symbol, ask, source, pointer, bytes, name)                                    \
	uint64_t context;                                                                          \
	int gpu = device_current(&context);                                                        \
	int64_t before_bytes = overhead_used(gpu);                                                 \
	CUresult result = CALL(symbol, pointer, bytes, source, name);                              \
	if (result != CUDA_SUCCESS || gpu == DEVICE_UNKNOWN)                                       \
		return result;                                                                     \
	CUdeviceptr at;                                                                            \
	size_t size;                                                                               \
	bool found = CALL(ask, &at, &size, source, name) == CUDA_SUCCESS;                          \
	bool admitted = overhead_within(gpu, before_bytes) &&                                      \
	                (!found || admit_variable(gpu, at, size, (uint64_t)(uintptr_t)(source)));  \
	return admitted ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY

CUresult cuModuleGetGlobal(CUdeviceptr_v1 *pointer, unsigned int *bytes, CUmodule module,
                           const char *name)
{
	GET_VARIABLE(cuModuleGetGlobal, cuModuleGetGlobal_v2, module, pointer, bytes, name);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module,
                              const char *name)
{
	GET_VARIABLE(cuModuleGetGlobal_v2, cuModuleGetGlobal_v2, module, pointer, bytes, name);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUlibrary library,
                            const char *name)
{
	GET_VARIABLE(cuLibraryGetGlobal, cuLibraryGetGlobal, library, pointer, bytes, name);
}

CUresult cuLibraryGetManaged(CUdeviceptr *pointer, size_t *bytes, CUlibrary library,
                             const char *name)
{
	GET_VARIABLE(cuLibraryGetManaged, cuLibraryGetManaged, library, pointer, bytes, name);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	LOAD_LATE(cuLibraryGetModule, module, library);
}

/* Its variables are gone. */
static void forget_variables(uint64_t module)
{
	struct track_item item;
	while (atomic_load_explicit(&any_managed, memory_order_relaxed) &&
	       track_remove_global(module, &item))
		charge_give(&item);
}

CUresult cuModuleUnload(CUmodule module)
{
	CUresult result = CALL(cuModuleUnload, module);
	if (result == CUDA_SUCCESS)
		forget_variables((uint64_t)(uintptr_t)module);
	return result;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	CUresult result = CALL(cuLibraryUnload, library);
	if (result == CUDA_SUCCESS)
		forget_variables((uint64_t)(uintptr_t)library);
	return result;
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
