/* models_idle.c - steps about use: which models have requests in flight, and since when not */
#include <string.h>

#include "sim/scenario/models_run.h"

#define SECOND_MS INT64_C(1000)
#define IDLE_TTL_MS (10 * SECOND_MS) /* of a model that gives none */
enum { TOUCHED_MAX = 1024 };

/* Slots of the model that are ready and have no request in flight. */
static int64_t count_idle(const struct models_run *run, const struct sim_model *model)
{
	struct rank_cursor cursor = books_all(run, RECORD_SLOT);
	const struct rank_entry *entry;
	int64_t count = 0;
	while ((entry = rank_cursor_next(&cursor))) {
		const struct slot_record *slot = entry->value;
		int64_t active = 0;
		count += slot->model_id == model->record.id && slot->state == SLOT_READY &&
		         sched_slot_active(run->driver.sched, slot->id, &active) && active == 0;
	}
	return count;
}

/* Uses every idle slot of the model for a moment: requests go to slots that have
 * the fewest. */
static bool touch(struct models_run *run, size_t at)
{
	int64_t ids[TOUCHED_MAX];
	int64_t count = min64(count_idle(run, &run->models[at]), TOUCHED_MAX);
	for (int64_t i = 0; i < count; i++) {
		const struct sim_request *request =
		    router_ask(run, &run->models[at], USE_HOLD, -1, 0);
		if (!request)
			return false;
		ids[i] = request->id;
	}
	for (int64_t i = 0; i < count; i++) {
		enum request_end end = router_find(run, ids[i])->state == REQUEST_FLYING
		                           ? REQUEST_SUCCEEDED
		                           : REQUEST_GONE;
		if (!router_done(run, ids[i], end))
			return false;
	}
	return true;
}

/* Whether it is to have been idle for less than `than`, and longest of those. */
static struct sim_model *next_idle(struct models_run *run, int64_t than)
{
	struct sim_model *next = NULL;
	for (size_t i = 0; i < run->model_count; i++) {
		struct sim_model *model = &run->models[i];
		if (model->idle_ms < than && (!next || model->idle_ms > next->idle_ms))
			next = model;
	}
	return next;
}

/* Lets time pass and uses every model at the moment since which it is to be idle,
 * so that one clock gives each its own idle time. */
static bool pass_time(struct models_run *run)
{
	int64_t begin_ms = run->driver.now_ms, idle_ms = INT64_MAX, longest = 0;
	for (size_t i = 0; i < run->model_count; i++)
		longest = max64(longest, run->models[i].idle_ms);
	/* The longest idle are left alone. */
	for (const struct sim_model *next = next_idle(run, longest); next && idle_ms > 0;
	     next = next_idle(run, idle_ms)) {
		idle_ms = next->idle_ms;
		run->driver.now_ms = begin_ms + longest - idle_ms;
		for (size_t i = 0; i < run->model_count; i++) {
			if (run->models[i].idle_ms == idle_ms && run->models[i].record.id &&
			    !touch(run, i))
				return false;
		}
	}
	run->driver.now_ms = begin_ms + longest;
	return run_send(run, (struct command){ .kind = COMMAND_TIME }) && run_settle(run);
}

bool step_idle(struct models_run *run, const struct model_step *step)
{
	struct sim_model *model = run_model(run, step->model);
	if (!model)
		return run_fail(run, "%s is not a model of the case", step->model);
	int64_t ttl = model->record.idle_ttl_ms ? model->record.idle_ttl_ms : IDLE_TTL_MS;
	model->idle_ms = max64(step->idle_ms, ttl + SECOND_MS);
	return pass_time(run);
}

bool step_busy(struct models_run *run, const struct model_step *step)
{
	struct sim_model *model = run_model(run, step->model);
	if (!model || !model->record.id)
		return run_fail(run, "%s is not a model of the case", step->model);
	model->idle_ms = 0;
	size_t at = (size_t)(model - run->models);
	int64_t count = count_idle(run, model);
	for (int64_t i = 0; i < count; i++) {
		if (!router_ask(run, &run->models[at], USE_HOLD, -1, 0))
			return false;
	}
	if (!router_oldest(run, &run->models[at], REQUEST_FLYING))
		return run_fail(run, "%s has no slot that could be busy", step->model);
	return run_settle(run);
}
