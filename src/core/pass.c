/* pass.c - decide: who is next, and what can be done for them */
#include "core/pass.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/room/claim.h"
#include "core/room/commit.h"
#include "core/room/resume.h"
#include "core/room/room.h"
#include "core/room/wake.h"
#include "core/state.h"
#include "core/tenant/fairshare.h"

#define ROUNDS_MAX 16 /* of one pass, until it leaves the rest to the next */

enum outcome pass_try(struct sched *sched, struct search *search)
{
	struct bound bound;

	INVARIANT(!sched->plan.open);
	INVARIANT(!sched->plan.open && sched->index.built);
	if (search->job) { /* what a slot counts for depends on its GPUs */
		struct amounts amounts = applicant_amounts(&sched->placement, search);
		if (!applicant_may_hold(&sched->placement, search, &amounts, &bound))
			return OUTCOME_NONE;
	}
	plan_begin(&sched->ledger);
	if (!applicant_place(&sched->placement, search)) {
		plan_abandon(&sched->ledger);
		return search->too_long ? OUTCOME_TOO_LONG : OUTCOME_NONE;
	}
	struct decision_record decision = { .kind = DECISION_START };
	applicant_commit(sched, search, &decision);
	return OUTCOME_DONE;
}

/* A shape that failed, with nothing freed since, fails again. */
static bool shape_may_fit(const struct sched *sched, const struct shape *shape)
{
	const struct index *index = &sched->index;

	if (shape->failed_version != index->free_version)
		return true;
	return index->releasing_count > 0 && shape->claim_failed_version != index->free_version;
}

static bool may_stand(const struct job_class *class)
{
	return class->length<class->group->shorter_than &&class->priority> class->group->above;
}

/* Of the classes that may stand for the group, the one whose turn is first. */
static struct job_class *choose_class(struct job_group *group, int64_t now_ms)
{
	if (group->highest <= group->above)
		return NULL;
	struct job_class *best = group_first(group, now_ms);
	if (!best || may_stand(best))
		return best;
	best = NULL;
	for (size_t i = 0; i < group->class_count; i++) {
		struct job_class *class = group->classes[i];
		class_turn(class, now_ms);
		if (may_stand(class) && (!best || class_before(class, best)))
			best = class;
	}
	return best;
}

/* Lets the right class stand for the group among those that a pass may still
 * serve. True if it was that one already. */
static bool settle_group(struct sched *sched, struct job_group *group)
{
	struct heap *heap = &group->tenant->open;
	struct job_class *was = group->open;

	INVARIANT(!was || was->group == group);
	int64_t key = was ? was->pass_key : 0, number = was ? was->pass_number : 0;
	int64_t behind = was ? was->pass_behind : 0;
	struct job_class *class = choose_class(group, sched_now(sched));

	if (class == was && (!class || (class->pass_key == key && class->pass_behind == behind &&
	                                class->pass_number == number)))
		return true;
	group->open = class;
	if (class == was) {
		heap_update(heap, class);
		return false;
	}
	if (was)
		heap_remove(heap, was);
	if (class)
		heap_push(heap, class);
	return false;
}

static void open_group(struct sched *sched, struct job_group *group, int64_t above)
{
	struct tenant *tenant = group->tenant;

	if (!tenant->open.before)
		tenant->open = HEAP(struct job_class, pass_index, class_before);
	group->open = NULL;
	group->above = above;
	group->shorter_than = INT_MAX;
	settle_group(sched, group);
}

/* After something was tried for the first job of the class that stands for it. */
static void pass_go_on(struct sched *sched, struct job_class *class, enum outcome outcome)
{
	struct job_group *group = class->group;

	if (outcome == OUTCOME_NONE)
		group->above = INT64_MAX; /* nobody else is to try */
	else if (outcome == OUTCOME_TOO_LOW)
		group->above = class->priority;
	else if (outcome == OUTCOME_TOO_LONG)
		group->shorter_than = class->length;
	settle_group(sched, group);
}

