/* scarcity.c - what a free GPU is worth more for those who insist on its model */
#include "core/place/scarcity.h"

#include <stdlib.h>
#include <string.h>

#include "core/place/placement.h"

#define ROUNDS 2    /* of pouring; sets that overlap settle */
#define PORTIONS 16 /* in which a set is poured */
#define SCARCE (INT64_C(1) << 20)

void scarcity_free(struct scarcity *scarcity)
{
	free(scarcity->types);
	free(scarcity->members);
	free(scarcity->poured);
	*scarcity = (struct scarcity){ 0 };
}

/* What is free of a GPU for those who come. */
static int64_t free_of(const struct gpu *gpu)
{
	return gpu->node->offer.open && gpu->offer.offers != 0 ? gpu->offer.free_milli : 0;
}

static void count_gpu(struct scarcity *scarcity, struct gpu *gpu)
{
	INVARIANT(gpu->gpu_type >= 0 && (size_t)gpu->gpu_type < scarcity->type_count);
	gpu->counted_type = gpu->gpu_type;
	gpu->counted_milli = (int32_t)free_of(gpu);
	scarcity->types[gpu->gpu_type].free_milli += gpu->counted_milli;
}

static void count_all(struct scarcity *scarcity, const struct cluster *cluster)
{
	for (size_t model = 0; model < scarcity->type_count; model++)
		scarcity->types[model].free_milli = 0;
	for (size_t rank = 0; rank < cluster->node_count; rank++)
		for (int i = 0; i < cluster->by_rank[rank]->gpu_count; i++)
			count_gpu(scarcity, cluster->by_rank[rank]->gpus[i]);
}

static void count_again(struct scarcity *scarcity, struct node *node)
{
	for (int i = 0; i < node->gpu_count; i++) {
		struct gpu *gpu = node->gpus[i];
		scarcity->types[gpu->counted_type].free_milli -= gpu->counted_milli;
		count_gpu(scarcity, gpu);
	}
}

/* Counts again what changed. */
static void scarcity_follow(struct scarcity *scarcity, const struct placement *placement)
{
	const struct change_log *changes = &placement->index->change_log;

	if (scarcity->counted == 0 || !change_log_known(changes, scarcity->counted))
		count_all(scarcity, placement->cluster);
	else
		for (uint64_t number = scarcity->counted; number < changes->count; number++)
			count_again(
			    scarcity,
			    placement->cluster->by_rank[changes->ranks[number % CHANGE_LOG_KEPT]]);
	scarcity->counted = changes->count;
}

/* The numbers of the models, of which some may never have been seen. */
static void add_members(struct scarcity *scarcity, const char *models,
                        const struct cluster *cluster)
{
	char name[512];

	while (*models) {
		size_t size = strcspn(models, "|");
		int number = -1;
		if (size < sizeof(name)) {
			memcpy(name, models, size);
			name[size] = '\0';
			number = cluster_gpu_type(cluster, name);
		}
		if (number >= 0) {
			array_reserve(scarcity->members, scarcity->member_capacity,
			              scarcity->member_count + 1);
			scarcity->members[scarcity->member_count++] = number;
		}
		models += size + (models[size] == '|');
	}
}

static void list_sets(struct scarcity *scarcity, const struct placement *placement)
{
	const struct type_demand *demand = &placement->workload_mix.type_demand;

	scarcity->member_count = 0;
	scarcity->set_count = demand->count;
	for (size_t i = 0; i < demand->count; i++) {
		struct scarcity_set *set = &scarcity->sets[i];
		set->first = (int)scarcity->member_count;
		add_members(scarcity, demand->models[i], placement->cluster);
		set->count = (int)scarcity->member_count - set->first;
	}
	array_reserve(scarcity->poured, scarcity->poured_capacity, scarcity->member_count);
	scarcity->insisted = demand->version;
}

static void add_models(struct scarcity *scarcity, size_t count)
{
	array_reserve(scarcity->types, scarcity->type_capacity, count);
	while (scarcity->type_count < count)
		scarcity->types[scarcity->type_count++] = (struct scarcity_type){ 0 };
}

/* What those who insist on each set will ask for, until all that is free is taken. */
static void scarcity_foresee(struct scarcity *scarcity, const struct workload_mix *mix)
{
	int64_t free_milli = 0;

	for (size_t model = 0; model < scarcity->type_count; model++) {
		free_milli += scarcity->types[model].free_milli;
		scarcity->types[model].needed_milli = 0;
	}
	for (size_t i = 0; i < scarcity->set_count; i++)
		scarcity->sets[i].milli =
		    muldiv_down(mix->type_demand.milli[i], free_milli, mix->r.asked_milli);
	for (size_t i = 0; i < scarcity->member_count; i++)
		scarcity->poured[i] = 0;
}

static int64_t scarcity_ratio(int64_t needed_milli, int64_t free_milli)
{
	int64_t of = max64(free_milli, 1);

	return needed_milli < INT64_MAX / SCARCE ? needed_milli * SCARCE / of
	                                         : muldiv_down(needed_milli, SCARCE, of);
}

