/* segment_fuzz.c - a segment in which a task's processes have written what they like
 *
 * The input is laid over an empty segment: its counts, GPUs, the first processes and
 * shares. Whatever it says, who watches must neither crash nor see a negative number. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../budget.h"
#include "../share.h"
#include "../uuid.h"
#include "../watch.h"
#include "base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

	static struct segment segment;
	memset(&segment, 0, sizeof segment);
	segment_init(&segment);
	uint32_t lock = 0;
	lay(&segment.waiters, sizeof segment.waiters, &data, &size);
	lay(&segment.gpu_count, sizeof segment.gpu_count, &data, &size);
	lay(&segment.process_end, sizeof segment.process_end, &data, &size);
	lay(&segment.gpus, sizeof segment.gpus[0] * 2, &data, &size);
	lay(&segment.processes[1], 64, &data, &size);
	lay(&segment.processes[2], 64, &data, &size);
	lay(&segment.shares, sizeof segment.shares[0] * 4, &data, &size);
	/* A holder who cannot be seen is waited for, which is not what is tried here. */
	lay(&lock, sizeof lock, &data, &size);
	atomic_store(&segment.lock, lock > SEGMENT_PROCESSES_MAX ? lock : 0);

	struct watch watch = { .segment = &segment };
	watch.member = (struct member){ .segment = &segment,
		                        .identity = process_self(),
		                        .place = SEGMENT_WATCHER };
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
	int number = budget_gpu(&watch.member, uuid);
	if (number >= 0 && budget_take(&watch.member, number, 1 << 10))
		budget_give(&watch.member, number, 1 << 10);
	int share = share_import(&watch.member, 5, number >= 0 ? number : 0, 1 << 10, false);
	if (share >= 0)
		share_drop(&watch.member, share);
	watch_reap(&watch, &pid, 1);
	return 0;
}
