/* watch.c - the agent's side of a segment: sets budgets, and sees what became of them */
#include "guard/budget/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guard/budget/process.h"

/* Reads a part of the file; false if it is not there. */
static bool read_part(const struct watch *watch, void *to, size_t offset, size_t size)
{
	return pread(watch->file, to, size, (off_t)offset) == (ssize_t)size;
}

/* Writes one member of the segment, and of what was seen. */
#define WRITE(watch, member, value)                                                                \
	do {                                                                                       \
		__typeof__(*(member)) written = (value);                                           \
		memcpy((member), &written, sizeof written);                                        \
		write_part((watch), (member), sizeof written);                                     \
	} while (0)
static void write_part(const struct watch *watch, const void *member, size_t size)
{
	off_t offset = (const char *)member - (const char *)watch->seen;
	/* A file that cannot be written is no segment any more, which reading shows. */
	ssize_t written = pwrite(watch->file, member, size, offset);
	(void)written;
}

static bool is_segment(const struct segment *segment)
{
	return segment->magic == SEGMENT_MAGIC && segment->version == SEGMENT_VERSION &&
	       segment->size_bytes == sizeof *segment;
}

/* True if somebody is in the place who is not known to be gone. */
static bool is_taken(const struct segment_process *process)
{
	uint64_t owner = atomic_load(&process->owner);
	return owner != 0 && atomic_load(&process->gone_owner) != owner;
}

/* Reads what there is of places, and of shares where somebody is gone. */
static void watch_look(struct watch *watch)
{
	struct segment *seen = watch->seen;
	size_t places = offsetof(struct segment, processes);
	bool there = read_part(watch, seen, 0, places) && is_segment(seen) &&
	             read_part(watch, seen->processes, places,
	                       segment_process_end(seen) * sizeof seen->processes[0]);
	bool gone = false;
	for (uint32_t place = SEGMENT_FIRST_PLACE; there && place < segment_process_end(seen);
	     place++)
		gone |= atomic_load(&seen->processes[place].owner) != 0 &&
		        !is_taken(&seen->processes[place]);
	if (gone)
		there = read_part(watch, seen->shares, offsetof(struct segment, shares),
		                  sizeof seen->shares);
	else
		memset(seen->shares, 0, sizeof seen->shares);
	if (!there)
		memset(seen, 0, sizeof *seen);
}

static bool watch_begin(struct watch *watch, int file)
{
	watch->file = file;
	watch->seen = calloc(1, sizeof *watch->seen);
	if (watch->seen == NULL)
		panic("out of memory");
	return true;
}

bool watch_create(struct watch *watch, const char *path, struct error *error)
{
	int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0)
		return error_set(error, ERROR_CONFLICT, "segment %s cannot be made: %s", path,
		                 strerror(errno));
	int reason = posix_fallocate(file, 0, (off_t)sizeof *watch->seen);
	if (reason != 0) {
		close(file);
		unlink(path);
		return error_set(error, ERROR_FULL, "segment %s cannot be made: %s", path,
		                 strerror(reason));
	}
	watch_begin(watch, file);
	segment_init(watch->seen);
	write_part(watch, watch->seen, offsetof(struct segment, processes));
	return true;
}

bool watch_give(struct watch *watch, uid_t user, gid_t group, struct error *error)
{
	if (fchown(watch->file, user, group) == 0)
		return true;
	return error_set(error, ERROR_FORBIDDEN, "a segment cannot be given to user %ld: %s",
	                 (long)user, strerror(errno));
}

/* The task owns its segment and can put anything in its place: a link, a pipe, a device. So the
 * path is opened only if it is a plain file by this one name. */
static int open_segment(const char *path)
{
	struct stat status;
	int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (file < 0 ||
	    (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1))
		return file;
	close(file);
	return -1;
}

bool watch_open(struct watch *watch, const char *path, struct error *error)
{
	int file = open_segment(path);
	if (file >= 0)
		watch_begin(watch, file);
	if (file >= 0)
		watch_look(watch);
	if (file >= 0 && is_segment(watch->seen))
		return true;
	if (file >= 0)
		watch_close(watch);
	return error_set(error, ERROR_NOT_FOUND,
	                 "%s is not a segment of the guard that this version understands", path);
}

void watch_close(struct watch *watch)
{
	if (watch->seen == NULL)
		return;
	close(watch->file);
	free(watch->seen);
	watch->seen = NULL;
}

static int find_gpu(const struct segment *segment, const uint8_t uuid[16])
{
	for (uint32_t gpu = 0; gpu < segment_gpu_count(segment); gpu++) {
		if (memcmp(segment->gpus[gpu].uuid, uuid, 16) == 0)
			return (int)gpu;
	}
	return -1;
}

