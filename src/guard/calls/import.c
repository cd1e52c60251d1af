/* import.c - memory of other processes and other interfaces, counted once in a task */
#include <stddef.h>

#include "guard/budget/budget.h"
#include "guard/budget/share.h"
#include "guard/calls/charge.h"
#include "guard/calls/device.h"
#include "guard/calls/entry.h"
#include "guard/calls/pool.h"
#include "guard/calls/state.h"

enum { CLASS_EXTERNAL = 2 };

/* Holds a share of memory that has come into this process. SHARE_NONE: charged like
 * any other, as there was no room for a share. SHARE_REFUSED is counted. */
static int import_hold(int gpu, uint64_t key, int64_t bytes, bool exact)
{
	const struct member *member = state_member();
	if (gpu == DEVICE_REFUSED || member == NULL)
		return SHARE_REFUSED;
	int share = share_import(member, key, gpu, bytes, exact);
	if (share == SHARE_REFUSED) {
		pool_reclaim(gpu);
		share = share_import(member, key, gpu, bytes, exact);
	}
	struct charge charge;
	if (share >= 0)
		charge_share_hold(share);
	else if (share == SHARE_NONE && !charge_begin(&charge, gpu, bytes))
		share = SHARE_REFUSED;
	else if (share == SHARE_REFUSED)
		budget_refuse(member, gpu, bytes);
	return share;
}

/* Remembers what has come in; if it cannot be, its charge goes back. */
static bool import_keep(enum track_kind kind, uint64_t key, int gpu, int64_t bytes, int share)
{
	struct track_item item = { .key = key,
		                   .bytes = bytes,
		                   .references = 1,
		                   .share = share,
		                   .kind = (uint8_t)kind,
		                   .gpu = (int8_t)gpu,
		                   .imported = 1 };
	bool kept = track_add(&item);
	if (kept)
		budget_import(state_member(), 1);
	item.imported = 0;
	if (!kept)
		charge_give(&item);
	return kept;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
	CUresult result = CALL(cuIpcGetMemHandle, handle, pointer);
	const struct member *member = state_member();
	CUdeviceptr base;
	size_t bytes;
	struct track_item item;
	if (result != CUDA_SUCCESS || member == NULL ||
	    CALL(cuMemGetAddressRange_v2, &base, &bytes, pointer) != CUDA_SUCCESS ||
	    !track_find(TRACK_POINTER, base, &item) || item.share != SHARE_NONE || item.owner != 0)
		return result;
	uint64_t key = charge_handle_key(handle, sizeof *handle);
	int share = share_export(member, key, item.gpu, item.bytes, true);
	if (share < 0)
		return result;
	charge_share_hold(share);
	if (!track_charge(TRACK_POINTER, base, SHARE_NONE, item.bytes, share))
		charge_unshare(share);
	return result;
}

/* The GPU that memory is on, which need not be the current one. */
static int import_gpu_of(CUdeviceptr pointer)
{
	int device = -1;
	uint64_t context;
	if (CALL(cuPointerGetAttribute, &device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) ==
	        CUDA_SUCCESS &&
	    device >= 0)
		return device_gpu(device);
	return device_current(&context);
}

/* Charges memory after its handle was opened. False if it exceeds the limit. */
static bool opened(CUdeviceptr pointer, const CUipcMemHandle *handle)
{
	struct track_item item;
	if (track_refer(TRACK_IMPORT, pointer, 1, &item) > 0)
		return true;
	CUdeviceptr base;
	size_t bytes = 0;
	int gpu = import_gpu_of(pointer);
	if (gpu == DEVICE_UNKNOWN ||
	    CALL(cuMemGetAddressRange_v2, &base, &bytes, pointer) != CUDA_SUCCESS)
		return true;
	int64_t size = charge_size(bytes);
	int share = import_hold(gpu, charge_handle_key(handle, sizeof *handle), size, true);
	return share != SHARE_REFUSED && import_keep(TRACK_IMPORT, pointer, gpu, size, share);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
	CUresult result = CALL(cuIpcOpenMemHandle, pointer, handle, flags);
	if (result != CUDA_SUCCESS || !state_active() || opened(*pointer, &handle))
		return result;
	(void)CALL(cuIpcCloseMemHandle, *pointer);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
	CUresult result = CALL(cuIpcOpenMemHandle_v2, pointer, handle, flags);
	if (result != CUDA_SUCCESS || !state_active() || opened(*pointer, &handle))
		return result;
	(void)CALL(cuIpcCloseMemHandle, *pointer);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer)
{
	struct track_item item;
	int64_t references = -1;
	if (state_active())
		references = track_refer(TRACK_IMPORT, pointer, -1, &item);
	CUresult result = CALL(cuIpcCloseMemHandle, pointer);
	if (references == 0) {
		item.references = 1;
		charge_free_end(true, &item, result == CUDA_SUCCESS);
	} else if (references > 0 && result != CUDA_SUCCESS)
		(void)track_refer(TRACK_IMPORT, pointer, 1, &item);
	return result;
}

CUresult cuImportExternalMemory(CUexternalMemory *memory,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *descriptor)
{
	uint64_t context;
	int gpu = descriptor != NULL ? device_current(&context) : DEVICE_UNKNOWN;
	if (gpu == DEVICE_UNKNOWN)
		return CALL(cuImportExternalMemory, memory, descriptor);
	int64_t bytes = descriptor->size > INT64_MAX ? INT64_MAX : (int64_t)descriptor->size;
	/* Nothing tells two handles of the same memory from handles of two memories of
	 * one size: in one process they count as two, in several as the same. */
	int share = import_hold(gpu, charge_class_key(CLASS_EXTERNAL, gpu, bytes), bytes, false);
	if (share == SHARE_REFUSED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CALL(cuImportExternalMemory, memory, descriptor);
	struct track_item item = { .bytes = bytes, .share = share, .gpu = (int8_t)gpu };
	if (result != CUDA_SUCCESS) {
		charge_give(&item);
		return result;
	}
	if (import_keep(TRACK_EXTERNAL, (uint64_t)(uintptr_t)*memory, gpu, bytes, share))
		return result;
	(void)CALL(cuDestroyExternalMemory, *memory);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
	struct track_item item;
	bool known = charge_free_begin(TRACK_EXTERNAL, (uint64_t)(uintptr_t)memory, &item);
	CUresult result = CALL(cuDestroyExternalMemory, memory);
	charge_free_end(known, &item, result == CUDA_SUCCESS);
	return result;
}
