/* timeshare.c - GPUs shared in time: who has had less takes the place of who has had more */
#include <stdlib.h>

#include "core/ledger/sketch.h"
#include "core/room/room.h"
#include "core/state.h"

/* The remaining time of a job is estimated or predicted (SHARING_PREDICTED_SERVICE) or,
 * since jobs that ran for long usually run for longer, expected to be the time it has run. What a
 * GPU does for it counts 1 over the GPU time that is left, and a job as much for each GPU it asks
 * for. Who waits takes the place of others where that gains clearly, on the node where it costs
 * least: one that runs on many GPUs is not stopped for the sake of one GPU.
 *
 * Before anyone is stopped or moved, a job waits for sharing_delay_ms for GPUs that come free by
 * themselves: most jobs are short, so that many do.
 *
 * The bound: a job that has waited for sharing_wait_ms goes before all that have
 * not, by how long they waited, takes the place of any of its tenant and priority
 * that takes turns and is not in such a turn itself, and then runs for
 * sharing_turn_ms at the least. By predicted service, wide jobs wait a quarter of that, as
 * the many jobs in their way together nearly always go before, and their turns are longer,
 * as room for them is expensive to make. */
#define LEAST_MS INT64_C(3600000) /* GPU time that is expected at the least */
#define WEIGHT_UNIT (INT64_C(1) << 40)
#define GAIN_FROM 5    /* a place is worth taking where 5 times what is lost is less */
#define GAIN_TO 4      /* than 4 times what is won */
#define TRIES 64       /* failed ones, in one pass */
#define MOVE_DELAY 12  /* times sharing_delay_ms: several are moved for one */
#define EARLY_LOOKS 64 /* at jobs of one class that have not waited for long enough */
#define WIDE_PART 8    /* a job is wide that asks for an eighth of all GPUs or more */
#define WIDE_HASTE 4
#define LONG_TURN 4

static int64_t weight_of(const struct sched *sched, const struct job *job)
{
	int64_t ran_ms = job_ran_ms(job, sched_now(sched));

	return muldiv_down(job_asked_milli(job), WEIGHT_UNIT,
	                   max64(job_service_left(sched, job, ran_ms), LEAST_MS));
}

/* By predicted service alone. */
static bool is_wide(const struct sched *sched, const struct job *job)
{
	return job_is_predicted(sched, job) &&
	       job_asked_milli(job) >= sched->cluster.total.of[AMOUNT_GPU] / WIDE_PART;
}

/* Since it was last queued: one that was stopped for another's turn, since then. */
static bool is_overdue(const struct sched *sched, const struct job *job, int64_t at_ms)
{
	int64_t wait_ms = sched->config.sharing_wait_ms;

	if (is_wide(sched, job))
		wait_ms /= WIDE_HASTE;
	return at_ms - job->s.queued_ms >= wait_ms;
}

/* Whether the job runs because it had waited for too long, and has not run for long. */
static bool is_in_turn(const struct sched *sched, const struct job *job)
{
	int64_t turn_ms = sched->config.sharing_turn_ms;

	if (is_wide(sched, job))
		turn_ms *= LONG_TURN;
	return is_overdue(sched, job, job->s.started_ms) &&
	       job_run_ms(job, sched_now(sched)) < turn_ms;
}

static bool may_stop(struct sched *sched, const struct job *victim, const struct search *search)
{
	const struct job *job = search->job;

	return victim && victim->tenant == job->tenant && victim->r.priority == job->r.priority &&
	       job_takes_turns(victim) && victim->s.started_ms > 0 &&
	       victim->counts.live == victim->r.tasks &&
	       victim_allowed(sched, victim, search, ROOM_SHARE) && !is_in_turn(sched, victim);
}

static int by_weight(const void *a, const void *b)
{
	const struct timeshare_turn *one = a, *other = b;

	if (one->weight != other->weight)
		return one->weight < other->weight ? -1 : 1;
	return one->job->r.id < other->job->r.id ? -1 : one->job->r.id > other->job->r.id;
}

static bool is_listed(const struct room *room, const struct job *job)
{
	for (size_t i = 0; i < room->turn_count; i++)
		if (room->turns[i].job == job)
			return true;
	return false;
}

/* Those on the node that may stop for the job and whose loss is below `limit`, the
 * least one first. */
