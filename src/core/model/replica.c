/* replica.c - how many slots a model should have, and its turn in a pass */
#include "core/model/replica.h"

#include <stdlib.h>

#include "core/state.h"

#define NUMBER_UNASKED (INT64_C(1) << 62) /* after all requests: nobody waits for it */

/* What it wants, whether or not it backs off. */
static enum want want_of(const struct model *model)
{
	int64_t have = model->counts.coming + model->counts.ready - model->counts.leaving -
	               model->counts.closing;
	int64_t waiting = model->waiting.count;

	if (model->r.removed || model->gone)
		return WANT_NOTHING;
	if (waiting > 0 && have == 0)
		return WANT_SERVE;
	if (have < model->r.min_replicas)
		return WANT_MINIMUM;
	if (waiting > model->counts.coming * model->r.concurrency && have < model->r.max_replicas)
		return WANT_REPLICA;
	return model->r.prewarm && have == 0 && model->counts.asleep == 0 ? WANT_PREWARM
	                                                                  : WANT_NOTHING;
}

enum want replica_want(const struct sched *sched, const struct model *model)
{
	return model->r.not_before_ms > sched_now(sched) ? WANT_NOTHING : want_of(model);
}

void replica_list(struct sched *sched, struct model *model)
{
	struct ranktree *wanting = &sched->models.wanting;
	bool wants = want_of(model) != WANT_NOTHING;
	int64_t key = -model->r.priority;
	int64_t number =
	    model->waiting.first ? model->waiting.first->number : NUMBER_UNASKED + model->r.id;

	if (wants == model->listed &&
	    (!wants || (key == model->list_key && number == model->list_number)))
		return;
	if (model->listed)
		ranktree_remove(wanting, model->list_key, model->list_number);
	if (wants)
		ranktree_insert(wanting, key, number, model);
	model->listed = wants;
	model->list_key = key;
	model->list_number = number;
}

bool replica_wants_room(const struct sched *sched, const struct model *model)
{
	const struct pass *pass = &sched->pass;
	enum want want = replica_want(sched, model);

	if (!pass->making_room)
		return want != WANT_NOTHING;
	if (pass->room_kind == ROOM_EVICT)
		return want != WANT_NOTHING && want != WANT_PREWARM;
	return pass->room_kind == ROOM_PREEMPT && want == WANT_SERVE;
}

/* Whether it could have a slot, apart from limits. */
static bool could_have(struct sched *sched, struct model *model)
{
	struct search search = applicant_slot(model);
	struct choice choice;

	if (!replica_wants_room(sched, model))
		return false;
	if (sched->pass.making_room)
		return sched->pass.room_kind == ROOM_EVICT ? evict_may_help(sched, &search)
		                                           : room_may_help_slot(sched, model);
	if (model->counts.asleep > 0)
		return true;
	search.any = true;
	return applicant_find(&sched->placement, &search, &choice);
}

struct urgency replica_urgency(const struct sched *sched, const struct model *model)
{
	/* A tenth is for what comes between: the release of memory, and the first step. */
	int64_t goal_ms = sched->config.request_goal_ms;
	int64_t left_ms = goal_ms - goal_ms / 10 - rotation_load_ms(model);
	const struct request_entry *first = model->waiting.first, *entry = first;

	if (!first || goal_ms == 0)
		return (struct urgency){ URGENCY_IN_TIME, model->list_number };
	if (rotation_due_ms(sched, model) <= sched_now(sched))
		return (struct urgency){ URGENCY_DUE, first->number };
	while (entry && entry->since_ms + left_ms <= sched_now(sched))
		entry = entry->next;
	return entry ? (struct urgency){ URGENCY_IN_TIME, entry->number }
	             : (struct urgency){ URGENCY_LATE, first->number };
}

int urgency_compare(struct urgency a, struct urgency b)
{
	if (a.rank != b.rank)
		return a.rank < b.rank ? -1 : 1;
	return a.number < b.number ? -1 : a.number > b.number;
}

static int more_urgent(const void *a, const void *b)
{
	const struct wanting *x = a, *y = b;

	return urgency_compare(x->urgency, y->urgency);
}

/* The models of one priority, from the cursor on, the most urgent first. */
static size_t next_priority(struct sched *sched, struct rank_cursor *cursor,
                            const struct rank_entry **entry)
{
	struct models *models = &sched->models;
	int64_t key = *entry ? (*entry)->major : 0;
	size_t count = 0;

	for (; *entry && (*entry)->major == key; *entry = rank_cursor_next(cursor)) {
		struct model *model = (*entry)->value;
		array_reserve(models->order, models->order_capacity, count + 1);
		models->order[count++] = (struct wanting){ model, replica_urgency(sched, model) };
	}
	if (count > 1)
		qsort(models->order, count, sizeof(*models->order), more_urgent);
	return count;
}

static void open_model(struct sched *sched, struct model *model)
{
	struct tenant *tenant = model->tenant;

	INVARIANT(model->listed && tenant->open_model_first == 0);
	if (!could_have(sched, model))
		return;
	array_reserve(tenant->open_models, tenant->open_model_capacity,
	              tenant->open_model_count + 1);
	tenant->open_models[tenant->open_model_count++] = model;
}

void replica_open(struct sched *sched)
{
	struct rank_cursor cursor = ranktree_seek(&sched->models.wanting, INT64_MIN, INT64_MIN);
	const struct rank_entry *entry = rank_cursor_next(&cursor);
	size_t count;

	INVARIANT(!sched->plan.open);
	while ((count = next_priority(sched, &cursor, &entry)) > 0)
		for (size_t i = 0; i < count; i++)
			open_model(sched, sched->models.order[i].model);
}

struct model *replica_first(const struct tenant *tenant)
{
	return tenant->open_model_first < tenant->open_model_count
	           ? tenant->open_models[tenant->open_model_first]
	           : NULL;
}

bool replica_goes_before(const struct model *model, int64_t effective_priority)
{
	return model->r.priority * PRIORITY_UNIT >= effective_priority;
}

void replica_close(struct sched *sched)
{
	INVARIANT(!sched->plan.open);
	for (size_t i = 0; i < sched->tenants.count; i++)
		sched->tenants.all[i]->open_model_first = sched->tenants.all[i]->open_model_count =
		    0;
}
