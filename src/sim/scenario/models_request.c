/* models_request.c - steps in which someone asks for a model, and what came of it */
#include <stdio.h>
#include <string.h>

#include "sim/scenario/models_run.h"

/* What could become of a request, by what is free before it is sent. */
enum prospect { FITS_NOW, FITS_LATER, FITS_NEVER };

static bool is_pinned_away(const struct models_run *run, const struct model_step *step, int runner)
{
	return run->silent[runner] || (step->runner && step->expect == EXPECT_NOTHING &&
	                               runner != runner_named(run, step->runner));
}

/* True if `count` GPUs of the runner have so much of it each, in use or not. */
static bool has_gpus(const struct models_run *run, const struct model_step *step, int runner,
                     int count, int64_t mib, bool empty)
{
	const struct case_runner *given = &run->models_case->runners[runner];
	int found = 0;
	for (int gpu = 0; gpu < given->gpu_count; gpu++) {
		int place = runner_gpu_place(run, runner, gpu);
		int64_t used = empty ? 0 : books_used_mib(run, place);
		bool pinned = step->gpu < 0 || (gpu >= step->gpu && gpu < step->gpu + count);
		found += pinned && books_capacity_mib(run, place) - used >= mib;
	}
	return found >= count;
}

static bool models_request_fits(const struct models_run *run, const struct sim_model *model,
                                const struct model_step *step, bool empty)
{
	for (int runner = 0; runner < run->models_case->runner_count; runner++) {
		if (is_pinned_away(run, step, runner))
			continue;
		for (int count = 1; count <= PARTS_MAX; count++) {
			int64_t each = (model->record.memory_mib + count - 1) / count;
			if (step->gpus > 0 && count != step->gpus)
				continue;
			if (has_gpus(run, step, runner, count, each, empty))
				return true;
		}
	}
	return false;
}

static enum prospect prospect_of(const struct models_run *run, const struct sim_model *model,
                                 const struct model_step *step)
{
	if (models_request_fits(run, model, step, false))
		return FITS_NOW;
	return models_request_fits(run, model, step, true) ? FITS_LATER : FITS_NEVER;
}

/* The GPUs that may be used: one that is named, and as many after it as wanted. */
static void pin_gpus(struct sim_model *model, const struct model_step *step)
{
	size_t size = 0;
	model->gpu_models[0] = '\0';
	for (int i = 0; step->gpu >= 0 && i < max64(step->gpus, 1); i++)
		size += (size_t)snprintf(model->gpu_models + size, sizeof(model->gpu_models) - size,
		                         "%sgpu-%d", i > 0 ? "|" : "", (int)step->gpu + i);
}

/* The model as the step wants it: what it does not say stays as it was. */
static void models_request_describe(struct sim_model *model, const struct model_step *step)
{
	if (step->memory_mib >= 0)
		model->record.memory_mib = step->memory_mib;
	if (step->concurrency > 0)
		model->record.concurrency = step->concurrency;
	if (step->gpus > 0) {
		model->splits[0] = step->gpus;
		model->splits[1] = 0;
		model->record.splits.count = 1;
	}
	bool pinned = step->runner && step->expect == EXPECT_NOTHING;
	model->labels[0] = '\0';
	if (pinned)
		snprintf(model->labels, sizeof(model->labels), "runner=%s", step->runner);
	pin_gpus(model, step);
	model->left = step->answer == ANSWER_STARTING;
	model->idle_ms = 0;
}

/* Allows for one more slot where no warm one has room, and demands it where the
 * step does. Returns how many slots there are to be. */
static int64_t make_room(const struct models_run *run, struct sim_model *model,
                         const struct model_step *step)
{
	struct model_load load = { 0 };
	if (model->record.id)
		sched_model_load(run->driver.sched, model->record.id, &load);
	int64_t have = load.ready + load.coming;
	bool more = step->replica || load.active >= load.places;
	int64_t target = have + (more ? 1 : 0);
	model->record.max_replicas = max64(model->record.max_replicas, target);
	if (step->replica) {
		model->wanted = target;
		model->record.min_replicas = target;
	}
	return target;
}

/* What became of a request that was sent. */
static enum expectation outcome_of(const struct models_run *run, const struct sim_model *model,
                                   const struct sim_request *request, bool replica, int64_t target)
{
	struct model_load load = { 0 };
	if (request->outcome == ROUTE_REFUSED)
		return EXPECT_UNSCHEDULABLE;
	if (replica)
		return books_slots(run, model, false) >= target ? EXPECT_PLACED : EXPECT_WAITING;
	if (request->state != REQUEST_WAITING)
		return EXPECT_PLACED;
	/* It is not served, and a slot for it has its memory. */
	sched_model_load(run->driver.sched, model->record.id, &load);
	return books_slots(run, model, false) > load.ready ? EXPECT_PLACED : EXPECT_WAITING;
}

static bool check_count(struct models_run *run, const struct model_step *step, const char *what,
                        int64_t expected, int64_t found)
{
	if (expected < 0 || expected == found)
		return true;
	return run_fail(run, "%s of %s should be %lld and is %lld", what,
	                step->model ? step->model : step->job, (long long)expected,
	                (long long)found);
}

