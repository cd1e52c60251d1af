/* score_cache.h - what every node scores for a shape, kept as nodes change */
#ifndef CORE_PLACE_SCORE_CACHE_H
#define CORE_PLACE_SCORE_CACHE_H

#include "base/bitset.h"
#include "base/tournament.h"
#include "core/place/place.h"

/* The scores of one shape, of tasks that start now, by rank: TOURNAMENT_NONE where
 * the node does not fit, or where a promise counts on it: what fits beside a
 * promise depends on who asks, and when.
 *
 * In a cluster of at most SCORE_CACHE_FOLLOWS nodes the cache follows the index: all
 * scores are right but those of nodes whose last change is not below `seen`, or
 * whose promises changed. In a larger one, where a search looks at some nodes
 * only, a score is right while versions[rank] is the version of its node, and no
 * best one is kept.
 *
 * A scarcity changes the scores of nodes with GPUs of its model, and of no others. A node
 * with GPUs of several models is scored again after every change of a scarcity. */
#define SCARCITY_MIXED UINT8_MAX
_Static_assert(SCARCITY_MAX < SCARCITY_MIXED, "a scarcity fits a byte");
#define SCORE_CACHE_FOLLOWS 2048
struct score_cache {
	int64_t shape;     /* its number; 0: not in use */
	uint64_t mix;      /* the version that the scores are by */
	uint64_t scarcity; /* the version of the scarcities that were looked at last */
	uint64_t seen;     /* changes of the index; 0: not even the first */
	struct tournament scores;
	struct bitset fitting;  /* those with a score */
	struct bitset promised; /* those left out for a promise */
	int64_t fits;           /* members of `fitting` */
	uint64_t *versions;     /* 0: never looked at */
	uint8_t *scarcities;    /* by rank: the scarcity that the score is by, or SCARCITY_MIXED */
};

/* Boards by the numbers of their shapes; where there are more shapes than there
 * is memory for, some take turns. Zero-initialised has none. */
struct score_caches {
	struct score_cache *of;
	size_t count, nodes;
};
void score_caches_free(struct score_caches *caches);

/* A search at its cache. */
struct scorer {
	struct placement *placement;
	const struct search *search;
	struct score_cache *cache;
	const struct bitset *scope; /* nodes outside do not fit */
	bool follows;
	policy_summary_score *by_summary; /* scores a plain view; NULL: the policy must see the GPUs
	                                   */
};

/* Whether such a search can have a cache: its scores depend on nothing but the
 * shape and the node, as long as no promise counts on that. A slot's also depend on
 * its model while GPUs are kept for models. */
bool score_cache_serves(const struct placement *placement, const struct search *search);
/* Finds the cache, or makes it. One that follows has followed. */
struct scorer scorer_begin(struct placement *placement, const struct search *search);
/* Whether a node is known to fit: looks again only at those noted, until one still
 * does. False says nothing. */
bool score_cache_has_fit(struct placement *placement, const struct search *search);
/* What the node scores. No promise may count on it. */
int64_t scorer_score(struct scorer *scorer, const struct node *node);

/* Panics if a score that counts as right is not what place_on_node says. */
void score_caches_check(struct placement *placement);

#endif
