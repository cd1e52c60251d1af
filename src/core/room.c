/* room.c - making room: consolidate, reclaim, preempt */
#include "core/room.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/fairshare.h"
#include "core/state.h"

#define CONFIDENT 500       /* thousandths: an expected end that is waited for */
#define WAIT_SLACK_MS 30000 /* how late an awaited end may be */
#define VICTIM_ROWS 64      /* victims that one decision shows */

/* Thousandths of GPUs that are free in all, in parts however small. */
static int64_t free_gpus(const struct sched *sched)
{
	int64_t sum = 0;

	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		const struct node *node = sched->cluster.nodes[i];
		for (int g = 0; g < node->gpu_count; g++) {
			const struct gpu *gpu = node->gpus[g];
			int64_t usable = gpu_usable_mib(gpu), free_mib = gpu_free_later(gpu);
			if (gpu_is_open(gpu, &sched->config) && usable > 0 && free_mib > 0)
				sum += (free_mib * WHOLE_GPU + usable - 1) / usable;
		}
	}
	return sum;
}

bool room_begin(struct sched *sched, enum room_kind kind)
{
	sched->room.round++;
	for (size_t i = 0; i < sched->tenants.count; i++)
		sched->tenants.all[i]->hopeless_count = 0;
	if (kind == ROOM_EVICT)
		return sched->cold_slots.by_cost.count > 0;
	if (kind != ROOM_CONSOLIDATE)
		return sched->config.enable_preemption && sched->victims > 0;
	if (!sched->config.enable_consolidation ||
	    (sched->config.move_any_job ? sched->victims : sched->movable_victims) == 0)
		return false;
	sched->room.free_gpu = free_gpus(sched);
	return sched->room.free_gpu > 0;
}

bool room_may_help_tenant(struct sched *sched, struct tenant *tenant, enum room_kind kind)
{
	(void)sched;
	switch (kind) {
	case ROOM_RECLAIM:
		return tenant->r.can_preempt_others && fairshare_within(tenant, NULL, NULL);
	case ROOM_PREEMPT:
		return tenant->r.can_preempt_others && tenant->victims.count > 0;
	default:
		return true;
	}
}

/* Waiting for victims to end was found to be better; not for ever. */
static bool is_waiting_instead(const struct sched *sched, const struct job *job)
{
	return job->promise && job->promise->r.instead &&
	       sched_now(sched) <= job->promise->r.start_ms + WAIT_SLACK_MS;
}

static int64_t search_id(const struct job_class *class, enum room_kind kind)
{
	return (int64_t)(hash_combine(class->key, kind) >> 1);
}

/* What an attempt for the class asks for. */
static const struct amounts *asked_by(struct sched *sched, struct job_class *class)
{
	struct shape *shape = class->shape;
	int64_t smallest = sched_totals(sched)->smallest_mib + 1;

	if (shape->asked_mib != smallest) {
		struct queue_entry *entry = queue_first(&class->queue, sched_now(sched));
		const struct job *job =
		    (const struct job *)(void *)((char *)entry - offsetof(struct job, entry));
		shape->asked = job_amounts(sched, job, shape->tasks);
		shape->asked_mib = smallest;
	}
	return &shape->asked;
}

bool room_may_help(struct sched *sched, struct job_class *class, enum room_kind kind)
{
	const struct rank_entry *victim;

	if (kind == ROOM_PREEMPT) {
		victim = ranktree_first(&class->tenant->victims);
		return victim && victim->major < class->priority;
	}
	if (kind == ROOM_CONSOLIDATE && !class->preemptible)
		return false;
	const struct amounts *asked = asked_by(sched, class);
	if (kind == ROOM_EVICT)
		return asked->of[AMOUNT_GPU] > 0;
	if (kind == ROOM_CONSOLIDATE && asked->of[AMOUNT_GPU] > sched->room.free_gpu)
		return false;
	return (kind == ROOM_CONSOLIDATE && !sched->room.entitled) ||
	       fairshare_within(class->tenant, NULL, asked);
}

