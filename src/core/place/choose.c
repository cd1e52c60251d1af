/* choose.c - which GPUs of a node a task gets */
#include "core/place/fit.h"
#include "core/place/placement.h"
#include "core/place/rules.h"
#include "core/queue/job.h"

policy_score *fit_policy(const struct placement *placement)
{
	return policy_row(placement->config->policy)->score;
}

/* The GPUs of a node that pass, into `fits`; how many. */
static int fitting_gpus(const struct placement *placement, const struct search *search,
                        const struct node *node, struct gpu **fits, bool *promise_blocked)
{
	int count = 0;
	int64_t short_by;

	for (int i = 0; i < node->gpu_count; i++) {
		if (search->link && node->gpus[i]->r.nvlink_group != search->link)
			continue;
		enum check check = place_check_gpu(placement, search, node->gpus[i], &short_by);
		if (check == CHECK_PROMISE || check == CHECK_WINDOW)
			*promise_blocked = true;
		if (check == CHECK_OK)
			fits[count++] = node->gpus[i];
	}
	return count;
}

/* What is left on a GPU for others like this one. Fractions are of the GPU, so a
 * larger one with more memory free may have room for fewer of them. */
static int64_t left_on(const struct search *search, const struct gpu *gpu)
{
	const struct shape_request *request = &search->shape->request;
	int64_t free_mib = fit_gpu_free(search, gpu);

	if (search->even && request->gpu_kind == GPU_FRACTION)
		return free_mib / max64(fit_mib(request, gpu), 1);
	return free_mib;
}

/* Orders GPUs by what they have free: least first, or most first. */
static void sort_by_free(const struct search *search, struct gpu **gpus, int count, bool most)
{
	for (int i = 1; i < count; i++) {
		struct gpu *gpu = gpus[i];
		int64_t left = left_on(search, gpu);
		int j = i;
		for (; j > 0; j--) {
			int64_t other = left_on(search, gpus[j - 1]);
			if (most ? other >= left : other <= left)
				break;
			gpus[j] = gpus[j - 1];
		}
		gpus[j] = gpu;
	}
}

/* Whether the GPUs of one NVLink group have room for uneven parts. */
static bool group_takes_uneven(const struct search *search, struct gpu **fits, int count,
                               int64_t group)
{
	const struct shape_request *request = &search->shape->request;
	struct gpu *members[GPUS_PER_NODE_MAX];
	int size = 0;

	for (int i = 0; i < count; i++)
		if (fits[i]->r.nvlink_group == group)
			members[size++] = fits[i];
	sort_by_free(search, members, size, true);
	for (int i = 0; i < request->gpu_count; i++)
		if (i >= size || fit_gpu_free(search, members[i]) < request->uneven_mib[i])
			return false;
	return true;
}

/* The NVLink group with the fewest of `fits` that still has `need` of them, or
 * 0 if there is none. */
static int64_t tightest_group(const struct search *search, struct gpu **fits, int count, int need)
{
	bool uneven = search->shape->request.gpu_kind == GPU_UNEVEN;
	int64_t best = 0;
	int best_size = count + 1;

	for (int i = 0; i < count; i++) {
		int64_t group = fits[i]->r.nvlink_group;
		int size = 0;
		for (int j = 0; j < count && group; j++)
			size += fits[j]->r.nvlink_group == group;
		if (group && size >= need && size < best_size &&
		    (!uneven || group_takes_uneven(search, fits, count, group))) {
			best = group;
			best_size = size;
		}
	}
	return best;
}

/* Keeps those of the tightest NVLink group, if there is one; -1 if one is
 * required and there is none. */
static int keep_one_group(const struct search *search, struct gpu **fits, int count, int need)
{
	bool required =
	    search->shape->closeness == CLOSE_NVLINK && search->shape->closeness_required;
	int64_t group =
	    need > 1 && (required || !search->even) ? tightest_group(search, fits, count, need) : 0;
	int kept = 0;

	if (need > 1 && !group && required)
		return -1;
	for (int i = 0; i < count; i++)
		if (!group || fits[i]->r.nvlink_group == group)
			fits[kept++] = fits[i];
	return kept;
}

/* Different amounts on different GPUs: the largest to the fullest that has room. */
static bool choose_uneven(const struct search *search, struct gpu **fits, int count,
                          struct choice *choice)
{
	const struct shape_request *request = &search->shape->request;
	uint64_t taken = 0;

