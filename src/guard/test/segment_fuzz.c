/* segment_fuzz.c - a segment in which a task's processes have written what they like
 *
 * The input is laid over an empty segment: its counts, GPUs, the first processes and
 * shares. Whatever it says, who watches must neither crash nor see a negative number. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "guard/budget/budget.h"
#include "guard/budget/limits.h"
#include "guard/budget/process.h"
#include "guard/budget/share.h"
#include "guard/budget/uuid.h"
#include "guard/budget/watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A segment in a file without a name: who watches has the file, the others map it. */
static struct segment *share_segment(struct watch *watch)
{
	static struct segment *shared;
	if (shared != NULL)
		return shared;
	watch->file = memfd_create("segment", 0);
	watch->seen = calloc(1, sizeof *watch->seen);
	INVARIANT(watch->file >= 0 && ftruncate(watch->file, sizeof *shared) == 0);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, watch->file, 0);
	INVARIANT(shared != MAP_FAILED);
	return shared;
}

/* Lays the next bytes of the input over a part of the segment. */
static void lay(void *over, size_t bytes, const uint8_t **data, size_t *size)
{
	size_t count = bytes < *size ? bytes : *size;
	memcpy(over, *data, count);
	*data += count;
	*size -= count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[UUID_TEXT_MAX + 8] = "";
	uint8_t uuid[16];
	memcpy(text, data, size < sizeof text - 1 ? size : sizeof text - 1);
	struct process_stat stat;
	(void)uuid_parse(text, uuid);
	(void)process_parse_stat(text, &stat);
	(void)process_parse_own_pid(text);

	static struct watch watch;
	struct segment *shared = share_segment(&watch);
	memset(shared, 0, sizeof *shared);
	segment_init(shared);
	limits_read(text, shared);
	uint32_t lock = 0;
	lay(&shared->waiters, sizeof shared->waiters, &data, &size);
	lay(&shared->gpu_count, sizeof shared->gpu_count, &data, &size);
	lay(&shared->process_end, sizeof shared->process_end, &data, &size);
	lay(&shared->told, sizeof shared->told, &data, &size);
	lay(&shared->gpus, sizeof shared->gpus[0] * 2, &data, &size);
	lay(&shared->processes[1], 64, &data, &size);
	lay(&shared->processes[2], 64, &data, &size);
	lay(&shared->shares, sizeof shared->shares[0] * 4, &data, &size);
	/* A holder who cannot be seen is waited for, which is not what is tried here. */
	lay(&lock, sizeof lock, &data, &size);
	atomic_store(&shared->lock, lock > SEGMENT_PROCESSES_MAX ? lock : 0);

	struct member member = { .segment = shared, .identity = process_self(), .place = 3 };
	struct error error;
	struct watch_gpu gpu;
	int64_t pid = 1;
	(void)watch_set_limit(&watch, uuid, 1 << 20, 0, &error);
	for (uint32_t number = 0; watch_gpu(&watch, number, &gpu); number++) {
		INVARIANT(gpu.used_bytes >= 0 && gpu.peak_bytes >= 0 && gpu.refusals >= 0);
		(void)watch_measured(&watch, 1, gpu.uuid, 1 << 20);
	}
	(void)watch_process_count(&watch);
	(void)watch_is_guarded(&watch, 1);
	int number = budget_gpu(&member, uuid);
	if (number >= 0 && budget_take(&member, number, 1 << 10))
		budget_give(&member, number, 1 << 10);
	int share = share_import(&member, 5, number >= 0 ? number : 0, 1 << 10, false);
	if (share >= 0)
		share_drop(&member, share);
	watch_reap(&watch, &pid, 1);
	return 0;
}
