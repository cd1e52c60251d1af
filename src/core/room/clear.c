/* clear.c - what has to go so that a job or a slot fits, node by node */
#include <stdlib.h>

#include "core/ledger/sketch.h"
#include "core/place/fit.h"
#include "core/room/room.h"
#include "core/state.h"

static void choose(struct room *room, size_t victim)
{
	array_reserve(room->chosen, room->chosen_capacity, room->chosen_count + 1);
	room->chosen[room->chosen_count++] = victim;
}

static void choose_all(struct room *room)
{
	room->chosen_count = 0;
	for (size_t i = 0; i < room->count; i++)
		choose(room, i);
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

/* The node is new to this search. */
static void mark_node(struct room *room, struct node *node)
{
	node->mark = room->mark;
	node->mark_list = -1;
	sketch_begin(node);
	array_reserve(room->nodes, room->node_capacity, room->node_count + 1);
	room->nodes[room->node_count++] = node;
}

static void link_to_node(struct room *room, size_t victim, const struct reservation *reservation)
{
	struct node *node = reservation->node;

	INVARIANT(victim < room->count);
	if (node->mark != room->mark)
		mark_node(room, node);
	sketch_go(reservation);
	if (node->mark_list >= 0 && room->links[node->mark_list].victim == victim)
		return;
	array_reserve(room->links, room->link_capacity, room->link_count + 1);
	room->links[room->link_count] = (struct victim_link){ victim, (int32_t)node->mark_list };
	node->mark_list = (int64_t)room->link_count++;
}

/* Of a slot, one of its shapes has to. */
bool room_would_fit(struct sched *sched, const struct search *search, struct node *node)
{
	const struct model *model = search->model;
	struct search cleared = *search;
	struct choice choice;
	int64_t short_by;
	int fits = 0;

	cleared.view = VIEW_CLEARED;
	for (int i = 0; model && i < model->shape_count; i++) {
		cleared.shape = &model->shapes[i];
		if (place_on_node(&sched->placement, &cleared, node, &choice))
			return true;
	}
	cleared.ignore_promises = true; /* the plan looks at those */
	int needed = cleared.shape->request.gpu_count;
	if (model || place_check_node(&sched->placement, &cleared, node, &short_by) != CHECK_OK)
		return false;
	for (int i = 0; i < node->gpu_count && fits < needed; i++)
		fits += place_check_gpu(&sched->placement, &cleared, node->gpus[i], &short_by) ==
		        CHECK_OK;
	return fits >= needed;
}

static bool try_node(struct sched *sched, struct search *search, enum room_kind kind,
                     struct node *node)
{
	struct node *bound = search->only;

	if ((bound && node != bound) || !room_would_fit(sched, search, node))
		return false;
	choose_on_node(&sched->room, node);
	search->only = node;
	bool found = room_attempt(sched, search, kind);
	search->only = bound;
	return found;
}

static const struct reservation *runs_for(const struct victim *victim, int task)
{
	const struct reservation *reservation = victim->job->tasks[task].reservation;

	if (!reservation || reservation->phase == PHASE_RELEASING ||
	    (victim->task >= 0 && victim->task != task))
		return NULL;
	return reservation;
}

/* Tries the nodes that the newest victim is on, with all victims named so far
 * that are on them. */
static bool try_newest(struct sched *sched, struct search *search, enum room_kind kind)
{
	struct room *room = &sched->room;
	size_t newest = room->count - 1;
	struct victim victim = room->victims[newest];
	const struct reservation *reservation;

	for (int i = 0; i < victim.job->r.tasks; i++)
		if ((reservation = runs_for(&victim, i)))
			link_to_node(room, newest, reservation);
	for (int i = 0; i < victim.job->r.tasks; i++)
		if ((reservation = runs_for(&victim, i)) &&
		    try_node(sched, search, kind, reservation->node))
			return true;
	return false;
}

static bool clear_is_named(const struct room *room, const struct node *node, const struct job *job)
{
	for (int32_t at = (int32_t)node->mark_list; at >= 0; at = room->links[at].next)
		if (room->victims[room->links[at].victim].job == job)
			return true;
	return false;
}

static bool clear_goes_before(const struct job *a, const struct job *b)
{
	return a->r.priority != b->r.priority ? a->r.priority < b->r.priority
	                                      : a->s.start > b->s.start;
}

/* The job on the node that would go next and has not been named. */
static const struct reservation *next_on_node(struct sched *sched, const struct search *search,
                                              enum room_kind kind, const struct node *node)
{
	const struct reservation *next = NULL;

	for (int i = 0; i < node->reservation_count; i++) {
		const struct reservation *reservation = node->reservations[i];
		if (reservation->job &&
		    (reservation->phase == PHASE_GRANTED || reservation->phase == PHASE_LIVE) &&
		    victim_gives(sched, reservation->job, search, kind) &&
		    !clear_is_named(&sched->room, node, reservation->job) &&
		    (!next || clear_goes_before(reservation->job, next->job)))
			next = reservation;
	}
	return next;
}

/* Names more on the node until a task would fit there. */
static bool clear_node(struct sched *sched, struct search *search, enum room_kind kind,
                       struct node *node)
{
	struct room *room = &sched->room;
	const struct reservation *next;

	while (!room_would_fit(sched, search, node)) {
		next = next_on_node(sched, search, kind, node);
		if (!next)
			return false;
		array_reserve(room->victims, room->capacity, room->count + 1);
		room->victims[room->count++] = victim_of(next);
		struct victim victim = room->victims[room->count - 1];
		const struct reservation *reservation;
		for (int i = 0; i < victim.job->r.tasks; i++)
			if ((reservation = runs_for(&victim, i)))
				link_to_node(room, room->count - 1, reservation);
	}
	return try_node(sched, search, kind, node);
}

/* A job of one task, or a slot. Victims are named in order, and the first node where those
 * named so far make room is taken. When many have been named without success, the nodes
 * they are on are looked at by themselves, with all that could go there. */
static bool find_for_task(struct sched *sched, struct search *search, enum room_kind kind)
{
	struct room *room = &sched->room;

	INVARIANT(search->shape->tasks == 1 && room->count == 0);
	size_t most = (size_t)max64(sched->config.search_width / 4, 8);

	while (room->count < most && victims_next(sched, search, kind))
		if (try_newest(sched, search, kind))
			return true;
	if (room->count < most)
		return false;
	size_t nodes = room->node_count;
	for (size_t i = 0; i < nodes; i++)
		if (clear_node(sched, search, kind, room->nodes[i]))
			return true;
	return false;
}

/* A gang, or a job that a limit stands in the way of: all victims so far, tried
 * at growing intervals. */
static bool find_together(struct sched *sched, struct search *search, enum room_kind kind,
                          size_t most)
{
	struct room *room = &sched->room;
	size_t next_try = 1;

	while (room->count < most && victims_next(sched, search, kind)) {
		if (room->count < next_try)
			continue;
		next_try = room->count + 1 + room->count / 4;
		choose_all(room);
		if (room_attempt(sched, search, kind))
			return true;
	}
	choose_all(room);
	return room->count > 0 && room_attempt(sched, search, kind);
}

bool room_find(struct sched *sched, struct search *search, enum room_kind kind)
{
	struct amounts amounts = applicant_amounts(&sched->placement, search);
	struct bound bound;
	bool limited =
	    search->job && !applicant_may_hold(&sched->placement, search, &amounts, &bound);

	INVARIANT(!sched->plan.open);
	INVARIANT(!search->model || kind == ROOM_PREEMPT);
	filter_refresh(search->shape->filter, &sched->cluster, sched->cluster.version);
	victims_begin(sched, search, kind);
	if (limited) /* a budget is renewed by time alone */
		sched->room.retry_ms = sched_now(sched);
	if (!limited && search->shape->tasks == 1 && search->shape->split_gpus == 0)
		return find_for_task(sched, search, kind);
	return find_together(
	    sched, search, kind,
	    (size_t)(sched->config.search_width + 4 * amounts.of[AMOUNT_GPU] / WHOLE_GPU));
}
