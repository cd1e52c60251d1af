/* job_view.c - a job as people read it */
#include "api/job/job_view.h"

#include "api/job/job_payload.h"
#include "api/job/use_view.h"
#include "api/text/ids.h"
#include "api/text/times.h"

#define MIB_BYTES INT64_C(1048576)

/* Whole GPUs of at least so much memory and a part of so much are written with the same
 * numbers: this tells them apart. */
static const char *sharing_of(const struct job_record *job)
{
	enum gpu_kind kind =
	    job->gpu_kind == GPU_UNEVEN ? GPU_MEMORY : (enum gpu_kind)job->gpu_kind;
	return word_of(&gpu_kind_words, kind);
}

static void write_gpus(struct json_writer *json, const struct job_record *job)
{
	json_put_string(json, "gpu_sharing", sharing_of(job));
	json_put_integer(json, "gpu_count",
	                 job->split_gpus > 0         ? job->split_gpus
	                 : job->gpu_kind == GPU_NONE ? 0
	                                             : job->gpu_count);
	if (job->gpu_kind == GPU_UNEVEN) {
		json_open_array(json, "gpu_memory_mb");
		for (int64_t i = 0; i < job->uneven.count; i++)
			json_put_integer(json, NULL, job->uneven.at[i]);
		json_close(json);
	} else {
		json_put_integer(json, "gpu_memory_mb", job->memory_mib);
	}
	if (job->gpu_kind == GPU_FRACTION)
		json_put_decimal(json, "gpu_fraction", job->fraction, 3);
	else
		json_put_null(json, "gpu_fraction");
	json_put_decimal(json, "cpu_cores", job->cpu_milli, 3);
	json_put_integer(json, "memory_mb", job->host_bytes / MIB_BYTES);
}

static void write_depends(struct json_writer *json, const struct job_record *job)
{
	json_open_array(json, "depends_on");
	for (int64_t i = 0; i < job->depends.count; i++) {
		json_open_object(json, NULL);
		json_put_id(json, "job", ID_JOB, job->depends.at[2 * i]);
		json_put_string(json, "condition",
		                job->depends.at[2 * i + 1] == AFTER_ANY ? "any" : "success");
		json_close(json);
	}
	json_close(json);
}

/* "key=value" pairs, separated by newlines, as an object. */
static void write_labels(struct json_writer *json, const char *key, const char *labels,
                         struct arena *arena)
{
	struct text rest = text_of(labels), pair;
	json_open_object(json, key);
	while (text_next(&rest, '\n', &pair)) {
		const char *equals = memchr(pair.data, '=', pair.size);
		if (!equals)
			continue;
		size_t size = (size_t)(equals - pair.data);
		char *name = arena_alloc(arena, size + 1);
		memcpy(name, pair.data, size);
		name[size] = '\0';
		json_put_text(json, name, text_from(pair, size + 1));
	}
	json_close(json);
}

static void write_array(struct json_writer *json, const struct job_record *job)
{
	if (job->array_id == 0)
		return;
	json_put_id(json, "array_id", ID_JOB, job->array_id);
	json_put_integer(json, "array_index", job->array_index);
	if (job->array_limit > 0)
		json_put_integer(json, "array_limit", job->array_limit);
}

static void write_minutes(struct json_writer *json, const char *name, int64_t time_ms)
{
	if (time_ms > 0)
		json_put_decimal(json, name, time_ms / 60, 3);
	else
		json_put_null(json, name);
}

static void write_asked(struct json_writer *json, const struct job_view *view)
{
	const struct job_record *job = view->job;
	write_gpus(json, job);
	job_payload_show(json, job->payload, view->arena);
	json_put_flag(json, "gang_scheduling", job->split_gpus > 0 || job->min_available > 1);
	if (job->split_gpus == 0) {
		json_put_integer(json, "tasks", job->tasks);
		json_put_integer(json, "min_available", job->min_available);
	}
	json_put_flag(json, "preemptible", job->preemptible);
	write_minutes(json, "max_runtime_minutes", job->max_runtime_ms);
	write_minutes(json, "estimated_runtime_minutes", job->estimate_ms);
	json_put_moment(json, "deadline", job->deadline_ms);
	json_put_flag(json, "checkpoint_enabled", job->movable);
	json_put_string(json, "on_lease_loss", word_of(&lease_loss_words, job->lease_loss));
	write_depends(json, job);
	write_array(json, job);
	if (*job->gpu_models)
		json_put_string(json, "gpu_model", job->gpu_models);
	if (*job->node_labels)
		write_labels(json, "node_labels", job->node_labels, view->arena);
	if (job->closeness != CLOSE_ANY) {
		json_put_string(json, "closeness", word_of(&closeness_words, job->closeness));
		json_put_flag(json, "closeness_required", job->closeness_required);
	}
	if (*job->idempotency_key)
		json_put_string(json, "idempotency_key", job->idempotency_key);
}

