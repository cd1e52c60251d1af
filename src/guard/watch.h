/* watch.h - the agent's side of a segment: sets budgets, and sees what became of them
 *
 * Whatever is read here was written by the task's processes, who can write anything:
 * numbers are checked, and nothing of it is a measurement. */
#ifndef GUARD_WATCH_H
#define GUARD_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "lock.h"
#include "segment.h"

/* A segment that is watched. One watcher at a time. */
struct watch {
	struct segment *segment;
	struct member member;
};

/* Makes the file of a segment, which must not exist, for its owner alone (who runs
 * tasks as somebody else gives it to them); no GPU has a budget yet. */
bool watch_create(struct watch *watch, const char *path, struct error *error);

/* Watches a segment that exists, after a restart. */
bool watch_open(struct watch *watch, const char *path, struct error *error);

/* Stops watching. The file stays: who made it removes it. */
void watch_close(struct watch *watch);

/* Sets the limit on a GPU, now or while the task runs, and what a context there is
 * expected to take until the guard has measured one. */
bool watch_set_limit(struct watch *watch, const uint8_t uuid[16], int64_t limit_bytes,
                     int64_t context_bytes, struct error *error);

/* The same for all GPUs that are not listed: each of them. */
void watch_set_others(struct watch *watch, int64_t limit_bytes, int64_t context_bytes);

/* What a task has on one GPU. */
struct watch_gpu {
	uint8_t uuid[16];
	int64_t limit_bytes; /* SEGMENT_NO_LIMIT: none */
	int64_t used_bytes;
	int64_t peak_bytes;
	int64_t refusals;
	int64_t last_refused_bytes;
};

/* The GPUs that are listed, by number; false from their end on. */
bool watch_gpu(const struct watch *watch, uint32_t number, struct watch_gpu *gpu);

/* How many processes have joined and are not known to be gone. */
int watch_process_count(const struct watch *watch);

/* Whether a process, by its id here, is under the guard: only then does the budget hold
 * for it. A process that has not used a GPU yet is not. */
bool watch_is_guarded(const struct watch *watch, int64_t pid);

/* Tells the guard what a process uses on a GPU in all, as NVML says: what it has not
 * been charged for counts from now on. False if the process is not under the guard,
 * or the GPU not listed. */
bool watch_measured(struct watch *watch, int64_t pid, const uint8_t uuid[16], int64_t used_bytes);

/* Takes processes off the books that are gone. Those in containers are known only by
 * their absence from `live_pids`, all processes of the task. */
void watch_reap(struct watch *watch, const int64_t *live_pids, size_t count);

#endif