/* True if processes may be about to list GPUs themselves. */
static bool has_begun(const struct segment *segment)
{
	return segment_process_end(segment) > SEGMENT_FIRST_PLACE;
}

/* Lists a GPU; -1 with the reason if that cannot be. */
static int watch_add_gpu(struct watch *watch, const uint8_t uuid[16], struct error *error)
{
	struct segment *seen = watch->seen;
	uint32_t count = segment_gpu_count(seen);
	if (has_begun(seen)) {
		error_set(error, ERROR_CONFLICT,
		          "a task that runs cannot be given a budget on another GPU");
		return -1;
	}
	if (count == SEGMENT_GPUS_MAX) {
		error_set(error, ERROR_FULL, "a task has budgets on %d GPUs at most",
		          SEGMENT_GPUS_MAX);
		return -1;
	}
	memcpy(seen->gpus[count].uuid, uuid, 16);
	write_part(watch, seen->gpus[count].uuid, 16);
	WRITE(watch, &seen->gpu_count, count + 1);
	return (int)count;
}

bool watch_set_limit(struct watch *watch, const uint8_t uuid[16], int64_t limit_bytes,
                     int64_t context_bytes, struct error *error)
{
	if (limit_bytes < 0 || context_bytes < 0)
		return error_set(error, ERROR_INVALID, "a limit of GPU memory cannot be negative");
	watch_look(watch);
	int number = find_gpu(watch->seen, uuid);
	if (number < 0)
		number = watch_add_gpu(watch, uuid, error);
	if (number < 0)
		return false;
	WRITE(watch, &watch->seen->gpus[number].limit_bytes, limit_bytes);
	WRITE(watch, &watch->seen->gpus[number].context_bytes, context_bytes);
	return true;
}

bool watch_restore_limit(struct watch *watch, const uint8_t uuid[16], int64_t limit_bytes)
{
	watch_look(watch);
	int number = find_gpu(watch->seen, uuid);
	if (number < 0 || segment_get(&watch->seen->gpus[number].limit_bytes) == limit_bytes)
		return false;
	WRITE(watch, &watch->seen->gpus[number].limit_bytes, limit_bytes);
	return true;
}

bool watch_set_others(struct watch *watch, int64_t limit_bytes, int64_t context_bytes,
                      struct error *error)
{
	if (limit_bytes < 0 || context_bytes < 0)
		return error_set(error, ERROR_INVALID, "a limit of GPU memory cannot be negative");
	WRITE(watch, &watch->seen->others_limit_bytes, limit_bytes);
	WRITE(watch, &watch->seen->others_context_bytes, context_bytes);
	return true;
}

static int64_t not_negative(const _Atomic(int64_t) *value)
{
	int64_t number = segment_get(value);
	return number > 0 ? number : 0;
}

/* Memory that is charged to a process that is gone, while others hold it. */
static int64_t inherited_bytes(const struct segment *seen, uint32_t gpu)
{
	int64_t bytes = 0;
	for (int i = 0; i < SEGMENT_SHARES_MAX; i++) {
		const struct segment_share *share = &seen->shares[i];
		bool held = false;
		if (share->gpu != gpu || share->bytes <= 0 ||
		    share->bearer >= SEGMENT_PROCESSES_MAX ||
		    is_taken(&seen->processes[share->bearer]))
			continue;
		for (uint32_t place = 0; place < SEGMENT_PROCESSES_MAX && !held; place++)
			held = (share->holders[place / 64] >> (place % 64) & 1) != 0 &&
			       is_taken(&seen->processes[place]);
		if (held && __builtin_add_overflow(bytes, share->bytes, &bytes))
			return INT64_MAX;
	}
	return bytes;
}

/* The charges of live processes, and what was reported and not seen yet. */
static int64_t used_bytes(const struct segment *seen, uint32_t gpu)
{
	int64_t used = inherited_bytes(seen, gpu);
	bool pending = atomic_load(&seen->told) != atomic_load(&seen->told_seen);
	for (uint32_t place = SEGMENT_FIRST_PLACE; place < segment_process_end(seen); place++) {
		const struct segment_process *process = &seen->processes[place];
		if (!is_taken(process))
			continue;
		int64_t told = not_negative(&process->told_bytes[gpu]);
		int64_t overhead =
		    pending && told > 0 ? told - 1 : not_negative(&process->overhead_bytes[gpu]);
		if (__builtin_add_overflow(used, not_negative(&process->charged_bytes[gpu]),
		                           &used) ||
		    __builtin_add_overflow(used, overhead, &used))
			return INT64_MAX;
	}
	return used;
}

