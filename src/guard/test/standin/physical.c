/* physical.c - the stand-in's physical memory and mappings */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

static CUmemGenericAllocationHandle create(int64_t bytes, CUmemLocation location, bool counts)
{
	int gpu = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? standin_gpu(location.id) : -1;
	pthread_mutex_lock(&standin_mutex);
	struct piece *piece = standin_add(PIECE_PHYSICAL, counts ? gpu : -1, bytes);
	CUmemGenericAllocationHandle handle = 0;
	if (piece != NULL) {
		piece->references = 1;
		piece->location = location;
		handle = piece->handle;
	}
	pthread_mutex_unlock(&standin_mutex);
	return handle;
}

static CUresult refer(uint64_t handle, int change)
{
	struct piece *piece = standin_find(PIECE_PHYSICAL, handle);
	if (piece == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	piece->references += change;
	if (piece->references == 0)
		standin_remove(piece);
	return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
	(void)flags;
	standin_count_call();
	*handle = create((int64_t)bytes, properties->location, true);
	return *handle != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	pthread_mutex_lock(&standin_mutex);
	CUresult result = refer(handle, -1);
	pthread_mutex_unlock(&standin_mutex);
	return result;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	(void)offset, (void)flags;
	pthread_mutex_lock(&standin_mutex);
	CUresult result = refer(handle, 1);
	if (result == CUDA_SUCCESS) {
		struct piece *mapping = standin_add(PIECE_MAPPING, -1, (int64_t)bytes);
		mapping->other = handle;
		mapping->address = address;
	}
	pthread_mutex_unlock(&standin_mutex);
	return result;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	CUdeviceptr end = address + bytes;
	pthread_mutex_lock(&standin_mutex);
	CUresult result = CUDA_SUCCESS;
	while (address < end && result == CUDA_SUCCESS) {
		struct piece *mapping = standin_find_mapping(address);
		if (mapping == NULL) {
			result = CUDA_ERROR_INVALID_VALUE;
			break;
		}
		result = refer(mapping->other, -1);
		address += (CUdeviceptr)mapping->bytes;
		standin_remove(mapping);
	}
	pthread_mutex_unlock(&standin_mutex);
	return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
	pthread_mutex_lock(&standin_mutex);
	struct piece *mapping = standin_find_mapping((CUdeviceptr)(uintptr_t)address);
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	if (mapping != NULL) {
		*handle = mapping->other;
		result = refer(mapping->other, 1);
	}
	pthread_mutex_unlock(&standin_mutex);
	return result;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                CUmemGenericAllocationHandle handle)
{
	pthread_mutex_lock(&standin_mutex);
	struct piece *piece = standin_find(PIECE_PHYSICAL, handle);
	if (piece != NULL)
		*properties = (CUmemAllocationProp){ .type = 1, .location = piece->location };
	pthread_mutex_unlock(&standin_mutex);
	return piece != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* What a file descriptor, or the bytes of a fabric handle, stand for. */
struct shareable {
	int64_t bytes;
	CUmemLocation location;
	int64_t pid;
};

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      int type, unsigned long long flags)
{
	(void)flags;
	pthread_mutex_lock(&standin_mutex);
	struct piece *piece = standin_find(PIECE_PHYSICAL, handle);
	struct shareable exported = { 0 };
	if (piece != NULL)
		exported =
		    (struct shareable){ piece->bytes, piece->location, (int64_t)handle + getpid() };
	pthread_mutex_unlock(&standin_mutex);
	if (piece == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
		memset(shareable, 0, 64);
		memcpy(shareable, &exported, sizeof exported);
		return CUDA_SUCCESS;
	}
	int file = memfd_create("shareable", 0);
	if (file < 0 || write(file, &exported, sizeof exported) != sizeof exported)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(shareable, &file, sizeof file);
	return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        int type)
{
	struct shareable imported;
	standin_count_call();
	if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		memcpy(&imported, shareable, sizeof imported);
	else if (pread((int)(intptr_t)shareable, &imported, sizeof imported, 0) != sizeof imported)
		return CUDA_ERROR_INVALID_VALUE;
	*handle = create(imported.bytes, imported.location, false);
	return CUDA_SUCCESS;
}
