/* victims.c - who would be stopped first */
#include <stdlib.h>
#include <string.h>

#include "core/room/room.h"
#include "core/state.h"
#include "core/tenant/fairshare.h"

/* Those that take turns stay where they are, unless all are to move: they would be
 * interrupted about twice as often. */
bool victim_may_move(const struct sched *sched, const struct job *victim)
{
	bool shares = sched->config.time_sharing != SHARING_OFF && job_takes_turns(victim);

	return sched->config.enable_consolidation && victim->r.split_gpus == 0 &&
	       (sched->config.move_any_job || (victim->r.movable && !shares));
}

/* Notes when a job that is safe for now because it just started is not any more. */
static bool is_safe_for_now(struct sched *sched, const struct job *victim)
{
	if (!job_is_protected(sched, victim))
		return false;
	if (victim->r.preemptible && victim->s.preempted_count < victim->tenant->r.max_preemptions)
		sched->room.retry_ms = min64(sched->room.retry_ms,
		                             victim->s.started_ms + sched->config.min_runtime_ms);
	return true;
}

/* Whether both waited and it was the victim's turn, by its age or its deadline:
 * what the order of the queue decided is not undone by preemption. */
static bool went_before(const struct sched *sched, const struct job *victim, const struct job *job)
{
	struct queue_rule rule = job_rule(sched);
	int64_t start_ms = victim->s.started_ms > 0 ? victim->s.started_ms : sched_now(sched);
	struct queue_entry a = job_entry(sched, victim), b = job_entry(sched, job);

	return job->s.queued_ms <= start_ms && queue_before(&rule, &a, &b, start_ms);
}

bool victim_allowed(struct sched *sched, const struct job *victim, const struct search *taker,
                    enum room_kind kind)
{
	if (victim == taker->job || victim->counts.live == 0 || victim->counts.claims > 0 ||
	    is_safe_for_now(sched, victim) ||
	    (sched->room.sparing && victim->spared == sched->room.spared))
		return false; /* what was just placed is not stopped before it has started */
	switch (kind) {
	case ROOM_CONSOLIDATE:
		return victim_may_move(sched, victim);
	case ROOM_PREEMPT:
		return victim->r.priority < applicant_priority(taker) &&
		       !(taker->job && went_before(sched, victim, taker->job));
	default:
		return true;
	}
}

static int depth_of(const struct tenant *tenant)
{
	int depth = 0;

	for (; tenant->parent; tenant = tenant->parent)
		depth++;
	return depth;
}

struct parting tenants_part(const struct tenant *taker, const struct tenant *giver)
{
	int a = depth_of(taker), b = depth_of(giver);

	for (; a > b; a--)
		taker = taker->parent;
	for (; b > a; b--)
		giver = giver->parent;
	while (taker != giver && taker->parent != giver->parent) {
		taker = taker->parent;
		giver = giver->parent;
	}
	return (struct parting){ taker, giver };
}

/* Whether the giver has more than its share, or its quota, where the two part. */
static bool has_more(const struct tenant *taker, const struct tenant *giver)
{
	struct parting parting = tenants_part(taker, giver);

	return fairshare_over_allocatable(parting.giver, NULL) ||
	       fairshare_over_quota(parting.giver, NULL);
}

/* Whether anything of the tenant could be taken for a job of `taker`. */
static bool tenant_gives(const struct sched *sched, const struct tenant *taker,
                         const struct tenant *giver, enum room_kind kind)
{
	if (giver->victims.count == 0)
		return false;
	if (kind == ROOM_CONSOLIDATE)
		return true;
	if (kind == ROOM_PREEMPT)
		return giver == taker;
	if (giver == taker)
		return false;
	return sched->config.move_any_job || sched->movable_victims > 0 || has_more(taker, giver);
}

bool victim_gives(struct sched *sched, const struct job *victim, const struct search *taker,
                  enum room_kind kind)
{
	const struct tenant *tenant = applicant_tenant(taker);

	if (!tenant_gives(sched, tenant, victim->tenant, kind) ||
	    !victim_allowed(sched, victim, taker, kind))
		return false;
	return kind != ROOM_RECLAIM || victim_may_move(sched, victim) ||
	       has_more(tenant, victim->tenant);
}

/* The task that an elastic job would do without first: its last, `spared` having
 * been named already. */
static int last_task(const struct job *job, int32_t spared)
{
	for (int i = (int)job->r.tasks - 1; i >= 0; i--) {
		const struct reservation *reservation = job->tasks[i].reservation;
		bool runs = reservation && (reservation->phase == PHASE_GRANTED ||
		                            reservation->phase == PHASE_LIVE);
		if (runs && spared-- == 0)
			return i;
	}
	return -1;
}

/* What its tenant would have less; tasks that were named by themselves do not
 * count again. */
static struct amounts amounts_of(const struct victim *victim, int32_t spared)
{
	struct amounts sum = { { 0 } };

	for (int i = (int)victim->job->r.tasks - 1; i >= 0; i--) {
		const struct reservation *reservation = victim->job->tasks[i].reservation;
		if (!reservation || reservation->phase == PHASE_RELEASING)
			continue;
		if (victim->task >= 0 ? victim->task != i : spared-- > 0)
			continue;
		struct amounts one = reservation_amounts(reservation);
		amounts_add(&sum, &one);
	}
	if (victim->task < 0)
		sum.of[AMOUNT_JOBS] = 1;
	return sum;
}

