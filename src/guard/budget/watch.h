/* watch.h - the agent's side of a segment: sets budgets, and sees what became of them
 *
 * A task can write anything into its segment, cut the file short, or keep its lock for
 * ever. So the file is never mapped here and the lock never taken: it is read and
 * written a few bytes at a time, numbers are checked, and nothing of it is taken for a
 * measurement. Who watches waits for nobody. */
#ifndef GUARD_BUDGET_WATCH_H
#define GUARD_BUDGET_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "guard/budget/segment.h"

/* A segment that is watched, by one watcher at a time. `seen` is what was read of it
 * last; all zero where it could not be read. */
struct watch {
	int file;
	struct segment *seen;
};

/* Makes the file of a segment, which must not exist, for its owner alone; no GPU has a
 * budget yet. Its space is taken at once, so that no task is ended for want of it. */
bool watch_create(struct watch *watch, const char *path, struct error *error);

/* Lets tasks that run as somebody else use it. */
bool watch_give(struct watch *watch, uid_t user, gid_t group, struct error *error);

/* Watches a segment that exists, after a restart. */
bool watch_open(struct watch *watch, const char *path, struct error *error);

/* Stops watching. The file stays: who made it removes it. */
void watch_close(struct watch *watch);

/* Sets the limit on a GPU, and what a context there is expected to take until the guard
 * has measured one. While the task runs, only on GPUs that are listed. */
bool watch_set_limit(struct watch *watch, const uint8_t uuid[16], int64_t limit_bytes,
                     int64_t context_bytes, struct error *error);

/* Puts the limit on a GPU right. True if something had changed it: every process of the task, and
 * others of its user, can write the segment. */
bool watch_restore_limit(struct watch *watch, const uint8_t uuid[16], int64_t limit_bytes);

/* Sets the limit of each GPU that is not listed. Before the task starts. */
bool watch_set_others(struct watch *watch, int64_t limit_bytes, int64_t context_bytes,
                      struct error *error);

/* What a task has on one GPU. */
struct watch_gpu {
	uint8_t uuid[16];
	int64_t limit_bytes; /* SEGMENT_NO_LIMIT: none */
	int64_t used_bytes;  /* by processes that are not known to be gone */
	int64_t peak_bytes;
	int64_t hidden_bytes; /* of what is used: what NVML gives to no process */
	int64_t refusals;
	int64_t last_refused_bytes;
	int64_t failures; /* requests within the limit for which the GPU had no memory left */
	int64_t last_failed_bytes;
	int64_t last_failed_ms; /* since the machine started */
};

/* The GPUs that are listed, by number; false from their end on, and for a segment that
 * is none any more. */
bool watch_gpu(struct watch *watch, uint32_t number, struct watch_gpu *gpu);

/* How many processes have joined and are not known to be gone. */
int watch_process_count(struct watch *watch);

/* How many pieces of memory that other processes exported its processes hold: those of the same
 * task, of others, and of programs outside of any. */
int64_t watch_imports(struct watch *watch);

/* True if a process, by its id here, is under the guard: only then does the budget hold
 * for it. A process joins before it gets its first context, so one that a measurement
 * shows on the GPU and that is not here afterwards is without a guard. */
bool watch_is_guarded(struct watch *watch, int64_t pid);

/* Tells the guard what a process uses on a GPU in all, as NVML has just said: what it has
 * not been charged for counts from now on. For processes in containers; others measure
 * themselves. False if the process is not under the guard, or the GPU not listed. */
bool watch_measured(struct watch *watch, int64_t pid, const uint8_t uuid[16], int64_t used_bytes);

/* Marks processes that are gone, so that their memory is no longer charged. Processes in
 * containers are recognized only by their absence from `live_pids`, all processes of the task. */
void watch_reap(struct watch *watch, const int64_t *live_pids, size_t count);

#endif
