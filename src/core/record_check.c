/* record_check.c - whether stored records can be what a scheduler wrote */
#include "core/record_check.h"

#include "core/queue/demand.h"
#include "core/state.h"

/* Counters that are counted on from, and durations that are added to times. */
#define NUMBER_MAX (INT64_MAX / 4)

static bool corrupt(struct error *error, const char *what, int64_t id, const char *why)
{
	return error_set(error, ERROR_CORRUPT, "%s %lld is stored %s", what, (long long)id, why);
}

static bool within(int64_t number, int64_t least, int64_t most)
{
	return number >= least && number <= most;
}

static bool is_time(int64_t time_ms)
{
	return within(time_ms, 0, TIME_MS_MAX);
}

/* Enums have values that have names. */
static bool check_words(enum record_kind kind, const void *record, struct error *error)
{
	const struct record_type *type = record_type(kind);

	for (int i = 0; i < type->field_count; i++) {
		const struct record_field *field = &type->fields[i];
		if (field->words && !word_of(field->words, field_number(field, record)))
			return error_set(error, ERROR_CORRUPT, "a %s is stored with %s %lld",
			                 type->name, field->name,
			                 (long long)field_number(field, record));
	}
	return true;
}

static bool check_meta(const struct sched *sched, const struct meta_record *meta,
                       struct error *error)
{
	const int64_t counters[] = {
		meta->term,          meta->last_tenant_id, meta->last_node_id,
		meta->last_gpu_id,   meta->last_job_id,    meta->last_reservation_id,
		meta->last_model_id, meta->last_start,     meta->last_decision_id,
		meta->last_event,    meta->last_run_id,    meta->last_class_id,
		meta->last_guest_id, meta->last_window_id
	};

	if (meta->id != 1 || sched->written_meta.id != 0)
		return corrupt(error, "the row of counters", meta->id, "beside another");
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		if (!within(counters[i], 0, NUMBER_MAX))
			return corrupt(error, "a counter of", counters[i],
			               "in the row of counters");
	if (!is_time(meta->now_ms))
		return corrupt(error, "the time", meta->now_ms, "in the row of counters");
	return true;
}

static bool check_tenant(const struct sched *sched, const struct tenant_record *tenant,
                         struct error *error)
{
	if (!within(tenant->id, 1, sched->meta.last_tenant_id))
		return corrupt(error, "tenant", tenant->id, "under an id that it cannot have");
	if (!is_time(tenant->metered_ms) || !within(tenant->jobs_completed, 0, NUMBER_MAX) ||
	    !within(tenant->jobs_failed, 0, NUMBER_MAX) ||
	    !within(tenant->jobs_cancelled, 0, NUMBER_MAX))
		return corrupt(error, "tenant", tenant->id, "with a number that cannot be");
	return true;
}

static bool record_check_check_node(const struct sched *sched, const struct node_record *node,
                                    struct error *error)
{
	const struct node_report_command report = {
		.name = node->name,
		.boot = node->boot,
		.zone = node->zone,
		.rack = node->rack,
		.labels = node->labels,
		.cpu_milli = node->cpu_milli,
		.host_bytes = node->host_bytes,
	};

	if (!within(node->id, 1, sched->meta.last_node_id) ||
	    map_get(&sched->cluster.node_by_id, node->id))
		return corrupt(error, "node", node->id, "under an id that it cannot have");
	if (cluster_node(&sched->cluster, node->name))
		return corrupt(error, "node", node->id, "under the name of another");
	if (!within(node->taken_cpu_milli, 0, CPU_MILLI_MAX) ||
	    !within(node->taken_host_bytes, 0, HOST_BYTES_MAX))
		return corrupt(error, "node", node->id, "with amounts taken that cannot be");
	if (!demand_check(node->resources, "", "", "", error) ||
	    !demand_check(node->taken, "", "", "", error))
		return false;
	return cluster_check_report(&sched->cluster, &report, error);
}

