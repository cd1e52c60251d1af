/* plot_evict.c - which idle slots of a node go, so that least is lost */
#include "core/fit.h"
#include "core/plot.h"
#include "core/state.h"

#define SEEDS_MAX 16 /* slots over several GPUs that are tried as the first to go */
#define PAIRS_MAX 48 /* slots of which all pairs are compared */

/* Slots that would have to go from one GPU. */
struct pick {
	int count;
	int16_t at[SITE_VICTIMS_MAX];
	int64_t reload_ms, used_ms;
};

static int64_t part_on(const struct slot *slot, const struct gpu *gpu)
{
	for (int i = 0; i < slot->reservation->part_count; i++) {
		const struct part *part = &slot->reservation->parts[i];
		if (part->gpu == gpu)
			return max64(part->mib, part->measured_mib);
	}
	return -1;
}

/* How many more slots of this one's model may go. */
static int64_t spare_of(const struct plot *plot, const struct slot *slot)
{
	int64_t spare = plot->limited ? evict_spare(slot->model) : 1;

	for (int i = 0; i < plot->slot_count && plot->limited; i++)
		spare -= plot->gone[i] && plot->slots[i]->model == slot->model;
	return spare;
}

/* Slots that could still go from this GPU, the largest part there first. */
static int leavers(const struct plot *plot, int gpu, int16_t *at, int64_t *parts)
{
	int count = 0;

	for (int i = 0; i < plot->slot_count; i++) {
		const struct slot *slot = plot->slots[i];
		int64_t part = plot->gone[i] ? -1 : part_on(slot, plot->gpu[gpu]);
		if (part < 0)
			continue;
		int64_t spare = spare_of(plot, slot);
		for (int j = 0; j < count && plot->limited; j++)
			spare -= plot->slots[at[j]]->model == slot->model;
		if (spare <= 0)
			continue;
		int place = count++;
		for (; place > 0 && parts[place - 1] < part; place--) {
			parts[place] = parts[place - 1];
			at[place] = at[place - 1];
		}
		parts[place] = part;
		at[place] = (int16_t)i;
	}
	return count;
}

static void add(const struct plot *plot, struct pick *pick, int16_t slot)
{
	pick->at[pick->count++] = slot;
	pick->reload_ms += plot->slots[slot]->reload_ms;
	pick->used_ms = max64(pick->used_ms, plot->slots[slot]->r.used_ms);
}

static bool is_cheaper(const struct pick *a, const struct pick *b)
{
	if (a->count != b->count)
		return a->count < b->count;
	if (a->reload_ms != b->reload_ms)
		return a->reload_ms < b->reload_ms;
	return a->used_ms < b->used_ms;
}

/* One slot is enough: the cheapest that is large enough. */
static void pick_one(const struct plot *plot, const int16_t *at, const int64_t *parts, int count,
                     int64_t lack, struct pick *pick)
{
	int16_t best = -1;

	for (int i = 0; i < count && parts[i] >= lack; i++)
		if (best < 0 || at[i] < best)
			best = at[i];
	add(plot, pick, best);
}

static void pick_two(const struct plot *plot, const int16_t *at, const int64_t *parts, int count,
                     int64_t lack, struct pick *pick)
{
	int most = count < PAIRS_MAX ? count : PAIRS_MAX;

	for (int i = 0; i < most; i++)
		for (int j = i + 1; j < most && parts[i] + parts[j] >= lack; j++) {
			struct pick pair = { 0 };
			add(plot, &pair, at[i]);
			add(plot, &pair, at[j]);
			if (pick->count == 0 || is_cheaper(&pair, pick)) {
				pick->count = 2;
				pick->at[0] = at[i];
				pick->at[1] = at[j];
				pick->reload_ms = pair.reload_ms;
				pick->used_ms = pair.used_ms;
			}
		}
}

/* Many: the largest, and then cheaper ones in place of those that are larger
 * than need be. */
static void pick_many(const struct plot *plot, int16_t *at, int64_t *parts, int count, int need,
                      int64_t lack, struct pick *pick)
{
	int64_t sum = 0;

	for (int i = 0; i < need; i++)
		sum += parts[i];
	for (int i = 0; i < need; i++)
		for (int j = need; j < count; j++) {
			if (at[j] >= at[i] || sum - parts[i] + parts[j] < lack)
				continue;
			int16_t slot = at[i];
			int64_t part = parts[i];
			sum += parts[j] - part;
			at[i] = at[j];
			parts[i] = parts[j];
			at[j] = slot;
			parts[j] = part;
		}
	for (int i = 0; i < need; i++)
		add(plot, pick, at[i]);
}

