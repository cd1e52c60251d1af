/* pass.c - decide: who is next, and what can be done for them */
#include "core/pass.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/fairshare.h"
#include "core/room.h"
#include "core/state.h"

#define NO_LINK INT64_MAX /* a group that no GPU is in */
#define LINES_MAX 64      /* GPUs that one decision shows */
#define ROUNDS_MAX 16     /* of one pass, until it leaves the rest to the next */

/* The NVLink group of all GPUs that the reservation has; none if they are, or
 * were found to be since, in several. */
static void stay_linked(struct search *search, const struct reservation *reservation)
{
	for (int i = 0; i < reservation->part_count; i++) {
		int64_t group = reservation->parts[i].gpu->r.nvlink_group;
		bool same = group != 0 && (search->link == 0 || search->link == group);
		search->link = same ? group : NO_LINK;
	}
}

static void stay_close(struct search *search, const struct job *job)
{
	for (int i = 0; i < job->r.tasks; i++) {
		const struct reservation *reservation = job->tasks[i].reservation;
		if (!reservation || reservation->phase == PHASE_RELEASING)
			continue;
		if (search->shape->closeness == CLOSE_RACK && reservation->node->rack)
			search->rack = reservation->node->rack;
		else if (search->shape->closeness != CLOSE_ANY)
			search->only = reservation->node;
		if (search->shape->closeness == CLOSE_NVLINK)
			stay_linked(search, reservation);
	}
}

struct search pass_search(struct sched *sched, struct job *job)
{
	const struct shape *shape = job->class->shape;
	int64_t length = length_ms(job->class->length);
	struct search search = {
		.job = job,
		.shape = shape,
		.view = VIEW_NOW,
		.until_ms = length == INT64_MAX || !sched->config.enable_backfill
		                ? INT64_MAX
		                : sched_now(sched) + length,
	};

	if (job_active(job) > 0 && shape->closeness_required)
		stay_close(&search, job); /* a job that grows stays where it is */
	return search;
}

/* Whether a failure holds for every job of the shape. */
static bool is_general(const struct search *search)
{
	const struct shape *shape = search->shape;

	return !search->promise_blocked && !search->limit_blocked && !search->only &&
	       !search->rack && !(shape->closeness_required && shape->tasks == 1);
}

bool pass_place(struct sched *sched, struct search *search)
{
	struct shape *shape = (struct shape *)search->shape;
	struct index *index = &sched->index;
	int64_t tasks = shape->tasks;

	if (shape->failed_version != index->free_version) {
		uint64_t version = index->free_version;
		search->view = VIEW_NOW;
		search->promise_blocked = search->limit_blocked = false;
		if (place_job(sched, search, tasks))
			return true;
		search->too_long |= search->promise_blocked;
		if (is_general(search))
			shape->failed_version = version;
	}
	if (index->releasing_count == 0 || shape->claim_failed_version == index->free_version)
		return false;
	uint64_t version = index->free_version;
	search->view = VIEW_LATER;
	search->promise_blocked = search->limit_blocked = false;
	if (place_job(sched, search, tasks))
		return true;
	search->too_long |= search->promise_blocked;
	if (is_general(search))
		shape->claim_failed_version = version;
	return false;
}

void pass_line(const struct part *part, enum phase phase, int64_t *line)
{
	const struct gpu *gpu = part->gpu;
	bool claim = phase == PHASE_CLAIM;

	line[LINE_GPU] = gpu->r.id;
	line[LINE_CAPACITY] = gpu->r.capacity_mib;
	line[LINE_OVERHEAD] = gpu->r.overhead_mib;
	line[LINE_FOREIGN] = gpu->r.foreign_mib;
	line[LINE_USED_BEFORE] = gpu->books.used_mib - (claim ? 0 : part->mib);
	line[LINE_RELEASING] = gpu->books.releasing_mib;
	line[LINE_CLAIMED] = gpu->books.claimed_mib - (claim ? part->mib : 0);
	line[LINE_ASKED] = part->mib;
	line[LINE_USED_AFTER] = gpu->books.used_mib;
}

static int add_lines(const struct reservation *reservation, int64_t *lines, int count)
{
	for (int i = 0; i < reservation->part_count && count < LINES_MAX; i++, count++)
		pass_line(&reservation->parts[i], reservation->phase,
		          lines + (size_t)count * LINE_WIDTH);
	return count;
}