static bool record_check_check_gpu(const struct sched *sched, const struct gpu_record *gpu,
                                   struct error *error)
{
	const struct node *node = map_get(&sched->cluster.node_by_id, gpu->node_id);
	const struct device device = {
		.uuid = gpu->uuid,
		.model = gpu->model,
		.mig_parent = gpu->mig_parent,
		.place = gpu->place,
		.capacity_mib = gpu->capacity_mib,
		.overhead_mib = gpu->overhead_mib,
		.foreign_mib = gpu->foreign_mib,
	};
	struct node_report_command report = { .boot = "",
		                              .zone = "",
		                              .rack = "",
		                              .labels = "",
		                              .devices = &device,
		                              .device_count = 1,
		                              .slowdowns_c = { &gpu->slowdown_c, 1 } };

	if (!within(gpu->id, 1, sched->meta.last_gpu_id) ||
	    map_get(&sched->cluster.gpu_by_id, gpu->id))
		return corrupt(error, "GPU", gpu->id, "under an id that it cannot have");
	if (!node || node->gpu_count == GPUS_PER_NODE_MAX)
		return corrupt(error, "GPU", gpu->id, "on a node that is not there, or is full");
	if (cluster_gpu(&sched->cluster, gpu->uuid))
		return corrupt(error, "GPU", gpu->id, "under the UUID of another");
	report.name = node->r.name;
	return cluster_check_report(&sched->cluster, &report, error);
}

static bool check_job(const struct sched *sched, const struct job_record *job, struct error *error)
{
	if (!within(job->id, 1, sched->meta.last_job_id) || map_get(&sched->jobs, job->id))
		return corrupt(error, "job", job->id, "under an id that it cannot have");
	if (!tenants_find(&sched->tenants, job->tenant_id))
		return corrupt(error, "job", job->id, "with a tenant that is not there");
	if (!within(job->array_id, 0, job->id) || !is_time(job->submitted_ms) ||
	    job->array_limit < 0)
		return corrupt(error, "job", job->id, "with an array or a time that cannot be");
	if (job->split_gpus > 0 && (job->split_gpus != job->tasks || job->min_available != 1))
		return corrupt(error, "job", job->id, "with tasks that it cannot be split into");
	if (job->array_count < 0 || !is_time(job->begin_ms))
		return corrupt(error, "job", job->id, "with an array or a time that cannot be");
	for (int64_t i = 0; i < job->depends_arrays.count; i++) {
		const int64_t *row = job->depends_arrays.at + 3 * i;
		if (!within(row[0], 1, job->id - 1) || !within(row[2], 1, job->id - row[0]))
			return corrupt(error, "job", job->id,
			               "with an array that it cannot depend on");
	}
	for (int64_t i = 0; i < job->depends.count; i++)
		if (!within(job->depends.at[2 * i], 1, job->id - 1))
			return corrupt(error, "job", job->id, "depending on a later one");
	return job_check(job, error);
}

static bool check_job_state(const struct sched *sched, const struct job_state_record *state,
                            struct error *error)
{
	const struct job *job = map_get(&sched->jobs, state->id);

	if (!job || job->has_state)
		return corrupt(error, "the state of job", state->id, "without it, or twice");
	if (!is_time(state->queued_ms) || !is_time(state->not_before_ms) ||
	    !is_time(state->started_ms) || !is_time(state->checkpoint_ms) ||
	    !is_time(state->completed_ms) || !is_time(state->short_since_ms) ||
	    !is_time(state->promised_ms) || !is_time(state->likely_ms) ||
	    !is_time(state->promise_made_ms) || !is_time(state->look_ms) ||
	    !is_time(state->urgent_ms))
		return corrupt(error, "the state of job", state->id, "with a time that cannot be");
	if (!within(state->refusals, 0, NUMBER_MAX) || !within(state->expected_ms, 0, NUMBER_MAX) ||
	    !within(state->expected_p90_ms, 0, NUMBER_MAX) || !within(state->confidence, 0, 1000) ||
	    !within(state->deadline_risk, 0, 1000) || !within(state->guess, 0, NUMBER_MAX) ||
	    !within(state->start, 0, sched->meta.last_start) ||
	    !within(state->preempted_count, 0, NUMBER_MAX) ||
	    !within(state->served_ms, 0, NUMBER_MAX))
		return corrupt(error, "the state of job", state->id,
		               "with a number that cannot be");
	return true;
}