/* The reservation that a task has a right by, or claims. */
static const struct reservation_record *reservation_of(const struct job_view *view,
                                                       const struct task_record *task)
{
	int64_t id = task->reservation_id > 0 ? task->reservation_id : task->claim_id;
	return id > 0 ? catalogue_get(view->catalogue, RECORD_RESERVATION, id, 0) : NULL;
}

static const char *node_name(const struct job_view *view, int64_t node_id)
{
	const struct node_record *node = catalogue_get(view->catalogue, RECORD_NODE, node_id, 0);
	return node ? node->name : NULL;
}

const char *job_view_node(const struct job_view *view)
{
	for (size_t i = 0; i < view->task_count; i++) {
		const struct reservation_record *reservation = reservation_of(view, view->tasks[i]);
		if (reservation)
			return node_name(view, reservation->node_id);
	}
	return view->past && view->past->node_id > 0 ? node_name(view, view->past->node_id) : NULL;
}

static const struct gpu_record *gpu_of(const struct job_view *view, int64_t gpu_id)
{
	return catalogue_get(view->catalogue, RECORD_GPU, gpu_id, 0);
}

static void write_past_gpus(struct json_writer *json, const struct job_view *view)
{
	for (size_t i = 0; i < view->past->gpu_count; i++) {
		const struct gpu_record *gpu = gpu_of(view, view->past->gpu_ids[i]);
		if (gpu)
			json_put_string(json, NULL, gpu->uuid);
	}
}

/* The UUIDs of all its GPUs, as scripts know them. */
static void write_gpu_names(struct json_writer *json, const struct job_view *view)
{
	json_open_array(json, "allocated_gpus");
	if (view->past)
		write_past_gpus(json, view);
	for (size_t i = 0; i < view->task_count; i++) {
		const struct reservation_record *reservation = reservation_of(view, view->tasks[i]);
		if (!reservation || reservation->phase == PHASE_CLAIM)
			continue;
		for (int64_t part = 0; part < reservation->parts.count; part++) {
			const struct gpu_record *gpu =
			    gpu_of(view, reservation->parts.at[part * PART_WIDTH + PART_GPU]);
			if (gpu)
				json_put_string(json, NULL, gpu->uuid);
		}
	}
	json_close(json);
}

static void write_part(struct json_writer *json, const struct job_view *view, const int64_t *part)
{
	const struct gpu_record *gpu = gpu_of(view, part[PART_GPU]);
	json_open_object(json, NULL);
	json_put_string(json, "uuid", gpu ? gpu->uuid : NULL);
	if (gpu)
		json_put_integer(json, "index", gpu->place);
	json_put_integer(json, "memory_mb", part[PART_MIB]);
	json_put_decimal(json, "share", part[PART_SHARE], 3);
	json_put_integer(json, "measured_memory_mb", part[PART_MEASURED]);
	json_put_flag(json, "whole", part[PART_WHOLE] != 0);
	json_close(json);
}

static void write_reservation(struct json_writer *json, const struct job_view *view,
                              const struct reservation_record *reservation)
{
	json_put_string(json, "node", node_name(view, reservation->node_id));
	json_put_string(json, "phase", word_of(&phase_words, reservation->phase));
	json_open_array(json, "gpus");
	for (int64_t i = 0; i < reservation->parts.count; i++)
		write_part(json, view, reservation->parts.at + i * PART_WIDTH);
	json_close(json);
}

/* Of all its runs, with the one that goes on as it was last measured. */
static struct task_use use_of(const struct job_view *view, const struct task_record *task)
{
	const struct reservation_record *reservation = reservation_of(view, task);
	struct task_use use = task_use_of(task), now;

	if (view->agents && reservation && task->state == TASK_RUNNING &&
	    agents_use(view->agents, node_name(view, reservation->node_id), reservation->id, &now))
		task_use_add(&use, &now);
	return use;
}

static void write_use(struct json_writer *json, const struct job_view *view)
{
	struct task_use sum = { 0 };

	for (size_t i = 0; i < view->task_count; i++) {
		struct task_use use = use_of(view, view->tasks[i]);
		task_use_add(&sum, &use);
	}
	use_view_write(json, view->task_count > 0 ? &sum : NULL);
}