static void release_victim(struct sched *sched, const struct victim *victim)
{
	for (int i = 0; i < victim->job->r.tasks; i++) {
		struct reservation *reservation = victim->job->tasks[i].reservation;
		if (reservation && reservation->phase != PHASE_RELEASING &&
		    (victim->task < 0 || victim->task == i))
			plan_release(sched, reservation);
	}
}

/* Whether the plan at hand released this reservation. */
static bool is_released(const struct reservation *reservation)
{
	if (!reservation || reservation->phase != PHASE_RELEASING)
		return false;
	enum task_state state = reservation->job->tasks[reservation->task].state;
	return state == TASK_PLACED || state == TASK_RUNNING;
}

/* Lets the victim stay where it is, if nobody counts on its room. */
static bool keep_victim(struct sched *sched, const struct victim *victim)
{
	size_t mark = plan_mark(sched);

	for (int i = 0; i < victim->job->r.tasks; i++) {
		struct reservation *reservation = victim->job->tasks[i].reservation;
		if (!is_released(reservation) || (victim->task >= 0 && victim->task != i))
			continue;
		if (!plan_keep(sched, reservation)) {
			plan_rollback(sched, mark);
			return false;
		}
	}
	return true;
}

static int64_t released_tasks(const struct victim *victim)
{
	int64_t count = 0;

	for (int i = 0; i < victim->job->r.tasks; i++)
		count +=
		    is_released(victim->job->tasks[i].reservation) && !victim->job->tasks[i].claim;
	return count;
}

/* Whether all of the victim's job has to go, so that a task of it cannot stay. */
static bool rest_goes(const struct room *room, const struct victim *victim)
{
	for (size_t i = 0; i < room->chosen_count && victim->task >= 0; i++) {
		const struct victim *other = &room->victims[room->chosen[i]];
		if (other->job == victim->job && other->task < 0 && !other->kept)
			return true;
	}
	return false;
}

/* Finds the victim another place, which it will go to when it has stopped here.
 * A task that was named by itself may have gone along with the rest of its job. */
static bool move_victim(struct sched *sched, const struct victim *victim)
{
	struct job *job = victim->job;
	if (rest_goes(&sched->room, victim))
		return job->tasks[victim->task].claim != NULL;
	int64_t tasks = victim->task >= 0 ? !job->r.closeness_required : released_tasks(victim);
	struct shape shape = { .request = job->request,
		               .tasks = tasks,
		               .filter = job->filter,
		               .closeness = (enum closeness)job->r.closeness,
		               .closeness_required = job->r.closeness_required };
	struct search search = { .job = job,
		                 .shape = &shape,
		                 .view = VIEW_LATER,
		                 .until_ms = INT64_MAX,
		                 .moving = true };

	return tasks > 0 && victim_may_move(sched, job) && place_job(sched, &search, tasks);
}

/* Everyone who need not go stays, the last named first; others move if they may. */
static bool spare(struct sched *sched, enum room_kind kind)
{
	struct room *room = &sched->room;

	for (size_t i = room->chosen_count; i-- > 0;) {
		struct victim *victim = &room->victims[room->chosen[i]];
		victim->kept = !rest_goes(room, victim) && keep_victim(sched, victim);
	}
	for (size_t i = room->chosen_count; i-- > 0;) {
		struct victim *victim = &room->victims[room->chosen[i]];
		victim->moved = !victim->kept && move_victim(sched, victim);
		if (kind == ROOM_CONSOLIDATE && !victim->kept && !victim->moved)
			return false;
	}
	return true;
}

static bool is_lost(const struct victim *victim)
{
	return !victim->kept && !victim->moved;
}

static bool is_below(const struct tenant *tenant, const struct tenant *above)
{
	while (tenant && tenant != above)
		tenant = tenant->parent;
	return tenant != NULL;
}

/* What the tenants below `giver` lose from the i-th chosen victim on; negative,
 * so that 'less' of it is what they had before. */
static struct amounts had_before(const struct room *room, const struct tenant *giver, size_t from)
{
	struct amounts sum = { { 0 } };

