/* load.c - jobs, tasks and reservations from their records */
#include <stdlib.h>
#include <string.h>

#include "core/queue/depends.h"
#include "core/queue/job.h"
#include "core/state.h"

void job_fill_request(struct job *job)
{
	struct shape_request *request = &job->request;

	INVARIANT(job->r.gpu_count <= PARTS_MAX);
	request->gpu_kind = (enum gpu_kind)job->r.gpu_kind;
	request->gpu_count = job->r.gpu_kind == GPU_NONE ? 0 : job->r.gpu_count;
	request->fraction = job->r.fraction;
	request->memory_mib = job->r.memory_mib;
	request->cpu_milli = job->r.cpu_milli;
	request->host_bytes = job->r.host_bytes;
	request->compute = job->r.compute;
	request->sharer = job->r.compute > 0 ? job->r.tenant_id : 0;
	for (int64_t i = 0; i < job->r.uneven.count && i < PARTS_MAX; i++) {
		int64_t j = i;
		for (; j > 0 && request->uneven_mib[j - 1] < job->r.uneven.at[i]; j--)
			request->uneven_mib[j] = request->uneven_mib[j - 1];
		request->uneven_mib[j] = job->r.uneven.at[i];
	}
}

static void join_array(struct sched *sched, struct job *job)
{
	if (job->r.array_id == 0 || job->r.array_limit == 0)
		return;
	struct array *array = map_get(&sched->arrays, job->r.array_id);
	if (!array) {
		array = NEW(struct array);
		array->id = job->r.array_id;
		array->limit = job->r.array_limit;
		map_put(&sched->arrays, array->id, array);
	}
	array->members++;
	job->array = array;
}

static void remember_key(struct sched *sched, struct job *job)
{
	struct buffer key = { 0 };

	if (!*job->r.idempotency_key || (job->r.array_id && job->r.array_id != job->r.id))
		return;
	buffer_print(&key, "%lld/%s", (long long)job->r.tenant_id, job->r.idempotency_key);
	text_map_put(&sched->keys, key.data, job);
	buffer_free(&key);
}

struct job *job_load(struct sched *sched, const struct job_record *record, struct error *error)
{
	struct tenant *tenant = tenants_find(&sched->tenants, record->tenant_id);

	if (!tenant || record->id <= 0 || record->tasks < 1 || record->tasks > TASKS_MAX ||
	    record->min_available < 1 || record->min_available > record->tasks ||
	    record->gpu_count < 0 || record->gpu_count > PARTS_MAX ||
	    map_get(&sched->jobs, record->id)) {
		error_set(error, ERROR_CORRUPT,
		          "job-%lld is stored with a tenant, an id or tasks that "
		          "cannot be",
		          (long long)record->id);
		return NULL;
	}
	struct job *job = NEW(struct job);
	job->r = *record;
	job->texts = fields_own(record_type(RECORD_JOB), &job->r);
	job_fill_request(job);
	job->tenant = tenant;
	job->filter = shapes_job_filter(&sched->shapes, &job->r);
	job->tasks = memory_zero((size_t)job->r.tasks, sizeof(*job->tasks));
	job->pending = (int32_t)job->r.tasks;
	job->s.id = job->r.id;
	job->s.message = "";
	job->timer_ms = INT64_MAX;
	job->timer_index = -1;
	join_array(sched, job);
	remember_key(sched, job);
	map_put(&sched->jobs, job->r.id, job);
	return job;
}

bool job_load_state(struct sched *sched, const struct job_state_record *state, struct error *error)
{
	struct job *job = map_get(&sched->jobs, state->id);

	if (!job)
		return error_set(error, ERROR_CORRUPT,
		                 "the state of job-%lld is stored without the job",
		                 (long long)state->id);
	job->has_state = true;
	job->s = *state;
	job_keep_message(job, state->message);
	return true;
}

bool job_load_task(struct sched *sched, const struct task_record *record, struct error *error)
{
	struct job *job = map_get(&sched->jobs, record->job_id);

	if (!job || record->place < 0 || record->place >= job->r.tasks ||
	    record->state < TASK_PENDING || record->state > TASK_RESUMING)
		return error_set(error, ERROR_CORRUPT, "task %lld of job-%lld cannot be",
		                 (long long)record->place, (long long)record->job_id);
	struct task *task = &job->tasks[record->place];
	task->state = (enum task_state)record->state;
	task->started_ms = record->started_ms;
	task->ended_ms = record->ended_ms;
	task->exit_code = record->exit_code;
	task->use = (struct task_use){ .peak_mib = record->peak_mib,
		                       .gpu_ms = record->gpu_ms,
		                       .energy_mj = record->energy_mj,
		                       .host_peak_bytes = record->host_peak_bytes,
		                       .cpu_ms = record->cpu_ms,
		                       .limit_mib = record->limit_mib,
		                       .guard_peak_mib = record->guard_peak_mib,
		                       .refusals = record->refusals,
		                       .refused_mib = record->refused_mib,
		                       .unguarded = record->unguarded };
	task->recorded = true;
	task->holds_right = record->reservation_id != 0;
	task->holds_claim = record->claim_id != 0;
	if (task->state != TASK_PENDING)
		job->pending--;
	if (task->state == TASK_ENDED && task->exit_code == 0)
		job->ended++;
	return true;
}

