/* watch.c - the agent's side of a segment: sets budgets, and sees what became of them */
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "budget.h"
#include "process.h"

/* Takes the watcher's place. */
static void join(struct watch *watch)
{
	struct process_identity self = process_self();
	struct segment_process *place = &watch->segment->processes[SEGMENT_WATCHER];
	watch->member = (struct member){ .segment = watch->segment,
		                         .identity = self,
		                         .place = SEGMENT_WATCHER };
	/* A watcher before this one may have died with the lock in its hand. */
	uint32_t before = SEGMENT_WATCHER + 1;
	atomic_compare_exchange_strong(&watch->segment->lock, &before, 0);
	atomic_store(&place->namespace_id, self.namespace_id);
	atomic_store(&place->owner, self.owner);
}

bool watch_create(struct watch *watch, const char *path, struct error *error)
{
	int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0)
		return error_set(error, ERROR_CONFLICT, "segment %s cannot be made: %s", path,
		                 strerror(errno));
	struct segment *segment = MAP_FAILED;
	if (ftruncate(file, (off_t)sizeof *segment) == 0)
		segment = mmap(NULL, sizeof *segment, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	int reason = errno;
	close(file);
	if (segment == MAP_FAILED) {
		unlink(path);
		return error_set(error, ERROR_FULL, "segment %s cannot be made: %s", path,
		                 strerror(reason));
	}
	segment_init(segment);
	watch->segment = segment;
	join(watch);
	return true;
}

bool watch_open(struct watch *watch, const char *path, struct error *error)
{
	watch->segment = segment_open(path);
	if (watch->segment == NULL)
		return error_set(error, ERROR_NOT_FOUND,
		                 "%s is not a segment of the guard that this version understands",
		                 path);
	join(watch);
	return true;
}

void watch_close(struct watch *watch)
{
	if (watch->segment == NULL)
		return;
	atomic_store(&watch->segment->processes[SEGMENT_WATCHER].owner, 0);
	munmap(watch->segment, sizeof *watch->segment);
	watch->segment = NULL;
}

bool watch_set_limit(struct watch *watch, const uint8_t uuid[16], int64_t limit_bytes,
                     int64_t context_bytes, struct error *error)
{
	if (limit_bytes < 0 || context_bytes < 0)
		return error_set(error, ERROR_INVALID, "a limit of GPU memory cannot be negative");
	int number = budget_gpu(&watch->member, uuid);
	if (number < 0)
		return error_set(error, ERROR_FULL, "a task has budgets on %d GPUs at most",
		                 SEGMENT_GPUS_MAX);
	struct segment_gpu *gpu = &watch->segment->gpus[number];
	segment_set(&gpu->limit_bytes, limit_bytes);
	segment_set(&gpu->context_bytes, context_bytes);
	return true;
}

void watch_set_others(struct watch *watch, int64_t limit_bytes, int64_t context_bytes)
{
	segment_set(&watch->segment->others_limit_bytes, limit_bytes);
	segment_set(&watch->segment->others_context_bytes, context_bytes);
}

static int64_t not_negative(const _Atomic(int64_t) *value)
{
	int64_t number = segment_get(value);
	return number > 0 ? number : 0;
}

bool watch_gpu(const struct watch *watch, uint32_t number, struct watch_gpu *gpu)
{
	if (number >= segment_gpu_count(watch->segment))
		return false;
	const struct segment_gpu *from = &watch->segment->gpus[number];
	memcpy(gpu->uuid, from->uuid, sizeof gpu->uuid);
	gpu->limit_bytes = not_negative(&from->limit_bytes);
	gpu->used_bytes = not_negative(&from->used_bytes);
	gpu->peak_bytes = not_negative(&from->peak_bytes);
	gpu->refusals = not_negative(&from->refusals);
	gpu->last_refused_bytes = not_negative(&from->last_refused_bytes);
	return true;
}

/* The place of a process; 0 if it has none. */
static uint32_t find_place(const struct watch *watch, struct process_identity identity)
{
	for (uint32_t place = SEGMENT_WATCHER + 1; place < segment_process_end(watch->segment);
	     place++) {
		const struct segment_process *process = &watch->segment->processes[place];
		if (atomic_load(&process->owner) == identity.owner &&
		    atomic_load(&process->namespace_id) == identity.namespace_id)
			return place;
	}
	return 0;
}

int watch_process_count(const struct watch *watch)
{
	int count = 0;
	for (uint32_t place = SEGMENT_WATCHER + 1; place < segment_process_end(watch->segment);
	     place++)
		count += atomic_load(&watch->segment->processes[place].owner) != 0;
	return count;
}

bool watch_is_guarded(const struct watch *watch, int64_t pid)
{
	struct process_identity identity;
	return process_of(pid, &identity) && find_place(watch, identity) != 0;
}

bool watch_measured(struct watch *watch, int64_t pid, const uint8_t uuid[16], int64_t used_bytes)
{
	struct process_identity identity;
	uint32_t place = process_of(pid, &identity) ? find_place(watch, identity) : 0;
	int gpu = budget_find_gpu(watch->segment, uuid);
	if (place == 0 || gpu < 0)
		return false;
	int64_t charged_bytes = not_negative(&watch->segment->processes[place].charged_bytes[gpu]);
	budget_measure(&watch->member, place, gpu,
	               used_bytes > charged_bytes ? used_bytes - charged_bytes : 0);
	return true;
}

/* Whether a process in a namespace that cannot be seen from here is one of those. */
static bool is_among(const struct segment_process *process, const int64_t *pids, size_t count)
{
	uint64_t owner = atomic_load(&process->owner);
	uint64_t namespace_id = atomic_load(&process->namespace_id);
	for (size_t i = 0; i < count; i++) {
		struct process_identity identity;
		if (process_of(pids[i], &identity) && identity.owner == owner &&
		    identity.namespace_id == namespace_id)
			return true;
	}
	return false;
}

void watch_reap(struct watch *watch, const int64_t *live_pids, size_t count)
{
	budget_reap(&watch->member);
	for (uint32_t place = SEGMENT_WATCHER + 1; place < segment_process_end(watch->segment);
	     place++) {
		const struct segment_process *process = &watch->segment->processes[place];
		uint64_t namespace_id = atomic_load(&process->namespace_id);
		if (atomic_load(&process->owner) != 0 && namespace_id != 0 &&
		    namespace_id != watch->member.identity.namespace_id &&
		    !is_among(process, live_pids, count))
			budget_reap_place(&watch->member, place);
	}
}