/* Whether trying for the class may come to anything. */
static enum outcome foresee(struct sched *sched, const struct job_class *class)
{
	const struct pass *pass = &sched->pass;
	enum room_kind kind = (enum room_kind)pass->room_kind;

	if (!pass->making_room)
		return shape_may_fit(sched, class->shape) ? OUTCOME_MAY_TRY : OUTCOME_NONE;
	if (!room_known_full(sched, class->group, class->priority, kind))
		return OUTCOME_MAY_TRY;
	bool all = kind != ROOM_PREEMPT ||
	           room_known_full(sched, class->group, class->group->highest, kind);
	return all ? OUTCOME_NONE : OUTCOME_TOO_LOW;
}

/* The model whose turn it is before all jobs of the tenant; NULL: there is none. */
static const struct model *model_first(const struct tenant *tenant)
{
	const struct model *model = replica_first(tenant);
	const struct job_class *class = heap_first(&tenant->open);

	return model && (!class || replica_goes_before(model, class->pass_key)) ? model : NULL;
}

/* Tells the order what the tenant would do next, if anything. What is first there
 * may be out of date: others took its jobs, or its chance. */
static void pass_offer(struct sched *sched, struct tenant *tenant)
{
	struct job_class *class;

	while ((class = heap_first(&tenant->open))) {
		if (!settle_group(sched, class->group))
			continue;
		enum outcome outcome = foresee(sched, class);
		if (outcome == OUTCOME_MAY_TRY)
			break;
		pass_go_on(sched, class, outcome);
	}
	const struct model *model = model_first(tenant);
	if (!class && !model) {
		turn_offer(&sched->pass.turn, tenant, NULL);
		return;
	}
	struct amounts amounts =
	    model ? model_amounts(model, sched_totals(sched)->smallest_mib)
		  : job_amounts(sched, class_first(class, sched_now(sched)), class->shape->tasks);
	turn_offer(&sched->pass.turn, tenant, &amounts);
}

static void close_all(struct sched *sched)
{
	for (size_t i = 0; i < sched->tenants.count; i++)
		heap_clear(&sched->tenants.all[i]->open);
	replica_close(sched);
}

/* Does for the applicant what the pass is at. */
static enum outcome pass_serve(struct sched *sched, struct search *search)
{
	enum room_kind kind = (enum room_kind)sched->pass.room_kind;

	if (!sched->pass.making_room)
		return pass_try(sched, search);
	return room_make(sched, search, kind) ? OUTCOME_DONE : OUTCOME_NONE;
}

static void serve_model(struct sched *sched, struct tenant *tenant)
{
	struct model *model = replica_first(tenant);

	INVARIANT(model && model->tenant == tenant);
	struct search search = applicant_slot(model);
	bool wants = replica_wants_room(sched, model);
	bool wakes = wants && wake_may_help(model) &&
	             (!sched->pass.making_room || sched->pass.room_kind == ROOM_EVICT);
	bool done =
	    wants &&
	    ((wakes && wake_make(sched, model)) ||
	     (!wake_is_awaited(sched, model) && pass_serve(sched, &search) == OUTCOME_DONE));

	if (!done || replica_want(sched, model) == WANT_NOTHING)
		tenant->open_model_first++;
}

static void serve_class(struct sched *sched, struct job_class *class)
{
	const struct pass *pass = &sched->pass;
	enum room_kind kind = (enum room_kind)pass->room_kind;
	struct job *job = class_first(class, sched_now(sched));
	enum outcome outcome = OUTCOME_NONE;

	if (!pass->making_room || room_may_help_job(sched, job, kind)) {
		struct search search = applicant_job(&sched->placement, job);
		outcome = pass_serve(sched, &search);
	}
	if (pass->making_room && outcome == OUTCOME_NONE && kind == ROOM_PREEMPT)
		outcome = OUTCOME_TOO_LOW;
	pass_go_on(sched, class, outcome);
}