/* Tasks that an elastic job can do without. */
static int64_t surplus(const struct job *victim)
{
	if (victim->r.split_gpus > 0)
		return 0;
	return max64(victim->counts.granted + victim->counts.live -
	                 (victim->r.min_available - victim->ended),
	             0);
}

/* Moves the cursor to the next job that may be stopped; false at the end. Of one
 * priority, first what elastic jobs can do without, then whole jobs. */
static bool next_job(struct sched *sched, struct victim_cursor *cursor, struct tenant *tenant,
                     const struct search *taker, enum room_kind kind)
{
	struct rank_cursor at =
	    cursor->begun ? ranktree_seek(&tenant->victims, cursor->priority, cursor->start + 1)
			  : ranktree_seek(&tenant->victims, INT64_MIN, INT64_MIN);

	for (;;) {
		const struct rank_entry *entry = rank_cursor_next(&at);
		bool over = !entry || !cursor->begun || entry->major != cursor->priority;
		if (over && cursor->begun && !cursor->whole) {
			cursor->whole = true;
			at = ranktree_seek(&tenant->victims, cursor->priority, INT64_MIN);
			continue;
		}
		if (!entry)
			return false;
		if (over)
			cursor->whole = tenant->surplus_victims == 0;
		struct job *victim = entry->value;
		cursor->begun = true;
		cursor->priority = entry->major;
		cursor->start = entry->minor;
		if (kind == ROOM_PREEMPT && victim->r.priority >= applicant_priority(taker))
			return false;
		if (!victim_allowed(sched, victim, taker, kind) ||
		    (cursor->movers && !victim_may_move(sched, victim)) ||
		    (!cursor->whole && surplus(victim) == 0))
			continue;
		cursor->spared = cursor->whole ? (int32_t)surplus(victim) : 0;
		cursor->next.job = victim;
		return true;
	}
}

/* The next thing that the tenant would lose, into `cursor->next`. */
static bool advance(struct sched *sched, struct victim_cursor *cursor, struct tenant *tenant,
                    const struct search *taker, enum room_kind kind)
{
	struct job *victim = cursor->next.job;
	if (victim && !cursor->whole && cursor->spared >= surplus(victim))
		victim = NULL;
	if (!victim && !next_job(sched, cursor, tenant, taker, kind))
		return false;
	victim = cursor->next.job;
	cursor->next.task = cursor->whole ? -1 : last_task(victim, cursor->spared);
	cursor->next.amounts = amounts_of(&cursor->next, cursor->spared);
	amounts_subtract(&cursor->taken, &cursor->next.amounts);
	return true;
}

static void victims_offer(struct sched *sched, struct tenant *tenant, size_t place,
                          const struct search *taker, enum room_kind kind)
{
	struct room *room = &sched->room;
	struct victim_cursor *cursor = &room->cursors[place];

	if (advance(sched, cursor, tenant, taker, kind))
		turn_offer(&room->turn, tenant, &cursor->taken);
	else
		turn_offer(&room->turn, tenant, NULL);
}

void victims_begin(struct sched *sched, const struct search *taker, enum room_kind kind)
{
	struct room *room = &sched->room;
	size_t count = sched->tenants.count;

	INVARIANT(!sched->plan.open);
	INVARIANT(!sched->plan.open && !taker->job != !taker->model);
	array_reserve(room->cursors, room->cursor_capacity, count);
	room->count = room->link_count = room->node_count = 0;
	room->mark++;
	room->retry_ms = INT64_MAX;
	turn_begin(&room->turn, &sched->cluster.total, true);
	for (size_t i = 0; i < count; i++) {
		struct tenant *tenant = sched->tenants.all[i];
		if (!tenant_gives(sched, applicant_tenant(taker), tenant, kind))
			continue;
		room->cursors[i] =
		    (struct victim_cursor){ .movers = kind == ROOM_RECLAIM &&
			                              !has_more(applicant_tenant(taker), tenant) };
		victims_offer(sched, tenant, i, taker, kind);
	}
}

struct victim victim_of(const struct reservation *reservation)
{
	struct victim victim = { .job = reservation->job, .task = -1 };

	INVARIANT(reservation->job && reservation->phase != PHASE_RELEASING);
	if (surplus(reservation->job) > 0)
		victim.task = reservation->task;
	victim.amounts = amounts_of(&victim, 0);
	return victim;
}

static size_t victims_place_of(const struct tenants *tenants, const struct tenant *tenant)
{
	size_t low = 0, high = tenants->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (tenants->all[middle]->r.id < tenant->r.id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct victim *victims_next(struct sched *sched, const struct search *taker, enum room_kind kind)
{
	struct room *room = &sched->room;
	struct tenant *tenant = turn_first(&room->turn);

	if (!tenant)
		return NULL;
	size_t place = victims_place_of(&sched->tenants, tenant);
	INVARIANT(sched->tenants.all[place] == tenant);
	struct victim_cursor *cursor = &room->cursors[place];
	array_reserve(room->victims, room->capacity, room->count + 1);
	struct victim *victim = &room->victims[room->count++];
	*victim = cursor->next;
	victim->kept = victim->moved = false;
	if (victim->task >= 0)
		cursor->spared++;
	else
		cursor->next.job = NULL;
	victims_offer(sched, tenant, place, taker, kind);
	return victim;
}
