/* place.c - all tasks of a job: near together, or not at all */
#include <stdlib.h>
#include <string.h>

#include "core/place/fit.h"
#include "core/place/placement.h"
#include "core/queue/job.h"

static int32_t highest_premium(const struct placement *placement, const struct choice *choice)
{
	int32_t highest = 0;

	for (int i = 0; i < choice->part_count; i++)
		highest = (int32_t)max64(
		    highest, scarcity_of(&placement->scarcity, choice->parts[i].gpu->gpu_type));
	return highest;
}

/* Places one task. As a claim, it may also go where it fits at once. */
static struct reservation *place_task(struct placement *placement, struct search *search, int task)
{
	enum view view = search->view;
	enum phase phase = view == VIEW_NOW ? PHASE_GRANTED : PHASE_CLAIM;
	struct choice choice;
	bool found;

	search->view = VIEW_NOW;
	found = place_find(placement, search, &choice);
	search->view = view;
	if (!found && view == VIEW_LATER)
		found = place_find(placement, search, &choice);
	if (!found)
		return NULL;
	search->score = choice.score;
	search->scarcity = highest_premium(placement, &choice);
	struct reservation *reservation =
	    plan_reserve(placement->ledger, search->job, task, choice.node, phase, choice.parts,
	                 choice.part_count, NULL);
	if (!reservation)
		search->limit_blocked = true;
	return reservation;
}

/* Where a reservation comes among those of its job: by what its node has left, then by
 * the name of the node, then as it was placed. */
struct place_key {
	int64_t left_mib;
	int rank, order;
	struct reservation *reservation;
};

static int compare_keys(const void *a, const void *b)
{
	const struct place_key *one = a, *other = b;

	if (one->left_mib != other->left_mib)
		return one->left_mib < other->left_mib ? -1 : 1;
	if (one->rank != other->rank)
		return one->rank < other->rank ? -1 : 1;
	return one->order < other->order ? -1 : 1;
}

static int64_t memory_left(const struct node *node)
{
	int64_t left_mib = 0;

	for (int i = 0; i < node->gpu_count; i++)
		left_mib += max64(gpu_free_later(node->gpus[i]), 0);
	return left_mib;
}

static void sort_by_place(struct reservation **placed, int count)
{
	struct place_key *keys = memory_alloc((size_t)count * sizeof(*keys));
	const struct node *last = placed[0]->node;
	int64_t left_mib = memory_left(last);

	for (int i = 0; i < count; i++) {
		const struct node *node = placed[i]->node;
		if (node != last) /* neighbors are often on one node */
			left_mib = memory_left(node);
		last = node;
		keys[i] = (struct place_key){ left_mib, node->rank, i, placed[i] };
	}
	qsort(keys, (size_t)count, sizeof(*keys), compare_keys);
	for (int i = 0; i < count; i++)
		placed[i] = keys[i].reservation;
	free(keys);
}

/* Gives the tasks that were just placed their numbers by their nodes, so that neighbors
 * in number are neighbors in place. */
static void number_by_place(struct job *job, struct reservation **placed, int count)
{
	int tasks[TASKS_MAX];

	INVARIANT(count > 0 && count <= TASKS_MAX);
	for (int i = 0; i < count; i++)
		tasks[i] = placed[i]->task;
	sort_by_place(placed, count);
	for (int i = 0; i < count; i++) {
		placed[i]->task = tasks[i];
		if (placed[i]->phase == PHASE_CLAIM)
			job->tasks[tasks[i]].claim = placed[i];
		else
			job->tasks[tasks[i]].reservation = placed[i];
	}
}

static bool task_needs_place(const struct search *search, const struct task *task)
{
	if (search->moving) /* released by the plan at hand, not before */
		return (task->state == TASK_PLACED || task->state == TASK_RUNNING) &&
		       !task->claim && task->reservation &&
		       task->reservation->phase == PHASE_RELEASING;
	return task->state == TASK_PENDING && !task->reservation && !task->claim;
}

/* Places `tasks` tasks one after the other within the search's bounds. */
static bool place_tasks(struct placement *placement, struct search *search, int64_t tasks)
{
	struct job *job = search->job;
	size_t mark = plan_mark(placement->ledger);
	struct reservation *placed[TASKS_MAX];
	int count = 0;

	INVARIANT(tasks <= TASKS_MAX);
	for (int task = 0; task < job->r.tasks && count < tasks; task++) {
		if (!task_needs_place(search, &job->tasks[task]))
			continue;
		placed[count] = place_task(placement, search, task);
		if (!placed[count])
			break;
		count++;
	}
	if (count == tasks && count > 1)
		number_by_place(job, placed, count);
	if (count == tasks)
		return true;
	plan_rollback(placement->ledger, mark);
	return false;
}