/* The member of the set that would be least scarce with so much more. */
static int least_scarce(const struct scarcity *scarcity, const struct scarcity_set *set,
                        int64_t more)
{
	int best = set->first;
	int64_t least = INT64_MAX;

	for (int at = set->first; at < set->first + set->count; at++) {
		const struct scarcity_type *model = &scarcity->types[scarcity->members[at]];
		int64_t then = scarcity_ratio(model->needed_milli + more, model->free_milli);
		if (then < least) {
			least = then;
			best = at;
		}
	}
	return best;
}

/* Distributes the set's demand over its GPU types again. */
static void pour(struct scarcity *scarcity, const struct scarcity_set *set)
{
	INVARIANT((size_t)(set->first + set->count) <= scarcity->member_count);
	int64_t left = set->milli, portion = max64(1, (set->milli + PORTIONS - 1) / PORTIONS);

	for (int at = set->first; at < set->first + set->count; at++) {
		scarcity->types[scarcity->members[at]].needed_milli -= scarcity->poured[at];
		scarcity->poured[at] = 0;
	}
	if (set->count == 1)
		portion = left;
	for (; left > 0 && set->count > 0; left -= portion) {
		int64_t now = min64(portion, left);
		int at = least_scarce(scarcity, set, now);
		scarcity->types[scarcity->members[at]].needed_milli += now;
		scarcity->poured[at] += now;
	}
}

/* The scarcity, rounded. */
static int32_t scarcity_for(const struct scarcity_type *model)
{
	int64_t of = max64(model->free_milli, 1);

	return (int32_t)min64((model->needed_milli * SCARCITY_UNIT + of / 2) / of, SCARCITY_MAX);
}

static void set_premium(struct scarcity *scarcity, size_t model, int32_t to)
{
	INVARIANT(model < scarcity->type_count && to >= 0 && to <= SCARCITY_MAX);
	scarcity->version += scarcity->types[model].scarcity != to;
	scarcity->types[model].scarcity = to;
}

static bool has_premiums(const struct placement *placement)
{
	return policy_has(placement->config->policy, POLICY_SCARCITY) &&
	       !placement->workload_mix.r.fixed && placement->workload_mix.type_demand.count > 0;
}

static void scarcity_forget(struct scarcity *scarcity)
{
	for (size_t model = 0; model < scarcity->type_count; model++)
		set_premium(scarcity, model, 0);
	scarcity->counted = 0;
}

static bool is_current(const struct placement *placement)
{
	const struct scarcity *scarcity = &placement->scarcity;
	const struct workload_mix *mix = &placement->workload_mix;

	return scarcity->counted == placement->index->change_log.count &&
	       scarcity->insisted == mix->type_demand.version &&
	       scarcity->asked_milli == mix->r.asked_milli &&
	       scarcity->type_count == (size_t)placement->cluster->gpu_type_count;
}

void scarcity_refresh(struct placement *placement)
{
	struct scarcity *scarcity = &placement->scarcity;
	size_t models = (size_t)placement->cluster->gpu_type_count;

	INVARIANT(placement->index->built);
	if (!has_premiums(placement)) {
		if (scarcity->counted != 0)
			scarcity_forget(scarcity);
		return;
	}
	if (is_current(placement))
		return;
	if (scarcity->insisted != placement->workload_mix.type_demand.version ||
	    scarcity->type_count != models)
		list_sets(scarcity, placement);
	add_models(scarcity, models);
	scarcity_follow(scarcity, placement);
	scarcity->asked_milli = placement->workload_mix.r.asked_milli;
	scarcity_foresee(scarcity, &placement->workload_mix);
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < scarcity->set_count; i++)
			pour(scarcity, &scarcity->sets[i]);
	for (size_t model = 0; model < models; model++)
		set_premium(scarcity, model, scarcity_for(&scarcity->types[model]));
}

void scarcity_check(const struct placement *placement)
{
	const struct scarcity *scarcity = &placement->scarcity;
	int64_t *free_milli;

	if (!placement->index->built || scarcity->counted != placement->index->change_log.count)
		return;
	free_milli = memory_zero(scarcity->type_count + 1, sizeof(*free_milli));
	for (size_t rank = 0; rank < placement->cluster->node_count; rank++) {
		const struct node *node = placement->cluster->by_rank[rank];
		for (int i = 0; i < node->gpu_count; i++)
			free_milli[node->gpus[i]->gpu_type] += free_of(node->gpus[i]);
	}
	for (size_t model = 0; model < scarcity->type_count; model++)
		if (free_milli[model] != scarcity->types[model].free_milli)
			panic(
			    "scarcity: %lld thousandths of GPUs of model %zu are counted as free, "
			    "%lld are",
			    (long long)scarcity->types[model].free_milli, model,
			    (long long)free_milli[model]);
	free(free_milli);
}
