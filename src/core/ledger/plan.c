/* plan.c - tentative changes to the real ledger, committed or undone as a whole */
#include "core/ledger/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/model/slot.h"
#include "core/queue/job.h"
#include "core/state.h"

void plan_begin(struct sched *sched)
{
	struct plan *plan = &sched->plan;

	INVARIANT(!plan->open);
	plan->open = true;
	plan->count = 0;
}

size_t plan_mark(const struct sched *sched)
{
	INVARIANT(sched->plan.open);
	return sched->plan.count;
}

static void plan_note(struct sched *sched, enum step_kind kind, struct reservation *reservation)
{
	struct plan *plan = &sched->plan;

	INVARIANT(plan->open);
	array_reserve(plan->steps, plan->capacity, plan->count + 1);
	plan->steps[plan->count++] = (struct plan_step){
		.kind = kind,
		.reservation = reservation,
		.phase = reservation->phase,
		.late = reservation->late,
		.since_ms = reservation->since_ms,
		.version = reservation->node->version,
		.free_version = sched->index.free_version,
	};
}

/* What asks for nothing of the host is not refused where too much of it is taken. */
static bool host_has(const struct host_books *books, int64_t total, int64_t asked)
{
	return asked == 0 || host_free_later(books, total) >= asked;
}

/* A claim must fit once releasing memory is free; the memory invariant applies later. */
static bool may_claim(const struct sched *sched, const struct reservation *claim,
                      struct error *error)
{
	const struct node *node = claim->node;

	if (!node_is_open(node))
		return error_set(error, ERROR_NO_ROOM, "node %s takes nothing new", node->r.name);
	for (int i = 0; i < claim->part_count; i++) {
		const struct part *part = &claim->parts[i];
		bool fits = part->whole ? gpu_empty_later(part->gpu) &&
		                              part->gpu->r.foreign_mib <=
		                                  sched->config.foreign_tolerance_mib
		                        : gpu_shareable_later(part->gpu);
		if (!fits || !gpu_is_open(part->gpu, &sched->config) ||
		    gpu_free_later(part->gpu) < part->mib)
			return error_set(error, ERROR_NO_ROOM, "GPU %s will not have %lld MiB free",
			                 part->gpu->r.uuid, (long long)part->mib);
	}
	if (!host_has(&node->cpu, node->r.cpu_milli, claim->cpu_milli) ||
	    !host_has(&node->host, node->r.host_bytes, claim->host_bytes))
		return error_set(error, ERROR_NO_ROOM,
		                 "node %s will not have the CPU or host memory free", node->r.name);
	return true;
}

static bool within_limits(const struct sched *sched, const struct reservation *reservation,
                          struct error *error)
{
	const struct job *job = reservation->job;
	struct amounts amounts = reservation_amounts(reservation);
	struct bound bound;

	amounts.of[AMOUNT_JOBS] = job && job_active(job) == 0 ? 1 : 0;
	if (sched->plan.unlimited ||
	    tenant_may_hold(reservation_tenant(reservation), &amounts,
	                    reservation_preemptible(reservation), sched_now(sched), &bound))
		return true;
	struct buffer sentence = { 0 };
	bound_print(&sentence, &bound);
	error_set(error, ERROR_NO_ROOM, "%s", sentence.data);
	buffer_free(&sentence);
	return false;
}

static struct reservation *plan_make(struct sched *sched, struct node *node, enum phase phase,
                                     const struct part *parts, int part_count)
{
	struct reservation *reservation =
	    memory_zero(1, sizeof(*reservation) + (size_t)part_count * sizeof(*parts));

	reservation->id = sched->meta.last_reservation_id + 1;
	reservation->node = node;
	reservation->phase = phase;
	reservation->since_ms = sched_now(sched);
	reservation->due_ms = INT64_MAX;
	reservation->due_index = -1;
	reservation->part_count = part_count;
	if (part_count)
		memcpy(reservation->parts, parts, (size_t)part_count * sizeof(*parts));
	return reservation;
}

