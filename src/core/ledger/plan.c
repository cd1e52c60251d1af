/* plan.c - tentative changes to the real ledger, committed or undone as a whole */
#include "core/ledger/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/cluster/index.h"
#include "core/model/slot.h"
#include "core/queue/demand.h"
#include "core/queue/job.h"
#include "core/tenant/tenant.h"

void plan_begin(struct ledger *ledger)
{
	struct plan *plan = ledger->plan;

	INVARIANT(!plan->open);
	plan->open = true;
	plan->count = 0;
}

size_t plan_mark(const struct ledger *ledger)
{
	INVARIANT(ledger->plan->open);
	return ledger->plan->count;
}

static void plan_note(struct ledger *ledger, enum step_kind kind, struct reservation *reservation)
{
	struct plan *plan = ledger->plan;

	INVARIANT(plan->open);
	array_reserve(plan->steps, plan->capacity, plan->count + 1);
	plan->steps[plan->count++] = (struct plan_step){
		.kind = kind,
		.reservation = reservation,
		.phase = reservation->phase,
		.late = reservation->late,
		.since_ms = reservation->since_ms,
		.copy_bytes = reservation->copy_bytes,
		.residue_mib = reservation->residue_mib,
		.version = reservation->node->version,
		.free_version = ledger->index->free_version,
	};
}

/* What asks for nothing of the host is not refused where too much of it is taken. */
static bool host_has(const struct host_books *books, int64_t total, int64_t asked)
{
	return asked == 0 || host_free_later(books, total) >= asked;
}

static bool counts_claimable(const struct reservation *claim)
{
	const struct demand *demand = claim->job->filter->demand;

	for (int i = 0; demand && i < demand->count_count; i++) {
		const struct node_count *count = node_count(claim->node, demand->counts[i].name);
		if (demand->counts[i].amount > 0 &&
		    (!count ||
		     !host_has(&count->books, count_total(count), demand->counts[i].amount)))
			return false;
	}
	return true;
}

/* A claim must fit once releasing memory is free; the memory invariant applies later. */
static bool may_claim(const struct ledger *ledger, const struct reservation *claim,
                      struct error *error)
{
	const struct node *node = claim->node;

	if (!node_is_open(node))
		return error_set(error, ERROR_NO_ROOM, "node %s takes nothing new", node->r.name);
	for (int i = 0; i < claim->part_count; i++) {
		const struct part *part = &claim->parts[i];
		bool fits = part->whole ? gpu_empty_later(part->gpu) &&
		                              part->gpu->r.foreign_mib <=
		                                  ledger->config->foreign_tolerance_mib
		                        : gpu_divisible_later(part->gpu);
		struct compute_view view = compute_later(part->gpu);
		if (!fits || !gpu_is_open(part->gpu, ledger->config) ||
		    gpu_free_later(part->gpu) < reservation_missing_mib(claim, part))
			return error_set(error, ERROR_NO_ROOM, "GPU %s will not have %lld MiB free",
			                 part->gpu->r.uuid, (long long)part->mib);
		if (!part->whole && !ledger_may_share(ledger, part, &view, error))
			return false;
	}
	if (claim->job && !phase_is_suspended(claim->phase) && !counts_claimable(claim))
		return error_set(error, ERROR_NO_ROOM,
		                 "node %s will not have the counted resources free", node->r.name);
	bool has_memory = phase_is_suspended(claim->phase);
	if (!host_has(&node->cpu, node_cpu_milli(node), claim->cpu_milli) ||
	    (!has_memory && !host_has(&node->host, node_host_bytes(node), claim->host_bytes)))
		return error_set(error, ERROR_NO_ROOM,
		                 "node %s will not have the CPU or host memory free", node->r.name);
	return true;
}

static bool within_limits(const struct ledger *ledger, const struct reservation *reservation,
                          struct error *error)
{
	const struct job *job = reservation->job;
	struct amounts amounts = reservation_asks(reservation);
	struct bound bound;

	if (phase_is_suspended(reservation->phase)) /* it counts with its host memory already */
		amounts.of[AMOUNT_HOST] = 0;
	amounts.of[AMOUNT_JOBS] = job && job_active(job) == 0 ? 1 : 0;
	if (ledger->plan->unlimited ||
	    tenant_may_hold(reservation_tenant(reservation), &amounts,
	                    reservation_preemptible(reservation), ledger->meta->now_ms, &bound))
		return true;
	struct buffer sentence = { 0 };
	bound_print(&sentence, &bound);
	error_set(error, ERROR_NO_ROOM, "%s", sentence.data);
	buffer_free(&sentence);
	return false;
}

