/* scarcity.c - what a free GPU is worth more for those who insist on its model */
#include "core/place/scarcity.h"

#include <stdlib.h>
#include <string.h>

#include "core/state.h"

#define ROUNDS 2    /* of pouring; sets that overlap settle */
#define PORTIONS 16 /* in which a set is poured */
#define SCARCE (INT64_C(1) << 20)

void scarcity_free(struct scarcity *premium)
{
	free(premium->models);
	free(premium->members);
	free(premium->poured);
	*premium = (struct scarcity){ 0 };
}

/* What is free of a GPU for those who come. */
static int64_t free_of(const struct gpu *gpu)
{
	return gpu->node->offer.open && gpu->offer.offers != 0 ? gpu->offer.free_milli : 0;
}

static void count_gpu(struct scarcity *premium, struct gpu *gpu)
{
	INVARIANT(gpu->gpu_type >= 0 && (size_t)gpu->gpu_type < premium->model_count);
	gpu->counted_type = gpu->gpu_type;
	gpu->counted_milli = (int32_t)free_of(gpu);
	premium->models[gpu->gpu_type].free_milli += gpu->counted_milli;
}

static void count_all(struct scarcity *premium, const struct cluster *cluster)
{
	for (size_t model = 0; model < premium->model_count; model++)
		premium->models[model].free_milli = 0;
	for (size_t slot = 0; slot < cluster->node_count; slot++)
		for (int i = 0; i < cluster->by_rank[slot]->gpu_count; i++)
			count_gpu(premium, cluster->by_rank[slot]->gpus[i]);
}

static void count_again(struct scarcity *premium, struct node *node)
{
	for (int i = 0; i < node->gpu_count; i++) {
		struct gpu *gpu = node->gpus[i];
		premium->models[gpu->counted_type].free_milli -= gpu->counted_milli;
		count_gpu(premium, gpu);
	}
}

/* Counts again what changed. */
static void follow(struct scarcity *premium, const struct sched *sched)
{
	const struct change_log *changes = &sched->index.change_log;

	if (premium->counted == 0 || !change_log_known(changes, premium->counted))
		count_all(premium, &sched->cluster);
	else
		for (uint64_t number = premium->counted; number < changes->count; number++)
			count_again(
			    premium,
			    sched->cluster.by_rank[changes->ranks[number % CHANGE_LOG_KEPT]]);
	premium->counted = changes->count;
}

/* The numbers of the models, of which some may never have been seen. */
static void add_members(struct scarcity *premium, const char *models, const struct cluster *cluster)
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
			array_reserve(premium->members, premium->member_capacity,
			              premium->member_count + 1);
			premium->members[premium->member_count++] = number;
		}
		models += size + (models[size] == '|');
	}
}

static void list_sets(struct scarcity *premium, const struct sched *sched)
{
	const struct type_demand *insist = &sched->workload_mix.insist;

	premium->member_count = 0;
	premium->set_count = insist->count;
	for (size_t i = 0; i < insist->count; i++) {
		struct scarcity_set *set = &premium->sets[i];
		set->first = (int)premium->member_count;
		add_members(premium, insist->models[i], &sched->cluster);
		set->count = (int)premium->member_count - set->first;
	}
	array_reserve(premium->poured, premium->poured_capacity, premium->member_count);
	premium->insisted = insist->version;
}

static void add_models(struct scarcity *premium, size_t count)
{
	array_reserve(premium->models, premium->model_capacity, count);
	while (premium->model_count < count)
		premium->models[premium->model_count++] = (struct scarcity_type){ 0 };
}

/* What those who insist on each set will ask for, until all that is free is taken. */
static void foresee(struct scarcity *premium, const struct workload_mix *mix)
{
	int64_t free_milli = 0;

	for (size_t model = 0; model < premium->model_count; model++) {
		free_milli += premium->models[model].free_milli;
		premium->models[model].needed_milli = 0;
	}
	for (size_t i = 0; i < premium->set_count; i++)
		premium->sets[i].milli =
		    muldiv_down(mix->insist.milli[i], free_milli, mix->r.asked_milli);
	for (size_t i = 0; i < premium->member_count; i++)
		premium->poured[i] = 0;
}

static int64_t scarcity(int64_t needed_milli, int64_t free_milli)
{
	int64_t of = max64(free_milli, 1);

	return needed_milli < INT64_MAX / SCARCE ? needed_milli * SCARCE / of
	                                         : muldiv_down(needed_milli, SCARCE, of);
}

