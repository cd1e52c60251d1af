/* whatif_read.c - nodes and jobs that are not there, as people write them */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/whatif/whatif.h"
#include "sim/world/reading.h"

#define NODES_MOST 10000

bool whatif_read_nodes(const char *text, struct whatif_nodes *nodes, struct error *error)
{
	long long count, gpus, gib;
	int end = -1;

	*nodes = (struct whatif_nodes){ 0 };
	if (sscanf(text, "%lldx%lldx%63[^:]:%lldG%n", &count, &gpus, nodes->model, &gib, &end) !=
	        4 ||
	    end < 0 || text[end] != 0 || count < 1 || count > NODES_MOST || gpus < 1 ||
	    gpus > GPUS_PER_NODE_MAX || gib < 1 || gib > MIB_MAX / 1024)
		return error_set(
		    error, ERROR_INVALID,
		    "'%s' does not say which nodes to add: write NODESxGPUSxMODEL:GiBG, "
		    "such as 2x8xH100:80G",
		    text);
	nodes->count = count;
	nodes->gpus = gpus;
	nodes->memory_mib = gib * 1024;
	return true;
}

/* key=value,key=value as an object: what looks like a number is one. */
static json_t *read_pairs(const char *text, struct error *error)
{
	json_t *object = json_object();

	while (*text) {
		size_t size = strcspn(text, ","), name = strcspn(text, "=");
		char key[64], value[256], *end;
		if (name == 0 || name >= size || name >= sizeof(key) ||
		    size - name - 1 >= sizeof(value)) {
			error_set(error, ERROR_INVALID, "'%.*s' is not KEY=VALUE", (int)size, text);
			json_decref(object);
			return NULL;
		}
		snprintf(key, sizeof(key), "%.*s", (int)name, text);
		snprintf(value, sizeof(value), "%.*s", (int)(size - name - 1), text + name + 1);
		double number = strtod(value, &end);
		bool whole = strcspn(value, ".eExXnN") == strlen(value);
		if (*value == 0 || *end != 0)
			json_object_set_new(object, key, json_string(value));
		else if (whole)
			json_object_set_new(object, key, json_integer(strtoll(value, NULL, 10)));
		else
			json_object_set_new(object, key, json_real(number));
		text += size + (text[size] == ',');
	}
	return object;
}

static json_t *read_object_text(const char *text, struct error *error)
{
	if (text[strspn(text, " \t\n")] != '{')
		return read_pairs(text, error);
	return json_read(text_of(text), NULL, error);
}

static const char fields[] =
    "tenant name gpus memory_gib fraction tasks min_available split_gpus priority gpu_model "
    "cpu_cores preemptible duration_s";

static void whatif_read_refuse_unknown(struct json_reader *reader)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)reader->object, name, value)
	{
		if (!read_is_listed(name, fields))
			json_fail(reader, name, "is not known; there are: %s", fields);
	}
}

static void whatif_read_fill(struct json_reader *reader, struct whatif_job *job)
{
	struct job_record *record = &job->submit.job;
	int64_t gpus = json_get_integer(reader, "gpus", 0, PARTS_MAX, 1);

	record->gpu_count = (int32_t)gpus;
	record->gpu_kind = gpus == 0 ? GPU_NONE : GPU_WHOLE;
	record->memory_mib = read_gib_or(reader, "memory_gib", ROUND_UP, 0);
	record->fraction = (int32_t)read_thousandths_or(reader, "fraction", WHOLE_GPU, 0);
	if (gpus > 0 && record->fraction > 0)
		record->gpu_kind = GPU_FRACTION;
	else if (gpus > 0 && record->memory_mib > 0)
		record->gpu_kind = GPU_MEMORY;
	record->tasks = json_get_integer(reader, "tasks", 1, TASKS_MAX, 1);
	record->min_available = json_get_integer(reader, "min_available", 0, TASKS_MAX, 0);
	record->split_gpus = json_get_integer(reader, "split_gpus", 0, TASKS_MAX, 0);
	record->priority = json_get_integer(reader, "priority", 0, INT32_MAX, 0);
	record->cpu_milli = read_thousandths_or(reader, "cpu_cores", CPU_MILLI_MAX / 1000, 0);
	record->preemptible = json_get_flag(reader, "preemptible", false);
	job->duration_ms = 1000 * json_get_integer(reader, "duration_s", 0, TIME_MS_MAX / 1000, 0);
	record->name = arena_string(&job->arena, json_get_string(reader, "name", "whatif"));
	record->gpu_models = arena_string(&job->arena, json_get_string(reader, "gpu_model", ""));
	record->payload = record->node_labels = record->idempotency_key = "";
	snprintf(job->tenant, sizeof(job->tenant), "%s", json_get_string(reader, "tenant", ""));
	job->submit.check_possible = true;
}

bool whatif_read_job(const char *text, struct whatif_job *job, struct error *error)
{
	*job = (struct whatif_job){ 0 };
	json_t *object = read_object_text(text, error);
	if (!object)
		return false;
	struct json_reader reader = json_reader_of(object, "job.", error);
	whatif_read_refuse_unknown(&reader);
	whatif_read_fill(&reader, job);
	json_decref(object);
	return !reader.failed;
}
