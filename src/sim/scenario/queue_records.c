/* queue_records.c - the records of a queue case's cluster before its first round */
#include <stdio.h>
#include <string.h>

#include "sim/scenario/queue_case.h"

#define LATE_MS INT64_C(600000) /* how long what is stuck has been releasing */

/* Which GPUs of a node are taken, and by which group of tasks. */
struct node_use {
	const struct case_node *node;
	bool taken[GPUS_PER_NODE_MAX];
	const char *group[GPUS_PER_NODE_MAX]; /* NULL: none */
};

static void put_meta(const struct queue_case *queue_case, struct world *world)
{
	struct meta_record meta = {
		.id = 1,
		.now_ms = CASE_BEGIN_MS,
		.term = 1,
		.last_tenant_id = queue_case->tenant_count,
		.last_node_id = queue_case->node_count,
		.last_gpu_id = queue_case->gpu_count,
		.last_job_id = queue_case->job_count,
		.last_reservation_id = queue_case->reservation_count,
		.last_start = queue_case->job_count,
	};
	world_put(world, RECORD_META, &meta);
}

static void put_config(struct world *world)
{
	struct config_record config = config_default();
	config.min_runtime_ms = 0;
	config.gang_grace_ms = 0;
	config.move_any_job = true;
	world_put(world, RECORD_CONFIG, &config);
}

static void put_node(const struct case_node *node, struct world *world)
{
	world_put(world, RECORD_NODE, &node->record);
	for (int64_t i = 0; i < node->gpu_count; i++) {
		char uuid[256];
		snprintf(uuid, sizeof(uuid), "%.200s-gpu%lld", node->record.name, (long long)i);
		struct gpu_record gpu = {
			.id = node->first_gpu_id + i,
			.node_id = node->record.id,
			.uuid = uuid,
			.model = "gpu",
			.place = i,
			.capacity_mib = node->gpu_memory_mib,
			.aliases = 1,
			.healthy = true,
			.present = true,
		};
		world_put(world, RECORD_GPU, &gpu);
	}
}

/* The GPU of the group if it has one, or else a free one; -1 if there is none.
 * A task without groups gets GPUs that no group has. */
static int64_t take_gpu(struct node_use *use, const char *group)
{
	int64_t free_gpu = -1;
	for (int64_t i = use->node->gpu_count - 1; i >= 0; i--) {
		if (group && use->group[i] && strcmp(use->group[i], group) == 0)
			return i;
		if (!use->taken[i])
			free_gpu = i;
	}
	if (free_gpu >= 0) {
		use->taken[free_gpu] = true;
		use->group[free_gpu] = group;
	}
	return free_gpu;
}

/* What a task of the job takes of a GPU of this size. */
static void fill_part(const struct job_record *job, int64_t usable_mib, int64_t part[PART_WIDTH])
{
	if (job->gpu_kind == GPU_FRACTION) {
		part[PART_MIB] = muldiv_down(job->fraction, usable_mib, WHOLE_GPU);
		part[PART_SHARE] = job->fraction;
	} else if (job->gpu_kind == GPU_MEMORY) {
		part[PART_MIB] = job->memory_mib;
		part[PART_SHARE] =
		    min64(muldiv_up(job->memory_mib, WHOLE_GPU, usable_mib), WHOLE_GPU);
	} else {
		part[PART_MIB] = usable_mib;
		part[PART_SHARE] = WHOLE_GPU;
		part[PART_WHOLE] = 1;
	}
}

static bool put_reservation(const struct case_job *job, int64_t place, struct node_use *use,
                            struct world *world, struct error *error)
{
	const struct case_task *task = &job->tasks[place];
	const struct case_node *node = use->node;
	int64_t parts[PARTS_MAX][PART_WIDTH] = { 0 };
	for (int i = 0; i < job->record.gpu_count; i++) {
		const char *group = i < task->given.group_count ? task->given.groups[i] : NULL;
		int64_t gpu = take_gpu(use, group);
		if (gpu < 0)
			return error_set(error, ERROR_INVALID,
			                 "%s has no GPU left for task %s-%lld", node->record.name,
			                 job->record.name, (long long)task->index);
		parts[i][PART_GPU] = node->first_gpu_id + gpu;
		fill_part(&job->record, node->gpu_memory_mib, parts[i]);
	}
	bool runs = task->given.status == STATUS_RUNNING && !job->being_deleted;
	bool stuck = task->given.status == STATUS_STUCK;
	struct reservation_record reservation = {
		.id = task->reservation_id,
		.job_id = job->record.id,
		.task = place,
		.node_id = node->record.id,
		.phase = runs ? PHASE_LIVE : PHASE_RELEASING,
		.late = stuck,
		.requeue = !runs && !job->being_deleted,
		.cpu_milli = job->record.cpu_milli,
		.host_bytes = job->record.host_bytes,
		.since_ms = stuck ? CASE_BEGIN_MS - LATE_MS : CASE_BEGIN_MS,
		.parts = { &parts[0][0], job->record.gpu_count },
	};
	world_put(world, RECORD_RESERVATION, &reservation);
	return true;
}