/* Where its task points to it. A slot has one reservation for life. */
static struct reservation **holder_of(struct reservation *reservation)
{
	if (reservation->slot)
		return &reservation->slot->reservation;
	struct task *task = &reservation->job->tasks[reservation->task];
	return reservation->phase == PHASE_CLAIM ? &task->claim : &task->reservation;
}

static bool may_enter(const struct sched *sched, const struct reservation *reservation,
                      struct error *error)
{
	bool granted = reservation->phase == PHASE_GRANTED
	                   ? ledger_may_grant(sched, reservation, error)
	                   : may_claim(sched, reservation, error);

	return granted && within_limits(sched, reservation, error);
}

static void enter(struct sched *sched, struct reservation *reservation)
{
	sched->meta.last_reservation_id++;
	plan_note(sched, STEP_ENTER, reservation);
	ledger_enter(sched, reservation);
	*holder_of(reservation) = reservation;
}

struct reservation *plan_reserve(struct sched *sched, struct job *job, int task, struct node *node,
                                 enum phase phase, const struct part *parts, int part_count,
                                 struct error *error)
{
	INVARIANT(phase == PHASE_GRANTED || phase == PHASE_CLAIM);
	struct reservation *reservation = plan_make(sched, node, phase, parts, part_count);

	reservation->job = job;
	reservation->task = task;
	reservation->cpu_milli = job->request.cpu_milli;
	reservation->host_bytes = job->request.host_bytes;
	INVARIANT(*holder_of(reservation) == NULL);
	if (!may_enter(sched, reservation, error)) {
		free(reservation);
		return NULL;
	}
	enter(sched, reservation);
	return reservation;
}

struct slot *plan_reserve_slot(struct sched *sched, struct model *model, struct node *node,
                               enum phase phase, const struct part *parts, int part_count,
                               struct error *error)
{
	INVARIANT(phase == PHASE_GRANTED || phase == PHASE_CLAIM);
	struct reservation *reservation = plan_make(sched, node, phase, parts, part_count);

	reservation->cpu_milli = model->r.cpu_milli;
	reservation->host_bytes = model->r.host_bytes;
	reservation->slot = slot_new(model, reservation);
	if (!may_enter(sched, reservation, error)) {
		slot_free(reservation->slot);
		free(reservation);
		return NULL;
	}
	enter(sched, reservation);
	return reservation->slot;
}

/* A claim counts already; a limit may have been lowered since. */
static bool still_within_limits(const struct reservation *claim, struct error *error)
{
	struct amounts amounts = reservation_amounts(claim);

	for (const struct tenant *tenant = reservation_tenant(claim); tenant;
	     tenant = tenant->parent)
		for (enum amount_kind k = 0; k < AMOUNT_KINDS; k++)
			if (amounts.of[k] > 0 && tenant->allocated.of[k] > tenant_limit(tenant, k))
				return error_set(error, ERROR_NO_ROOM,
				                 "tenant %s has exceeded its limit",
				                 tenant->r.name);
	return true;
}

bool plan_grant(struct sched *sched, struct reservation *claim, struct error *error)
{
	struct task *task = claim->job ? &claim->job->tasks[claim->task] : NULL;

	INVARIANT(sched->plan.open);
	INVARIANT(claim->phase == PHASE_CLAIM);
	if (task && task->reservation)
		return error_set(error, ERROR_NO_ROOM, "the task's own memory is not back yet");
	if (!ledger_may_grant(sched, claim, error))
		return false;
	if (!still_within_limits(claim, error))
		return false;
	plan_note(sched, STEP_PHASE, claim);
	if (task)
		task->claim = NULL;
	ledger_phase(sched, claim, PHASE_GRANTED, false);
	claim->since_ms = sched_now(sched);
	*holder_of(claim) = claim;
	return true;
}

void plan_release(struct sched *sched, struct reservation *reservation)
{
	INVARIANT(sched->plan.open);
	INVARIANT(reservation->phase == PHASE_GRANTED || reservation->phase == PHASE_LIVE);
	plan_note(sched, STEP_PHASE, reservation);
	ledger_phase(sched, reservation, PHASE_RELEASING, false);
	reservation->since_ms = sched_now(sched);
}

