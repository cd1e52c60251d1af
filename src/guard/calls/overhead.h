/* overhead.h - what contexts, modules and libraries take beside allocations
 *
 * The driver does not say, but NVML says what a process uses in all: the difference
 * to what it has been charged is its overhead. NVML knows processes by the ids of
 * the machine, so in a container only the agent can tell, and does (watch.h). */
#ifndef GUARD_CALLS_OVERHEAD_H
#define GUARD_CALLS_OVERHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "guard/budget/lock.h"
#include "guard/calls/driver_abi.h"

/* Before a context is made on a device: whether what it is expected to take is within
 * the limit. If not, that is a refusal. */
bool overhead_expect(CUdevice device);

/* A context was made on the device, or was not, or one has ended. */
void overhead_context_made(CUdevice device);
void overhead_context_failed(CUdevice device);
void overhead_context_ended(CUdevice device);

/* Measures all GPUs with a context, if that many bytes more are a reason to, or it was not done in
 * the last seconds. */
void overhead_look(const struct member *member, int64_t bytes);

/* So much was freed. Of small pieces the driver may keep the pages: a reason to look, too. */
void overhead_freed(int64_t bytes);

/* What was measured as overhead may exceed the limit by so much: what well-behaved programs load
 * late, with a full budget. Less than what the agent tolerates, which counts pages that the driver
 * keeps beside that. */
#define OVERHEAD_TOLERATED ((int64_t)384 << 20)

/* Charges what the driver will take for kernels on the device (their stacks, their heap) and what
 * cannot be seen before it does; false if that exceeds the limit, which is a refusal. Given back
 * with the last context, or by a negative number. */
bool overhead_promise(int gpu, int64_t bytes);

/* Measures a GPU now. False if it exceeds the limit by more than what is tolerated, and by more
 * than `before_bytes`, what was used before: what was just loaded is to be unloaded. */
bool overhead_within(int gpu, int64_t before_bytes);

/* All that the task uses on a GPU, as far as it is known. */
int64_t overhead_used(int gpu);

/* The namespace of process ids in which NVML's are ours; tests set theirs. */
extern uint64_t overhead_namespace;

/* In a forked child. */
void overhead_reset(void);

#endif
