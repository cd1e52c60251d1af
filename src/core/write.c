/* write.c - what a command changed, as records at its end */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"

static void dirty_add(struct sched *sched, enum record_kind kind, void *what, int task)
{
	struct dirty *dirty = &sched->dirty;

	array_reserve(dirty->items, dirty->capacity, dirty->count + 1);
	dirty->items[dirty->count++] = (struct dirty_item){ kind, what, task };
}

void sched_dirty_job(struct sched *sched, struct job *job)
{
	if (!job->dirty)
		dirty_add(sched, RECORD_JOB_STATE, job, 0);
	job->dirty = true;
}

void sched_dirty_task(struct sched *sched, struct job *job, int task)
{
	if (!job->tasks[task].dirty)
		dirty_add(sched, RECORD_TASK, job, task);
	job->tasks[task].dirty = true;
	sched_dirty_job(sched, job);
}

void sched_dirty_reservation(struct sched *sched, struct reservation *reservation)
{
	if (!reservation->dirty)
		dirty_add(sched, RECORD_RESERVATION, reservation, 0);
	reservation->dirty = true;
}

void sched_gone_reservation(struct sched *sched, struct reservation *reservation)
{
	INVARIANT(!reservation->entered);
	map_remove(&sched->reservations, reservation->id);
	reservation->gone = true;
	sched_dirty_reservation(sched, reservation);
}

void sched_commit(struct sched *sched)
{
	const struct plan *plan = &sched->plan;

	plan_commit(&sched->ledger);
	for (size_t i = 0; i < plan->count; i++) {
		struct reservation *reservation = plan->steps[i].reservation;
		if (plan->steps[i].kind == STEP_LEAVE)
			sched_gone_reservation(sched, reservation);
		else
			sched_dirty_reservation(sched, reservation);
	}
}

/* Nodes, GPUs and tenants change seldom: a short look back is enough. */
static bool is_dirty(const struct sched *sched, enum record_kind kind, const void *what)
{
	for (size_t i = 0; i < sched->dirty.count; i++)
		if (sched->dirty.items[i].kind == kind && sched->dirty.items[i].what == what)
			return true;
	return false;
}

void sched_dirty_node(struct sched *sched, struct node *node)
{
	if (!node->dirty)
		dirty_add(sched, RECORD_NODE, node, 0);
	node->dirty = true;
}

void sched_dirty_gpu(struct sched *sched, struct gpu *gpu)
{
	if (!gpu->dirty)
		dirty_add(sched, RECORD_GPU, gpu, 0);
	gpu->dirty = true;
}

void sched_dirty_tenant(struct sched *sched, struct tenant *tenant)
{
	if (!tenant->dirty)
		dirty_add(sched, RECORD_TENANT, tenant, 0);
	tenant->dirty = true;
}

void sched_dirty_model(struct sched *sched, struct model *model)
{
	if (!model->dirty)
		dirty_add(sched, RECORD_MODEL, model, 0);
	model->dirty = true;
}

void sched_gone_model(struct sched *sched, struct model *model)
{
	model->gone = true;
	sched_dirty_model(sched, model);
}

void sched_dirty_slot(struct sched *sched, struct slot *slot)
{
	if (!slot->dirty)
		dirty_add(sched, RECORD_SLOT, slot, 0);
	slot->dirty = true;
}

/* Something that is about to be freed must not be written any more. */
static void dirty_forget(struct sched *sched, enum record_kind kind, const void *what)
{
	if (!is_dirty(sched, kind, what))
		return;
	for (size_t i = 0; i < sched->dirty.count; i++)
		if (sched->dirty.items[i].kind == kind && sched->dirty.items[i].what == what)
			sched->dirty.items[i].what = NULL;
}

void sched_forget_gpu(struct sched *sched, struct gpu *gpu)
{
	dirty_forget(sched, RECORD_GPU, gpu);
	effects_delete(sched->effects, RECORD_GPU, gpu->r.id, 0);
	cluster_remove_gpu(&sched->cluster, gpu);
	sched_cluster_changed(sched, true);
}