/* True if it can stay: nothing that was placed since counts on its memory. */
static bool may_stay(const struct sched *sched, const struct reservation *reservation)
{
	const struct node *node = reservation->node;

	for (int i = 0; i < reservation->part_count; i++) {
		const struct part *part = &reservation->parts[i];
		const struct gpu_books *books = &part->gpu->books;
		if (part->whole ? books->claims > 0 || books->owners > 1 : books->whole_claims > 0)
			return false;
		if (gpu_free_later(part->gpu) < max64(part->mib, part->measured_mib) &&
		    books->claims > 0)
			return false;
	}
	if (node->cpu.claimed > 0 &&
	    host_free_later(&node->cpu, node->r.cpu_milli) < reservation->cpu_milli)
		return false;
	if (node->host.claimed > 0 &&
	    host_free_later(&node->host, node->r.host_bytes) < reservation->host_bytes)
		return false;
	return within_limits(sched, reservation, NULL);
}

bool plan_keep(struct sched *sched, struct reservation *reservation)
{
	struct plan *plan = &sched->plan;
	size_t at = plan->count;

	INVARIANT(reservation->phase == PHASE_RELEASING);
	while (at > 0 && !(plan->steps[at - 1].reservation == reservation &&
	                   plan->steps[at - 1].kind == STEP_PHASE))
		at--;
	INVARIANT(at > 0);
	enum phase before = plan->steps[at - 1].phase;
	int64_t since_ms = plan->steps[at - 1].since_ms;
	if (!may_stay(sched, reservation))
		return false;
	plan_note(sched, STEP_PHASE, reservation);
	ledger_phase(sched, reservation, before, false);
	reservation->since_ms = since_ms;
	return true;
}

void plan_drop(struct sched *sched, struct reservation *claim)
{
	INVARIANT(sched->plan.open);
	INVARIANT(claim->phase == PHASE_CLAIM && claim->job);
	plan_note(sched, STEP_LEAVE, claim);
	ledger_leave(sched, claim);
	claim->job->tasks[claim->task].claim = NULL;
}

static void undo(struct sched *sched, const struct plan_step *step)
{
	struct reservation *reservation = step->reservation;
	struct node *node = reservation->node;

	switch (step->kind) {
	case STEP_ENTER:
		*holder_of(reservation) = NULL;
		ledger_leave(sched, reservation);
		sched->meta.last_reservation_id = reservation->id - 1;
		if (reservation->slot)
			slot_free(reservation->slot);
		free(reservation);
		break;
	case STEP_LEAVE:
		ledger_enter(sched, reservation);
		*holder_of(reservation) = reservation;
		break;
	case STEP_PHASE:
		if (step->phase == PHASE_CLAIM && reservation->job) {
			struct task *task = &reservation->job->tasks[reservation->task];
			task->reservation = NULL;
			task->claim = reservation;
		}
		ledger_phase(sched, reservation, step->phase, step->late);
		reservation->since_ms = step->since_ms;
		break;
	}
	if (sched->indexed)
		index_restore(&sched->index, node, &sched->config, step->version,
		              step->free_version);
}

void plan_rollback(struct sched *sched, size_t mark)
{
	struct plan *plan = &sched->plan;

	INVARIANT(plan->open && mark <= plan->count);
	plan->undoing = true;
	while (plan->count > mark)
		undo(sched, &plan->steps[--plan->count]);
	plan->undoing = false;
}

void plan_abandon(struct sched *sched)
{
	plan_rollback(sched, 0);
	sched->plan.open = false;
}

void plan_commit(struct sched *sched)
{
	struct plan *plan = &sched->plan;

	INVARIANT(plan->open);
	for (size_t i = 0; i < plan->count; i++) {
		struct reservation *reservation = plan->steps[i].reservation;
		if (plan->steps[i].kind == STEP_ENTER)
			map_put(&sched->reservations, reservation->id, reservation);
		if (plan->steps[i].kind == STEP_LEAVE)
			sched_gone_reservation(sched, reservation);
		else
			sched_dirty_reservation(sched, reservation);
	}
	plan->open = false;
}
