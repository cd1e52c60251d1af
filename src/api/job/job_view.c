/* job_view.c - a job as people read it */
#include "api/job/job_view.h"

#include "api/job/job_payload.h"
#include "api/job/use_view.h"
#include "api/text/ids.h"
#include "api/text/resource_json.h"
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

static const struct job_view *view_of(const struct resource_writer *writer)
{
	return writer->context;
}

static void write_sharing(struct resource_writer *writer)
{
	json_put_string(writer->json, writer->field->name, sharing_of(view_of(writer)->job));
}

static void write_gpu_count(struct resource_writer *writer)
{
	const struct job_record *job = view_of(writer)->job;
	field_put(writer->json, writer->field,
	          job->split_gpus > 0         ? job->split_gpus
	          : job->gpu_kind == GPU_NONE ? 0
	                                      : job->gpu_count);
}

static void write_gpu_memory(struct resource_writer *writer)
{
	const struct job_record *job = view_of(writer)->job;

	if (job->gpu_kind != GPU_UNEVEN) {
		field_put(writer->json, writer->field, job->memory_mib);
		return;
	}
	json_open_array(writer->json, writer->field->name);
	for (int64_t i = 0; i < job->uneven.count; i++)
		json_put_integer(writer->json, NULL, job->uneven.at[i]);
	json_close(writer->json);
}

static void write_fraction(struct resource_writer *writer)
{
	const struct job_record *job = view_of(writer)->job;
	field_put(writer->json, writer->field, job->gpu_kind == GPU_FRACTION ? job->fraction : 0);
}

static void write_payload(struct resource_writer *writer)
{
	job_payload_show(writer->json, view_of(writer)->job->payload, writer->arena);
}

static void write_gang(struct resource_writer *writer)
{
	const struct job_record *job = view_of(writer)->job;
	field_put(writer->json, writer->field, job->split_gpus > 0 || job->min_available > 1);
}

/* The scheduler chooses the tasks of a job that is split. */
static void write_unless_split(struct resource_writer *writer)
{
	const struct job_record *job = view_of(writer)->job;
	if (job->split_gpus == 0)
		field_put(writer->json, writer->field, field_load_number(writer->field, job));
}

static void write_depends(struct resource_writer *writer)
{
	const struct job_record *job = view_of(writer)->job;

	json_open_array(writer->json, writer->field->name);
	for (int64_t i = 0; i < job->depends.count; i++) {
		const struct field_value values[DEPENDENCY_FIELDS_COUNT] = {
			[DEPENDENCY_FIELD_job] = FIELD_ID(job->depends.at[2 * i]),
			[DEPENDENCY_FIELD_condition] = FIELD_NUMBER(job->depends.at[2 * i + 1]),
		};
		resource_write_element(writer, (struct resource_writer){ .values = values });
	}
	for (int64_t i = 0; i < job->depends_arrays.count; i++) {
		const struct field_value values[DEPENDENCY_FIELDS_COUNT] = {
			[DEPENDENCY_FIELD_array] = FIELD_ID(job->depends_arrays.at[3 * i]),
			[DEPENDENCY_FIELD_condition] =
			    FIELD_NUMBER(job->depends_arrays.at[3 * i + 1]),
		};
		resource_write_element(writer, (struct resource_writer){ .values = values });
	}
	json_close(writer->json);
}

/* An array may begin at 0. */
static void write_array_index(struct resource_writer *writer)
{
	const struct job_record *job = view_of(writer)->job;
	if (job->array_id > 0)
		json_put_integer(writer->json, writer->field->name, job->array_index);
}

