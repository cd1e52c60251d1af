/* queue_case.c - reads a case of queues.json */
#include "sim/scenario/queue_case.h"

#include <stdio.h>
#include <string.h>

#include "sim/world/reading.h"

/* Bounds that keep all sums far from the end of 64 bits. */
#define COUNT_MAX INT64_C(100000)
#define CORES_MAX INT64_C(1000000000)
#define BYTES_MAX (INT64_C(1) << 50)
#define MEGABYTE INT64_C(1000000) /* what the cases mean by MB of host memory */
#define MEGABYTES_MAX (BYTES_MAX / MEGABYTE)
#define PRIORITY_MAX INT64_C(1000000)
#define TENANT_PRIORITY INT64_C(100) /* where a case gives none */

const struct words task_status_words = WORDS("pending", "running", "releasing", "stuckinreleasing");

static void *new_list(struct queue_case *queue_case, int64_t count, size_t size)
{
	size_t bytes = (size_t)count * size;
	void *list = arena_alloc(&queue_case->arena, bytes);
	if (bytes > 0)
		memset(list, 0, bytes);
	return list;
}

static int64_t find_tenant(const struct queue_case *queue_case, const char *name)
{
	for (int64_t i = 0; i < queue_case->tenant_count; i++) {
		if (strcmp(queue_case->tenants[i].name, name) == 0)
			return queue_case->tenants[i].id;
	}
	return 0;
}

static bool has_node(const struct queue_case *queue_case, const char *name)
{
	for (int64_t i = 0; i < queue_case->node_count; i++) {
		if (strcmp(queue_case->nodes[i].record.name, name) == 0)
			return true;
	}
	return false;
}

static int64_t read_megabytes_or(struct reading *reading, const json_t *json, const char *name,
                                 int64_t otherwise)
{
	int64_t mb = read_number_or(reading, json, name, 0, MEGABYTES_MAX, -1);
	return mb < 0 ? otherwise : mb * MEGABYTE;
}

static struct tenant_record read_tenant(struct reading *reading, const json_t *json, int64_t id)
{
	return (struct tenant_record){
		.id = id,
		.name = read_text(reading, json, "name"),
		.limit_gpu = read_thousandths_or(reading, json, "limit_gpus", COUNT_MAX, UNLIMITED),
		.limit_cpu =
		    read_thousandths_or(reading, json, "limit_cpu_cores", CORES_MAX, UNLIMITED),
		.limit_host = read_megabytes_or(reading, json, "limit_memory_mb", UNLIMITED),
		.limit_gpu_memory = UNLIMITED,
		.limit_jobs = UNLIMITED,
		.quota_gpu = read_thousandths_or(reading, json, "quota_gpus", COUNT_MAX, UNLIMITED),
		.quota_cpu =
		    read_thousandths_or(reading, json, "quota_cpu_cores", CORES_MAX, UNLIMITED),
		.quota_host = read_megabytes_or(reading, json, "quota_memory_mb", UNLIMITED),
		.weight =
		    read_thousandths_or(reading, json, "over_quota_weight", PRIORITY_MAX, 1000),
		.priority = read_number_or(reading, json, "priority", -PRIORITY_MAX, PRIORITY_MAX,
		                           TENANT_PRIORITY),
		.allow_preemption = true,
		.can_preempt_others = true,
		.max_preemptions = UNLIMITED,
		.queue_max = UNLIMITED,
		.budget_per_month = UNLIMITED,
		.metered_ms = CASE_BEGIN_MS,
	};
}

