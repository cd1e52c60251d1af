/* submit.c - taking a job in: what is asked must make sense and be possible */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/queue/demand.h"
#include "core/queue/depends.h"
#include "core/queue/job.h"
#include "core/state.h"

#define KEY_MAX 288 /* what people send, and a place in the request behind it */
#define PAYLOAD_MAX (1 << 20)
#define ARRAY_MAX 10000
#define ARRAY_LINKS_MAX 100000 /* of all elements of an array to whole arrays */

static bool check_text(const char *text, size_t most, const char *field, struct error *error)
{
	if (!text)
		return error_set(error, ERROR_INVALID, "%s is missing", field);
	if (strlen(text) > most)
		return error_set(error, ERROR_INVALID, "%s is longer than %zu bytes", field, most);
	return true;
}

static bool check_range(int64_t number, int64_t most, const char *field, struct error *error)
{
	if (number < 0)
		return error_set(error, ERROR_INVALID, "%s is %lld: it cannot be negative", field,
		                 (long long)number);
	if (number > most)
		return error_set(error, ERROR_INVALID, "%s is %lld: it can be at most %lld", field,
		                 (long long)number, (long long)most);
	return true;
}

static bool check_uneven(const struct job_record *job, struct error *error)
{
	if (job->uneven.count != job->gpu_count)
		return error_set(error, ERROR_INVALID, "%lld amounts of memory for %d GPUs",
		                 (long long)job->uneven.count, job->gpu_count);
	for (int64_t i = 0; i < job->uneven.count; i++)
		if (job->uneven.at[i] <= 0 || job->uneven.at[i] > MIB_MAX)
			return error_set(
			    error, ERROR_INVALID,
			    "GPU memory of part %lld is %lld MiB: it must be 1 to %lld",
			    (long long)i, (long long)job->uneven.at[i], (long long)MIB_MAX);
	return true;
}

static bool check_gpus(const struct job_record *job, struct error *error)
{
	switch (job->gpu_kind) {
	case GPU_NONE:
		return job->gpu_count == 0 ||
		       error_set(error, ERROR_INVALID, "gpu_count is %d for a job without GPUs",
		                 job->gpu_count);
	case GPU_WHOLE:
	case GPU_FRACTION:
	case GPU_MEMORY:
	case GPU_UNEVEN:
		break;
	default:
		return error_set(error, ERROR_INVALID, "unknown way %d to ask for GPUs",
		                 job->gpu_kind);
	}
	if (job->gpu_count < 1 || job->gpu_count > PARTS_MAX)
		return error_set(error, ERROR_INVALID,
		                 "gpu_count is %d: one task takes 1 to %d GPUs; use tasks for more",
		                 job->gpu_count, PARTS_MAX);
	if (job->gpu_kind == GPU_FRACTION && (job->fraction < 1 || job->fraction > WHOLE_GPU))
		return error_set(error, ERROR_INVALID,
		                 "gpu_fraction is %d/1000: it must be 1 to 1000", job->fraction);
	if (job->gpu_kind == GPU_MEMORY && job->memory_mib <= 0)
		return error_set(error, ERROR_INVALID,
		                 "gpu_memory is %lld MiB: it must be positive",
		                 (long long)job->memory_mib);
	if (job->compute > 0 && (job->gpu_kind == GPU_NONE || job->gpu_kind == GPU_WHOLE))
		return error_set(error, ERROR_INVALID,
		                 "gpu_compute is for parts of GPUs: ask for gpu_memory_mb or "
		                 "gpu_fraction too");
	if (job->compute > 0 && job->gpu_count > 1)
		return error_set(
		    error, ERROR_INVALID,
		    "gpu_compute is for a part of one GPU, and a task asks for %d: use "
		    "tasks",
		    job->gpu_count);
	return job->gpu_kind != GPU_UNEVEN || check_uneven(job, error);
}