static struct reservation *plan_make(struct ledger *ledger, struct node *node, enum phase phase,
                                     const struct part *parts, int part_count)
{
	struct reservation *reservation =
	    memory_zero(1, sizeof(*reservation) + (size_t)part_count * sizeof(*parts));

	reservation->id = ledger->meta->last_reservation_id + 1;
	reservation->node = node;
	reservation->phase = phase;
	reservation->since_ms = ledger->meta->now_ms;
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

static bool may_enter(const struct ledger *ledger, const struct reservation *reservation,
                      struct error *error)
{
	bool granted = reservation->phase == PHASE_GRANTED
	                   ? ledger_may_grant(ledger, reservation, error)
	                   : may_claim(ledger, reservation, error);

	return granted && within_limits(ledger, reservation, error);
}

static void enter(struct ledger *ledger, struct reservation *reservation)
{
	ledger->meta->last_reservation_id++;
	plan_note(ledger, STEP_ENTER, reservation);
	ledger_enter(ledger, reservation);
	*holder_of(reservation) = reservation;
}

struct reservation *plan_reserve(struct ledger *ledger, struct job *job, int task,
                                 struct node *node, enum phase phase, const struct part *parts,
                                 int part_count, struct error *error)
{
	INVARIANT(phase == PHASE_GRANTED || phase == PHASE_CLAIM);
	struct reservation *reservation = plan_make(ledger, node, phase, parts, part_count);

	reservation->job = job;
	reservation->task = task;
	reservation->cpu_milli = job->request.cpu_milli;
	reservation->host_bytes = job->request.host_bytes;
	INVARIANT(*holder_of(reservation) == NULL);
	if (!may_enter(ledger, reservation, error)) {
		free(reservation);
		return NULL;
	}
	enter(ledger, reservation);
	return reservation;
}

struct slot *plan_reserve_slot(struct ledger *ledger, struct model *model, struct node *node,
                               enum phase phase, const struct part *parts, int part_count,
                               struct error *error)
{
	INVARIANT(phase == PHASE_GRANTED || phase == PHASE_CLAIM);
	struct reservation *reservation = plan_make(ledger, node, phase, parts, part_count);

	reservation->cpu_milli = model->r.cpu_milli;
	reservation->host_bytes = model->r.host_bytes;
	reservation->slot = slot_new(model, reservation);
	if (!may_enter(ledger, reservation, error)) {
		slot_free(reservation->slot);
		free(reservation);
		return NULL;
	}
	enter(ledger, reservation);
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

bool plan_grant(struct ledger *ledger, struct reservation *claim, struct error *error)
{
	struct task *task = claim->job ? &claim->job->tasks[claim->task] : NULL;

	INVARIANT(ledger->plan->open);
	INVARIANT(claim->phase == PHASE_CLAIM);
	if (task && task->reservation)
		return error_set(error, ERROR_NO_ROOM, "the task's own memory is not back yet");
	if (!ledger_may_grant(ledger, claim, error))
		return false;
	if (!still_within_limits(claim, error))
		return false;
	plan_note(ledger, STEP_PHASE, claim);
	if (task)
		task->claim = NULL;
	ledger_phase(ledger, claim, PHASE_GRANTED, false);
	claim->since_ms = ledger->meta->now_ms;
	*holder_of(claim) = claim;
	return true;
}

void plan_release(struct ledger *ledger, struct reservation *reservation)
{
	INVARIANT(ledger->plan->open);
	INVARIANT(reservation->phase == PHASE_GRANTED || reservation->phase == PHASE_LIVE ||
	          (reservation->slot && reservation->phase == PHASE_SUSPENDED));
	plan_note(ledger, STEP_PHASE, reservation);
	ledger_phase(ledger, reservation, PHASE_RELEASING, false);
	reservation->since_ms = ledger->meta->now_ms;
}

bool plan_suspend(struct ledger *ledger, struct reservation *reservation, struct error *error)
{
	struct amounts amounts = { { 0 } };
	struct bound bound;

	INVARIANT(ledger->plan->open && reservation->phase == PHASE_LIVE);
	amounts.of[AMOUNT_HOST] = reservation_copy_bytes(reservation);
	if (!ledger_may_copy(ledger, reservation, error))
		return false;
	if (!tenant_may_hold(reservation_tenant(reservation), &amounts,
	                     reservation_preemptible(reservation), ledger->meta->now_ms, &bound)) {
		struct buffer sentence = { 0 };
		bound_print(&sentence, &bound);
		error_set(error, ERROR_NO_ROOM, "%s", sentence.data);
		buffer_free(&sentence);
		return false;
	}
	plan_note(ledger, STEP_PHASE, reservation);
	if (reservation->slot)
		ledger_residue(ledger, reservation, slot_residue_mib(reservation->slot));
	ledger_copy(ledger, reservation, PHASE_SUSPENDING, amounts.of[AMOUNT_HOST]);
	reservation->since_ms = ledger->meta->now_ms;
	return true;
}

bool plan_wake(struct ledger *ledger, struct reservation *reservation, struct error *error)
{
	INVARIANT(ledger->plan->open && reservation->phase == PHASE_SUSPENDED);
	if (!may_claim(ledger, reservation, error) || !within_limits(ledger, reservation, error))
		return false;
	plan_note(ledger, STEP_PHASE, reservation);
	ledger_phase(ledger, reservation, PHASE_WAKING, false);
	return true;
}

bool plan_resume(struct ledger *ledger, struct reservation *reservation, struct error *error)
{
	INVARIANT(ledger->plan->open && reservation->phase == PHASE_WAKING);
	if (!ledger_may_grant(ledger, reservation, error))
		return false;
	plan_note(ledger, STEP_PHASE, reservation);
	ledger_phase(ledger, reservation, PHASE_RESUMING, false);
	reservation->since_ms = ledger->meta->now_ms;
	return true;
}

/* True if it can stay: nothing that was placed since counts on its memory. */
static bool may_stay(const struct ledger *ledger, const struct reservation *reservation)
{
	const struct node *node = reservation->node;

	for (int i = 0; i < reservation->part_count; i++) {
		const struct part *part = &reservation->parts[i];
		const struct gpu_books *books = &part->gpu->books;
		if (part->whole ? books->claims > 0 || books->owners > 1 : books->whole_claims > 0)
			return false;
		struct compute_view view = compute_later(part->gpu);
		if (!part->whole && !ledger_may_share(ledger, part, &view, NULL))
			return false;
		int64_t back =
		    reservation_held_mib(reservation, part) -
		    (reservation->phase == PHASE_SUSPENDING ? reservation->residue_mib : 0);
		if (gpu_free_later(part->gpu) < back && books->claims > 0)
			return false;
	}
	if (node->cpu.claimed > 0 &&
	    host_free_later(&node->cpu, node_cpu_milli(node)) < reservation->cpu_milli)
		return false;
	if (node->host.claimed > 0 &&
	    host_free_later(&node->host, node_host_bytes(node)) < reservation->host_bytes)
		return false;
	return within_limits(ledger, reservation, NULL);
}

bool plan_keep(struct ledger *ledger, struct reservation *reservation)
{
	struct plan *plan = ledger->plan;
	size_t at = plan->count;

	INVARIANT(reservation->phase == PHASE_RELEASING || reservation->phase == PHASE_SUSPENDING);
	while (at > 0 && !(plan->steps[at - 1].reservation == reservation &&
	                   plan->steps[at - 1].kind == STEP_PHASE))
		at--;
	INVARIANT(at > 0);
	enum phase before = plan->steps[at - 1].phase;
	int64_t since_ms = plan->steps[at - 1].since_ms;
	int64_t copy_bytes = plan->steps[at - 1].copy_bytes;
	int64_t residue_mib = plan->steps[at - 1].residue_mib;
	if (!may_stay(ledger, reservation))
		return false;
	plan_note(ledger, STEP_PHASE, reservation);
	ledger_copy(ledger, reservation, before, copy_bytes);
	if (reservation->slot)
		ledger_residue(ledger, reservation, residue_mib);
	reservation->since_ms = since_ms;
	return true;
}

void plan_drop(struct ledger *ledger, struct reservation *claim)
{
	INVARIANT(ledger->plan->open);
	INVARIANT(claim->phase == PHASE_CLAIM && claim->job);
	plan_note(ledger, STEP_LEAVE, claim);
	ledger_leave(ledger, claim);
	claim->job->tasks[claim->task].claim = NULL;
}

static void undo(struct ledger *ledger, const struct plan_step *step)
{
	struct reservation *reservation = step->reservation;
	struct node *node = reservation->node;

	switch (step->kind) {
	case STEP_ENTER:
		*holder_of(reservation) = NULL;
		ledger_leave(ledger, reservation);
		ledger->meta->last_reservation_id = reservation->id - 1;
		if (reservation->slot)
			slot_free(reservation->slot);
		free(reservation);
		break;
	case STEP_LEAVE:
		ledger_enter(ledger, reservation);
		*holder_of(reservation) = reservation;
		break;
	case STEP_PHASE:
		if (step->phase == PHASE_CLAIM && reservation->job) {
			struct task *task = &reservation->job->tasks[reservation->task];
			task->reservation = NULL;
			task->claim = reservation;
		}
		if (step->copy_bytes != reservation->copy_bytes)
			ledger_copy(ledger, reservation, step->phase, step->copy_bytes);
		if (step->residue_mib != reservation->residue_mib)
			ledger_residue(ledger, reservation, step->residue_mib);
		ledger_phase(ledger, reservation, step->phase, step->late);
		reservation->since_ms = step->since_ms;
		break;
	}
	if (ledger->index->built)
		index_restore(ledger->index, node, ledger->config, step->version,
		              step->free_version);
}

void plan_rollback(struct ledger *ledger, size_t mark)
{
	struct plan *plan = ledger->plan;

	INVARIANT(plan->open && mark <= plan->count);
	plan->undoing = true;
	while (plan->count > mark)
		undo(ledger, &plan->steps[--plan->count]);
	plan->undoing = false;
}

void plan_abandon(struct ledger *ledger)
{
	plan_rollback(ledger, 0);
	ledger->plan->open = false;
}

void plan_commit(struct ledger *ledger)
{
	struct plan *plan = ledger->plan;

	INVARIANT(plan->open);
	for (size_t i = 0; i < plan->count; i++) {
		struct reservation *reservation = plan->steps[i].reservation;
		if (plan->steps[i].kind == STEP_ENTER)
			map_put(ledger->reservations, reservation->id, reservation);
	}
	plan->open = false;
}
