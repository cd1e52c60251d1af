/* segment.c - making and mapping the shared segment */
#include "guard/budget/segment.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "guard/budget/system.h"

void segment_init(struct segment *segment)
{
	segment->version = SEGMENT_VERSION;
	segment->size_bytes = (uint32_t)sizeof *segment;
	atomic_store_explicit(&segment->process_end, SEGMENT_FIRST_PLACE, memory_order_relaxed);
	segment->magic = SEGMENT_MAGIC;
}

struct segment *segment_open(const char *path)
{
	int file = system_open(path, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return NULL;
	struct segment *segment = NULL;
	if (system_size(file) == (int64_t)sizeof *segment) {
		segment = mmap(NULL, sizeof *segment, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		if (segment == MAP_FAILED)
			segment = NULL;
	}
	system_close(file);
	if (segment != NULL &&
	    (segment->magic != SEGMENT_MAGIC || segment->version != SEGMENT_VERSION ||
	     segment->size_bytes != sizeof *segment)) {
		munmap(segment, sizeof *segment);
		segment = NULL;
	}
	return segment;
}

uint32_t segment_gpu_count(const struct segment *segment)
{
	uint32_t count = atomic_load_explicit(&segment->gpu_count, memory_order_acquire);
	return count < SEGMENT_GPUS_MAX ? count : SEGMENT_GPUS_MAX;
}

uint32_t segment_process_end(const struct segment *segment)
{
	uint32_t end = atomic_load_explicit(&segment->process_end, memory_order_acquire);
	return end < SEGMENT_PROCESSES_MAX ? end : SEGMENT_PROCESSES_MAX;
}
