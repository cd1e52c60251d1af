/* forecast.c - when there will be room, if running jobs end as expected */
#include "core/promise/forecast.h"

#include <stdlib.h>

#include "core/queue/job.h"
#include "core/state.h"

#define MINUTE_MS INT64_C(60000)
#define ATTEMPTS_MAX 8 /* times that enough seemed to be free and was not */

static struct gpu *copied_gpu(struct node_copy *copy, const struct gpu *gpu)
{
	for (int i = 0; i < copy->node.gpu_count; i++)
		if (copy->gpus[i].r.id == gpu->r.id)
			return &copy->gpus[i];
	panic("GPU %s is not on node %s", gpu->r.uuid, copy->node.r.name);
}

static void take_out(struct node_copy *copy, const struct reservation *reservation)
{
	for (int i = 0; i < reservation->part_count; i++) {
		const struct part *part = &reservation->parts[i];
		struct gpu_books *books = &copied_gpu(copy, part->gpu)->books;
		books->used_mib -= max64(part->mib, part->measured_mib);
		books->owners--;
		books->whole_owners -= part->whole ? 1 : 0;
		compute_sum_add(&books->compute, part, -1);
	}
	copy->node.cpu.used -= reservation->cpu_milli;
	copy->node.host.used -= reservation->host_bytes;
}

/* One that was just placed is taken to start now. */
static int64_t expected_end(const struct job *job, int64_t now_ms)
{
	if (job->s.started_ms == 0 && job->s.expected_ms > 0)
		return now_ms + job->s.expected_ms;
	return job_expected_end(job, now_ms);
}

/* A copy of the node without what is expected to have ended by `end_ms`. */
static void copy_as_of(struct node_copy *copy, const struct node *node, int64_t end_ms,
                       int64_t now_ms)
{
	node_copy_make(copy, node);
	for (int i = 0; i < node->reservation_count; i++) {
		const struct reservation *reservation = node->reservations[i];
		bool runs = reservation->phase == PHASE_GRANTED || reservation->phase == PHASE_LIVE;
		if (runs && reservation->job && expected_end(reservation->job, now_ms) <= end_ms)
			take_out(copy, reservation);
	}
}

static void claim_on(struct gpu *gpu, const struct part *part)
{
	gpu->books.claimed_mib += part->mib;
	gpu->books.claims++;
	gpu->books.whole_claims += part->whole ? 1 : 0;
	compute_sum_add(&gpu->books.compute_claimed, part, 1);
}

static void claim_host(struct node_copy *copy, const struct shape_request *request)
{
	copy->node.cpu.claimed += request->cpu_milli;
	copy->node.host.claimed += request->host_bytes;
}

static int by_end(const void *a, const void *b)
{
	const struct leaving *x = a, *y = b;

	if (x->end_ms != y->end_ms)
		return x->end_ms < y->end_ms ? -1 : 1;
	return x->node->rank - y->node->rank;
}

static void add_opening(struct forecast *forecast, const struct node *node, int64_t time_ms)
{
	array_reserve(forecast->openings, forecast->opening_capacity, forecast->opening_count + 1);
	forecast->openings[forecast->opening_count++] =
	    (struct leaving){ .end_ms = time_ms, .node = node, .whole = INT64_MAX };
}

/* When a window begins, its own may start there; when it ends, the others. */
static void list_openings(struct forecast *forecast, const struct sched *sched)
{
	const struct windows *windows = &sched->cluster.windows;
	int64_t now_ms = sched_now(sched);

	for (int w = 0; w < windows->count; w++) {
		struct window_time time = window_time(&windows->at[w]->r, now_ms);
		for (size_t i = 0; i < sched->cluster.node_count; i++) {
			const struct node *node = sched->cluster.nodes[i];
			uint64_t in = node->windows;
			for (int g = 0; g < node->gpu_count; g++)
				in |= node->gpus[g]->windows;
			if ((in >> w & 1) == 0 || time.begin_ms == INT64_MAX)
				continue;
			if (time.begin_ms > now_ms)
				add_opening(forecast, node, time.begin_ms);
			add_opening(forecast, node, time.end_ms);
		}
	}
	if (forecast->opening_count > 1)
		qsort(forecast->openings, forecast->opening_count, sizeof(struct leaving), by_end);
}

