/* room.c - making room: consolidate, reclaim, preempt, for jobs and slots */
#include "core/room/room.h"

#include <stdlib.h>
#include <string.h>

#include "core/queue/suspend.h"
#include "core/room/commit.h"
#include "core/state.h"
#include "core/tenant/fairshare.h"

#define CONFIDENT 500                  /* thousandths: an expected end that is waited for */
#define START_MS 30000                 /* that the processes of the preemptor take to start */
#define SPARE_CHANCE (CHANCE_ONE / 32) /* to end soon, of a victim that others are preferred to */
#define SPARE_ROUNDS 8                 /* searches for others */
#define VICTIM_ROWS 64                 /* victims that one decision shows */
/* What attempts to make room cost, in parts of a unit of a pass: one, a victim that it
 * releases, and the nodes where memory is coming back, which are looked at as sets. */
#define WORK_PER_ATTEMPT 48
#define WORK_PER_VICTIM 4
#define NODES_PER_WORK 8

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
	INVARIANT(!sched->plan.open && sched->index.built);
	INVARIANT(kind < ROOM_SHARE && !sched->plan.open);
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
	if (tenant->group_count == 0)
		return false;
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
	       sched_now(sched) <= job->promise->r.start_ms + ROOM_WAIT_SLACK_MS;
}

/* What an attempt for the group asks for. */
static const struct amounts *asked_by(struct sched *sched, struct job_group *group)
{
	struct shape *shape = group->shape;
	int64_t smallest = sched_totals(sched)->smallest_mib + 1;

	if (shape->asked_mib != smallest) {
		const struct job *job = class_first(group->classes[0], sched_now(sched));
		shape->asked = job_amounts(sched, job, shape->tasks);
		shape->asked_mib = smallest;
	}
	return &shape->asked;
}

int64_t room_lowest_priority(const struct tenant *tenant)
{
	const struct rank_entry *first = ranktree_first(&tenant->victims);

	return first ? first->major : INT64_MAX;
}

bool room_may_help(struct sched *sched, struct job_group *group, enum room_kind kind)
{
	if (room_known_full(sched, group, group->highest, kind))
		return false;
	if ((kind == ROOM_PREEMPT || kind == ROOM_RECLAIM) && shape_never_preempts(group->shape))
		return false;
	if (kind == ROOM_PREEMPT)
		return group->highest > room_lowest_priority(group->tenant);
	if (kind == ROOM_CONSOLIDATE && !group->preemptible)
		return false;
	const struct amounts *asked = asked_by(sched, group);
	if (kind == ROOM_EVICT)
		return asked->of[AMOUNT_GPU] > 0;
	if (kind == ROOM_CONSOLIDATE && asked->of[AMOUNT_GPU] > sched->room.free_gpu)
		return false;
	return (kind == ROOM_CONSOLIDATE && !sched->room.entitled) ||
	       fairshare_within(group->tenant, NULL, asked);
}

/* Whether suspending costs less than what would be lost. */
static bool suspend_is_better(struct sched *sched, const struct victim *victim, enum room_kind kind)
{
	return kind != ROOM_CONSOLIDATE && victim->task < 0 &&
	       suspend_permitted(sched, victim->job, false, NULL) &&
	       suspend_cost(victim->job) < job_work_at_risk(victim->job, sched_now(sched));
}

static void release_victim(struct sched *sched, struct victim *victim, enum room_kind kind,
                           bool may_suspend)
{
	victim->suspended = may_suspend && suspend_is_better(sched, victim, kind) &&
	                    plan_suspend(&sched->ledger, suspend_reservation(victim->job), NULL);
	if (victim->suspended)
		return;
	for (int i = 0; i < victim->job->r.tasks; i++) {
		struct reservation *reservation = victim->job->tasks[i].reservation;
		if (reservation && reservation->phase != PHASE_RELEASING &&
		    (victim->task < 0 || victim->task == i))
			plan_release(&sched->ledger, reservation);
	}
}

/* Whether the plan at hand released this reservation. */
static bool is_released(const struct reservation *reservation)
{
	if (!reservation ||
	    (reservation->phase != PHASE_RELEASING && reservation->phase != PHASE_SUSPENDING))
		return false;
	enum task_state state = reservation->job->tasks[reservation->task].state;
	return state == TASK_PLACED || state == TASK_RUNNING;
}