static void write_tasks(struct json_writer *json, const struct job_view *view)
{
	json_open_array(json, "allocations");
	for (size_t i = 0; i < view->task_count; i++) {
		const struct task_record *task = view->tasks[i];
		const struct reservation_record *reservation = reservation_of(view, task);
		json_open_object(json, NULL);
		json_put_integer(json, "task", task->place);
		json_put_string(json, "state", word_of(&task_state_words, task->state));
		json_put_moment(json, "started_at", task->started_ms);
		json_put_moment(json, "ended_at", task->ended_ms);
		if (task->state == TASK_ENDED)
			json_put_integer(json, "exit_code", task->exit_code);
		struct task_use use = use_of(view, task);
		use_view_write(json, &use);
		if (reservation)
			write_reservation(json, view, reservation);
		json_close(json);
	}
	json_close(json);
}

/* When it first started; once it is over its tasks tell. */
static int64_t started_ms(const struct job_view *view)
{
	int64_t first = view->state->started_ms;
	if (first == 0 && view->past)
		first = view->past->started_ms;
	for (size_t i = 0; i < view->task_count && first == 0; i++)
		first = view->tasks[i]->started_ms;
	return first;
}

/* The earliest that is known of a placement: while it has not started, when it was made. */
static int64_t scheduled_ms(const struct job_view *view)
{
	int64_t first = view->past && view->past->scheduled_ms > 0 ? view->past->scheduled_ms
	                                                           : started_ms(view);
	for (size_t i = 0; i < view->task_count && first == 0; i++) {
		const struct reservation_record *reservation = reservation_of(view, view->tasks[i]);
		if (reservation && reservation->phase == PHASE_HELD)
			first = reservation->since_ms;
	}
	return first;
}

static void write_exit_code(struct json_writer *json, const struct job_state_record *state)
{
	bool failed = state->state == JOB_FAILED && state->exit_code != 0;
	if (failed || state->state == JOB_COMPLETED)
		json_put_integer(json, "exit_code", failed ? state->exit_code : 0);
	else
		json_put_null(json, "exit_code");
}

static void write_wait(struct json_writer *json, const struct job_view *view)
{
	int64_t start_ms = view->wait      ? view->wait->expected_start_ms
	                   : view->promise ? view->promise->start_ms
	                                   : 0;
	if (view->wait) {
		json_put_integer(json, "queue_position", view->wait->position + 1);
		json_put_integer(json, "tenant_queue_position", view->wait->tenant_position + 1);
	} else {
		json_put_null(json, "queue_position");
	}
	bool waits = view->state->state == JOB_PENDING && start_ms > 0;
	json_put_duration(json, "estimated_wait", waits ? max64(start_ms - view->now_ms, 0) : -1);
	json_put_moment(json, "estimated_start", waits ? start_ms : 0);
	if (view->reason)
		json_put_string(json, "reason", view->reason);
}

static void write_became(struct json_writer *json, const struct job_view *view)
{
	const struct job_state_record *state = view->state;

	json_put_moment(json, "submitted_at", view->job->submitted_ms);
	json_put_moment(json, "scheduled_at", scheduled_ms(view));
	json_put_moment(json, "started_at", started_ms(view));
	json_put_moment(json, "completed_at", state->completed_ms);
	json_put_duration(json, "estimated_duration",
	                  state->expected_ms > 0 ? state->expected_ms : -1);
	json_put_decimal(json, "prediction_confidence", state->confidence, 3);
	json_put_integer(json, "preempted_count", state->preempted_count);
	write_exit_code(json, state);
	json_put_string(json, "message", state->message);
}

void job_view_write(struct json_writer *json, const char *key, const struct job_view *view)
{
	json_open_object(json, key);
	json_put_id(json, "id", ID_JOB, view->job->id);
	json_put_id(json, "job_id", ID_JOB, view->job->id);
	json_put_id(json, "tenant_id", ID_TENANT, view->job->tenant_id);
	json_put_string(json, "name", view->job->name);
	json_put_string(json, "state", word_of(&job_state_words, view->state->state));
	json_put_flag(json, "held", view->state->held);
	json_put_integer(json, "priority", view->job->priority);
	write_asked(json, view);
	write_became(json, view);
	write_use(json, view);
	write_wait(json, view);
	json_put_string(json, "node_name", job_view_node(view));
	write_gpu_names(json, view);
	write_tasks(json, view);
	json_close(json);
}