static bool check_tasks(const struct job_record *job, struct error *error)
{
	if (job->tasks < 1 || job->tasks > TASKS_MAX)
		return error_set(error, ERROR_INVALID, "tasks is %lld: it must be 1 to %d",
		                 (long long)job->tasks, TASKS_MAX);
	if (job->min_available < 1 || job->min_available > job->tasks)
		return error_set(error, ERROR_INVALID,
		                 "min_available is %lld: it must be 1 to tasks, %lld",
		                 (long long)job->min_available, (long long)job->tasks);
	if (job->split_gpus < 0 || job->split_gpus > TASKS_MAX)
		return error_set(error, ERROR_INVALID,
		                 "a split over %lld GPUs: it must be at most %d",
		                 (long long)job->split_gpus, TASKS_MAX);
	if (job->split_gpus > 0 && job->gpu_kind != GPU_WHOLE)
		return error_set(error, ERROR_INVALID, "only whole GPUs can be split over nodes");
	return true;
}

/* The window that it names is there, and its tenant may use it. */
static bool check_window(const struct sched *sched, const struct job_record *job,
                         struct error *error)
{
	const struct tenant *tenant = tenants_find(&sched->tenants, job->tenant_id);

	if (!*job->window)
		return true;
	const struct window *window = windows_named(&sched->cluster.windows, job->window);
	if (!window)
		return error_set(error, ERROR_NOT_FOUND, "there is no window %.64s", job->window);
	if (window->r.maintenance)
		return error_set(error, ERROR_INVALID,
		                 "nothing runs in the window %.64s: it is for maintenance",
		                 job->window);
	if (job->gpu_kind == GPU_NONE && !*window->r.nodes)
		return error_set(error, ERROR_IMPOSSIBLE,
		                 "the window %.64s is on GPUs alone, and the job asks for none",
		                 job->window);
	while (tenant && window->r.tenant_id != 0 && tenant->r.id != window->r.tenant_id)
		tenant = tenant->parent;
	return tenant || error_set(error, ERROR_FORBIDDEN, "the window %.64s is for another tenant",
	                           job->window);
}

/* What depends on the settings and the time. */
static bool check_now(const struct sched *sched, const struct job_record *job, struct error *error)
{
	if (job->min_available > 1 && !sched->config.enable_gangs)
		return error_set(error, ERROR_FORBIDDEN,
		                 "gangs are switched off (enable_gang_scheduling)");
	if (job->deadline_ms > 0 && job->deadline_ms <= sched_now(sched))
		return error_set(error, ERROR_INVALID, "the deadline has passed already");
	if (job->deadline_ms > 0 && job->deadline_ms <= job->begin_ms)
		return error_set(error, ERROR_INVALID, "the deadline is not after begin");
	return check_window(sched, job, error);
}

static bool check_choices(const struct job_record *job, struct error *error)
{
	if (job->closeness < CLOSE_ANY || job->closeness > CLOSE_RACK)
		return error_set(error, ERROR_INVALID, "unknown closeness %d", job->closeness);
	if (job->lease_loss != LEASE_KEEP && job->lease_loss != LEASE_STOP)
		return error_set(error, ERROR_INVALID, "on_lease_loss must be keep or stop");
	if (job->priority < INT_MIN || job->priority > INT_MAX)
		return error_set(error, ERROR_INVALID, "priority %lld is out of range",
		                 (long long)job->priority);
	return true;
}

static bool check_kinds(const struct rows *rows, int width, struct error *error)
{
	for (int64_t i = 0; i < rows->count; i++) {
		int64_t kind = rows->at[width * i + 1];
		if (kind != AFTER_SUCCESS && kind != AFTER_ANY)
			return error_set(error, ERROR_INVALID, "unknown kind of dependency %lld",
			                 (long long)kind);
	}
	return true;
}

static bool check_kinds_of_dependency(const struct job_record *job, struct error *error)
{
	if (job->depends.count < 0 || job->depends_arrays.count < 0 ||
	    job->depends.count > JOB_DEPENDS_MAX ||
	    job->depends_arrays.count > JOB_DEPENDS_MAX - job->depends.count)
		return error_set(error, ERROR_INVALID, "a job can depend on at most %d others",
		                 JOB_DEPENDS_MAX);
	return check_kinds(&job->depends, 2, error) && check_kinds(&job->depends_arrays, 3, error);
}

/* Each job must be known and the tenant's own, or be one of the array of such a job. */
static bool check_depends_known(const struct sched *sched, const struct job_record *job,
                                const struct rows *rows, int width, struct error *error)
{
	for (int64_t i = 0; i < rows->count; i++) {
		int64_t id = rows->at[width * i];
		const struct job *other = map_get(&sched->jobs, id);
		if (!other || other->r.tenant_id != job->tenant_id)
			return error_set(error, ERROR_NOT_FOUND,
			                 "depends on job-%lld, which is not known", (long long)id);
	}
	return true;
}