	for (int i = 0; i < request->gpu_count; i++) {
		int at = 0;
		while (at < count &&
		       (taken >> at & 1 || fit_gpu_free(search, fits[at]) < request->uneven_mib[i]))
			at++;
		if (at == count)
			return false;
		taken |= UINT64_C(1) << at;
		choice->parts[i] = fit_part(request, fits[at], request->uneven_mib[i]);
	}
	choice->part_count = request->gpu_count;
	return true;
}

/* One GPU for a part of it: the one that the policy likes best, lowest place among equals. */
static void choose_one(struct placement *placement, const struct search *search, struct gpu **fits,
                       int count, struct choice *choice)
{
	const struct shape_request *request = &search->shape->request;
	struct choice trial = *choice;
	bool found = false;

	trial.part_count = 1;
	for (int i = 0; i < count; i++) {
		bool seen = false;
		for (int j = 0; j < i && !seen; j++)
			seen = fit_gpu_free(search, fits[j]) == fit_gpu_free(search, fits[i]) &&
			       gpu_usable_mib(fits[j]) == gpu_usable_mib(fits[i]) &&
			       fits[j]->gpu_type == fits[i]->gpu_type;
		if (seen)
			continue;
		trial.parts[0] = fit_part(request, fits[i], fit_mib(request, fits[i]));
		trial.score = fit_policy(placement)(placement, search, &trial);
		if (!found || trial.score < choice->score) {
			choice->parts[0] = trial.parts[0];
			choice->part_count = 1;
			choice->score = trial.score;
			found = true;
		}
	}
}

static bool choose_gpus(struct placement *placement, const struct search *search, struct node *node,
                        struct choice *choice)
{
	const struct shape_request *request = &search->shape->request;
	struct gpu *fits[GPUS_PER_NODE_MAX];
	int count = fitting_gpus(placement, search, node, fits, &choice->promise_blocked);

	INVARIANT(request->gpu_count <= PARTS_MAX);
	count = keep_one_group(search, fits, count, request->gpu_count);
	if (count < request->gpu_count)
		return false;
	if (request->gpu_kind != GPU_WHOLE && request->gpu_count == 1) {
		choose_one(placement, search, fits, count, choice);
		return true;
	}
	if (request->gpu_kind != GPU_WHOLE)
		sort_by_free(search, fits, count,
		             search->even || policy_has(placement->config->policy, POLICY_SPREADS));
	if (request->gpu_kind == GPU_UNEVEN) {
		if (!choose_uneven(search, fits, count, choice))
			return false;
	} else {
		for (int i = 0; i < request->gpu_count; i++)
			choice->parts[i] = fit_part(request, fits[i], fit_mib(request, fits[i]));
		choice->part_count = request->gpu_count;
	}
	choice->score = fit_policy(placement)(placement, search, choice);
	return true;
}

bool place_on_node(struct placement *placement, const struct search *search, struct node *node,
                   struct choice *choice)
{
	int64_t short_by;

	INVARIANT(search->shape != NULL);
	choice->node = node;
	choice->part_count = 0;
	choice->linked = choice->promise_blocked = false;
	choice->score = 0;
	enum check check = place_check_node(placement, search, node, &short_by);
	if (check != CHECK_OK) {
		choice->promise_blocked = check == CHECK_WINDOW;
		return false;
	}
	if (search->model || search->view == VIEW_CLEARED)
		return choose_slot(placement, search, node, choice);
	if (search->shape->request.gpu_count > 0)
		return choose_gpus(placement, search, node, choice);
	choice->score = fit_policy(placement)(placement, search, choice);
	return true;
}

/* Most tasks of `each` distinct GPUs when GPU i takes at most room[i] of them. */
static int64_t tasks_of_distinct(const int64_t *room, int count, int64_t each)
{
	int64_t tasks = 0;

	for (int i = 0; i < count; i++)
		tasks += room[i];
	tasks /= each;
	while (tasks > 0) {
		int64_t places = 0;
		for (int i = 0; i < count; i++)
			places += min64(room[i], tasks);
		if (places >= tasks * each)
			break;
		tasks = min64(tasks - 1, places / each);
	}
	return tasks;
}

/* The k largest parts need k distinct GPUs for each task, each with as much memory as the
 * smallest of them. That is exact for one task, and may be too strict for several. */