	for (size_t i = from; i < room->chosen_count; i++) {
		const struct victim *victim = &room->victims[room->chosen[i]];
		if (is_lost(victim) && is_below(victim->job->tenant, giver))
			amounts_subtract(&sum, &victim->amounts);
	}
	return sum;
}

/* Reclaiming is just if, one after the other, everyone who loses something had
 * more than its share, or more than its quota while the taker is within its
 * own; and if the taker and all above it stay within their shares. */
static bool is_just(const struct sched *sched, const struct job *job)
{
	const struct room *room = &sched->room;

	for (size_t i = 0; i < room->chosen_count; i++) {
		const struct victim *victim = &room->victims[room->chosen[i]];
		if (!is_lost(victim))
			continue;
		struct parting parting = tenants_part(job->tenant, victim->job->tenant);
		struct amounts before = had_before(room, parting.giver, i);
		if (!fairshare_over_allocatable(parting.giver, &before) &&
		    !(fairshare_within_quota(parting.taker, NULL, NULL) &&
		      fairshare_over_quota(parting.giver, &before)))
			return false;
	}
	if (!fairshare_within(job->tenant, NULL, NULL))
		return false;
	for (size_t i = 0; i < room->chosen_count; i++) {
		const struct victim *victim = &room->victims[room->chosen[i]];
		if (!is_lost(victim))
			continue;
		struct parting parting = tenants_part(job->tenant, victim->job->tenant);
		if (!fairshare_within(parting.taker, NULL, NULL) &&
		    !fairshare_less_over(parting.taker, parting.giver))
			return false;
	}
	return true;
}

/* One attempt, in a plan that stays open if it succeeds: the chosen victims go,
 * the job comes, and who need not go after all stays. */
bool room_attempt(struct sched *sched, struct search *search, enum room_kind kind)
{
	struct room *room = &sched->room;
	struct job *job = search->job;
	struct amounts amounts = job_amounts(sched, job, search->shape->tasks);
	struct bound bound;

	plan_begin(sched);
	for (size_t i = 0; i < room->chosen_count; i++)
		release_victim(sched, &room->victims[room->chosen[i]]);
	if (tenant_may_hold(job->tenant, &amounts, job->r.preemptible, sched_now(sched), &bound) &&
	    pass_place(sched, search) && spare(sched, kind) &&
	    (kind != ROOM_RECLAIM || is_just(sched, job)))
		return true;
	plan_abandon(sched);
	return false;
}

/* What it would cost to wait for the lost victims to end, and what they would
 * lose: thousandths of GPUs x ms. */
struct comparison {
	int64_t wait_gpu_ms, lost_gpu_ms, until_ms;
	bool known; /* all are expected to end, with some confidence */
};

static struct comparison compare(const struct sched *sched, const struct job *job)
{
	const struct room *room = &sched->room;
	struct comparison compared = { .known = true };
	int64_t now_ms = sched_now(sched), losers = 0;

	for (size_t i = 0; i < room->chosen_count; i++) {
		const struct victim *victim = &room->victims[room->chosen[i]];
		if (!is_lost(victim))
			continue;
		losers++;
		int64_t end_ms = job_expected_end(victim->job, now_ms);
		compared.lost_gpu_ms += job_work_at_risk(victim->job, now_ms);
		compared.known =
		    compared.known && end_ms != INT64_MAX && victim->job->s.confidence >= CONFIDENT;
		if (compared.known)
			compared.until_ms = max64(compared.until_ms, end_ms);
	}
	compared.known = compared.known && losers > 0;
	struct amounts amounts = job_amounts(sched, job, job->class->shape->tasks);
	if (compared.known)
		compared.wait_gpu_ms =
		    muldiv_down(amounts.of[AMOUNT_GPU], compared.until_ms - now_ms, 1);
	return compared;
}