void forecast_make(struct forecast *forecast, const struct sched *sched)
{
	size_t most = sched->ends.count < FORECAST_ENDS ? sched->ends.count : FORECAST_ENDS;

	INVARIANT(sched->index.built);
	*forecast = (struct forecast){ .sched = sched, .count = most };
	forecast->endings = memory_alloc(2 * most * sizeof(*forecast->endings));
	forecast->ended = memory_zero(sched->cluster.node_count + 1, sizeof(*forecast->ended));
	endings_list(forecast->endings, most, &sched->ends, sched_now(sched));
	list_openings(forecast, sched);
}

void forecast_free(struct forecast *forecast)
{
	free(forecast->endings);
	free(forecast->leavings);
	free(forecast->openings);
	free(forecast->ended);
	*forecast = (struct forecast){ 0 };
}

static void add_leavings(struct forecast *forecast, const struct ending *ending)
{
	const struct job *job = ending->job;

	array_reserve(forecast->leavings, forecast->leaving_capacity,
	              forecast->leaving_count + (size_t)job->r.tasks);
	for (int i = 0; i < job->r.tasks; i++) {
		const struct reservation *reservation = job->tasks[i].reservation;
		if (!reservation || reservation->phase == PHASE_RELEASING)
			continue;
		const struct node *node = reservation->node;
		int32_t ended = forecast->ended[node->rank] += reservation->part_count;
		forecast->leavings[forecast->leaving_count++] = (struct leaving){
			.end_ms = ending->end_ms,
			.job = job,
			.node = node,
			.whole = node->offer.releasing ? INT64_MAX : node->offer.whole + ended,
		};
	}
}

static void add_leaving(struct forecast *forecast, const struct leaving *leaving)
{
	array_reserve(forecast->leavings, forecast->leaving_capacity, forecast->leaving_count + 1);
	forecast->leavings[forecast->leaving_count++] = *leaving;
}

/* Lists leavings until there is an i-th. NULL if no more are looked at. */
static const struct leaving *list_leavings(struct forecast *forecast, size_t i)
{
	while (i >= forecast->leaving_count && forecast->leaving_count < FORECAST_LEAVINGS) {
		bool ends = forecast->next < forecast->count;
		bool opens = forecast->next_opening < forecast->opening_count;
		const struct leaving *opening = forecast->openings + forecast->next_opening;
		if (opens && (!ends || opening->end_ms <= forecast->endings[forecast->next].end_ms))
			add_leaving(forecast, &forecast->openings[forecast->next_opening++]);
		else if (ends)
			add_leavings(forecast, &forecast->endings[forecast->next++]);
		else
			break;
	}
	return i < forecast->leaving_count ? &forecast->leavings[i] : NULL;
}

/* The i-th leaving, or NULL if no more are looked at. */
static inline const struct leaving *leaving_at(struct forecast *forecast, size_t i)
{
	return i < forecast->leaving_count ? &forecast->leavings[i] : list_leavings(forecast, i);
}

static struct search search_for(struct sched *sched, struct job *job)
{
	struct shape *shape = job->class->shape;

	filter_refresh(shape->filter, &sched->cluster, sched->cluster.version);
	return (
	    struct search){ .job = job, .shape = shape, .view = VIEW_LATER, .until_ms = INT64_MAX };
}

/* How much room there is for a job by some time. Nodes that have to be used
 * together are a group: all nodes, those of a rack, or each by itself. */
struct outlook {
	struct sched *sched;
	struct search search;
	int64_t need; /* tasks; of a split job, GPUs */
	enum { GROUP_ALL, GROUP_RACK, GROUP_NODE } group;
	int64_t *sums; /* by group */
	int32_t *room; /* by rank: how much of the need the node could take */
};