static int64_t tasks_of_uneven(const struct shape_request *request, const int64_t *free_mib,
                               int count)
{
	int64_t room[GPUS_PER_NODE_MAX], tasks = TASKS_MAX;

	for (int parts = 1; parts <= request->gpu_count; parts++) {
		for (int i = 0; i < count; i++)
			room[i] = free_mib[i] / max64(request->uneven_mib[parts - 1], 1);
		tasks = min64(tasks, tasks_of_distinct(room, count, parts));
	}
	return tasks;
}

/* Whether any whole GPU of the node will do, so that the index has counted them already. All
 * GPUs of a node that the filter allows are allowed if they are of one type. */
static bool is_plain_whole(const struct placement *placement, const struct search *search,
                           const struct node *node)
{
	const struct filter *filter = search->shape->filter;
	const struct shape_request *request = &search->shape->request;

	return request->gpu_kind == GPU_WHOLE && request->memory_mib == 0 &&
	       search->view == VIEW_NOW && !search->link &&
	       (!*filter->gpu_types || (placement->index->gpu_types[node->rank] >= 0 &&
	                                bitset_has(&filter->nodes, (size_t)node->rank))) &&
	       (!node_is_spoken_for(node) || (search->ignore_promises && !node->in_windows));
}

/* Like place_count(), restricted to the search's NVLink group if it has one. */
static int64_t count_tasks(struct placement *placement, struct search *search,
                           const struct node *node)
{
	const struct shape_request *request = &search->shape->request;
	int64_t room[GPUS_PER_NODE_MAX], free_mib[GPUS_PER_NODE_MAX], short_by, tasks = TASKS_MAX;

	enum check node_check = place_check_node(placement, search, node, &short_by);
	search->promise_blocked |= node_check == CHECK_WINDOW;
	if (node_check != CHECK_OK)
		return 0;
	if (request->cpu_milli > 0)
		tasks = min64(tasks, fit_cpu_free(search, node) / request->cpu_milli);
	if (request->host_bytes > 0)
		tasks = min64(tasks, fit_host_free(search, node) / request->host_bytes);
	if (search->shape->filter->demand)
		tasks = min64(tasks, rules_most(search, node));
	if (request->gpu_count == 0)
		return tasks;
	if (is_plain_whole(placement, search, node))
		return min64(tasks, node->offer.whole / request->gpu_count);
	for (int i = 0; i < node->gpu_count; i++) {
		const struct gpu *gpu = node->gpus[i];
		bool linked = !search->link || gpu->r.nvlink_group == search->link;
		enum check check = place_check_gpu(placement, search, gpu, &short_by);
		bool fits = linked && check == CHECK_OK;
		if (linked && (check == CHECK_PROMISE || check == CHECK_WINDOW))
			search->promise_blocked = true;
		free_mib[i] = !fits ? 0 : fit_gpu_free(search, gpu);
		room[i] = !fits ? 0
		          : request->gpu_kind == GPU_WHOLE
		              ? 1
		              : min64(free_mib[i] / max64(fit_mib(request, gpu), 1),
		                      fit_compute_room(placement, search, gpu));
	}
	if (request->gpu_kind == GPU_UNEVEN)
		return min64(tasks, tasks_of_uneven(request, free_mib, node->gpu_count));
	return min64(tasks, tasks_of_distinct(room, node->gpu_count, request->gpu_count));
}

int64_t place_count_linked(struct placement *placement, struct search *search,
                           const struct node *node, int64_t tasks, int64_t *link)
{
	struct search linked = *search;
	int64_t best = 0;

	INVARIANT(!search->link && !search->model);
	linked.link = 0;
	for (int i = 0; i < node->gpu_count; i++) {
		int64_t group = node->gpus[i]->r.nvlink_group;
		if (!group || group == linked.link)
			continue;
		linked.link = group;
		int64_t count = count_tasks(placement, &linked, node);
		if (best < tasks ? count > best : count >= tasks && count < best) {
			best = count;
			*link = group;
		}
	}
	search->promise_blocked |= linked.promise_blocked;
	return best;
}

int64_t place_count(struct placement *placement, struct search *search, const struct node *node)
{
	const struct shape *shape = search->shape;
	int64_t link;

	if (shape->closeness == CLOSE_NVLINK && shape->closeness_required && !search->link &&
	    shape->tasks > 1 && shape->request.gpu_count > 0)
		return place_count_linked(placement, search, node, INT64_MAX, &link);
	return count_tasks(placement, search, node);
}
