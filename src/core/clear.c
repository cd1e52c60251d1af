/* clear.c - what has to go so that a job fits, node by node */
#include <stdlib.h>

#include "core/fit.h"
#include "core/room.h"
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

/* Marks hold, for one search, what would come free on a node and on its GPUs. */
static void mark_node(struct room *room, struct node *node)
{
	node->mark = room->mark;
	node->mark_list = -1;
	node->mark_cpu = node->mark_host = 0;
	for (int i = 0; i < node->gpu_count; i++) {
		struct gpu *gpu = node->gpus[i];
		gpu->mark_mib = 0;
		gpu->mark_owners = gpu->mark_whole = 0;
	}
	array_reserve(room->nodes, room->node_capacity, room->node_count + 1);
	room->nodes[room->node_count++] = node;
}

static void link_to_node(struct room *room, size_t victim, const struct reservation *reservation)
{
	struct node *node = reservation->node;

	if (node->mark != room->mark)
		mark_node(room, node);
	node->mark_cpu += reservation->cpu_milli;
	node->mark_host += reservation->host_bytes;
	for (int i = 0; i < reservation->part_count; i++) {
		const struct part *part = &reservation->parts[i];
		part->gpu->mark_mib += max64(part->mib, part->measured_mib);
		part->gpu->mark_owners++;
		part->gpu->mark_whole += part->whole;
	}
	if (node->mark_list >= 0 && room->links[node->mark_list].victim == victim)
		return;
	array_reserve(room->links, room->link_capacity, room->link_count + 1);
	room->links[room->link_count] = (struct victim_link){ victim, (int32_t)node->mark_list };
	node->mark_list = (int64_t)room->link_count++;
}

static bool gpu_would_fit(const struct sched *sched, const struct search *search,
                          const struct gpu *gpu)
{
	const struct request *request = &search->shape->request;
	const struct gpu_books *books = &gpu->books;
	int64_t need = fit_mib(request, gpu);

	if (!filter_allows(search->shape->filter, gpu) || !gpu_is_open(gpu, &sched->config))
		return false;
	if (request->gpu_kind == GPU_WHOLE)
		return gpu_usable_mib(gpu) >= request->memory_mib && books->claims == 0 &&
		       books->owners - books->releasing_owners <= gpu->mark_owners;
	return books->whole_claims == 0 && gpu_usable_mib(gpu) >= need &&
	       books->whole_owners - books->whole_releasing <= gpu->mark_whole &&
	       gpu_free_later(gpu) + gpu->mark_mib >= need;
}

bool room_would_fit(const struct sched *sched, const struct search *search, const struct node *node)
{
	const struct request *request = &search->shape->request;
	int fits = 0;

	if (request->cpu_milli > host_free_later(&node->cpu, node->r.cpu_milli) + node->mark_cpu ||
	    request->host_bytes >
	        host_free_later(&node->host, node->r.host_bytes) + node->mark_host)
		return false;
	for (int i = 0; i < node->gpu_count && fits < request->gpu_count; i++)
		fits += gpu_would_fit(sched, search, node->gpus[i]);
	return fits >= request->gpu_count;
}

static bool try_node(struct sched *sched, struct search *search, enum room_kind kind,
                     struct node *node)
{
	const struct node *bound = search->only;

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

static bool is_named(const struct room *room, const struct node *node, const struct job *job)
{
	for (int32_t at = (int32_t)node->mark_list; at >= 0; at = room->links[at].next)
		if (room->victims[room->links[at].victim].job == job)
			return true;
	return false;
}

static bool goes_before(const struct job *a, const struct job *b)
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
		    (reservation->phase == PHASE_HELD || reservation->phase == PHASE_LIVE) &&
		    victim_gives(sched, reservation->job, search->job, kind) &&
		    !is_named(&sched->room, node, reservation->job) &&
		    (!next || goes_before(reservation->job, next->job)))
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

/* A job of one task. Victims are named in order, and the first node where those
 * named so far make room is taken. When many have been named in vain, the nodes
 * they are on are looked at by themselves, with all that could go there. */
static bool find_for_task(struct sched *sched, struct search *search, enum room_kind kind)
{
	struct room *room = &sched->room;
	size_t most = (size_t)max64(sched->config.search_width / 4, 8);

	while (room->count < most && victims_next(sched, search->job, kind))
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

	while (room->count < most && victims_next(sched, search->job, kind)) {
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
	struct job *job = search->job;
	struct amounts amounts = job_amounts(sched, job, search->shape->tasks);
	struct bound bound;
	bool limited =
	    !tenant_may_hold(job->tenant, &amounts, job->r.preemptible, sched_now(sched), &bound);

	filter_refresh(search->shape->filter, &sched->cluster, sched->cluster_version);
	victims_begin(sched, job, kind);
	if (limited) /* a budget is renewed by time alone */
		sched->room.retry_ms = sched_now(sched);
	if (!limited && search->shape->tasks == 1 && search->shape->split_gpus == 0)
		return find_for_task(sched, search, kind);
	return find_together(
	    sched, search, kind,
	    (size_t)(sched->config.search_width + 4 * amounts.of[AMOUNT_GPU] / WHOLE_GPU));
}
