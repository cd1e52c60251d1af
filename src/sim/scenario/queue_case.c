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

static int64_t queue_case_find_tenant(const struct queue_case *queue_case, const char *name)
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

static int64_t read_megabytes_or(struct json_reader *reader, const char *name, int64_t otherwise)
{
	int64_t mb = json_get_integer(reader, name, 0, MEGABYTES_MAX, -1);
	return mb < 0 ? otherwise : mb * MEGABYTE;
}

static struct tenant_record queue_case_read_tenant(struct json_reader *reader, int64_t id)
{
	return (struct tenant_record){
		.id = id,
		.name = json_need_string(reader, "name"),
		.limit_gpu = read_thousandths_or(reader, "limit_gpus", COUNT_MAX, UNLIMITED),
		.limit_cpu = read_thousandths_or(reader, "limit_cpu_cores", CORES_MAX, UNLIMITED),
		.limit_host = read_megabytes_or(reader, "limit_memory_mb", UNLIMITED),
		.limit_gpu_memory = UNLIMITED,
		.limit_jobs = UNLIMITED,
		.quota_gpu = read_thousandths_or(reader, "quota_gpus", COUNT_MAX, UNLIMITED),
		.quota_cpu = read_thousandths_or(reader, "quota_cpu_cores", CORES_MAX, UNLIMITED),
		.quota_host = read_megabytes_or(reader, "quota_memory_mb", UNLIMITED),
		.weight = read_thousandths_or(reader, "over_quota_weight", PRIORITY_MAX, 1000),
		.priority = json_get_integer(reader, "priority", -PRIORITY_MAX, PRIORITY_MAX,
		                             TENANT_PRIORITY),
		.allow_preemption = true,
		.can_preempt_others = true,
		.max_preemptions = UNLIMITED,
		.queue_max = UNLIMITED,
		.budget_per_month = UNLIMITED,
		.metered_ms = CASE_BEGIN_MS,
	};
}

static void read_tenants(struct json_reader *reader, struct queue_case *to)
{
	const json_t *list = json_need_array(reader, "tenants", (size_t)COUNT_MAX);
	int64_t count = (int64_t)json_array_size(list);
	to->tenants = new_list(to, count, sizeof(*to->tenants));
	for (int64_t i = 0; i < count; i++) {
		json_reader_enter(reader, json_array_get(list, (size_t)i), "tenants[%lld].",
		                  (long long)i);
		to->tenants[i] = queue_case_read_tenant(reader, i + 1);
		if (queue_case_find_tenant(to, to->tenants[i].name))
			json_fail(reader, "name", "'%s' is used twice", to->tenants[i].name);
		to->tenant_count++;
	}
	/* A parent may come after its children. */
	for (int64_t i = 0; i < count; i++) {
		json_reader_enter(reader, json_array_get(list, (size_t)i), "tenants[%lld].",
		                  (long long)i);
		const char *parent = json_get_string(reader, "parent", NULL);
		if (!parent)
			continue;
		to->tenants[i].parent_id = queue_case_find_tenant(to, parent);
		if (!to->tenants[i].parent_id)
			json_fail(reader, "parent", "'%s' is not a tenant of the case", parent);
	}
}

static struct case_node queue_case_read_node(struct json_reader *reader, int64_t id)
{
	return (struct case_node){
		.record = {
			.id = id,
			.name = json_need_string(reader, "name"),
			.boot = "1",
			.cpu_milli = json_need_integer(reader, "cpu_cores", 0, CORES_MAX) * 1000,
			.host_bytes = json_need_integer(reader, "memory_bytes", 0, BYTES_MAX),
			.state = NODE_ONLINE,
			.reported = true,
		},
		.gpu_count = json_need_integer(reader, "gpus", 0, GPUS_PER_NODE_MAX),
		.gpu_memory_mib = json_need_integer(reader, "gpu_memory_mb", 1, BYTES_MAX),
	};
}