static bool check_task(const struct sched *sched, const struct task_record *task,
                       struct error *error)
{
	const struct job *job = map_get(&sched->jobs, task->job_id);

	if (!job || !within(task->place, 0, job->r.tasks - 1) || job->tasks[task->place].recorded)
		return corrupt(error, "a task of job", task->job_id, "without it, or twice");
	if (!is_time(task->started_ms) || !is_time(task->ended_ms))
		return corrupt(error, "a task of job", task->job_id, "with a time that cannot be");
	if (!is_time(task->peak_mib) || !is_time(task->gpu_ms) || !is_time(task->energy_mj) ||
	    !is_time(task->host_peak_bytes) || !is_time(task->cpu_ms) ||
	    !is_time(task->limit_mib) || !is_time(task->guard_peak_mib) ||
	    !is_time(task->refusals) || !is_time(task->refused_mib))
		return corrupt(error, "a task of job", task->job_id, "with impossible usage");
	return true;
}

/* What the task of a reservation in that phase is doing. */
static bool phase_suits(enum phase phase, enum task_state state)
{
	switch (phase) {
	case PHASE_CLAIM:
		return state == TASK_PENDING || state == TASK_STOPPING;
	case PHASE_GRANTED:
		return state == TASK_PLACED;
	case PHASE_LIVE:
		return state == TASK_RUNNING;
	case PHASE_SUSPENDING:
		return state == TASK_SUSPENDING;
	case PHASE_SUSPENDED:
	case PHASE_WAKING:
		return state == TASK_SUSPENDED;
	case PHASE_RESUMING:
		return state == TASK_RESUMING;
	default:
		return state == TASK_STOPPING || state == TASK_ENDED;
	}
}

static bool check_parts(const struct sched *sched, const struct reservation_record *reservation,
                        struct error *error)
{
	for (int64_t i = 0; i < reservation->parts.count; i++) {
		const int64_t *row = reservation->parts.at + i * PART_WIDTH;
		const struct gpu *gpu = map_get(&sched->cluster.gpu_by_id, row[PART_GPU]);
		bool twice = false;
		for (int64_t j = 0; j < i; j++)
			twice |= reservation->parts.at[j * PART_WIDTH + PART_GPU] == row[PART_GPU];
		if (!gpu || gpu->node->r.id != reservation->node_id || twice)
			return corrupt(error, "reservation", reservation->id,
			               "on a GPU that its node does not have, or on one twice");
		if (!within(row[PART_MIB], reservation->residue_mib, MIB_MAX) ||
		    !within(row[PART_MEASURED], 0, MIB_MAX) ||
		    !within(row[PART_SHARE], 0, WHOLE_GPU) || !within(row[PART_WHOLE], 0, 1))
			return corrupt(error, "reservation", reservation->id,
			               "with a part that cannot be");
	}
	return true;
}

/* What the slot of a reservation in that phase is doing. */
static bool phase_suits_slot(enum phase phase, enum slot_state state)
{
	switch (phase) {
	case PHASE_CLAIM:
		return state == SLOT_WAITING;
	case PHASE_GRANTED:
		return state == SLOT_PLACED || state == SLOT_LOADING;
	case PHASE_LIVE:
		return state == SLOT_LOADING || state == SLOT_READY;
	case PHASE_SUSPENDING:
		return state == SLOT_SLEEPING;
	case PHASE_SUSPENDED:
		return state == SLOT_ASLEEP;
	case PHASE_WAKING:
	case PHASE_RESUMING:
		return state == SLOT_WAKING;
	default:
		return state == SLOT_STOPPING;
	}
}

