/* gradient.c - fragmentation gradient descent as it was published */
#include "sim/trace/gradient.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define SCORE_MAX 100

/* What a kind scores on a node; -1: it does not fit. */
struct gradient_score {
	uint32_t version; /* of the node */
	int32_t score;
};

static int by_times(const void *a, const void *b)
{
	const struct workload_kind *one = a, *other = b;

	return (one->times < other->times) - (one->times > other->times);
}

/* Counts the pods by what fragmentation depends on, most frequent first. `kinds` has
 * room for all kinds of the list; returns how many are used. */
static int64_t count_kinds(const struct openb *openb, struct workload_kind *kinds)
{
	size_t used = 0;

	for (size_t i = 0; i < openb->pod_count; i++) {
		const struct openb_kind *pod = &openb->kinds[openb->pods[i]];
		size_t at = 0;
		while (at < used && (kinds[at].gpu_milli != pod->gpu_milli ||
		                     kinds[at].gpu_count != pod->gpu_count ||
		                     kinds[at].cpu_milli != pod->cpu_milli))
			at++;
		if (at == used)
			kinds[used++] = (struct workload_kind){ pod->gpu_milli, pod->gpu_count,
				                                pod->cpu_milli, 0 };
		kinds[at].times++;
	}
	qsort(kinds, used, sizeof(*kinds), by_times);
	return (int64_t)used;
}

/* The most frequent kinds that make up 95% of the list. */
static bool learn(struct gradient *gradient, struct error *error)
{
	const struct openb *openb = gradient->openb;
	struct workload_kind *kinds = memory_zero(openb->kind_count, sizeof(*kinds));
	int64_t used = count_kinds(openb, kinds), told = 0, covered = 0;
	int64_t all = (int64_t)openb->pod_count;

	while (told < min64(used, MIX_ROWS) && covered * 20 < all * 19)
		covered += kinds[told++].times;
	struct rows rows = { .at = (const int64_t *)kinds, .count = told };
	bool fine = workload_mix_fix(&gradient->mix, rows, error);
	free(kinds);
	return fine;
}

bool gradient_begin(struct gradient *gradient, const struct openb *openb, struct error *error)
{
	*gradient = (struct gradient){ .openb = openb };
	workload_mix_init(&gradient->mix);
	gradient->scores =
	    memory_zero(openb->kind_count * openb->node_count, sizeof(*gradient->scores));
	return learn(gradient, error);
}

void gradient_free(struct gradient *gradient)
{
	workload_mix_free(&gradient->mix);
	free(gradient->scores);
}

/* Fragmentation of the node when parts of `milli` each are taken from its GPUs with
 * enough left, beginning with GPU `from`. */
static int64_t after(const struct gradient *gradient, const struct pack_node *node,
                     const struct openb_kind *kind, int64_t from)
{
	int32_t milli[GPUS_PER_NODE_MAX];
	int64_t left = kind->gpu_count;

	memcpy(milli, node->free_milli, sizeof(milli));
	for (int64_t g = from; g < node->is->gpu_count && left > 0; g++) {
		if (milli[g] < kind->gpu_milli)
			continue;
		milli[g] -= (int32_t)kind->gpu_milli;
		left--;
	}
	return workload_mix_fragmentation(&gradient->mix, node->cpu_milli - kind->cpu_milli, milli,
	                                  (int)node->is->gpu_count);
}

static int32_t gradient_score_of(const struct gradient *gradient, const struct openb_kind *kind,
                                 const struct pack_node *node)
{
	int64_t before, best = INT64_MAX;

	if (!pack_node_fits(node, kind))
		return -1;
	before = workload_mix_fragmentation(&gradient->mix, node->cpu_milli, node->free_milli,
	                                    (int)node->is->gpu_count);
	if (kind->gpu_count != 1)
		best = after(gradient, node, kind, 0);
	for (int64_t g = 0; g < node->is->gpu_count && kind->gpu_count == 1; g++)
		if (node->free_milli[g] >= kind->gpu_milli)
			best = min64(best, after(gradient, node, kind, g));
	double growth = (double)(best - before) / ((double)MIX_UNIT * WHOLE_GPU);
	return (int32_t)(SCORE_MAX / (1 + exp(growth)));
}

int64_t gradient_choose(struct gradient *gradient, size_t kind, const struct pack_node *nodes)
{
	size_t count = gradient->openb->node_count;
	struct gradient_score *scores = &gradient->scores[kind * count];
	int64_t best = -1;

	for (size_t i = 0; i < count; i++) {
		if (scores[i].version != nodes[i].version) {
			scores[i].score =
			    gradient_score_of(gradient, &gradient->openb->kinds[kind], &nodes[i]);
			scores[i].version = nodes[i].version;
		}
		if (scores[i].score >= 0 && (best < 0 || scores[i].score > scores[best].score))
			best = (int64_t)i;
	}
	return best;
}
