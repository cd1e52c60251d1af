/* premium.c - what a free GPU is worth more for those who insist on its model */
#include "core/place/premium.h"

#include <stdlib.h>
#include <string.h>

#include "core/state.h"

#define ROUNDS 2    /* of pouring; sets that overlap settle */
#define PORTIONS 16 /* in which a set is poured */
#define SCARCE (INT64_C(1) << 20)

void premium_free(struct premium *premium)
{
	free(premium->models);
	free(premium->members);
	free(premium->poured);
	*premium = (struct premium){ 0 };
}

/* What is free of a GPU for those who come. */
static int64_t free_of(const struct gpu *gpu)
{
	return gpu->node->summary.open && gpu->summary.offers != 0 ? gpu->summary.free_milli : 0;
}

static void count_gpu(struct premium *premium, struct gpu *gpu)
{
	INVARIANT(gpu->model >= 0 && (size_t)gpu->model < premium->model_count);
	gpu->counted_model = gpu->model;
	gpu->counted_milli = (int32_t)free_of(gpu);
	premium->models[gpu->model].free_milli += gpu->counted_milli;
}

static void count_all(struct premium *premium, const struct cluster *cluster)
{
	for (size_t model = 0; model < premium->model_count; model++)
		premium->models[model].free_milli = 0;
	for (size_t slot = 0; slot < cluster->node_count; slot++)
		for (int i = 0; i < cluster->by_slot[slot]->gpu_count; i++)
			count_gpu(premium, cluster->by_slot[slot]->gpus[i]);
}

static void count_again(struct premium *premium, struct node *node)
{
	for (int i = 0; i < node->gpu_count; i++) {
		struct gpu *gpu = node->gpus[i];
		premium->models[gpu->counted_model].free_milli -= gpu->counted_milli;
		count_gpu(premium, gpu);
	}
}

/* Counts again what changed. */
static void follow(struct premium *premium, const struct sched *sched)
{
	const struct changes *changes = &sched->index.changes;

	if (premium->counted == 0 || !changes_known(changes, premium->counted))
		count_all(premium, &sched->cluster);
	else
		for (uint64_t number = premium->counted; number < changes->count; number++)
			count_again(premium,
			            sched->cluster.by_slot[changes->slots[number % CHANGES_KEPT]]);
	premium->counted = changes->count;
}

/* The numbers of the models, of which some may never have been seen. */
static void add_members(struct premium *premium, const char *models, const struct cluster *cluster)
{
	char name[512];

	while (*models) {
		size_t size = strcspn(models, "|");
		int number = -1;
		if (size < sizeof(name)) {
			memcpy(name, models, size);
			name[size] = '\0';
			number = cluster_model(cluster, name);
		}
		if (number >= 0) {
			array_reserve(premium->members, premium->member_capacity,
			              premium->member_count + 1);
			premium->members[premium->member_count++] = number;
		}
		models += size + (models[size] == '|');
	}
}

static void list_sets(struct premium *premium, const struct sched *sched)
{
	const struct insist *insist = &sched->mix.insist;

	premium->member_count = 0;
	premium->set_count = insist->count;
	for (size_t i = 0; i < insist->count; i++) {
		struct premium_set *set = &premium->sets[i];
		set->first = (int)premium->member_count;
		add_members(premium, insist->models[i], &sched->cluster);
		set->count = (int)premium->member_count - set->first;
	}
	array_reserve(premium->poured, premium->poured_capacity, premium->member_count);
	premium->insisted = insist->version;
}

static void add_models(struct premium *premium, size_t count)
{
	array_reserve(premium->models, premium->model_capacity, count);
	while (premium->model_count < count)
		premium->models[premium->model_count++] = (struct premium_model){ 0 };
}

/* What those who insist on each set will ask for, until all that is free is taken. */
static void foresee(struct premium *premium, const struct mix *mix)
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
static int least_scarce(const struct premium *premium, const struct premium_set *set, int64_t more)
{
	int best = set->first;
	int64_t least = INT64_MAX;

	for (int at = set->first; at < set->first + set->count; at++) {
		const struct premium_model *model = &premium->models[premium->members[at]];
		int64_t then = scarcity(model->needed_milli + more, model->free_milli);
		if (then < least) {
			least = then;
			best = at;
		}
	}
	return best;
}

/* Spreads what the set asks for over its models, anew. */
static void pour(struct premium *premium, const struct premium_set *set)
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
static int32_t premium_for(const struct premium_model *model)
{
	int64_t of = max64(model->free_milli, 1);

	return (int32_t)min64((model->needed_milli * PREMIUM_UNIT + of / 2) / of, PREMIUM_MAX);
}

static void set_premium(struct premium *premium, size_t model, int32_t to)
{
	INVARIANT(model < premium->model_count && to >= 0 && to <= PREMIUM_MAX);
	premium->version += premium->models[model].premium != to;
	premium->models[model].premium = to;
}

static bool has_premiums(const struct sched *sched)
{
	return policy_has(sched->config.policy, POLICY_PREMIUMS) && !sched->mix.r.fixed &&
	       sched->mix.insist.count > 0;
}

static void forget(struct premium *premium)
{
	for (size_t model = 0; model < premium->model_count; model++)
		set_premium(premium, model, 0);
	premium->counted = 0;
}

static bool is_current(const struct sched *sched)
{
	const struct premium *premium = &sched->premium;
	const struct mix *mix = &sched->mix;

	return premium->counted == sched->index.changes.count &&
	       premium->insisted == mix->insist.version &&
	       premium->asked_milli == mix->r.asked_milli &&
	       premium->model_count == (size_t)sched->cluster.model_count;
}

void premium_refresh(struct sched *sched)
{
	struct premium *premium = &sched->premium;
	size_t models = (size_t)sched->cluster.model_count;

	INVARIANT(sched->indexed);
	if (!has_premiums(sched)) {
		if (premium->counted != 0)
			forget(premium);
		return;
	}
	if (is_current(sched))
		return;
	if (premium->insisted != sched->mix.insist.version || premium->model_count != models)
		list_sets(premium, sched);
	add_models(premium, models);
	follow(premium, sched);
	premium->asked_milli = sched->mix.r.asked_milli;
	foresee(premium, &sched->mix);
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < premium->set_count; i++)
			pour(premium, &premium->sets[i]);
	for (size_t model = 0; model < models; model++)
		set_premium(premium, model, premium_for(&premium->models[model]));
}

void premium_check(const struct sched *sched)
{
	const struct premium *premium = &sched->premium;
	int64_t *free_milli;

	if (!sched->indexed || premium->counted != sched->index.changes.count)
		return;
	free_milli = memory_zero(premium->model_count + 1, sizeof(*free_milli));
	for (size_t slot = 0; slot < sched->cluster.node_count; slot++) {
		const struct node *node = sched->cluster.by_slot[slot];
		for (int i = 0; i < node->gpu_count; i++)
			free_milli[node->gpus[i]->model] += free_of(node->gpus[i]);
	}
	for (size_t model = 0; model < premium->model_count; model++)
		if (free_milli[model] != premium->models[model].free_milli)
			panic("premium: %lld thousandths of GPUs of model %zu are counted as free, "
			      "%lld are",
			      (long long)premium->models[model].free_milli, model,
			      (long long)free_milli[model]);
	free(free_milli);
}