/* Serves the open groups and models in the order of fair share and priority. */
static void serve_in_order(struct sched *sched)
{
	struct pass *pass = &sched->pass;
	struct tenant *tenant;

	turn_begin(&pass->turn, &sched->cluster.total, false);
	for (size_t i = 0; i < sched->tenants.count; i++)
		if (heap_first(&sched->tenants.all[i]->open) ||
		    replica_first(sched->tenants.all[i]))
			pass_offer(sched, sched->tenants.all[i]);
	while (pass->budget > 0 && (tenant = turn_first(&pass->turn))) {
		struct job_class *class = heap_first(&tenant->open);
		if (model_first(tenant))
			serve_model(sched, tenant);
		else if (settle_group(sched, class->group)) /* others may have changed it */
			serve_class(sched, class);
		pass_offer(sched, tenant);
	}
	close_all(sched);
}

/* True if the shape fits now: tries one of its jobs, and undoes it. Tenants are compared by
 * their next job, so a job that cannot start must not take part, whether that was found out
 * now or in an earlier pass. */
static bool shape_fits(struct sched *sched, struct shape *shape)
{
	if (!shape_may_fit(sched, shape))
		return false;
	struct search search = applicant_job(
	    &sched->placement, class_first(shape->groups[0]->classes[0], sched_now(sched)));
	search.only = NULL; /* a job that grows may have to stay where it is, others not */
	search.rack = 0;
	search.link = 0;
	search.ignore_promises = search.ignore_windows = true;
	search.any = shape->tasks == 1; /* how a gang is laid out decides whether it fits */
	if (search.any && shape->split_gpus == 0 && place_fits(&sched->placement, &search))
		return true;
	plan_begin(&sched->ledger);
	sched->plan.unlimited = true;
	applicant_place(&sched->placement, &search);
	sched->plan.unlimited = false;
	plan_abandon(&sched->ledger);
	return shape_may_fit(sched, shape);
}

/* Whether a job of the group goes before all that the entry stands for. */
static bool group_goes_before(struct sched *sched, struct job_group *group,
                              const struct queue_entry *entry)
{
	struct queue_rule rule = job_rule(sched);

	for (size_t i = 0; i < group->class_count; i++) {
		const struct job *first = class_first(group->classes[i], sched_now(sched));
		if (first && queue_before(&rule, &first->entry, entry, sched_now(sched)))
			return true;
	}
	return false;
}

bool pass_goes_before(struct sched *sched, const struct job *job)
{
	struct queue_entry entry = job_entry(sched, job);
	struct shapes *shapes = &sched->shapes;

	for (size_t i = 0; i < shapes->active_count; i++) {
		struct shape *shape = shapes->active[i];
		bool before = false;
		for (size_t g = 0; g < shape->group_count && !before; g++)
			before = shape->groups[g]->tenant == job->tenant &&
			         group_goes_before(sched, shape->groups[g], &entry);
		if (before && shape_fits(sched, shape))
			return true;
	}
	return false;
}

static void start_once(struct sched *sched)
{
	struct shapes *shapes = &sched->shapes;

	for (size_t i = 0; i < shapes->active_count; i++) {
		struct shape *shape = shapes->active[i];
		if (!shape_fits(sched, shape))
			continue;
		for (size_t g = 0; g < shape->group_count; g++)
			open_group(sched, shape->groups[g], INT64_MIN);
	}
	replica_open(sched);
	serve_in_order(sched);
}

/* Elastic jobs that have started wait again, to grow. */
static void start_what_fits(struct sched *sched)
{
	int64_t units;

	do {
		units = sched->pass.budget;
		start_once(sched);
	} while (sched->pass.budget > 0 && sched->pass.budget < units);
}

static void open_for_room(struct sched *sched, struct tenant *tenant, enum room_kind kind)
{
	int64_t above = kind == ROOM_PREEMPT ? room_lowest_priority(tenant) : INT64_MIN;

	room_note_pauses(sched, tenant, kind);
	for (size_t g = 0; g < tenant->group_count; g++)
		if (room_may_help(sched, tenant->groups[g], kind))
			open_group(sched, tenant->groups[g], above);
}