/* Most tasks that the whole cluster has GPUs for, as far as the index can tell. */
static int64_t upper_bound(const struct placement *placement, const struct search *search)
{
	const struct shape_request *request = &search->shape->request;
	int64_t tasks = 0;

	if (request->gpu_kind != GPU_WHOLE || search->view == VIEW_LATER ||
	    request->gpu_count >= INDEX_WHOLE_LEVELS)
		return INT64_MAX;
	if (placement->cluster->gpu_total > 0 &&
	    placement->index->whole_count[INDEX_WHOLE_LEVELS - 1] > 0)
		return INT64_MAX; /* nodes of more GPUs than there are levels */
	for (int level = request->gpu_count; level < INDEX_WHOLE_LEVELS;
	     level += request->gpu_count)
		tasks += placement->index->whole_count[level];
	return tasks;
}

/* The node with the least room to spare for all tasks, after the one with `*room`
 * and `*rank` in that order; NULL: there is none. `link` not NULL: within one
 * NVLink group, which is put there. */
static struct node *next_roomy_node(struct placement *placement, struct search *search,
                                    int64_t tasks, int64_t *room, int *rank, int64_t *link)
{
	struct scope scope = place_scope(placement, search);
	const struct shape_request *request = &search->shape->request;
	const struct bitset *allowed = &search->shape->filter->nodes;
	struct node *best = NULL;
	int64_t best_count = INT64_MAX;

	/* Whole GPUs for all of them must be free on the one node. */
	if (request->gpu_kind == GPU_WHOLE && search->view == VIEW_NOW)
		scope.sets =
		    &placement->index
			 ->whole[min64(tasks * request->gpu_count, INDEX_WHOLE_LEVELS - 1)];

	for (size_t w = 0; w < scope.sets->words && w < allowed->words; w++) {
		uint64_t bits = scope.sets->word[w] & allowed->word[w];
		while (bits) {
			struct node *node = placement->cluster->by_rank[bitset_take(&bits, w)];
			if ((search->only && search->only != node) ||
			    (search->rack && search->rack != node->rack))
				continue;
			int64_t group = 0;
			int64_t count =
			    link ? place_count_linked(placement, search, node, tasks, &group)
				 : place_count(placement, search, node);
			bool after = count > *room || (count == *room && node->rank > *rank);
			if (count >= tasks && after && count < best_count) {
				best = node;
				best_count = count;
				if (link)
					*link = group;
			}
		}
	}
	if (best) {
		*room = best_count;
		*rank = best->rank;
	}
	return best;
}

/* On the search's node, in this NVLink group (0: in any). What place_count says of
 * uneven parts may be too much for one group and right for another. */
static bool place_in_link(struct placement *placement, struct search *search, int64_t tasks,
                          int64_t link)
{
	INVARIANT(search->only != NULL);
	bool uneven = search->shape->request.gpu_kind == GPU_UNEVEN;
	int64_t last = search->link = link;
	bool placed = place_tasks(placement, search, tasks);

	for (int i = 0; !placed && link && uneven && i < search->only->gpu_count; i++) {
		search->link = search->only->gpus[i]->r.nvlink_group;
		if (search->link && search->link != link && search->link != last &&
		    !search->limit_blocked)
			placed = place_tasks(placement, search, tasks);
		last = search->link;
	}
	search->link = 0;
	return placed;
}

/* All tasks on one node, or in one NVLink group of it: the one with the least
 * room to spare. What place_count says may be too much (for links between GPUs,
 * say), so others are tried too. */
static bool place_on_one_node(struct placement *placement, struct search *search, int64_t tasks,
                              bool linked)
{
	struct node *only = search->only;
	int64_t link = 0;
	struct node *node;
	int64_t room = -1;
	int rank = -1;
	bool placed = false;

	while (!placed && !search->limit_blocked &&
	       (node = next_roomy_node(placement, search, tasks, &room, &rank,
	                               linked ? &link : NULL))) {
		search->only = node;
		placed = place_in_link(placement, search, tasks, link);
		search->only = only;
	}
	return placed;
}

/* All tasks in one rack: the one with the least room to spare. */
static bool place_in_one_rack(struct placement *placement, struct search *search, int64_t tasks)
{
	int racks = placement->cluster->rack_count, only = search->rack, best;
	bool placed;

	if (racks == 0)
		return false;
	int64_t *room = memory_alloc(((size_t)racks + 1) * sizeof(*room));
	rack_capacity_count(placement, search, room);
	do {
		best = 0;
		for (int rack = 1; rack <= racks; rack++)
			if (room[rack] >= tasks && (!only || rack == only) &&
			    (!best || room[rack] < room[best]))
				best = rack;
		room[best] = 0;
		search->rack = best;
		placed = best && place_tasks(placement, search, tasks);
	} while (best && !placed && !search->limit_blocked);
	search->rack = only;
	free(room);
	return placed;
}

