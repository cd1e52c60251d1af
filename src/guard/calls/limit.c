/* limit.c - limits of a context: heaps and stacks that kernels get */
#include "guard/calls/device.h"
#include "guard/calls/entry.h"
#include "guard/calls/kernel.h"
#include "guard/calls/overhead.h"

/* What the driver takes for a limit of that value. */
static int64_t cost_of(int limit, size_t value)
{
	int64_t bytes = value > INT64_MAX ? INT64_MAX : (int64_t)value;
	int64_t all;
	if (limit != CU_LIMIT_STACK_SIZE)
		return bytes;
	return __builtin_mul_overflow(bytes, kernel_threads(), &all) ? INT64_MAX : all;
}

CUresult cuCtxSetLimit(int limit, size_t value)
{
	uint64_t context;
	size_t before = 0;
	bool counts = limit == CU_LIMIT_STACK_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE ||
	              limit == CU_LIMIT_MALLOC_HEAP_SIZE;
	int gpu = counts ? device_current(&context) : DEVICE_UNKNOWN;
	if (gpu == DEVICE_UNKNOWN || CALL(cuCtxGetLimit, &before, limit) != CUDA_SUCCESS)
		return CALL(cuCtxSetLimit, limit, value);
	int64_t more_bytes = cost_of(limit, value) - cost_of(limit, before);
	if (!overhead_promise(gpu, more_bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CALL(cuCtxSetLimit, limit, value);
	if (result != CUDA_SUCCESS)
		(void)overhead_promise(gpu, -more_bytes);
	return result;
}
