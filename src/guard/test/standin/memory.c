/* memory.c - the stand-in's memory: pieces that are numbers */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

static struct piece *pieces[4096];
static uint64_t next_handle;
static _Atomic(int64_t) call_count;

void standin_count_call(void)
{
	atomic_fetch_add(&call_count, 1);
}

int64_t standin_calls(void)
{
	return atomic_load(&call_count);
}

static struct piece **bucket_of(uint64_t handle)
{
	return &pieces[handle >> 21 & 4095];
}

struct piece *standin_add(int kind, int gpu, int64_t bytes)
{
	if (gpu >= 0)
		standin_sweep_files();
	if (!standin_take(gpu, bytes))
		return NULL;
	struct piece *piece = calloc(1, sizeof *piece);
	/* Small enough for the first versions' 32 bits as long as a test is short; the
	 * addresses of large pieces do not overlap. */
	next_handle += UINT64_C(2) << 20;
	piece->handle = next_handle;
	next_handle += (uint64_t)bytes / (UINT64_C(2) << 20) * (UINT64_C(2) << 20);
	piece->kind = kind;
	piece->gpu = gpu;
	piece->bytes = bytes;
	piece->context = standin_current();
	struct piece **bucket = bucket_of(piece->handle);
	piece->next = *bucket;
	*bucket = piece;
	return piece;
}

void standin_forget_pieces(void)
{
	memset(pieces, 0, sizeof pieces);
}

struct piece *standin_find(int kind, uint64_t handle)
{
	struct piece *piece = *bucket_of(handle);
	while (piece != NULL && (piece->handle != handle || piece->kind != kind))
		piece = piece->next;
	return piece;
}

struct piece *standin_find_mapping(CUdeviceptr address)
{
	for (int i = 0; i < 4096; i++) {
		for (struct piece *piece = pieces[i]; piece != NULL; piece = piece->next) {
			if (piece->kind == PIECE_MAPPING && piece->address == address)
				return piece;
		}
	}
	return NULL;
}

void standin_remove(struct piece *piece)
{
	struct piece **at = bucket_of(piece->handle);
	while (*at != piece)
		at = &(*at)->next;
	*at = piece->next;
	standin_hide(piece, false);
	if (piece->pool != NULL)
		piece->pool->live_bytes -= piece->bytes;
	else
		(void)standin_take(piece->gpu, -piece->bytes);
	free(piece);
}

void standin_end_context(CUcontext context)
{
	for (int i = 0; i < 4096; i++) {
		for (struct piece *piece = pieces[i]; piece != NULL;) {
			struct piece *next = piece->next;
			bool ends = piece->kind == PIECE_MEMORY || piece->kind == PIECE_ARRAY ||
			            piece->kind == PIECE_MIPMAP;
			if (piece->context == context && ends)
				standin_remove(piece);
			piece = next;
		}
	}
	standin_shrink_pools();
}

/* Allocates on the current device. The handle, or 0 with the reason in `result`. */
static uint64_t standin_memory_allocate(int kind, int64_t bytes, CUresult *result)
{
	standin_count_call();
	*result = standin_current() == NULL ? CUDA_ERROR_INVALID_CONTEXT
	          : bytes <= 0              ? CUDA_ERROR_INVALID_VALUE
	                                    : CUDA_SUCCESS;
	if (*result != CUDA_SUCCESS)
		return 0;
	pthread_mutex_lock(&standin_mutex);
	struct piece *piece = standin_add(kind, standin_current_gpu(), bytes);
	uint64_t handle = piece != NULL ? piece->handle : 0;
	pthread_mutex_unlock(&standin_mutex);
	if (handle == 0)
		*result = CUDA_ERROR_OUT_OF_MEMORY;
	return handle;
}

static CUresult release(int kind, uint64_t handle)
{
	standin_count_call();
	pthread_mutex_lock(&standin_mutex);
	struct piece *piece = standin_find(kind, handle);
	if (piece != NULL)
		standin_remove(piece);
	pthread_mutex_unlock(&standin_mutex);
	return piece != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
	CUresult result;
	*pointer = standin_memory_allocate(PIECE_MEMORY, (int64_t)bytes, &result);
	return result;
}

CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes)
{
	CUresult result;
	*pointer = (CUdeviceptr_v1)standin_memory_allocate(PIECE_MEMORY, bytes, &result);
	return result;
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags)
{
	(void)flags;
	CUresult result = cuMemAlloc_v2(pointer, bytes);
	pthread_mutex_lock(&standin_mutex);
	if (result == CUDA_SUCCESS)
		standin_hide(standin_find(PIECE_MEMORY, *pointer), true);
	pthread_mutex_unlock(&standin_mutex);
	return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                            unsigned int element)
{
	(void)element;
	*pitch = (width + 511) / 512 * 512;
	return cuMemAlloc_v2(pointer, *pitch * height);
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width,
                         unsigned int height, unsigned int element)
{
	(void)element;
	*pitch = (width + 511) / 512 * 512;
	return cuMemAlloc(pointer, *pitch * height);
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	CUresult result = release(PIECE_MEMORY, pointer);
	pthread_mutex_lock(&standin_mutex);
	standin_shrink_pools();
	pthread_mutex_unlock(&standin_mutex);
	return result;
}

CUresult cuMemFree(CUdeviceptr_v1 pointer)
{
	return cuMemFree_v2(pointer);
}

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
	(void)flags;
	*pointer = malloc(bytes);
	return CUDA_SUCCESS;
}