static void outlook_begin(struct outlook *outlook, struct sched *sched, struct job *job)
{
	const struct shape *shape = job->class->shape;
	size_t nodes = sched->cluster.node_count + 1, racks = (size_t)sched->cluster.rack_count + 1;

	*outlook = (struct outlook){ .sched = sched, .search = search_for(sched, job) };
	outlook->need = shape->split_gpus > 0 ? shape->split_gpus : shape->tasks;
	if (shape->closeness_required && shape->tasks > 1 && shape->closeness != CLOSE_ANY)
		outlook->group = shape->closeness == CLOSE_RACK ? GROUP_RACK : GROUP_NODE;
	outlook->sums = memory_zero(nodes > racks ? nodes : racks, sizeof(*outlook->sums));
	outlook->room = memory_zero(nodes, sizeof(*outlook->room));
}

static void outlook_end(struct outlook *outlook)
{
	free(outlook->sums);
	free(outlook->room);
}

/* -1: the node is in no group. */
static int group_of(const struct outlook *outlook, const struct node *node)
{
	switch (outlook->group) {
	case GROUP_RACK:
		return node->rack > 0 ? node->rack : -1;
	case GROUP_NODE:
		return node->rank;
	default:
		return 0;
	}
}

static int64_t fitting_gpus(const struct outlook *outlook, const struct node *node)
{
	int64_t count = 0, short_by;

	if (place_check_node(&outlook->sched->placement, &outlook->search, node, &short_by) !=
	    CHECK_OK)
		return 0;
	for (int i = 0; i < node->gpu_count; i++)
		count += place_check_gpu(&outlook->sched->placement, &outlook->search,
		                         node->gpus[i], &short_by) == CHECK_OK;
	return min64(count, PARTS_MAX);
}

static int64_t node_takes(struct outlook *outlook, const struct node *node)
{
	if (outlook->search.shape->split_gpus > 0)
		return fitting_gpus(outlook, node);
	return place_count(&outlook->sched->placement, &outlook->search, node);
}

/* Notes what the node, or a copy of it, takes. True if its group takes all. */
static bool note_room(struct outlook *outlook, const struct node *node)
{
	int group = group_of(outlook, node);
	int32_t takes = (int32_t)node_takes(outlook, node);

	if (group < 0)
		return false;
	outlook->sums[group] += takes - outlook->room[node->rank];
	outlook->room[node->rank] = takes;
	return outlook->sums[group] >= outlook->need;
}

/* Nodes that could take a task as they are, or a few more. */
static const struct bitset *free_nodes(const struct outlook *outlook)
{
	const struct index *index = &outlook->sched->index;
	const struct shape_request *request = &outlook->search.shape->request;

	if (outlook->search.shape->split_gpus > 0)
		return &index->whole[1];
	switch (request->compute > 0 ? GPU_NONE : request->gpu_kind) {
	case GPU_WHOLE:
		return &index->whole[min64(request->gpu_count, INDEX_WHOLE_LEVELS - 1)];
	case GPU_FRACTION:
		return &index->milli[index_milli_level(request->fraction)];
	case GPU_MEMORY:
		return &index->mib[index_mib_level(request->memory_mib)];
	case GPU_UNEVEN:
		return &index->mib[index_mib_level(request->uneven_mib[0])];
	default:
		return &index->open;
	}
}

/* What is free already, or coming back, counts for a gang. True if that is all
 * it needs: then its start is not for a forecast to say. */
static bool fits_already(struct outlook *outlook)
{
	const struct index *index = &outlook->sched->index;
	const struct bitset *set = free_nodes(outlook);
	const struct bitset *allowed = &outlook->search.shape->filter->nodes;

	INVARIANT(set->words == index->releasing.words);
	for (size_t w = 0; w < set->words && w < allowed->words; w++) {
		uint64_t bits = (set->word[w] | index->releasing.word[w]) & allowed->word[w];
		while (bits) {
			size_t rank = bitset_take(&bits, w);
			if (note_room(outlook, outlook->sched->cluster.by_rank[rank]))
				return true;
		}
	}
	return false;
}

static void add_row(struct forecast_rows *rows, int64_t task, const struct gpu *gpu, int64_t mib,
                    bool whole)
{
	if (rows->count == rows->room)
		return;
	int64_t *row = rows->at + (size_t)rows->count++ * PROMISE_WIDTH;
	row[0] = task;
	row[1] = gpu->r.id;
	row[2] = mib;
	row[3] = whole;
}

static int next_task(const struct job *job, int task)
{
	for (task++; task < job->r.tasks; task++)
		if (job->tasks[task].state == TASK_PENDING && !job->tasks[task].reservation)
			return task;
	return task;
}