/* Several tasks: near together as far as that is asked for or comes for free. */
static bool place_near(struct placement *placement, struct search *search, int64_t tasks)
{
	const struct shape *shape = search->shape;

	if (upper_bound(placement, search) < tasks)
		return false;
	if (shape->closeness != CLOSE_RACK && shape->request.gpu_count > 0 &&
	    place_on_one_node(placement, search, tasks, true))
		return true;
	if (shape->closeness == CLOSE_NVLINK && shape->closeness_required &&
	    shape->request.gpu_count > 0)
		return false;
	if (shape->closeness != CLOSE_RACK && place_on_one_node(placement, search, tasks, false))
		return true;
	if ((shape->closeness == CLOSE_NODE || shape->closeness == CLOSE_NVLINK) &&
	    shape->closeness_required)
		return false;
	if (place_in_one_rack(placement, search, tasks))
		return true;
	if (shape->closeness == CLOSE_RACK && shape->closeness_required)
		return false;
	return place_tasks(placement, search, tasks);
}

/* Tasks with parts of several GPUs each, one after the other onto the fullest, can
 * leave room on one GPU alone, which is of use to none of them: if they do not fit
 * so, they may if they are spread. */
static bool place_gang(struct placement *placement, struct search *search, int64_t tasks)
{
	const struct shape_request *request = &search->shape->request;

	if (place_near(placement, search, tasks))
		return true;
	if (request->gpu_count < 2 || request->gpu_kind == GPU_WHOLE || search->limit_blocked)
		return false;
	search->even = true;
	bool placed = place_near(placement, search, tasks);
	search->even = false;
	return placed;
}

static int free_whole_gpus(const struct placement *placement, struct search *search,
                           const struct node *node, struct gpu **gpus)
{
	int64_t short_by;
	int count = 0;

	if (place_check_node(placement, search, node, &short_by) != CHECK_OK)
		return 0;
	for (int i = 0; i < node->gpu_count; i++) {
		enum check check = place_check_gpu(placement, search, node->gpus[i], &short_by);
		if (check == CHECK_PROMISE || check == CHECK_WINDOW)
			search->promise_blocked = true;
		if (check == CHECK_OK)
			gpus[count++] = node->gpus[i];
	}
	return min64(count, PARTS_MAX) == count ? count : PARTS_MAX;
}

/* The node that serves a split best: one that has just what is left, or else
 * the one with the most. */
static struct node *split_node(struct placement *placement, struct search *search, int64_t left)
{
	const struct bitset *set =
	    search->view == VIEW_NOW ? &placement->index->whole[1] : &placement->index->open;
	const struct bitset *allowed = &search->shape->filter->nodes;
	struct gpu *gpus[GPUS_PER_NODE_MAX];
	struct node *best = NULL;
	int64_t best_count = 0;

	for (size_t w = 0; w < set->words && w < allowed->words; w++)
		for (uint64_t bits = set->word[w] & allowed->word[w]; bits;) {
			struct node *node = placement->cluster->by_rank[bitset_take(&bits, w)];
			int64_t count = free_whole_gpus(placement, search, node, gpus);
			bool better = best_count >= left ? count >= left && count < best_count
			                                 : count > best_count;
			if (better) {
				best = node;
				best_count = count;
			}
		}
	return best;
}

/* A job of `split_gpus` whole GPUs over as few nodes as possible: its tasks are
 * as many as the nodes it takes, each as large as it fits. */
static bool place_split(struct placement *placement, struct search *search)
{
	INVARIANT(search->shape->split_gpus > 0);
	struct job *job = search->job;
	size_t mark = plan_mark(placement->ledger);
	int64_t left = search->shape->split_gpus;
	struct gpu *gpus[GPUS_PER_NODE_MAX];
	struct part parts[PARTS_MAX];
	struct reservation **placed = memory_alloc((size_t)job->r.tasks * sizeof(*placed));
	int task = 0;

	for (; task < job->r.tasks && left > 0; task++) {
		struct node *node = split_node(placement, search, left);
		int count = node ? free_whole_gpus(placement, search, node, gpus) : 0;
		if (count > left)
			count = (int)left;
		if (count == 0)
			break;
		for (int i = 0; i < count; i++)
			parts[i] =
			    fit_part(&job->request, gpus[i], fit_mib(&job->request, gpus[i]));
		placed[task] = plan_reserve(placement->ledger, job, task, node,
		                            search->view == VIEW_NOW ? PHASE_GRANTED : PHASE_CLAIM,
		                            parts, count, NULL);
		if (!placed[task]) {
			search->limit_blocked = true;
			break;
		}
		left -= count;
	}
	if (left == 0)
		number_by_place(job, placed, task);
	free(placed);
	if (left == 0)
		return true;
	plan_rollback(placement->ledger, mark);
	return false;
}

bool place_job(struct placement *placement, struct search *search, int64_t tasks)
{
	INVARIANT(placement->ledger->plan->open && placement->index->built && search->job);
	INVARIANT(search->view != VIEW_CLEARED);
	INVARIANT(tasks > 0 && tasks <= TASKS_MAX && search->job->r.tasks <= TASKS_MAX);
	filter_refresh(search->shape->filter, placement->cluster, placement->cluster->version);
	if (search->shape->split_gpus > 0)
		return place_split(placement, search);
	if (tasks == 1 || search->only || search->rack)
		return place_tasks(placement, search, tasks);
	return place_gang(placement, search, tasks);
}