/* Lets the victim stay where it is, if nobody counts on its room. */
static bool keep_victim(struct sched *sched, const struct victim *victim)
{
	size_t mark = plan_mark(&sched->ledger);

	INVARIANT(victim->task < victim->job->r.tasks);
	for (int i = 0; i < victim->job->r.tasks; i++) {
		struct reservation *reservation = victim->job->tasks[i].reservation;
		if (!is_released(reservation) || (victim->task >= 0 && victim->task != i))
			continue;
		if (!plan_keep(&sched->ledger, reservation)) {
			plan_rollback(&sched->ledger, mark);
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

	return tasks > 0 && victim_may_move(sched, job) &&
	       place_job(&sched->placement, &search, tasks);
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
		victim->moved = !victim->kept && !victim->suspended && move_victim(sched, victim);
		if (kind == ROOM_CONSOLIDATE && !victim->kept && !victim->moved)
			return false;
	}
	return true;
}

static bool is_lost(const struct victim *victim)
{
	return !victim->kept && !victim->moved;
}

/* What the tenants below `giver` lose from the i-th chosen victim on; negative,
 * so that 'less' of it is what they had before. */
static struct amounts had_before(const struct room *room, const struct tenant *giver, size_t from)
{
	struct amounts sum = { { 0 } };

	for (size_t i = from; i < room->chosen_count; i++) {
		const struct victim *victim = &room->victims[room->chosen[i]];
		if (is_lost(victim) && tenant_is_below(victim->job->tenant, giver))
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

	INVARIANT(sched->plan.open && job);
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

static bool room_try(struct sched *sched, struct search *search, enum room_kind kind,
                     bool may_suspend)
{
	bool suspended = false;
	struct room *room = &sched->room;
	struct amounts amounts = applicant_amounts(&sched->placement, search);
	struct bound bound;

	INVARIANT(room->chosen_count <= room->count);
	plan_begin(&sched->ledger);
	for (size_t i = 0; i < room->chosen_count; i++) {
		release_victim(sched, &room->victims[room->chosen[i]], kind, may_suspend);
		suspended = suspended || room->victims[room->chosen[i]].suspended;
	}
	room->work += WORK_PER_ATTEMPT + WORK_PER_VICTIM * (int64_t)room->chosen_count +
	              sched->index.releasing_count / NODES_PER_WORK;
	if ((search->model || applicant_may_hold(&sched->placement, search, &amounts, &bound)) &&
	    applicant_place(&sched->placement, search) && spare(sched, kind) &&
	    (kind != ROOM_RECLAIM || is_just(sched, search->job)))
		return true;
	plan_abandon(&sched->ledger);
	/* Who is suspended keeps host memory that the taker may need. */
	return suspended && room_try(sched, search, kind, false);
}

bool room_attempt(struct sched *sched, struct search *search, enum room_kind kind)
{
	return room_try(sched, search, kind, true);
}

/* What it would cost to wait for the lost victims to end, and what they would
 * lose: thousandths of GPUs x ms. */
struct comparison {
	int64_t wait_gpu_ms, lost_gpu_ms, until_ms;
	bool known; /* all are expected to end, with some confidence */
	bool soon;  /* all will probably have ended by the time that preempting takes */
};

bool room_ends_soon(struct sched *sched, struct job *job, int64_t chance)
{
	struct lifetime lifetime;

	INVARIANT(chance > 0 && chance <= CHANCE_ONE);
	if (job->s.started_ms == 0 || sched->config.grace_ms == 0 ||
	    !predict_lifetime(sched, job, &lifetime))
		return false;
	return lifetime_ends_within(&lifetime, predict_age(job, sched_now(sched)),
	                            sched->config.grace_ms + START_MS) >= chance;
}

/* What stopping the victim costs: what it has to do again, or the time it takes to suspend and
 * resume it. */
static int64_t victim_loss(const struct victim *victim, int64_t now_ms)
{
	return victim->suspended ? suspend_cost(victim->job)
	                         : job_work_at_risk(victim->job, now_ms);
}

static struct comparison room_compare(struct sched *sched, const struct search *search)
{
	const struct room *room = &sched->room;
	struct comparison compared = { .known = true, .soon = true };
	int64_t now_ms = sched_now(sched), losers = 0;

	for (size_t i = 0; i < room->chosen_count; i++) {
		const struct victim *victim = &room->victims[room->chosen[i]];
		if (!is_lost(victim))
			continue;
		losers++;
		int64_t end_ms = job_expected_end(victim->job, now_ms);
		bool soon = room_ends_soon(sched, victim->job, CHANCE_ONE / 2);
		if (soon)
			end_ms = min64(end_ms, now_ms + sched->config.grace_ms + START_MS);
		compared.lost_gpu_ms += victim_loss(victim, now_ms);
		compared.soon = compared.soon && soon;
		compared.known = compared.known && end_ms != INT64_MAX &&
		                 (soon || victim->job->s.confidence >= CONFIDENT);
		if (compared.known)
			compared.until_ms = max64(compared.until_ms, end_ms);
	}
	compared.known = compared.known && losers > 0;
	struct amounts amounts = applicant_amounts(&sched->placement, search);
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

/* Tells those whose end is waited for. */
static void decide_awaited(struct sched *sched, const struct job *waiter)
{
	const struct room *room = &sched->room;
	int64_t now_ms = sched_now(sched);

	for (size_t i = 0; i < room->chosen_count; i++) {
		const struct victim *victim = &room->victims[room->chosen[i]];
		if (!is_lost(victim))
			continue;
		sched_decide(sched, &(struct decision_record){
					.kind = DECISION_AWAITED,
					.job_id = victim->job->r.id,
					.tenant_id = victim->job->r.tenant_id,
					.tasks = victim->task >= 0 ? 1 : victim->job->r.tasks,
					.for_job_id = waiter->r.id,
					.until_ms = waiter->promise->r.start_ms,
					.lost_gpu_ms = victim_loss(victim, now_ms) });
	}
}

/* If waiting is cheaper than preempting, or takes no longer, and was not tried before. */
static bool wait_instead(struct sched *sched, struct job *job, const struct comparison *compared)
{
	int64_t rows[VICTIM_ROWS * PROMISE_WIDTH];

	if (!compared->known ||
	    (!compared->soon && compared->wait_gpu_ms >= compared->lost_gpu_ms) ||
	    (job->promise && job->promise->r.instead))
		return false;
	int count = awaited_parts(sched, rows);
	plan_abandon(&sched->ledger);
	promise_instead(sched, job, compared->until_ms, compared->wait_gpu_ms,
	                compared->lost_gpu_ms, rows, count);
	decide_awaited(sched, job);
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
		row[2] = victim->suspended ? VICTIM_SUSPENDED : victim->moved;
		row[3] = victim_loss(victim, sched_now(sched));
	}
	return count;
}

/* Orders and states of a victim that goes, or goes elsewhere. */
static void evict(struct sched *sched, const struct victim *victim, const struct search *winner,
                  enum room_kind kind)
{
	struct job *job = victim->job;
	struct decision_record decision = { .kind = victim->suspended ? DECISION_SUSPENDED
		                                                      : DECISION_EVICTED,
		                            .job_id = job->r.id,
		                            .tenant_id = job->r.tenant_id,
		                            .for_job_id = winner->job ? winner->job->r.id : 0,
		                            .for_model_id = winner->model ? winner->model->r.id : 0,
		                            .lost_gpu_ms = victim_loss(victim, sched_now(sched)) };

	for (int i = 0; i < job->r.tasks; i++) {
		struct task *task = &job->tasks[i];
		if (!is_released(task->reservation) || (victim->task >= 0 && victim->task != i))
			continue;
		decision.tasks++;
		if (victim->suspended)
			job_suspends(sched, task->reservation);
		else
			job_evicted(sched, task->reservation);
		if (task->claim)
			job_claimed(sched, task->claim);
	}
	sched_decide(sched, &decision);
	sched->pass.budget--;
	if (kind == ROOM_SHARE && !victim->moved)
		job->s.queued_ms = sched_now(sched); /* its turn has ended, and it waits for the
		                                      * next
		                                      */
	if (victim->task < 0 && !victim->suspended)
		job_interrupted(sched, job);
	else
		job_settle(sched, job);
}

static void room_store(struct sched *sched, struct search *search, enum room_kind kind,
                       const struct comparison *compared)
{
	struct room *room = &sched->room;
	int64_t rows[VICTIM_ROWS * VICTIM_WIDTH];

	INVARIANT(sched->plan.open && kind != ROOM_EVICT);
	struct decision_record decision = {
		.kind = kind == ROOM_RECLAIM   ? DECISION_RECLAIM
		        : kind == ROOM_PREEMPT ? DECISION_PREEMPT
		        : kind == ROOM_SHARE   ? DECISION_SHARE
		                               : DECISION_MOVE,
		.wait_gpu_ms = compared->wait_gpu_ms,
		.lost_gpu_ms = compared->lost_gpu_ms,
		.victims = { rows, victim_rows(sched, rows) },
	};

	applicant_commit(sched, search, &decision);
	for (size_t i = 0; i < room->chosen_count; i++)
		if (!room->victims[room->chosen[i]].kept)
			evict(sched, &room->victims[room->chosen[i]], search, kind);
}

void room_commit(struct sched *sched, struct search *search, enum room_kind kind)
{
	struct comparison compared = room_compare(sched, search);

	INVARIANT(sched->plan.open);
	room_store(sched, search, kind, &compared);
}

bool room_may_help_slot(const struct sched *sched, const struct model *model)
{
	return sched->config.enable_preemption && model->tenant->r.can_preempt_others &&
	       room_lowest_priority(model->tenant) < model->r.priority &&
	       !(model->preempt_failed.change_seq == sched->pass.change_seq &&
	         sched_now(sched) < model->preempt_failed.retry_ms);
}

static bool make_for_slot(struct sched *sched, struct search *search)
{
	struct model *model = search->model;
	uint64_t state = sched->pass.change_seq;

	sched->room.work = 0;
	if (!room_may_help_slot(sched, model))
		return false;
	if (room_find(sched, search, ROOM_PREEMPT)) {
		room_commit(sched, search, ROOM_PREEMPT);
		sched->pass.budget -= sched->room.work / ROOM_WORK_PER_UNIT;
		return true;
	}
	model->preempt_failed.change_seq = state;
	model->preempt_failed.retry_ms = sched->room.retry_ms;
	return false;
}

bool room_may_help_job(struct sched *sched, const struct job *job, enum room_kind kind)
{
	return room_may_help(sched, job->class->group, kind) && !is_waiting_instead(sched, job) &&
	       !(kind == ROOM_CONSOLIDATE && timeshare_is_early(sched, job, kind)) &&
	       !room_failed_before(sched, job, kind);
}

/* True if what the victim still has to run will probably take less GPU time than stopping it
 * loses. */
static bool rest_is_below_cost(struct sched *sched, const struct victim *victim)
{
	struct job *job = victim->job;
	struct lifetime lifetime;
	int64_t gpus = victim->amounts.of[AMOUNT_GPU];

	if (job->s.started_ms == 0 || gpus <= 0 || !predict_lifetime(sched, job, &lifetime))
		return false;
	int64_t age_ms = predict_age(job, sched_now(sched));
	int64_t rest_ms = lifetime_duration(&lifetime, age_ms, CHANCE_ONE / 2) - age_ms;
	return muldiv_down(gpus, rest_ms, 1) < victim_loss(victim, sched_now(sched));
}

/* Marks those of the chosen victims that others are preferred to: they may have ended before
 * another could run in their place, or lose more than they still need. False if there is none. */
static bool spare_some(struct sched *sched)
{
	const struct room *room = &sched->room;
	bool any = false;

	INVARIANT(sched->plan.open);
	for (size_t i = 0; i < room->chosen_count; i++) {
		const struct victim *victim = &room->victims[room->chosen[i]];
		if (!is_lost(victim) || (!room_ends_soon(sched, victim->job, SPARE_CHANCE) &&
		                         !rest_is_below_cost(sched, victim)))
			continue;
		victim->job->spared = room->spared;
		any = true;
	}
	return any;
}

/* A plan is open that makes room. Replaces it by one that stops nobody who is about to end or
 * would lose more than it still needs, if there is one. */
static void find_others(struct sched *sched, struct search *search, enum room_kind kind)
{
	struct room *room = &sched->room;
	bool found = true;

	INVARIANT(sched->plan.open);
	room->spared++;
	for (int round = 0; found && spare_some(sched); round++) {
		plan_abandon(&sched->ledger);
		room->sparing = true;
		found = round < SPARE_ROUNDS && room_find(sched, search, kind);
		room->sparing = false;
	}
	if (!found)
		found = room_find(sched, search, kind);
	INVARIANT(found && sched->plan.open);
}

static bool make_for_job(struct sched *sched, struct search *search, enum room_kind kind)
{
	struct job *job = search->job;
	uint64_t state = sched->pass.change_seq;

	sched->room.work = 0;
	if (kind == ROOM_EVICT && evict_make(sched, search))
		return true;
	if (kind == ROOM_EVICT || !room_find(sched, search, kind)) {
		room_note_failure(sched, job, kind, state);
		return false;
	}
	struct comparison compared = room_compare(sched, search);
	if (kind != ROOM_CONSOLIDATE && wait_instead(sched, job, &compared))
		return false;
	if (kind != ROOM_CONSOLIDATE) {
		find_others(sched, search, kind);
		compared = room_compare(sched, search);
	}
	room_store(sched, search, kind, &compared);
	sched->pass.budget -= sched->room.work / ROOM_WORK_PER_UNIT;
	return true;
}

bool room_make(struct sched *sched, struct search *search, enum room_kind kind)
{
	INVARIANT(!sched->plan.open && sched->index.built);
	INVARIANT(!sched->plan.open && kind < ROOM_SHARE && !search->job != !search->model);
	if (search->job)
		return make_for_job(sched, search, kind);
	return kind == ROOM_EVICT ? evict_make(sched, search) : make_for_slot(sched, search);
}

void room_free(struct room *room)
{
	turn_free(&room->turn);
	free(room->cursors);
	free(room->victims);
	free(room->links);
	free(room->chosen);
	free(room->nodes);
	free(room->turns);
}