static int64_t hidden_bytes(const struct segment *seen, uint32_t gpu)
{
	int64_t hidden = 0;
	for (uint32_t place = SEGMENT_FIRST_PLACE; place < segment_process_end(seen); place++) {
		const struct segment_process *process = &seen->processes[place];
		int64_t bytes = not_negative(&process->hidden_bytes[gpu]);
		int64_t charged = not_negative(&process->charged_bytes[gpu]);
		if (is_taken(process) &&
		    __builtin_add_overflow(hidden, bytes < charged ? bytes : charged, &hidden))
			return INT64_MAX;
	}
	return hidden;
}

bool watch_gpu(struct watch *watch, uint32_t number, struct watch_gpu *gpu)
{
	watch_look(watch);
	if (number >= segment_gpu_count(watch->seen))
		return false;
	const struct segment_gpu *from = &watch->seen->gpus[number];
	memcpy(gpu->uuid, from->uuid, sizeof gpu->uuid);
	gpu->limit_bytes = not_negative(&from->limit_bytes);
	gpu->used_bytes = used_bytes(watch->seen, number);
	gpu->hidden_bytes = hidden_bytes(watch->seen, number);
	gpu->peak_bytes = not_negative(&from->peak_bytes);
	if (gpu->peak_bytes < gpu->used_bytes)
		gpu->peak_bytes = gpu->used_bytes;
	gpu->refusals = not_negative(&from->refusals);
	gpu->last_refused_bytes = not_negative(&from->last_refused_bytes);
	gpu->failures = not_negative(&from->failures);
	gpu->last_failed_bytes = not_negative(&from->last_failed_bytes);
	gpu->last_failed_ms = not_negative(&from->last_failed_ms);
	return true;
}

/* The place of a process; 0 if it has none. */
static uint32_t find_place(const struct segment *seen, struct process_identity identity)
{
	for (uint32_t place = SEGMENT_FIRST_PLACE; place < segment_process_end(seen); place++) {
		const struct segment_process *process = &seen->processes[place];
		if (atomic_load(&process->owner) == identity.owner &&
		    atomic_load(&process->namespace_id) == identity.namespace_id)
			return place;
	}
	return 0;
}

int watch_process_count(struct watch *watch)
{
	int count = 0;
	watch_look(watch);
	for (uint32_t place = SEGMENT_FIRST_PLACE; place < segment_process_end(watch->seen);
	     place++)
		count += is_taken(&watch->seen->processes[place]);
	return count;
}

int64_t watch_imports(struct watch *watch)
{
	int64_t count = 0;
	watch_look(watch);
	for (uint32_t place = SEGMENT_FIRST_PLACE; place < segment_process_end(watch->seen);
	     place++) {
		const struct segment_process *process = &watch->seen->processes[place];
		if (is_taken(process) &&
		    __builtin_add_overflow(count, not_negative(&process->imports), &count))
			return INT64_MAX;
	}
	return count;
}

bool watch_is_guarded(struct watch *watch, int64_t pid)
{
	struct process_identity identity;
	watch_look(watch);
	return process_of(pid, &identity) && find_place(watch->seen, identity) != 0;
}

bool watch_measured(struct watch *watch, int64_t pid, const uint8_t uuid[16], int64_t used_bytes)
{
	struct process_identity identity;
	struct segment *seen = watch->seen;
	watch_look(watch);
	uint32_t place = process_of(pid, &identity) ? find_place(seen, identity) : 0;
	int gpu = find_gpu(seen, uuid);
	if (place == 0 || gpu < 0)
		return false;
	int64_t hidden_bytes = not_negative(&seen->processes[place].hidden_bytes[gpu]);
	int64_t visible_bytes = not_negative(&seen->processes[place].charged_bytes[gpu]);
	visible_bytes = hidden_bytes < visible_bytes ? visible_bytes - hidden_bytes : 0;
	int64_t overhead_bytes = used_bytes - visible_bytes;
	WRITE(watch, &seen->processes[place].told_bytes[gpu],
	      overhead_bytes > 0 && overhead_bytes < INT64_MAX ? overhead_bytes + 1 : 1);
	WRITE(watch, &seen->told, atomic_load(&seen->told) + 1);
	return true;
}

/* True if a process in a namespace that cannot be seen from here is one of those. */
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
	uint64_t here = process_self().namespace_id;
	watch_look(watch);
	for (uint32_t place = SEGMENT_FIRST_PLACE; place < segment_process_end(watch->seen);
	     place++) {
		struct segment_process *process = &watch->seen->processes[place];
		uint64_t owner = atomic_load(&process->owner);
		uint64_t namespace_id = atomic_load(&process->namespace_id);
		bool seen_from_here = namespace_id == here;
		/* Of one without a namespace nobody can say who it is, until nobody is left. */
		if (namespace_id == 0 && count > 0)
			continue;
		if (is_taken(process) && (seen_from_here ? process_is_gone(owner)
		                                         : !is_among(process, live_pids, count)))
			WRITE(watch, &process->gone_owner, owner);
	}
}
