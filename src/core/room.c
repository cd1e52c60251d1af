/* room.c - making room: consolidate, reclaim, preempt */
#include "core/room.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/fairshare.h"
#include "core/state.h"

#define CONFIDENT 500            /* thousandths: an expected end that is waited for */
#define WAIT_SLACK_MS 30000      /* how late an awaited end may be */
#define VICTIM_ROWS 64           /* victims that one decision shows */

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

bool room_may_help(struct sched *sched, struct job_class *class, enum room_kind kind)
{
	const struct queue_entry *entry = queue_first(&class->queue, sched_now(sched));
	const struct job *job = (const struct job *)(const void *)((const char *)entry -
	                                                           offsetof(struct job, entry));
	const struct rank_entry *victim;

	if (class->room_failed[kind] == sched->pass.state &&
	    sched_now(sched) < class->room_retry_ms[kind])
		return false;
	if (backoff_pauses(sched, search_id(class, kind)))
		return false;
	if (is_waiting_instead(sched, job))
		return false;
	struct amounts amounts = job_amounts(sched, job, class->shape->tasks);
	switch (kind) {
	case ROOM_CONSOLIDATE:
		return class->preemptible && amounts.of[AMOUNT_GPU] <= sched->room.free_gpu &&
		       (!sched->room.entitled || fairshare_within(class->tenant, NULL, &amounts));
	case ROOM_RECLAIM:
		return fairshare_within(class->tenant, NULL, &amounts);
	default:
		victim = ranktree_first(&class->tenant->victims);
		return victim && victim->major < class->priority;
	}
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
		count += is_released(victim->job->tasks[i].reservation) &&
		         !victim->job->tasks[i].claim;
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
	struct shape shape = { .request = job->request, .tasks = tasks, .filter = job->filter,
		               .closeness = (enum closeness)job->r.closeness,
		               .closeness_required = job->r.closeness_required };
	struct search search = { .job = job, .shape = &shape, .view = VIEW_LATER,
		                 .until_ms = INT64_MAX, .moving = true };

	return tasks > 0 && victim_may_move(sched, job) &&
	       place_job(sched, &search, tasks);
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
static bool attempt(struct sched *sched, struct search *search, enum room_kind kind)
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

static void choose(struct room *room, size_t victim)
{
	array_reserve(room->chosen, room->chosen_capacity, room->chosen_count + 1);
	room->chosen[room->chosen_count++] = victim;
}

/* All victims so far that have something on the node, in their order. */
static void choose_on_node(struct room *room, const struct node *node)
{
	room->chosen_count = 0;
	for (int32_t at = (int32_t)node->mark_list; at >= 0; at = room->links[at].next)
		choose(room, room->links[at].victim);
	for (size_t i = 0, j = room->chosen_count; i + 1 < j; i++, j--) {
		size_t swap = room->chosen[i];
		room->chosen[i] = room->chosen[j - 1];
		room->chosen[j - 1] = swap;
	}
}

static void choose_all(struct room *room)
{
	room->chosen_count = 0;
	for (size_t i = 0; i < room->count; i++)
		choose(room, i);
}

static int64_t node_free_gpu(const struct sched *sched, const struct node *node)
{
	int64_t sum = 0;

	for (int i = 0; i < node->gpu_count; i++) {
		const struct gpu *gpu = node->gpus[i];
		int64_t usable = gpu_usable_mib(gpu), free_mib = gpu_free_later(gpu);
		if (gpu_is_open(gpu, &sched->config) && usable > 0)
			sum += (max64(free_mib, 0) * WHOLE_GPU + usable - 1) / usable;
	}
	return sum;
}

/* Notes that the victim has something on the node; what that adds up to there. */
static void link_to_node(struct room *room, struct node *node, const struct sched *sched,
                         size_t victim, int64_t share)
{
	if (node->mark != room->mark) {
		node->mark = room->mark;
		node->mark_list = -1;
		node->mark_amount = node_free_gpu(sched, node);
	}
	node->mark_amount += share;
	if (node->mark_list >= 0 && room->links[node->mark_list].victim == victim)
		return;
	array_reserve(room->links, room->link_capacity, room->link_count + 1);
	room->links[room->link_count] = (struct victim_link){ victim, (int32_t)node->mark_list };
	node->mark_list = (int64_t)room->link_count++;
}

static int64_t share_of(const struct reservation *reservation)
{
	int64_t share = 0;

	for (int i = 0; i < reservation->part_count; i++)
		share += reservation->parts[i].share;
	return share;
}

static bool is_of_victim(const struct victim *victim, int task)
{
	const struct reservation *reservation = victim->job->tasks[task].reservation;

	return reservation && reservation->phase != PHASE_RELEASING &&
	       (victim->task < 0 || victim->task == task);
}

/* A job of one task: tries the nodes that the newest victim is on, with all
 * victims named so far that are on them. */
static bool try_nodes(struct sched *sched, struct search *search, enum room_kind kind,
                      size_t newest)
{
	struct room *room = &sched->room;
	struct victim victim = room->victims[newest];
	int64_t need = job_amounts(sched, search->job, 1).of[AMOUNT_GPU];
	const struct node *bound = search->only;

	for (int i = 0; i < victim.job->r.tasks; i++)
		if (is_of_victim(&victim, i))
			link_to_node(room, victim.job->tasks[i].reservation->node, sched, newest,
			             share_of(victim.job->tasks[i].reservation));
	for (int i = 0; i < victim.job->r.tasks; i++) {
		if (!is_of_victim(&victim, i))
			continue;
		struct node *node = victim.job->tasks[i].reservation->node;
		if (node->mark_amount < need || (bound && node != bound))
			continue;
		choose_on_node(room, node);
		search->only = node;
		bool found = attempt(sched, search, kind);
		search->only = bound;
		if (found)
			return true;
	}
	return false;
}

/* A gang, or a job that a limit stands in the way of: all victims so far, tried
 * at growing intervals. */
static bool try_all(struct sched *sched, struct search *search, enum room_kind kind,
                    size_t *next_try)
{
	struct room *room = &sched->room;

	if (room->count < *next_try)
		return false;
	*next_try = room->count + 1 + room->count / 8;
	choose_all(room);
	return attempt(sched, search, kind);
}

static bool find_victims(struct sched *sched, struct search *search, enum room_kind kind)
{
	struct room *room = &sched->room;
	struct job *job = search->job;
	struct amounts amounts = job_amounts(sched, job, search->shape->tasks);
	struct bound bound;
	bool limited = !tenant_may_hold(job->tenant, &amounts, job->r.preemptible,
	                                sched_now(sched), &bound);
	bool together = limited || search->shape->tasks > 1 || search->shape->split_gpus > 0;
	size_t next_try = 1;

	victims_begin(sched, job, kind);
	if (limited) /* a budget is renewed by time alone */
		room->retry_ms = sched_now(sched);
	while (victims_next(sched, job, kind)) {
		if (together ? try_all(sched, search, kind, &next_try)
		             : try_nodes(sched, search, kind, room->count - 1))
			return true;
	}
	if (!together || room->count == 0)
		return false;
	choose_all(room);
	return attempt(sched, search, kind);
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
		compared.known = compared.known && end_ms != INT64_MAX &&
		                 victim->job->s.confidence >= CONFIDENT;
		if (compared.known)
			compared.until_ms = max64(compared.until_ms, end_ms);
	}
	compared.known = compared.known && losers > 0;
	struct amounts amounts = job_amounts(sched, job, job->class->shape->tasks);
	if (compared.known)
		compared.wait_gpu_ms = muldiv_down(amounts.of[AMOUNT_GPU], compared.until_ms - now_ms, 1);
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
	promise_instead(sched, job, compared->until_ms, compared->wait_gpu_ms, compared->lost_gpu_ms,
	                rows, count);
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
	struct decision_record decision = { .kind = DECISION_EVICTED, .job_id = job->r.id,
		                            .tenant_id = job->r.tenant_id,
		                            .for_job_id = winner->r.id,
		                            .lost_gpu_ms = job_work_at_risk(job, sched_now(sched)) };

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
		.kind = kind == ROOM_RECLAIM ? DECISION_RECLAIM :
		        kind == ROOM_PREEMPT ? DECISION_PREEMPT : DECISION_MOVE,
		.wait_gpu_ms = compared->wait_gpu_ms, .lost_gpu_ms = compared->lost_gpu_ms,
		.victims = { rows, victim_rows(sched, rows) },
	};

	pass_commit(sched, search, &decision);
	for (size_t i = 0; i < room->chosen_count; i++)
		if (!room->victims[room->chosen[i]].kept)
			evict(sched, &room->victims[room->chosen[i]], search->job);
}

bool room_make(struct sched *sched, struct job *job, enum room_kind kind)
{
	struct search search = pass_search(sched, job);
	struct job_class *class = job->class;
	uint64_t state = sched->pass.state;

	if (!room_may_help(sched, class, kind))
		return false;
	search.ignore_promises = true;
	if (!find_victims(sched, &search, kind)) {
		if (!backoff_begin(sched, search_id(class, kind), (int64_t)sched->room.count)) {
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
}
