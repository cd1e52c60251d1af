/* pass.c - decide: who is next, and what can be done for them */
#include "core/pass.h"

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

bool pass_try(struct sched *sched, struct job *job)
{
	struct search search = pass_search(sched, job);
	struct amounts amounts = job_amounts(sched, job, search.shape->tasks);
	struct bound bound;

	if (!tenant_may_hold(job->tenant, &amounts, job->r.preemptible, sched_now(sched), &bound))
		return false;
	plan_begin(sched);
	if (!pass_place(sched, &search)) {
		plan_abandon(sched);
		return false;
	}
	struct decision_record decision = { .kind = DECISION_START };
	pass_commit(sched, &search, &decision);
	return true;
}

static bool class_before(const void *a, const void *b)
{
	const struct job_class *x = a, *y = b;

	return x->pass_key != y->pass_key ? x->pass_key > y->pass_key
	                                  : x->pass_number < y->pass_number;
}

static struct job *class_first(struct sched *sched, struct job_class *class)
{
	struct queue_entry *entry = queue_first(&class->queue, sched_now(sched));

	if (!entry)
		return NULL;
	struct job *job = (struct job *)(void *)((char *)entry - offsetof(struct job, entry));
	class->pass_key = queue_effective(&class->queue.rule, entry, sched_now(sched));
	class->pass_number = entry->number;
	return job;
}

/* A shape that failed, with nothing freed since, fails again. */
static bool shape_may_fit(const struct sched *sched, const struct shape *shape)
{
	const struct index *index = &sched->index;

	if (shape->failed_version != index->free_version)
		return true;
	return index->releasing_count > 0 && shape->claim_failed_version != index->free_version;
}

static bool has_a_chance(const struct sched *sched, const struct job_class *class)
{
	if (sched->pass.making_room)
		return !room_is_hopeless(sched, class, (enum room_kind)sched->pass.room_kind);
	return shape_may_fit(sched, class->shape);
}

/* The model whose turn it is before all jobs of the tenant; NULL: there is none. */
static const struct model *model_first(const struct tenant *tenant)
{
	const struct model *model = replica_first(tenant);
	const struct job_class *class = heap_first(&tenant->open);

	return model && (!class || replica_goes_before(model, class->pass_key)) ? model : NULL;
}

/* Tells the order what the tenant would do next, if anything. */
static void offer(struct sched *sched, struct tenant *tenant)
{
	struct job_class *class;
	struct job *job = NULL;

	while ((class = heap_first(&tenant->open))) {
		job = class_first(sched, class);
		if (job && has_a_chance(sched, class))
			break;
		heap_remove(&tenant->open, class); /* others took its jobs, or its chance */
	}
	const struct model *model = model_first(tenant);
	if (!class && !model) {
		order_offer(&sched->pass.order, tenant, NULL);
		return;
	}
	struct amounts amounts =
	    model ? replica_amounts(sched, model) : job_amounts(sched, job, class->shape->tasks);
	order_offer(&sched->pass.order, tenant, &amounts);
}

static void open_class(struct sched *sched, struct job_class *class)
{
	struct tenant *tenant = class->tenant;

	if (!tenant->open.before)
		tenant->open = HEAP(struct job_class, pass_place, class_before);
	class_first(sched, class);
	heap_push(&tenant->open, class);
}

/* After something was tried for the first job of the class that is first. */
static void next_class(struct sched *sched, struct tenant *tenant, struct job_class *class,
                       bool done)
{
	if (!done || !class_first(sched, class))
		heap_remove(&tenant->open, class);
	else
		heap_update(&tenant->open, class);
	offer(sched, tenant);
}

static void close_all(struct sched *sched)
{
	for (size_t i = 0; i < sched->tenants.count; i++)
		heap_clear(&sched->tenants.all[i]->open);
	replica_close(sched);
}

/* Serves the open classes in the order of fair share and priority; `serve` does
 * something for a job, or does not. */
