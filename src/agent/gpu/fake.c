/* fake.c - simulated GPUs: memory, temperature and power move as works on them run */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/gpu_source.h"
#include "agent/host/file.h"
#include "base/number.h"
#include "core/record/heat.h"

#define COOL_C 32
#define WARM_C 45       /* above COOL_C, when it does all it can */
#define SLOWDOWN_C 90   /* where the control file does not say another */
#define SETTLE_MS 20000 /* to come half of the way to its new temperature */
#define IDLE_MW 60000
#define BUSY_MW 340000
#define BUSY_UTILISATION 950

struct fake_gpu {
	char uuid[64];
	char *model;
	int64_t capacity_mib;
	int64_t heat_milli_c; /* above COOL_C */
	int64_t since_ms;
	/* As the control file says. */
	int64_t foreign_mib, lingering_mib, temperature_c, slowdown_c;
	bool unhealthy, absent;
};

struct fake_source {
	struct gpu_source source;
	struct fake_gpu *gpus;
	size_t count, capacity;
	char *control;
};

static bool fake_add_gpus(struct fake_source *fake, const char *node, const char *part,
                          struct error *error)
{
	char unit = 0, model[64] = "FAKE-GPU";
	int64_t count = 0, size = 0;
	int fields = sscanf(part, "%" SCNd64 "x%" SCNd64 "%c:%63s", &count, &size, &unit, model);

	if (fields < 3 || count < 1 || size < 1 || size > 4096 || (unit != 'G' && unit != 'M'))
		return error_set(error, ERROR_INVALID,
		                 "'%s' does not describe GPUs: write 8x80G, or 8x80G:A100", part);
	for (int64_t i = 0; i < count; i++) {
		if (fake->count >= GPUS_PER_NODE_MAX)
			return error_set(error, ERROR_INVALID, "a node has at most %d GPUs",
			                 GPUS_PER_NODE_MAX);
		array_reserve(fake->gpus, fake->capacity, fake->count + 1);
		struct fake_gpu *gpu = &fake->gpus[fake->count];
		*gpu = (struct fake_gpu){ .model = memory_text(model),
			                  .capacity_mib = unit == 'G' ? size * 1024 : size };
		snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-fake-%.40s-%zu", node, fake->count);
		fake->count++;
	}
	return true;
}

static struct fake_gpu *fake_find(struct fake_source *fake, const char *name)
{
	for (size_t i = 0; i < fake->count; i++) {
		char number[24];
		snprintf(number, sizeof(number), "%zu", i);
		if (strcmp(name, number) == 0 || strcmp(name, fake->gpus[i].uuid) == 0)
			return &fake->gpus[i];
	}
	return NULL;
}

static void take_line(struct fake_source *fake, const char *line)
{
	char name[64], what[32];
	int64_t value = 0;
	int fields = sscanf(line, "%63s %31s %" SCNd64, name, what, &value);
	struct fake_gpu *gpu = fields >= 2 ? fake_find(fake, name) : NULL;

	if (!gpu)
		return;
	if (strcmp(what, "foreign") == 0)
		gpu->foreign_mib = max64(value, 0);
	else if (strcmp(what, "lingers") == 0)
		gpu->lingering_mib = max64(value, 0);
	else if (strcmp(what, "temperature") == 0)
		gpu->temperature_c = value;
	else if (strcmp(what, "slowdown") == 0)
		gpu->slowdown_c = min64(max64(value, 0), HEAT_MOST_C);
	else if (strcmp(what, "unhealthy") == 0)
		gpu->unhealthy = true;
	else if (strcmp(what, "absent") == 0)
		gpu->absent = true;
}

static void read_control(struct fake_source *fake)
{
	struct buffer text = { 0 };
	char *rest = NULL;

	for (size_t i = 0; i < fake->count; i++) {
		struct fake_gpu *gpu = &fake->gpus[i];
		gpu->foreign_mib = gpu->lingering_mib = gpu->temperature_c = 0;
		gpu->slowdown_c = SLOWDOWN_C;
		gpu->unhealthy = gpu->absent = false;
	}
	if (file_read(fake->control, 65536, &text))
		for (char *line = strtok_r(text.data, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest))
			take_line(fake, line);
	buffer_free(&text);
}

