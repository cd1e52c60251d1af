/* gpu_source.c - readings of GPUs, and the source that has none */
#include "agent/gpu/gpu_source.h"

#include <stdlib.h>
#include <string.h>

struct gpu_reading *gpu_readings_add(struct gpu_readings *readings)
{
	array_reserve(readings->gpus, readings->gpu_capacity, readings->gpu_count + 1);
	struct gpu_reading *reading = &readings->gpus[readings->gpu_count++];
	*reading = (struct gpu_reading){ .uuid = "", .model = "", .mig_parent = "" };
	return reading;
}

struct process_reading *gpu_readings_add_process(struct gpu_readings *readings)
{
	array_reserve(readings->processes, readings->process_capacity, readings->process_count + 1);
	struct process_reading *process = &readings->processes[readings->process_count++];
	*process = (struct process_reading){ .uuid = "" };
	return process;
}

void gpu_readings_clear(struct gpu_readings *readings)
{
	readings->gpu_count = readings->process_count = 0;
	arena_reset(&readings->arena);
}

void gpu_readings_free(struct gpu_readings *readings)
{
	free(readings->gpus);
	free(readings->processes);
	arena_free(&readings->arena);
	*readings = (struct gpu_readings){ 0 };
}

static bool read_none(struct gpu_source *source, int64_t now_ms, const struct gpu_user *users,
                      size_t user_count, struct gpu_readings *readings, struct error *error)
{
	(void)source, (void)now_ms, (void)users, (void)user_count, (void)error;
	gpu_readings_clear(readings);
	return true;
}

static void no_devices(struct gpu_source *source, const char *uuid, struct buffer *rules)
{
	(void)source, (void)uuid, (void)rules;
}

static void close_none(struct gpu_source *source)
{
	free(source);
}

struct gpu_source *none_open(void)
{
	static const struct gpu_source_kind kind = { "none", read_none, no_devices, close_none,
		                                     false };
	struct gpu_source *source = NEW(struct gpu_source);

	source->kind = &kind;
	return source;
}

void gpu_source_close(struct gpu_source *source)
{
	if (source)
		source->kind->close(source);
}