/* The member of the set that would be least scarce with so much more. */
static int least_scarce(const struct scarcity *premium, const struct scarcity_set *set,
                        int64_t more)
{
	int best = set->first;
	int64_t least = INT64_MAX;

	for (int at = set->first; at < set->first + set->count; at++) {
		const struct scarcity_type *model = &premium->models[premium->members[at]];
		int64_t then = scarcity(model->needed_milli + more, model->free_milli);
		if (then < least) {
			least = then;
			best = at;
		}
	}
	return best;
}

/* Spreads what the set asks for over its models, anew. */
static void pour(struct scarcity *premium, const struct scarcity_set *set)
{
	INVARIANT((size_t)(set->first + set->count) <= premium->member_count);
	int64_t left = set->milli, portion = max64(1, (set->milli + PORTIONS - 1) / PORTIONS);

	for (int at = set->first; at < set->first + set->count; at++) {
		premium->models[premium->members[at]].needed_milli -= premium->poured[at];
		premium->poured[at] = 0;
	}
	if (set->count == 1)
		portion = left;
	for (; left > 0 && set->count > 0; left -= portion) {
		int64_t now = min64(portion, left);
		int at = least_scarce(premium, set, now);
		premium->models[premium->members[at]].needed_milli += now;
		premium->poured[at] += now;
	}
}

/* The scarcity, rounded. */
static int32_t scarcity_for(const struct scarcity_type *model)
{
	int64_t of = max64(model->free_milli, 1);

	return (int32_t)min64((model->needed_milli * SCARCITY_UNIT + of / 2) / of, SCARCITY_MAX);
}

static void set_premium(struct scarcity *premium, size_t model, int32_t to)
{
	INVARIANT(model < premium->model_count && to >= 0 && to <= SCARCITY_MAX);
	premium->version += premium->models[model].premium != to;
	premium->models[model].premium = to;
}

static bool has_premiums(const struct sched *sched)
{
	return policy_has(sched->config.policy, POLICY_SCARCITY) && !sched->workload_mix.r.fixed &&
	       sched->workload_mix.insist.count > 0;
}

static void forget(struct scarcity *premium)
{
	for (size_t model = 0; model < premium->model_count; model++)
		set_premium(premium, model, 0);
	premium->counted = 0;
}

static bool is_current(const struct sched *sched)
{
	const struct scarcity *premium = &sched->scarcity;
	const struct workload_mix *mix = &sched->workload_mix;

	return premium->counted == sched->index.change_log.count &&
	       premium->insisted == mix->insist.version &&
	       premium->asked_milli == mix->r.asked_milli &&
	       premium->model_count == (size_t)sched->cluster.gpu_type_count;
}

void scarcity_refresh(struct sched *sched)
{
	struct scarcity *premium = &sched->scarcity;
	size_t models = (size_t)sched->cluster.gpu_type_count;

	INVARIANT(sched->indexed);
	if (!has_premiums(sched)) {
		if (premium->counted != 0)
			forget(premium);
		return;
	}
	if (is_current(sched))
		return;
	if (premium->insisted != sched->workload_mix.insist.version ||
	    premium->model_count != models)
		list_sets(premium, sched);
	add_models(premium, models);
	follow(premium, sched);
	premium->asked_milli = sched->workload_mix.r.asked_milli;
	foresee(premium, &sched->workload_mix);
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < premium->set_count; i++)
			pour(premium, &premium->sets[i]);
	for (size_t model = 0; model < models; model++)
		set_premium(premium, model, scarcity_for(&premium->models[model]));
}

void scarcity_check(const struct sched *sched)
{
	const struct scarcity *premium = &sched->scarcity;
	int64_t *free_milli;

	if (!sched->indexed || premium->counted != sched->index.change_log.count)
		return;
	free_milli = memory_zero(premium->model_count + 1, sizeof(*free_milli));
	for (size_t slot = 0; slot < sched->cluster.node_count; slot++) {
		const struct node *node = sched->cluster.by_rank[slot];
		for (int i = 0; i < node->gpu_count; i++)
			free_milli[node->gpus[i]->gpu_type] += free_of(node->gpus[i]);
	}
	for (size_t model = 0; model < premium->model_count; model++)
		if (free_milli[model] != premium->models[model].free_milli)
			panic("premium: %lld thousandths of GPUs of model %zu are counted as free, "
			      "%lld are",
			      (long long)premium->models[model].free_milli, model,
			      (long long)free_milli[model]);
	free(free_milli);
}