static void make_room(struct sched *sched, enum room_kind kind)
{
	if (!room_begin(sched, kind))
		return;
	sched->pass.making_room = true;
	sched->pass.room_kind = (int)kind;
	for (size_t i = 0; i < sched->tenants.count; i++)
		if (room_may_help_tenant(sched, sched->tenants.all[i], kind))
			open_for_room(sched, sched->tenants.all[i], kind);
	if (kind == ROOM_EVICT || kind == ROOM_PREEMPT)
		replica_open(sched);
	serve_in_order(sched);
	sched->pass.making_room = false;
}

/* Gangs that stayed below their minimum for too long. */
static void stop_short_gangs(struct sched *sched)
{
	const struct rank_entry *first;

	while ((first = ranktree_first(&sched->understaffed)) && first->major <= sched_now(sched)) {
		struct job *job = first->value;
		struct decision_record decision = { .kind = DECISION_GANG,
			                            .job_id = job->r.id,
			                            .tenant_id = job->r.tenant_id,
			                            .tasks = job_active(job) };
		job_drop_claims(sched, job);
		job_stop(sched, job);
		sched_decide(sched, &decision);
		job_settle(sched, job);
		sched->pass.change_seq++;
	}
}

/* Fair shares, and whether they are the same as in the last pass. */
static void share_out(struct sched *sched)
{
	struct pass *pass = &sched->pass;
	struct tenants *tenants = &sched->tenants;
	bool same = pass->fair_count == tenants->count;

	fairshare_divide(tenants, &sched_totals(sched)->total, &sched->config, sched_now(sched));
	array_reserve(pass->fair, pass->fair_capacity, tenants->count);
	for (size_t i = 0; i < tenants->count; i++)
		for (int k = 0; k < FAIR_KINDS; k++) {
			same = same && pass->fair[i].of[k] == tenants->all[i]->fair[k];
			pass->fair[i].of[k] = tenants->all[i]->fair[k];
		}
	pass->fair_count = tenants->count;
	if (!same)
		pass->change_seq++;
}

/* What is idle costs least. Moving costs less than stopping, but for a job that
 * its tenant is not entitled to it would only be undone by those who reclaim: so
 * those go first. */
static void make_room_for_all(struct sched *sched)
{
	make_room(sched, ROOM_EVICT);
	sched->room.entitled = true;
	make_room(sched, ROOM_CONSOLIDATE);
	make_room(sched, ROOM_RECLAIM);
	sched->room.entitled = false;
	make_room(sched, ROOM_CONSOLIDATE);
	make_room(sched, ROOM_PREEMPT);
	timeshare_run(sched);
	rotation_run(sched);
	wake_trim(sched);
}

/* A job that ended in this command, where finished jobs are not kept: its last record is
 * written first, and the next pass archives it. */
static bool jobs_are_due(const struct sched *sched)
{
	const struct job *job = heap_first(&sched->timers);

	return job && job->timer_ms <= sched_now(sched);
}

void pass_run(struct sched *sched, int64_t units)
{
	struct pass *pass = &sched->pass;
	uint64_t state, promised = UINT64_MAX; /* the state that promises are right for */
	int rounds = 0;

	INVARIANT(!sched->plan.open && !pass->making_room);
	pass->budget = units;
	shapes_sweep(&sched->shapes);
	sched_prepare(sched);
	backoff_expire(sched);
	do { /* what was started, stopped or promised may let others fit, or grow */
		share_out(sched);
		state = pass->change_seq;
		claims_serve(sched);
		resume_serve(sched);
		start_what_fits(sched);
		make_room_for_all(sched);
		if (pass->budget > 0)
			stop_short_gangs(sched);
		if (pass->budget > 0 && pass->change_seq != promised) {
			promised = pass->change_seq;
			promise_pass(sched);
		}
	} while (pass->change_seq != state && pass->budget > 0 && ++rounds < ROUNDS_MAX);
	if (pass->budget <= 0 || pass->change_seq != state || jobs_are_due(sched))
		effects_more(sched->effects);
}

void pass_free(struct pass *pass)
{
	turn_free(&pass->turn);
	free(pass->fair);
}
