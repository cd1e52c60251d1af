/* plot.c - one node, and what would be free on its GPUs if idle slots went */
#include "core/plot.h"

#include "core/fit.h"
#include "core/state.h"

struct ask ask_of_model(const struct model *model, int count)
{
	struct ask ask = { .count = count, .mib = model_part_mib(model, count) };

	if (model->r.uneven && count > 1)
		ask.total = ask.mib * count;
	return ask;
}

struct ask ask_of_task(const struct request *task)
{
	struct ask ask = { .count = task->gpu_count, .task = task };

	if (task->gpu_kind == GPU_MEMORY || task->gpu_kind == GPU_WHOLE)
		ask.mib = task->memory_mib;
	return ask;
}

static bool is_whole(const struct ask *ask)
{
	return ask->task && ask->task->gpu_kind == GPU_WHOLE;
}

static bool wants_whole(const struct site_need *need)
{
	return need->task && need->task->gpu_kind == GPU_WHOLE;
}

/* Whether the GPU could be used if enough of it were free. */
static bool may_use(const struct plot *plot, const struct gpu *gpu)
{
	const struct config_record *config = &plot->sched->config;

	if (!filter_allows(plot->need->filter, gpu) || !gpu_is_open(gpu, config) ||
	    (gpu->promised_ms != INT64_MAX && plot->need->model))
		return false;
	if (wants_whole(plot->need))
		return gpu->books.claims == 0 &&
		       gpu->r.foreign_mib <= config->foreign_tolerance_mib;
	return plot->now ? gpu_shareable_now(gpu) : gpu_shareable_later(gpu);
}

bool plot_begin(struct plot *plot, const struct sched *sched, const struct site_need *need,
                struct node *node, bool now)
{
	int64_t cpu = host_free_later(&node->cpu, node->r.cpu_milli);
	int64_t host = host_free_later(&node->host, node->r.host_bytes);

	plot->sched = sched;
	plot->need = need;
	plot->node = node;
	plot->now = now;
	plot->slot_count = plot->gone_count = 0;
	plot->limited = false;
	if (!node_is_open(node) || !bitset_has(&need->filter->nodes, (size_t)node->slot))
		return false;
	plot->cpu_milli = now ? min64(cpu, host_free_now(&node->cpu, node->r.cpu_milli)) : cpu;
	plot->host_bytes = now ? min64(host, host_free_now(&node->host, node->r.host_bytes)) : host;
	plot->count = node->gpu_count;
	for (int i = 0; i < node->gpu_count; i++) {
		struct gpu *gpu = node->gpus[i];
		int64_t later = gpu_free_later(gpu);
		plot->gpu[i] = gpu;
		plot->owners[i] = gpu->books.owners - (now ? 0 : gpu->books.releasing_owners);
		plot->free_mib[i] = !may_use(plot, gpu) ? -1
		                    : now               ? min64(gpu_free_now(gpu), later)
		                                        : max64(later, 0);
	}
	return true;
}

static int place_of(const struct plot *plot, const struct gpu *gpu)
{
	int i = 0;

	while (plot->gpu[i] != gpu)
		i++;
	return i;
}

/* Adds what the slot has (sign 1), or takes it back. */
static void change(struct plot *plot, int slot, int sign)
{
	const struct reservation *reservation = plot->slots[slot]->reservation;

	for (int i = 0; i < reservation->part_count; i++) {
		const struct part *part = &reservation->parts[i];
		int at = place_of(plot, part->gpu);
		plot->owners[at] -= sign;
		if (plot->free_mib[at] >= 0)
			plot->free_mib[at] += sign * max64(part->mib, part->measured_mib);
	}
	plot->cpu_milli += sign * reservation->cpu_milli;
	plot->host_bytes += sign * reservation->host_bytes;
	plot->gone[slot] = sign > 0;
	plot->gone_count += sign;
}

void plot_go(struct plot *plot, int slot)
{
	change(plot, slot, 1);
}

void plot_stay(struct plot *plot, int slot)
{
	change(plot, slot, -1);
}

void plot_offer(struct plot *plot, struct slot *slot)
{
	int at = plot->slot_count;

	if (at == SITE_VICTIMS_MAX)
		return;
	for (; at > 0 && plot->slots[at - 1]->cold_key > slot->cold_key; at--)
		plot->slots[at] = plot->slots[at - 1];
	plot->slots[at] = slot;
	plot->gone[plot->slot_count++] = false;
}

/* Counts of a model's slots, in one sketch after the other. */
static void count_offered(struct plot *plot)
{
	for (int i = 0; i < plot->slot_count; i++)
		plot->slots[i]->model->offered = 0;
	for (int i = 0; i < plot->slot_count; i++) {
		struct model *model = plot->slots[i]->model;
		plot->limited = plot->limited || ++model->offered > evict_spare(model);
	}
}

void plot_offer_all(struct plot *plot)
{
	for (int i = 0; i < plot->node->reservation_count; i++) {
		const struct reservation *reservation = plot->node->reservations[i];
		struct slot *slot = reservation->slot;
		if (slot && slot->listed && reservation->phase == PHASE_LIVE &&
		    slot->model != plot->need->model)
			plot_offer(plot, slot);
	}
	count_offered(plot);
}

