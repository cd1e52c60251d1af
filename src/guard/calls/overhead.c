/* overhead.c - what contexts, modules and libraries take beside allocations */
#include "guard/calls/overhead.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "guard/budget/budget.h"
#include "guard/budget/mutex.h"
#include "guard/budget/system.h"
#include "guard/budget/uuid.h"
#include "guard/calls/device.h"
#include "guard/calls/entry.h"
#include "guard/calls/state.h"
#include "guard/calls/symbol.h"

enum {
	LOOK_EVERY_MS = 2000,
	FAILED_LOOK_AGAIN_MS = 60000,
	PROCESSES_MAX = 256, /* on one GPU */
};

static struct {
	struct mutex mutex;
	_Atomic(int64_t) look_at_ms; /* when to measure next */
	_Atomic(int32_t) contexts[SEGMENT_GPUS_MAX];
	_Atomic(int64_t) floor_bytes[SEGMENT_GPUS_MAX]; /* what the contexts alone took */
	bool started;                                   /* NVML, or found that it cannot be */
	bool usable;
} overhead;

/* NVML is part of the driver; who does not use it has not loaded it. */
static bool start_nvml(void)
{
	if (entry_real(ENTRY_nvmlInit_v2) == NULL) {
		void *address = symbol_find("libc.so.6", "dlopen", NULL);
		if (address == NULL)
			address = symbol_find("libdl.so.2", "dlopen", NULL);
		void *(*open_library)(const char *, int);
		memcpy(&open_library, &address, sizeof open_library);
		if (open_library == NULL ||
		    open_library("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL) == NULL)
			return false;
	}
	return REAL(nvmlInit_v2) != NULL && REAL(nvmlInit_v2)() == NVML_SUCCESS &&
	       REAL(nvmlDeviceGetHandleByUUID) != NULL &&
	       REAL(nvmlDeviceGetComputeRunningProcesses_v3) != NULL;
}

static bool find_device(const uint8_t uuid[16], nvmlDevice_t *device)
{
	char text[UUID_TEXT_MAX];
	uuid_format(uuid, "GPU-", text);
	if (REAL(nvmlDeviceGetHandleByUUID)(text, device) == NVML_SUCCESS)
		return true;
	uuid_format(uuid, "MIG-", text);
	return REAL(nvmlDeviceGetHandleByUUID)(text, device) == NVML_SUCCESS;
}

/* What this process uses on a GPU in all; -1 if NVML does not say. */
static int64_t used_bytes(const struct member *member, int gpu)
{
	nvmlDevice_t device;
	nvmlProcessInfo_t processes[PROCESSES_MAX];
	unsigned int count = PROCESSES_MAX;
	if (!find_device(member->segment->gpus[gpu].uuid, &device) ||
	    REAL(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, processes) !=
	        NVML_SUCCESS)
		return -1;
	for (unsigned int i = 0; i < count && i < PROCESSES_MAX; i++) {
		if (processes[i].pid == process_owner_pid(member->identity.owner) &&
		    processes[i].usedGpuMemory <= INT64_MAX)
			return (int64_t)processes[i].usedGpuMemory;
	}
	return -1;
}

/* Measures one GPU; false if that cannot be done. */
static bool overhead_measure(const struct member *member, int gpu, bool first)
{
	if (member->identity.namespace_id != PROCESS_FIRST_NAMESPACE)
		return false;
	if (!overhead.started) {
		overhead.started = true;
		overhead.usable = start_nvml();
	}
	const _Atomic(int64_t) *charged =
	    &member->segment->processes[member->place].charged_bytes[gpu];
	/* Other threads allocate and free meanwhile. The larger of what was charged before
	 * and after never takes an allocation for overhead. */
	int64_t charged_bytes = segment_get(charged);
	int64_t bytes = overhead.usable ? used_bytes(member, gpu) : -1;
	if (bytes < 0)
		return false;
	if (segment_get(charged) > charged_bytes)
		charged_bytes = segment_get(charged);
	bytes -= charged_bytes;
	int64_t floor_bytes = segment_get(&overhead.floor_bytes[gpu]);
	/* Managed memory is charged in full and need not be on the GPU: that must not
	 * hide the context. */
	if (bytes < floor_bytes)
		bytes = floor_bytes;
	if (first) {
		segment_set(&overhead.floor_bytes[gpu], bytes);
		if (bytes > segment_get(&member->segment->gpus[gpu].context_bytes))
			segment_set(&member->segment->gpus[gpu].context_bytes, bytes);
	}
	budget_measure(member, member->place, gpu, bytes);
	return true;
}

bool overhead_expect(CUdevice device)
{
	int gpu = device_gpu(device);
	if (gpu == DEVICE_UNKNOWN)
		return true;
	const struct member *member = state_member();
	if (gpu == DEVICE_REFUSED || member == NULL)
		return false;
	bool fits = budget_expect_context(member, gpu);
	if (!fits)
		budget_refuse(member, gpu, segment_get(&member->segment->gpus[gpu].context_bytes));
	return fits;
}

void overhead_context_made(CUdevice device)
{
	int gpu = device_gpu(device);
	const struct member *member = state_member();
	if (gpu < 0 || member == NULL)
		return;
	bool first = atomic_fetch_add(&overhead.contexts[gpu], 1) == 0;
	mutex_lock(&overhead.mutex);
	(void)overhead_measure(member, gpu, first);
	mutex_unlock(&overhead.mutex);
	segment_set(&overhead.look_at_ms, system_now_ms() + LOOK_EVERY_MS);
}

void overhead_context_ended(CUdevice device)
{
	int gpu = device_gpu(device);
	const struct member *member = state_member();
	if (gpu < 0 || member == NULL)
		return;
	if (atomic_load(&overhead.contexts[gpu]) > 0 &&
	    atomic_fetch_sub(&overhead.contexts[gpu], 1) > 1) {
		segment_set(&overhead.look_at_ms, 0);
		return;
	}
	segment_set(&overhead.floor_bytes[gpu], 0);
	budget_measure(member, member->place, gpu, 0);
}

void overhead_look(const struct member *member)
{
	int64_t now_ms = system_now_ms();
	if (now_ms < segment_get(&overhead.look_at_ms))
		return;
	segment_set(&overhead.look_at_ms, now_ms + LOOK_EVERY_MS);
	bool measured = false;
	mutex_lock(&overhead.mutex);
	for (int gpu = 0; gpu < SEGMENT_GPUS_MAX; gpu++) {
		if (atomic_load(&overhead.contexts[gpu]) > 0)
			measured |= overhead_measure(member, gpu, false);
	}
	mutex_unlock(&overhead.mutex);
	if (!measured)
		segment_set(&overhead.look_at_ms, now_ms + FAILED_LOOK_AGAIN_MS);
}

void overhead_reset(void)
{
	atomic_store(&overhead.mutex.word, 0);
	segment_set(&overhead.look_at_ms, 0);
	for (int gpu = 0; gpu < SEGMENT_GPUS_MAX; gpu++) {
		atomic_store(&overhead.contexts[gpu], 0);
		segment_set(&overhead.floor_bytes[gpu], 0);
	}
	overhead.started = false;
	overhead.usable = false;
}