static void read_nodes(struct json_reader *reader, struct queue_case *to, const json_t *json)
{
	json_reader_enter(reader, json, "%s", "");
	const json_t *list = json_need_array(reader, "nodes", (size_t)COUNT_MAX);
	int64_t count = (int64_t)json_array_size(list);
	to->nodes = new_list(to, count, sizeof(*to->nodes));
	for (int64_t i = 0; i < count; i++) {
		json_reader_enter(reader, json_array_get(list, (size_t)i), "nodes[%lld].",
		                  (long long)i);
		struct case_node node = queue_case_read_node(reader, i + 1);
		node.first_gpu_id = to->gpu_count + 1;
		to->gpu_count += node.gpu_count;
		if (has_node(to, node.record.name))
			json_fail(reader, "name", "'%s' is used twice", node.record.name);
		to->nodes[to->node_count++] = node;
	}
}

static void read_groups(struct json_reader *reader, struct standing *standing)
{
	if (!json_has(reader, "gpu_groups"))
		return;
	const json_t *list = json_need_array(reader, "gpu_groups", (size_t)PARTS_MAX);
	int64_t count = (int64_t)json_array_size(list);
	for (int64_t i = 0; i < count; i++) {
		const char *group = json_string_value(json_array_get(list, (size_t)i));
		if (!group)
			json_fail(reader, "gpu_groups", "must be an array of strings");
		standing->groups[standing->group_count++] = group ? group : "";
	}
}

/* `status` is the name of the field that says how it stands. */
static struct standing read_standing(struct json_reader *reader,
                                     const struct queue_case *queue_case, const char *status)
{
	struct standing standing = {
		.status = (enum task_status)read_word(reader, status, &task_status_words),
		.node = json_get_string(reader, "node", NULL),
	};
	if (standing.node && !has_node(queue_case, standing.node))
		json_fail(reader, "node", "'%s' is not a node of the case", standing.node);
	read_groups(reader, &standing);
	return standing;
}

