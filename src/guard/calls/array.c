/* array.c - arrays and mipmapped arrays, whose size follows from their shape */
#include "guard/calls/charge.h"
#include "guard/calls/entry.h"

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

static size_t shape_size(const struct shape *shape)
{
	/* Sparse arrays have no memory until some is mapped, by handles. */
	if ((shape->flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0)
		return 0;
	size_t total = 0;
	size_t element = channel_bits(shape->format) / 8 * at_least_one(shape->channels);
	for (unsigned int level = 0; level < shape->levels && level < 32; level++) {
		size_t bytes = multiply(at_least_one(shape->width >> level), element);
		bytes = multiply(bytes, at_least_one(shape->height >> level));
		bytes = multiply(bytes, at_least_one(shape->depth >> level));
		if (__builtin_add_overflow(total, bytes, &total))
			return SIZE_MAX;
	}
	return total;
}

static bool array_begin(struct charge *charge, const struct shape *shape)
{
	return charge_begin_here(charge, shape_size(shape));
}

/* Remembers an array that was made; if it cannot be, destroys it. */
static CUresult finish(const struct charge *charge, CUresult result, CUarray *array)
{
	if (result == CUDA_SUCCESS && charge_keep(charge, TRACK_ARRAY, (uint64_t)(uintptr_t)*array))
		return result;
	charge_cancel(charge);
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
	charge_cancel(&charge);
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