/* What is said about the slot beside `expect`. */
static bool models_request_check_slot(struct models_run *run, const struct model_step *step,
                                      const struct slot_record *slot)
{
	const struct reservation_record *right = slot ? books_reservation(run, slot->id) : NULL;
	if (!right)
		return run_fail(run, "%s has no slot", step->model);
	bool fine = check_count(run, step, "gpu_count", step->gpu_count, right->parts.count) &&
	            check_count(run, step, "gpus", step->gpus, right->parts.count);
	for (int64_t p = 0; step->per_gpu_mib >= 0 && p < right->parts.count; p++) {
		int64_t mib = right->parts.at[p * PART_WIDTH + PART_MIB];
		/* Parts are rounded up. */
		if (mib < step->per_gpu_mib - 1 || mib > step->per_gpu_mib + 1)
			fine = run_fail(run, "%s should have %lld MiB on each GPU and has %lld",
			                step->model, (long long)step->per_gpu_mib, (long long)mib);
	}
	if (step->runner && runner_of_node(run, right->node_id) != runner_named(run, step->runner))
		fine =
		    run_fail(run, "%s should be on %s and is on %s", step->model, step->runner,
		             run->models_case->runners[runner_of_node(run, right->node_id)].name);
	return fine;
}

/* Without `expect`, what fits in free memory is placed, and what does not is
 * placed by evicting others or waits; only what never fits is refused. */
static bool judge_unexpected(struct models_run *run, const struct model_step *step,
                             enum prospect prospect, enum expectation found)
{
	if (prospect == FITS_NOW && found != EXPECT_PLACED)
		return run_fail(run, "%s fits and should be placed, and is %s", step->model,
		                expectation_word(found));
	if (prospect == FITS_LATER && found == EXPECT_UNSCHEDULABLE)
		return run_fail(run, "%s fits an empty runner and should not be refused",
		                step->model);
	if (prospect == FITS_NEVER && found != EXPECT_UNSCHEDULABLE)
		return run_fail(run, "%s fits no runner and should be refused, and is %s",
		                step->model, expectation_word(found));
	return true;
}

bool step_request(struct models_run *run, const struct model_step *step)
{
	struct sim_model *model = run_add_model(run, step->model);
	models_request_describe(model, step);
	if (model->record.memory_mib <= 0)
		return run_fail(run, "%s has no memory_gib", step->model);
	enum prospect prospect = prospect_of(run, model, step);
	int64_t target = make_room(run, model, step);
	struct sim_request *request;
	if (!run_put_model(run, model) || !(request = router_ask(run, model, USE_ASK, -1, 0)))
		return false;
	int64_t id = request->id;
	if (!run_settle(run))
		return false;
	request = router_find(run, id);
	model = run_model(run, step->model);
	enum expectation found = outcome_of(run, model, request, step->replica, target);
	if (found == EXPECT_UNSCHEDULABLE && !*request->reason)
		return run_fail(run, "%s was refused without a reason", step->model);
	if (step->expect == EXPECT_NOTHING && model->record.uneven == 0 &&
	    !judge_unexpected(run, step, prospect, found))
		return false;
	if (step->expect != EXPECT_NOTHING && step->expect != found)
		return run_fail(run, "%s should be %s and is %s%s%s", step->model,
		                expectation_word(step->expect), expectation_word(found),
		                *request->reason ? ": " : "", request->reason);
	bool served = !step->replica && request->state != REQUEST_WAITING;
	if (found == EXPECT_PLACED &&
	    !models_request_check_slot(
		run, step, served ? books_slot(run, request->slot_id) : books_newest(run, model)))
		return false;
	return check_count(run, step, "evicted for the sake", step->evicted, run->evicted) &&
	       check_count(run, step, "preempted for the sake", step->preempted, run->preempted);
}

static bool is_expected(enum expectation expected, enum expectation found)
{
	if (expected == EXPECT_SERVED_OR_QUEUED)
		return found == EXPECT_SERVED || found == EXPECT_QUEUED;
	return expected == EXPECT_NOTHING || expected == found;
}

/* The slot was found, and handing the request over fails. */
static bool fail_request(struct models_run *run, int64_t id, enum expectation *found)
{
	if (router_find(run, id)->state != REQUEST_FLYING)
		return true;
	*found = EXPECT_FAILED;
	return router_done(run, id, REQUEST_FAILED) && run_settle(run);
}

bool step_dispatch(struct models_run *run, const struct model_step *step)
{
	struct sim_model *model = run_model(run, step->model);
	if (!model || !model->record.id)
		return run_fail(run, "%s is not a model of the case", step->model);
	enum request_use use = step->fail ? USE_FAIL : step->hold ? USE_HOLD : USE_ASK;
	int64_t tenant_id = step->tenant ? run_tenant(run, step->tenant) : 0;
	const struct sim_request *request = router_ask(run, model, use, step->lease_ms, tenant_id);
	model->idle_ms = 0;
	if (!request)
		return false;
	int64_t id = request->id;
	if (!run_settle(run))
		return false;
	request = router_find(run, id);
	enum expectation found = request->state == REQUEST_WAITING   ? EXPECT_QUEUED
	                         : request->outcome == ROUTE_GRANTED ? EXPECT_SERVED
	                                                             : EXPECT_FAILED;
	if (step->fail && !fail_request(run, id, &found))
		return false;
	if (!is_expected(step->expect, found))
		return run_fail(run, "the request for %s should be %s and is %s", step->model,
		                expectation_word(step->expect), expectation_word(found));
	return check_count(run, step, "evicted for the sake", step->evicted, run->evicted);
}
