/* alloc.c - plain allocations of GPU memory, and freeing them */
#include "guard/calls/charge.h"
#include "guard/calls/entry.h"
#include "guard/calls/pool.h"
#include "guard/calls/state.h"

/* After the driver has answered: keeps the charge or cancels it. False if it could not
 * be kept, so that the allocation has to be undone. */
static bool alloc_settle(struct charge *charge, CUresult result, CUdeviceptr pointer)
{
	if (result == CUDA_SUCCESS && charge_keep(charge, TRACK_POINTER, pointer))
		return true;
	charge_failed(charge, result);
	return result != CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes)
{
	struct charge charge;
	if (!charge_begin_here(&charge, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CALL(cuMemAlloc, pointer, bytes);
	if (alloc_settle(&charge, result, result == CUDA_SUCCESS ? *pointer : 0))
		return result;
	(void)CALL(cuMemFree, *pointer);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
	struct charge charge;
	if (!charge_begin_here(&charge, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CALL(cuMemAlloc_v2, pointer, bytes);
	if (alloc_settle(&charge, result, result == CUDA_SUCCESS ? *pointer : 0))
		return result;
	(void)CALL(cuMemFree_v2, *pointer);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags)
{
	struct charge charge;
	if (!charge_begin_here(&charge, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	charge.hidden = true;
	CUresult result = CALL(cuMemAllocManaged, pointer, bytes, flags);
	if (alloc_settle(&charge, result, result == CUDA_SUCCESS ? *pointer : 0))
		return result;
	(void)CALL(cuMemFree_v2, *pointer);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The driver begins each row at a multiple of this, at least. */
enum { ROW_ALIGNMENT = 512 };

static size_t row_size(size_t width)
{
	return width > SIZE_MAX - ROW_ALIGNMENT
	           ? SIZE_MAX
	           : (width + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT;
}

/* The size of `rows` rows; a product that overflows is more than any limit. */
static size_t rows_size(size_t pitch, size_t height)
{
	size_t bytes;
	return __builtin_mul_overflow(pitch, height, &bytes) ? SIZE_MAX : bytes;
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width,
                         unsigned int height, unsigned int element)
{
	struct charge charge;
	if (!charge_begin_here(&charge, rows_size(row_size(width), height)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CALL(cuMemAllocPitch, pointer, pitch, width, height, element);
	bool fits = result != CUDA_SUCCESS ||
	            charge_change(&charge, charge_size(rows_size(*pitch, height)));
	if (fits && alloc_settle(&charge, result, result == CUDA_SUCCESS ? *pointer : 0))
		return result;
	if (!fits)
		charge_cancel(&charge);
	(void)CALL(cuMemFree, *pointer);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                            unsigned int element)
{
	struct charge charge;
	if (!charge_begin_here(&charge, rows_size(row_size(width), height)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CALL(cuMemAllocPitch_v2, pointer, pitch, width, height, element);
	/* How wide a row really is, only the driver knows. */
	bool fits = result != CUDA_SUCCESS ||
	            charge_change(&charge, charge_size(rows_size(*pitch, height)));
	if (fits && alloc_settle(&charge, result, result == CUDA_SUCCESS ? *pointer : 0))
		return result;
	if (!fits)
		charge_cancel(&charge);
	(void)CALL(cuMemFree_v2, *pointer);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree(CUdeviceptr_v1 pointer)
{
	struct track_item item;
	bool known = charge_free_begin(TRACK_POINTER, pointer, &item);
	CUresult result = CALL(cuMemFree, pointer);
	charge_free_end(known, &item, result == CUDA_SUCCESS);
	return result;
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	struct track_item item;
	bool known = charge_free_begin(TRACK_POINTER, pointer, &item);
	CUresult result = CALL(cuMemFree_v2, pointer);
	charge_free_end(known, &item, result == CUDA_SUCCESS);
	/* This waits for the GPU, so a pool may give memory back. */
	pool_synchronized();
	return result;
}