static void read_tenants(struct reading *reading, struct queue_case *to, const json_t *json)
{
	const json_t *list = read_list(reading, json, "tenants");
	int64_t count = read_size(reading, list, "tenants", COUNT_MAX);
	to->tenants = new_list(to, count, sizeof(*to->tenants));
	for (int64_t i = 0; i < count; i++) {
		reading_at(reading, "tenants[%lld]", (long long)i);
		to->tenants[i] = read_tenant(reading, json_array_get(list, (size_t)i), i + 1);
		if (find_tenant(to, to->tenants[i].name))
			reading_refuse(reading, "there are two of the name '%s'",
			               to->tenants[i].name);
		to->tenant_count++;
	}
	/* A parent may come after its children. */
	for (int64_t i = 0; i < count; i++) {
		const json_t *tenant = json_array_get(list, (size_t)i);
		reading_at(reading, "tenants[%lld]", (long long)i);
		const char *parent = read_text_or(reading, tenant, "parent", NULL);
		if (!parent)
			continue;
		to->tenants[i].parent_id = find_tenant(to, parent);
		if (!to->tenants[i].parent_id)
			reading_refuse(reading, "parent '%s' is not a tenant of the case", parent);
	}
}

static struct case_node read_node(struct reading *reading, const json_t *json, int64_t id)
{
	return (struct case_node){
		.record = {
			.id = id,
			.name = read_text(reading, json, "name"),
			.boot = "1",
			.cpu_milli = read_number(reading, json, "cpu_cores", 0, CORES_MAX) * 1000,
			.host_bytes = read_number(reading, json, "memory_bytes", 0, BYTES_MAX),
			.state = NODE_ONLINE,
			.reported = true,
		},
		.gpu_count = read_number(reading, json, "gpus", 0, GPUS_PER_NODE_MAX),
		.gpu_memory_mib = read_number(reading, json, "gpu_memory_mb", 1, BYTES_MAX),
	};
}

static void read_nodes(struct reading *reading, struct queue_case *to, const json_t *json)
{
	reading_at(reading, "%s", "");
	const json_t *list = read_list(reading, json, "nodes");
	int64_t count = read_size(reading, list, "nodes", COUNT_MAX);
	to->nodes = new_list(to, count, sizeof(*to->nodes));
	for (int64_t i = 0; i < count; i++) {
		reading_at(reading, "nodes[%lld]", (long long)i);
		struct case_node node = read_node(reading, json_array_get(list, (size_t)i), i + 1);
		node.first_gpu_id = to->gpu_count + 1;
		to->gpu_count += node.gpu_count;
		if (has_node(to, node.record.name))
			reading_refuse(reading, "there are two of the name '%s'", node.record.name);
		to->nodes[to->node_count++] = node;
	}
}

static enum task_status read_status(struct reading *reading, const json_t *json, const char *name)
{
	const char *text = read_text(reading, json, name);
	for (int i = 0; i < task_status_words.count; i++) {
		if (strcmp(text, task_status_words.at[i]) == 0)
			return (enum task_status)i;
	}
	reading_refuse(reading,
	               "%s is '%s', expected pending, running, releasing or stuckinreleasing", name,
	               text);
	return STATUS_PENDING;
}

static void read_groups(struct reading *reading, const json_t *json, struct standing *standing)
{
	if (!read_has(json, "gpu_groups"))
		return;
	const json_t *list = read_list(reading, json, "gpu_groups");
	int64_t count = read_size(reading, list, "gpu_groups", PARTS_MAX);
	for (int64_t i = 0; i < count; i++) {
		const char *group = json_string_value(json_array_get(list, (size_t)i));
		if (!group)
			reading_refuse(reading, "gpu_groups[%lld] is not a text", (long long)i);
		standing->groups[standing->group_count++] = group ? group : "";
	}
}

/* `status` is the name of the field that says how it stands. */
static struct standing read_standing(struct reading *reading, const struct queue_case *queue_case,
                                     const json_t *json, const char *status)
{
	struct standing standing = {
		.status = read_status(reading, json, status),
		.node = read_text_or(reading, json, "node", NULL),
	};
	if (standing.node && !has_node(queue_case, standing.node))
		reading_refuse(reading, "node '%s' is not a node of the case", standing.node);
	read_groups(reading, json, &standing);
	return standing;
}