static bool record_check_check_numbers(const struct sched *sched,
                                       const struct reservation_record *reservation,
                                       struct error *error)
{
	if (!within(reservation->cpu_milli, 0, CPU_MILLI_MAX) ||
	    !within(reservation->host_bytes, 0, HOST_BYTES_MAX) ||
	    !within(reservation->copy_bytes, 0, HOST_BYTES_MAX) ||
	    !within(reservation->residue_mib, 0, reservation->job_id == 0 ? MIB_MAX : 0) ||
	    !is_time(reservation->since_ms) || !is_time(reservation->ended_ms) ||
	    reservation->parts.count > PARTS_MAX)
		return corrupt(error, "reservation", reservation->id,
		               "with a number that cannot be");
	return check_parts(sched, reservation, error);
}

static bool check_slot_reservation(const struct sched *sched,
                                   const struct reservation_record *reservation,
                                   struct error *error)
{
	const struct slot *slot = map_get(&sched->models.slots, reservation->id);
	bool releasing = reservation->phase == PHASE_RELEASING;
	bool suspended = phase_is_suspended((enum phase)reservation->phase);
	bool away = reservation->phase == PHASE_SUSPENDED || reservation->phase == PHASE_WAKING;

	if (!slot || slot->r.model_id != reservation->model_id || slot->reservation ||
	    !map_get(&sched->cluster.node_by_id, reservation->node_id))
		return corrupt(error, "reservation", reservation->id,
		               "with a slot or a node that is not there");
	if (!phase_suits_slot((enum phase)reservation->phase, (enum slot_state)slot->r.state) ||
	    (reservation->late && !releasing && reservation->phase != PHASE_SUSPENDING) ||
	    reservation->requeue || (away && !reservation->away) ||
	    (reservation->away && !away && !releasing) ||
	    ((reservation->copy_bytes > 0 || reservation->residue_mib > 0) && !suspended &&
	     !releasing) ||
	    reservation->parts.count < 1)
		return corrupt(error, "reservation", reservation->id,
		               "in a phase that its slot is not in");
	return record_check_check_numbers(sched, reservation, error);
}

static bool check_model(const struct sched *sched, const struct model_record *model,
                        struct error *error)
{
	if (!within(model->id, 1, sched->meta.last_model_id) ||
	    models_find(&sched->models, model->id) ||
	    models_named(&sched->models, model->tenant_id, model->name))
		return corrupt(error, "model", model->id,
		               "under an id or a name that it cannot have");
	if (!tenants_find(&sched->tenants, model->tenant_id))
		return corrupt(error, "model", model->id, "with a tenant that is not there");
	if (!within(model->load_ms, 0, TIME_MS_MAX) || !within(model->wake_ms, 0, TIME_MS_MAX) ||
	    !within(model->sleep_residue_mib, 0, MIB_MAX) ||
	    !within(model->sleep_host_bytes, 0, HOST_BYTES_MAX) ||
	    !within(model->failures, 0, NUMBER_MAX) || !is_time(model->failed_ms) ||
	    !within(model->not_before_ms, 0, 2 * TIME_MS_MAX))
		return corrupt(error, "model", model->id, "with a number that cannot be");
	return model_check(model, error);
}

