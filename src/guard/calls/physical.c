/* physical.c - physical memory by handles, which programs map where they like
 *
 * The memory is there as long as a handle or a mapping refers to it, so that is what
 * is counted: an object (track.h), to which handles and mappings refer. */
#include <stdatomic.h>
#include <string.h>

#include "guard/budget/budget.h"
#include "guard/budget/share.h"
#include "guard/calls/charge.h"
#include "guard/calls/device.h"
#include "guard/calls/entry.h"
#include "guard/calls/pool.h"
#include "guard/calls/stash.h"
#include "guard/calls/state.h"

enum {
	SHARE_PENDING = -3, /* imported: charged when it is mapped, which tells its size */
	CLASS_PHYSICAL = 1,
};

static _Atomic(uint64_t) next_object = 1;

static int location_gpu(CUmemLocation location)
{
	bool host = location.type != CU_MEM_LOCATION_TYPE_DEVICE &&
	            location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	return host ? DEVICE_UNKNOWN : device_gpu(location.id);
}

/* Lets go of an object; with the last reference its charge goes back, unless a file descriptor
 * still refers to the memory. */
static void drop_object(uint64_t object)
{
	struct track_item item;
	if (track_refer(TRACK_OBJECT, object, -1, &item) != 0)
		return;
	if (item.imported)
		budget_import(state_member(), -1);
	item.imported = 0;
	if (item.share != SHARE_PENDING && !stash_keep(&item))
		charge_give(&item);
}