CUresult cuMemsetD8_v2(CUdeviceptr pointer, unsigned char value, size_t bytes)
{
	(void)pointer, (void)value, (void)bytes;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)
{
	pthread_mutex_lock(&standin_mutex);
	struct piece *piece = standin_find(PIECE_MEMORY, pointer);
	if (piece == NULL)
		piece = standin_find(PIECE_IMPORT, pointer);
	if (piece != NULL) {
		*base = piece->handle;
		/* Imports take nothing: their size is kept elsewhere. */
		*bytes =
		    (size_t)(piece->kind == PIECE_IMPORT ? (int64_t)piece->other : piece->bytes);
	}
	pthread_mutex_unlock(&standin_mutex);
	return piece != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer)
{
	CUdevice device;
	if (attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED) {
		pthread_mutex_lock(&standin_mutex);
		const struct piece *piece = standin_find(PIECE_MEMORY, pointer);
		int managed = piece != NULL && piece->hidden;
		pthread_mutex_unlock(&standin_mutex);
		memcpy(value, &managed, sizeof managed);
		return CUDA_SUCCESS;
	}
	if (attribute != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ||
	    cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(value, &device, sizeof device);
	return CUDA_SUCCESS;
}

/* In blocks of 64 bytes by 8 rows. Four channels of 32 bits at most; 8 bit formats as they are. */
static int64_t blocks_of(size_t width, size_t height, size_t depth, int format,
                         unsigned int channels)
{
	size_t row = width * (format == 1 ? 1 : 4) * channels;
	row = (row + 63) / 64 * 64;
	height = height > 1 ? (height + 7) / 8 * 8 : 1;
	return (int64_t)(row * height * (depth > 0 ? depth : 1));
}

static int64_t array_bytes(size_t width, size_t height, size_t depth, int format,
                           unsigned int channels, unsigned int flags)
{
	if ((flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0)
		return 1;
	return blocks_of(width, height, depth, format, channels);
}

/* Of an array whose memory is to be mapped later, what it will take. */
static CUresult tell_needs(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, int kind,
                           const void *array)
{
	pthread_mutex_lock(&standin_mutex);
	const struct piece *piece = standin_find(kind, (uint64_t)(uintptr_t)array);
	CUresult result =
	    piece != NULL && piece->other > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*requirements = (CUDA_ARRAY_MEMORY_REQUIREMENTS){ .size = (size_t)piece->other };
	pthread_mutex_unlock(&standin_mutex);
	return result;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUarray array,
                                      CUdevice device)
{
	(void)device;
	return tell_needs(requirements, PIECE_ARRAY, array);
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements,
                                               CUmipmappedArray array, CUdevice device)
{
	(void)device;
	return tell_needs(requirements, PIECE_MIPMAP, array);
}

static void keep_needs(int kind, const void *array, unsigned int flags, int64_t bytes)
{
	pthread_mutex_lock(&standin_mutex);
	struct piece *piece = standin_find(kind, (uint64_t)(uintptr_t)array);
	if (piece != NULL && (flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0)
		piece->other = (uint64_t)bytes;
	pthread_mutex_unlock(&standin_mutex);
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	CUresult result;
	*array = (CUarray)(uintptr_t)standin_memory_allocate(
	    PIECE_ARRAY,
	    array_bytes(descriptor->Width, descriptor->Height, descriptor->Depth,
	                descriptor->Format, descriptor->NumChannels, descriptor->Flags),
	    &result);
	keep_needs(PIECE_ARRAY, *array, descriptor->Flags,
	           blocks_of(descriptor->Width, descriptor->Height, descriptor->Depth,
	                     descriptor->Format, descriptor->NumChannels));
	return result;
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor)
{
	return cuArray3DCreate_v2(
	    array, &(CUDA_ARRAY3D_DESCRIPTOR){ descriptor->Width, descriptor->Height,
	                                       descriptor->Depth, descriptor->Format,
	                                       descriptor->NumChannels, descriptor->Flags });
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
	return cuArray3DCreate_v2(
	    array, &(CUDA_ARRAY3D_DESCRIPTOR){ descriptor->Width, descriptor->Height, 0,
	                                       descriptor->Format, descriptor->NumChannels, 0 });
}

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor)
{
	return cuArray3DCreate_v2(
	    array, &(CUDA_ARRAY3D_DESCRIPTOR){ descriptor->Width, descriptor->Height, 0,
	                                       descriptor->Format, descriptor->NumChannels, 0 });
}

CUresult cuArrayDestroy(CUarray array)
{
	return release(PIECE_ARRAY, (uint64_t)(uintptr_t)array);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                unsigned int levels)
{
	int64_t bytes = 0;
	int64_t needs = 0;
	for (unsigned int level = 0; level < levels; level++)
		needs += blocks_of(descriptor->Width >> level, descriptor->Height >> level,
		                   descriptor->Depth >> level, descriptor->Format,
		                   descriptor->NumChannels);
	for (unsigned int level = 0; level < levels; level++)
		bytes += array_bytes(descriptor->Width >> level, descriptor->Height >> level,
		                     descriptor->Depth >> level, descriptor->Format,
		                     descriptor->NumChannels, descriptor->Flags);
	CUresult result;
	*array = (CUmipmappedArray)(uintptr_t)standin_memory_allocate(PIECE_MIPMAP, bytes, &result);
	keep_needs(PIECE_MIPMAP, *array, descriptor->Flags, needs);
	return result;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	return release(PIECE_MIPMAP, (uint64_t)(uintptr_t)array);
}

/* A handle says who made it, and what for. */
struct ipc {
	uint64_t pid, pointer, bytes;
};

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
	CUdeviceptr base;
	size_t bytes;
	if (cuMemGetAddressRange_v2(&base, &bytes, pointer) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_VALUE;
	struct ipc ipc = { (uint64_t)getpid(), base, bytes };
	memset(handle, 0, sizeof *handle);
	memcpy(handle, &ipc, sizeof ipc);
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
	(void)flags;
	struct ipc ipc;
	memcpy(&ipc, &handle, sizeof ipc);
	standin_count_call();
	if (standin_current() == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&standin_mutex);
	struct piece *piece = standin_add(PIECE_IMPORT, standin_current_gpu(), 0);
	piece->other = ipc.bytes;
	*pointer = piece->handle;
	pthread_mutex_unlock(&standin_mutex);
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
	return cuIpcOpenMemHandle_v2(pointer, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer)
{
	return release(PIECE_IMPORT, pointer);
}

CUresult cuImportExternalMemory(CUexternalMemory *memory,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *descriptor)
{
	CUresult result;
	*memory = (CUexternalMemory)(uintptr_t)standin_memory_allocate(
	    PIECE_EXTERNAL, (int64_t)descriptor->size, &result);
	return result;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
	return release(PIECE_EXTERNAL, (uint64_t)(uintptr_t)memory);
}