/* `count` jobs have the dependencies. */
static bool check_depends(const struct sched *sched, const struct job_record *job, int64_t count,
                          struct error *error)
{
	struct dependency_walk walk = { 0 };
	enum dependency kind;
	const struct job *other;
	int64_t links = 0;

	if (!check_depends_known(sched, job, &job->depends, 2, error) ||
	    !check_depends_known(sched, job, &job->depends_arrays, 3, error))
		return false;
	while ((other = dependency_next(sched, job, &walk, &kind)) != NULL) {
		if (kind == AFTER_SUCCESS && job_state_is_final((enum job_state)other->s.state) &&
		    other->s.state != JOB_COMPLETED)
			return error_set(
			    error, ERROR_CONFLICT,
			    "depends on the success of job-%lld, which did not succeed",
			    (long long)other->r.id);
		links++;
	}
	if (job->depends_arrays.count > 0 && links * count > ARRAY_LINKS_MAX)
		return error_set(error, ERROR_INVALID,
		                 "%lld jobs that depend on %lld others: with whole arrays, the "
		                 "product can be at most %d",
		                 (long long)count, (long long)links, ARRAY_LINKS_MAX);
	return true;
}

static bool check_array(const struct submit_command *submit, struct error *error)
{
	if (submit->array_from < 0 || submit->array_to < 0 ||
	    submit->array_to < submit->array_from ||
	    (submit->array_indices.count == 0 &&
	     submit->array_to - submit->array_from >= ARRAY_MAX))
		return error_set(
		    error, ERROR_INVALID, "array %lld-%lld: it must rise and have at most %d",
		    (long long)submit->array_from, (long long)submit->array_to, ARRAY_MAX);
	const struct rows *indices = &submit->array_indices;
	if (indices->count > ARRAY_MAX || (indices->count > 0 && submit->array_to == 0))
		return error_set(error, ERROR_INVALID, "an array of %lld indices: at most %d",
		                 (long long)indices->count, ARRAY_MAX);
	for (int64_t i = 0; i < indices->count; i++) {
		int64_t least = i > 0 ? indices->at[i - 1] + 1 : submit->array_from;
		if (indices->at[i] < least || indices->at[i] > submit->array_to)
			return error_set(error, ERROR_INVALID,
			                 "array index %lld: indices must rise, from %lld to %lld",
			                 (long long)indices->at[i], (long long)submit->array_from,
			                 (long long)submit->array_to);
	}
	return check_range(submit->job.array_limit, INT64_MAX, "the array's limit", error);
}