void pass_commit(struct sched *sched, const struct search *search, struct decision_record *decision)
{
	struct job *job = search->job;
	int64_t lines[LINES_MAX * LINE_WIDTH];
	int count = 0;
	bool grows = job->r.split_gpus == 0 && job_active(job) > search->shape->tasks;

	plan_commit(sched);
	job_begins(sched, job);
	for (size_t i = 0; i < sched->plan.count; i++) {
		struct reservation *reservation = sched->plan.steps[i].reservation;
		if (sched->plan.steps[i].kind != STEP_ENTER || reservation->job != job)
			continue;
		count = add_lines(reservation, lines, count);
		decision->tasks++;
		if (reservation->phase == PHASE_HELD)
			job_granted(sched, reservation);
		else
			job_claimed(sched, reservation);
	}
	if (decision->kind == DECISION_START && job->counts.claims > 0)
		decision->kind = DECISION_CLAIM;
	else if (decision->kind == DECISION_START && grows)
		decision->kind = DECISION_GROW;
	decision->job_id = job->r.id;
	decision->tenant_id = job->r.tenant_id;
	decision->score = search->score;
	decision->premium_milli = search->premium * INT64_C(1000) / PREMIUM_UNIT;
	decision->candidates = search->candidates;
	if (job->counts.claims > 0)
		decision->until_ms =
		    sched_now(sched) + sched->config.grace_ms + sched->config.release_timeout_ms;
	decision->gpus = (struct rows){ lines, count };
	sched_decide(sched, decision);
	job_settle(sched, job);
	sched->pass.units--;
	sched->pass.state++;
}

enum outcome pass_try(struct sched *sched, struct job *job)
{
	struct search search = pass_search(sched, job);
	struct amounts amounts = job_amounts(sched, job, search.shape->tasks);
	struct bound bound;

	if (!tenant_may_hold(job->tenant, &amounts, job->r.preemptible, sched_now(sched), &bound))
		return OUTCOME_NONE;
	plan_begin(sched);
	if (!pass_place(sched, &search)) {
		plan_abandon(sched);
		return search.too_long ? OUTCOME_TOO_LONG : OUTCOME_NONE;
	}
	struct decision_record decision = { .kind = DECISION_START };
	pass_commit(sched, &search, &decision);
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
		tenant->open = HEAP(struct job_class, pass_place, class_before);
	group->open = NULL;
	group->above = above;
	group->shorter_than = INT_MAX;
	settle_group(sched, group);
}

/* After something was tried for the first job of the class that stands for it. */
static void go_on(struct sched *sched, struct job_class *class, enum outcome outcome)
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
		return shape_may_fit(sched, class->shape) ? OUTCOME_DONE : OUTCOME_NONE;
	if (!room_is_hopeless(sched, class->group, class->priority, kind))
		return OUTCOME_DONE;
	bool all = kind != ROOM_PREEMPT ||
	           room_is_hopeless(sched, class->group, class->group->highest, kind);
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
static void offer(struct sched *sched, struct tenant *tenant)
{
	struct job_class *class;

	while ((class = heap_first(&tenant->open))) {
		if (!settle_group(sched, class->group))
			continue;
		enum outcome outcome = foresee(sched, class);
		if (outcome == OUTCOME_DONE)
			break;
		go_on(sched, class, outcome);
	}
	const struct model *model = model_first(tenant);
	if (!class && !model) {
		order_offer(&sched->pass.order, tenant, NULL);
		return;
	}
	struct amounts amounts =
	    model ? replica_amounts(sched, model)
		  : job_amounts(sched, class_first(class, sched_now(sched)), class->shape->tasks);
	order_offer(&sched->pass.order, tenant, &amounts);
}

static void close_all(struct sched *sched)
{
	for (size_t i = 0; i < sched->tenants.count; i++)
		heap_clear(&sched->tenants.all[i]->open);
	replica_close(sched);
}

/* Serves the open groups in the order of fair share and priority; `serve` does
 * something for a job, or does not. */
static void serve_in_order(struct sched *sched, enum outcome (*serve)(struct sched *, struct job *))
{
	struct pass *pass = &sched->pass;
	struct tenant *tenant;

	order_begin(&pass->order, &sched->cluster.total, false);
	for (size_t i = 0; i < sched->tenants.count; i++)
		if (heap_first(&sched->tenants.all[i]->open) ||
		    replica_first(sched->tenants.all[i]))
			offer(sched, sched->tenants.all[i]);
	while (pass->units > 0 && (tenant = order_first(&pass->order))) {
		if (model_first(tenant)) {
			replica_serve(sched, tenant);
			offer(sched, tenant);
			continue;
		}
		struct job_class *class = heap_first(&tenant->open);
		if (settle_group(sched, class->group)) /* others may have changed it */
			go_on(sched, class, serve(sched, class_first(class, sched_now(sched))));
		offer(sched, tenant);
	}
	close_all(sched);
}