static void read_request(struct json_reader *reader, struct job_record *record)
{
	int64_t gpus = json_get_integer(reader, "gpus", 0, PARTS_MAX, 0);
	int64_t fraction = read_thousandths_or(reader, "gpu_fraction", 1, 0);
	int64_t memory = json_get_integer(reader, "gpu_memory_mb", 1, BYTES_MAX, 0);

	if (json_has(reader, "gpu_fraction") && json_has(reader, "gpu_memory_mb"))
		json_fail(reader, "gpu_fraction", "and gpu_memory_mb exclude each other");
	if (json_has(reader, "gpu_fraction") && fraction == 0)
		json_fail(reader, "gpu_fraction", "is less than a thousandth");
	record->gpu_kind = fraction ? GPU_FRACTION
	                   : memory ? GPU_MEMORY
	                   : gpus   ? GPU_WHOLE
	                            : GPU_NONE;
	bool shares = fraction || memory;
	record->gpu_count = (int32_t)(shares ? max64(gpus, 1) : gpus);
	record->fraction = (int32_t)fraction;
	record->memory_mib = memory;
	record->cpu_milli = json_get_integer(reader, "cpu_cores", 0, CORES_MAX, 0) * 1000;
	record->host_bytes = json_get_integer(reader, "memory_bytes", 0, BYTES_MAX, 0);
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

static void check_given(struct json_reader *reader, const struct case_job *job,
                        const struct case_task *task)
{
	const struct standing *given = &task->given;
	if (!holds_memory(task))
		return;
	if (!given->node)
		json_fail(reader, "node", "is missing, and the task is %s",
		          word_of(&task_status_words, given->status));
	if (given->group_count > job->record.gpu_count)
		json_fail(reader, "gpu_groups", "has %d entries, and the job requests %d GPUs",
		          given->group_count, (int)job->record.gpu_count);
	if (names_one_twice(given))
		json_fail(reader, "gpu_groups", "has an entry twice");
}

static void read_tasks(struct json_reader *reader, struct queue_case *queue_case,
                       struct case_job *job, const json_t *list)
{
	job->record.tasks = (int64_t)json_array_size(list);
	job->tasks = new_list(queue_case, job->record.tasks, sizeof(*job->tasks));
	for (int64_t i = 0; i < job->record.tasks; i++) {
		json_reader_enter(reader, json_array_get(list, (size_t)i),
		                  "jobs[%lld].tasks[%lld].", (long long)(job->record.id - 1),
		                  (long long)i);
		struct case_task task = {
			.index = i,
			.priority =
			    json_get_integer(reader, "priority", -PRIORITY_MAX, PRIORITY_MAX, 0),
			.given = read_standing(reader, queue_case, "state"),
		};
		check_given(reader, job, &task);
		insert_task(job->tasks, i, &task);
	}
}

static void read_job(struct json_reader *reader, struct queue_case *queue_case,
                     struct case_job *job)
{
	const char *tenant = json_need_string(reader, "tenant");
	const json_t *tasks = json_need_array(reader, "tasks", (size_t)TASKS_MAX);
	int64_t task_count = (int64_t)json_array_size(tasks);
	if (tasks && task_count == 0)
		json_fail(reader, "tasks", "is empty");
	job->being_deleted = json_get_flag(reader, "being_deleted", false);
	job->record.name = json_need_string(reader, "name");
	job->record.tenant_id = queue_case_find_tenant(queue_case, tenant);
	if (!job->record.tenant_id)
		json_fail(reader, "tenant", "'%s' is not a tenant of the case", tenant);
	job->record.priority = json_need_integer(reader, "priority", -PRIORITY_MAX, PRIORITY_MAX);
	job->record.preemptible = json_get_flag(reader, "preemptible", true);
	job->record.min_available =
	    json_get_integer(reader, "min_available", 1, max64(task_count, 1), task_count);
	job->record.submitted_ms = CASE_BEGIN_MS;
	read_request(reader, &job->record);
	read_tasks(reader, queue_case, job, tasks);
}

static void read_jobs(struct json_reader *reader, struct queue_case *to, const json_t *json)
{
	json_reader_enter(reader, json, "%s", "");
	const json_t *list = json_need_array(reader, "jobs", (size_t)COUNT_MAX);
	int64_t count = (int64_t)json_array_size(list);
	to->jobs = new_list(to, count, sizeof(*to->jobs));
	for (int64_t i = 0; i < count; i++) {
		json_reader_enter(reader, json_array_get(list, (size_t)i), "jobs[%lld].",
		                  (long long)i);
		struct case_job *job = &to->jobs[to->job_count++];
		job->record.id = i + 1;
		read_job(reader, to, job);
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

static void read_expected(struct json_reader *reader, struct queue_case *queue_case,
                          const json_t *json, const char *name, bool of_jobs)
{
	json_reader_enter(reader, json, "%s", "");
	json_t *expected = (json_t *)json_get_object(reader, name);
	const char *key;
	json_t *value;
	json_object_foreach(expected, key, value)
	{
		json_reader_enter(reader, value, "%s.%s.", name, key);
		struct standing standing = read_standing(reader, queue_case, "status");
		if (expect(queue_case, key, of_jobs, &standing))
			continue;
		json_reader_enter(reader, expected, "%s.", name);
		if (of_jobs)
			json_fail(reader, key, "is not a job of the case");
		else /* files of this kind have such slips, and those who wrote them pass over them
		      */
			fprintf(stderr, "note: %s: expect_tasks.%s names no task of the case\n",
			        queue_case->name, key);
	}
}

bool queue_case_read(struct queue_case *queue_case, const json_t *json, struct error *error)
{
	struct json_reader reader = json_reader_of(json, "", error);
	*queue_case = (struct queue_case){
		.name = json_need_string(&reader, "name"),
		.rounds = json_need_integer(&reader, "rounds", 1, COUNT_MAX),
		.stable_rounds = json_get_integer(&reader, "stable_rounds", 0, COUNT_MAX, 0),
	};
	read_tenants(&reader, queue_case);
	read_nodes(&reader, queue_case, json);
	read_jobs(&reader, queue_case, json);
	read_expected(&reader, queue_case, json, "expect_jobs", true);
	read_expected(&reader, queue_case, json, "expect_tasks", false);
	return !reader.failed;
}

void queue_case_free(struct queue_case *queue_case)
{
	arena_free(&queue_case->arena);
	*queue_case = (struct queue_case){ 0 };
}
