/* array.c - arrays and mipmapped arrays, whose size follows from their shape */
#include "guard/calls/charge.h"
#include "guard/calls/entry.h"
#include "guard/calls/state.h"

/* A shape in all its versions. */
struct shape {
	size_t width, height, depth;
	int format;
	unsigned int channels;
	unsigned int levels;
	unsigned int flags;
};

/* Bits of one channel. Of formats that pack their channels otherwise, of which there
 * are dozens, at least what they take. */
static size_t channel_bits(int format)
{
	switch (format) {
	case 0x01: /* unsigned 8 bit */
	case 0x08: /* signed 8 bit */
		return 8;
	case 0x02: /* unsigned 16 bit */
	case 0x09: /* signed 16 bit */
	case 0x10: /* half */
		return 16;
	default:
		return 32;
	}
}

static size_t multiply(size_t a, size_t b)
{
	size_t product;
	return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

static size_t at_least_one(size_t count)
{
	return count > 0 ? count : 1;
}

/* The driver cuts an array into blocks of 64 bytes by 8 rows, so that narrow or low ones take much
 * more than their shape. */
static size_t in_blocks(size_t count, size_t unit)
{
	return count > SIZE_MAX - unit ? SIZE_MAX : (count + unit - 1) / unit * unit;
}

static size_t shape_size(const struct shape *shape)
{
	/* Sparse arrays have no memory until some is mapped, by handles. */
	if ((shape->flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0)
		return 0;
	size_t total = 0;
	size_t element = channel_bits(shape->format) / 8 * at_least_one(shape->channels);
	for (unsigned int level = 0; level < shape->levels && level < 32; level++) {
		size_t row = multiply(at_least_one(shape->width >> level), element);
		size_t height = shape->height >> level;
		size_t bytes = multiply(in_blocks(row, 64), height > 1 ? in_blocks(height, 8) : 1);
		bytes = multiply(bytes, at_least_one(shape->depth >> level));
		if (__builtin_add_overflow(total, bytes, &total))
			return SIZE_MAX;
	}
	return total;
}

/* What the driver says that such an array takes: it tells that of one whose memory is to be mapped
 * later, which takes none. 0 where it does not say. */
static size_t asked_size(const struct shape *shape)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {
		shape->width,  shape->height,   shape->depth,
		shape->format, shape->channels, shape->flags | CUDA_ARRAY3D_DEFERRED_MAPPING
	};
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs = { 0 };
	CUdevice device;
	if (REAL(cuArrayGetMemoryRequirements) == NULL ||
	    REAL(cuMipmappedArrayGetMemoryRequirements) == NULL ||
	    CALL(cuCtxGetDevice, &device) != CUDA_SUCCESS)
		return 0;
	if (shape->levels > 1) {
		CUmipmappedArray array;
		if (CALL(cuMipmappedArrayCreate, &array, &descriptor, shape->levels) !=
		    CUDA_SUCCESS)
			return 0;
		if (CALL(cuMipmappedArrayGetMemoryRequirements, &needs, array, device) !=
		    CUDA_SUCCESS)
			needs.size = 0;
		(void)CALL(cuMipmappedArrayDestroy, array);
		return needs.size;
	}
	CUarray array;
	if (CALL(cuArray3DCreate_v2, &array, &descriptor) != CUDA_SUCCESS)
		return 0;
	if (CALL(cuArrayGetMemoryRequirements, &needs, array, device) != CUDA_SUCCESS)
		needs.size = 0;
	(void)CALL(cuArrayDestroy, array);
	return needs.size;
}

static bool array_begin(struct charge *charge, const struct shape *shape)
{
	size_t bytes = state_active() ? shape_size(shape) : 0;
	size_t asked_bytes = bytes > 0 ? asked_size(shape) : 0;
	return charge_begin_here(charge, asked_bytes > bytes ? asked_bytes : bytes);
}

/* Remembers an array that was made; if it cannot be, destroys it. */
static CUresult finish(const struct charge *charge, CUresult result, CUarray *array)
{
	if (result == CUDA_SUCCESS && charge_keep(charge, TRACK_ARRAY, (uint64_t)(uintptr_t)*array))
		return result;
	charge_failed(charge, result);
	if (result != CUDA_SUCCESS)
		return result;
	(void)CALL(cuArrayDestroy, *array);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor)
{
	struct charge charge;
	if (descriptor == NULL)
		return CALL(cuArrayCreate, array, descriptor);
	if (!array_begin(&charge,
	                 &(struct shape){ descriptor->Width, descriptor->Height, 0,
	                                  descriptor->Format, descriptor->NumChannels, 1, 0 }))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return finish(&charge, CALL(cuArrayCreate, array, descriptor), array);
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
	struct charge charge;
	if (descriptor == NULL)
		return CALL(cuArrayCreate_v2, array, descriptor);
	if (!array_begin(&charge,
	                 &(struct shape){ descriptor->Width, descriptor->Height, 0,
	                                  descriptor->Format, descriptor->NumChannels, 1, 0 }))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return finish(&charge, CALL(cuArrayCreate_v2, array, descriptor), array);
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor)
{
	struct charge charge;
	if (descriptor == NULL)
		return CALL(cuArray3DCreate, array, descriptor);
	if (!array_begin(&charge, &(struct shape){ descriptor->Width, descriptor->Height,
	                                           descriptor->Depth, descriptor->Format,
	                                           descriptor->NumChannels, 1, descriptor->Flags }))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return finish(&charge, CALL(cuArray3DCreate, array, descriptor), array);
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	struct charge charge;
	if (descriptor == NULL)
		return CALL(cuArray3DCreate_v2, array, descriptor);
	if (!array_begin(&charge, &(struct shape){ descriptor->Width, descriptor->Height,
	                                           descriptor->Depth, descriptor->Format,
	                                           descriptor->NumChannels, 1, descriptor->Flags }))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return finish(&charge, CALL(cuArray3DCreate_v2, array, descriptor), array);
}

CUresult cuArrayDestroy(CUarray array)
{
	struct track_item item;
	bool known = charge_free_begin(TRACK_ARRAY, (uint64_t)(uintptr_t)array, &item);
	CUresult result = CALL(cuArrayDestroy, array);
	charge_free_end(known, &item, result == CUDA_SUCCESS);
	return result;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                unsigned int levels)
{
	struct charge charge;
	if (descriptor == NULL)
		return CALL(cuMipmappedArrayCreate, array, descriptor, levels);
	if (!array_begin(&charge,
	                 &(struct shape){ descriptor->Width, descriptor->Height, descriptor->Depth,
	                                  descriptor->Format, descriptor->NumChannels, levels,
	                                  descriptor->Flags }))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CALL(cuMipmappedArrayCreate, array, descriptor, levels);
	if (result == CUDA_SUCCESS &&
	    charge_keep(&charge, TRACK_MIPMAP, (uint64_t)(uintptr_t)*array))
		return result;
	charge_failed(&charge, result);
	if (result != CUDA_SUCCESS)
		return result;
	(void)CALL(cuMipmappedArrayDestroy, *array);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	struct track_item item;
	bool known = charge_free_begin(TRACK_MIPMAP, (uint64_t)(uintptr_t)array, &item);
	CUresult result = CALL(cuMipmappedArrayDestroy, array);
	charge_free_end(known, &item, result == CUDA_SUCCESS);
	return result;
}