/* The GPUs of the victims that are waited for. */
static int awaited_parts(const struct sched *sched, int64_t *rows)
{
	const struct room *room = &sched->room;
	int count = 0;

	for (size_t i = 0; i < room->chosen_count; i++) {
		const struct victim *victim = &room->victims[room->chosen[i]];
		for (int t = 0; t < victim->job->r.tasks && is_lost(victim); t++) {
			const struct reservation *reservation = victim->job->tasks[t].reservation;
			for (int p = 0; reservation && p < reservation->part_count; p++) {
				if (count == VICTIM_ROWS)
					return count;
				int64_t *row = rows + (size_t)count++ * PROMISE_WIDTH;
				row[0] = 0;
				row[1] = reservation->parts[p].gpu->r.id;
				row[2] = reservation->parts[p].mib;
				row[3] = reservation->parts[p].whole;
			}
		}
	}
	return count;
}

/* If waiting is cheaper than preempting, and was not tried before. */
static bool wait_instead(struct sched *sched, struct job *job, const struct comparison *compared)
{
	int64_t rows[VICTIM_ROWS * PROMISE_WIDTH];

	if (!compared->known || compared->wait_gpu_ms >= compared->lost_gpu_ms ||
	    (job->promise && job->promise->r.instead))
		return false;
	int count = awaited_parts(sched, rows);
	plan_abandon(sched);
	promise_instead(sched, job, compared->until_ms, compared->wait_gpu_ms,
	                compared->lost_gpu_ms, rows, count);
	return true;
}

static int64_t victim_rows(const struct sched *sched, int64_t *rows)
{
	const struct room *room = &sched->room;
	int64_t count = 0;

	for (size_t i = 0; i < room->chosen_count && count < VICTIM_ROWS; i++) {
		const struct victim *victim = &room->victims[room->chosen[i]];
		if (victim->kept)
			continue;
		int64_t *row = rows + count++ * VICTIM_WIDTH;
		row[0] = victim->job->r.id;
		row[1] = victim->task;
		row[2] = victim->moved;
		row[3] = job_work_at_risk(victim->job, sched_now(sched));
	}
	return count;
}

/* Orders and states of a victim that goes, or goes elsewhere. */
static void evict(struct sched *sched, const struct victim *victim, const struct job *winner)
{
	struct job *job = victim->job;
	struct decision_record decision = { .kind = DECISION_EVICTED,
		                            .job_id = job->r.id,
		                            .tenant_id = job->r.tenant_id,
		                            .for_job_id = winner->r.id,
		                            .lost_gpu_ms =
		                                job_work_at_risk(job, sched_now(sched)) };

	for (int i = 0; i < job->r.tasks; i++) {
		struct task *task = &job->tasks[i];
		if (!is_released(task->reservation) || (victim->task >= 0 && victim->task != i))
			continue;
		decision.tasks++;
		job_evicted(sched, task->reservation);
		if (task->claim)
			job_claimed(sched, task->claim);
	}
	sched_decide(sched, &decision);
	sched->pass.units--;
	if (victim->task < 0)
		job_interrupted(sched, job);
	else
		job_settle(sched, job);
}

static void commit(struct sched *sched, struct search *search, enum room_kind kind,
                   const struct comparison *compared)
{
	struct room *room = &sched->room;
	int64_t rows[VICTIM_ROWS * VICTIM_WIDTH];
	struct decision_record decision = {
		.kind = kind == ROOM_RECLAIM   ? DECISION_RECLAIM
		        : kind == ROOM_PREEMPT ? DECISION_PREEMPT
		                               : DECISION_MOVE,
		.wait_gpu_ms = compared->wait_gpu_ms,
		.lost_gpu_ms = compared->lost_gpu_ms,
		.victims = { rows, victim_rows(sched, rows) },
	};

	pass_commit(sched, search, &decision);
	for (size_t i = 0; i < room->chosen_count; i++)
		if (!room->victims[room->chosen[i]].kept)
			evict(sched, &room->victims[room->chosen[i]], search->job);
}

/* Whether `class` asks for at least what `other` asked for, in the same way, and
 * may take from no more than that one. Both are of one tenant. */
static bool is_no_easier(const struct job_class *class, const struct job_class *other,
                         enum room_kind kind)
{
	const struct shape *a = class->shape, *b = other->shape;
	const struct request *x = &a->request, *y = &b->request;

