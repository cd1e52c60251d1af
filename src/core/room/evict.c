/* evict.c - idle slots, as those who need their memory see them */
#include "core/room/evict.h"

#include "core/state.h"

#define USED_BITS 45      /* times are below TIME_MS_MAX */
#define RELOAD_STEP_MS 16 /* closer than that, two loads take as long */
#define RELOAD_STEPS_MAX ((INT64_C(1) << (62 - USED_BITS)) - 1)

int64_t evict_spare(const struct model *model)
{
	return model->counts.ready - model->counts.leaving - model->r.min_replicas;
}

bool evict_is_there(const struct slot *slot)
{
	enum phase phase = slot->reservation->phase;

	return phase == PHASE_LIVE || (phase == PHASE_SUSPENDED && slot->r.state == SLOT_ASLEEP);
}

bool evict_leaves_enough(const struct slot *slot, int64_t going)
{
	return slot->r.state == SLOT_ASLEEP || going < evict_spare(slot->model);
}

/* Of one that would go to sleep: what waking takes. */
static int64_t reload_of(const struct slot *slot)
{
	int64_t mib = reservation_asks(slot->reservation).of[AMOUNT_GPU_MEMORY];

	return slot_may_sleep(slot) ? model_wake_ms(slot->model, mib)
	                            : model_reload_ms(slot->model, mib);
}

static int64_t evict_key_of(const struct slot *slot)
{
	int64_t steps = min64(reload_of(slot) / RELOAD_STEP_MS, RELOAD_STEPS_MAX);

	return (steps << USED_BITS) | slot->r.used_ms;
}

static bool may_go(const struct slot *slot)
{
	if (slot->linked && slot->r.state == SLOT_ASLEEP)
		return slot->reservation->residue_mib > 0 && !slot->model->r.pinned;
	return slot->linked && slot->r.state == SLOT_READY && slot->active == 0 &&
	       (slot->cold || slot->r.closing_for != 0) && !slot->model->r.pinned &&
	       evict_spare(slot->model) > 0;
}

/* Recounts what a node's idle slots have. */
static void count_node(struct node *node)
{
	node->cold = 0;
	node->cold_span = 0;
	node->cold_reload_ms = node->cold_used_ms = INT64_MAX;
	for (int i = 0; i < node->gpu_count; i++)
		node->gpus[i]->cold_mib = node->gpus[i]->cold_largest_mib = 0;
	for (int i = 0; i < node->reservation_count; i++) {
		const struct reservation *reservation = node->reservations[i];
		const struct slot *slot = reservation->slot;
		if (!slot || !slot->listed)
			continue;
		node->cold++;
		if (node->cold_span < reservation->part_count)
			node->cold_span = reservation->part_count;
		node->cold_reload_ms = min64(node->cold_reload_ms, slot->reload_ms);
		node->cold_used_ms = min64(node->cold_used_ms, slot->r.used_ms);
		for (int p = 0; p < reservation->part_count; p++) {
			const struct part *part = &reservation->parts[p];
			int64_t mib = reservation_held_mib(reservation, part);
			part->gpu->cold_mib += mib;
			part->gpu->cold_largest_mib = max64(part->gpu->cold_largest_mib, mib);
		}
	}
}

void evict_list(struct sched *sched, struct slot *slot)
{
	struct cold_slots *cold = &sched->cold_slots;

	INVARIANT(slot->reservation && slot->model);
	bool listed = may_go(slot);
	int64_t key = listed ? evict_key_of(slot) : 0, reload_ms = listed ? reload_of(slot) : 0;

	/* Keys are in steps, so what loading takes may change while they do not. */
	if (listed == slot->listed && key == slot->cold_key && reload_ms == slot->reload_ms)
		return;
	if (slot->listed)
		ranktree_remove(&cold->by_cost, slot->cold_key, slot->r.id);
	if (listed) {
		ranktree_insert(&cold->by_cost, key, slot->r.id, slot);
		cold->version++;
	}
	slot->listed = listed;
	slot->cold_key = key;
	slot->reload_ms = reload_ms;
	count_node(slot->reservation->node);
}

void evict_measured(struct slot *slot)
{
	if (slot->listed)
		count_node(slot->reservation->node);
}

void evict_list_model(struct sched *sched, struct model *model)
{
	for (size_t i = 0; i < model->slot_count; i++)
		evict_list(sched, model->slots[i]);
}

void evict_check(const struct sched *sched)
{
	const struct cold_slots *cold = &sched->cold_slots;
	size_t listed = 0;

	for (size_t m = 0; m < sched->models.count; m++) {
		const struct model *model = sched->models.all[m];
		for (size_t i = 0; i < model->slot_count; i++) {
			const struct slot *slot = model->slots[i];
			INVARIANT(slot->listed == may_go(slot));
			INVARIANT(!slot->listed || (slot->cold_key == evict_key_of(slot) &&
			                            slot->reload_ms == reload_of(slot)));
			listed += slot->listed;
		}
	}
	INVARIANT(listed == cold->by_cost.count);
	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		const struct node *node = sched->cluster.nodes[i];
		int count = 0;
		for (int r = 0; r < node->reservation_count; r++) {
			const struct slot *slot = node->reservations[r]->slot;
			count += slot && slot->listed;
		}
		INVARIANT(count == node->cold);
	}
}