/* Where that was not written down yet, it counts for as long as it is in its phase. */
static int64_t counted_since(const struct reservation_record *record)
{
	bool counts = record->phase != PHASE_RELEASING && record->phase != PHASE_SUSPENDING &&
	              record->phase != PHASE_SUSPENDED;
	return record->counted_ms == 0 && counts ? max64(record->since_ms, 1) : record->counted_ms;
}

struct reservation *reservation_from(struct sched *sched, const struct reservation_record *record)
{
	struct node *node = map_get(&sched->cluster.node_by_id, record->node_id);

	if (!node || record->parts.count > PARTS_MAX || record->phase < PHASE_CLAIM ||
	    record->phase > PHASE_RESUMING || map_get(&sched->reservations, record->id))
		return NULL;
	struct reservation *reservation = memory_zero(
	    1, sizeof(*reservation) + (size_t)record->parts.count * sizeof(struct part));
	*reservation = (struct reservation){
		.id = record->id,
		.node = node,
		.phase = (enum phase)record->phase,
		.late = record->late,
		.requeue = record->requeue,
		.away = record->away,
		.copy_bytes = record->copy_bytes,
		.residue_mib = record->residue_mib,
		.ended_ms = record->run_id != 0 && record->ended_ms == 0 ? record->since_ms
		                                                         : record->ended_ms,
		.recorded = true,
		.cpu_milli = record->cpu_milli,
		.host_bytes = record->host_bytes,
		.since_ms = record->since_ms,
		.counted_ms = counted_since(record),
		.saved_ms = record->saved_ms,
		.started_ms = record->started_ms,
		.ending = (enum run_ending)record->ending,
		.run_id = record->run_id,
		.due_ms = INT64_MAX,
		.due_index = -1,
		.part_count = (int)record->parts.count,
	};
	for (int i = 0; i < reservation->part_count; i++) {
		const int64_t *row = record->parts.at + (size_t)i * PART_WIDTH;
		struct gpu *gpu = map_get(&sched->cluster.gpu_by_id, row[PART_GPU]);
		if (!gpu || gpu->node != node) {
			free(reservation);
			return NULL;
		}
		reservation->parts[i] = (struct part){ .gpu = gpu,
			                               .mib = row[PART_MIB],
			                               .share = row[PART_SHARE],
			                               .measured_mib = row[PART_MEASURED],
			                               .whole = row[PART_WHOLE] != 0 };
	}
	return reservation;
}

/* Its parts have the share of compute that its job asks for. */
static void fill_shares(struct reservation *reservation)
{
	const struct shape_request *request = &reservation->job->request;

	for (int i = 0; i < reservation->part_count; i++) {
		struct part *part = &reservation->parts[i];
		part->compute = part->whole ? 0 : request->compute;
		part->sharer = part->whole ? 0 : request->sharer;
	}
}

bool reservation_load(struct sched *sched, const struct reservation_record *record,
                      struct error *error)
{
	struct job *job = map_get(&sched->jobs, record->job_id);
	bool known = job && record->task >= 0 && record->task < job->r.tasks;
	struct reservation *reservation = known ? reservation_from(sched, record) : NULL;
	struct reservation **place = NULL;

	INVARIANT(record->job_id != 0);
	if (reservation) {
		reservation->job = job;
		reservation->task = (int)record->task;
		fill_shares(reservation);
		struct task *task = &reservation->job->tasks[reservation->task];
		place = reservation->phase == PHASE_CLAIM ? &task->claim : &task->reservation;
	}
	if (!reservation || *place) {
		free(reservation);
		return error_set(
		    error, ERROR_CORRUPT,
		    "reservation %lld is stored with a job, a node or GPUs that cannot be",
		    (long long)record->id);
	}
	*place = reservation;
	map_put(&sched->reservations, reservation->id, reservation);
	ledger_enter(&sched->ledger, reservation);
	reservation_watch(sched, reservation);
	return true;
}

void job_link_dependencies(struct sched *sched, struct job *job)
{
	struct dependency_walk walk = { 0 };
	enum dependency kind;
	struct job *other;

	while ((other = dependency_next(sched, &job->r, &walk, &kind)) != NULL) {
		if (job_state_is_final((enum job_state)other->s.state))
			continue;
		array_reserve(other->dependents, other->dependent_capacity,
		              other->dependent_count + 1);
		other->dependents[other->dependent_count++] = job;
		job->unmet++;
	}
}

/* Jobs in the order of their ids, so that loading is the same every time. */
static int load_by_id(const void *a, const void *b)
{
	const struct job *x = *(struct job *const *)a, *y = *(struct job *const *)b;

	return x->r.id < y->r.id ? -1 : x->r.id > y->r.id;
}

void jobs_loaded(struct sched *sched)
{
	size_t count = 0;
	struct job **jobs = memory_alloc((sched->jobs.count + 1) * sizeof(*jobs));

	INVARIANT(!sched->plan.open);
	for (size_t i = 0; i < sched->jobs.capacity; i++)
		if (sched->jobs.entries[i].value)
			jobs[count++] = sched->jobs.entries[i].value;
	qsort(jobs, count, sizeof(*jobs), load_by_id);
	for (size_t i = 0; i < count; i++)
		if (!job_state_is_final((enum job_state)jobs[i]->s.state))
			job_link_dependencies(sched, jobs[i]);
	for (size_t i = 0; i < count; i++)
		job_settle(sched, jobs[i]);
	free(jobs);
}