/* Whether the shape fits as things are: tried for one of its jobs, and undone.
 * Tenants are compared by what they would do next, so what cannot be done must
 * not take part, no matter whether that was found out now or in an earlier pass. */
static bool shape_fits(struct sched *sched, struct shape *shape)
{
	if (!shape_may_fit(sched, shape))
		return false;
	struct search search =
	    pass_search(sched, class_first(shape->groups[0]->classes[0], sched_now(sched)));
	search.only = NULL; /* a job that grows may have to stay where it is, others not */
	search.rack = 0;
	search.link = 0;
	search.ignore_promises = true;
	search.any = shape->tasks == 1; /* how a gang is laid out decides whether it fits */
	if (search.any && shape->split_gpus == 0 && place_fits(sched, &search))
		return true;
	plan_begin(sched);
	sched->plan.unlimited = true;
	pass_place(sched, &search);
	sched->plan.unlimited = false;
	plan_abandon(sched);
	return shape_may_fit(sched, shape);
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
	replica_open(sched, REPLICA_FIT);
	serve_in_order(sched, pass_try);
}

/* Elastic jobs that have started wait again, to grow. */
static void start_what_fits(struct sched *sched)
{
	int64_t units;

	do {
		units = sched->pass.units;
		start_once(sched);
	} while (sched->pass.units > 0 && sched->pass.units < units);
}

static enum outcome serve_evict(struct sched *sched, struct job *job)
{
	return room_make(sched, job, ROOM_EVICT) ? OUTCOME_DONE : OUTCOME_NONE;
}

static enum outcome serve_move(struct sched *sched, struct job *job)
{
	return room_make(sched, job, ROOM_CONSOLIDATE) ? OUTCOME_DONE : OUTCOME_NONE;
}

static enum outcome serve_reclaim(struct sched *sched, struct job *job)
{
	return room_make(sched, job, ROOM_RECLAIM) ? OUTCOME_DONE : OUTCOME_NONE;
}

static enum outcome serve_preempt(struct sched *sched, struct job *job)
{
	return room_make(sched, job, ROOM_PREEMPT) ? OUTCOME_DONE : OUTCOME_TOO_LOW;
}

static void open_for_room(struct sched *sched, struct tenant *tenant, enum room_kind kind)
{
	int64_t above = kind == ROOM_PREEMPT ? room_lowest_priority(tenant) : INT64_MIN;

	room_note_pauses(sched, tenant, kind);
	for (size_t g = 0; g < tenant->group_count; g++)
		if (room_may_help(sched, tenant->groups[g], kind))
			open_group(sched, tenant->groups[g], above);
}

static void make_room(struct sched *sched, enum room_kind kind,
                      enum outcome (*serve)(struct sched *, struct job *))
{
	if (!room_begin(sched, kind))
		return;
	for (size_t i = 0; i < sched->tenants.count; i++)
		if (room_may_help_tenant(sched, sched->tenants.all[i], kind))
			open_for_room(sched, sched->tenants.all[i], kind);
	if (kind == ROOM_EVICT || kind == ROOM_PREEMPT)
		replica_open(sched, kind == ROOM_EVICT ? REPLICA_EVICT : REPLICA_PREEMPT);
	sched->pass.making_room = true;
	sched->pass.room_kind = (int)kind;
	serve_in_order(sched, serve);
	sched->pass.making_room = false;
}

bool pass_claim_is_sound(const struct sched *sched, const struct reservation *claim)
{
	const struct node *node = claim->node;

	if (!node_is_open(node) || host_free_later(&node->cpu, node->r.cpu_milli) < 0 ||
	    host_free_later(&node->host, node->r.host_bytes) < 0)
		return false;
	for (int i = 0; i < claim->part_count; i++) {
		const struct gpu *gpu = claim->parts[i].gpu;
		const struct gpu_books *books = &gpu->books;
		if (!gpu_is_open(gpu, &sched->config) || gpu_free_later(gpu) < 0)
			return false;
		if (claim->parts[i].whole
		        ? books->owners > books->releasing_owners || books->claims > 1
		        : books->whole_owners > books->whole_releasing)
			return false;
	}
	return true;
}

/* A gang that lost more since, so that its claims do not complete it any more, is
 * planned anew: it starts with all that it must have or not at all. */
static bool claims_are_sound(const struct sched *sched, const struct job *job)
{
	if (job->r.split_gpus == 0 && job_active(job) + job->ended < job->r.min_available)
		return false;
	for (int i = 0; i < job->r.tasks; i++)
		if (job->tasks[i].claim && !pass_claim_is_sound(sched, job->tasks[i].claim))
			return false;
	return true;
}

