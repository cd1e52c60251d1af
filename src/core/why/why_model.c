/* why_model.c - explains the state of a model, in sentences */
#include <inttypes.h>

#include "base/calendar.h"
#include "base/duration.h"
#include "core/model/replica.h"
#include "core/place/applicant.h"
#include "core/place/place.h"
#include "core/room/evict.h"
#include "core/state.h"
#include "core/why/why_text.h"

static bool may_see(const struct model *model, int64_t viewer)
{
	return viewer == 0 || viewer == model->r.tenant_id;
}

void text_slot(struct buffer *buffer, const struct slot *slot, int64_t viewer)
{
	if (may_see(slot->model, viewer))
		buffer_print(buffer, "slot %" PRId64 " of model %s", slot->r.id,
		             slot->model->r.name);
	else
		buffer_text(buffer, "a slot of another tenant");
}

/* How a slot of it could be split: '76278 MiB on 1 GPU, 38139 MiB on each of 2'. */
static void print_splits(const struct model *model, struct buffer *buffer)
{
	int splits = model->shape_count;

	buffer_text(buffer, "a slot takes ");
	for (int i = 0; i < splits && (i < 4 || model->r.splits.count > 0); i++) {
		const struct shape_request *request = &model->shapes[i].request;
		bool several = request->gpu_count > 1;
		buffer_print(buffer, "%s%" PRId64 " MiB on %s%d GPU%s", i > 0 ? ", or " : "",
		             request->memory_mib, several ? "each of " : "", request->gpu_count,
		             several ? "s" : "");
	}
	buffer_print(buffer, "%s%s\n",
	             splits > 4 && model->r.splits.count == 0 ? ", or less on more" : "",
	             model->r.uneven ? "; its parts need not be equal" : "");
}

static void print_other(const struct model *model, int64_t viewer, struct buffer *buffer)
{
	if (may_see(model, viewer))
		buffer_print(buffer, "model %s", model->r.name);
	else
		buffer_text(buffer, "a model of another tenant");
}

static void print_closing(const struct sched *sched, const struct slot *slot, int64_t viewer,
                          struct buffer *buffer)
{
	const struct model *other = models_find(&sched->models, slot->r.closing_for);

	if (other) {
		buffer_text(buffer, "; it is the turn of ");
		print_other(other, viewer, buffer);
	}
	buffer_text(buffer, other ? ": it takes no more requests, and goes when it has none"
	                          : "; it takes no more requests, and goes when it has none");
}

/* What it has while it sleeps, and what it is waiting for. */
static void print_sleep(const struct slot *slot, struct buffer *buffer)
{
	const struct reservation *reservation = slot->reservation;
	int64_t mib = reservation_asks(reservation).of[AMOUNT_GPU_MEMORY];

	buffer_print(buffer, ", of which %" PRId64 " MiB stay on each; %" PRId64 " MiB on the host",
	             reservation->residue_mib, reservation->copy_bytes >> 20);
	if (reservation->phase == PHASE_WAKING)
		buffer_text(buffer, "; it wakes when the memory of its GPUs is free");
	buffer_text(buffer, "; waking takes about ");
	duration_print_hours(buffer, model_wake_ms(slot->model, mib));
}

static void print_slot(const struct sched *sched, const struct slot *slot, int64_t viewer,
                       struct buffer *buffer)
{
	const struct reservation *reservation = slot->reservation;

	buffer_print(buffer, "slot %" PRId64 " is %s on node %s:", slot->r.id,
	             word_of(&slot_state_words, slot->r.state), reservation->node->r.name);
	for (int i = 0; i < reservation->part_count; i++)
		buffer_print(buffer, "%s %" PRId64 " MiB of %s", i > 0 ? "," : "",
		             reservation->parts[i].mib, reservation->parts[i].gpu->r.uuid);
	if (slot->r.state == SLOT_READY)
		buffer_print(buffer, "; %" PRId64 " of %" PRId64 " requests in flight",
		             slot->active, slot->r.concurrency);
	if (slot->r.state == SLOT_READY && slot->active == 0) {
		buffer_text(buffer, ", idle for ");
		duration_print_hours(buffer, sched_now(sched) - slot->r.used_ms);
		if (slot->listed)
			buffer_text(buffer, ": it goes when others need the memory");
		else if (slot->model->r.pinned)
			buffer_text(buffer, ": pinned, it stays");
		else if (slot->cold)
			buffer_text(buffer, ": one of the minimum of replicas, it stays");
	}
	if (slot->r.state == SLOT_SLEEPING || slot->r.state == SLOT_ASLEEP ||
	    slot->r.state == SLOT_WAKING)
		print_sleep(slot, buffer);
	if (slot->r.closing_for != 0)
		print_closing(sched, slot, viewer, buffer);
	if (slot->r.state == SLOT_PLACED)
		buffer_text(buffer, "; another load on one of its GPUs goes first");
	if (slot->r.state == SLOT_LOADING) {
		buffer_text(buffer, " since ");
		calendar_print(buffer, slot->r.ordered_ms);
		if (!slot_holds_up(slot))
			buffer_text(buffer, ", longer than usual: others may load beside it");
	}
	buffer_text(buffer, "\n");
}

