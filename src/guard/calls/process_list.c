/* process_list.c - who is on a GPU: a task sees its own processes alone */
#include <stdbool.h>
#include <stddef.h>

#include "guard/budget/process.h"
#include "guard/calls/entry.h"
#include "guard/calls/overhead.h"
#include "guard/calls/state.h"

enum { LISTED_MAX = 1024 };

/* NVML knows processes by the ids of the machine, so in a container none can be told to be
 * the task's. */
static bool is_own(const struct segment *segment, unsigned int pid)
{
	for (uint32_t place = SEGMENT_FIRST_PLACE; place < segment_process_end(segment); place++) {
		const struct segment_process *process = &segment->processes[place];
		uint64_t owner = atomic_load_explicit(&process->owner, memory_order_relaxed);
		if (owner != 0 && process_owner_pid(owner) == pid &&
		    atomic_load_explicit(&process->namespace_id, memory_order_relaxed) ==
		        overhead_namespace)
			return true;
	}
	return false;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): a type and the name of a function */
/* Asks for all of them, and hands out the task's: as many as there is room for. */
#define PROCESS_LIST(symbol, type)                                                                 \
	nvmlReturn_t symbol(nvmlDevice_t device, unsigned int *count, type *processes)             \
	{                                                                                          \
		const struct segment *segment = state_segment();                                   \
		if (segment == NULL || count == NULL)                                              \
			return CALL_OR(NVML_ERROR_FUNCTION_NOT_FOUND, symbol, device, count,       \
			               processes);                                                 \
		type all[LISTED_MAX];                                                              \
		unsigned int number = LISTED_MAX;                                                  \
		unsigned int own = 0;                                                              \
		nvmlReturn_t result =                                                              \
		    CALL_OR(NVML_ERROR_FUNCTION_NOT_FOUND, symbol, device, &number, all);          \
		if (result != NVML_SUCCESS)                                                        \
			return result;                                                             \
		for (unsigned int i = 0; i < number && i < LISTED_MAX; i++) {                      \
			if (!is_own(segment, all[i].pid))                                          \
				continue;                                                          \
			if (own < *count && processes != NULL)                                     \
				processes[own] = all[i];                                           \
			own++;                                                                     \
		}                                                                                  \
		bool room = own <= *count;                                                         \
		*count = own;                                                                      \
		return room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;                         \
	}

PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_t)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_t)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_t)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)
/* NOLINTEND(bugprone-macro-parentheses) */