static void lapse(struct sched *sched, struct job *job)
{
	struct decision_record decision = { .kind = DECISION_LAPSED,
		                            .job_id = job->r.id,
		                            .tenant_id = job->r.tenant_id,
		                            .tasks = job->counts.claims };

	job_drop_claims(sched, job);
	sched_decide(sched, &decision);
	job_settle(sched, job);
	if (job->timer_ms <= sched_now(sched)) { /* its deadline passed while it had the claim */
		heap_remove(&sched->timers, job);
		job_timer(sched, job);
	}
	sched->pass.state++;
}

/* All claims of a job become rights together, or none. */
static bool redeem(struct sched *sched, struct job *job)
{
	plan_begin(sched);
	for (int i = 0; i < job->r.tasks; i++)
		if (job->tasks[i].claim && !plan_grant(sched, job->tasks[i].claim, NULL)) {
			plan_abandon(sched);
			return false;
		}
	plan_commit(sched);
	job_begins(sched, job);
	int64_t lines[LINES_MAX * LINE_WIDTH];
	int count = 0;
	struct decision_record decision = { .kind = DECISION_START,
		                            .job_id = job->r.id,
		                            .tenant_id = job->r.tenant_id };
	for (size_t i = 0; i < sched->plan.count; i++) {
		count = add_lines(sched->plan.steps[i].reservation, lines, count);
		decision.tasks++;
		job_granted(sched, sched->plan.steps[i].reservation);
	}
	decision.gpus = (struct rows){ lines, count };
	sched_decide(sched, &decision);
	job_settle(sched, job);
	sched->pass.units--;
	sched->pass.state++;
	return true;
}

static void serve_claims(struct sched *sched)
{
	int64_t after = 0;

	while (sched->pass.units > 0) {
		struct rank_cursor cursor = ranktree_seek(&sched->claimants, after + 1, 0);
		const struct rank_entry *entry = rank_cursor_next(&cursor);
		if (!entry)
			return;
		struct job *job = entry->value;
		after = job->r.id;
		if (!claims_are_sound(sched, job))
			lapse(sched, job);
		else
			redeem(sched, job);
	}
}

/* Gangs that stayed below their minimum for too long. */
static void stop_short_gangs(struct sched *sched)
{
	const struct rank_entry *first;

	while ((first = ranktree_first(&sched->shorts)) && first->major <= sched_now(sched)) {
		struct job *job = first->value;
		struct decision_record decision = { .kind = DECISION_GANG,
			                            .job_id = job->r.id,
			                            .tenant_id = job->r.tenant_id,
			                            .tasks = job_active(job) };
		job_drop_claims(sched, job);
		job_stop(sched, job);
		sched_decide(sched, &decision);
		job_settle(sched, job);
		sched->pass.state++;
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
		pass->state++;
}

/* What is idle costs least. Moving costs less than stopping, but for a job that
 * its tenant is not entitled to it would only be undone by those who reclaim: so
 * those go first. */
static void make_room_for_all(struct sched *sched)
{
	make_room(sched, ROOM_EVICT, serve_evict);
	sched->room.entitled = true;
	make_room(sched, ROOM_CONSOLIDATE, serve_move);
	make_room(sched, ROOM_RECLAIM, serve_reclaim);
	sched->room.entitled = false;
	make_room(sched, ROOM_CONSOLIDATE, serve_move);
	make_room(sched, ROOM_PREEMPT, serve_preempt);
	share_run(sched);
}

void pass_run(struct sched *sched, int64_t units)
{
	struct pass *pass = &sched->pass;
	uint64_t state, promised = UINT64_MAX; /* the state that promises are right for */
	int rounds = 0;

	pass->units = units;
	shapes_sweep(&sched->shapes);
	sched_prepare(sched);
	backoff_expire(sched);
	do { /* what was started, stopped or promised may let others fit, or grow */
		share_out(sched);
		state = pass->state;
		serve_claims(sched);
		replica_claims(sched);
		start_what_fits(sched);
		make_room_for_all(sched);
		if (pass->units > 0)
			stop_short_gangs(sched);
		if (pass->units > 0 && pass->state != promised) {
			promised = pass->state;
			promise_pass(sched);
		}
	} while (pass->state != state && pass->units > 0 && ++rounds < ROUNDS_MAX);
	if (pass->units <= 0 || pass->state != state)
		effects_more(sched->effects);
}

void pass_free(struct pass *pass)
{
	order_free(&pass->order);
	free(pass->fair);
}