static bool record_check_check_slot(const struct sched *sched, const struct slot_record *slot,
                                    struct error *error)
{
	if (!within(slot->id, 1, sched->meta.last_reservation_id) ||
	    map_get(&sched->models.slots, slot->id))
		return corrupt(error, "slot", slot->id, "under an id that it cannot have");
	if (!models_find(&sched->models, slot->model_id))
		return corrupt(error, "slot", slot->id, "with a model that is not there");
	if (!within(slot->concurrency, 1, CONCURRENCY_MAX) || !is_time(slot->ordered_ms) ||
	    !is_time(slot->overdue_ms) || !is_time(slot->ready_ms) || !is_time(slot->used_ms) ||
	    !is_time(slot->held_ms) || !within(slot->closing_for, 0, sched->meta.last_model_id) ||
	    (slot->closing_for != 0 && slot->state != SLOT_READY) ||
	    (slot->evicted && slot->state != SLOT_READY && slot->state != SLOT_STOPPING))
		return corrupt(error, "slot", slot->id, "with a number that cannot be");
	return true;
}

static bool check_reservation(const struct sched *sched,
                              const struct reservation_record *reservation, struct error *error)
{
	const struct job *job = map_get(&sched->jobs, reservation->job_id);
	bool releasing = reservation->phase == PHASE_RELEASING;

	if (!within(reservation->id, 1, sched->meta.last_reservation_id) ||
	    map_get(&sched->reservations, reservation->id))
		return corrupt(error, "reservation", reservation->id,
		               "under an id that it cannot have");
	if (reservation->job_id == 0)
		return check_slot_reservation(sched, reservation, error);
	if (!job || !within(reservation->task, 0, job->r.tasks - 1) ||
	    !map_get(&sched->cluster.node_by_id, reservation->node_id))
		return corrupt(error, "reservation", reservation->id,
		               "with a job or a node that is not there");
	bool suspended = phase_is_suspended((enum phase)reservation->phase);
	bool away = reservation->phase == PHASE_SUSPENDED || reservation->phase == PHASE_WAKING;
	if ((away && !reservation->away) || (reservation->away && !away && !releasing) ||
	    (reservation->copy_bytes > 0 && !suspended && !releasing) ||
	    (suspended && (job->r.tasks > 1 || job->s.suspended_ms == 0)) ||
	    !phase_suits((enum phase)reservation->phase, job->tasks[reservation->task].state) ||
	    (job_state_is_final((enum job_state)job->s.state) && !releasing) ||
	    (reservation->late && !releasing && reservation->phase != PHASE_SUSPENDING) ||
	    (reservation->requeue && !releasing))
		return corrupt(error, "reservation", reservation->id,
		               "in a phase that its task is not in");
	return record_check_check_numbers(sched, reservation, error);
}

static bool check_node_class(const struct sched *sched, const struct node_class_record *class,
                             struct error *error)
{
	if (!within(class->id, 1, sched->meta.last_class_id) ||
	    cluster_node_class(&sched->cluster, class->name))
		return corrupt(error, "node class", class->id,
		               "under an id or a name that it cannot have");
	return node_class_check(class->name, class->nodes, error);
}

static bool check_guest(const struct sched *sched, const struct guest_record *guest,
                        struct error *error)
{
	if (!within(guest->id, 1, sched->meta.last_guest_id) ||
	    text_map_get(&sched->cluster.guest_by_name, guest->name))
		return corrupt(error, "guest", guest->id,
		               "under an id or a name that it cannot have");
	if (!map_get(&sched->cluster.node_by_id, guest->node_id))
		return corrupt(error, "guest", guest->id, "on a node that is not there");
	return demand_check("", guest->rules, guest->marks, "", error);
}

static bool check_window(const struct sched *sched, const struct window_record *window,
                         struct error *error)
{
	if (!within(window->id, 1, sched->meta.last_window_id) ||
	    windows_named(&sched->cluster.windows, window->name) ||
	    sched->cluster.windows.count == WINDOWS_MAX)
		return corrupt(error, "window", window->id,
		               "under an id or a name that it cannot have");
	if (window->tenant_id != 0 && !tenants_find(&sched->tenants, window->tenant_id))
		return corrupt(error, "window", window->id, "for a tenant that is not there");
	if (!is_time(window->made_ms))
		return corrupt(error, "window", window->id, "with a time that cannot be");
	return window_check(window, error);
}