static void write_closeness_required(struct resource_writer *writer)
{
	const struct job_record *job = view_of(writer)->job;
	if (job->closeness != CLOSE_ANY)
		json_put_flag(writer->json, writer->field->name, job->closeness_required);
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

static const struct gpu_record *job_view_gpu_of(const struct job_view *view, int64_t gpu_id)
{
	return catalogue_get(view->catalogue, RECORD_GPU, gpu_id, 0);
}

static void write_past_gpus(struct json_writer *json, const struct job_view *view)
{
	for (size_t i = 0; i < view->past->gpu_count; i++) {
		const struct gpu_record *gpu = job_view_gpu_of(view, view->past->gpu_ids[i]);
		if (gpu)
			json_put_string(json, NULL, gpu->uuid);
	}
}

/* The UUIDs of all its GPUs, as scripts know them. */
static void write_gpu_names(struct resource_writer *writer)
{
	const struct job_view *view = view_of(writer);
	struct json_writer *json = writer->json;

	json_open_array(json, writer->field->name);
	/* What is past has all of them, also those whose memory is not back yet. */
	if (view->past)
		write_past_gpus(json, view);
	for (size_t i = 0; !view->past && i < view->task_count; i++) {
		const struct reservation_record *reservation = reservation_of(view, view->tasks[i]);
		if (!reservation || reservation->phase == PHASE_CLAIM)
			continue;
		for (int64_t part = 0; part < reservation->parts.count; part++) {
			const struct gpu_record *gpu = job_view_gpu_of(
			    view, reservation->parts.at[part * PART_WIDTH + PART_GPU]);
			if (gpu)
				json_put_string(json, NULL, gpu->uuid);
		}
	}
	json_close(json);
}

/* What a task is written from. */
struct task_view {
	const struct job_view *job;
	const struct reservation_record *reservation; /* NULL: it has none */
	struct task_use use;
};

/* What it uses of the GPU: as measured last, or, where nobody tells, as the ledger has it. */
static int64_t part_measured(const struct task_view *view, const struct gpu_record *gpu,
                             const int64_t *part)
{
	const struct job_view *job = view->job;
	int64_t use = job->agents && gpu
	                  ? agents_part_use(job->agents, node_name(job, view->reservation->node_id),
	                                    view->reservation->id, gpu->uuid)
	                  : -1;
	return use >= 0 ? use : part[PART_MEASURED];
}

static void write_parts(struct resource_writer *writer)
{
	const struct task_view *view = writer->context;
	const struct reservation_record *reservation = view->reservation;

	if (!reservation)
		return;
	json_open_array(writer->json, writer->field->name);
	for (int64_t i = 0; i < reservation->parts.count; i++) {
		const int64_t *part = reservation->parts.at + i * PART_WIDTH;
		const struct gpu_record *gpu = job_view_gpu_of(view->job, part[PART_GPU]);
		const struct field_value values[ALLOCATED_GPU_FIELDS_COUNT] = {
			[ALLOCATED_GPU_FIELD_uuid] = FIELD_STRING(gpu ? gpu->uuid : NULL),
			[ALLOCATED_GPU_FIELD_index] =
			    FIELD_NUMBER_IF(gpu != NULL, gpu ? gpu->place : 0),
			[ALLOCATED_GPU_FIELD_memory_mb] = FIELD_NUMBER(part[PART_MIB]),
			[ALLOCATED_GPU_FIELD_share] = FIELD_NUMBER(part[PART_SHARE]),
			[ALLOCATED_GPU_FIELD_measured_memory_mb] =
			    FIELD_NUMBER(part_measured(view, gpu, part)),
			[ALLOCATED_GPU_FIELD_whole] = FIELD_NUMBER(part[PART_WHOLE] != 0),
		};
		resource_write_element(writer, (struct resource_writer){ .values = values });
	}
	json_close(writer->json);
}

static void write_task_guard(struct resource_writer *writer)
{
	const struct task_view *view = writer->context;
	use_view_write_guard(writer->json, &view->use);
}

static void (*const task_writers[ALLOCATION_FIELDS_COUNT])(struct resource_writer *) = {
	[ALLOCATION_FIELD_guard] = write_task_guard,
	[ALLOCATION_FIELD_gpus] = write_parts,
};

/* Sums over all its runs, the current one as last measured. */
static struct task_use use_of(const struct job_view *view, const struct task_record *task)
{
	const struct reservation_record *reservation = reservation_of(view, task);
	struct task_use use = task_use_of(task), now;

	if (view->agents && reservation && task->state == TASK_RUNNING &&
	    agents_use(view->agents, node_name(view, reservation->node_id), reservation->id, &now))
		task_use_add(&use, &now);
	return use;
}

/* Writes all that is measured, down to the guard. */
static void write_use(struct resource_writer *writer)
{
	const struct job_view *view = view_of(writer);
	struct task_use sum = { 0 };

	for (size_t i = 0; i < view->task_count; i++) {
		struct task_use use = use_of(view, view->tasks[i]);
		task_use_add(&sum, &use);
	}
	use_view_write(writer->json, view->task_count > 0 ? &sum : NULL);
}

static void write_task(struct resource_writer *writer, const struct task_record *task)
{
	const struct job_view *job = view_of(writer);
	const struct reservation_record *reservation = reservation_of(job, task);
	const struct task_view view = { .job = job,
		                        .reservation = reservation,
		                        .use = use_of(job, task) };
	const struct task_use *use = &view.use;
	const void *const records[RECORD_KINDS] = { [RECORD_TASK] = task };
	struct field_value values[ALLOCATION_FIELDS_COUNT] = {
		[ALLOCATION_FIELD_exit_code] =
		    FIELD_NUMBER_IF(task->state == TASK_ENDED, task->exit_code),
		[ALLOCATION_FIELD_peak_gpu_memory_mb] = FIELD_NUMBER(use->peak_mib),
		[ALLOCATION_FIELD_gpu_seconds] = FIELD_NUMBER(use->gpu_ms),
		[ALLOCATION_FIELD_energy_joules] = FIELD_NUMBER(use->energy_mj),
		[ALLOCATION_FIELD_peak_memory_mb] = FIELD_NUMBER(use->host_peak_bytes / MIB_BYTES),
		[ALLOCATION_FIELD_cpu_seconds] = FIELD_NUMBER(use->cpu_ms),
	};

	if (reservation) {
		values[ALLOCATION_FIELD_node] =
		    (struct field_value)FIELD_STRING_OR_NULL(node_name(job, reservation->node_id));
		values[ALLOCATION_FIELD_phase] =
		    (struct field_value)FIELD_NUMBER(reservation->phase);
	}
	resource_write_element(writer, (struct resource_writer){ .records = records,
	                                                         .special = task_writers,
	                                                         .values = values,
	                                                         .context = &view });
}

static void write_tasks(struct resource_writer *writer)
{
	const struct job_view *view = view_of(writer);

	json_open_array(writer->json, writer->field->name);
	for (size_t i = 0; i < view->task_count; i++)
		write_task(writer, view->tasks[i]);
	json_close(writer->json);
}

/* When it first started; from its tasks once it has finished. */
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
		if (reservation && reservation->phase == PHASE_GRANTED)
			first = reservation->since_ms;
	}
	return first;
}