static void read_request(struct reading *reading, const json_t *json, struct job_record *record)
{
	int64_t gpus = read_number_or(reading, json, "gpus", 0, PARTS_MAX, 0);
	int64_t fraction = read_thousandths_or(reading, json, "gpu_fraction", 1, 0);
	int64_t memory = read_number_or(reading, json, "gpu_memory_mb", 1, BYTES_MAX, 0);

	if (read_has(json, "gpu_fraction") && read_has(json, "gpu_memory_mb"))
		reading_refuse(reading, "has both gpu_fraction and gpu_memory_mb");
	if (read_has(json, "gpu_fraction") && fraction == 0)
		reading_refuse(reading, "gpu_fraction is less than a thousandth");
	record->gpu_kind = fraction ? GPU_FRACTION
	                   : memory ? GPU_MEMORY
	                   : gpus   ? GPU_WHOLE
	                            : GPU_NONE;
	bool shares = fraction || memory;
	record->gpu_count = (int32_t)(shares ? max64(gpus, 1) : gpus);
	record->fraction = (int32_t)fraction;
	record->memory_mib = memory;
	record->cpu_milli = read_number_or(reading, json, "cpu_cores", 0, CORES_MAX, 0) * 1000;
	record->host_bytes = read_number_or(reading, json, "memory_bytes", 0, BYTES_MAX, 0);
}

/* Puts it behind those of its priority or a higher one. */
static void insert_task(struct case_task *tasks, int64_t count, const struct case_task *task)
{
	int64_t at = count;
	for (; at > 0 && tasks[at - 1].priority < task->priority; at--)
		tasks[at] = tasks[at - 1];
	tasks[at] = *task;
}

static bool holds_memory(const struct case_task *task)
{
	return task->given.status != STATUS_PENDING;
}

static bool names_one_twice(const struct standing *standing)
{
	for (int i = 1; i < standing->group_count; i++) {
		for (int j = 0; j < i; j++) {
			if (strcmp(standing->groups[i], standing->groups[j]) == 0)
				return true;
		}
	}
	return false;
}

static void check_given(struct reading *reading, const struct case_job *job,
                        const struct case_task *task)
{
	const struct standing *given = &task->given;
	if (!holds_memory(task))
		return;
	if (!given->node)
		reading_refuse(reading, "is %s and has no node",
		               word_of(&task_status_words, given->status));
	if (given->group_count > job->record.gpu_count)
		reading_refuse(reading, "has %d gpu_groups and asks for %d GPUs",
		               given->group_count, (int)job->record.gpu_count);
	if (names_one_twice(given))
		reading_refuse(reading, "has a group twice in gpu_groups");
}

static void read_tasks(struct reading *reading, struct queue_case *queue_case, struct case_job *job,
                       const json_t *list)
{
	job->record.tasks = read_size(reading, list, "tasks", TASKS_MAX);
	job->tasks = new_list(queue_case, job->record.tasks, sizeof(*job->tasks));
	for (int64_t i = 0; i < job->record.tasks; i++) {
		const json_t *json = json_array_get(list, (size_t)i);
		reading_at(reading, "jobs[%lld].tasks[%lld]", (long long)(job->record.id - 1),
		           (long long)i);
		struct case_task task = {
			.index = i,
			.priority = read_number_or(reading, json, "priority", -PRIORITY_MAX,
			                           PRIORITY_MAX, 0),
			.given = read_standing(reading, queue_case, json, "state"),
		};
		check_given(reading, job, &task);
		insert_task(job->tasks, i, &task);
	}
}

static void read_job(struct reading *reading, struct queue_case *queue_case, struct case_job *job,
                     const json_t *json)
{
	const char *tenant = read_text(reading, json, "tenant");
	const json_t *tasks = read_list(reading, json, "tasks");
	int64_t task_count = read_size(reading, tasks, "tasks", TASKS_MAX);
	if (tasks && task_count == 0)
		reading_refuse(reading, "tasks is empty");
	job->being_deleted = read_flag_or(reading, json, "being_deleted", false);
	job->record.name = read_text(reading, json, "name");
	job->record.tenant_id = find_tenant(queue_case, tenant);
	if (!job->record.tenant_id)
		reading_refuse(reading, "tenant '%s' is not a tenant of the case", tenant);
	job->record.priority = read_number(reading, json, "priority", -PRIORITY_MAX, PRIORITY_MAX);
	job->record.preemptible = read_flag_or(reading, json, "preemptible", true);
	job->record.min_available =
	    read_number_or(reading, json, "min_available", 1, max64(task_count, 1), task_count);
	job->record.submitted_ms = CASE_BEGIN_MS;
	read_request(reading, json, &job->record);
	read_tasks(reading, queue_case, job, tasks);
}