/* Memory is taken by tasks, so the queue of all counts those; `count` jobs have `tasks` each. */
static bool check_room(const struct sched *sched, const struct tenant *tenant, int64_t count,
                       int64_t tasks, struct error *error)
{
	if (sched->waiting_tasks + count * tasks > sched->config.queue_max)
		return error_set(
		    error, ERROR_FULL, "the queue is full: %lld tasks waiting, the limit is %lld",
		    (long long)sched->waiting_tasks, (long long)sched->config.queue_max);
	int64_t most = min64(tenant->r.queue_max, sched->config.tenant_queue_max);
	if (tenant->waiting_jobs + count > most)
		return error_set(error, ERROR_FULL,
		                 "the queue of tenant %s is full: %lld wait, %lld may",
		                 tenant->r.name, (long long)tenant->waiting_jobs, (long long)most);
	return true;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

bool job_check(const struct job_record *job, struct error *error)
{
	return check_text(job->name, JOB_NAME_BYTES_MAX, "name", error) &&
	       check_text(job->user, JOB_NAME_BYTES_MAX, "user", error) &&
	       check_text(job->payload, PAYLOAD_MAX, "payload", error) &&
	       check_text(job->gpu_models, JOB_NAME_BYTES_MAX, "gpu_model", error) &&
	       check_text(or_empty(job->window), JOB_NAME_BYTES_MAX, "window", error) &&
	       check_text(job->node_labels, 4 * JOB_NAME_BYTES_MAX, "labels", error) &&
	       demand_check(or_empty(job->resources), or_empty(job->rules), or_empty(job->marks),
	                    or_empty(job->node_class), error) &&
	       check_gpus(job, error) && check_tasks(job, error) &&
	       check_range(job->cpu_milli, CPU_MILLI_MAX, "cpu_cores", error) &&
	       check_range(job->host_bytes, HOST_BYTES_MAX, "memory", error) &&
	       check_range(job->memory_mib, MIB_MAX, "gpu_memory", error) &&
	       check_range(job->max_runtime_ms, TIME_MS_MAX, "max_runtime", error) &&
	       check_range(job->suspend, SUSPEND_NEVER, "suspend", error) &&
	       check_range(job->compute, WHOLE_GPU, "gpu_compute", error) &&
	       check_range(job->compute_processes, COMPUTE_PROCESSES_MAX, "gpu_processes", error) &&
	       check_range(job->estimate_ms, TIME_MS_MAX, "estimate", error) &&
	       check_range(job->deadline_ms, TIME_MS_MAX, "deadline", error) &&
	       check_range(job->begin_ms, TIME_MS_MAX, "begin", error) &&
	       check_choices(job, error) && check_kinds_of_dependency(job, error);
}

/* The share of compute that goes with its memory: of the smallest GPU, as its tenant's limits count
 * it. 0: it has none. */
static int32_t compute_of(const struct job_record *job, int64_t smallest_mib)
{
	int64_t mib = job->gpu_kind == GPU_MEMORY ? job->memory_mib : 0;

	for (int64_t i = 0; job->gpu_kind == GPU_UNEVEN && i < job->uneven.count; i++)
		mib = max64(mib, job->uneven.at[i]);
	if (job->gpu_count > 1)
		return 0;
	if (job->gpu_kind == GPU_FRACTION)
		return job->fraction;
	if (mib <= 0 || mib > MIB_MAX || smallest_mib <= 0)
		return 0;
	return (int32_t)min64(muldiv_up(mib, WHOLE_GPU, smallest_mib), WHOLE_GPU);
}

/* Fills in what was left out. */
static struct job_record complete(struct sched *sched, const struct submit_command *submit)
{
	struct job_record job = submit->job;

	if (!job.user)
		job.user = "";
	job.resources = or_empty(job.resources);
	job.rules = or_empty(job.rules);
	job.marks = or_empty(job.marks);
	job.node_class = or_empty(job.node_class);
	job.window = or_empty(job.window);
	if (job.priority == 0)
		job.priority = sched->config.default_priority;
	if (job.gpu_kind == GPU_FRACTION && job.fraction == WHOLE_GPU && job.compute == 0)
		job.gpu_kind = GPU_WHOLE;
	if (sched->config.sharing_compute == COMPUTE_MPS && !submit->takes_turns &&
	    job.compute == 0 && !*job.node_class)
		job.compute = compute_of(&job, sched_totals(sched)->smallest_mib);
	if (job.split_gpus > 0) {
		job.tasks = job.split_gpus;
		job.min_available = 1;
	}
	if (job.tasks == 0)
		job.tasks = 1;
	if (job.min_available == 0)
		job.min_available = job.tasks;
	if (job.gpu_kind != GPU_UNEVEN)
		job.uneven = (struct rows){ NULL, 0 };
	job.submitted_ms = sched_now(sched);
	job.array_id = job.array_index = 0;
	job.array_first = job.array_last = job.array_count = 0;
	return job;
}

static bool check_allowed(struct sched *sched, const struct job_record *record,
                          const struct tenant *tenant, bool check_possible, struct error *error)
{
	struct job trial = { .r = *record };
	struct bound bound;

	job_fill_request(&trial);
	struct amounts amounts = job_amounts(sched, &trial, record->min_available);
	if (!tenant_could_ever_hold(tenant, &amounts, record->preemptible, &bound)) {
		struct buffer sentence = { 0 };
		bound_print(&sentence, &bound);
		error_set(error, ERROR_FORBIDDEN, "%s", sentence.data);
		buffer_free(&sentence);
		return false;
	}
	if (!check_possible)
		return true;
	sched_prepare(sched);
	return place_possible(&sched->placement, &trial, error);
}

/* The job that was submitted under this key, if there is one. */
static struct job *known(const struct sched *sched, const struct job_record *record)
{
	struct buffer key = { 0 };

	if (!*record->idempotency_key)
		return NULL;
	buffer_print(&key, "%lld/%s", (long long)record->tenant_id, record->idempotency_key);
	struct job *job = text_map_get(&sched->keys, key.data);
	buffer_free(&key);
	return job;
}

static bool check_repeated(const struct job *job, const struct job_record *record,
                           struct error *error)
{
	if (job->r.request_hash == 0 || record->request_hash == 0 ||
	    job->r.request_hash == record->request_hash)
		return true;
	return error_set(error, ERROR_CONFLICT,
	                 "the idempotency key came with another request before, which made "
	                 "job-%lld: use a new key",
	                 (long long)job->r.id);
}

static void learn_mix(struct sched *sched, const struct job *job)
{
	struct amounts one = job_amounts(sched, job, 1);
	int64_t count =
	    job->r.split_gpus > 0 ? min64(job->r.split_gpus, 8) : job->request.gpu_count;
	int64_t milli = count > 0 ? min64(one.of[AMOUNT_GPU] / count, WHOLE_GPU) : 0;

	workload_mix_learn(&sched->placement.workload_mix, job->r.id,
	                   job->r.split_gpus > 0 ? WHOLE_GPU : milli, count, job->request.cpu_milli,
	                   job->r.split_gpus > 0 ? 1 : job->r.tasks, job->r.gpu_models);
}

static struct job *take_in(struct sched *sched, struct job_record *record, bool hold)
{
	struct error error;

	record->id = ++sched->meta.last_job_id;
	struct job *job = job_load(sched, record, &error);
	if (!job)
		panic("a checked job was refused: %s", error.text);
	predict_submitted(sched, job);
	job->s.queued_ms = sched_now(sched);
	job->s.held = hold;
	job->spec_dirty = true;
	sched_dirty_job(sched, job);
	sched_event(sched, (struct event){ .kind = EVENT_JOB_SUBMITTED,
	                                   .job_id = job->r.id,
	                                   .tenant_id = job->r.tenant_id });
	job_link_dependencies(sched, job);
	deadline_look(sched, job);
	learn_mix(sched, job);
	return job;
}

static void take_in_array(struct sched *sched, const struct submit_command *submit,
                          struct job_record *record)
{
	int64_t first = sched->meta.last_job_id + 1, count = submit_count(submit);

	record->array_id = first;
	record->array_first = submit_array_index(submit, 0);
	record->array_last = submit_array_index(submit, count - 1);
	record->array_count = count;
	for (int64_t i = 0; i < count; i++) {
		record->array_index = submit_array_index(submit, i);
		take_in(sched, record, submit->hold);
	}
	for (int64_t id = first; id <= sched->meta.last_job_id; id++)
		job_settle(sched, map_get(&sched->jobs, id));
}

/* A submission with everything filled in. */
struct submission {
	struct job_record record;
	int64_t arrays[3 * JOB_DEPENDS_MAX]; /* the record's depends_arrays */
};

/* An array is named by any of its jobs; it is stored with its first one and its size. */
static void complete_arrays(const struct sched *sched, struct submission *submission)
{
	struct rows *arrays = &submission->record.depends_arrays;

	if (arrays->count <= 0 || arrays->count > JOB_DEPENDS_MAX)
		return;
	for (int64_t i = 0; i < arrays->count; i++) {
		int64_t *row = submission->arrays + 3 * i;
		memcpy(row, arrays->at + 3 * i, 3 * sizeof(*row));
		const struct job *other = map_get(&sched->jobs, row[0]);
		row[2] = 1;
		if (other && other->r.array_id > 0) {
			row[0] = other->r.array_id;
			row[2] = max64(other->r.array_count, other->r.id - other->r.array_id + 1);
		}
	}
	arrays->at = submission->arrays;
}

/* Completes the record and judges it. True: it is taken in, or it repeats `*before`. */
static bool judge(struct sched *sched, const struct submit_command *submit,
                  struct submission *submission, struct job **before, struct error *error)
{
	struct job_record *record = &submission->record;
	*record = complete(sched, submit);
	complete_arrays(sched, submission);
	const struct tenant *tenant = tenants_find(&sched->tenants, record->tenant_id);

	*before = NULL;
	if (!check_text(record->idempotency_key, KEY_MAX, "idempotency_key", error))
		return false;
	if (!tenant)
		return error_set(error, ERROR_NOT_FOUND, "tenant-%lld is not known",
		                 (long long)record->tenant_id);
	*before = known(sched, record);
	if (*before)
		return check_repeated(*before, record, error);
	return job_check(record, error) && check_now(sched, record, error) &&
	       check_array(submit, error) &&
	       check_depends(sched, record, submit_count(submit), error) &&
	       check_allowed(sched, record, tenant, submit->check_possible, error) &&
	       check_room(sched, tenant, submit_count(submit), record->tasks, error);
}

bool job_submit(struct sched *sched, const struct submit_command *submit, struct error *error)
{
	struct submission submission;
	struct job_record *record = &submission.record;
	struct job *before;

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!judge(sched, submit, &submission, &before, error))
		return false;
	if (before) {
		sched->effects->reply_id = before->r.id;
		sched->effects->repeated = true;
		/* Only the same request is known to have asked for as many. */
		if (record->request_hash != 0 && before->r.request_hash == record->request_hash)
			sched->effects->reply_count = submit_count(submit);
		return true;
	}
	sched->effects->reply_id = sched->meta.last_job_id + 1;
	sched->effects->reply_count = submit_count(submit);
	if (submit->array_to > 0)
		take_in_array(sched, submit, record);
	else
		job_settle(sched, take_in(sched, record, submit->hold));
	return true;
}