/* Tasks in groups come first, so that the others find out what is left. */
static bool put_reservations(const struct queue_case *queue_case, struct node_use *use,
                             bool grouped, struct world *world, struct error *error)
{
	for (int64_t j = 0; j < queue_case->job_count; j++) {
		const struct case_job *job = &queue_case->jobs[j];
		for (int64_t t = 0; t < job->record.tasks; t++) {
			const struct case_task *task = &job->tasks[t];
			if (!task->reservation_id || (task->given.group_count > 0) != grouped)
				continue;
			if (strcmp(task->given.node, use->node->record.name) != 0)
				continue;
			if (!put_reservation(job, t, use, world, error))
				return false;
		}
	}
	return true;
}

static void put_task(const struct case_job *job, int64_t place, struct world *world)
{
	const struct case_task *task = &job->tasks[place];
	bool runs = task->given.status == STATUS_RUNNING && !job->being_deleted;
	struct task_record record = {
		.job_id = job->record.id,
		.place = place,
		.state = runs ? TASK_RUNNING : TASK_STOPPING,
		.reservation_id = task->reservation_id,
		.started_ms = CASE_BEGIN_MS,
	};
	world_put(world, RECORD_TASK, &record);
}

static int64_t count_given(const struct case_job *job, enum task_status status)
{
	int64_t count = 0;
	for (int64_t t = 0; t < job->record.tasks; t++)
		count += job->tasks[t].given.status == status;
	return count;
}

static enum job_state job_state_of(const struct case_job *job)
{
	int64_t running = count_given(job, STATUS_RUNNING);
	if (job->being_deleted)
		return JOB_CANCELLED;
	if (running > 0)
		return running >= job->record.min_available ? JOB_RUNNING : JOB_SCHEDULED;
	return count_given(job, STATUS_PENDING) < job->record.tasks ? JOB_PREEMPTED : JOB_PENDING;
}

/* A job that was started has the number of its place in the list, so that an
 * earlier one is the older one. */
static struct job_state_record case_state_of(const struct case_job *job)
{
	enum job_state state = job_state_of(job);
	bool started = state != JOB_PENDING;
	return (struct job_state_record){
		.id = job->record.id,
		.state = (int32_t)state,
		.queued_ms = CASE_BEGIN_MS,
		.start = started ? job->record.id : 0,
		.started_ms = started ? CASE_BEGIN_MS : 0,
		.completed_ms = state == JOB_CANCELLED ? CASE_BEGIN_MS : 0,
		.short_since_ms = state == JOB_SCHEDULED ? CASE_BEGIN_MS : 0,
	};
}

static void put_job(const struct case_job *job, struct world *world)
{
	struct job_state_record state = case_state_of(job);
	world_put(world, RECORD_JOB, &job->record);
	world_put(world, RECORD_JOB_STATE, &state);
	for (int64_t t = 0; t < job->record.tasks; t++) {
		if (job->tasks[t].reservation_id)
			put_task(job, t, world);
	}
}

bool queue_case_records(const struct queue_case *queue_case, struct world *world,
                        struct error *error)
{
	put_meta(queue_case, world);
	put_config(world);
	for (int64_t i = 0; i < queue_case->tenant_count; i++)
		world_put(world, RECORD_TENANT, &queue_case->tenants[i]);
	for (int64_t i = 0; i < queue_case->job_count; i++)
		put_job(&queue_case->jobs[i], world);
	for (int64_t i = 0; i < queue_case->node_count; i++) {
		struct node_use use = { .node = &queue_case->nodes[i] };
		put_node(use.node, world);
		if (!put_reservations(queue_case, &use, true, world, error) ||
		    !put_reservations(queue_case, &use, false, world, error))
			return false;
	}
	return true;
}