static void list_turns(struct sched *sched, const struct search *search, const struct node *node,
                       int64_t limit)
{
	struct room *room = &sched->room;

	room->turn_count = 0;
	for (int i = 0; i < node->reservation_count; i++) {
		struct job *victim = node->reservations[i]->job;
		if (!may_stop(sched, victim, search) || is_listed(room, victim))
			continue;
		int64_t weight = weight_of(sched, victim);
		if (weight >= limit)
			continue;
		array_reserve(room->turns, room->turn_capacity, room->turn_count + 1);
		room->turns[room->turn_count++] = (struct timeshare_turn){ victim, weight, true };
	}
	if (room->turn_count > 1)
		qsort(room->turns, room->turn_count, sizeof(*room->turns), by_weight);
}

/* Whether a task fits on the node when those who do not stay are gone. */
static bool fits_now(struct sched *sched, const struct search *search, struct node *node)
{
	const struct room *room = &sched->room;

	sketch_begin(node);
	for (size_t t = 0; t < room->turn_count; t++)
		for (int i = 0; i < room->turns[t].job->r.tasks && !room->turns[t].stays; i++) {
			const struct reservation *held = room->turns[t].job->tasks[i].reservation;
			if (held && held->node == node)
				sketch_go(held);
		}
	return room_would_fit(sched, search, node);
}

/* Finds who would stop on the node so that a task fits there, into room.turns, and
 * what is lost by that; -1: nobody, or too much. */
static int64_t cost_of(struct sched *sched, const struct search *search, struct node *node,
                       int64_t limit)
{
	struct room *room = &sched->room;
	size_t going = 0;
	int64_t cost = 0;

	list_turns(sched, search, node, limit);
	while (!fits_now(sched, search, node)) {
		if (going == room->turn_count)
			return -1;
		room->turns[going++].stays = false;
	}
	while (going-- > 0) { /* who need not go stays, the greatest loss first */
		room->turns[going].stays = true;
		if (fits_now(sched, search, node))
			continue;
		room->turns[going].stays = false;
		cost += room->turns[going].weight;
	}
	return cost < limit ? cost : -1;
}

/* A node, and what is lost there. */
struct place {
	struct node *node;
	int64_t cost;
};

/* Keeps the `count` cheapest, cheapest first; by rank among equals. */
static void keep_place(struct place *places, int *used, int count, struct place found)
{
	int at = *used < count ? (*used)++ : count;

	INVARIANT(*used <= count);
	while (at > 0 && places[at - 1].cost > found.cost) {
		if (at < count)
			places[at] = places[at - 1];
		at--;
	}
	if (at < count)
		places[at] = found;
}

/* The cheapest nodes for the tasks of the search, one for each; how many there are. */
static int find_places(struct sched *sched, const struct search *search, int64_t limit,
                       struct place *places)
{
	const struct bitset *allowed = &search->shape->filter->nodes;
	int used = 0, tasks = (int)search->shape->tasks;

	for (size_t rank = 0; rank < sched->cluster.node_count; rank++) {
		struct node *node = sched->cluster.by_rank[rank];
		if (!bitset_has(allowed, rank) || !node_is_open(node))
			continue;
		int64_t cost = cost_of(sched, search, node, limit);
		if (cost >= 0)
			keep_place(places, &used, tasks, (struct place){ node, cost });
	}
	return used;
}

static bool is_chosen(const struct room *room, const struct job *job)
{
	for (size_t i = 0; i < room->count; i++)
		if (room->victims[i].job == job)
			return true;
	return false;
}

/* Chooses all who would stop on the nodes. */
static void choose_victims(struct sched *sched, const struct search *search, int64_t limit,
                           const struct place *places, int count)
{
	struct room *room = &sched->room;

	room->count = room->chosen_count = 0;
	for (int p = 0; p < count; p++) {
		cost_of(sched, search, places[p].node, limit);
		for (size_t t = 0; t < room->turn_count; t++) {
			struct job *job = room->turns[t].job;
			if (room->turns[t].stays || is_chosen(room, job))
				continue;
			array_reserve(room->victims, room->capacity, room->count + 1);
			array_reserve(room->chosen, room->chosen_capacity, room->chosen_count + 1);
			room->victims[room->count] = victim_of(job->tasks[0].reservation);
			room->chosen[room->chosen_count++] = room->count++;
		}
	}
}

/* What a place may cost at the most, for the job: less than this. */
static int64_t limit_for(const struct sched *sched, const struct job *job)
{
	if (is_overdue(sched, job, sched_now(sched)))
		return INT64_MAX;
	return muldiv_up(weight_of(sched, job), GAIN_TO, GAIN_FROM);
}