static void serve_in_order(struct sched *sched, bool (*serve)(struct sched *, struct job *))
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
		struct job *job = class_first(sched, class);
		bool done = job && serve(sched, job);
		next_class(sched, tenant, class, done);
	}
	close_all(sched);
}

static bool serve_start(struct sched *sched, struct job *job)
{
	return shape_may_fit(sched, job->class->shape) && pass_try(sched, job);
}

/* Whether the shape fits as things are: tried for one of its jobs, and undone.
 * Tenants are compared by what they would do next, so what cannot be done must
 * not take part, no matter whether that was found out now or in an earlier pass. */
static bool shape_fits(struct sched *sched, struct shape *shape)
{
	if (!shape_may_fit(sched, shape))
		return false;
	struct search search = pass_search(sched, class_first(sched, shape->classes[0]));
	search.ignore_promises = true;
	search.any = shape->tasks == 1; /* how a gang is laid out decides whether it fits */
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
		for (size_t c = 0; c < shape->class_count; c++)
			open_class(sched, shape->classes[c]);
	}
	replica_open(sched, REPLICA_FIT);
	serve_in_order(sched, serve_start);
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

static bool serve_evict(struct sched *sched, struct job *job)
{
	return room_make(sched, job, ROOM_EVICT);
}

static bool serve_move(struct sched *sched, struct job *job)
{
	return room_make(sched, job, ROOM_CONSOLIDATE);
}

static bool serve_reclaim(struct sched *sched, struct job *job)
{
	return room_make(sched, job, ROOM_RECLAIM);
}

static bool serve_preempt(struct sched *sched, struct job *job)
{
	return room_make(sched, job, ROOM_PREEMPT);
}

/* Opens the class, but of several that ask for the same only the one whose turn
 * is first: if there is no room for that one, there is none for the others. */
static void open_best(struct sched *sched, struct job_class *class, enum room_kind kind)
{
	struct job_class **best = &class->shape->opened[class->preemptible];

	if (kind == ROOM_PREEMPT) { /* whom it may take from depends on its priority */
		open_class(sched, class);
		return;
	}
	class_first(sched, class);
	if (*best && (*best)->tenant == class->tenant && heap_has(&class->tenant->open, *best)) {
		if (!class_before(class, *best))
			return;
		heap_remove(&class->tenant->open, *best);
	}
	open_class(sched, class);
	*best = class;
}

/* What pauses leaves alone what is no easier, so it is noted before others are opened. */
static void note_pauses(struct sched *sched, struct tenant *tenant, enum room_kind kind)
{
	for (size_t c = 0; c < tenant->class_count; c++)
		if (room_may_help(sched, tenant->classes[c], kind))
			room_note_pause(sched, tenant->classes[c], kind);
}

static void make_room(struct sched *sched, enum room_kind kind,
                      bool (*serve)(struct sched *, struct job *))
{
	if (!room_begin(sched, kind))
		return;
	for (size_t i = 0; i < sched->tenants.count; i++) {
		struct tenant *tenant = sched->tenants.all[i];
		if (tenant->class_count == 0 || !room_may_help_tenant(sched, tenant, kind))
			continue;
		if (sched->backoffs.by_id.count > 0)
			note_pauses(sched, tenant, kind);
		for (size_t c = 0; c < tenant->class_count; c++)
			if (room_may_help(sched, tenant->classes[c], kind) &&
			    !room_is_hopeless(sched, tenant->classes[c], kind))
				open_best(sched, tenant->classes[c], kind);
	}
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

static bool claims_are_sound(const struct sched *sched, const struct job *job)
{
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
}

void pass_run(struct sched *sched, int64_t units)
{
	struct pass *pass = &sched->pass;
	uint64_t state;
	int rounds = 0;

	pass->units = units;
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
		if (pass->units > 0)
			promise_pass(sched);
	} while (pass->state != state && pass->units > 0 && ++rounds < ROUNDS_MAX);
	if (pass->units <= 0 || pass->state != state)
		effects_more(sched->effects);
}

void pass_free(struct pass *pass)
{
	order_free(&pass->order);
	free(pass->fair);
}
