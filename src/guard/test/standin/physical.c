/* physical.c - the stand-in's physical memory and mappings */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
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

/* NVML gives a process no memory that only files hold. */
static CUresult refer(uint64_t handle, int change)
{
	struct piece *piece = standin_find(PIECE_PHYSICAL, handle);
	if (piece == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	piece->references += change;
	if (piece->references == 0)
		standin_remove(piece);
	else
		standin_hide(piece, piece->references == piece->files);
	return CUDA_SUCCESS;
}

/* The files that were exported and are open somewhere: a set that holds none of them itself. */
static int file_set = -1;
static uint64_t exported[64];
static int exported_count;

static void watch_file(int file, uint64_t handle)
{
	struct epoll_event event = { .data.u64 = handle };
	if (file_set < 0)
		file_set = epoll_create1(EPOLL_CLOEXEC);
	if (exported_count == 64 || epoll_ctl(file_set, EPOLL_CTL_ADD, file, &event) != 0)
		return;
	struct piece *piece = standin_find(PIECE_PHYSICAL, handle);
	exported[exported_count++] = handle;
	piece->files++;
	piece->references++;
}

static int count_open(uint64_t handle)
{
	char path[64];
	char line[256];
	int count = 0;
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", file_set);
	FILE *list = fopen(path, "r");
	while (list != NULL && fgets(line, sizeof line, list) != NULL) {
		const char *data = strstr(line, "data:");
		count += data != NULL && strtoull(data + 5, NULL, 16) == handle;
	}
	if (list != NULL)
		fclose(list);
	return count;
}

void standin_sweep_files(void)
{
	for (int i = exported_count - 1; i >= 0; i--) {
		struct piece *piece = standin_find(PIECE_PHYSICAL, exported[i]);
		if (piece != NULL && piece->files <= count_open(exported[i]))
			continue;
		if (piece != NULL) {
			piece->files--;
			(void)refer(exported[i], -1);
		}
		exported[i] = exported[--exported_count];
	}
}

void standin_forget_files(void)
{
	exported_count = 0;
	file_set = -1;
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
	(void)flags;
	pthread_mutex_lock(&standin_mutex);
	struct piece *piece = standin_find(PIECE_PHYSICAL, handle);
	CUresult result = piece == NULL || (int64_t)(offset + bytes) > piece->bytes
	                      ? CUDA_ERROR_INVALID_VALUE
	                      : refer(handle, 1);
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
	struct shareable it = { 0 };
	if (piece != NULL)
		it =
		    (struct shareable){ piece->bytes, piece->location, (int64_t)handle + getpid() };
	pthread_mutex_unlock(&standin_mutex);
	if (piece == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
		memset(shareable, 0, 64);
		memcpy(shareable, &it, sizeof it);
		return CUDA_SUCCESS;
	}
	/* A file that can be looked at again and again, and that can be in a set. */
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 ||
	    write(ends[1], &it, sizeof it) != sizeof it)
		return CUDA_ERROR_INVALID_VALUE;
	close(ends[1]);
	pthread_mutex_lock(&standin_mutex);
	watch_file(ends[0], handle);
	pthread_mutex_unlock(&standin_mutex);
	memcpy(shareable, &ends[0], sizeof ends[0]);
	return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        int type)
{
	struct shareable imported;
	standin_count_call();
	if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		memcpy(&imported, shareable, sizeof imported);
	else if (recv((int)(intptr_t)shareable, &imported, sizeof imported, MSG_PEEK) !=
	         sizeof imported)
		return CUDA_ERROR_INVALID_VALUE;
	*handle = create(imported.bytes, imported.location, false);
	return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr at,
                             unsigned long long flags)
{
	static _Atomic(CUdeviceptr) next = UINT64_C(0x100000000000);
	(void)alignment, (void)at, (void)flags;
	*address = atomic_fetch_add(&next, bytes);
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
	(void)address, (void)bytes;
	return CUDA_SUCCESS;
}