static void write_scheduled(struct resource_writer *writer)
{
	field_put(writer->json, writer->field, scheduled_ms(view_of(writer)));
}

static void write_started(struct resource_writer *writer)
{
	field_put(writer->json, writer->field, started_ms(view_of(writer)));
}

static void write_exit_code(struct resource_writer *writer)
{
	const struct job_state_record *state = view_of(writer)->state;
	bool failed = state->state == JOB_FAILED && state->exit_code != 0;

	if (failed || state->state == JOB_COMPLETED)
		json_put_integer(writer->json, writer->field->name, failed ? state->exit_code : 0);
	else
		json_put_null(writer->json, writer->field->name);
}

static void write_position(struct resource_writer *writer)
{
	const struct wait_figures *wait = view_of(writer)->wait;
	field_put(writer->json, writer->field, wait ? wait->position + 1 : 0);
}

static void write_tenant_position(struct resource_writer *writer)
{
	const struct wait_figures *wait = view_of(writer)->wait;
	field_put(writer->json, writer->field, wait ? wait->tenant_position + 1 : 0);
}

/* When a waiting job is expected to start; 0: it is not known, or the job does not wait. */
static int64_t expected_start_ms(const struct job_view *view)
{
	if (view->state->state != JOB_PENDING)
		return 0;
	return view->wait      ? view->wait->expected_start_ms
	       : view->promise ? view->promise->start_ms
	                       : 0;
}

static void write_wait(struct resource_writer *writer)
{
	const struct job_view *view = view_of(writer);
	int64_t start_ms = expected_start_ms(view);
	json_put_duration(writer->json, writer->field->name,
	                  start_ms > 0 ? max64(start_ms - view->now_ms, 0) : -1);
}

static void write_start(struct resource_writer *writer)
{
	field_put(writer->json, writer->field, expected_start_ms(view_of(writer)));
}

static void write_reason(struct resource_writer *writer)
{
	if (view_of(writer)->reason)
		json_put_string(writer->json, writer->field->name, view_of(writer)->reason);
}

static void write_node(struct resource_writer *writer)
{
	json_put_string(writer->json, writer->field->name, job_view_node(view_of(writer)));
}

static void (*const writers[JOB_FIELDS_COUNT])(struct resource_writer *) = {
	[JOB_FIELD_gpu_sharing] = write_sharing,
	[JOB_FIELD_gpu_count] = write_gpu_count,
	[JOB_FIELD_gpu_memory_mb] = write_gpu_memory,
	[JOB_FIELD_gpu_fraction] = write_fraction,
	[JOB_FIELD_command] = write_payload,
	[JOB_FIELD_gang_scheduling] = write_gang,
	[JOB_FIELD_tasks] = write_unless_split,
	[JOB_FIELD_min_available] = write_unless_split,
	[JOB_FIELD_depends_on] = write_depends,
	[JOB_FIELD_array_index] = write_array_index,
	[JOB_FIELD_closeness_required] = write_closeness_required,
	[JOB_FIELD_scheduled_at] = write_scheduled,
	[JOB_FIELD_started_at] = write_started,
	[JOB_FIELD_exit_code] = write_exit_code,
	[JOB_FIELD_peak_gpu_memory_mb] = write_use,
	[JOB_FIELD_queue_position] = write_position,
	[JOB_FIELD_tenant_queue_position] = write_tenant_position,
	[JOB_FIELD_estimated_wait] = write_wait,
	[JOB_FIELD_estimated_start] = write_start,
	[JOB_FIELD_reason] = write_reason,
	[JOB_FIELD_node_name] = write_node,
	[JOB_FIELD_allocated_gpus] = write_gpu_names,
	[JOB_FIELD_allocations] = write_tasks,
};

void job_view_write(struct json_writer *json, const char *key, const struct job_view *view)
{
	const void *const records[RECORD_KINDS] = {
		[RECORD_JOB] = view->job, [RECORD_JOB_STATE] = view->state
	};
	struct resource_writer writer = { .resource = &job_resource,
		                          .json = json,
		                          .records = records,
		                          .special = writers,
		                          .context = view,
		                          .arena = view->arena };

	json_open_object(json, key);
	resource_write(&writer);
	json_close(json);
}