void sched_forget_node(struct sched *sched, struct node *node)
{
	guests_leave(sched, node);
	dirty_forget(sched, RECORD_NODE, node);
	effects_delete(sched->effects, RECORD_NODE, node->r.id, 0);
	sched_event(sched, (struct event){
			       .kind = EVENT_NODE_CHANGED, .node_id = node->r.id, .value = -1 });
	cluster_remove_node(&sched->cluster, node);
	sched_cluster_changed(sched, true);
}

void sched_event(struct sched *sched, struct event event)
{
	INVARIANT(sched->effects != NULL);
	event.number = ++sched->meta.last_event;
	event.time_ms = sched_now(sched);
	effects_event(sched->effects, &event);
}

void sched_decide(struct sched *sched, struct decision_record *decision)
{
	INVARIANT(sched->effects != NULL && !sched->plan.open);
	decision->id = ++sched->meta.last_decision_id;
	decision->time_ms = sched_now(sched);
	effects_put(sched->effects, RECORD_DECISION, decision);
}

void reservation_rows(const struct reservation *reservation, int64_t *rows)
{
	INVARIANT(reservation->part_count <= PARTS_MAX);
	for (int i = 0; i < reservation->part_count; i++) {
		const struct part *part = &reservation->parts[i];
		int64_t *row = rows + (size_t)i * PART_WIDTH;
		row[PART_GPU] = part->gpu->r.id;
		row[PART_MIB] = part->mib;
		row[PART_SHARE] = part->share;
		row[PART_MEASURED] = part->measured_mib;
		row[PART_WHOLE] = part->whole;
	}
}

static enum run_ending ending_of(const struct reservation *reservation)
{
	if (reservation->ending != RUN_GOES_ON)
		return reservation->ending;
	if (phase_is_suspended(reservation->phase))
		return RUN_SUSPENDED;
	if (reservation->slot)
		return RUN_UNLOADED;
	return reservation->phase == PHASE_CLAIM ? RUN_WITHDRAWN : RUN_REQUEUED;
}

static void write_run(struct sched *sched, const struct reservation *reservation)
{
	struct amounts amounts = reservation_asks(reservation);

	effects_put(
	    sched->effects, RECORD_RUN,
	    &(struct run_record){ .id = reservation->run_id,
	                          .tenant_id = reservation_tenant(reservation)->r.id,
	                          .job_id = reservation->job ? reservation->job->r.id : 0,
	                          .task = reservation->task,
	                          .model_id = reservation->slot ? reservation->slot->r.model_id : 0,
	                          .reservation_id = reservation->id,
	                          .node_id = reservation->node->r.id,
	                          .share = amounts.of[AMOUNT_GPU],
	                          .memory_mib = amounts.of[AMOUNT_GPU_MEMORY],
	                          .cpu_milli = amounts.of[AMOUNT_CPU],
	                          .began_ms = reservation->counted_ms,
	                          .started_ms = reservation->started_ms,
	                          .ended_ms = reservation->ended_ms,
	                          .ending = (int32_t)reservation->ending,
	                          .exit_code = reservation->exit_code,
	                          .peak_mib = reservation->peak_mib,
	                          .energy_mj = reservation->energy_mj,
	                          .saved_ms = reservation->saved_ms });
}

/* The last checkpoint of its job, if that was in this run. */
static int64_t saved_in(const struct reservation *reservation)
{
	const struct job *job = reservation->job;
	int64_t saved_ms = job ? max64(job->s.checkpoint_ms, job->saved_ms) : 0;

	return saved_ms > reservation->counted_ms ? saved_ms : 0;
}

/* A reservation counts for its tenant as of the end of a command, when tenants are
 * settled, too: so the runs of a tenant add up to what its meters say. What its
 * node measured may come when it counts no more: the run is then written again. */
