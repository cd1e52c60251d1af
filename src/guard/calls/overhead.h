/* overhead.h - what contexts, modules and libraries take beside allocations
 *
 * The driver does not say, but NVML says what a process uses in all: the difference
 * to what it has been charged is its overhead. NVML knows processes by the ids of
 * the machine, so in a container only the agent can tell, and does (watch.h). */
#ifndef GUARD_CALLS_OVERHEAD_H
#define GUARD_CALLS_OVERHEAD_H

#include "guard/budget/lock.h"
#include "guard/calls/driver_abi.h"

/* Before a context is made on a device: whether what it is expected to take is within
 * the limit. If not, that is a refusal. */
bool overhead_expect(CUdevice device);

/* A context was made on the device, or one has ended. */
void overhead_context_made(CUdevice device);
void overhead_context_ended(CUdevice device);

/* Measures all GPUs with a context, unless that was done in the last seconds. */
void overhead_look(const struct member *member);

/* In a forked child. */
void overhead_reset(void);

#endif
