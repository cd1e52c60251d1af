/* wake.c - slots that are asleep: which wake, and which make way for others */
#include "core/room/wake.h"

#include <stdlib.h>

#include "core/place/window_rules.h"
#include "core/room/commit.h"
#include "core/room/evict.h"
#include "core/state.h"

bool wake_may_help(const struct model *model)
{
	return model->counts.asleep > 0;
}

/* Whether its GPUs would be given to it if they were free. */
static bool may_wake(const struct sched *sched, const struct slot *slot)
{
	const struct reservation *reservation = slot->reservation;

	if (slot->r.state != SLOT_ASLEEP || !node_is_open(reservation->node) ||
	    reservation->node->r.draining || window_keeps_off(&sched->placement, reservation))
		return false;
	for (int i = 0; i < reservation->part_count; i++) {
		const struct gpu *gpu = reservation->parts[i].gpu;
		if (!gpu_is_open(gpu, &sched->config) ||
		    (gpu->kept_for != 0 && gpu->kept_for != slot->r.model_id))
			return false;
	}
	return true;
}

static bool is_on_its_gpus(const struct slot *slot, const struct slot *other)
{
	const struct reservation *mine = slot->reservation, *theirs = other->reservation;

	for (int i = 0; i < mine->part_count; i++)
		for (int j = 0; j < theirs->part_count; j++)
			if (mine->parts[i].gpu == theirs->parts[j].gpu)
				return true;
	return false;
}

static int by_cost(const void *a, const void *b)
{
	const struct slot *x = *(struct slot *const *)a, *y = *(struct slot *const *)b;

	if (x->cold_key != y->cold_key)
		return x->cold_key < y->cold_key ? -1 : 1;
	return x->r.id < y->r.id ? -1 : x->r.id > y->r.id;
}

/* A wake is short: it need not wait for a GPU that rests from loads. */
static bool lets_go(const struct slot *slot, const struct model *model)
{
	return slot->r.closing_for == 0 || slot->r.closing_for == model->r.id;
}

/* What is idle on its GPUs, the cheapest first. */
static int list_idle(const struct slot *slot, struct slot **idle)
{
	const struct node *node = slot->reservation->node;
	int count = 0;

	for (int i = 0; i < node->reservation_count && count < EVICTED_MAX; i++) {
		struct slot *other = node->reservations[i]->slot;
		if (other && other->listed && evict_is_there(other) &&
		    other->model != slot->model && lets_go(other, slot->model) &&
		    is_on_its_gpus(slot, other))
			idle[count++] = other;
	}
	qsort(idle, (size_t)count, sizeof(struct slot *), by_cost);
	return count;
}

static int64_t going(const struct eviction *eviction, const struct model *model)
{
	int64_t count = 0;

	for (int i = 0; i < eviction->count; i++)
		count +=
		    eviction->slots[i]->model == model && eviction->slots[i]->r.state == SLOT_READY;
	return count;
}

/* Those that are not in the way stay, the most valuable first. */
static void wake_keep(struct sched *sched, struct eviction *eviction)
{
	int kept = eviction->count;

	for (int i = eviction->count - 1; i >= 0; i--) {
		bool sleeps = eviction->slots[i]->reservation->phase == PHASE_SUSPENDING;
		if (!plan_keep(&sched->ledger, eviction->slots[i]->reservation))
			continue;
		eviction->sleeping -= sleeps;
		for (int j = i; j + 1 < kept; j++)
			eviction->slots[j] = eviction->slots[j + 1];
		kept--;
	}
	eviction->count = kept;
}

/* In an open plan: it has its GPUs, or a claim on them, once what is idle there has gone. */
static bool wake_attempt(struct sched *sched, struct slot *slot, struct eviction *eviction)
{
	struct reservation *reservation = slot->reservation;
	struct slot *idle[EVICTED_MAX];
	int count = -1;

	eviction->count = eviction->sleeping = 0;
	eviction->reload_ms = eviction->used_ms = 0;
	for (int next = 0; !plan_wake(&sched->ledger, reservation, NULL); next++) {
		if (count < 0)
			count = list_idle(slot, idle);
		while (next < count &&
		       !evict_leaves_enough(idle[next], going(eviction, idle[next]->model)))
			next++;
		if (next >= count)
			return false;
		evict_release(sched, eviction, idle[next]);
	}
	wake_keep(sched, eviction);
	if (eviction->count == 0)
		plan_resume(&sched->ledger, reservation, NULL);
	return true;
}