/* Puts tasks onto the copy while they fit; returns how many. */
static int64_t settle_tasks(struct outlook *outlook, struct node_copy *copy, int64_t most,
                            int *task, struct forecast_rows *rows)
{
	const struct shape_request *request = &outlook->search.shape->request;
	struct choice choice;
	int64_t placed = 0;

	while (placed < most &&
	       place_on_node(&outlook->sched->placement, &outlook->search, &copy->node, &choice)) {
		*task = next_task(outlook->search.job, *task);
		for (int i = 0; i < choice.part_count; i++) {
			const struct part *part = &choice.parts[i];
			add_row(rows, *task, part->gpu, part->mib, part->whole);
			claim_on(part->gpu, part);
		}
		claim_host(copy, request);
		placed++;
	}
	return placed;
}

/* Settles a split job, whose task on this node takes all GPUs that fit. */
static int64_t settle_gpus(struct outlook *outlook, struct node_copy *copy, int64_t most, int *task,
                           struct forecast_rows *rows)
{
	int64_t left = min64(most, fitting_gpus(outlook, &copy->node)), short_by;

	++*task;
	most = left;
	for (int i = 0; i < copy->node.gpu_count && left > 0; i++) {
		const struct gpu *gpu = &copy->gpus[i];
		if (place_check_gpu(&outlook->sched->placement, &outlook->search, gpu, &short_by) !=
		    CHECK_OK)
			continue;
		add_row(rows, *task, gpu, gpu_usable_mib(gpu) - gpu->r.foreign_mib, true);
		left--;
	}
	return most - left;
}

struct spot {
	int32_t room;
	int rank;
};

static int more_room(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	return x->room != y->room ? (x->room > y->room ? -1 : 1) : x->rank - y->rank;
}

static struct spot *spots_of(const struct outlook *outlook, int group, size_t *count)
{
	const struct cluster *cluster = &outlook->sched->cluster;
	struct spot *spots = memory_alloc((cluster->node_count + 1) * sizeof(*spots));

	*count = 0;
	for (size_t rank = 0; rank < cluster->node_count; rank++)
		if (outlook->room[rank] > 0 && group_of(outlook, cluster->by_rank[rank]) == group)
			spots[(*count)++] = (struct spot){ outlook->room[rank], (int)rank };
	qsort(spots, *count, sizeof(*spots), more_room);
	return spots;
}

/* Chooses GPUs of the group, on few nodes, as they will be by `end_ms`. False if
 * the tasks do not fit after all. */
static bool forecast_settle(struct outlook *outlook, int group, int64_t end_ms,
                            struct forecast_rows *rows)
{
	bool split = outlook->search.shape->split_gpus > 0;
	struct node_copy copy;
	size_t count;
	struct spot *spots = spots_of(outlook, group, &count);
	int64_t left = outlook->need;
	int task = -1;

	rows->count = 0;
	for (size_t i = 0; i < count && left > 0; i++) {
		const struct node *node = outlook->sched->cluster.by_rank[spots[i].rank];
		copy_as_of(&copy, node, end_ms, sched_now(outlook->sched));
		left -= split ? settle_gpus(outlook, &copy, left, &task, rows)
		              : settle_tasks(outlook, &copy, left, &task, rows);
	}
	free(spots);
	return left == 0;
}

/* The GPUs of a node that have to be empty; without them it is not worth looking closely. */
static int64_t empty_gpus_needed(const struct shape *shape)
{
	bool whole = shape->request.gpu_kind == GPU_WHOLE && shape->split_gpus == 0;

	return whole ? shape->request.gpu_count : 0;
}

/* The start that is promised after such an end: in whole minutes, so that it
 * does not move with every little change, and with some room for one that is
 * late already and gets later. */
static int64_t start_after(const struct leaving *leaving, int64_t now_ms)
{
	const struct job *job = leaving->job;
	int64_t late_ms = job ? max64(job_run_ms(job, now_ms) - job->s.expected_ms, 0) : 0;
	int64_t start_ms = leaving->end_ms + late_ms / 4;

	return (start_ms + MINUTE_MS - 1) / MINUTE_MS * MINUTE_MS;
}