static bool take_turn(struct sched *sched, struct job *job)
{
	struct search search = applicant_job(&sched->placement, job);
	int64_t limit = limit_for(sched, job), cost = 0;
	int tasks = (int)search.shape->tasks;
	struct place *places = memory_alloc((size_t)tasks * sizeof(*places));

	INVARIANT(!sched->plan.open);
	filter_refresh(search.shape->filter, &sched->cluster, sched->cluster.version);
	bool found = find_places(sched, &search, limit, places) == tasks;
	for (int i = 0; i < tasks && found; i++) {
		found = places[i].cost < limit - cost;
		cost += found ? places[i].cost : 0;
	}
	if (found) {
		choose_victims(sched, &search, limit, places, tasks);
		search.only = tasks == 1 ? places[0].node : NULL;
		found = sched->room.count > 0 && room_attempt(sched, &search, ROOM_SHARE);
	}
	free(places);
	if (found)
		room_commit(sched, &search, ROOM_SHARE);
	return found;
}

bool timeshare_is_early(const struct sched *sched, const struct job *job, enum room_kind kind)
{
	int64_t delay_ms = sched->config.sharing_delay_ms;

	INVARIANT(kind == ROOM_SHARE || kind == ROOM_CONSOLIDATE);
	if (kind == ROOM_CONSOLIDATE)
		delay_ms *= MOVE_DELAY;
	return sched->config.time_sharing != SHARING_OFF && job_takes_turns(job) &&
	       sched_now(sched) - job->s.queued_ms < delay_ms;
}

/* Of those that have waited for long enough, the one that is expected to take least. */
static struct job *least_of(const struct sched *sched, const struct job_class *class)
{
	struct rank_cursor cursor = ranktree_seek(&class->by_service, INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;
	int looks = EARLY_LOOKS;

	while (looks-- > 0 && (entry = rank_cursor_next(&cursor)))
		if (!timeshare_is_early(sched, entry->value, ROOM_SHARE))
			return entry->value;
	return NULL;
}

/* Who of the class would take a turn first; NULL: nobody. */
static struct job *first_of(const struct sched *sched, const struct job_class *class)
{
	const struct rank_entry *longest = ranktree_first(&class->by_wait);

	if (!longest || class->turn_round == sched->room.sharing || class->group->anchor)
		return NULL;
	if (is_overdue(sched, longest->value, sched_now(sched)))
		return longest->value;
	return timeshare_is_early(sched, longest->value, ROOM_SHARE) ? NULL
	                                                             : least_of(sched, class);
}

static bool goes_first(const struct sched *sched, const struct job *a, const struct job *b)
{
	bool overdue = is_overdue(sched, a, sched_now(sched));

	if (overdue != is_overdue(sched, b, sched_now(sched)))
		return overdue;
	if (!overdue && a->entry.behind_ms != b->entry.behind_ms)
		return a->entry.behind_ms < b->entry.behind_ms;
	if (a->s.queued_ms != b->s.queued_ms)
		return a->s.queued_ms < b->s.queued_ms;
	return a->r.id < b->r.id;
}

/* Who takes a turn next, of all tenants; NULL: nobody whose class was not tried. */
static struct job *next_turn(const struct sched *sched)
{
	struct job *next = NULL;

	for (size_t i = 0; i < sched->tenants.count; i++) {
		const struct tenant *tenant = sched->tenants.all[i];
		if (!tenant->r.can_preempt_others || tenant->victims.count == 0)
			continue;
		for (size_t g = 0; g < tenant->group_count; g++)
			for (size_t c = 0; !shape_never_preempts(tenant->groups[g]->shape) &&
			                   c < tenant->groups[g]->class_count;
			     c++) {
				struct job *job = first_of(sched, tenant->groups[g]->classes[c]);
				if (job && (!next || goes_first(sched, job, next)))
					next = job;
			}
	}
	return next;
}

/* Who is expected to take least, or waited longest, of a group and priority found no room, so
 * nobody else of them does. */
static void timeshare_give_up(struct sched *sched, const struct job_class *class)
{
	struct job_group *group = class->group;

	for (size_t c = 0; c < group->class_count; c++)
		if (group->classes[c]->priority == class->priority)
			group->classes[c]->turn_round = sched->room.sharing;
}

void timeshare_run(struct sched *sched)
{
	struct job *job;
	int tries = 0;

	INVARIANT(!sched->plan.open && sched->index.built);
	if (sched->config.time_sharing == SHARING_OFF || !sched->config.enable_preemption)
		return;
	sched->room.sharing++;
	while (sched->pass.budget > 0 && tries < TRIES && (job = next_turn(sched))) {
		if (take_turn(sched, job))
			continue;
		timeshare_give_up(sched, job->class);
		tries++;
	}
}