static void wake_commit(struct sched *sched, struct slot *slot, const struct eviction *eviction)
{
	int64_t rows[EVICTED_MAX * EVICTED_WIDTH];
	struct gpu_lines lines;
	struct decision_record decision = {
		.kind = DECISION_WAKE,
		.tenant_id = slot->model->r.tenant_id,
		.model_id = slot->r.model_id,
		.slot_id = slot->r.id,
		.evicted = { rows, evict_rows(sched, eviction, rows) },
	};

	sched_commit(sched);
	lines_clear(&lines);
	lines_add(&lines, slot->reservation);
	lines_give(&lines, &decision);
	if (slot->reservation->phase == PHASE_WAKING)
		decision.until_ms =
		    sched_now(sched) + sched->config.grace_ms + sched->config.release_timeout_ms;
	sched_decide(sched, &decision);
	slot_wakes(sched, slot);
	evict_stop(sched, eviction, NULL, slot->model);
	sched->pass.budget--;
	sched->pass.change_seq++;
}

static bool wake_slot(struct sched *sched, struct slot *slot)
{
	struct eviction eviction = { .awake = false };

	if (!may_wake(sched, slot))
		return false;
	for (int round = 0; round < 2; round++) { /* the second time nothing is put to sleep */
		plan_begin(&sched->ledger);
		if (wake_attempt(sched, slot, &eviction)) {
			wake_commit(sched, slot, &eviction);
			return true;
		}
		plan_abandon(&sched->ledger);
		if (eviction.sleeping == 0)
			return false;
		eviction.awake = true;
	}
	return false;
}

bool wake_is_awaited(const struct sched *sched, const struct model *model)
{
	const struct request_entry *first = model->waiting.first;
	bool may = false;

	for (size_t i = 0; i < model->slot_count && !may; i++)
		may = may_wake(sched, model->slots[i]);
	return may && first &&
	       sched_now(sched) - first->since_ms < TURN_LOADS * rotation_load_ms(model);
}

bool wake_make(struct sched *sched, struct model *model)
{
	struct slot *tried = NULL;

	INVARIANT(!sched->plan.open);
	for (int32_t round = 0; round < model->counts.asleep; round++) {
		struct slot *next = NULL; /* the latest used of those that were not tried */
		for (size_t i = 0; i < model->slot_count; i++) {
			struct slot *slot = model->slots[i];
			bool after =
			    !tried || slot->r.used_ms < tried->r.used_ms ||
			    (slot->r.used_ms == tried->r.used_ms && slot->r.id > tried->r.id);
			if (slot->r.state == SLOT_ASLEEP && after &&
			    (!next || slot->r.used_ms > next->r.used_ms))
				next = slot;
		}
		if (!next)
			return false;
		if (wake_slot(sched, next))
			return true;
		tried = next;
	}
	return false;
}

static bool is_superfluous(const struct slot *slot)
{
	const struct model *model = slot->model;
	int64_t have = model->counts.coming + model->counts.ready - model->counts.leaving -
	               model->counts.closing;

	return model->r.removed || have >= model->r.max_replicas;
}

/* Whether the host has no memory for an idle slot that was used since, and nothing is on its way
 * out that would give some back. */
static bool lacks_host_memory(const struct sched *sched, const struct slot *slot)
{
	const struct node *node = slot->reservation->node;
	bool lacks = false;

	for (int i = 0; i < node->reservation_count; i++) {
		const struct reservation *reservation = node->reservations[i];
		const struct slot *other = reservation->slot;
		if (reservation->phase == PHASE_RELEASING && reservation->copy_bytes > 0)
			return false;
		lacks = lacks ||
		        (other && other->r.used_ms > slot->r.used_ms && slot_may_sleep(other) &&
		         !ledger_may_copy(&sched->ledger, reservation, NULL));
	}
	return lacks;
}

void wake_trim(struct sched *sched)
{
	struct ranktree *asleep = &sched->models.asleep;
	struct rank_cursor cursor = ranktree_seek(asleep, INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;

	INVARIANT(!sched->plan.open);
	while (sched->pass.budget > 0 && (entry = rank_cursor_next(&cursor))) {
		struct slot *slot = entry->value;
		if (!is_superfluous(slot) && !lacks_host_memory(sched, slot))
			continue;
		struct decision_record decision = { .kind = DECISION_UNLOAD,
			                            .tenant_id = slot->model->r.tenant_id,
			                            .model_id = slot->r.model_id,
			                            .slot_id = slot->r.id };
		int64_t major = entry->major, minor = entry->minor;
		slot_stop(sched, slot, false);
		sched_decide(sched, &decision);
		sched->pass.budget--;
		sched->pass.change_seq++;
		cursor = ranktree_seek(asleep, major, minor);
	}
}