static int64_t find_start(struct outlook *outlook, struct forecast *forecast, int64_t latest_ms,
                          struct forecast_rows *rows)
{
	const struct shape *shape = outlook->search.shape;
	int64_t now_ms = sched_now(outlook->sched), needed = empty_gpus_needed(shape);
	const struct leaving *leaving;
	struct node_copy copy;
	int attempts = 0;

	for (size_t i = 0; (leaving = leaving_at(forecast, i)); i++) {
		if (leaving->end_ms > latest_ms)
			break;
		if (leaving->whole < needed ||
		    !bitset_has(&shape->filter->nodes, (size_t)leaving->node->rank))
			continue;
		copy_as_of(&copy, leaving->node, leaving->end_ms, now_ms);
		int64_t start_ms = start_after(leaving, now_ms);
		outlook->search.start_ms = start_ms;
		if (!note_room(outlook, &copy.node))
			continue;
		if (start_ms > latest_ms || attempts++ == ATTEMPTS_MAX)
			break;
		if (forecast_settle(outlook, group_of(outlook, leaving->node), leaving->end_ms,
		                    rows))
			return start_ms;
	}
	return INT64_MAX;
}

int64_t forecast_start(struct forecast *forecast, struct sched *sched, struct job *job,
                       int64_t latest_ms, struct forecast_rows *rows)
{
	struct outlook outlook;
	int64_t start_ms = INT64_MAX;

	INVARIANT(sched->index.built && rows->count <= rows->room);
	rows->count = 0;
	outlook_begin(&outlook, sched, job);
	if (outlook.need == 1 || !fits_already(&outlook))
		start_ms = find_start(&outlook, forecast, latest_ms, rows);
	outlook_end(&outlook);
	if (start_ms == INT64_MAX)
		rows->count = 0;
	return start_ms;
}

/* Whether these rows, all of one node, fit there by then. */
static bool rows_hold(struct sched *sched, const struct search *search, const struct node *node,
                      const struct promise_record *promise, int64_t from, int64_t to)
{
	const struct shape_request *request = &search->shape->request;
	struct node_copy copy;
	int64_t task = -1, short_by;

	copy_as_of(&copy, node, promise->start_ms, sched_now(sched));
	for (int64_t i = from; i < to; i++) {
		const int64_t *row = promise->parts.at + i * PROMISE_WIDTH;
		struct gpu *gpu = copied_gpu(&copy, map_get(&sched->cluster.gpu_by_id, row[1]));
		if (row[0] != task) {
			if (place_check_node(&sched->placement, search, &copy.node, &short_by) !=
			    CHECK_OK)
				return false;
			claim_host(&copy, request);
			task = row[0];
		}
		if (place_check_gpu(&sched->placement, search, gpu, &short_by) != CHECK_OK ||
		    gpu_free_later(gpu) < row[2])
			return false;
		claim_on(gpu, &(struct part){ .mib = row[2],
		                              .whole = row[3] != 0,
		                              .compute = row[3] != 0 ? 0 : request->compute,
		                              .sharer = request->sharer });
	}
	return true;
}

bool forecast_holds(struct sched *sched, struct job *job, const struct promise_record *promise)
{
	struct search search = search_for(sched, job);
	const struct shape *shape = search.shape;
	search.start_ms = promise->start_ms;
	int64_t parts =
	    shape->split_gpus > 0 ? shape->split_gpus : shape->tasks * shape->request.gpu_count;
	int64_t to, count = promise->parts.count;

	if (promise->start_ms <= sched_now(sched) || count != min64(parts, PROMISE_ROWS))
		return false;
	for (int64_t from = 0; from < count; from = to) {
		const int64_t *row = promise->parts.at + from * PROMISE_WIDTH;
		const struct gpu *gpu = map_get(&sched->cluster.gpu_by_id, row[1]);
		for (to = from + 1; to < count; to++) {
			const struct gpu *next = map_get(&sched->cluster.gpu_by_id,
			                                 promise->parts.at[to * PROMISE_WIDTH + 1]);
			if (next->node != gpu->node)
				break;
		}
		if (!rows_hold(sched, &search, gpu->node, promise, from, to))
			return false;
	}
	return true;
}
