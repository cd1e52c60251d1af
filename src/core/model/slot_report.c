/* slot_report.c - slots as nodes have them: known ones, and those to be adopted */
#include <string.h>

#include "core/state.h"

/* A ledger that was restored from a backup may not know the last ids that it gave out. It
 * cannot be this far behind: a node must not choose how far ids go. */
#define IDS_AHEAD_MAX (INT64_C(1) << 20)

/* What the node measured of a slot: its GPUs. */
struct found {
	struct part parts[PARTS_MAX];
	int count;
	bool too_many;
};

static void find_part(struct found *found, struct gpu *gpu, int64_t measured_mib)
{
	for (int i = 0; i < found->count; i++)
		if (found->parts[i].gpu == gpu)
			return;
	found->too_many = found->count == PARTS_MAX;
	if (!found->too_many)
		found->parts[found->count++] =
		    (struct part){ .gpu = gpu, .measured_mib = measured_mib };
}

static struct found find_parts(const struct sched *sched, const struct node *node,
                               const struct node_report_command *report, int64_t id)
{
	struct found found = { .count = 0 };

	for (int64_t i = 0; i < report->measurement_count; i++) {
		const struct measurement *measurement = &report->measurements[i];
		struct gpu *gpu = cluster_gpu(&sched->cluster, measurement->uuid);
		if (measurement->reservation_id == id && gpu && gpu->node == node)
			find_part(&found, gpu, measurement->memory_mib);
	}
	return found;
}

/* Parts that add up to what the model takes, as even as the GPUs allow and none of
 * them less than it uses. The node knows them, and does not say. */
static void slot_divide(const struct model *model, const struct found *found, int64_t *mib)
{
	int64_t left = model_part_mib(model, found->count) * found->count;
	bool done[PARTS_MAX] = { false };

	for (int parts = found->count; parts > 0; parts--) {
		int next = -1;
		for (int i = 0; i < found->count; i++)
			if (!done[i] && (next < 0 || gpu_usable_mib(found->parts[i].gpu) <
			                                 gpu_usable_mib(found->parts[next].gpu)))
				next = i;
		done[next] = true;
		mib[next] =
		    max64(min64((left + parts - 1) / parts, gpu_usable_mib(found->parts[next].gpu)),
		          found->parts[next].measured_mib);
		left = max64(left - mib[next], 0);
	}
}

/* What it may use is what the model says; what it uses is a fact. */
static void size_parts(const struct model *model, struct found *found)
{
	static const struct shape_request shared = { .gpu_kind = GPU_MEMORY, .gpu_count = 1 };
	int64_t even = model_part_mib(model, found->count), divided[PARTS_MAX];
	bool uneven = model->r.uneven && found->count > 1;

	if (uneven)
		slot_divide(model, found, divided);
	for (int i = 0; i < found->count; i++) {
		struct part *part = &found->parts[i];
		int64_t measured = part->measured_mib;
		*part = fit_part(&shared, part->gpu, min64(uneven ? divided[i] : even, MIB_MAX));
		part->measured_mib = measured;
	}
}

static struct reservation *reserve(struct model *model, struct node *node, int64_t id,
                                   const struct found *found, int64_t now_ms)
{
	size_t size = (size_t)found->count * sizeof(struct part);
	struct reservation *reservation = memory_zero(1, sizeof(*reservation) + size);

	reservation->id = id;
	reservation->node = node;
	reservation->phase = PHASE_LIVE;
	reservation->cpu_milli = model->r.cpu_milli;
	reservation->host_bytes = model->r.host_bytes;
	reservation->since_ms = now_ms;
	reservation->due_ms = INT64_MAX;
	reservation->due_index = -1;
	reservation->part_count = found->count;
	memcpy(reservation->parts, found->parts, size);
	reservation->slot = slot_new(model, reservation);
	return reservation;
}

static void slot_report_decide(struct sched *sched, const struct slot *slot)
{
	struct decision_record decision = { .kind = DECISION_ADOPT,
		                            .tenant_id = slot->model->r.tenant_id,
		                            .model_id = slot->r.model_id,
		                            .slot_id = slot->r.id };

	sched_decide(sched, &decision);
}

/* It exists, so it is entered in the ledger, whether it fits or not. */
static void adopt(struct sched *sched, struct model *model, struct node *node, int64_t id,
                  struct found *found)
{
	size_parts(model, found);
	struct reservation *reservation = reserve(model, node, id, found, sched_now(sched));
	struct slot *slot = reservation->slot;

	sched->meta.last_reservation_id = max64(sched->meta.last_reservation_id, id);
	map_put(&sched->reservations, id, reservation);
	ledger_enter(&sched->ledger, reservation);
	sched_dirty_reservation(sched, reservation);
	slot_expect_load(sched, slot);
	slot->r.state = SLOT_LOADING;
	slot->r.adopted = true;
	slot_begins(sched, slot);
	slot_report_decide(sched, slot);
	for (int i = 0; i < reservation->part_count; i++)
		node_report_over(sched, reservation->parts[i].gpu);
}

/* Not on a GPU that someone was given whole; and while it loads, not on one that
 * no other may be loaded onto now: nobody ordered that. */
static bool may_stay(const struct sched *sched, const struct found *found, bool ready)
{
	for (int i = 0; i < found->count; i++) {
		const struct gpu *gpu = found->parts[i].gpu;
		if (!gpu_shareable_now(gpu) ||
		    (!ready && gpu->loading >= sched->config.loads_per_gpu))
			return false;
	}
	return true;
}

bool slot_reported(struct sched *sched, struct node *node, const struct slot_report *report,
                   const struct node_report_command *all)
{
	struct slot *slot = map_get(&sched->models.slots, report->reservation_id);

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!slot) {
		struct model *model =
		    report->model ? models_only_named(&sched->models, report->model) : NULL;
		struct found found = find_parts(sched, node, all, report->reservation_id);
		if (!model || model->r.removed || found.count == 0 || found.too_many ||
		    model_part_mib(model, found.count) == 0 || report->reservation_id <= 0 ||
		    report->reservation_id > sched->meta.last_reservation_id + IDS_AHEAD_MAX ||
		    !may_stay(sched, &found, report->ready) ||
		    map_get(&sched->reservations, report->reservation_id))
			return false;
		adopt(sched, model, node, report->reservation_id, &found);
		slot = map_get(&sched->models.slots, report->reservation_id);
	}
	if (slot->reservation->node != node)
		return false;
	/* One that was told to stop meanwhile is told again by who compares. */
	if (report->ready)
		slot_ready(sched, slot, report->address, NULL);
	else
		slot_loading(sched, slot, NULL);
	return true;
}
