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
	json_error_t reason;

	if (text[strspn(text, " \t\n")] != '{')
		return read_pairs(text, error);
	json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &reason);
	if (!object)
		error_set(error, ERROR_INVALID, "the job is not JSON: %s", reason.text);
	return object;
}

static const char fields[] =
    "tenant name gpus memory_gib fraction tasks min_available split_gpus priority gpu_model "
    "cpu_cores preemptible duration_s";

static void refuse_unknown(struct reading *reading, const json_t *object)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		if (!read_is_listed(name, fields))
			reading_refuse(reading, "%s is not known; there are: %s", name, fields);
	}
}

static void fill(struct reading *reading, const json_t *object, struct whatif_job *job)
{
	struct job_record *record = &job->submit.job;
	int64_t gpus = read_number_or(reading, object, "gpus", 0, PARTS_MAX, 1);

	record->gpu_count = (int32_t)gpus;
	record->gpu_kind = gpus == 0 ? GPU_NONE : GPU_WHOLE;
	record->memory_mib = read_gib_or(reading, object, "memory_gib", ROUND_UP, 0);
	record->fraction = (int32_t)read_thousandths_or(reading, object, "fraction", WHOLE_GPU, 0);
	if (gpus > 0 && record->fraction > 0)
		record->gpu_kind = GPU_FRACTION;
	else if (gpus > 0 && record->memory_mib > 0)
		record->gpu_kind = GPU_MEMORY;
	record->tasks = read_number_or(reading, object, "tasks", 1, TASKS_MAX, 1);
	record->min_available = read_number_or(reading, object, "min_available", 0, TASKS_MAX, 0);
	record->split_gpus = read_number_or(reading, object, "split_gpus", 0, TASKS_MAX, 0);
	record->priority = read_number_or(reading, object, "priority", 0, INT32_MAX, 0);
	record->cpu_milli =
	    read_thousandths_or(reading, object, "cpu_cores", CPU_MILLI_MAX / 1000, 0);
	record->preemptible = read_flag_or(reading, object, "preemptible", false);
	job->duration_ms =
	    1000 * read_number_or(reading, object, "duration_s", 0, TIME_MS_MAX / 1000, 0);
	record->name = arena_string(&job->arena, read_text_or(reading, object, "name", "whatif"));
	record->gpu_models =
	    arena_string(&job->arena, read_text_or(reading, object, "gpu_model", ""));
	record->payload = record->node_labels = record->idempotency_key = "";
	snprintf(job->tenant, sizeof(job->tenant), "%s",
	         read_text_or(reading, object, "tenant", ""));
	job->submit.check_possible = true;
}

bool whatif_read_job(const char *text, struct whatif_job *job, struct error *error)
{
	struct reading reading = { 0 };

	*job = (struct whatif_job){ 0 };
	json_t *object = read_object_text(text, error);
	if (!object)
		return false;
	reading_at(&reading, "job");
	refuse_unknown(&reading, object);
	fill(&reading, object, job);
	json_decref(object);
	if (reading_failed(&reading))
		*error = reading.error;
	return !reading_failed(&reading);
}