/* The fewest, and of those the cheapest, that make one GPU fit. */
static bool pick_for_gpu(const struct plot *plot, const struct ask *ask, int gpu, struct pick *pick)
{
	int16_t at[SITE_VICTIMS_MAX];
	int64_t parts[SITE_VICTIMS_MAX], sum = 0;
	bool whole = ask->task && ask->task->gpu_kind == GPU_WHOLE;

	pick->count = 0;
	pick->reload_ms = pick->used_ms = 0;
	if (plot->free_mib[gpu] < 0)
		return false;
	int count = leavers(plot, gpu, at, parts), need = 0;
	if (whole && (count != plot->owners[gpu] || gpu_usable_mib(plot->gpu[gpu]) < ask->mib))
		return false;
	int64_t asked = ask->task ? fit_mib(ask->task, plot->gpu[gpu]) : ask->mib;
	int64_t lack = asked - plot->free_mib[gpu];
	while (need < count && (whole || sum < lack))
		sum += parts[need++];
	if (!whole && sum < lack)
		return false;
	if (whole || need > 2)
		pick_many(plot, at, parts, count, need, lack, pick);
	else if (need == 2)
		pick_two(plot, at, parts, count, lack, pick);
	else if (need == 1)
		pick_one(plot, at, parts, count, lack, pick);
	return need > 0;
}

/* The GPU that costs least to clear. */
static bool pick_gpu(const struct plot *plot, const struct ask *ask, struct pick *best)
{
	struct pick pick;
	bool found = false;

	best->count = 0;
	best->reload_ms = best->used_ms = 0;
	for (int i = 0; i < plot->count; i++) {
		int64_t most = found ? best->count * plot->gpu[i]->cold_largest_mib : INT64_MAX;
		if (plot_gpu_fits(plot, ask, i) ||
		    plot_ask_mib(ask, plot->gpu[i]) - plot->free_mib[i] > most ||
		    !pick_for_gpu(plot, ask, i, &pick))
			continue;
		if (!found || is_cheaper(&pick, best)) {
			best->count = pick.count;
			best->reload_ms = pick.reload_ms;
			best->used_ms = pick.used_ms;
			for (int j = 0; j < pick.count; j++)
				best->at[j] = pick.at[j];
			found = true;
		}
	}
	return found;
}

/* For uneven parts, or CPU and host memory: the slot that frees most GPU memory
 * goes next. */
static bool pick_largest(const struct plot *plot, struct pick *pick)
{
	int64_t most = -1;
	int16_t best = -1;

	for (int i = 0; i < plot->slot_count; i++) {
		int64_t sum = 0;
		if (plot->gone[i] || spare_of(plot, plot->slots[i]) <= 0)
			continue;
		for (int g = 0; g < plot->count; g++)
			if (plot->free_mib[g] >= 0)
				sum += max64(part_on(plot->slots[i], plot->gpu[g]), 0);
		if (sum > most) {
			most = sum;
			best = (int16_t)i;
		}
	}
	pick->count = 0;
	pick->reload_ms = pick->used_ms = 0;
	if (best >= 0)
		add(plot, pick, best);
	return best >= 0;
}

/* Everyone who need not go stays, the most valuable first. */
static void spare(struct plot *plot, const struct ask *ask, struct site *site)
{
	for (int i = plot->slot_count - 1; i >= 0; i--) {
		if (!plot->gone[i])
			continue;
		plot_stay(plot, i);
		if (!plot_fit(plot, ask, site))
			plot_go(plot, i);
	}
	plot_fit(plot, ask, site);
}

static void undo(struct plot *plot)
{
	for (int i = 0; i < plot->slot_count; i++)
		if (plot->gone[i])
			plot_stay(plot, i);
}

/* From what has gone already, the next cheapest until it fits. */
static bool clear(struct plot *plot, const struct ask *ask, int most, struct site *site)
{
	struct pick pick;

	while (!plot_fit(plot, ask, site)) {
		bool found =
		    (!ask->total && pick_gpu(plot, ask, &pick)) || pick_largest(plot, &pick);
		if (!found || plot->gone_count - SEEDS_MAX > most)
			return false;
		for (int i = 0; i < pick.count; i++)
			plot_go(plot, pick.at[i]);
	}
	spare(plot, ask, site);
	if (plot->gone_count > most)
		return false;
	plot_evicted(plot, site);
	return true;
}

bool plot_evict(struct plot *plot, const struct ask *ask, int most, struct site *site)
{
	struct site trial;
	int seeds = 0, usable = 0;

	for (int i = 0; i < plot->count; i++)
		usable += plot->free_mib[i] >= 0;
	if (usable < ask->count)
		return false;
	bool found = clear(plot, ask, most, site);

	undo(plot);
	/* A slot over several GPUs may be worth more than it seems on each. */
	for (int i = 0; i < plot->slot_count && ask->count > 1 && seeds < SEEDS_MAX; i++) {
		if (plot->slots[i]->reservation->part_count < 2 ||
		    spare_of(plot, plot->slots[i]) <= 0)
			continue;
		seeds++;
		plot_go(plot, i);
		if (clear(plot, ask, found ? site->evicted_count : most, &trial) &&
		    (!found || site_better(&trial, site))) {
			site_copy(site, &trial);
			found = true;
		}
		undo(plot);
	}
	return found;
}
