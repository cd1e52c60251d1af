/* rack_capacity.c - how many tasks of a shape each rack has room for, kept as nodes change */
#include "core/place/rack_capacity.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/place/placement.h"

static void tally_free(struct rack_tally *tally)
{
	bitset_free(&tally->taking);
	free(tally->of_node);
	free(tally->of_rack);
	*tally = (struct rack_tally){ 0 };
}

void rack_capacity_free(struct rack_capacity *racks)
{
	for (size_t i = 0; i < RACK_CAPACITY_SHAPES; i++)
		tally_free(&racks->of[i]);
}

static void tally_begin(struct rack_tally *tally, int64_t shape, const struct cluster *cluster)
{
	tally_free(tally);
	tally->shape = shape;
	bitset_grow(&tally->taking, cluster->node_count);
	tally->of_node = memory_zero(cluster->node_count, sizeof(*tally->of_node));
	tally->of_rack = memory_zero((size_t)cluster->rack_count + 1, sizeof(*tally->of_rack));
}

/* The nodes of word `w` that may have room. */
static uint64_t candidates(const struct placement *placement, const struct search *search, size_t w)
{
	return place_scope(placement, search).sets->word[w] & search->shape->filter->nodes.word[w];
}

static void rack_capacity_put(struct rack_tally *tally, const struct node *node, int64_t tasks)
{
	INVARIANT(tasks >= 0 && tasks <= TASKS_MAX && node->rack >= 0);
	tally->of_rack[node->rack] += tasks - tally->of_node[node->rank];
	tally->of_node[node->rank] = (int32_t)tasks;
	bitset_assign(&tally->taking, (size_t)node->rank, tasks > 0);
}

/* Counts again on some nodes of word `w`. Most that have no room had none before. */
static void rack_capacity_renew(struct placement *placement, struct search *search,
                                struct rack_tally *tally, size_t w, uint64_t nodes)
{
	uint64_t may_take = candidates(placement, search, w);

	nodes &= may_take | tally->taking.word[w];
	while (nodes) {
		size_t rank = bitset_take(&nodes, w);
		const struct node *node = placement->cluster->by_rank[rank];
		rack_capacity_put(tally, node,
		                  may_take >> rank % 64 & 1 ? place_count(placement, search, node)
		                                            : 0);
	}
}

/* The room of the shape as things are, but for promises. */
static const struct rack_tally *rack_capacity_follow(struct placement *placement,
                                                     const struct search *given)
{
	const struct change_log *changes = &placement->index->change_log;
	struct rack_tally *tally =
	    &placement->rack_capacity.of[given->shape->number % RACK_CAPACITY_SHAPES];
	struct search search = *given;

	search.ignore_promises = search.ignore_windows = true;
	if (tally->shape != given->shape->number || !change_log_known(changes, tally->seen))
		tally_begin(tally, given->shape->number, placement->cluster);
	uint64_t *changed = memory_zero(changes->words, sizeof(*changed));
	if (tally->seen > 0)
		change_log_since(changes, tally->seen, changed);
	for (size_t w = 0; w < changes->words; w++)
		rack_capacity_renew(placement, &search, tally, w,
		                    tally->seen > 0 ? changed[w] : UINT64_MAX);
	free(changed);
	tally->seen = changes->count;
	return tally;
}

/* Adds what the nodes of a set have room for, less what is counted already. */
static void rack_capacity_add_nodes(struct placement *placement, struct search *search,
                                    const struct bitset *set, const struct rack_tally *counted,
                                    int64_t *room)
{
	for (size_t w = 0; w < placement->index->change_log.words; w++) {
		uint64_t bits = set->word[w] & candidates(placement, search, w);
		while (bits) {
			size_t rank = bitset_take(&bits, w);
			const struct node *node = placement->cluster->by_rank[rank];
			if (node->rack)
				room[node->rack] += place_count(placement, search, node) -
				                    (counted ? counted->of_node[rank] : 0);
		}
	}
}

void rack_capacity_count(struct placement *placement, struct search *search, int64_t *room)
{
	const struct index *index = placement->index;
	size_t size = ((size_t)placement->cluster->rack_count + 1) * sizeof(*room);

	INVARIANT(placement->index->built && placement->cluster->ordered);
	INVARIANT(placement->index->built && !search->link);
	if (search->view != VIEW_NOW || search->shape->number == 0 ||
	    search->shape->filter->demand) {
		memset(room, 0, size);
		rack_capacity_add_nodes(placement, search, place_scope(placement, search).sets,
		                        NULL, room);
		return;
	}
	const struct rack_tally *kept = rack_capacity_follow(placement, search);
	memcpy(room, kept->of_rack, size);
	if (!search->ignore_promises)
		rack_capacity_add_nodes(placement, search, &index->promised, kept, room);
}

static void check_tally(struct placement *placement, const struct rack_tally *tally)
{
	const struct shape *shape = placement->shapes->all[tally->shape - 1];
	struct search search = { .shape = shape, .ignore_promises = true, .ignore_windows = true };
	int64_t *sums = memory_zero((size_t)placement->cluster->rack_count + 1, sizeof(*sums));

	filter_refresh(shape->filter, placement->cluster, placement->cluster->version);
	for (size_t rank = 0; rank < placement->cluster->node_count; rank++) {
		const struct node *node = placement->cluster->by_rank[rank];
		bool right = placement->index->change_log.last[rank] < tally->seen;
		bool may_take = candidates(placement, &search, rank / 64) >> rank % 64 & 1;
		int64_t takes = may_take ? place_count(placement, &search, node) : 0;
		if (right && tally->of_node[rank] != takes)
			panic("racks: node %s does not take what is noted for shape %" PRId64,
			      node->r.name, shape->number);
		INVARIANT(bitset_has(&tally->taking, rank) == (tally->of_node[rank] > 0));
		sums[node->rack] += tally->of_node[rank];
	}
	for (int rack = 0; rack <= placement->cluster->rack_count; rack++)
		INVARIANT(sums[rack] == tally->of_rack[rack]);
	free(sums);
}

void rack_capacity_check(struct placement *placement)
{
	for (size_t i = 0; i < RACK_CAPACITY_SHAPES && placement->index->built; i++) {
		const struct rack_tally *tally = &placement->rack_capacity.of[i];
		if (tally->shape > 0 &&
		    change_log_known(&placement->index->change_log, tally->seen))
			check_tally(placement, tally);
	}
}