static void print_back_off(const struct model *model, struct buffer *buffer)
{
	buffer_print(buffer, "it failed %" PRId64 " time%s in a row, the last time at ",
	             model->r.failures, model->r.failures > 1 ? "s" : "");
	calendar_print(buffer, model->r.failed_ms);
	buffer_print(buffer, " (%s): not tried again before ", model->r.message);
	calendar_print(buffer, model->r.not_before_ms);
	buffer_text(buffer, "\n");
}

/* Why there is no place for a slot of this shape. */
static void print_refusals(struct sched *sched, struct model *model, const struct shape *shape,
                           int64_t viewer, struct buffer *buffer)
{
	int64_t rows[CHECK_REASONS][REFUSAL_WIDTH];
	struct search search = applicant_slot(model);

	search.shape = shape;
	int found = place_refusals(&sched->placement, &search, rows);
	buffer_print(buffer, "split over %d:\n", shape->request.gpu_count);
	text_refusals(buffer, sched, &rows[0][0], found, true, true);
	text_holders(buffer, sched, &rows[0][0], found, viewer);
}

/* What its tenant may not hold, if that stands in the way. */
static void print_bound(const struct sched *sched, const struct model *model, struct buffer *buffer)
{
	struct amounts amounts = model_amounts(model, sched->cluster.smallest_mib);
	struct bound bound;

	if (tenant_may_hold(model->tenant, &amounts, !model->r.pinned, sched_now(sched), &bound))
		return;
	bound_print_waiting(buffer, &bound);
	buffer_text(buffer, "\n");
}

static void print_room(struct sched *sched, struct model *model, int64_t viewer,
                       struct buffer *buffer)
{
	struct error error = { 0 };

	if (!place_possible_slot(&sched->placement, model, &error)) {
		buffer_print(buffer, "%s\n", error.text);
		return;
	}
	for (int i = 0; i < model->shape_count && i < 2; i++)
		print_refusals(sched, model, &model->shapes[i], viewer, buffer);
	buffer_print(buffer, "%zu idle slots may be evicted, on %s together they are not enough\n",
	             sched->cold_slots.by_cost.count, "no node");
}

/* The model that waits for its first slot and goes before this one; NULL: none. */
static const struct model *first_in_turn(const struct sched *sched, const struct model *model)
{
	const struct model *first = NULL;

	for (size_t i = 0; i < sched->models.count; i++) {
		const struct model *other = sched->models.all[i];
		if (other == model || replica_want(sched, other) != WANT_SERVE ||
		    other->waiting.first->number > model->waiting.first->number)
			continue;
		if (!first || other->waiting.first->number < first->waiting.first->number)
			first = other;
	}
	return first;
}

/* When the first of the slots of others may be closed; INT64_MAX: there is none. */
static int64_t first_stay_ms(const struct sched *sched, const struct model *model)
{
	int64_t first_ms = INT64_MAX;

	for (size_t i = 0; i < sched->models.count; i++) {
		const struct model *other = sched->models.all[i];
		for (size_t s = 0; s < other->slot_count && other != model; s++)
			if (other->slots[s]->r.state == SLOT_READY && !other->r.pinned &&
			    evict_spare(other) > 0)
				first_ms =
				    min64(first_ms, max64(rotation_stay_ms(sched, other->slots[s]),
				                          rotation_rest_ms(other->slots[s])));
	}
	return first_ms;
}

/* Whose turn it is, and when the model's own comes. */
static void print_turn(const struct sched *sched, const struct model *model, int64_t viewer,
                       struct buffer *buffer)
{
	const struct model *first = first_in_turn(sched, model);
	int64_t due_ms = rotation_due_ms(sched, model), stay_ms;
	int busy, closed = rotation_closed_for(sched, model, &busy);