int64_t plot_ask_mib(const struct ask *ask, const struct gpu *gpu)
{
	if (ask->total)
		return 1;
	if (!ask->task)
		return ask->mib;
	return is_whole(ask) ? max64(ask->mib, 1) : fit_mib(ask->task, gpu);
}

bool plot_gpu_fits(const struct plot *plot, const struct ask *ask, int gpu)
{
	if (is_whole(ask) && plot->owners[gpu] > 0)
		return false;
	return plot->free_mib[gpu] >= max64(plot_ask_mib(ask, plot->gpu[gpu]), 1);
}

/* Lower is what the policy likes: the least used, or the least left over. */
static int64_t gpu_score(const struct plot *plot, const struct ask *ask, int gpu)
{
	int64_t usable = max64(gpu_usable_mib(plot->gpu[gpu]), 1), left = plot->free_mib[gpu];

	if (ask->total) /* the roomiest can take the largest parts */
		return -left;
	if (plot->need->policy == SLOT_PACK)
		return left - plot_ask_mib(ask, plot->gpu[gpu]);
	return (usable - left) * (INT64_C(1) << 20) / usable;
}

/* GPUs that fit, the best first. */
static int fitting(const struct plot *plot, const struct ask *ask, int *gpus, int64_t *scores)
{
	int count = 0;

	for (int i = 0; i < plot->count; i++) {
		if (!plot_gpu_fits(plot, ask, i))
			continue;
		int64_t score = gpu_score(plot, ask, i);
		int at = count++;
		for (; at > 0 && scores[at - 1] > score; at--) {
			scores[at] = scores[at - 1];
			gpus[at] = gpus[at - 1];
		}
		scores[at] = score;
		gpus[at] = i;
	}
	return count;
}

/* The first `need` of those in an NVLink group (0: of all), into `chosen`; false
 * if there are too few, or uneven parts would not add up. */
static bool take(const struct plot *plot, const struct ask *ask, const int *gpus, int count,
                 int64_t group, int *chosen)
{
	int64_t sum = 0;
	int taken = 0;

	for (int i = 0; i < count && taken < ask->count; i++) {
		if (group && plot->gpu[gpus[i]]->r.nvlink_group != group)
			continue;
		sum += plot->free_mib[gpus[i]];
		chosen[taken++] = gpus[i];
	}
	return taken == ask->count && sum >= ask->total;
}

/* The group in which the best GPUs are linked; 0: in none are there enough. */
static int64_t best_group(const struct plot *plot, const struct ask *ask, const int *gpus,
                          int count)
{
	int chosen[PARTS_MAX];

	for (int i = 0; i < count && ask->count > 1; i++) {
		int64_t group = plot->gpu[gpus[i]]->r.nvlink_group;
		if (group && take(plot, ask, gpus, count, group, chosen))
			return group;
	}
	return 0;
}

static struct part part_of(const struct ask *ask, struct gpu *gpu, int64_t mib)
{
	static const struct request shared = { .gpu_kind = GPU_MEMORY, .gpu_count = 1 };

	if (!ask->task)
		return fit_part(&shared, gpu, mib);
	return fit_part(ask->task, gpu, fit_mib(ask->task, gpu));
}

/* Uneven parts are as even as the GPUs allow: those with least room first. */
static void divide(const struct plot *plot, const struct ask *ask, const int *chosen,
                   struct site *site)
{
	int64_t left = ask->total;

	for (int i = ask->count - 1; i >= 0; i--) {
		struct gpu *gpu = plot->gpu[chosen[i]];
		int64_t even = (left + i) / (i + 1);
		int64_t mib = ask->total ? min64(even, plot->free_mib[chosen[i]]) : ask->mib;
		site->parts[i] = part_of(ask, gpu, mib);
		left -= mib;
	}
}

bool plot_fit(const struct plot *plot, const struct ask *ask, struct site *site)
{
	int gpus[GPUS_PER_NODE_MAX], chosen[PARTS_MAX];
	int64_t scores[GPUS_PER_NODE_MAX];

	if (plot->cpu_milli < plot->need->cpu_milli || plot->host_bytes < plot->need->host_bytes)
		return false;
	int count = fitting(plot, ask, gpus, scores);
	if (count < ask->count)
		return false;
	int64_t group = best_group(plot, ask, gpus, count);
	if (!take(plot, ask, gpus, count, group, chosen))
		return false;
	site->node = plot->node;
	site->now = plot->now;
	site->part_count = ask->count;
	site->linked = group != 0;
	site->score = 0;
	site->evicted_count = 0;
	site->reload_ms = site->used_ms = 0;
	for (int i = 0; i < ask->count; i++)
		site->score += gpu_score(plot, ask, chosen[i]);
	divide(plot, ask, chosen, site);
	return true;
}

void plot_evicted(const struct plot *plot, struct site *site)
{
	for (int i = 0; i < plot->slot_count; i++) {
		if (!plot->gone[i])
			continue;
		struct slot *slot = plot->slots[i];
		site->evicted[site->evicted_count++] = slot;
		site->reload_ms += slot->reload_ms;
		site->used_ms = max64(site->used_ms, slot->r.used_ms);
	}
}
