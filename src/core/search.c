/* search.c - the best node for one task, from the index */
#include <string.h>

#include "core/fit.h"
#include "core/job.h"
#include "core/state.h"

/* Below this many nodes every one that fits is scored. */
#define EXHAUSTIVE_NODES 2048

/* What a node scored for a shape, as long as nothing on it has changed. */
#define SCORES 128
struct score_cache {
	struct {
		int64_t shape;
		uint64_t version, mix;
		uint64_t gpus; /* by their place in the node's list */
		int64_t score;
		bool fits;
	} of[SCORES];
};

static bool may_cache(const struct search *search, const struct node *node)
{
	enum gpu_kind kind = search->shape->request.gpu_kind;

	return search->shape->number > 0 && search->view == VIEW_NOW && node->promised == 0 &&
	       !search->link && kind != GPU_UNEVEN;
}

static void rebuild_parts(const struct search *search, struct choice *choice, uint64_t gpus)
{
	const struct request *request = &search->shape->request;

	choice->part_count = 0;
	for (; gpus; gpus &= gpus - 1) {
		struct gpu *gpu = choice->node->gpus[__builtin_ctzll(gpus)];
		choice->parts[choice->part_count++] = fit_part(request, gpu, fit_mib(request, gpu));
	}
}

/* place_on_node's score, remembered. The parts are filled in later, for the
 * winner alone: `gpus` says which. */
static bool score_node(struct sched *sched, struct search *search, struct node *node,
                       struct choice *choice, uint64_t *gpus)
{
	*gpus = 0;
	if (!may_cache(search, node))
		return place_on_node(sched, search, node, choice);
	if (!node->scores)
		node->scores = memory_zero(1, sizeof(*node->scores));
	size_t at = (size_t)search->shape->number % SCORES;
	if (node->scores->of[at].shape != search->shape->number ||
	    node->scores->of[at].version != node->version ||
	    node->scores->of[at].mix != sched->mix.version) {
		bool fits = place_on_node(sched, search, node, choice);
		uint64_t mask = 0;
		for (int i = 0; i < choice->part_count && fits; i++)
			for (int j = 0; j < node->gpu_count; j++)
				if (node->gpus[j] == choice->parts[i].gpu)
					mask |= UINT64_C(1) << j;
		node->scores->of[at].shape = search->shape->number;
		node->scores->of[at].version = node->version;
		node->scores->of[at].mix = sched->mix.version;
		node->scores->of[at].gpus = mask;
		node->scores->of[at].score = choice->score;
		node->scores->of[at].fits = fits;
	}
	choice->node = node;
	choice->part_count = 0;
	choice->score = node->scores->of[at].score;
	*gpus = node->scores->of[at].gpus;
	return node->scores->of[at].fits;
}

struct scope place_scope(const struct sched *sched, const struct search *search)
{
	const struct index *index = &sched->index;
	const struct request *request = &search->shape->request;
	int64_t level;

	if (search->view == VIEW_LATER)
		return (struct scope){ &index->releasing, 1 };
	switch (request->gpu_kind) {
	case GPU_WHOLE:
		level = min64(request->gpu_count, INDEX_WHOLE_LEVELS - 1);
		return (struct scope){ &index->whole[level], INDEX_WHOLE_LEVELS - (int)level };
	case GPU_FRACTION:
		level = index_milli_level(request->fraction);
		return (struct scope){ &index->milli[level], INDEX_MILLI_LEVELS - (int)level };
	case GPU_MEMORY:
	case GPU_UNEVEN:
		level = index_mib_level(request->gpu_kind == GPU_MEMORY ? request->memory_mib
		                                                        : request->uneven_mib[0]);
		return (struct scope){ &index->mib[level], INDEX_MIB_LEVELS - (int)level };
	default:
		level = index_cpu_level(request->cpu_milli);
		return (struct scope){ &index->cpu[level], INDEX_CPU_LEVELS - (int)level };
	}
}

struct finding {
	struct choice best;
	uint64_t gpus; /* of the best */
	bool found;
	int64_t scored, most; /* `most` are enough */
};

static void look_at(struct sched *sched, struct search *search, struct node *node,
                    struct finding *finding)
{
	struct choice choice;
	uint64_t gpus;

	if (search->only && search->only != node)
		return;
	if (search->rack && node->rack != search->rack)
		return;
	if (!score_node(sched, search, node, &choice, &gpus))
		return;
	finding->scored++;
	if (!finding->found || choice.score < finding->best.score) {
		finding->best.node = node;
		finding->best.score = choice.score;
		finding->gpus = gpus;
		if (!gpus) {
			finding->best.part_count = choice.part_count;
			memcpy(finding->best.parts, choice.parts,
			       (size_t)choice.part_count * sizeof(choice.parts[0]));
		}
		finding->found = true;
	}
}

/* Looks at the members of `set` that are allowed and not in `except`. */
static void look_through(struct sched *sched, struct search *search, const struct bitset *set,
                         const struct bitset *except, struct finding *finding)
{
	const struct bitset *allowed = &search->shape->filter->nodes;

	for (size_t w = 0; w < set->words && w < allowed->words; w++) {
		uint64_t bits = set->word[w] & allowed->word[w];
		if (except)
			bits &= ~except->word[w];
		for (; bits; bits &= bits - 1) {
			size_t slot = w * 64 + (size_t)__builtin_ctzll(bits);
			look_at(sched, search, sched->cluster.by_slot[slot], finding);
			if (finding->scored >= finding->most)
				return;
		}
	}
}

static bool set_is_empty(const struct bitset *set)
{
	for (size_t w = 0; w < set->words; w++)
		if (set->word[w])
			return false;
	return true;
}

/* The best place for one task. In a large cluster the tightest nodes are looked
 * at first and the search ends when enough of them fitted. */
bool place_find(struct sched *sched, struct search *search, struct choice *choice)
{
	struct scope scope = place_scope(sched, search);
	bool by_level = sched->cluster.node_count > EXHAUSTIVE_NODES && scope.levels > 1;
	struct finding finding = { .most = search->any ? 1
		                           : by_level  ? sched->config.search_width
		                                       : INT64_MAX };

	if (search->only)
		look_at(sched, search, (struct node *)search->only, &finding);
	else if (!by_level || search->any)
		look_through(sched, search, scope.sets, NULL, &finding);
	else if (!set_is_empty(scope.sets))
		for (int level = 0; level < scope.levels && finding.scored < finding.most; level++)
			look_through(sched, search, scope.sets + level,
			             level + 1 < scope.levels ? scope.sets + level + 1 : NULL,
			             &finding);
	search->candidates = finding.scored;
	if (!finding.found)
		return false;
	*choice = finding.best;
	if (finding.gpus)
		rebuild_parts(search, choice, finding.gpus);
	return true;
}
