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
#include "guard/calls/kernel.h"
#include "guard/calls/stash.h"
#include "guard/calls/state.h"
#include "guard/calls/symbol.h"

enum {
	LOOK_EVERY_MS = 2000,
	FAILED_LOOK_AGAIN_MS = 60000,
	PROCESSES_MAX = 256, /* on one GPU */
};

uint64_t overhead_namespace = PROCESS_FIRST_NAMESPACE;

/* So much more is a reason to look sooner. */
/* The driver cuts pages into pieces up to that size, and keeps a page for the last of them. */
#define SMALL_BYTES ((int64_t)1 << 20)
#define GROWTH_BYTES ((int64_t)1 << 30)

static struct {
	struct mutex mutex;
	_Atomic(int64_t) look_at_ms; /* when to measure next */
	_Atomic(int32_t) contexts[SEGMENT_GPUS_MAX];
	_Atomic(int64_t) floor_bytes[SEGMENT_GPUS_MAX]; /* what the contexts alone took */
	_Atomic(int64_t) promised_bytes[SEGMENT_GPUS_MAX];
	_Atomic(int64_t) grown_bytes; /* charged since the last look */
	bool started;                 /* NVML, or found that it cannot be */
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
	if (member->identity.namespace_id != overhead_namespace)
		return false;
	if (!overhead.started) {
		overhead.started = true;
		overhead.usable = start_nvml();
	}
	const struct segment_process *process = &member->segment->processes[member->place];
	/* Other threads allocate and free meanwhile. The larger of what was charged before
	 * and after never takes an allocation for overhead. */
	int64_t charged_bytes = budget_visible(process, gpu);
	int64_t bytes = overhead.usable ? used_bytes(member, gpu) : -1;
	if (bytes < 0)
		return false;
	int64_t later_bytes = budget_visible(process, gpu);
	bytes -= later_bytes > charged_bytes ? later_bytes : charged_bytes;
	/* What is charged and not taken yet must not hide the context. */
	int64_t floor_bytes =
	    segment_get(&overhead.floor_bytes[gpu]) + segment_get(&overhead.promised_bytes[gpu]);
	if (bytes < floor_bytes)
		bytes = floor_bytes;
	if (first) {
		segment_set(&overhead.floor_bytes[gpu], bytes);
		segment_set(&overhead.promised_bytes[gpu], 0);
		segment_set(&member->segment->gpus[gpu].context_known, 1);
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
	bool measured = overhead_measure(member, gpu, first);
	mutex_unlock(&overhead.mutex);
	/* Where neither we nor the agent can tell, it is taken to be nothing. */
	if (!measured && segment_get(&member->segment->gpus[gpu].context_bytes) == 0)
		budget_measure(member, member->place, gpu,
		               segment_get(&overhead.promised_bytes[gpu]));
	segment_set(&overhead.look_at_ms, system_now_ms() + LOOK_EVERY_MS);
}

void overhead_context_failed(CUdevice device)
{
	int gpu = device_gpu(device);
	const struct member *member = state_member();
	if (gpu >= 0 && member != NULL && atomic_load(&overhead.contexts[gpu]) == 0)
		budget_measure(member, member->place, gpu,
		               segment_get(&overhead.promised_bytes[gpu]));
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
	segment_set(&overhead.promised_bytes[gpu], 0);
	kernel_forget(gpu);
	budget_measure(member, member->place, gpu, 0);
}

static void overhead_look_now(const struct member *member, int64_t now_ms)
{
	stash_sweep();
	segment_set(&overhead.look_at_ms, now_ms + LOOK_EVERY_MS);
	segment_set(&overhead.grown_bytes, 0);
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

void overhead_look(const struct member *member, int64_t bytes)
{
	int64_t now_ms = system_now_ms();
	if (now_ms >= segment_get(&overhead.look_at_ms)) {
		overhead_look_now(member, now_ms);
		return;
	}
	/* Only large allocations are counted: there may be millions of the others. */
	if (bytes < GROWTH_BYTES / 64)
		return;
	int64_t grown_bytes =
	    atomic_fetch_add_explicit(&overhead.grown_bytes, bytes, memory_order_relaxed);
	bool usable = segment_get(&overhead.look_at_ms) - now_ms <= LOOK_EVERY_MS;
	if (usable && grown_bytes + bytes > GROWTH_BYTES)
		overhead_look_now(member, now_ms);
}

void overhead_freed(int64_t bytes)
{
	if (bytes <= SMALL_BYTES)
		atomic_fetch_add_explicit(&overhead.grown_bytes, bytes * 4, memory_order_relaxed);
}

bool overhead_promise(int gpu, int64_t bytes)
{
	const struct member *member = state_member();
	if (gpu == DEVICE_UNKNOWN || bytes == 0)
		return true;
	if (gpu < 0 || member == NULL)
		return false;
	if (!budget_promise(member, gpu, bytes)) {
		budget_refuse(member, gpu, bytes);
		return false;
	}
	atomic_fetch_add(&overhead.promised_bytes[gpu], bytes);
	return true;
}

int64_t overhead_used(int gpu)
{
	const struct segment *segment = state_segment();
	return segment != NULL && gpu >= 0 ? segment_get(&segment->gpus[gpu].used_bytes) : 0;
}

bool overhead_within(int gpu, int64_t before_bytes)
{
	const struct member *member = gpu >= 0 ? state_member() : NULL;
	if (member == NULL)
		return true;
	mutex_lock(&overhead.mutex);
	(void)overhead_measure(member, gpu, false);
	mutex_unlock(&overhead.mutex);
	int64_t used_bytes = overhead_used(gpu);
	int64_t limit_bytes = segment_get(&member->segment->gpus[gpu].limit_bytes);
	bool over = used_bytes > before_bytes && used_bytes - OVERHEAD_TOLERATED > limit_bytes;
	if (over)
		budget_refuse(member, gpu, used_bytes - before_bytes);
	return !over;
}

void overhead_reset(void)
{
	atomic_store(&overhead.mutex.word, 0);
	segment_set(&overhead.look_at_ms, 0);
	for (int gpu = 0; gpu < SEGMENT_GPUS_MAX; gpu++) {
		atomic_store(&overhead.contexts[gpu], 0);
		segment_set(&overhead.floor_bytes[gpu], 0);
		segment_set(&overhead.promised_bytes[gpu], 0);
		kernel_forget(gpu);
	}
	segment_set(&overhead.grown_bytes, 0);
	overhead.started = false;
	overhead.usable = false;
}