static void read_jobs(struct reading *reading, struct queue_case *to, const json_t *json)
{
	reading_at(reading, "%s", "");
	const json_t *list = read_list(reading, json, "jobs");
	int64_t count = read_size(reading, list, "jobs", COUNT_MAX);
	to->jobs = new_list(to, count, sizeof(*to->jobs));
	for (int64_t i = 0; i < count; i++) {
		reading_at(reading, "jobs[%lld]", (long long)i);
		struct case_job *job = &to->jobs[to->job_count++];
		job->record.id = i + 1;
		read_job(reading, to, job, json_array_get(list, (size_t)i));
		for (int64_t t = 0; t < job->record.tasks; t++) {
			if (holds_memory(&job->tasks[t]))
				job->tasks[t].reservation_id = ++to->reservation_count;
		}
	}
}

/* True if `key` is what expectations call the task, or (task NULL) the job. */
static bool is_called(const char *key, const struct case_job *job, const struct case_task *task)
{
	size_t length = strlen(job->record.name);
	if (strncmp(key, job->record.name, length) != 0)
		return false;
	char number[32] = "";
	if (task)
		snprintf(number, sizeof(number), "-%lld", (long long)task->index);
	return strcmp(key + length, number) == 0;
}

/* Tells the tasks that `key` names what is expected of them: all of a job, or
 * one. False if there are none. */
static bool expect(struct queue_case *queue_case, const char *key, bool of_jobs,
                   const struct standing *standing)
{
	bool found = false;
	for (int64_t j = 0; j < queue_case->job_count; j++) {
		struct case_job *job = &queue_case->jobs[j];
		for (int64_t t = 0; t < job->record.tasks; t++) {
			struct case_task *task = &job->tasks[t];
			if (!is_called(key, job, of_jobs ? NULL : task))
				continue;
			task->expected = *standing;
			task->is_expected = true;
			found = true;
		}
	}
	return found;
}

static void read_expected(struct reading *reading, struct queue_case *queue_case,
                          const json_t *json, const char *name, bool of_jobs)
{
	reading_at(reading, "%s", "");
	json_t *expected = read_has(json, name) ? read_object(reading, json, name) : NULL;
	const char *key;
	json_t *value;
	json_object_foreach(expected, key, value)
	{
		reading_at(reading, "%s.%s", name, key);
		struct standing standing = read_standing(reading, queue_case, value, "status");
		if (expect(queue_case, key, of_jobs, &standing))
			continue;
		if (of_jobs)
			reading_refuse(reading, "is not a job of the case");
		else /* files of this kind have such slips, and those who wrote them pass over them
		      */
			fprintf(stderr, "note: %s: expect_tasks.%s names no task of the case\n",
			        queue_case->name, key);
	}
}

bool queue_case_read(struct queue_case *queue_case, const json_t *json, struct error *error)
{
	struct reading reading = { 0 };
	*queue_case = (struct queue_case){
		.name = read_text(&reading, json, "name"),
		.rounds = read_number(&reading, json, "rounds", 1, COUNT_MAX),
		.stable_rounds = read_number_or(&reading, json, "stable_rounds", 0, COUNT_MAX, 0),
	};
	read_tenants(&reading, queue_case, json);
	read_nodes(&reading, queue_case, json);
	read_jobs(&reading, queue_case, json);
	read_expected(&reading, queue_case, json, "expect_jobs", true);
	read_expected(&reading, queue_case, json, "expect_tasks", false);
	*error = reading.error;
	return !reading_failed(&reading);
}

void queue_case_free(struct queue_case *queue_case)
{
	arena_free(&queue_case->arena);
	*queue_case = (struct queue_case){ 0 };
}