bool record_check(const struct sched *sched, enum record_kind kind, const void *record,
                  struct error *error)
{
	if ((unsigned)kind >= RECORD_KINDS)
		return error_set(error, ERROR_CORRUPT, "unknown kind of record %d", (int)kind);
	if (!check_words(kind, record, error))
		return false;
	switch (kind) {
	case RECORD_META:
		return check_meta(sched, record, error);
	case RECORD_TENANT:
		return check_tenant(sched, record, error);
	case RECORD_NODE:
		return record_check_check_node(sched, record, error);
	case RECORD_GPU:
		return record_check_check_gpu(sched, record, error);
	case RECORD_JOB:
		return check_job(sched, record, error);
	case RECORD_JOB_STATE:
		return check_job_state(sched, record, error);
	case RECORD_TASK:
		return check_task(sched, record, error);
	case RECORD_MODEL:
		return check_model(sched, record, error);
	case RECORD_SLOT:
		return record_check_check_slot(sched, record, error);
	case RECORD_RESERVATION:
		return check_reservation(sched, record, error);
	case RECORD_NODE_CLASS:
		return check_node_class(sched, record, error);
	case RECORD_GUEST:
		return check_guest(sched, record, error);
	case RECORD_WINDOW:
		return check_window(sched, record, error);
	default:
		return true;
	}
}

/* A task that holds something has it, and a job has a state. */
static bool check_loaded_job(const struct job *job, struct error *error)
{
	if (!job->has_state)
		return corrupt(error, "job", job->r.id, "without its state");
	for (int i = 0; i < job->r.tasks; i++) {
		const struct task *task = &job->tasks[i];
		if (task->holds_right != (task->reservation != NULL) ||
		    task->holds_claim != (task->claim != NULL))
			return corrupt(error, "a task of job", job->r.id,
			               "without the reservation that it names");
	}
	return true;
}

/* Slots that were found there, whoever else had the GPU. */
static int32_t adopted_on(const struct gpu *gpu)
{
	int32_t count = 0;

	for (int i = 0; i < gpu->node->reservation_count; i++) {
		const struct reservation *reservation = gpu->node->reservations[i];
		for (int p = 0; p < reservation->part_count && reservation->slot; p++)
			count += reservation->parts[p].gpu == gpu && reservation->slot->r.adopted;
	}
	return count;
}

bool record_check_all(const struct sched *sched, struct error *error)
{
	if (sched->written_meta.id == 1 && sched->config_dirty)
		return error_set(error, ERROR_CORRUPT, "the settings are not stored");
	for (size_t i = 0; i < sched->jobs.capacity; i++) {
		const struct job *job = sched->jobs.entries[i].value;
		if (job && !check_loaded_job(job, error))
			return false;
	}
	for (size_t i = 0; i < sched->models.slots.capacity; i++) {
		const struct slot *slot = sched->models.slots.entries[i].value;
		if (slot && !slot->reservation)
			return corrupt(error, "slot", slot->r.id, "without its reservation");
	}
	for (size_t i = 0; i < sched->models.count; i++)
		if (sched->models.all[i]->r.removed && sched->models.all[i]->slot_count == 0)
			return corrupt(error, "model", sched->models.all[i]->r.id,
			               "as removed, without a slot that it waits for");
	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		const struct node *node = sched->cluster.nodes[i];
		for (int g = 0; g < node->gpu_count; g++) {
			const struct gpu_books *books = &node->gpus[g]->books;
			if (books->whole_owners > 0 &&
			    books->owners - adopted_on(node->gpus[g]) > 1)
				return corrupt(error, "GPU", node->gpus[g]->r.id,
				               "as given whole and shared");
			if (books->compute.milli > WHOLE_GPU)
				return corrupt(error, "GPU", node->gpus[g]->r.id,
				               "with more than all of its compute given away");
		}
	}
	return true;
}