	if (class->preemptible != other->preemptible ||
	    (kind == ROOM_PREEMPT && class->priority > other->priority))
		return false;
	if (a == b)
		return true;
	return a->filter == b->filter && a->closeness == b->closeness &&
	       a->closeness_required >= b->closeness_required && x->gpu_kind == y->gpu_kind &&
	       x->gpu_kind != GPU_UNEVEN && x->gpu_count >= y->gpu_count &&
	       x->fraction >= y->fraction && x->memory_mib >= y->memory_mib &&
	       x->cpu_milli >= y->cpu_milli && x->host_bytes >= y->host_bytes &&
	       a->tasks >= b->tasks && a->split_gpus >= b->split_gpus;
}

bool room_is_hopeless(const struct sched *sched, const struct job_class *class, enum room_kind kind)
{
	const struct tenant *tenant = class->tenant;
	const struct shape *shape = class->shape;
	int preemptible = class->preemptible;

	if (shape->hopeless[preemptible].round == sched->room.round &&
	    shape->hopeless[preemptible].tenant == tenant &&
	    (kind != ROOM_PREEMPT || class->priority <= shape->hopeless[preemptible].priority))
		return true;
	for (size_t i = 0; i < tenant->hopeless_count; i++)
		if (is_no_easier(class, tenant->hopeless[i], kind))
			return true;
	return false;
}

static void note_hopeless(const struct sched *sched, struct job_class *class, enum room_kind kind)
{
	struct tenant *tenant = class->tenant;
	struct shape *shape = class->shape;

	if (room_is_hopeless(sched, class, kind))
		return;
	array_reserve(tenant->hopeless, tenant->hopeless_capacity, tenant->hopeless_count + 1);
	tenant->hopeless[tenant->hopeless_count++] = class;
	shape->hopeless[class->preemptible].tenant = tenant;
	shape->hopeless[class->preemptible].round = sched->room.round;
	shape->hopeless[class->preemptible].priority = class->priority;
}

/* What failed in this round, or in this state, is not tried again, nor is what
 * is no easier. */
static bool failed_before(const struct sched *sched, struct job_class *class, enum room_kind kind)
{
	if (room_is_hopeless(sched, class, kind))
		return true;
	if (class->room_failed[kind] != sched->pass.state ||
	    sched_now(sched) >= class->room_retry_ms[kind])
		return false;
	note_hopeless(sched, class, kind);
	return true;
}

void room_note_pause(const struct sched *sched, struct job_class *class, enum room_kind kind)
{
	if (backoff_pauses(sched, search_id(class, kind)))
		note_hopeless(sched, class, kind);
}

bool room_make(struct sched *sched, struct job *job, enum room_kind kind)
{
	struct search search = pass_search(sched, job);
	struct job_class *class = job->class;
	uint64_t state = sched->pass.state;

	if (!room_may_help(sched, class, kind) || is_waiting_instead(sched, job) ||
	    failed_before(sched, class, kind))
		return false;
	search.ignore_promises = true;
	if (kind == ROOM_EVICT && evict_for_job(sched, &search))
		return true;
	if (kind == ROOM_EVICT || !room_find(sched, &search, kind)) {
		size_t looked_at =
		    kind == ROOM_EVICT ? sched->cold_slots.by_cost.count : sched->room.count;
		note_hopeless(sched, class, kind);
		if (!backoff_begin(sched, search_id(class, kind), (int64_t)looked_at)) {
			class->room_failed[kind] = state;
			class->room_retry_ms[kind] = sched->room.retry_ms;
		}
		return false;
	}
	struct comparison compared = compare(sched, job);
	if (kind != ROOM_CONSOLIDATE && wait_instead(sched, job, &compared))
		return false;
	commit(sched, &search, kind, &compared);
	return true;
}

void room_free(struct room *room)
{
	order_free(&room->order);
	free(room->cursors);
	free(room->victims);
	free(room->links);
	free(room->chosen);
	free(room->nodes);
}