static void meter_run(struct sched *sched, struct reservation *reservation)
{
	bool counts = !reservation->gone && reservation_is_billed(reservation);
	bool is_over = !counts && reservation->run_id == 0 && reservation->counted_ms > 0;

	if (counts && reservation->run_id != 0) { /* it was suspended */
		reservation->run_id = reservation->counted_ms = reservation->ended_ms = 0;
		reservation->started_ms = reservation->saved_ms = 0;
		reservation->ending = RUN_GOES_ON;
	}

	if (counts && reservation->counted_ms == 0)
		reservation->counted_ms = max64(sched_now(sched), 1);
	if (reservation->phase == PHASE_LIVE && reservation->started_ms == 0)
		reservation->started_ms = max64(reservation->since_ms, 1);
	if (is_over) {
		reservation->ending = ending_of(reservation);
		reservation->run_id = ++sched->meta.last_run_id;
		reservation->ended_ms =
		    reservation->gone ? sched_now(sched) : reservation->since_ms;
		if (reservation->gone && reservation->phase == PHASE_RELEASING)
			reservation->ended_ms = reservation->since_ms;
		reservation->saved_ms = saved_in(reservation);
	}
	if (is_over || (reservation->measured && reservation->run_id != 0))
		write_run(sched, reservation);
	reservation->measured = false;
}

static void write_reservation(struct sched *sched, struct reservation *reservation)
{
	int64_t rows[PARTS_MAX * PART_WIDTH];

	reservation->dirty = false;
	meter_run(sched, reservation);
	if (reservation->gone) {
		if (reservation->recorded)
			effects_delete(sched->effects, RECORD_RESERVATION, reservation->id, 0);
		free(reservation);
		return;
	}
	reservation_rows(reservation, rows);
	reservation->recorded = true;
	effects_put(sched->effects, RECORD_RESERVATION,
	            &(struct reservation_record){
			.id = reservation->id,
			.job_id = reservation->job ? reservation->job->r.id : 0,
			.model_id = reservation->slot ? reservation->slot->r.model_id : 0,
			.task = reservation->task,
			.node_id = reservation->node->r.id,
			.phase = (int32_t)reservation->phase,
			.late = reservation->late,
			.requeue = reservation->requeue,
			.cpu_milli = reservation->cpu_milli,
			.host_bytes = reservation->host_bytes,
			.since_ms = reservation->since_ms,
			.parts = { rows, reservation->part_count },
			.counted_ms = reservation->counted_ms,
			.saved_ms = reservation->saved_ms,
			.started_ms = reservation->started_ms,
			.ending = (int32_t)reservation->ending,
			.run_id = reservation->run_id,
			.away = reservation->away,
			.copy_bytes = reservation->copy_bytes,
			.residue_mib = reservation->residue_mib,
			.ended_ms = reservation->ended_ms });
}

static void write_task(struct sched *sched, struct job *job, int place)
{
	struct task *task = &job->tasks[place];

	task->dirty = false;
	task->recorded = true;
	effects_put(
	    sched->effects, RECORD_TASK,
	    &(struct task_record){ .job_id = job->r.id,
	                           .place = place,
	                           .state = (int32_t)task->state,
	                           .reservation_id = task->reservation ? task->reservation->id : 0,
	                           .claim_id = task->claim ? task->claim->id : 0,
	                           .started_ms = task->started_ms,
	                           .ended_ms = task->ended_ms,
	                           .exit_code = task->exit_code,
	                           .peak_mib = task->use.peak_mib,
	                           .gpu_ms = task->use.gpu_ms,
	                           .energy_mj = task->use.energy_mj,
	                           .host_peak_bytes = task->use.host_peak_bytes,
	                           .cpu_ms = task->use.cpu_ms,
	                           .limit_mib = task->use.limit_mib,
	                           .guard_peak_mib = task->use.guard_peak_mib,
	                           .refusals = task->use.refusals,
	                           .refused_mib = task->use.refused_mib,
	                           .unguarded = task->use.unguarded });
}

static void write_write_job(struct sched *sched, struct job *job)
{
	if (job->spec_dirty)
		effects_put(sched->effects, RECORD_JOB, &job->r);
	effects_put(sched->effects, RECORD_JOB_STATE, &job->s);
	job->dirty = job->spec_dirty = false;
}