/* Remembers a handle and the object behind it. False if there is no memory for that. */
static bool add_handle(CUmemGenericAllocationHandle handle, const struct charge *charge, int share,
                       uint64_t share_key, bool imported)
{
	uint64_t object = atomic_fetch_add(&next_object, 1);
	struct track_item item = { .key = object,
		                   .bytes = charge->bytes,
		                   .owner = share_key,
		                   .references = 1,
		                   .share = share,
		                   .kind = TRACK_OBJECT,
		                   .gpu = (int8_t)charge->gpu,
		                   .imported = imported };
	if (!track_add(&item))
		return false;
	struct track_item by_handle = { .key = handle,
		                        .owner = object,
		                        .references = 1,
		                        .share = SHARE_NONE,
		                        .kind = TRACK_HANDLE,
		                        .gpu = -1 };
	if (track_add(&by_handle)) {
		if (imported)
			budget_import(state_member(), 1);
		return true;
	}
	(void)track_remove(TRACK_OBJECT, object, &item);
	return false;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
	struct charge charge = { .gpu = DEVICE_UNKNOWN };
	int64_t size = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
	if (state_active() && properties != NULL &&
	    !charge_begin(&charge, location_gpu(properties->location), size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CALL(cuMemCreate, handle, bytes, properties, flags);
	if (result != CUDA_SUCCESS) {
		charge_failed(&charge, result);
		return result;
	}
	if (!state_active() || add_handle(*handle, &charge, SHARE_NONE, 0, false))
		return result;
	charge_cancel(&charge);
	(void)CALL(cuMemRelease, *handle);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct track_item item;
	int64_t references = -1;
	if (state_active())
		references = track_refer(TRACK_HANDLE, handle, -1, &item);
	CUresult result = CALL(cuMemRelease, handle);
	stash_sweep();
	if (references < 0)
		return result;
	if (result == CUDA_SUCCESS)
		drop_object(item.owner);
	else if (references > 0)
		(void)track_refer(TRACK_HANDLE, handle, 1, &item);
	else {
		item.references = 1;
		(void)track_add(&item);
	}
	return result;
}

/* Charges imported memory, now that its size is known. False if it exceeds the limit. */
static bool charge_import(const struct track_item *object, int64_t bytes)
{
	const struct member *member = state_member();
	if (member == NULL)
		return false;
	uint64_t key = object->owner != 0 ? object->owner
	                                  : charge_class_key(CLASS_PHYSICAL, object->gpu, bytes);
	bool exact = object->owner != 0;
	int share = share_import(member, key, object->gpu, bytes, exact);
	if (share == SHARE_REFUSED) {
		pool_reclaim(object->gpu);
		share = share_import(member, key, object->gpu, bytes, exact);
	}
	if (share == SHARE_REFUSED) {
		budget_refuse(member, object->gpu, bytes);
		return false;
	}
	struct charge charge;
	if (share >= 0)
		charge_share_hold(share);
	else if (!charge_begin(&charge, object->gpu, bytes))
		return false;
	if (!track_charge(TRACK_OBJECT, object->key, SHARE_PENDING, bytes, share)) {
		struct track_item twice = { .bytes = bytes, .share = share, .gpu = object->gpu };
		charge_give(&twice);
	}
	return true;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct track_item by_handle;
	struct track_item object;
	bool known = state_active() && track_find(TRACK_HANDLE, handle, &by_handle) &&
	             track_refer(TRACK_OBJECT, by_handle.owner, 1, &object) > 0;
	if (!known)
		return CALL(cuMemMap, address, bytes, offset, handle, flags);
	struct track_item mapping = { .key = address,
		                      .bytes = (int64_t)bytes,
		                      .owner = by_handle.owner,
		                      .references = 1,
		                      .share = SHARE_NONE,
		                      .kind = TRACK_MAPPING,
		                      .gpu = -1 };
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	if ((object.share != SHARE_PENDING || charge_import(&object, (int64_t)(offset + bytes))) &&
	    track_add(&mapping)) {
		result = CALL(cuMemMap, address, bytes, offset, handle, flags);
		if (result != CUDA_SUCCESS)
			(void)track_remove(TRACK_MAPPING, address, &mapping);
	}
	if (result != CUDA_SUCCESS)
		drop_object(by_handle.owner);
	return result;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	CUresult result = CALL(cuMemUnmap, address, bytes);
	if (result != CUDA_SUCCESS || !state_active())
		return result;
	/* A range may be of several mappings, one after the other. */
	struct track_item mapping;
	CUdeviceptr end = address + bytes;
	while (address < end && track_remove(TRACK_MAPPING, address, &mapping)) {
		drop_object(mapping.owner);
		address += (CUdeviceptr)mapping.bytes;
	}
	return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
	CUresult result = CALL(cuMemRetainAllocationHandle, handle, address);
	struct track_item mapping;
	struct track_item item;
	if (result != CUDA_SUCCESS || !state_active() ||
	    !track_find_mapping((uint64_t)(uintptr_t)address, &mapping) ||
	    track_refer(TRACK_OBJECT, mapping.owner, 1, &item) < 0)
		return result;
	if (track_refer(TRACK_HANDLE, *handle, 1, &item) > 0)
		return result;
	item = (struct track_item){ .key = *handle,
		                    .owner = mapping.owner,
		                    .references = 1,
		                    .share = SHARE_NONE,
		                    .kind = TRACK_HANDLE,
		                    .gpu = -1 };
	if (!track_add(&item))
		drop_object(mapping.owner);
	return result;
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      int type, unsigned long long flags)
{
	CUresult result = CALL(cuMemExportToShareableHandle, shareable, handle, type, flags);
	struct track_item by_handle;
	struct track_item object;
	const struct member *member = state_member();
	if (result != CUDA_SUCCESS || member == NULL ||
	    !track_find(TRACK_HANDLE, handle, &by_handle) ||
	    !track_find(TRACK_OBJECT, by_handle.owner, &object) || object.gpu < 0)
		return result;
	/* From now on the memory lives as long as the descriptor, in whatever process that is. */
	int file;
	memcpy(&file, shareable, sizeof file);
	if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		stash_watch(object.key, file);
	if (object.share != SHARE_NONE)
		return result;
	/* A file descriptor says nothing of what is behind it. */
	uint64_t key = type == CU_MEM_HANDLE_TYPE_FABRIC
	                   ? charge_handle_key(shareable, 64)
	                   : charge_class_key(CLASS_PHYSICAL, object.gpu, object.bytes);
	int share = share_export(member, key, object.gpu, object.bytes, false);
	if (share < 0)
		return result;
	charge_share_hold(share);
	if (!track_charge(TRACK_OBJECT, object.key, SHARE_NONE, object.bytes, share))
		charge_unshare(share);
	return result;
}

/* The size of imported memory, found by mapping more and more of it into a range that nothing
 * else uses; 0 where that cannot be. */
static int64_t imported_size(CUmemGenericAllocationHandle handle)
{
	const int64_t unit_bytes = (int64_t)2 << 20;
	const int64_t range_bytes = (int64_t)1 << 40;
	CUdeviceptr range;
	if (CALL(cuMemAddressReserve, &range, (size_t)range_bytes, 0, 0, 0) != CUDA_SUCCESS)
		return 0;
	/* This number of units can be mapped, and that cannot. */
	int64_t can = 0;
	int64_t cannot = range_bytes / unit_bytes;
	for (int64_t units = 1; can + 1 < cannot;
	     units = can * 2 < cannot && cannot * unit_bytes == range_bytes ? can * 2
	                                                                    : (can + cannot) / 2) {
		size_t bytes = (size_t)(units * unit_bytes);
		if (CALL(cuMemMap, range, bytes, 0, handle, 0) == CUDA_SUCCESS) {
			(void)CALL(cuMemUnmap, range, bytes);
			can = units;
		} else {
			cannot = units;
			if (can == 0)
				break;
		}
	}
	(void)CALL(cuMemAddressFree, range, (size_t)range_bytes);
	return can * unit_bytes < range_bytes / 2 ? can * unit_bytes : 0;
}

/* Charges memory that was imported, if its size can be known before it is mapped. */
static bool charge_imported(CUmemGenericAllocationHandle handle)
{
	struct track_item by_handle;
	struct track_item object;
	int64_t bytes = imported_size(handle);
	return bytes == 0 || !track_find(TRACK_HANDLE, handle, &by_handle) ||
	       !track_find(TRACK_OBJECT, by_handle.owner, &object) ||
	       object.share != SHARE_PENDING || charge_import(&object, bytes);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        int type)
{
	CUresult result = CALL(cuMemImportFromShareableHandle, handle, shareable, type);
	CUmemAllocationProp properties;
	if (result != CUDA_SUCCESS || !state_active() ||
	    CALL(cuMemGetAllocationPropertiesFromHandle, &properties, *handle) != CUDA_SUCCESS)
		return result;
	struct charge charge = { .gpu = location_gpu(properties.location) };
	uint64_t key = type == CU_MEM_HANDLE_TYPE_FABRIC ? charge_handle_key(shareable, 64) : 0;
	struct track_item item;
	if (track_refer(TRACK_HANDLE, *handle, 1, &item) > 0) {
		(void)track_refer(TRACK_OBJECT, item.owner, 1, &item);
		return result;
	}
	if (charge.gpu != DEVICE_REFUSED &&
	    add_handle(*handle, &charge, charge.gpu < 0 ? SHARE_NONE : SHARE_PENDING, key, true)) {
		if (charge.gpu < 0 || charge_imported(*handle))
			return result;
		budget_import(state_member(), -1);
		(void)track_remove(TRACK_HANDLE, *handle, &item);
		(void)track_remove(TRACK_OBJECT, item.owner, &item);
	}
	(void)CALL(cuMemRelease, *handle);
	return CUDA_ERROR_OUT_OF_MEMORY;
}
