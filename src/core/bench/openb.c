/* openb.c - the nodes and tasks of the openb trace, or some that are like them */
#include "core/bench/openb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)
#define LINE_MAX_BYTES 512
#define MODEL_MAX_BYTES 32

/* The trace does not say how much memory its GPUs have, nor what G2 and G3 are. */
static const struct model {
	const char *name;
	int64_t memory_mib;
} models[] = {
	{ "P100", 16280 }, { "T4", 15360 }, { "V100M16", 16384 }, { "V100M32", 32768 },
	{ "A10", 23028 },  { "G2", 24576 }, { "G3", 40960 },
};
#define MODEL_COUNT (sizeof(models) / sizeof(models[0]))

/* All nodes of the trace. */
static const struct {
	int times, gpus;
	const char *model;
	int64_t cpu_milli, host_mib;
} node_kinds[] = {
	{ 549, 8, "G2", 96000, 393216 },     { 387, 2, "T4", 104000, 524288 },
	{ 107, 2, "P100", 16000, 122880 },   { 39, 8, "G3", 128000, 786432 },
	{ 28, 4, "V100M16", 32000, 131072 }, { 22, 2, "P100", 64000, 262144 },
	{ 21, 8, "V100M32", 96000, 786432 }, { 19, 1, "V100M16", 8000, 32768 },
	{ 17, 4, "T4", 96000, 393216 },      { 9, 4, "V100M32", 48000, 376832 },
	{ 7, 8, "V100M16", 64000, 262144 },  { 3, 1, "P100", 8000, 61440 },
	{ 2, 2, "P100", 8000, 61440 },       { 2, 1, "A10", 128000, 1048576 },
	{ 1, 8, "V100M16", 82000, 344064 },
};
#define NODE_KIND_COUNT (sizeof(node_kinds) / sizeof(node_kinds[0]))

/* The most frequent kinds of tasks, and of those with several GPUs: 92% of all. */
static const struct {
	int times;
	struct openb_task task;
} task_kinds[] = {
	{ 1047, { 1, 810, 3152, 5600 } },   { 857, { 1, 1000, 11300, 49152 } },
	{ 534, { 1, 1000, 11400, 48128 } }, { 470, { 1, 1000, 3152, 5600 } },
	{ 388, { 1, 470, 11908, 47104 } },  { 364, { 0, 0, 12500, 57344 } },
	{ 360, { 1, 470, 8000, 30517 } },   { 284, { 0, 0, 32000, 49152 } },
	{ 255, { 1, 1000, 18708, 64512 } }, { 237, { 1, 650, 11908, 47104 } },
	{ 195, { 1, 1000, 9810, 41560 } },  { 163, { 0, 0, 8000, 30517 } },
	{ 158, { 1, 1000, 12000, 24576 } }, { 158, { 1, 1000, 15700, 58368 } },
	{ 153, { 1, 1000, 11908, 47104 } }, { 120, { 0, 0, 15400, 51200 } },
	{ 111, { 1, 320, 4000, 22888 } },   { 108, { 1, 1000, 16000, 32768 } },
	{ 104, { 1, 1000, 8000, 16384 } },  { 104, { 1, 1000, 4000, 24576 } },
	{ 99, { 1, 1000, 12000, 16384 } },  { 95, { 0, 0, 16500, 51200 } },
	{ 93, { 1, 1000, 14200, 58368 } },  { 84, { 1, 230, 4000, 30517 } },
	{ 84, { 1, 1000, 24200, 93184 } },  { 78, { 1, 320, 4000, 15258 } },
	{ 75, { 1, 590, 3152, 5600 } },     { 72, { 1, 320, 8000, 30517 } },
	{ 72, { 1, 550, 4152, 10600 } },    { 65, { 1, 1000, 11400, 77824 } },
	{ 55, { 1, 1000, 8000, 32768 } },   { 53, { 1, 160, 4000, 15258 } },
	{ 51, { 1, 460, 6000, 6144 } },     { 51, { 1, 1000, 11900, 77824 } },
	{ 45, { 1, 370, 4152, 10600 } },    { 44, { 1, 1000, 12000, 15360 } },
	{ 43, { 1, 320, 4000, 30517 } },    { 41, { 1, 1000, 8200, 33792 } },
	{ 40, { 1, 1000, 4000, 31250 } },   { 36, { 1, 1000, 15200, 80896 } },
	{ 18, { 8, 1000, 88000, 327680 } }, { 18, { 8, 1000, 64200, 263168 } },
	{ 9, { 4, 1000, 32200, 132096 } },  { 7, { 2, 1000, 16200, 66560 } },
	{ 3, { 8, 1000, 120000, 737280 } }, { 3, { 2, 1000, 6000, 65536 } },
};
#define TASK_KIND_COUNT (sizeof(task_kinds) / sizeof(task_kinds[0]))