/* What is gone is freed after all else is written, since others name it. */
static void write_model(struct sched *sched, struct model *model)
{
	model->dirty = false;
	if (!model->gone)
		effects_put(sched->effects, RECORD_MODEL, &model->r);
	else
		effects_delete(sched->effects, RECORD_MODEL, model->r.id, 0);
}

static void write_slot(struct sched *sched, struct slot *slot)
{
	slot->dirty = false;
	if (!slot->gone)
		effects_put(sched->effects, RECORD_SLOT, &slot->r);
	else if (slot->recorded)
		effects_delete(sched->effects, RECORD_SLOT, slot->r.id, 0);
	slot->recorded = true;
}

/* The runs that ended in this command know what they saved. */
static void forget_ended_runs(struct sched *sched)
{
	for (size_t i = 0; i < sched->dirty.count; i++) {
		struct job *job = sched->dirty.items[i].what;
		if (job && sched->dirty.items[i].kind == RECORD_JOB_STATE)
			job->saved_ms = 0;
	}
}

static void free_gone(struct sched *sched)
{
	for (size_t i = 0; i < sched->dirty.count; i++) {
		const struct dirty_item *item = &sched->dirty.items[i];
		struct model *model = item->what;
		struct slot *slot = item->what;
		if (!item->what)
			continue;
		if (item->kind == RECORD_MODEL && model->gone)
			model_free(model);
		else if (item->kind == RECORD_SLOT && slot->gone)
			slot_free(slot);
	}
}

static void write_item(struct sched *sched, const struct dirty_item *item)
{
	struct node *node = item->what;
	struct gpu *gpu = item->what;
	struct tenant *tenant = item->what;

	switch (item->kind) {
	case RECORD_JOB_STATE:
		write_write_job(sched, item->what);
		break;
	case RECORD_TASK:
		write_task(sched, item->what, item->task);
		break;
	case RECORD_RESERVATION:
		write_reservation(sched, item->what);
		break;
	case RECORD_MODEL:
		write_model(sched, item->what);
		break;
	case RECORD_SLOT:
		write_slot(sched, item->what);
		break;
	case RECORD_NODE:
		node->dirty = false;
		effects_put(sched->effects, RECORD_NODE, &node->r);
		break;
	case RECORD_GPU:
		gpu->dirty = false;
		effects_put(sched->effects, RECORD_GPU, &gpu->r);
		break;
	default:
		INVARIANT(item->kind == RECORD_TENANT);
		tenant->dirty = false;
		effects_put(sched->effects, RECORD_TENANT, &tenant->r);
		break;
	}
}

static void tenant_changed(void *context, struct tenant *tenant)
{
	sched_dirty_tenant(context, tenant);
}

/* Numbers of one size alone, so that equal bytes are equal records. */
static bool meta_changed(const struct sched *sched)
{
	_Static_assert(sizeof(struct meta_record) % sizeof(int64_t) == 0, "no bytes between");

	return memcmp(&sched->meta, &sched->written_meta, sizeof(sched->meta)) != 0;
}

void sched_flush(struct sched *sched)
{
	INVARIANT(sched->effects != NULL && !sched->plan.open);
	tenants_settle(&sched->tenants, sched_now(sched), &sched->config, tenant_changed, sched);
	for (size_t i = 0; i < sched->dirty.count; i++)
		if (sched->dirty.items[i].what)
			write_item(sched, &sched->dirty.items[i]);
	forget_ended_runs(sched);
	free_gone(sched);
	sched->dirty.count = 0;
	if (sched->config_dirty)
		effects_put(sched->effects, RECORD_CONFIG, &sched->config);
	sched->config_dirty = false;
	if (sched->placement.workload_mix.dirty)
		effects_put(sched->effects, RECORD_MIX, &sched->placement.workload_mix.r);
	sched->placement.workload_mix.dirty = false;
	if (meta_changed(sched))
		effects_put(sched->effects, RECORD_META, &sched->meta);
	sched->written_meta = sched->meta;
}