	if (first) {
		buffer_text(buffer, "it is the turn of ");
		print_other(first, viewer, buffer);
		buffer_text(buffer, " first: a request for it has waited longer\n");
	}
	if (closed > 0) {
		buffer_print(buffer,
		             "its turn has come: %d busy slot%s of other models %s for it, "
		             "and %d still %s requests\n",
		             closed, closed > 1 ? "s" : "", closed > 1 ? "close" : "closes", busy,
		             busy == 1 ? "has" : "have");
		return;
	}
	buffer_text(buffer,
	            due_ms > sched_now(sched) ? "its turn comes at " : "its turn has come at ");
	calendar_print(buffer, due_ms);
	stay_ms = first_stay_ms(sched, model);
	if (stay_ms == INT64_MAX)
		buffer_text(buffer, ": no slot of another model may be closed for it");
	else if (stay_ms > max64(due_ms, sched_now(sched))) {
		buffer_text(buffer, "; the first busy slot of another model may be closed at ");
		calendar_print(buffer, stay_ms);
	}
	buffer_text(buffer, "\n");
}

static void print_want(struct sched *sched, struct model *model, int64_t viewer,
                       struct buffer *buffer)
{
	static const char *const words[] = {
		[WANT_NOTHING] = "it wants no other slot",
		[WANT_SERVE] = "it wants a slot: requests wait and it has none",
		[WANT_MINIMUM] = "it wants a slot: it has fewer than its minimum",
		[WANT_REPLICA] =
		    "it wants a slot: more requests wait than its slots have places for",
		[WANT_PREWARM] = "it wants a slot: it is to be loaded before anyone asks",
	};
	enum want want = replica_want(sched, model);
	struct search search = applicant_slot(model);
	struct eviction eviction;

	if (model->r.not_before_ms > sched_now(sched)) {
		print_back_off(model, buffer);
		return;
	}
	buffer_print(buffer, "%s\n", words[want]);
	if (want == WANT_NOTHING)
		return;
	if (want == WANT_SERVE)
		print_turn(sched, model, viewer, buffer);
	print_bound(sched, model, buffer);
	if (applicant_find(&sched->placement, &search, &eviction.choice))
		buffer_print(buffer, "there is room on node %s%s: the next pass decides\n",
		             eviction.choice.node->r.name,
		             search.view == VIEW_NOW ? ""
		                                     : " once what is being freed there is back");
	else if (want != WANT_PREWARM && evict_find(sched, &search, &eviction))
		buffer_print(buffer,
		             "there is room on node %s if %d idle slot%s go%s: the next pass "
		             "decides\n",
		             eviction.choice.node->r.name, eviction.count,
		             eviction.count > 1 ? "s" : "", eviction.count > 1 ? "" : "es");
	else
		print_room(sched, model, viewer, buffer);
}

bool sched_why_model(struct sched *sched, int64_t model_id, int64_t viewer, struct buffer *buffer,
                     struct error *error)
{
	struct model *model = models_find(&sched->models, model_id);

	if (!model)
		return error_set(error, ERROR_NOT_FOUND, "model-%" PRId64 " is not known",
		                 model_id);
	sched_prepare(sched);
	buffer_print(buffer, "model %s has ", model->r.name);
	text_count(buffer, model->counts.ready, "slot");
	buffer_print(buffer, " ready, %d coming, %d stopping; ", model->counts.coming,
	             model->counts.stopping);
	if (model->counts.asleep > 0)
		buffer_print(buffer, "%d asleep; ", model->counts.asleep);
	text_count(buffer, model->active, "request");
	buffer_print(buffer, " in flight, %" PRId64 " waiting\n", model->waiting.count);
	if (!may_see(model, viewer))
		return true;
	print_splits(model, buffer);
	for (size_t i = 0; i < model->slot_count; i++)
		print_slot(sched, model->slots[i], viewer, buffer);
	if (model->r.removed)
		buffer_text(buffer, "it was removed, and is gone when its last slot is\n");
	else
		print_want(sched, model, viewer, buffer);
	return true;
}

bool sched_model_load(const struct sched *sched, int64_t model_id, struct model_load *load)
{
	const struct model *model = models_find(&sched->models, model_id);

	if (!model)
		return false;
	*load = (struct model_load){ .active = model->active,
		                     .waiting = model->waiting.count,
		                     .places = model->capacity,
		                     .ready = model->counts.ready,
		                     .coming = model->counts.coming,
		                     .stopping = model->counts.stopping,
		                     .asleep = model->counts.asleep };
	return true;
}

bool sched_slot_active(const struct sched *sched, int64_t slot_id, int64_t *active)
{
	const struct slot *slot = map_get(&sched->models.slots, slot_id);

	if (slot)
		*active = slot->active;
	return slot != NULL;
}