/* Goes towards the temperature of what is done, and half of the way in SETTLE_MS. */
static void warm_up(struct fake_gpu *gpu, int64_t now_ms, int64_t utilisation)
{
	int64_t aim = utilisation * WARM_C;
	int64_t elapsed_ms = gpu->since_ms > 0 ? max64(now_ms - gpu->since_ms, 0) : 0;
	int64_t apart = aim - gpu->heat_milli_c;
	int64_t left = apart >= 0 ? decay(apart, elapsed_ms, SETTLE_MS)
	                          : -decay(-apart, elapsed_ms, SETTLE_MS);

	gpu->heat_milli_c = aim - left;
	gpu->since_ms = now_ms;
}

static void add_process(struct gpu_readings *readings, const struct fake_gpu *gpu, int64_t pid,
                        int64_t memory_mib)
{
	struct process_reading *process = gpu_readings_add_process(readings);

	process->uuid = gpu->uuid;
	process->pid = pid;
	process->memory_mib = memory_mib;
}

static void read_gpu(struct fake_gpu *gpu, int64_t place, int64_t now_ms,
                     const struct gpu_user *users, size_t user_count, struct gpu_readings *readings)
{
	int64_t used_mib = gpu->foreign_mib + gpu->lingering_mib, utilisation = 0;

	for (size_t i = 0; i < user_count; i++) {
		if (strcmp(users[i].uuid, gpu->uuid) != 0)
			continue;
		used_mib += users[i].memory_mib;
		utilisation += users[i].utilisation < 0 ? BUSY_UTILISATION : users[i].utilisation;
		add_process(readings, gpu, users[i].pid, users[i].memory_mib);
	}
	/* Pid 1 is nobody's task. */
	if (gpu->foreign_mib > 0)
		add_process(readings, gpu, 1, gpu->foreign_mib);
	utilisation = min64(utilisation, 1000);
	warm_up(gpu, now_ms, utilisation);

	struct gpu_reading *reading = gpu_readings_add(readings);
	reading->uuid = gpu->uuid;
	reading->model = gpu->model;
	reading->place = place;
	reading->capacity_mib = gpu->capacity_mib;
	reading->used_mib = min64(used_mib, gpu->capacity_mib);
	reading->temperature_c =
	    gpu->temperature_c > 0 ? gpu->temperature_c : COOL_C + gpu->heat_milli_c / 1000;
	reading->slowdown_c = gpu->slowdown_c;
	reading->power_mw = IDLE_MW + BUSY_MW * utilisation / 1000;
	reading->utilisation = utilisation;
	reading->healthy = !gpu->unhealthy;
}

static bool fake_read(struct gpu_source *source, int64_t now_ms, const struct gpu_user *users,
                      size_t user_count, struct gpu_readings *readings, struct error *error)
{
	struct fake_source *fake = (struct fake_source *)source;

	(void)error;
	gpu_readings_clear(readings);
	read_control(fake);
	for (size_t i = 0; i < fake->count; i++)
		if (!fake->gpus[i].absent)
			read_gpu(&fake->gpus[i], (int64_t)i, now_ms, users, user_count, readings);
	return true;
}

static void fake_devices(struct gpu_source *source, const char *uuid, struct buffer *rules)
{
	(void)source, (void)uuid, (void)rules;
}

static void fake_close(struct gpu_source *source)
{
	struct fake_source *fake = (struct fake_source *)source;

	for (size_t i = 0; i < fake->count; i++)
		free(fake->gpus[i].model);
	free(fake->gpus);
	free(fake->control);
	free(fake);
}

struct gpu_source *fake_open(const char *spec, const char *node, const char *control,
                             struct error *error)
{
	static const struct gpu_source_kind kind = { "fake", fake_read, fake_devices, fake_close,
		                                     false };
	struct fake_source *fake = NEW(struct fake_source);
	char *copy = memory_text(spec), *rest = NULL;
	bool good = true;

	fake->source.kind = &kind;
	fake->control = memory_text(control);
	for (char *part = strtok_r(copy, ",", &rest); part && good;
	     part = strtok_r(NULL, ",", &rest))
		good = fake_add_gpus(fake, node, part, error);
	if (good && fake->count == 0)
		good = error_set(error, ERROR_INVALID, "no GPUs are described: write 8x80G");
	free(copy);
	if (good)
		return &fake->source;
	fake_close(&fake->source);
	return NULL;
}