/* Dependencies that it would wait for. */
static int64_t count_unmet(const struct sched *sched, const struct job_record *record)
{
	struct dependency_walk walk = { 0 };
	enum dependency kind;
	const struct job *other;
	int64_t unmet = 0;

	while ((other = dependency_next(sched, record, &walk, &kind)) != NULL)
		unmet += !job_state_is_final((enum job_state)other->s.state);
	return unmet;
}

struct job *job_trial(struct sched *sched, const struct submit_command *submit,
                      const struct job **before, struct error *error)
{
	struct submission submission;
	struct job_record *record = &submission.record;
	struct job *known_job;

	INVARIANT(!sched->plan.open);
	bool taken = judge(sched, submit, &submission, &known_job, error);
	*before = known_job;
	if (!taken || known_job)
		return NULL;
	record->id = sched->meta.last_job_id + 1;
	record->idempotency_key = "";
	record->array_limit = 0;
	struct job *job = job_load(sched, record, error);
	INVARIANT(job);
	predict_expect(sched, job);
	job->s.queued_ms = sched_now(sched);
	job->s.held = submit->hold;
	job->unmet = count_unmet(sched, &job->r);
	return job;
}

void job_trial_end(struct sched *sched, struct job *job)
{
	job_free(sched, job);
}

/* Counts it as waiting, or not any more. */
static void count_waiting(struct sched *sched, const struct submit_trial *trial, int64_t sign)
{
	struct tenant *tenant = tenants_find(&sched->tenants, trial->submit->job.tenant_id);

	sched->waiting_tasks += sign * trial->adds * trial->tasks;
	tenant->waiting_jobs += sign * trial->adds;
}

bool sched_takes_all(struct sched *sched, struct submit_trial *trials, size_t count, int64_t now_ms)
{
	int64_t before_ms = sched->meta.now_ms;
	bool all = true;

	INVARIANT(!sched->plan.open);
	sched->meta.now_ms = max64(before_ms, now_ms);
	for (size_t i = 0; i < count; i++) {
		struct submit_trial *trial = &trials[i];
		struct submission submission;
		struct job *before;
		error_clear(trial->error);
		trial->adds = 0;
		trial->taken = judge(sched, trial->submit, &submission, &before, trial->error);
		all = all && trial->taken;
		if (!trial->taken || before)
			continue;
		trial->adds = submit_count(trial->submit);
		trial->tasks = submission.record.tasks;
		count_waiting(sched, trial, 1);
	}
	for (size_t i = 0; i < count; i++)
		if (trials[i].adds > 0)
			count_waiting(sched, &trials[i], -1);
	sched->meta.now_ms = before_ms;
	return all;
}