static bool openb_add_node(struct openb *openb, int gpus, const char *name, int64_t cpu_milli,
                           int64_t host_mib)
{
	size_t model = 0;
	while (model < MODEL_COUNT && strcmp(models[model].name, name) != 0)
		model++;
	if (model == MODEL_COUNT || gpus < 0 || gpus > PARTS_MAX)
		return false;
	array_reserve(openb->nodes, openb->node_capacity, openb->node_count + 1);
	openb->nodes[openb->node_count++] = (struct node_kind){
		.gpus = gpus,
		.model = models[model].name,
		.memory_mib = models[model].memory_mib,
		.cpu_milli = cpu_milli,
		.host_bytes = host_mib * MIB,
	};
	return true;
}

static void add_task(struct openb *openb, struct openb_task task)
{
	array_reserve(openb->tasks, openb->task_capacity, openb->task_count + 1);
	openb->tasks[openb->task_count++] = task;
}

/* sn,cpu_milli,memory_mib,gpu,model */
static bool openb_read_node(struct openb *openb, const char *line)
{
	long long cpu_milli, host_mib;
	int gpus;
	char model[MODEL_MAX_BYTES];
	int read =
	    sscanf(line, "%*[^,],%lld,%lld,%d,%31[^,\r\n]", &cpu_milli, &host_mib, &gpus, model);
	return read == 4 && openb_add_node(openb, gpus, model, cpu_milli, host_mib);
}

/* name,cpu_milli,memory_mib,num_gpu,gpu_milli,... */
static bool read_task(struct openb *openb, const char *line)
{
	long long cpu_milli, host_mib;
	struct openb_task task;
	int read =
	    sscanf(line, "%*[^,],%lld,%lld,%d,%d", &cpu_milli, &host_mib, &task.gpus, &task.milli);
	if (read != 4 || task.gpus < 0 || task.gpus > PARTS_MAX)
		return false;
	task.cpu_milli = cpu_milli;
	task.host_mib = host_mib;
	add_task(openb, task);
	return true;
}

/* False if there is no such file. */
static bool openb_read_file(struct openb *openb, const char *folder, const char *name,
                            bool (*read_line)(struct openb *openb, const char *line))
{
	char path[4096], line[LINE_MAX_BYTES];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "r");
	if (!file)
		return false;
	for (int number = 1; fgets(line, sizeof(line), file); number++) {
		if (number > 1 && !read_line(openb, line))
			panic("%s:%d: not as the trace should be", path, number);
	}
	fclose(file);
	return true;
}

static void make_up(struct openb *openb)
{
	for (size_t i = 0; i < NODE_KIND_COUNT; i++) {
		for (int j = 0; j < node_kinds[i].times; j++)
			openb_add_node(openb, node_kinds[i].gpus, node_kinds[i].model,
			               node_kinds[i].cpu_milli, node_kinds[i].host_mib);
	}
	for (size_t i = 0; i < TASK_KIND_COUNT; i++) {
		for (int j = 0; j < task_kinds[i].times; j++)
			add_task(openb, task_kinds[i].task);
	}
}

void openb_read(struct openb *openb, const char *folder)
{
	*openb = (struct openb){ 0 };
	openb->from_trace =
	    openb_read_file(openb, folder, "openb_node_list_gpu_node.csv", openb_read_node) &&
	    openb_read_file(openb, folder, "openb_pod_list_default.csv", read_task);
	if (!openb->from_trace) {
		openb->node_count = 0;
		make_up(openb);
	}
}

void openb_free(struct openb *openb)
{
	free(openb->nodes);
	free(openb->tasks);
	*openb = (struct openb){ 0 };
}
